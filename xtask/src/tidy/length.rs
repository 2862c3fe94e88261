//! Rules `file-length` and `seventy-lines`.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::Visit;

use super::{Finding, Source, finding};

/// Lines of code in a file, tests at its foot not counted.
const FILE_CODE_MAX: usize = 400;
/// Lines in a file, all of them.
const FILE_MAX: usize = 700;
/// Lines of a function, signature and braces included.
const FUNCTION_MAX: usize = 70;

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let all = source.text.lines().count();
    let code = if source.is_test_file() {
        0
    } else {
        code_lines(source)
    };
    for (what, count, most) in [
        ("lines", all, FILE_MAX),
        ("code lines", code, FILE_CODE_MAX),
    ] {
        if count > most {
            let message = format!("{count} {what}, at most {most}; split by what changes together");
            let size = Some((what.replace(' ', "-"), count));
            findings.push(Finding {
                size,
                ..finding(&source.path, 0, "file-length", message)
            });
        }
    }
    let mut functions = Functions { source, findings };
    functions.visit_file(&source.syntax);
    functions.findings
}

/// Lines outside `#[cfg(test)]` items that hold more than a comment.
fn code_lines(source: &Source) -> usize {
    let is_code = |line: &str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let numbered = (1..).zip(source.text.lines());
    numbered
        .filter(|&(n, line)| !source.is_test_line(n) && is_code(line))
        .count()
}

struct Functions<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn note(&mut self, signature: &syn::Signature, end: Span) {
        let first = signature.span().start().line;
        let count = end.end().line + 1 - first;
        if count > FUNCTION_MAX {
            let name = signature.ident.to_string();
            let message = format!(
                "`{name}` has {count} lines, at most {FUNCTION_MAX}; move a part out that is pure \
                 or has a name of the trade"
            );
            let size = Some((format!("fn-{name}"), count));
            let found = finding(&self.source.path, first, "seventy-lines", message);
            self.findings.push(Finding { size, ..found });
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.note(&function.sig, function.block.span());
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.note(&function.sig, function.block.span());
        syn::visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.note(&function.sig, block.span());
        }
        syn::visit::visit_trait_item_fn(self, function);
    }
}
