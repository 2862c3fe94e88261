//! Rule `layers`: each part imports only what stands above it in the list.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::Visit;

use super::{Finding, Source, finding};

/// The parts of the engine, lowest first. Parts of one row may name each other.
const ENGINE: &[&[&str]] = &[
    &["value"],
    &["math"],
    &["tree"],
    &["place"],
    &["event", "task", "host"],
    &["shared"],
    &["policy"],
    &["topology"],
    &["system", "rq", "cx"],
    &["fair"],
    &["select"],
    &["balance"],
    &["sched"],
    &["testing"],
];

/// For each crate, the crates of this workspace that it must not name.
const CRATES: &[(&str, &[&str])] = &[
    (
        "crates/fairground/",
        &[
            "fairground_sim",
            "fairground_trace",
            "fairground_report",
            "fairground_calibrate",
            "fairground_cli",
        ],
    ),
    (
        "crates/fairground-sim/",
        &[
            "fairground_trace",
            "fairground_report",
            "fairground_calibrate",
            "fairground_cli",
        ],
    ),
    (
        "crates/fairground-trace/",
        &[
            "fairground_report",
            "fairground_calibrate",
            "fairground_cli",
        ],
    ),
    (
        "crates/fairground-report/",
        &[
            "fairground",
            "fairground_sim",
            "fairground_calibrate",
            "fairground_cli",
        ],
    ),
    (
        "crates/fairground-calibrate/",
        &[
            "fairground",
            "fairground_sim",
            "fairground_trace",
            "fairground_report",
            "fairground_cli",
        ],
    ),
];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let layer = engine_part(&source.path).and_then(layer);
    if let (Some(part), None) = (engine_part(&source.path), layer) {
        let message = format!("`{part}` is not in the list of layers in xtask/src/tidy/layers.rs");
        return vec![finding(&source.path, 0, "layers", message)];
    }
    let mut names = Names { paths: Vec::new() };
    names.visit_file(&source.syntax);
    let outside_tests = |&(line, _): &(usize, Vec<String>)| !source.is_test_line(line);
    let paths = names
        .paths
        .iter()
        .filter(|&path| outside_tests(path) || layer.is_none());
    paths
        .filter_map(|(line, path)| check_path(source, *line, path, layer))
        .collect()
}

fn check_path(
    source: &Source,
    line: usize,
    path: &[String],
    layer_here: Option<usize>,
) -> Option<Finding> {
    let (first, rest) = path.split_first()?;
    let found = |message| Some(finding(&source.path, line, "layers", message));
    let row = CRATES.iter().find(|(dir, _)| source.path.starts_with(dir));
    let is_test = source.is_test_file() || source.is_test_line(line);
    if let Some((dir, banned)) = row.filter(|_| !is_test)
        && banned.contains(&first.as_str())
    {
        return found(format!("{dir} must not name {first}"));
    }
    let (here, named) = (layer_here?, rest.first()?);
    if first == "crate" && layer(named)? > here {
        return found(format!(
            "names `crate::{named}`, which stands below it; pass data instead"
        ));
    }
    None
}

/// The part of the engine that a file belongs to; `None` for other crates and `lib.rs`.
fn engine_part(path: &str) -> Option<&str> {
    let path = path.strip_prefix("crates/fairground/src/")?;
    let part = path.split('/').next()?.trim_end_matches(".rs");
    (part != "lib").then_some(part)
}

fn layer(part: &str) -> Option<usize> {
    ENGINE.iter().position(|row| row.contains(&part))
}

/// Collects every path of two or more names, in imports, code and macros.
struct Names {
    paths: Vec<(usize, Vec<String>)>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.use_tree(&item.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.paths.push((path.span().start().line, names));
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        syn::visit::visit_macro(self, call);
    }
}

impl Names {
    fn use_tree(&mut self, tree: &syn::UseTree, before: &mut Vec<String>) {
        let leaf = match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.use_tree(&path.tree, before);
                before.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                group
                    .items
                    .iter()
                    .for_each(|item| self.use_tree(item, before));
                return;
            }
            syn::UseTree::Name(name) => name.ident.to_string(),
            syn::UseTree::Rename(rename) => rename.ident.to_string(),
            syn::UseTree::Glob(_) => "*".into(),
        };
        let mut names = before.clone();
        names.push(leaf);
        self.paths.push((tree.span().start().line, names));
    }

    /// `crate::NAME` inside a macro call.
    fn tokens(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            match (token, tokens.get(index + 3)) {
                (TokenTree::Group(group), _) => self.tokens(group.stream()),
                (TokenTree::Ident(ident), Some(TokenTree::Ident(next))) if ident == "crate" => {
                    let line = ident.span().start().line;
                    self.paths
                        .push((line, vec!["crate".into(), next.to_string()]));
                }
                _ => {}
            }
        }
    }
}
