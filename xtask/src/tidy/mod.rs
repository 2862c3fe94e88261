//! The repository's own rules, checked by reading its files. CONTRIBUTING.md explains each rule
//! by the name that a finding carries.
//!
//! A rule is a function from a file to findings. Lengths that were too long when the rule came
//! are in `xtask/tidy-ratchet.txt`: they may shrink, and then the ratchet must follow, but not
//! grow. All other rules have no exceptions.

mod docs;
mod ignored;
mod layers;
mod length;
mod ratchet;
mod text;
mod words;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::LineColumn;
use syn::spanned::Spanned;
use syn::visit::Visit;

use ignored::Ignored;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path below the root of the repository, with `/`.
    pub file: String,
    /// Line, from 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// Name of the rule.
    pub rule: &'static str,
    /// What is wrong, and what to do instead.
    pub message: String,
    /// For rules that count: what was counted, and how much of it.
    pub size: Option<(String, usize)>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}: {}",
            self.file, self.line, self.rule, self.message
        )
    }
}

/// A Rust file, read and parsed once for all rules.
pub(crate) struct Source {
    path: String,
    text: String,
    syntax: syn::File,
    /// Lines (first and last) of items that exist in tests only.
    test_lines: Vec<(usize, usize)>,
}

/// The root of this repository.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// All broken rules of the repository at `root`, in the order of files and lines.
pub fn check(root: &Path) -> Vec<Finding> {
    let allowed = fs::read_to_string(root.join(ratchet::FILE)).unwrap_or_default();
    let mut findings = ratchet::apply(&allowed, check_all(root));
    findings.sort();
    findings
}

/// Writes the ratchet from what is too long now.
///
/// # Errors
/// If the file cannot be written.
pub fn write_ratchet(root: &Path) -> std::io::Result<()> {
    fs::write(root.join(ratchet::FILE), ratchet::text(&check_all(root)))
}

/// Every file that is checked, below `root`, sorted.
pub fn files(root: &Path) -> Vec<String> {
    let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let mut paths = Vec::new();
    walk(root, "", &Ignored::read(&ignored), &mut paths);
    paths.sort();
    paths
}

fn check_all(root: &Path) -> Vec<Finding> {
    let paths = files(root);
    let mut findings = docs::check(root, &paths);
    for path in &paths {
        let Ok(bytes) = fs::read(root.join(path)) else {
            continue;
        };
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        findings.extend(check_file(path, text));
    }
    findings
}

/// All rules for one file.
pub(crate) fn check_file(path: &str, text: String) -> Vec<Finding> {
    let mut findings = text::check(path, &text);
    if path.ends_with(".rs") {
        match Source::new(path, text) {
            Ok(source) => {
                findings.extend(length::check(&source));
                findings.extend(layers::check(&source));
                findings.extend(words::check(&source));
            }
            Err(error) => {
                let line = error.span().start().line;
                findings.push(finding(path, line, "parses", error.to_string()));
            }
        }
    }
    findings
}

pub(crate) fn finding(path: &str, line: usize, rule: &'static str, message: String) -> Finding {
    Finding {
        file: path.into(),
        line,
        rule,
        message,
        size: None,
    }
}

/// Files of the repository: all but what git ignores, git itself and `Cargo.lock`.
fn walk(root: &Path, below: &str, ignored: &Ignored, paths: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(root.join(below)) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() {
            name.clone()
        } else {
            format!("{below}/{name}")
        };
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if name == ".git" || ignored.has(&path, kind.is_dir()) {
            continue;
        }
        if kind.is_dir() {
            walk(root, &path, ignored, paths);
        } else if kind.is_file() && name != "Cargo.lock" {
            paths.push(path);
        }
    }
}

impl Source {
    fn new(path: &str, text: String) -> syn::Result<Self> {
        let syntax = syn::parse_file(&text)?;
        let mut tests = TestItems::default();
        tests.visit_file(&syntax);
        Ok(Self {
            path: path.into(),
            text,
            syntax,
            test_lines: tests.lines,
        })
    }

    fn is_test_line(&self, line: usize) -> bool {
        self.test_lines
            .iter()
            .any(|&(first, last)| (first..=last).contains(&line))
    }

    /// Whether the whole file is a test, a bench, an example or a fuzz target.
    fn is_test_file(&self) -> bool {
        ["/tests/", "/benches/", "/examples/", "fuzz/"]
            .iter()
            .any(|dir| self.path.contains(dir))
            || self.path.ends_with("/tests.rs")
    }

    fn is_engine(&self) -> bool {
        self.path.starts_with("crates/fairground/src/")
    }
}

/// Collects the lines of items under `#[cfg(test)]`.
#[derive(Default)]
struct TestItems {
    lines: Vec<(usize, usize)>,
}

impl TestItems {
    fn note(&mut self, attributes: &[syn::Attribute], item: &impl Spanned) {
        if attributes.iter().any(is_cfg_test) {
            let LineColumn { line: first, .. } = item.span().start();
            self.lines.push((first, item.span().end().line));
        }
    }
}

impl<'ast> Visit<'ast> for TestItems {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Mod(it) => self.note(&it.attrs, it),
            syn::Item::Fn(it) => self.note(&it.attrs, it),
            syn::Item::Impl(it) => self.note(&it.attrs, it),
            syn::Item::Use(it) => self.note(&it.attrs, it),
            syn::Item::Struct(it) => self.note(&it.attrs, it),
            syn::Item::Const(it) => self.note(&it.attrs, it),
            syn::Item::ExternCrate(it) => self.note(&it.attrs, it),
            _ => {}
        }
        syn::visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.note(&function.attrs, function);
        syn::visit::visit_impl_item_fn(self, function);
    }
}

fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else {
        return false;
    };
    list.path.is_ident("cfg")
        && matches!(list.tokens.to_string().as_str(), t if t == "test" || t.starts_with("any (test")
            || t.starts_with("all (test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGINE: &str = "crates/fairground/src/fair/pick.rs";

    /// The rules that `text` breaks as the file `path`, with their lines.
    fn broken(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let mut found: Vec<_> = check_file(path, text.into())
            .into_iter()
            .map(|f| (f.rule, f.line))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn words_are_found_in_code_only() {
        for (text, lines) in [
            ("fn f() {\n    todo!()\n}", vec![2]),
            ("fn f() {\n    g(dbg!(1));\n}", vec![2]),
            ("fn f() { unsafe { g() } }", vec![1]),
            ("use std::fmt;\nfn f(x: f64) {}", vec![1, 2]),
            (
                "/// unsafe, todo!, std:: and f64 are named here\nfn f() { g(\"HashMap\") }",
                vec![],
            ),
            (
                "#[cfg(test)]\nmod tests {\n    use std::collections::HashMap;\n}",
                vec![],
            ),
            (
                "#[cfg(not(test))]\nmod real {\n    use std::fmt;\n}",
                vec![3],
            ),
        ] {
            let want: Vec<_> = lines
                .into_iter()
                .map(|line| ("banned-word", line))
                .collect();
            assert_eq!(broken(ENGINE, text), want, "{text}");
        }
        assert_eq!(
            broken(
                "crates/fairground-sim/src/a.rs",
                "use std::fmt;\nfn f(x: f64) {}"
            ),
            []
        );
    }

    #[test]
    fn the_simulator_looks_at_no_clock() {
        let path = "crates/fairground-sim/src/machine.rs";
        assert_eq!(
            broken(path, "use std::time::Instant;"),
            [("banned-word", 1)]
        );
        assert_eq!(
            broken(path, "use std::collections::HashMap;"),
            [("banned-word", 1)]
        );
        assert_eq!(broken(path, "use rustc_hash::FxHashMap;"), []);
        assert_eq!(
            broken("crates/fairground-cli/src/a.rs", "use std::time::Instant;"),
            []
        );
    }

    #[test]
    fn layers_point_down() {
        let cases = [
            ("fair/pick.rs", "use crate::value::Time;", 0),
            ("fair/pick.rs", "use crate::fair::load;", 0),
            ("fair/pick.rs", "use crate::{rq::Rq, select::idle};", 1),
            ("math/pelt.rs", "fn f() -> crate::tree::Tree { g() }", 1),
            ("host.rs", "use crate::task::Task;", 0),
            ("host.rs", "use crate::shared::Cpu;", 1),
            (
                "tree.rs",
                "fn f() {\n    assert_eq!(1, crate::sched::X);\n}",
                1,
            ),
            (
                "tree.rs",
                "#[cfg(test)]\nmod tests {\n    use crate::sched::X;\n}",
                0,
            ),
            ("novel.rs", "fn f() {}", 1),
            ("lib.rs", "pub use crate::sched::schedule;", 0),
        ];
        for (file, text, count) in cases {
            let found = broken(&format!("crates/fairground/src/{file}"), text);
            assert_eq!(found.len(), count, "{file}: {text}: {found:?}");
            assert!(found.iter().all(|(rule, _)| *rule == "layers"), "{found:?}");
        }
        let report = "crates/fairground-report/src/a.rs";
        assert_eq!(broken(report, "use fairground_sim::run;"), [("layers", 1)]);
        assert_eq!(
            broken("crates/fairground-sim/src/a.rs", "use fairground::Rq;"),
            []
        );
    }

    #[test]
    fn a_flag_is_not_a_decision() {
        let body = |condition: &str| format!("fn f() {{ if {condition} {{ g() }} }}");
        for flag in [
            "features.a",
            "!cx.features.a",
            "x && self.features.a",
            "features.a == B",
        ] {
            assert_eq!(broken(ENGINE, &body(flag)), [("no-flag-test", 1)], "{flag}");
        }
        assert_eq!(
            broken(ENGINE, &body("cx.features.tg_load_avg.is_due(now, last)")),
            []
        );
        assert_eq!(
            broken("crates/fairground/src/policy/a.rs", &body("features.a")),
            []
        );
    }

    #[test]
    fn lengths_are_counted() {
        let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
        assert_eq!(broken(ENGINE, &function(70)), []);
        assert_eq!(broken(ENGINE, &function(71)), [("seventy-lines", 1)]);
        let method = format!("impl A {{\n{}}}", function(71));
        assert_eq!(broken(ENGINE, &method), [("seventy-lines", 2)]);
        let lines = |n: usize| "const A: u8 = 1;\n".repeat(n);
        assert_eq!(broken(ENGINE, &lines(400)), []);
        assert_eq!(broken(ENGINE, &lines(401)), [("file-length", 0)]);
        let tests = format!("{}#[cfg(test)]\nmod tests {{\n{}}}", lines(400), lines(290));
        assert_eq!(broken(ENGINE, &tests), []);
        assert_eq!(broken("crates/a/tests/b.rs", &lines(700)), []);
        assert_eq!(
            broken("crates/a/tests/b.rs", &lines(701)),
            [("file-length", 0)]
        );
        let wide = format!("// {}", "x".repeat(98));
        assert_eq!(broken(ENGINE, &wide), [("hundred-columns", 1)]);
    }

    #[test]
    fn exports_and_modules_have_names() {
        assert_eq!(
            broken(ENGINE, "pub use crate::value::*;"),
            [("glob-re-export", 1)]
        );
        assert_eq!(broken(ENGINE, "use crate::value::*;"), []);
        assert_eq!(
            broken(ENGINE, "mod utils;\nmod core;"),
            [("module-name", 1), ("module-name", 2)]
        );
    }

    #[test]
    fn places_of_one_machine_are_found_in_every_text() {
        let path = ["/ho", "me/somebody/x"].concat();
        assert_eq!(
            broken("README.md", &format!("a\ncd {path}")),
            [("machine-path", 2)]
        );
        let host = ["https://crates", ".io/crates/x"].concat();
        assert_eq!(broken("README.md", &host), [("registry-host", 1)]);
        assert_eq!(broken(ENGINE, "fn f( {")[0].0, "parses");
    }

    #[test]
    fn the_ratchet_only_goes_down() {
        let text = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(78));
        let found = check_file(ENGINE, text);
        let ratchet = |count: usize| format!("# head\n{ENGINE} fn-f {count}\n");
        let rules = |allowed: &str| -> Vec<&str> {
            ratchet::apply(allowed, found.clone())
                .iter()
                .map(|f| f.rule)
                .collect()
        };
        assert_eq!(rules(""), ["seventy-lines"]);
        assert_eq!(rules(&ratchet(80)), [""; 0]);
        assert_eq!(rules(&ratchet(79)), ["seventy-lines"]);
        assert_eq!(rules(&ratchet(81)), ["ratchet"]);
        assert_eq!(rules(&format!("{}a.rs fn-g 90", ratchet(80))), ["ratchet"]);
        assert_eq!(rules(&ratchet::text(&found)), [""; 0]);
    }
}
