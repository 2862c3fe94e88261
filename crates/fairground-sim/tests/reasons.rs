//! The tables of reasons in `docs/fidelity.md` are those of `reasons.toml`. After a change:
//! `UPDATE_TRUTH=1 cargo test -p fairground-sim --test reasons`.

use fairground_sim::truth::reasons::{Recording, markdown};

const PAGE: &str = "../../docs/fidelity.md";
const END: &str = "<!-- end -->";

#[test]
fn the_page_has_the_reasons() {
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let mut now = page.clone();
    for (name, recording) in [
        ("workloads", Recording::Workloads),
        ("load tracking", Recording::LoadTracking),
        ("many CPUs", Recording::ManyCpus),
    ] {
        let head = format!("<!-- made of reasons.toml: {name} -->\n");
        let (before, rest) = now.split_once(&head).expect("the place of a table");
        let (_, after) = rest.split_once(END).expect("its end");
        now = format!("{before}{head}{}{END}{after}", markdown(recording));
    }
    if std::env::var_os("UPDATE_TRUTH").is_some() {
        std::fs::write(PAGE, &now).expect("the page can be written");
    }
    let same = page == now;
    assert!(
        same,
        "UPDATE_TRUTH=1 cargo test -p fairground-sim --test reasons"
    );
}
