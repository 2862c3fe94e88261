//! Pages that are made from tables are current.

use xtask::{docs, tidy};

#[test]
fn patches_page_is_current() {
    let page = std::fs::read_to_string(tidy::root().join(docs::FILE)).unwrap_or_default();
    assert!(
        page == docs::text(),
        "{} is out of date: cargo run -p xtask -- docs",
        docs::FILE
    );
}
