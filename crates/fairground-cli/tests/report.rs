//! `--report`: what is in the page is what `--json` writes, and a browser draws it.
//!
//! The browser's part needs Chromium: `FAIRGROUND_CHROMIUM`, or `chromium`, `chromium-browser` or
//! `google-chrome` in the path. `cargo test -p fairground-cli --test report -- --ignored` runs it,
//! and fails without one.

mod common;

use std::path::Path;
use std::process::Command;

use common::{SHORT, SMALL, fails, json, place, succeeds, words};
use serde_json::Value;

fn page_of(test: &str, args: &[&str], rest: &[&str]) -> (String, Value, String) {
    let dir = place(test);
    let path = |name: &str| dir.join(name).to_str().unwrap().to_string();
    let (page, numbers) = (path("page.html"), path("result.json"));
    let outputs = ["--report", &page, "--json", &numbers, "-q"];
    succeeds(words(&[args, &outputs, rest]));
    let text = std::fs::read_to_string(&page).unwrap();
    (text, json(&std::fs::read_to_string(numbers).unwrap()), page)
}

fn embedded(page: &str, id: &str) -> Value {
    let mark = format!("<script type=\"application/json\" id=\"{id}\">");
    let (_, rest) = page.split_once(&mark).expect("it is embedded");
    json(rest.split_once("</script>").unwrap().0)
}

/// Length of all slices of a side, and the busy time of its heat map, ns.
fn busy(side: &Value) -> (f64, f64) {
    let rows = |v: &Value| v.as_array().unwrap().clone();
    let slices = rows(&side["slices"]["cpu"])
        .into_iter()
        .flat_map(|c| rows(&c));
    let sum: f64 = slices.map(|s| s[1].as_f64().unwrap()).sum();
    let span = [0, 1].map(|i| side["span_ns"][i].as_f64().unwrap());
    let each = (span[1] - span[0]) / side["heat"]["bins"].as_f64().unwrap();
    let bins = rows(&side["heat"]["busy"])
        .into_iter()
        .flat_map(|c| rows(&c));
    let heat: f64 = bins.map(|b| b.as_f64().unwrap() / 1000.0 * each).sum();
    (sum, heat)
}

#[test]
fn a_comparison_is_embedded_as_json_writes_it_and_the_plots_agree_with_it() {
    let patch = ["compare", "--patch", "tg-load-avg-ratelimit"];
    let (page, numbers, _) = page_of("report_compare", &words(&[&patch, SMALL]), SHORT);
    assert_eq!(embedded(&page, "result"), numbers);
    let sides = embedded(&page, "samples");
    for (i, name) in ["base", "patch"].iter().enumerate() {
        let side = &sides[i];
        assert_eq!(side["variant"], *name);
        let metrics = &numbers["variants"][i]["runs"][0]["metrics"];
        let (slices, heat) = busy(side);
        assert!((slices - heat).abs() < 0.01 * slices, "{slices} {heat}");
        // A CPU is busy with interrupts too, and on the way into and out of threads.
        let span = side["span_ns"][1].as_f64().unwrap();
        let all = metrics["busy_pct"].as_f64().unwrap() / 100.0 * 8.0 * span;
        assert!(slices < 1.02 * all && slices > 0.5 * all, "{slices} {all}");
        let wakeups: f64 = numbers["variants"][i]["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["metrics"]["wakeups"].as_f64().unwrap())
            .sum();
        let latencies = side["latency"].as_array().unwrap();
        let counted: f64 = latencies.iter().map(|l| l[1].as_f64().unwrap()).sum();
        assert!(
            counted <= wakeups && counted > 0.8 * wakeups,
            "{counted} {wakeups}"
        );
        // Time by stack is the time of the functions.
        let functions = &numbers["variants"][i]["runs"][0]["functions"];
        let own: u64 = functions
            .as_object()
            .unwrap()
            .values()
            .map(|f| f["self_ns"].as_u64().unwrap())
            .sum();
        let stacks = side["stacks"].as_array().unwrap();
        let by_stack: u64 = stacks.iter().map(|s| s[2].as_u64().unwrap()).sum();
        assert!(
            own.abs_diff(by_stack) <= stacks.len() as u64 + 100,
            "{own} {by_stack}"
        );
    }
}

#[test]
fn a_report_changes_no_result() {
    let (_, with, _) = page_of("report_with", &words(&[&["run"], SMALL]), SHORT);
    let plain = words(&[&["run"], SMALL, &["--json", "-", "-q"], SHORT]);
    assert_eq!(json(&succeeds(plain)), with);
}

#[test]
fn places_that_clash_are_refused() {
    let same = place("report_clash").join("x");
    let same = same.to_str().unwrap();
    let both = ["run", "--json", same, "--report", same];
    let parts = ["--json and --report both name"];
    fails(words(&[&both, SMALL, SHORT]), &parts);
}

fn chromium() -> Option<String> {
    let named = std::env::var("FAIRGROUND_CHROMIUM").ok();
    let known = ["chromium", "chromium-browser", "google-chrome"].map(String::from);
    named.into_iter().chain(known).find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|o| o.status.success())
    })
}

/// What the page holds after its scripts have run, and what the console says.
fn browse(browser: &str, page: &str, width: u32) -> (String, String) {
    let profile = Path::new(page).with_extension("profile");
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
        ])
        .args(["--enable-logging=stderr", "--virtual-time-budget=4000"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{page}"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let console = said.lines().filter(|l| l.contains("CONSOLE"));
    let console: Vec<&str> = console.collect();
    (
        String::from_utf8_lossy(&output.stdout).into(),
        console.join("\n"),
    )
}

/// Counts, in the page itself, how many colours each canvas has, and whether anything is wider than
/// the window.
const PROBE: &str = r##"<script>
addEventListener("load", () => setTimeout(() => {
  const colours = [...document.querySelectorAll("canvas")].map((c) => {
    const image = c.getContext("2d").getImageData(0, 0, c.width, c.height);
    return new Set(new Uint32Array(image.data.buffer)).size;
  });
  const table = document.querySelectorAll("#latency-table td[data-value]");
  const cells = [...table].map((c) => +c.dataset.value);
  const probe = { colours, cells, flame: document.querySelectorAll(".flame button").length,
    curves: document.querySelectorAll("path.curve").length,
    wide: document.documentElement.scrollWidth - innerWidth };
  document.documentElement.setAttribute("data-probe", encodeURIComponent(JSON.stringify(probe)));
}, 500));
</script>"##;

fn probe(browser: &str, page: &str, width: u32) -> Value {
    let text = std::fs::read_to_string(page).unwrap();
    let probed = page.replace(".html", &format!(".{width}.html"));
    std::fs::write(&probed, text.replace("</body>", &format!("{PROBE}</body>"))).unwrap();
    let (dom, console) = browse(browser, &probed, width);
    assert_eq!(console, "", "the console says something");
    let (_, rest) = dom.split_once("data-probe=\"").expect("the page was drawn");
    let found = rest.split('"').next().unwrap();
    let bytes: Vec<u8> = found
        .split('%')
        .enumerate()
        .flat_map(|(i, part)| {
            if i == 0 {
                return part.as_bytes().to_vec();
            }
            let (code, rest) = part.split_at(2);
            let byte = u8::from_str_radix(code, 16).unwrap();
            [&[byte], rest.as_bytes()].concat()
        })
        .collect();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
#[ignore = "needs Chromium; the head of this file says how to run it"]
fn a_browser_draws_it_without_a_word_and_with_the_numbers_of_the_json() {
    let browser = chromium().expect("Chromium; FAIRGROUND_CHROMIUM names one");
    let one = ["run", "--machine", "xeon-8cpu-2013", "--seed", "1"];
    let (_, numbers, page) = page_of("report_browser", &one, SHORT);
    for width in [1280, 500] {
        let found = probe(&browser, &page, width);
        let colours = found["colours"].as_array().unwrap();
        assert_eq!(colours.len(), 2, "timeline and heat map");
        assert!(
            colours.iter().all(|c| c.as_u64().unwrap() > 4),
            "{colours:?}"
        );
        assert!(found["flame"].as_u64().unwrap() > 10, "{found}");
        assert_eq!(found["curves"], 1);
        assert!(
            found["wide"].as_i64().unwrap() <= 0,
            "wider than the window: {found}"
        );
        let metrics = &numbers["variants"][0]["runs"][0]["metrics"];
        for (cell, name) in [(0, "wakeup_latency_us.p50"), (2, "wakeup_latency_us.p99")] {
            let shown = found["cells"][cell].as_f64().unwrap() / 1000.0;
            let number = metrics[name].as_f64().unwrap();
            assert!((shown - number).abs() < 1e-9, "{name}: {shown} {number}");
        }
    }
    // The check itself can fail.
    let text = std::fs::read_to_string(&page).unwrap();
    let broken = page.replace(".html", ".broken.html");
    std::fs::write(
        &broken,
        text.replace("\"use strict\";", "\"use strict\"; nobody();"),
    )
    .unwrap();
    let (_, console) = browse(&browser, &broken, 1280);
    assert!(console.contains("nobody is not defined"), "{console}");
}

#[test]
fn the_page_of_a_replay_shows_what_a_quota_throttles() {
    let data = "../fairground-trace/tests/data/sleeper.script.txt.xz";
    let trace = format!("{}/{data}", env!("CARGO_MANIFEST_DIR"));
    let attributes = "[[cgroup]]\npath = \"/a\"\n[[thread]]\ncomm = \"hog\"\n\
                      cpus = [1]\ncgroup = \"/a\"\n";
    let attributes = common::file("report_quota", "attributes.toml", attributes);
    let page = Path::new(&attributes).with_file_name("page.html");
    let page = page.to_str().unwrap();
    let replay = [
        "replay",
        &trace,
        "--attributes",
        &attributes,
        "--seed",
        "1",
        "--report",
        page,
    ];
    succeeds(words(&[&replay, &["--set", "/a/cpu.max=20000 100000"]]));
    let text = std::fs::read_to_string(page).unwrap();
    // Lines and functions of the replay and of what if, with the numbers of the JSON.
    let costs = &embedded(&text, "result")["costs"];
    assert_eq!(costs[1]["side"], "what if");
    let asked =
        "<dt>what if, &#x2f;a&#x2f;cpu.max</dt><dd>20000 100000 (replayed: max 100000)</dd>";
    assert!(text.contains(asked), "what is asked");
    let (_, lines) = text.split_once("id=\"lines-table\"").expect("lines");
    let (lines, rest) = lines.split_once("</table>").unwrap();
    assert!(lines.contains("HITM") && rest.contains("id=\"functions-table\""));
    for side in [0, 1] {
        let hottest = &costs[side]["lines"][0];
        let loads = hottest["reads"].as_u64().unwrap();
        let loads = format!("data-value=\"{loads}\"");
        assert!(lines.contains(&loads), "{hottest}: {lines}");
    }
    let sides = embedded(&text, "samples");
    // Thousandths of a CPU, by group and part of the run.
    let throttled = |side: usize| -> u64 {
        let parts = sides[side]["heat"]["throttled"][1].as_array().unwrap();
        parts.iter().map(|part| part.as_u64().unwrap()).sum()
    };
    assert_eq!(sides[2]["variant"], "what if");
    assert_eq!(sides[2]["groups"], serde_json::json!(["/", "/a"]));
    assert_eq!((throttled(0), throttled(1)), (0, 0));
    // Its periods are drawn; at home it has no limit, and none to draw.
    let caption = "Periods of &#x2f;a, what if";
    let (head, figure) = text.rsplit_once(caption).expect("periods");
    assert!(!head.contains("Periods of &#x2f;a<"), "those at home");
    let figure = figure.split("</figure>").next().unwrap();
    let wait = &costs[1]["groups"][0]["wait"];
    let [waited, slow] = ["periods_waited", "periods_slow"].map(|name| wait[name].as_u64());
    let (waited, slow) = (waited.unwrap(), slow.unwrap());
    let note = format!("From the start of the recording: what if: in {waited} of ");
    assert!(figure.contains(&note), "{note}: {figure}");
    assert!(
        figure.contains(&format!(", and in {slow} of these")),
        "{figure}"
    );
    assert!(figure.contains("0.20 CPUs, slow"), "{figure}");
    assert!(figure.contains("class=\"throttled\""), "{figure}");
    let parts = sides[2]["heat"]["bins"].as_u64().unwrap();
    // Four fifths of the time, until its computing is done.
    let share = throttled(2) as f64 / parts as f64 / 1000.0;
    assert!((0.6..0.9).contains(&share), "{share}");
}

/// Half-way a limit ends, and later there is one with another period.
const LIMIT_CHANGES: &str = r#"
name = "changes"
machine = "spr-guest-2cpu"
duration = "500ms"
[[cgroup]]
path = "/a"
"cpu.max" = "10ms/50ms"
[[task]]
name = "w"
count = 2
cgroup = "/a"
steps = [{ loop = "forever", steps = [{ run = "5ms" }, { sleep = "5ms" }] }]
[[event]]
at = "200ms"
cgroup = "/a"
"cpu.max" = "max"
[[event]]
at = "300ms"
cgroup = "/a"
"cpu.max" = "10ms/25ms"
"#;

#[test]
fn periods_of_each_length_are_drawn_when_a_limit_changes() {
    let scenario = common::file("report_lengths", "changes.toml", LIMIT_CHANGES);
    let run = ["run", &scenario, "--seed", "1"];
    let (page, result, _) = page_of("report_lengths_page", &run, &[]);
    let figure = |length: u64| {
        let caption = format!("Periods of {length} ms of &#x2f;a<");
        // The first one is in the list of contents.
        let (_, figure) = page.rsplit_once(&caption).expect(&caption);
        figure.split("</figure>").next().unwrap().to_string()
    };
    let waited = |length: u64| -> u64 {
        let figure = figure(length);
        let (_, note) = figure.split_once("Seed 1: in ").expect("a note");
        note.split(' ').next().unwrap().parse().unwrap()
    };
    let wait = &result["variants"][0]["runs"][0]["groups"][0]["wait"];
    let all = wait["periods_waited"].as_u64().unwrap();
    assert!(waited(50) > 0 && waited(25) > 0);
    assert_eq!(waited(50) + waited(25), all);
    assert!(
        figure(50).contains("of 25 ms (drawn apart)"),
        "{}",
        figure(50)
    );
}
