//! Explanations of a run: the choice made again is the choice that was made, and the parts of a
//! latency make the latency.

use fairground::event::Migration;
use fairground::policy::Features;
use fairground::value::TaskId;
use fairground_sim::exact::Exact;
use fairground_sim::explain::{Explained, Question, Route, Start, explain};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::spec::Scenario;
use fairground_sim::workload::program::Born;
use fairground_sim::workload::{Env, Workload};

fn ask(line: &str, task: u32, at_ns: u64) -> Option<Explained> {
    ask_on("xeon-8cpu-2013", line, task, at_ns)
}

fn ask_on(machine: &str, line: &str, task: u32, at_ns: u64) -> Option<Explained> {
    let machine = Machine::from_path_or_id(machine).unwrap();
    let cpus = machine.topology.nr_cpus() as u32;
    let argv: Vec<String> = line.split(' ').map(String::from).collect();
    let workload = Workload::from_argv(&argv, &Env { cpus }).unwrap();
    ask_of(&machine, &workload, task, at_ns)
}

fn ask_of(machine: &Machine, workload: &Workload, task: u32, at_ns: u64) -> Option<Explained> {
    let setup = Setup {
        machine,
        features: Features::default(),
        workload,
        seed: 1,
        trace: false,
    };
    let who = |_: &[Born]| vec![TaskId(task)];
    let question = Question { who: &who, at_ns };
    explain(&setup, &Exact::default(), &question).unwrap()
}

const HACKBENCH: &str = "hackbench --pipe -g 2 -f 4 -l 20";

#[test]
fn a_choice_that_is_made_again_is_the_same() {
    let (mut woken, mut new, mut fast, mut leaving) = (0, 0, 0, 0);
    for task in 1..17 {
        for at_us in [0, 1200, 1600, 2000] {
            let Some(found) = ask(HACKBENCH, task, at_us * 1000) else {
                continue;
            };
            let e = &found.episode;
            let Some(choice) = &found.choice else {
                if let (true, Start::Woken { prev, .. }) = (found.was_leaving, e.start) {
                    assert_eq!(e.enqueued.map(|(_, cpu)| cpu), Some(prev.0), "{e:?}");
                    leaving += 1;
                }
                continue;
            };
            let placed = e.moves.iter().find(|m| m.why == Migration::Placement);
            let on = e.enqueued.map(|(_, cpu)| cpu);
            let came = placed.map(|m| m.to.0).or(on).unwrap();
            assert_eq!(choice.chosen.cpu, came, "task {task} at {at_us} us: {e:?}");
            assert!(!choice.functions.is_empty());
            match e.start {
                Start::Woken { prev, cpu, .. } => {
                    assert_eq!((choice.prev, choice.this), (prev.0, cpu));
                    fast += u32::from(matches!(choice.route, Route::Fast(_)));
                    // Whichever CPU is taken near a target was tested for being idle, or is it.
                    assert!(!choice.examined.is_empty(), "task {task} at {at_us} us");
                    let tested = choice.examined.iter().any(|x| x.cpu == came && x.idle);
                    let stays = matches!(choice.route, Route::Fast(target) if target == came);
                    assert!(tested || stays, "task {task} at {at_us} us: {choice:?}");
                    woken += 1;
                }
                Start::New { .. } => {
                    assert_eq!(choice.route, Route::Slow);
                    new += 1;
                }
                Start::Preempted { .. } | Start::Pushed { .. } => {
                    panic!("neither a preemption nor a push chooses a CPU")
                }
            }
        }
    }
    assert!(woken >= 8 && new >= 8, "{woken} wake-ups, {new} new tasks");
    assert_eq!(fast, woken);
    assert!(leaving > 0, "nobody was still being switched out");
}

#[test]
fn the_parts_of_a_latency_make_the_latency() {
    let mut waited = 0;
    for task in 1..17 {
        for at_us in [1100, 1500] {
            let Some(found) = ask(HACKBENCH, task, at_us * 1000) else {
                continue;
            };
            let (e, p) = (&found.episode, &found.parts);
            let Some((_, at, _)) = e.switched_in else {
                continue;
            };
            let whole = p.choosing_ns + p.sending_ns + p.queued_ns;
            assert_eq!(whole, at - e.start_ns);
            let others: u64 = p.others.iter().map(|(_, ns)| ns).sum();
            assert_eq!(others, p.queued_ns, "{e:?}");
            waited += u32::from(p.queued_ns > 10_000);
        }
    }
    assert!(waited > 0, "nobody waited");
}

/// Workers of a server that is mostly idle: a CPU in a deep state is chosen at once, and its way
/// out of it comes before the queue.
#[test]
fn the_way_out_of_idle_is_no_choosing() {
    let machine = Machine::from_path_or_id("icx-8358-2s").unwrap();
    let text = include_str!("../../../scenarios/web-server-cpu-max.toml");
    let text = text
        .replace("\"10s\"", "\"50ms\"")
        .replace("\"200ms\"", "\"0\"");
    let cpus = machine.topology.nr_cpus() as u32;
    let scenario = Scenario::parse("web", &text).and_then(|s| s.workload(&Env { cpus }));
    let workload = scenario.unwrap_or_else(|e| panic!("{e:?}"));
    let mut sent = 0;
    for task in 0..6 {
        let Some(found) = ask_of(&machine, &workload, task, 45_000_000) else {
            continue;
        };
        let (e, p) = (&found.episode, &found.parts);
        if found.choice.is_none() || !matches!(e.start, Start::Woken { .. }) {
            continue;
        }
        // The tracepoint of a move is between the choice and the end of its step.
        if let Some(m) = e.moves.iter().find(|m| m.why == Migration::Placement) {
            let chosen = e.start_ns + p.choosing_ns;
            assert!((m.at_ns..m.at_ns + 2_000).contains(&chosen), "{e:?} {p:?}");
        }
        assert!((1..5_000).contains(&p.choosing_ns), "{e:?} {p:?}");
        sent += u32::from(p.sending_ns > 10 * p.choosing_ns);
    }
    assert!(sent > 0, "nobody came out of a deep state");
}

/// Counters begin anew at the end of the warm-up. A wait across it is what it is without one.
#[test]
fn what_was_waited_for_does_not_depend_on_the_warm_up() {
    let parts = |warmup: &str, duration: &str, task| {
        let line = format!("hogs --tasks 12 --duration {duration} --warmup {warmup}");
        let found = ask_on("spr-guest-2cpu", &line, task, 20_100_000).unwrap();
        let e = &found.episode;
        let ran = e.switched_in.map_or(0, |(_, at, _)| at);
        let across = e.start_ns < 20_000_000 && ran > 20_000_000;
        (across, found.parts.lock_ns, found.parts.line_ns)
    };
    let mut waited = 0;
    for task in 0..12 {
        let without = parts("0", "60ms", task);
        assert_eq!(parts("20ms", "40ms", task), without);
        waited += u64::from(without.0) * (without.1 + without.2);
    }
    assert!(waited > 0, "nobody waited for a line");
}

#[test]
fn whoever_runs_is_a_candidate() {
    for at_us in [1000, 1400, 1800] {
        let Some(found) = ask(HACKBENCH, 5, at_us * 1000) else {
            continue;
        };
        if found.episode.switched_in.is_none() || found.levels.is_empty() {
            continue;
        }
        // A newly idle CPU pulls a task and switches to it in one step.
        let on = found.episode.switched_in.map(|(_, _, cpu)| cpu);
        let last = found.episode.moves.last();
        let pulled = last.is_some_and(|m| Some(m.to.0) == on && m.why == Migration::Balance);
        let mut all = found.levels.iter().flat_map(|l| &l.entities);
        assert!(all.any(|x| x.task == Some(found.task)) || pulled);
        for level in &found.levels {
            assert!(level.entities.iter().any(|x| x.eligible), "{level:?}");
        }
    }
}

#[test]
fn a_throttled_group_is_named() {
    let hogs = "hogs -t 2 -d 60ms --cpu-max 2ms/20ms";
    let found = (0..4).find_map(|task| {
        let found = ask(hogs, task, 30_000_000)?;
        (!found.parts.throttled.is_empty()).then_some(found)
    });
    let found = found.expect("somebody waits for quota");
    assert!(found.parts.throttled.iter().all(|(_, ns)| *ns > 1_000_000));
}

fn ask_scenario(text: &str, task: u32, at_ns: u64) -> Explained {
    let machine = Machine::from_path_or_id("xeon-8cpu-2013").unwrap();
    let scenario = Scenario::parse("s", text).and_then(|s| s.workload(&Env { cpus: 8 }));
    let workload = scenario.unwrap_or_else(|e| panic!("{e:?}"));
    ask_of(&machine, &workload, task, at_ns).expect("it ran")
}

/// Beside a real-time hog a fair one has the last 50 ms of each second, and that is the reason.
#[test]
fn who_runs_by_the_real_time_limit_is_told_so() {
    let text = r#"
        duration = "1500ms"
        [[task]]
        name = "f"
        affinity = "0"
        policy = "fifo"
        priority = 5
        steps = ["hog"]
        [[task]]
        name = "n"
        affinity = "0"
        steps = ["hog"]
    "#;
    assert!(ask_scenario(text, 1, 1_000_000_000).real_time_over);
    let alone = text.replace(
        "affinity = \"0\"\n        policy",
        "affinity = \"1\"\n        policy",
    );
    assert!(!ask_scenario(&alone, 1, 1_000_000_000).real_time_over);
}

/// Two that compute on one core, one of which the stopper pushes to an idle core; one that leaves
/// its CPU by itself, and one that does by exec. Their time on the CPU before is no waiting.
#[test]
fn who_is_pushed_while_it_runs_waits_from_then_on() {
    let hogs = r#"
        duration = "60ms"
        [[task]]
        name = "a"
        affinity = "0"
        steps = [{ run = "1ms" }, { affinity = "0-7" }, "hog"]
        [[task]]
        name = "b"
        affinity = "4"
        steps = [{ run = "1ms" }, { affinity = "0-7" }, "hog"]
    "#;
    let moves = r#"
        duration = "60ms"
        [[task]]
        name = "mv"
        steps = [{ sleep = "5ms" }, { run = "1ms" }, { affinity = "3" }, "hog"]
        [[task]]
        name = "ex"
        affinity = "5"
        steps = [{ run = "2ms" }, { affinity = "0-7" }, { run = "1ms" }, "exec", "hog"]
        [[task]]
        name = "sibling"
        affinity = "1"
        steps = ["hog"]
    "#;
    for (scenario, task, ran_ns, at_ns, cause) in [
        (hogs, 0, 1_000_000, 55_000_000, Migration::Active),
        (moves, 0, 6_000_000, 7_000_000, Migration::Affinity),
        (moves, 1, 3_000_000, 8_000_000, Migration::Placement),
    ] {
        let found = ask_scenario(scenario, task, at_ns);
        let e = &found.episode;
        let Start::Pushed { to, why, .. } = e.start else {
            panic!("{cause:?}: {e:?}");
        };
        assert_eq!((why, e.enqueued.map(|q| q.1)), (cause, Some(to)), "{e:?}");
        assert!(e.start_ns > ran_ns, "{e:?}");
        assert!(
            found.choice.is_none() && found.parts.queued_ns < 1_000_000,
            "{e:?}"
        );
        let before = ask_scenario(scenario, task, e.start_ns - 10_000).episode;
        assert_eq!(before.out, Some((e.start_ns, true)), "{before:?}");
        let ran = before.switched_in.map(|(_, at, _)| e.start_ns - at);
        assert!(ran.is_some_and(|ns| ns > 50_000), "{before:?}");
    }
}

/// One that moves itself into a group without quota left waits for that, not for its first group.
#[test]
fn a_throttled_group_is_named_that_was_entered_later() {
    let text = r#"
        duration = "150ms"
        [[cgroup]]
        path = "/q"
        "cpu.max" = "5000 50000"
        [[task]]
        name = "mv"
        affinity = "2"
        steps = [{ cgroup = "/q" }, "hog"]
    "#;
    let found = ask_scenario(text, 0, 40_000_000);
    let [(group, ns)] = found.parts.throttled[..] else {
        panic!("{:?}", found.parts);
    };
    assert_eq!(group.idx(), 1);
    assert!(ns > 30_000_000 && ns <= found.parts.queued_ns, "{ns}");
}

/// Who has not run by the end waits until the end, not until the last event.
#[test]
fn who_never_ran_waits_until_the_run_is_over() {
    let text = r#"
        duration = "60ms"
        [[task]]
        name = "rt"
        policy = "fifo"
        priority = 10
        affinity = "2"
        steps = ["hog"]
        [[task]]
        name = "under"
        affinity = "2"
        steps = ["hog"]
    "#;
    let found = ask_scenario(text, 1, 50_000_000);
    assert_eq!(found.episode.switched_in, None);
    let parts = &found.parts;
    assert_eq!(
        found.episode.start_ns + parts.sending_ns + parts.queued_ns,
        60_000_000
    );
}
