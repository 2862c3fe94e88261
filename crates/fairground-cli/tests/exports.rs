//! `run --trace` in the files of other tools that are no tracepoints.

mod common;

use common::{SHORT, SMALL, fails, json, place, succeeds, words};

/// The file, and the first seed's metrics and functions.
fn written(test: &str, name: &str, more: &[&str]) -> (String, serde_json::Value) {
    let dir = place(test);
    let file = dir.join(name).to_str().unwrap().to_string();
    let out = ["run", "--trace", &file, "--json", "-", "-q"];
    let all = json(&succeeds(words(&[&out, more, SMALL, SHORT])));
    let first = all["variants"][0]["runs"][0].clone();
    (std::fs::read_to_string(file).unwrap(), first)
}

#[test]
fn folded_stacks_have_the_time_of_the_functions() {
    let (text, run) = written("folded", "x.folded", &[]);
    let mut sums = std::collections::BTreeMap::new();
    for line in text.lines() {
        let (stack, ns) = line.rsplit_once(' ').unwrap();
        let last = stack.rsplit(';').next().unwrap();
        *sums.entry(last.to_string()).or_insert(0_u64) += ns.parse::<u64>().unwrap();
    }
    for (name, cost) in run["functions"].as_object().unwrap() {
        let self_ns = cost["self_ns"].as_u64().unwrap();
        let sum = sums.get(name).copied().unwrap_or(0);
        // Every stack is rounded down.
        assert!(
            sum <= self_ns && self_ns - sum < 100,
            "{name}: {sum} of {self_ns}"
        );
    }
    assert!(text.contains(";"), "{text}");
}

#[test]
fn schedstat_has_nine_numbers_for_each_cpu_and_they_agree_with_the_run() {
    let (text, run) = written("schedstat", "x.schedstat", &[]);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("version 17"));
    assert!(lines.next().unwrap().starts_with("timestamp "));
    let numbers = |line: &str, names: usize| -> Vec<u64> {
        let words = line.split(' ').skip(names);
        words.map(|n| n.parse().unwrap()).collect()
    };
    let all: Vec<&str> = lines.collect();
    let rows = all.iter().filter(|l| l.starts_with("cpu"));
    let rows: Vec<Vec<u64>> = rows.map(|l| numbers(l, 1)).collect();
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|r| r.len() == 9 && r[1] == 0));
    domains(&all, &numbers);
    let sum = |field: usize| rows.iter().map(|r| r[field]).sum::<u64>() as f64;
    let metric = |name: &str| run["metrics"][name].as_f64().unwrap();
    // To idle, and to somebody.
    assert_eq!(sum(3) + sum(8), metric("switches"));
    assert!(sum(2) >= metric("switches"));
    assert!(sum(4) <= metric("wakeups") && sum(5) <= sum(4));
    let ns = metric("sim_time_s") * 1e9 * 8.0;
    let busy = metric("busy_pct") / 100.0 * ns;
    assert!(
        sum(6) > 0.5 * busy && sum(6) < 1.05 * busy,
        "{} {busy}",
        sum(6)
    );
    assert!(sum(7) > 0.0);
}

/// Each CPU's row is followed by its domains, smallest first: name, CPUs, 45 counters.
fn domains(lines: &[&str], numbers: &dyn Fn(&str, usize) -> Vec<u64>) {
    let domains: Vec<&&str> = lines.iter().filter(|l| l.starts_with("domain")).collect();
    assert!(domains.len() >= 8, "{lines:?}");
    let mut totals = vec![0; 45];
    for line in domains {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(["SMT", "MC", "PKG", "NUMA"].contains(&words[1]), "{line}");
        assert!(
            u32::from_str_radix(words[2], 16).unwrap().count_ones() >= 2,
            "{line}"
        );
        let n = numbers(line, 3);
        assert_eq!(n.len(), 45, "{line}");
        for idle in n[..33].chunks(11) {
            let [count, balanced, failed, .., gained, hot, no_queue, no_group] = idle[..] else {
                panic!("{line}");
            };
            assert!(count >= balanced + failed && gained >= hot, "{line}");
            assert!(balanced >= no_queue.max(no_group), "{line}");
        }
        assert!(
            n[33] >= n[34] + n[35] && n[36..42].iter().all(|n| *n == 0),
            "{line}"
        );
        totals.iter_mut().zip(n).for_each(|(sum, n)| *sum += n);
    }
    // Wake-ups have gone elsewhere.
    assert!(totals[42] > 0, "{totals:?}");
}

#[test]
fn balancing_shows_in_the_domains_of_schedstat() {
    let file = place("domains").join("x.schedstat");
    let name = file.to_str().unwrap().to_string();
    let hogs = ["--", "hogs", "-t", "12", "-d", "60ms"];
    succeeds(words(&[&["run", "--trace", &name, "-q"], SMALL, &hogs]));
    let text = std::fs::read_to_string(file).unwrap();
    let sum = |field: usize| -> u64 {
        let rows = text.lines().filter(|l| l.starts_with("domain"));
        let of = rows.map(|l| l.split(' ').nth(3 + field).unwrap());
        of.map(|n| n.parse::<u64>().unwrap()).sum()
    };
    // 12 tasks on 8 CPUs: those with two try, and a third has only one to give.
    assert!(sum(0) > 0, "busy CPUs balance\n{text}");
    let found = sum(3) + sum(4) + sum(5);
    let imbalances = sum(14) + sum(15) + sum(16) + sum(25) + sum(26) + sum(27);
    assert!(found + imbalances > 0, "imbalances\n{text}");
    assert!(
        sum(9) + sum(10) + sum(20) + sum(21) > 0,
        "nobody busier\n{text}"
    );
}

/// Who is taken from its CPU by active balancing does not run there any more.
#[test]
fn schedstat_counts_nobody_on_a_cpu_that_was_left_to_the_stopper() {
    let scenario = r#"
machine = "xeon-8cpu-2013"
duration = "200ms"
seeds = 1
[[task]]
name = "a"
affinity = "4"
steps = ["hog"]
[[task]]
name = "b"
affinity = "0"
steps = [{ run = "10ms" }, { affinity = "0-7" }, "hog"]
"#;
    let path = common::file("left", "s.toml", scenario);
    let written = place("left-out").join("x.schedstat");
    succeeds(["run", &path, "-q", "--trace", written.to_str().unwrap()]);
    let text = std::fs::read_to_string(written).unwrap();
    let row = |cpu: &str| -> Vec<u64> {
        let row = text.lines().find(|l| l.starts_with(cpu)).unwrap();
        row.split(' ').skip(1).map(|n| n.parse().unwrap()).collect()
    };
    // `b` ran for some 25 ms before it was pushed to a core of its own, where it still runs.
    let ran = row("cpu0 ")[6];
    assert!((10_000_000..60_000_000).contains(&ran), "{text}");
    assert_eq!(row("cpu2 ")[6], 0, "it still runs: {text}");
    assert!(row("cpu2 ")[7] > 0, "it has waited for the CPU: {text}");
}

#[test]
fn the_debug_file_shows_the_moment_that_is_asked_for() {
    let (early, _) = written("debug_early", "x.debug", &["--at", "100us"]);
    let (later, _) = written("debug_later", "x.debug", &["--at", "300us"]);
    for text in [&early, &later] {
        assert!(text.starts_with("Sched Debug Version: "));
        assert_eq!(text.matches("\ncpu#").count(), 8);
        assert_eq!(text.matches("runnable tasks:").count(), 8);
    }
    let clock = |text: &str| -> f64 {
        let line = text.lines().find(|l| l.starts_with("sched_clk")).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!((clock(&later) - clock(&early) - 0.2).abs() < 0.05);
    let running = |text: &str| text.lines().filter(|l| l.starts_with(">R")).count();
    assert!(running(&early) + running(&later) > 0, "{later}");
}

/// As the kernel's file has every task of a CPU.
#[test]
fn the_debug_file_has_real_time_tasks_too() {
    let scenario = r#"
machine = "xeon-8cpu-2013"
duration = "20ms"
seeds = 1
[[cgroup]]
path = "/rt"
[[task]]
name = "urgent"
count = 2
policy = "fifo"
priority = 50
cgroup = "/rt"
affinity = "0"
steps = ["hog"]
[[task]]
name = "fair"
affinity = "0"
steps = ["hog"]
"#;
    let path = common::file("real_time_debug", "s.toml", scenario);
    let written = place("real_time_debug_out").join("x.debug");
    let file = written.to_str().unwrap();
    succeeds(["run", &path, "-q", "--trace", file, "--at", "10ms"]);
    let text = std::fs::read_to_string(written).unwrap();
    let rows = text
        .lines()
        .filter(|l| l.starts_with(">R") || l.starts_with(" R"));
    let rows: Vec<Vec<&str>> = rows.map(|l| l.split_whitespace().collect()).collect();
    let of = |name: &str| -> Vec<&Vec<&str>> {
        let named = rows.iter().filter(|row| row[1].starts_with(name));
        named.collect()
    };
    let (urgent, fair) = (of("urgent"), of("fair"));
    assert_eq!((urgent.len(), fair.len()), (2, 1), "{text}");
    assert_eq!((urgent[0][0], urgent[1][0], fair[0][0]), (">R", "R", "R"));
    for (row, prio, group) in [(urgent[1], "49", "/rt"), (fair[0], "120", "/")] {
        assert_eq!((row[8], row[9]), (prio, group), "{text}");
    }
    let ran: f64 = urgent[0][7].parse().unwrap();
    assert!((9.0..=10.0).contains(&ran), "{ran} ms of 10");
}

#[test]
fn an_instant_of_what_has_none_is_refused() {
    let dir = place("no_instant");
    let file = dir.join("x.txt").to_str().unwrap().to_string();
    let ask = ["run", "--at", "1ms", "--trace", &file];
    fails(
        words(&[&ask, SMALL, SHORT]),
        &["--at goes with --trace FILE.schedstat"],
    );
}

#[test]
fn an_instant_after_the_end_is_refused() {
    for name in ["x.debug", "x.schedstat"] {
        let file = place(&format!("too_late_{name}")).join(name);
        let path = file.to_str().unwrap().to_string();
        let ask = ["run", "-q", "--trace", &path, "--at"];
        let hogs = ["--", "hogs", "-t", "2", "-d", "3ms", "--warmup", "2ms"];
        fails(
            words(&[&ask, &["50s"], SMALL, &hogs]),
            &["--at 50000.000 ms: the run ends after 5.000 ms"],
        );
        assert!(!file.exists(), "{path}");
        // Its last moment is one of it.
        succeeds(words(&[&ask, &["5ms"], SMALL, &hogs]));
        assert!(file.exists(), "{path}");
    }
}
