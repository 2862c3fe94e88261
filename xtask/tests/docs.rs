//! Pages that are made from tables are current.

use xtask::{docs, tidy, trust};

#[test]
fn patches_page_is_current() {
    let page = std::fs::read_to_string(tidy::root().join(docs::FILE)).unwrap_or_default();
    assert!(
        page == docs::text(),
        "{} is out of date: cargo run -p xtask -- docs",
        docs::FILE
    );
}

#[test]
fn readme_promises_what_the_pages_say() {
    let page = std::fs::read_to_string(tidy::root().join(trust::FILE)).unwrap_or_default();
    assert!(
        trust::text(&tidy::root()).as_ref() == Ok(&page),
        "{} is out of date: cargo run -p xtask -- docs",
        trust::FILE
    );
}

#[test]
fn a_page_without_its_figures_is_named() {
    let error = trust::text(&tidy::root().join("docs")).unwrap_err();
    assert!(error.starts_with("README.md: "), "{error}");
}
