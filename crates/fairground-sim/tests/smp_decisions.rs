//! Decisions of Linux 6.12.117 on 16 and 32 CPUs, made again by the engine: none may differ.
//!
//! `tests/data/kernel-truth-smp/*.jsonl.gz` hold the files of the recording, a line each.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::OnceLock;

use fairground_sim::truth::smp::{DecisionVerdict, Recording, check_decisions};

const FILES: &[&[u8]] = &[
    include_bytes!("data/kernel-truth-smp/choice.jsonl.gz"),
    include_bytes!("data/kernel-truth-smp/balance.jsonl.gz"),
    include_bytes!("data/kernel-truth-smp/pelt.jsonl.gz"),
    include_bytes!("data/kernel-truth-smp/runs.jsonl.gz"),
];

fn all() -> &'static BTreeMap<String, String> {
    static TEXTS: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    TEXTS.get_or_init(unpack)
}

fn texts() -> BTreeMap<String, String> {
    all().clone()
}

/// One file, and what it needs.
fn with_machines(name: &str) -> BTreeMap<String, String> {
    let needed = all().iter();
    let needed = needed.filter(|(n, _)| *n == name || n.starts_with("topology/"));
    needed.map(|(n, text)| (n.clone(), text.clone())).collect()
}

fn unpack() -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for file in FILES {
        let mut lines = String::new();
        flate2::read::GzDecoder::new(*file)
            .read_to_string(&mut lines)
            .expect("the recording");
        for line in lines.lines() {
            let both: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let text = |key: &str| both[key].as_str().expect("a text").to_string();
            texts.insert(text("file"), text("text"));
        }
    }
    texts
}

/// Equal, different, skipped, by metric.
type Sums = BTreeMap<&'static str, [u64; 3]>;

fn replay(recording: &Recording, glob: &str, changes: &[(&str, &str)]) -> Sums {
    let mut sums = Sums::new();
    for name in recording.names(glob).expect("files") {
        let rows = check_decisions(recording, name, changes).unwrap_or_else(|e| panic!("{e}"));
        for row in rows {
            assert_eq!(row.records, row.equal + row.different + row.skipped);
            if changes.is_empty() && row.verdict == DecisionVerdict::Miss {
                eprintln!("{row:?}");
            }
            let sum = sums.entry(row.metric).or_default();
            for (sum, n) in sum.iter_mut().zip([row.equal, row.different, row.skipped]) {
                *sum += n;
            }
        }
    }
    sums
}

#[test]
fn every_decision_is_the_kernels() {
    let recording = Recording::new(texts());
    let expected = [
        ("affine_target", [3612, 0, 0]),
        ("balancing_cpu", [372, 0, 0]),
        ("busiest", [7926, 0, 0]),
        ("chosen", [5353, 0, 11]),
        ("detached", [369, 0, 2]),
        ("domains", [144, 0, 0]),
        ("events", [0, 0, 1066]),
        ("flag_names", [12, 0, 0]),
        ("group_type", [36_779, 0, 1]),
        ("groups", [22_088, 0, 24]),
        ("imbalance", [1055, 0, 1]),
        ("interval", [8871, 0, 0]),
        ("interval_after", [389, 0, 0]),
        ("migration_type", [1056, 0, 0]),
        ("pelt", [4492, 0, 0]),
        ("pelt_averages", [4159, 0, 333]),
        ("src_cpu", [6657, 0, 4]),
        ("weight", [1491, 0, 0]),
    ];
    assert_eq!(replay(&recording, "*", &[]), Sums::from(expected));
}

/// The records tell the kernel's rules from others: with one rule changed, choices differ.
#[test]
fn a_changed_rule_shows() {
    let recording = Recording::new(texts());
    let (wake, fork) = ("wake/decisions_2x8.jsonl", "fork/decisions_2x8.jsonl");
    let rules = [
        (wake, "affine_target", ("wa_idle", "off"), 370),
        (
            "decisions_bg_2x8.jsonl",
            "affine_target",
            ("wa_weight", "off"),
            8,
        ),
        (wake, "chosen", ("scan_budget", "all"), 115),
        (wake, "chosen", ("scan_budget", "prop"), 57),
        (fork, "chosen", ("idlest_tie", "first-group"), 85),
        (fork, "chosen", ("idlest_tie", "group-util"), 99),
        (fork, "chosen", ("idlest_tie", "nr-running"), 85),
    ];
    let differ =
        rules.map(|(glob, metric, change, _)| replay(&recording, glob, &[change])[metric][1]);
    assert_eq!(differ, rules.map(|(.., different)| different));
    let moves_one = replay(&recording, "lb_*", &[("newidle_moves_one", "on")]);
    assert!(moves_one["detached"][1] > 0, "{moves_one:?}");
}

/// Replaces text in one line of a file and replays it: which decisions differ, or the line and
/// the message.
fn changed(
    name: &str,
    line_has: &str,
    from: &str,
    to: &str,
) -> Result<Vec<&'static str>, (usize, String)> {
    let mut texts = with_machines(name);
    let text = &texts[name];
    let place = text.lines().position(|l| l.contains(line_has));
    let place = place.unwrap_or_else(|| panic!("{name}: no line has {line_has}"));
    let lines = text.lines().enumerate().map(|(i, line)| {
        if i == place {
            assert!(line.contains(from), "{from} is not in {line}");
            line.replacen(from, to, 1)
        } else {
            line.to_string()
        }
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    texts.insert(name.to_string(), text);
    let line = place + 1;
    match check_decisions(&Recording::new(texts), name, &[]) {
        Ok(rows) => {
            let wrong = rows.iter().filter(|row| row.different > 0);
            // Values of a topology file are told without their lines.
            let shown = match name.starts_with("topology/") {
                true => "line 1: ".to_string(),
                false => format!("line {line}: "),
            };
            for row in wrong.clone() {
                assert!(row.differences.iter().any(|d| d.starts_with(&shown)));
            }
            Ok(wrong.map(|row| row.metric).collect())
        }
        Err(e) => Err((line, e.to_string())),
    }
}

const WAKE: &str = "wake/decisions_2x8.jsonl";
const FORK: &str = "fork/decisions_2x8.jsonl";
const LB: &str = "balance/lb_decisions_bal_16on1_2x8_seed1.jsonl";
const INTERVALS: &str = "balance/intervals_bal_few_2x8.csv";
const UPDATES: &str = "pelt/updates_pelt_2x8_0.csv";
const SHARES: &str = "pelt/group_shares_pelt_2x8_4.csv";
const TOPOLOGY: &str = "topology/2x8.json";

/// File, what its line has, what is replaced by what there, the decisions that differ then.
type Wrong = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const AMOUNT: &[&str] = &["imbalance", "src_cpu", "detached"];

#[rustfmt::skip]
const WRONG: &[Wrong] = &[
    (WAKE, "\"changed_cpus\":[]", "\"chosen\":3", "\"chosen\":4", &["chosen"]),
    (WAKE, "\"changed_cpus\":[]", "affine_target\":3", "affine_target\":4", &["affine_target"]),
    (LB, "\"moved\":5", "\"imbalance\":5", "\"imbalance\":6", AMOUNT),
    (LB, "\"moved\":5", "\"task\"", "\"load\"", &["migration_type"]),
    (LB, "\"moved\":5", "\"imbalance_left\":3", "\"imbalance_left\":2", &["detached"]),
    (LB, "\"moved\":5", "_after\":8", "_after\":16", &["interval_after"]),
    (INTERVALS, ",MC,1,0,8,2,", ",8,2,", ",8,3,", &["interval"]),
    (UPDATES, "1.17049,", ",253,", ",254,", &["pelt", "pelt_averages"]),
    (UPDATES, "1.17049,", ",5,2,2", ",5,2,3", &["pelt_averages"]),
    (SHARES, "3.766598", "2049125", "2049124", &["weight"]),
    (TOPOLOGY, "\"imbalance_pct\": 117", "117", "118", &["domains"]),
    (TOPOLOGY, "\"cores\": 1", "\"cores\": 1", "\"cores\": 2", &["groups"]),
];

#[test]
fn a_wrong_record_is_noticed() {
    for (name, has, from, to, metrics) in WRONG {
        let wrong = changed(name, has, from, to).expect("a record");
        assert_eq!(wrong, *metrics, "{name}: {from} -> {to}");
    }
}

/// File, what its line has, what is replaced by what there, what the message says.
type Bad = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const BAD: &[Bad] = &[
    (WAKE, "1.431908", "\"prev_cpu\"", "\"prev\"", "prev"),
    (WAKE, "1.431908", "\"wake\"", "\"woke\"", "woke"),
    (WAKE, "1.431908", "\"chosen\":3", "\"chosen\":16", "chosen: CPU 16"),
    (WAKE, "1.431908", "\"0-15\"", "\"0-16\"", "allowed"),
    (WAKE, "1.431908", "\"0-15\"", "\"\"", "allowed"),
    (WAKE, "1.431908", "[1,1,1,0,606", "[1,1,1,2,606", "0 or 1"),
    (WAKE, "1.431908", "606,606,605,180,null]", "606,606,605]", "cpus[0]"),
    (WAKE, "1.431908", ",606,", ",99999999999999,", "cpus[0]"),
    (WAKE, "1.431908", "\"t\":1.431908", "\"t\":-3", "t: -3"),
    (WAKE, "1.431908", "}", "", "EOF"),
    (WAKE, "1.431908", "{", "{\"new\":1,", "new"),
    (FORK, "0.958232", "tie=util", "tie=left", "left"),
    (FORK, "0.958232", "[\"NUMA\",4,1", "[\"PKG\",4,1", "groups"),
    (FORK, "0.958232", ",8192,0]", ",0,0]", "capacity"),
    (LB, "1.241144", "\"MC\"", "\"MD\"", "sd"),
    (LB, "1.241144", "\"dst_cpu\":1", "\"dst_cpu\":77", "dst_cpu"),
    (LB, "1.241144", "[0,2,1,", "[0,3,1,", "groups[1]"),
    (LB, "1.241144", ",[0,2,1,0,0,0,1024,0,0,1,0,0,0]", "", "groups: 7"),
    (LB, "1.241144", "0,0,0,1024,", "0,0,0,0,", "capacity"),
    (LB, "1.241144", "\"task\"", "\"tusk\"", "tusk"),
    (LB, "1.241144", "\"1/16\"", "\"0/16\"", "loop"),
    (LB, "1.241144", "\"1/16\"", "\"1/99\"", "loop"),
    (LB, "1.241144", "\"moved\":8", "\"moved\":9", "moved"),
    (UPDATES, "1.17049,", ",se,", ",sea,", "sea"),
    (UPDATES, "1.17049,", ",5,2,2", ",5,2", "columns"),
    (UPDATES, "1.17049,", ",959,", ",1024,", "pre_period_contrib"),
    (UPDATES, "t,kind", "in_load", "in_lead", "in_lead"),
    (INTERVALS, ",MC,1,0,8,2,", ",MC,", ",MX,", "domain"),
    (TOPOLOGY, "\"cpu\": 0", "\"cpu\": 0", "\"cpu\": 1", "cpus[0]"),
    (TOPOLOGY, "\"cpus\"", "\"cpus\"", "\"cups\"", "cups"),
];

#[test]
fn what_is_not_in_the_format_is_refused_with_its_line() {
    for (name, has, from, to, says) in BAD {
        let (line, error) = changed(name, has, from, to).expect_err(from);
        assert!(error.contains(says), "{from} -> {to}: {error}");
        let line = match *has {
            // A wrong head shows in the first row; what a value means is told without its line.
            "t,kind" => 2,
            "\"cpu\": 0" => 1,
            _ => line,
        };
        let place = format!("{name}:{line}: ");
        assert!(error.starts_with(&place), "{from} -> {to}: {error}");
    }
}

#[test]
fn a_file_may_end_anywhere() {
    let texts = texts();
    for name in texts.keys() {
        let text = &texts[name];
        for part in [0, 1, 2, 7] {
            let mut end = text.len() * part / 7 - usize::from(part == 7) * 3.min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let mut cut = with_machines(name);
            cut.insert(name.clone(), text[..end].to_string());
            // Whatever comes of it, it is an answer.
            if let Err(e) = check_decisions(&Recording::new(cut), name, &[]) {
                assert!(e.to_string().starts_with(name.as_str()), "{e}");
            }
        }
    }
}

#[test]
fn another_machine_needs_no_file_of_its_own() {
    let mut texts = texts();
    for file in ["wake/decisions_2x8", "fork/decisions_2x8"] {
        let text = texts.remove(&format!("{file}.jsonl")).expect("a file");
        texts.insert(format!("{file}_other.jsonl"), text.clone());
        texts.insert(format!("{file}_wrong.jsonl").replace("2x8", "4x4"), text);
    }
    texts.remove("topology/2x8.json");
    let recording = Recording::new(texts);
    let sums = replay(&recording, "decisions_2x8_other.jsonl", &[]);
    assert_eq!(sums["chosen"][..2], [3089, 0]);
    // Another machine has other domains, and the records do not fit it.
    let name = "fork/decisions_4x4_wrong.jsonl";
    let error = check_decisions(&recording, name, &[]).expect_err("not this machine");
    assert!(error.to_string().contains("groups"), "{error}");
}
