//! Groups with a limit: metrics of their own that are asked for by name, and values that a run has
//! not.

mod common;

use common::{fails, file, json, place, succeeds, words};

/// `count` groups with a limit below a common one without.
fn limited(count: u32) -> String {
    format!(
        "machine = \"spr-guest-2cpu\"\nduration = \"300ms\"\nseeds = 1\n\
         [[cgroup]]\npath = \"/web\"\ncount = {count}\n\"cpu.max\" = \"2ms/20ms\"\n\
         [[task]]\nname = \"hog\"\ncount = {count}\ncgroup = \"/web\"\nsteps = [\"hog\"]\n"
    )
}

#[test]
fn a_group_has_its_own_metrics_where_they_are_asked_for() {
    for (count, group) in [(1, "/web"), (12, "/web.7")] {
        let path = file(&format!("by_name_{count}"), "s.toml", limited(count));
        let metric = format!("{group}/throttled_pct");
        let other = format!("{group}/slow_periods_pct");
        let over = format!("{group}/cpu.max=2ms/20ms,20ms/20ms");
        let target = format!("{metric}<50");
        let asked = ["--over", &over, "--metric", &other, "--target", &target];
        let text = succeeds(words(&[&["sweep", &path, "--json", "-", "-q"], &asked]));
        let result = json(&text);
        let first = &result["points"][0]["variant"]["runs"][0]["metrics"];
        assert!(first[&metric].as_f64() > Some(90.0), "{first}");
        assert!(first.get(&other).is_some(), "{first}");
        let mine = first.as_object().expect("metrics");
        let own = mine.keys().filter(|name| name.starts_with('/')).count();
        assert_eq!(own, 2, "those of no other: {first}");
        let fail_on = format!("{metric}>5");
        let none = format!("{group}/cpu.max=max");
        let compare = [
            "compare",
            &path,
            "-q",
            "--base",
            &none,
            "--fail-on",
            &fail_on,
        ];
        let output = common::fairground(compare);
        assert_eq!(output.status.code(), Some(1), "it is throttled: {output:?}");
    }
    let path = file("by_name_unknown", "s.toml", limited(12));
    let wrong = ["sweep", &path, "--over", "hz=250,1000", "--metric"];
    fails(
        words(&[&wrong, &["/wbe/throttled_pct"]]),
        &["unknown metric `/wbe/throttled_pct`"],
    );
}

/// Of a group whose tasks never sleep nothing is usual, and where nothing waited nothing took 0 ms.
#[test]
fn what_there_is_none_of_is_null() {
    let text = |max: &str| {
        limited(1)
            .replace("2ms/20ms", max)
            .replace("count = 1\n", "")
    };
    let dir = place("null_usual");
    let page = dir.join("page.html");
    let page = page.to_str().expect("UTF-8");
    let path = file("null_usual_in", "s.toml", text("2ms/20ms"));
    let run = ["run", &path, "--json", "-", "--report", page, "-q"];
    let result = json(&succeeds(run));
    let wait = &result["variants"][0]["runs"][0]["groups"][0]["wait"];
    assert!(
        wait["usual_ns"].is_null() && wait["slow_ns"].is_null(),
        "{wait}"
    );
    let html = std::fs::read_to_string(page).expect("the page");
    let (_, table) = html
        .split_once("<table id=\"quota-table\"")
        .expect("a table");
    let (table, _) = table.split_once("</table>").expect("its end");
    // p50, p99, longest, usual, harmless and slow.
    assert_eq!(table.matches(">-<").count(), 6, "{table}");
    let path = file("null_delay_in", "s.toml", text("40ms/20ms"));
    let result = json(&succeeds(["run", &path, "--json", "-", "-q"]));
    let group = &result["variants"][0]["runs"][0]["groups"][0];
    for key in ["p50_ns", "p99_ns", "max_ns"] {
        assert!(group["wait"]["delay"][key].is_null(), "{group}");
        assert!(group["work"]["timer"].get(key).is_some(), "{group}");
        assert!(group["work"]["throttle"][key].is_null(), "{group}");
    }
}

/// A cgroup may be called so.
#[test]
fn a_name_with_an_equals_sign_is_that_of_a_group() {
    let scenario = r#"
machine = "spr-guest-2cpu"
duration = "20ms"
[[cgroup]]
path = "/a=b"
[[task]]
name = "hog"
cgroup = "/a=b"
steps = ["hog"]
"#;
    let path = file("equals-sign", "s.toml", scenario);
    let run = ["run", &path, "--seed", "1", "--json", "-", "-q"];
    let result = json(&succeeds(words(&[
        &run,
        &["--set", "/a=b/cpu.max=1ms/10ms"],
    ])));
    let settings = &result["variants"][0]["settings"];
    assert_eq!(settings["/a=b/cpu.max"], "1000 10000", "{settings}");
    let over = ["--over", "/a=b/cpu.max=1ms/10ms,2ms/10ms"];
    let sweep = ["sweep", &path, "--seed", "1", "--json", "-", "-q"];
    let result = json(&succeeds(words(&[&sweep, &over])));
    assert_eq!(result["over"][0]["name"], "/a=b/cpu.max");
}
