//! What wakes a sleeper, guessed without the flags that tell an interrupt from the thread that it
//! met, as in the text of `perf script`, against what a simulated run says of itself.

mod common;

use common::{machine, traced_with};
use fairground_sim::exact::Exact;
use fairground_trace::derive::cause::{causes, guessed};
use fairground_trace::derive::{Logs, tick};
use fairground_trace::walk::Waker;
use fairground_trace::{Context, Kind, told};

/// Of wake-ups while a thread ran: those by that thread and those by an interrupt, each with how
/// many are taken for that.
fn found(words: &str, seed: u64) -> [(usize, usize); 2] {
    let exact = Exact {
        thread_events: true,
        ..Exact::default()
    };
    let (mut recording, ..) = traced_with(&machine(), words, &exact, seed);
    told::contexts(&mut recording.events);
    recording
        .events
        .retain(|e| !matches!(e.kind, Kind::Told(_)));
    let truth = Logs::of(&recording.events, recording.cpus);
    for event in &mut recording.events {
        event.context = Context::Unknown;
    }
    let logs = Logs::of(&recording.events, recording.cpus);
    let every_ns = 4_000_000;
    let phase = tick::phase(&logs.preempted_at, every_ns);
    let tick = phase.map(|phase_ns| tick::Tick { every_ns, phase_ns });
    let causes = causes(&logs, &recording.names, tick);
    let [mut by_thread, mut by_interrupt] = [(0, 0); 2];
    for ((causes, real), log) in causes.iter().zip(&truth.logs).zip(&logs.logs) {
        for (real, open) in real.blocks().zip(log.blocks()) {
            let (Some((_, by)), Some((at, Waker::Perhaps(waker)))) = (real.woken, open.woken)
            else {
                continue;
            };
            let interrupt = causes.is_timer(at, waker);
            let (all, right) = match by {
                Waker::Interrupt => (&mut by_interrupt, interrupt),
                _ => (&mut by_thread, !interrupt),
            };
            all.0 += 1;
            all.1 += usize::from(right);
        }
    }
    let (met, interrupts) = guessed(&logs, &causes);
    assert_eq!(met, by_thread.0 + by_interrupt.0);
    assert_eq!(interrupts, by_thread.0 - by_thread.1 + by_interrupt.1);
    [by_thread, by_interrupt]
}

fn is_share((all, right): (usize, usize), least: f64) -> bool {
    right as f64 >= least * all as f64
}

/// 40 threads on 8 CPUs, whose timers fire while others run: nobody wakes anybody.
#[test]
fn who_is_met_by_timers_of_others_does_not_wake_them() {
    let [by_thread, by_interrupt] = found("sleepers --tasks 40 -d 300ms -p 5ms -r exp_1ms", 1);
    assert_eq!(by_thread.0, 0);
    assert!(
        by_interrupt.0 > 500 && is_share(by_interrupt, 0.8),
        "{by_interrupt:?}"
    );
}

#[test]
fn who_wakes_is_known_by_how_often_it_is_current() {
    // Of eight seeds, each of the first two is above 0.96; of schbench, whose sleeps by the clock
    // make its threads wake each other and be woken by timers, they go from 0.81 to 0.99.
    for (words, least) in [
        ("hackbench --pipe -g 2 -f 10 -l 100", 0.95),
        ("perf bench sched pipe -l 500", 0.95),
        ("schbench -m 2 -t 8 -r 1", 0.85),
    ] {
        let of_seeds = (1..=8).map(|seed| found(words, seed)[0]);
        let by_thread = of_seeds.fold((0, 0), |(all, right), s| (all + s.0, right + s.1));
        assert!(
            by_thread.0 > 800 && is_share(by_thread, least),
            "{words}: {by_thread:?}"
        );
    }
}

/// Clients sleep by timers, and are woken by the threads that serve them.
///
/// The guess about one client is right or wrong for all its wake-ups, so what one seed has says
/// little: of interrupts' wake-ups 19 to 29 % are known, 23.3 % of four seeds together. That is no
/// aim but what it is, so that it does not fall further: it was 28 % before `cfs_tasks` was a line,
/// and 23.7 while the way out of an idle state was a part of the next step.
#[test]
fn a_thread_may_be_woken_by_both() {
    let words = "duration = \"400ms\"\nservices = [\"web\"]\n\
         [[task]]\nname = \"hog\"\ncount = 4\nsteps = [\"hog\"]\n\
         [[task]]\nname = \"worker\"\ncount = 4\nsteps = [{ loop = \"forever\", steps = [\
         { serve = \"web\" }, { run = \"exp 100us\" }, { reply = \"web\" }] }]\n\
         [[task]]\nname = \"client\"\ncount = 30\nsteps = [{ loop = \"forever\", steps = [\
         { sleep = \"exp 5ms\" }, { run = \"exp 100us\" }, { request = \"web\" }] }]\n";
    let [mut by_thread, mut by_interrupt] = [(0, 0); 2];
    for seed in 1..=4 {
        let found = found(words, seed);
        for (sum, (all, right)) in [&mut by_thread, &mut by_interrupt].into_iter().zip(found) {
            *sum = (sum.0 + all, sum.1 + right);
        }
    }
    assert!(
        by_thread.0 > 4000 && is_share(by_thread, 0.95),
        "{by_thread:?}"
    );
    assert!(
        by_interrupt.0 > 1200 && is_share(by_interrupt, 0.233),
        "{by_interrupt:?}"
    );
}
