//! Every word of `case.json` in odd combinations: each case comes to its end, and what it measures
//! adds up; what makes no sense is refused in a sentence.

use fairground_sim::machine_file::Machine;
use fairground_sim::truth::Others;
use fairground_sim::truth::into_workload::prepare;
use fairground_sim::truth::recorded::Run;
use fairground_sim::truth::simulate::{Bench, MACHINE};
use fairground_sim::truth::{Case, Truth, Verdict, check};

/// What is measured is all there.
const TOLD: &str = "measured";

/// A case of 400 ms on two CPUs; `more` are further keys.
fn text(tasks: &str, more: &str) -> String {
    let comma = if more.is_empty() { "" } else { "," };
    format!(
        r#"{{"format": "kernel-truth/1", "name": "n", "kind": "k", "what": "w",
        "machine": {{"cpus": 2, "hz": 250, "tick_ns": 4000000}}, "duration_us": 400000,
        "tasks": [{tasks}]{comma} {more}}}"#
    )
}

fn runs(tasks: &str, more: &str) -> Result<Vec<Run>, String> {
    let case = Case::parse(&text(tasks, more))?;
    let machine = Machine::from_path_or_id(MACHINE).expect("the recorded machine");
    let others = Others {
        share: [(0, 0.01), (1, 0.0001)].into(),
        stretch_us: None,
        blind: None,
    };
    let bench = Bench::new(&case, &others, machine, &[0.0, 10.0, 100.0, 1000.0])?;
    [1, 2].into_iter().map(|seed| bench.run(seed)).collect()
}

/// Runs a case; what is measured must add up.
fn check_sums(tasks: &str, more: &str) -> Vec<Run> {
    let runs = runs(tasks, more).unwrap_or_else(|e| panic!("{e}\n{tasks}\n{more}"));
    for run in &runs {
        for (number, cpu) in &run.cpus {
            let sum =
                cpu.idle_us.expect(TOLD) + cpu.workload_us.expect(TOLD) + cpu.other_us.expect(TOLD);
            assert!((sum - run.window_us).abs() < 1.0, "CPU {number}: {cpu:?}");
        }
        let of_cpus: f64 = run.cpus.values().map(|c| c.workload_us.expect(TOLD)).sum();
        let of_tasks: f64 = run.tasks.values().map(|t| t.cpu_us.expect(TOLD)).sum();
        assert!((of_cpus - of_tasks).abs() < 1.0, "{of_cpus} {of_tasks}");
        for (name, task) in &run.tasks {
            let by_cpu: f64 = task.cpu_us_by_cpu.as_ref().expect(TOLD).values().sum();
            assert!((by_cpu - task.cpu_us.expect(TOLD)).abs() < 1.0, "{name}");
            let d = task.wakeup_latency_us.expect(TOLD);
            assert!(
                d.mean.is_none_or(|m| m >= 0.0 && m <= run.window_us),
                "{name}: {d:?}"
            );
            assert!(d.n <= task.wakeups.expect(TOLD) + 1, "{name}: {d:?}");
        }
        for (path, group) in &run.groups {
            let stat = |key: &str| group.cpu_stat.get(key).copied().unwrap_or(0.0);
            assert!(
                stat("nr_throttled") <= stat("nr_periods"),
                "{path}: {:?}",
                group.cpu_stat
            );
            assert!(
                group.cpu_stat.values().all(|v| *v >= 0.0),
                "{path}: {:?}",
                group.cpu_stat
            );
        }
    }
    runs
}

fn task(name: &str, more: &str, steps: &str) -> String {
    format!(r#"{{"name": "{name}", {more} "program": [{steps}]}}"#)
}

#[test]
fn every_step_together() {
    let a = task(
        "a",
        r#""nice": -20, "start_us": -1000,"#,
        r#"{"run_us": 0.5}, {"barrier": 3}, {"loop": 5, "body": [{"loop": 2, "body":
        [{"run_us": 300}, {"write": 7}, {"post": 1}]}, {"set_nice": 19}, {"yield": true},
        {"set_affinity": [0]}, {"set_affinity": [0, 1]}, {"set_cgroup": "/g/q"},
        {"period_us": 9000}, {"set_cgroup": "/"}, {"set_nice": -5}]}, {"until_us": 120000},
        {"spawn": {"sleep_us": 100, "run_us": 50}}, {"exit": true}"#,
    );
    let b = task(
        "b",
        r#""cgroup": "/g", "policy": "batch", "slice_us": 100, "affinity": [1],"#,
        r#"{"barrier": 3}, {"loop": 10, "body": [{"read": 7}, {"run_us": 100}]},
        {"set_affinity": [0]}, {"spawn": {"sleep_us": 0, "run_us": 2000}}, {"hog": true}"#,
    );
    let c = task(
        "c",
        r#""cgroup": "/g/q", "policy": "idle", "slice_us": 100000, "nice": 3,"#,
        r#"{"barrier": 3}, {"loop": -1, "body": [{"wait": 1}, {"sleep_us": 0}, {"run_us": 0}]}"#,
    );
    let more = r#""barriers": {"3": 3}, "settle_ms": 120, "phase_starts_us": [0, 1, 399999],
        "cgroups": [{"path": "/g", "shares": 2}, {"path": "/g/q", "shares": 262144,
        "quota_us": 1000, "period_us": 20000, "burst_us": 500}],
        "sampler": {"cpu": 0, "every_us": 1000, "what": "task"},
        "events": [{"at_us": 0, "cgroup": "/g", "file": "cpu.shares", "value": 1024},
        {"at_us": 50000, "cgroup": "/g/q", "file": "cpu.cfs_quota_us", "value": -1},
        {"at_us": 50000, "cgroup": "/g/q", "file": "cpu.max", "value": "3000 10000"},
        {"at_us": 60000, "cgroup": "/g/q", "file": "cpu.cfs_burst_us", "value": 3000},
        {"at_us": 70000, "cgroup": "/g/q", "file": "cpu.max.burst", "value": "0"},
        {"at_us": 80000, "cgroup": "/g", "file": "cpu.weight", "value": "10000"},
        {"at_us": 90000, "cgroup": "/g", "file": "cpu.idle", "value": 1},
        {"at_us": 100000, "cgroup": "/g", "file": "cpu.idle", "value": 0},
        {"at_us": 399999, "cgroup": "/g/q", "file": "cpu.max", "value": "max"}]"#;
    for run in check_sums(&format!("{a}, {b}, {c}"), more) {
        assert_eq!(run.tasks["a"].iterations, Some(15));
        assert_eq!(run.tasks["b"].iterations, Some(10));
        assert_eq!(run.tasks["c"].iterations, Some(10));
        assert!(run.tasks["b"].cpu_us.expect(TOLD) > 100_000.0);
        assert!(
            run.tasks["kids"].cpu_us.expect(TOLD) > 2000.0,
            "{:?}",
            run.tasks["kids"]
        );
    }
}

#[test]
fn sleeping_for_no_time_takes_some() {
    let naps = r#""affinity": [1],"#;
    let turns = r#"{"loop": -1, "body": [{"sleep_us": 0}]}"#;
    for run in check_sums(&task("n", naps, turns), "") {
        let n = run.tasks["n"].iterations.unwrap_or(0);
        assert!((50_000..1_000_000).contains(&n), "{n} turns in 400 ms");
    }
}

#[test]
fn many_tasks_of_all_priorities_in_deep_groups() {
    let deep = "/a/b/c/d/e/f/g/h";
    let ends: Vec<usize> = (0..deep.len()).step_by(2).collect();
    let groups: Vec<String> = ends
        .iter()
        .map(|end| {
            format!(
                r#"{{"path": "{}", "shares": {}}}"#,
                &deep[..end + 2],
                2 + end * 99
            )
        })
        .collect();
    let tasks: Vec<String> = (0..40)
        .map(|i| {
            let group = &deep[..ends[i % ends.len()] + 2];
            let policy = ["other", "batch", "idle"][i % 3];
            let more = format!(
                r#""cgroup": "{group}", "nice": {}, "policy": "{policy}", "slice_us": {},"#,
                i as i32 - 20,
                100 + i * 2000
            );
            task(&format!("t{i}x"), &more, r#"{"hog": true}"#)
        })
        .collect();
    let more = format!(r#""cgroups": [{}]"#, groups.join(", "));
    for run in check_sums(&tasks.join(", "), &more) {
        for cpu in run.cpus.values() {
            assert!(cpu.idle_us.expect(TOLD) < 1000.0, "hogs wait: {cpu:?}");
        }
    }
}

#[test]
fn what_waits_for_ever_ends_with_the_window() {
    let reader = task("r", "", r#"{"run_us": 5}, {"read": 0}, {"hog": true}"#);
    let waiter = task(
        "w",
        r#""affinity": [1],"#,
        r#"{"run_us": 5}, {"wait": 0}, {"hog": true}"#,
    );
    let alone = task("s", "", r#"{"run_us": 5}, {"barrier": 0}, {"hog": true}"#);
    let nothing = task("n", r#""start_us": 900000,"#, r#"{"hog": true}"#);
    let empty = task("e", "", "");
    for one in [&reader, &waiter, &alone, &nothing, &empty] {
        for run in check_sums(one, r#""barriers": {"0": 2}"#) {
            let ran: f64 = run.tasks.values().map(|t| t.cpu_us.expect(TOLD)).sum();
            assert!(ran < 100.0, "{one}: {ran}");
        }
    }
}

#[test]
fn quotas_that_hardly_let_anything_run() {
    let hog = |name: &str, group: &str| {
        task(
            name,
            &format!(r#""cgroup": "{group}","#),
            r#"{"hog": true}"#,
        )
    };
    let tasks = [
        hog("a", "/p/a"),
        hog("b", "/p/a"),
        hog("c", "/p/b"),
        hog("d", "/i"),
    ];
    let groups = r#""cgroups": [{"path": "/p", "quota_us": 1000, "period_us": 100000},
        {"path": "/p/a", "quota_us": 1000, "period_us": 1000000, "burst_us": 1000},
        {"path": "/p/b", "quota_us": 1000, "period_us": 100000, "shares": 2},
        {"path": "/i", "shares": "idle (weight 3)"}],
        "sampler": {"cpu": 1, "every_us": 20000, "what": "debug"}"#;
    for run in check_sums(&tasks.join(", "), groups) {
        let limited: f64 = ["a", "b", "c"]
            .iter()
            .map(|t| run.tasks[*t].cpu_us.expect(TOLD))
            .sum();
        // Four periods and the overrun of each, up to a tick on each CPU.
        assert!(limited < 5.0 * 1000.0 + 5.0 * 8000.0, "{limited}");
        assert!(
            run.tasks["d"].cpu_us.expect(TOLD) > 300_000.0,
            "{}",
            run.tasks["d"].cpu_us.expect(TOLD)
        );
        assert!(run.groups["/p"].cpu_stat["nr_throttled"] >= 2.0);
    }
}

#[test]
fn threads_that_make_threads() {
    let maker = task(
        "m",
        r#""nice": 5, "affinity": [0, 1],"#,
        r#"{"loop": 300, "body": [{"spawn": {"sleep_us": 1, "run_us": 0.5}},
        {"spawn": {"sleep_us": 0, "run_us": 0}}, {"set_nice": 6}, {"yield": true}]},
        {"set_affinity": [1]}, {"spawn": {"sleep_us": 1000, "run_us": 3000}}"#,
    );
    for run in check_sums(&maker, "") {
        assert_eq!(run.tasks["m"].iterations, Some(300));
        let made: u64 = run.tasks["kids"]
            .wakeup_new_target_cpu
            .as_ref()
            .expect(TOLD)
            .values()
            .sum();
        assert_eq!(made, 601);
    }
}

#[test]
fn a_new_thread_has_what_its_creator_has_then() {
    let maker = task(
        "m",
        r#""affinity": [1],"#,
        r#"{"loop": 2, "body": [{"spawn": {"sleep_us": 0, "run_us": 3000}}, {"sleep_us": 9000},
        {"set_affinity": [0]}]}"#,
    );
    for run in check_sums(&maker, "") {
        let by_cpu = run.tasks["kids"].cpu_us_by_cpu.as_ref().expect(TOLD);
        assert_eq!(by_cpu.len(), 2, "{by_cpu:?}");
        assert!(by_cpu.values().all(|us| *us > 3000.0), "{by_cpu:?}");
    }
}

#[test]
fn a_task_that_sends_itself_away_sleeps_until_the_stopper_has_moved_it() {
    let body =
        r#"{"set_affinity": [0]}, {"run_us": 10000}, {"set_affinity": [1]}, {"run_us": 10000}"#;
    let flips = task("a", "", &format!(r#"{{"loop": -1, "body": [{body}]}}"#));
    for run in check_sums(&flips, "") {
        let a = &run.tasks["a"];
        assert!((35..=40).contains(&a.migrations.expect(TOLD)), "{a:?}");
        assert!(
            a.switches_voluntary
                .expect(TOLD)
                .abs_diff(a.migrations.expect(TOLD))
                <= 1,
            "{a:?}"
        );
        assert!(
            a.wakeups.expect(TOLD).abs_diff(a.migrations.expect(TOLD)) <= 1,
            "{a:?}"
        );
    }
    let text = text(&flips, "").replace(r#""hz": 250"#, r#""hz": 250, "preemption": "voluntary""#);
    let case = Case::parse(&text).expect("a case");
    let machine = Machine::from_path_or_id(MACHINE).expect("the recorded machine");
    let bench = Bench::new(&case, &Others::default(), machine, &[0.0]).expect("a bench");
    let run = bench.run(1).expect("a run");
    let a = &run.tasks["a"];
    assert!(
        a.switches_voluntary.expect(TOLD) == 0
            && a.wakeups.expect(TOLD) <= 1
            && a.migrations.expect(TOLD) >= 35,
        "{a:?}"
    );
}

#[test]
fn a_sampler_writes_events_when_it_has_woken() {
    let hog = task("a", "", r#"{"hog": true}"#);
    let at = |more: &str| -> Vec<u64> {
        let groups = r#""cgroups": [{"path": "/g", "shares": 1000000}], "events": [
            {"at_us": 100, "cgroup": "/g", "file": "cpu.shares", "value": 0},
            {"at_us": 20500, "cgroup": "/g", "file": "cpu.shares", "value": 7},
            {"at_us": 20501, "cgroup": "/g", "file": "cpu.weight", "value": 7}]"#;
        let case = Case::parse(&text(&hog, &format!("{groups}{more}"))).expect("a case");
        let prepared = prepare(&case, &Others::default(), &guest()).expect("a workload");
        let events = prepared.workload.events.iter();
        events.map(|e| (e.at_ns - prepared.t0_ns) / 1000).collect()
    };
    assert_eq!(at(""), [100, 20_500, 20_501]);
    let sampler = r#", "sampler": {"cpu": 0, "every_us": 20000, "what": "debug"}"#;
    assert_eq!(at(sampler), [500, 20_500, 40_500]);
}

#[test]
fn a_result_of_another_case_is_refused() {
    let case = text(&task("a", "", r#"{"hog": true}"#), "");
    let with = |name: &str, tasks: &str| {
        let run = format!(r#"{{"window_us": 400000.0, "tasks": {{{tasks}}}}}"#);
        let text = format!(r#"{{"format": "kernel-truth/1", "case": "{name}", "runs": [{run}]}}"#);
        Truth::parse(&case, &text).map_err(|(of_case, what)| {
            assert!(!of_case);
            what
        })
    };
    let (a, b) = (r#""a": {"cpu_us": 1.0}"#, r#""b": {"cpu_us": 1.0}"#);
    with("n", a).expect("its own");
    for (name, tasks, says) in [
        ("m", a.to_string(), "case: 'm'"),
        ("n", b.to_string(), "no 'a'"),
        ("n", format!("{a}, {b}"), "runs[0].tasks.b"),
    ] {
        let error = with(name, &tasks).expect_err(says);
        assert!(error.contains(says), "{error}");
    }
}

fn guest() -> Machine {
    Machine::builtin(MACHINE).expect("a machine")
}

/// Numbers and reasons of the writes that the kernel refuses, and those it takes, us after T0.
fn writes(groups: &str, events: &str) -> (Vec<(usize, String)>, Vec<u64>) {
    let hog = task("a", "", r#"{"hog": true}"#);
    let more = format!(r#""cgroups": [{groups}], "events": [{events}]"#);
    let case = Case::parse(&text(&hog, &more)).expect("a case");
    let prepared = prepare(&case, &Others::default(), &guest()).expect("a workload");
    let taken = prepared.workload.events.iter();
    let taken = taken.filter(|e| e.at_ns >= prepared.t0_ns);
    let taken = taken.map(|e| (e.at_ns - prepared.t0_ns) / 1000).collect();
    (prepared.refused, taken)
}

#[test]
fn a_write_that_the_kernel_refuses_changes_nothing() {
    let groups = r#"{"path": "/g", "quota_us": 5000, "period_us": 10000},
        {"path": "/g/h", "quota_us": 5000, "period_us": 10000}"#;
    for (file, value, why) in [
        ("cpu.shares", "-2", "-2 is negative"),
        ("cpu.weight", "0", "expected 1 to 10000"),
        ("cpu.idle", "7", "expected 0 or 1"),
        ("cpu.max", r#""5000 10000 1""#, "'1' after quota and period"),
        ("cpu.max", r#""""#, "nothing is written"),
        ("cpu.max.burst", "5001", "a burst above the quota"),
        ("cpu.cfs_quota_us", "999", "a quota of 999 us"),
        ("cpu.cfs_period_us", "2000000", "a period of 2000000 us"),
        ("cpu.cfs_quota_us", r#""5000x""#, "'5000x' is no number"),
    ] {
        // The value that the file held is what later writes meet: 5000 of 10000 us.
        let events = format!(
            r#"{{"at_us": 1, "cgroup": "/g", "file": "{file}", "value": {value}}},
            {{"at_us": 2, "cgroup": "/g", "file": "cpu.cfs_burst_us", "value": 5000}}"#
        );
        let (refused, taken) = writes(groups, &events);
        assert_eq!((refused.len(), refused[0].0), (1, 0), "{file}: {refused:?}");
        assert!(refused[0].1.contains(why), "{file}: {refused:?}");
        assert_eq!(taken, [2], "{file}");
    }
    let events = r#"{"at_us": 3, "cgroup": "/g", "file": "cpu.shares", "value": 9},
        {"at_us": 1, "cgroup": "/g", "file": "cpu.idle", "value": 1},
        {"at_us": 4, "cgroup": "/g/h", "file": "cpu.cfs_quota_us", "value": 5001},
        {"at_us": 5, "cgroup": "/g", "file": "cpu.cfs_quota_us", "value": -1}"#;
    let (refused, taken) = writes(groups, events);
    let numbers: Vec<usize> = refused.iter().map(|r| r.0).collect();
    assert_eq!((numbers, taken), (vec![0, 2], vec![1, 5]), "{refused:?}");
}

#[test]
fn a_refused_write_is_a_row_of_its_own() {
    let hog = task("a", "", r#"{"hog": true}"#);
    let more = r#""cgroups": [{"path": "/g"}], "events": [{"at_us": 9, "cgroup": "/g",
        "file": "cpu.weight", "value": 0}]"#;
    let run = r#"{"window_us": 400000.0, "tasks": {"a": {"cpu_us": 1.0}}}"#;
    let result = format!(r#"{{"format": "kernel-truth/1", "case": "n", "runs": [{run}]}}"#);
    let truth = Truth::parse(&text(&hog, more), &result).expect("a case");
    let machine = Machine::from_path_or_id(MACHINE).expect("the recorded machine");
    let rows = check(&truth, &machine, &[1]).expect("it runs");
    let row = rows.iter().find(|row| row.metric == "events[0]");
    let row = row.expect("a row");
    assert_eq!(row.verdict, Verdict::Skipped);
    let why = row.reason.as_deref().unwrap_or_default();
    let says = "event at 9 us, /g/cpu.weight: 0, expected 1 to 10000";
    assert!(why.starts_with(says), "{why}");
}

#[test]
fn loops_that_take_no_time_spin() {
    let on_one = r#""affinity": [1],"#;
    for (body, turns) in [
        ("", -1),
        (r#"{"run_us": 0}"#, -1),
        (r#"{"until_us": 0}"#, -1),
        (r#"{"period_us": 0}"#, -1),
        (r#"{"loop": -1, "body": [{"until_us": 0}]}"#, 3),
        (r#"{"loop": 100, "body": []}"#, -1),
    ] {
        let spins = format!(r#"{{"loop": {turns}, "body": [{body}]}}"#);
        for run in check_sums(&task("s", on_one, &spins), "") {
            let s = &run.tasks["s"];
            assert!(
                s.cpu_us.expect(TOLD) > 390_000.0,
                "{body}: {}",
                s.cpu_us.expect(TOLD)
            );
            let n = s.iterations.unwrap_or(0) as f64;
            let turn_ns = guest().kernel_op_ns("sched_clock").expect("a figure");
            let turns = 400e6 / turn_ns;
            assert!((n - turns).abs() < turns * 0.04, "{body}: {n} turns");
        }
    }
    let later = r#"{"loop": -1, "body": [{"until_us": 300000}]}"#;
    for run in check_sums(&task("s", on_one, later), "") {
        let us = run.tasks["s"].cpu_us.expect(TOLD);
        assert!((90_000.0..101_000.0).contains(&us), "{us}");
    }
    let ends = r#"{"loop": 5, "body": [{"loop": 2000000, "body": [{"run_us": 0}]},
        {"sleep_us": 1000}]}"#;
    for run in check_sums(&task("s", on_one, ends), "") {
        let s = &run.tasks["s"];
        assert_eq!(s.iterations, Some(10_000_005));
        assert!(
            (155_000.0..160_000.0).contains(&s.cpu_us.expect(TOLD)),
            "{}",
            s.cpu_us.expect(TOLD)
        );
    }
}

#[test]
fn loops_nest_as_deep_as_a_program_holds() {
    let deep = (0..31).fold(r#"{"run_us": 1}"#.to_string(), |body, _| {
        format!(r#"{{"loop": 1, "body": [{body}]}}"#)
    });
    for run in check_sums(&task("s", "", &deep), "") {
        assert_eq!(run.tasks["s"].iterations, Some(31));
    }
}

#[test]
fn a_window_may_be_shorter_than_a_tick() {
    let hog = task(
        "a",
        r#""affinity": [1], "start_us": -9000,"#,
        r#"{"hog": true}"#,
    );
    let text = text(&hog, "").replace(r#"_us": 400000"#, r#"_us": 700"#);
    let case = Case::parse(&text).expect("a case");
    let machine = Machine::from_path_or_id(MACHINE).expect("the recorded machine");
    let bench = Bench::new(&case, &Others::default(), machine, &[0.0]).expect("a bench");
    let run = bench.run(1).expect("a run");
    assert_eq!(run.window_us, 700.0);
    let us = run.tasks["a"].cpu_us.expect(TOLD);
    assert!((500.0..=700.0).contains(&us), "{us}");
}

#[test]
fn created_threads_count_in_the_group_of_their_creator() {
    let maker = |name: &str, group: &str, first: &str| {
        let steps = format!(r#"{first} {{"spawn": {{"sleep_us": 0, "run_us": 20000}}}}"#);
        let more = format!(r#""cgroup": "{group}", "affinity": [1],"#);
        task(name, &more, &steps)
    };
    let tasks = [
        maker("a", "/a", ""),
        maker("b", "/b/c", ""),
        maker("m", "/a", r#"{"set_cgroup": "/b"},"#),
    ];
    let groups = r#""cgroups": [{"path": "/a"}, {"path": "/b"}, {"path": "/b/c"}]"#;
    for run in check_sums(&tasks.join(", "), groups) {
        let us = |path: &str| run.groups[path].cpu_us.expect(TOLD);
        // One of a; one of b below, and one of m, which was in /b when it made it.
        assert!((20_000.0..21_500.0).contains(&us("/a")), "{}", us("/a"));
        assert!((20_000.0..21_500.0).contains(&us("/b/c")), "{}", us("/b/c"));
        assert!((40_000.0..43_000.0).contains(&us("/b")), "{}", us("/b"));
        let sum: f64 = run.tasks.values().map(|t| t.cpu_us.expect(TOLD)).sum();
        assert!((us("(all)") - sum).abs() < 1.0, "{} {sum}", us("(all)"));
    }
}

#[test]
fn nonsense_is_refused_in_a_sentence() {
    let good = task("a", "", r#"{"hog": true}"#);
    let with = |steps: &str| task("a", "", steps);
    let deep = (0..80).fold(r#"{"run_us": 1}"#.to_string(), |body, _| {
        format!(r#"{{"loop": 2, "body": [{body}]}}"#)
    });
    let group = |keys: &str| format!(r#""cgroups": [{{"path": "/g", {keys}}}]"#);
    let event = |keys: &str| {
        format!(
            r#"{}, "events": [{{"at_us": 1, "cgroup": "/g", {keys}}}]"#,
            group(r#""shares": 9"#)
        )
    };
    let mut accepted = Vec::new();
    for (tasks, more) in [
        (with(r#"{"barrier": 0}"#), String::new()),
        (with(r#"{"set_affinity": []}"#), String::new()),
        (with(r#"{"set_affinity": [2]}"#), String::new()),
        (with(r#"{"set_cgroup": "/x"}"#), String::new()),
        (with(r#"{"set_nice": 20}"#), String::new()),
        (with(r#"{"run_us": -1}"#), String::new()),
        (with(&deep), String::new()),
        (task("a", r#""cgroup": "/x","#, ""), String::new()),
        (task("a", r#""affinity": [0, 7],"#, ""), String::new()),
        (task("a", r#""nice": -21,"#, ""), String::new()),
        (format!("{good}, {good}"), String::new()),
        (String::new(), String::new()),
        (good.clone(), r#""cgroups": [{"path": "/a/b"}]"#.to_string()),
        (good.clone(), r#""cgroups": [{"path": "a"}]"#.to_string()),
        (
            good.clone(),
            r#""cgroups": [{"path": "/a"}, {"path": "/a"}]"#.to_string(),
        ),
        (good.clone(), group(r#""shares": "heavy""#)),
        (good.clone(), group(r#""quota_us": 0"#)),
        (good.clone(), group(r#""quota_us": 5000, "period_us": 0"#)),
        (good.clone(), event(r#""file": "cpu.share", "value": 2"#)),
        (
            good.clone(),
            r#""events": [{"at_us": 1, "cgroup": "/x", "file": "cpu.idle", "value": 1}]"#.into(),
        ),
        (good.clone(), r#""phase_starts_us": [5, 4]"#.to_string()),
        (good.clone(), r#""phase_starts_us": [400000]"#.to_string()),
        (
            good.clone(),
            r#""sampler": {"cpu": 9, "every_us": 100, "what": "task"}"#.to_string(),
        ),
        (good.clone(), r#""barriers": {"0": 0}"#.to_string()),
    ] {
        match runs(&tasks, &more) {
            Err(error) => assert!(error.contains(' '), "{error}"),
            Ok(_) => accepted.push(format!("{tasks} {more}")),
        }
    }
    assert!(accepted.is_empty(), "{accepted:#?}");
}

#[test]
fn a_result_without_numbers_is_refused() {
    let hog = r#"{"name": "a", "program": [{"hog": true}]}"#;
    let case = text(hog, "");
    let bench = text("", r#""command": "hackbench -g 1 -f 4 -l 100""#);
    let result = |rest: &str| {
        format!(r#"{{"format": "kernel-truth/1", "case": "n", "hist_edges_us": []{rest}}}"#)
    };
    let task = r#""tasks": {"a": {"cpu_us": 1.0}}"#;
    for (case, rest, says) in [
        (&case, "", "runs: none"),
        (&case, r#", "runs": []"#, "runs: none"),
        (
            &case,
            r#", "runs": [{"window_us": 5.0}]"#,
            "runs[0].tasks: none",
        ),
        (
            &case,
            &format!(r#", "runs": [{{{task}}}]"#),
            "runs[0].window_us: 0",
        ),
        (&bench, "", "own_untraced_runs: no number"),
        (
            &bench,
            r#", "own_untraced_runs": []"#,
            "own_untraced_runs: no number",
        ),
    ] {
        let error = Truth::parse(case, &result(rest)).expect_err(says);
        assert!(!error.0 && error.1.contains(says), "{error:?}");
    }
    let one = format!(r#", "runs": [{{"window_us": 400000.0, {task}}}]"#);
    Truth::parse(&case, &result(&one)).expect("a run");
    let printed = r#", "own_untraced_runs": [{"time_s": 0.1}]"#;
    Truth::parse(&bench, &result(printed)).expect("what it printed");
}
