//! Explanations of a run: the choice made again is the choice that was made, and the parts of a
//! latency make the latency.

use fairground::event::Migration;
use fairground::policy::Features;
use fairground::value::TaskId;
use fairground_sim::exact::Exact;
use fairground_sim::explain::{Explained, Question, Route, Start, explain};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::workload::program::Born;
use fairground_sim::workload::{Env, Workload};

fn ask(line: &str, task: u32, at_ns: u64) -> Option<Explained> {
    let machine = Machine::from_path_or_id("xeon-8cpu-2013").unwrap();
    let argv: Vec<String> = line.split(' ').map(String::from).collect();
    let workload = Workload::from_argv(&argv, &Env { cpus: 8 }).unwrap();
    let setup = Setup {
        machine: &machine,
        features: Features::default(),
        workload: &workload,
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
    let (mut woken, mut new, mut fast) = (0, 0, 0);
    for task in 1..17 {
        for at_us in [0, 1200, 1600, 2000] {
            let Some(found) = ask(HACKBENCH, task, at_us * 1000) else {
                continue;
            };
            let e = &found.episode;
            let Some(choice) = &found.choice else {
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
                    woken += 1;
                }
                Start::New { .. } => {
                    assert_eq!(choice.route, Route::Slow);
                    new += 1;
                }
                Start::Preempted { .. } => panic!("a preemption chooses no CPU"),
            }
        }
    }
    assert!(woken >= 8 && new >= 8, "{woken} wake-ups, {new} new tasks");
    assert_eq!(fast, woken);
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
            assert_eq!(p.placing_ns + p.queued_ns, at - e.start_ns);
            let others: u64 = p.others.iter().map(|(_, ns)| ns).sum();
            assert_eq!(others, p.queued_ns, "{e:?}");
            waited += u32::from(p.queued_ns > 10_000);
        }
    }
    assert!(waited > 0, "nobody waited");
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
