//! Rules `banned-word`, `glob-re-export`, `module-name`, `no-flag-test`: words with what to use
//! instead.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::Visit;

use super::{Finding, Source, finding};

/// Words that no file may hold, with what to use instead.
const EVERYWHERE: &[(&str, &str)] = &[("unsafe", "an arena and indices; no crate needs it")];

/// Macros that no file may call, with what to use instead.
const MACROS: &[(&str, &str)] = &[
    (
        "todo",
        "the code, or an honest sentence in the documentation",
    ),
    (
        "unimplemented",
        "the code, or a variant that cannot be built",
    ),
    ("dbg", "an assertion or an event"),
];

/// Words that the engine may not hold outside tests.
const ENGINE: &[(&str, &str)] = &[
    ("HashMap", "a Vec by index, or BTreeMap"),
    ("HashSet", "a bit set, or BTreeSet"),
    ("f32", "fixed point; floats belong to reports"),
    ("f64", "fixed point; floats belong to reports"),
];

/// Words that the simulator may not hold outside tests: its results must not depend on the hour,
/// nor on a hasher that is seeded by the system.
const SIMULATOR: &[(&str, &str)] = &[
    ("HashMap", "FxHashMap that is never iterated, or BTreeMap"),
    ("HashSet", "FxHashSet that is never iterated, or BTreeSet"),
    (
        "Instant",
        "simulated time; the command line may look at a clock",
    ),
    (
        "SystemTime",
        "simulated time; the command line may look at a clock",
    ),
];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Ok(stream) = source.text.parse::<TokenStream>() {
        scan(source, stream, &mut findings);
    }
    let mut items = Items { source, findings };
    items.visit_file(&source.syntax);
    items.findings
}

fn scan(source: &Source, stream: TokenStream, findings: &mut Vec<Finding>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => scan(source, group.stream(), findings),
            TokenTree::Ident(ident) => {
                let line = ident.span().start().line;
                let word = ident.to_string();
                if let Some((rule, message)) = judge(source, line, &word, &tokens[index + 1..]) {
                    findings.push(finding(&source.path, line, rule, message));
                }
            }
            _ => {}
        }
    }
}

/// The one file of the engine that names the standard library: for a cell that `core` does not
/// have, and only with the crate's feature `std`.
const MAY_USE_STD: &str = "crates/fairground/src/shared/tg_cpu.rs";

fn judge(
    source: &Source,
    line: usize,
    word: &str,
    rest: &[TokenTree],
) -> Option<(&'static str, String)> {
    let in_engine = source.is_engine() && !source.is_test_line(line);
    let in_simulator =
        source.path.starts_with("crates/fairground-sim/src/") && !source.is_test_line(line);
    let next = |c| matches!(rest.first(), Some(TokenTree::Punct(p)) if p.as_char() == c);
    let lookup = |list: &[(&str, &'static str)]| {
        list.iter()
            .find(|(banned, _)| *banned == word)
            .map(|&(_, instead)| instead)
    };
    let instead = lookup(EVERYWHERE)
        .or_else(|| lookup(MACROS).filter(|_| next('!')))
        .or_else(|| lookup(ENGINE).filter(|_| in_engine))
        .or_else(|| lookup(SIMULATOR).filter(|_| in_simulator));
    if let Some(instead) = instead {
        return Some(("banned-word", format!("`{word}`; use {instead}")));
    }
    if word == "std" && in_engine && next(':') && !source.path.ends_with(MAY_USE_STD) {
        return Some(("banned-word", "`std::`; use `core::` or `alloc::`".into()));
    }
    let outside_policy = !source.path.contains("/src/policy/");
    if word == "if" && source.is_engine() && outside_policy && tests_a_flag(rest) {
        let message = "asks which feature is on; ask the decision point's method instead";
        return Some(("no-flag-test", message.into()));
    }
    None
}

/// Whether a condition reads `features.NAME` as a flag: followed by a brace or an operator, where
/// a decision point would be followed by its method.
fn tests_a_flag(condition: &[TokenTree]) -> bool {
    let is_dot = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == '.');
    let is_body =
        |t: &TokenTree| matches!(t, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace);
    let end = condition
        .iter()
        .position(is_body)
        .unwrap_or(condition.len());
    let features = |t: &TokenTree| matches!(t, TokenTree::Ident(i) if i == "features");
    (0..end).filter(|&at| features(&condition[at])).any(|at| {
        let flag = condition.get(at + 1).is_some_and(is_dot)
            && matches!(condition.get(at + 2), Some(TokenTree::Ident(_)));
        flag && !condition.get(at + 3).is_some_and(|t| {
            is_dot(t) || matches!(t, TokenTree::Group(g) if g.delimiter() != Delimiter::Brace)
        })
    })
}

struct Items<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl<'ast> Visit<'ast> for Items<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let instead = match module.ident.to_string().as_str() {
            "utils" | "util" | "helpers" | "misc" => "a name that says what it holds",
            "core" => "a name that does not hide the crate `core`",
            _ => "",
        };
        if !instead.is_empty() {
            let message = format!("module `{}`; use {instead}", module.ident);
            let line = module.ident.span().start().line;
            self.findings
                .push(finding(&self.source.path, line, "module-name", message));
        }
        syn::visit::visit_item_mod(self, module);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !matches!(item.vis, syn::Visibility::Inherited) && has_glob(&item.tree) {
            let line = item.use_token.span.start().line;
            let message = "name what is exported; readers search for names".into();
            self.findings
                .push(finding(&self.source.path, line, "glob-re-export", message));
        }
    }
}

fn has_glob(tree: &syn::UseTree) -> bool {
    match tree {
        syn::UseTree::Glob(_) => true,
        syn::UseTree::Path(path) => has_glob(&path.tree),
        syn::UseTree::Group(group) => group.items.iter().any(has_glob),
        syn::UseTree::Name(_) | syn::UseTree::Rename(_) => false,
    }
}
