//! Rules of placement that the recorded choices do not reach, each on a small machine.

mod recorded;

use std::sync::atomic::Ordering::Relaxed;

use fairground::cx::Cx;
use fairground::place::Kind;
use fairground::policy::Features;
use fairground::select::{affine_target, select_task_rq, update_idle_core};
use fairground::system::System;
use fairground::task::{Task, WakeKind};
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, CpuMask, LlcId, TaskId, TgId};
use recorded::CountingHost;

struct World {
    sys: System,
    host: CountingHost,
    task: Task,
    waker: TaskId,
}

/// 8 CPUs, one cache; `place` changes where CPUs are.
fn world(place: impl Fn(u32, &mut CpuPlace)) -> World {
    let cpus = (0..8).map(|cpu| {
        let mut p = CpuPlace {
            core: cpu,
            cluster: cpu,
            capacity: 1024,
            ..CpuPlace::default()
        };
        place(cpu, &mut p);
        p
    });
    let topology = Topology::build(&Machine {
        cpus: cpus.collect(),
        ..Machine::default()
    })
    .expect("a machine");
    let mut sys = System::new(Features::default(), topology);
    let waker = sys.add_task(TgId::ROOT);
    let id = sys.add_task(TgId::ROOT);
    let mut task = Task::new(id, TgId::ROOT, 2_800_000);
    task.body.cpus_allowed = sys.cpus();
    for (words, place) in sys.cpu.iter().zip(&sys.topology.places) {
        words.curr_is_idle.store(true, Relaxed);
        words.capacity.store(u64::from(place.capacity), Relaxed);
    }
    let host = CountingHost {
        now: 10_000_000_000,
        ..CountingHost::default()
    };
    World {
        sys,
        host,
        task,
        waker,
    }
}

impl World {
    fn busy(self, cpus: impl IntoIterator<Item = u32>) -> Self {
        for cpu in cpus {
            let words = &self.sys.cpu[cpu as usize];
            words.curr_is_idle.store(false, Relaxed);
            words.nr_running.store(1, Relaxed);
            words.h_nr_queued.store(1, Relaxed);
            words.h_nr_runnable.store(1, Relaxed);
            words.load_avg.store(1024, Relaxed);
            words.util_avg.store(1024, Relaxed);
            words.runnable_avg.store(1024, Relaxed);
        }
        self
    }

    fn cx(&mut self, cpu: u32, f: impl FnOnce(&mut Cx<CountingHost>, &mut Task)) {
        let mut moving = Vec::new();
        let mut cx = Cx::new(&self.sys, &mut self.host, Cpu(cpu), &mut moving);
        f(&mut cx, &mut self.task);
    }

    /// The CPU chosen when the waker on `this` wakes the task that was on `prev`.
    fn choose(&mut self, kind: WakeKind, this: u32, prev: u32) -> u32 {
        let id = self.task.body.id;
        self.sys.task[id.idx()].cpu.store(prev, Relaxed);
        let (mut out, waker) = (Cpu(0), self.waker);
        self.cx(this, |cx, task| {
            out = select_task_rq(cx, task, Cpu(prev), Some(waker), kind);
        });
        out.0
    }

    /// The run queues looked at, in order, without repetition.
    fn queues_read(&self) -> Vec<u32> {
        let queues = self.host.touches.iter().filter(|t| t.0.kind == Kind::Rq);
        let mut seen = Vec::new();
        for (object, ..) in queues {
            if !seen.contains(&object.a) {
                seen.push(object.a);
            }
        }
        seen
    }

    fn idle_cores(&mut self) -> bool {
        self.sys.llc[0].has_idle_cores(LlcId(0), &mut self.host)
    }
}

fn plain() -> World {
    world(|_, _| ())
}

fn threads() -> World {
    world(|cpu, p| {
        p.core = cpu / 2;
        p.cluster = cpu / 2;
    })
}

#[test]
fn one_allowed_cpu_leaves_no_choice() {
    let mut w = plain();
    w.task.body.cpus_allowed = CpuMask::of(Cpu(5));
    assert_eq!(w.choose(WakeKind::Wake, 0, 1), 5);
    assert!(w.queues_read().is_empty());
    assert_eq!(w.sys.task[w.waker.idx()].wakee_flips.load(Relaxed), 0);
}

#[test]
fn a_previous_cpu_out_of_bounds_falls_back_to_an_allowed_one() {
    let mut w = world(|cpu, p| {
        (p.node, p.package, p.llc) = (cpu / 4, cpu / 4, cpu / 4);
    })
    .busy(0..8);
    w.task.body.cpus_allowed = [2, 3, 6, 7].map(Cpu).into_iter().collect();
    assert_eq!(w.choose(WakeKind::Wake, 0, 4), 6);
    assert_eq!(w.choose(WakeKind::Wake, 4, 0), 2);
}

#[test]
fn a_scan_looks_at_as_many_cpus_as_the_cache_allows() {
    let mut w = plain().busy(0..8);
    w.sys.llc[0].set_nr_idle_scan(LlcId(0), 3, &mut w.host);
    assert_eq!(w.choose(WakeKind::Wake, 6, 6), 6);
    // The target and the recently used CPU 0, then three from 7 on, wrapped.
    assert_eq!(w.queues_read(), [6, 0, 7, 1]);
    assert_eq!(w.host.turns, 4, "the turn that finds the budget used up");

    let mut w = plain().busy(0..8);
    w.sys.llc[0].set_nr_idle_scan(LlcId(0), 0, &mut w.host);
    assert_eq!(w.choose(WakeKind::Wake, 6, 6), 6);
    assert_eq!(w.queues_read(), [6, 0]);
}

#[test]
fn an_idle_core_beats_an_idle_thread() {
    // Threads 2k and 2k+1; only CPUs 3 and 6, 7 are idle.
    let mut w = threads().busy([0, 1, 2, 4, 5]);
    w.sys.task[1].recent_used_cpu.store(4, Relaxed);
    assert_eq!(w.choose(WakeKind::Wake, 0, 0), 6);
    assert!(w.idle_cores());

    let mut w = threads().busy([0, 1, 2, 4, 5, 6]);
    w.sys.task[1].recent_used_cpu.store(4, Relaxed);
    assert_eq!(w.choose(WakeKind::Wake, 0, 0), 3, "the first spare thread");
    assert!(!w.idle_cores(), "the search has found none");
    // From now on the previous CPU's sibling comes first.
    assert_eq!(w.choose(WakeKind::Wake, 0, 6), 7);
}

/// The search of 4.8 and before, said slowly: the target, any core that idles as a whole, the
/// target's other thread.
fn core_or_target(idle: u32, allowed: u32, target: u32) -> u32 {
    let is = |mask: u32, cpu: u32| mask >> cpu & 1 == 1;
    if is(idle, target) {
        return target;
    }
    for from_target in 1..8 {
        let first = ((target + from_target) % 8) & !1;
        let other_core = first != target & !1;
        let threads = [first, first + 1];
        if other_core && threads.iter().all(|t| is(idle, *t)) {
            let thread = threads.into_iter().find(|t| is(allowed, *t));
            if let Some(thread) = thread {
                return thread;
            }
        }
    }
    let sibling = target ^ 1;
    match is(idle & allowed, sibling) {
        true => sibling,
        false => target,
    }
}

#[test]
fn before_4_9_a_half_idle_core_is_found_only_beside_the_target() {
    let old = [
        ("scan_budget", "core-or-target"),
        ("recent_used_cpu", "off"),
    ];
    for (idle, allowed) in (0..256).flat_map(|idle| [0xff, 0x0f, 0xb5].map(|a| (idle, a))) {
        let mut w = threads().busy((0..8).filter(|cpu| idle >> cpu & 1 == 0));
        w.sys.features.set_all(&old).expect("decisions");
        let cpus = (0..8).filter(|cpu| allowed >> cpu & 1 == 1);
        w.task.body.cpus_allowed = cpus.clone().map(Cpu).collect();
        for prev in cpus {
            let want = core_or_target(idle, allowed, prev);
            let got = w.choose(WakeKind::Wake, prev, prev);
            assert_eq!(
                got, want,
                "idle {idle:#x}, allowed {allowed:#x}, from {prev}"
            );
        }
    }
    // The search of today finds the idle thread beside a busy one.
    let mut w = threads().busy([0, 1, 2, 4, 5, 6, 7]);
    assert_eq!(w.choose(WakeKind::Wake, 0, 0), 3);
    w.sys.features.set_all(&old).expect("decisions");
    assert_eq!(w.choose(WakeKind::Wake, 0, 0), 0);
}

#[test]
fn a_core_is_known_to_be_idle_when_its_last_thread_goes_idle() {
    let mut w = threads().busy([3]);
    w.sys.llc[0].set_idle_cores(LlcId(0), false, &mut w.host);
    w.cx(2, |cx, _| update_idle_core(cx, Cpu(2)));
    assert!(!w.idle_cores());
    w.cx(4, |cx, _| update_idle_core(cx, Cpu(4)));
    assert!(w.idle_cores());
}

#[test]
fn the_targets_cluster_comes_first() {
    let clusters = || world(|cpu, p| p.cluster = cpu / 4).busy([0, 1, 2, 4, 5, 6]);
    let mut w = clusters();
    assert_eq!(w.choose(WakeKind::Wake, 4, 4), 7);
    assert_eq!(w.choose(WakeKind::Wake, 1, 1), 3);
    // An idle previous CPU in another cluster waits for the search of the target's cluster.
    let mut w = clusters();
    w.sys.cpu[0].nr_running.store(1, Relaxed);
    assert_eq!(w.choose(WakeKind::Sync, 0, 7), 3);
    let mut w = clusters().busy([3]);
    assert_eq!(w.choose(WakeKind::Sync, 0, 7), 7);
}

#[test]
fn a_big_task_goes_to_a_big_cpu() {
    let mut w = world(|cpu, p| p.capacity = if cpu < 4 { 512 } else { 1024 });
    w.task.se.avg.util_avg = 600;
    assert_eq!(w.choose(WakeKind::Wake, 1, 1), 4);
    w.task.se.avg.util_avg = 100;
    assert_eq!(w.choose(WakeKind::Wake, 1, 1), 1);
    // The largest idle one if it fits none.
    let mut w = world(|cpu, p| p.capacity = 512 + cpu * 64).busy([7]);
    w.task.se.avg.util_avg = 1000;
    assert_eq!(w.choose(WakeKind::Wake, 1, 1), 6);
}

#[test]
fn cpus_with_idle_policy_work_only_are_as_good_as_idle() {
    let mut w = plain().busy(0..8);
    w.sys.cpu[5].h_nr_idle.store(1, Relaxed);
    assert_eq!(w.choose(WakeKind::Wake, 2, 2), 5);
    assert_eq!(
        w.choose(WakeKind::Fork, 2, 2),
        2,
        "no group has more idle CPUs"
    );
    w.sys
        .features
        .set_all(&[("sched_idle_cpu", "off")])
        .unwrap();
    assert_eq!(w.choose(WakeKind::Wake, 2, 2), 2, "before 5.4");
}

#[test]
fn a_lone_task_that_execs_stays_where_it_is() {
    let mut w = plain().busy([3]);
    w.task.se.on_rq = true;
    w.task.se.avg.last_update_time = 1;
    (w.task.se.avg.load_avg, w.task.se.avg.util_avg) = (1024, 1024);
    assert_eq!(w.choose(WakeKind::Exec, 3, 3), 3);
    // Not with another one beside it.
    w.sys.cpu[3].nr_running.store(2, Relaxed);
    assert_ne!(w.choose(WakeKind::Exec, 3, 3), 3);
}

#[test]
fn a_new_task_goes_to_the_cpu_that_wakes_up_fastest() {
    let nodes = || {
        let w = world(|cpu, p| {
            (p.node, p.package, p.llc) = (cpu / 4, cpu / 4, cpu / 4);
        })
        .busy(0..4);
        for cpu in 4..8 {
            w.sys.cpu[cpu].idle_stamp.store(100 + cpu as u64, Relaxed);
        }
        w
    };
    assert_eq!(
        nodes().choose(WakeKind::Fork, 0, 0),
        7,
        "the last to become idle"
    );
    let mut w = nodes();
    for (cpu, latency) in [(4, 201), (5, 3), (6, 3), (7, 201)] {
        w.sys.cpu[cpu].idle_exit_latency.store(latency, Relaxed);
    }
    assert_eq!(
        w.choose(WakeKind::Fork, 0, 0),
        6,
        "of two equals the later one"
    );
}

#[test]
fn flips_count_changes_of_the_wakee_and_halve_each_second() {
    let mut w = plain();
    let words = |w: &World| w.sys.task[0].wakee_flips.load(Relaxed);
    w.sys.task[0]
        .wakee_flip_decay
        .store(w.sys.features.jiffies(w.host.now), Relaxed);
    for _ in 0..3 {
        w.choose(WakeKind::Wake, 0, 1);
    }
    assert_eq!(words(&w), 1);
    w.sys.task[0].wakee_flips.store(9, Relaxed);
    w.host.now += 1_000_000_000;
    w.choose(WakeKind::Wake, 0, 1);
    assert_eq!(words(&w), 9, "a second is not yet over");
    w.host.now += 1_000_000;
    w.choose(WakeKind::Wake, 0, 1);
    assert_eq!(words(&w), 4);
}

#[test]
fn a_synchronous_waker_does_not_count_delayed_sleepers() {
    let start = |queued: u32, runnable: u32| {
        let mut w = world(|cpu, p| {
            (p.node, p.package, p.llc) = (cpu / 4, cpu / 4, cpu / 4);
        })
        .busy([0]);
        w.sys.cpu[0].nr_running.store(queued, Relaxed);
        w.sys.cpu[0].h_nr_queued.store(queued, Relaxed);
        w.sys.cpu[0].h_nr_runnable.store(runnable, Relaxed);
        let (mut out, waker) = (None, w.waker);
        w.cx(0, |cx, task| {
            out = affine_target(cx, task, Cpu(5), Some(waker), WakeKind::Sync);
        });
        out
    };
    assert_eq!(start(3, 1), Some(Cpu(0)));
    assert_eq!(start(3, 2), Some(Cpu(5)));
}

#[test]
fn a_task_of_a_group_weighs_its_part_of_the_group() {
    let mut w = world(|cpu, p| {
        (p.node, p.package, p.llc) = (cpu / 4, cpu / 4, cpu / 4);
    })
    .busy(0..8);
    // CPU 0 has 900, CPU 5 has 1400 with the task.
    w.sys.cpu[0].load_avg.store(900, Relaxed);
    w.sys.cpu[5].load_avg.store(1400, Relaxed);
    w.task.se.avg.load_avg = 1023;
    w.sys.task[1].cpu.store(5, Relaxed);
    let target = |w: &mut World| {
        let (mut out, waker) = (None, w.waker);
        w.cx(0, |cx, task| {
            out = affine_target(cx, task, Cpu(5), Some(waker), WakeKind::Wake);
        });
        out
    };
    // At full weight, leaving would load CPU 0 with 1900 against 400 that remain.
    assert_eq!(target(&mut w), Some(Cpu(5)));
    // In a group that weighs 128 in all, it would be 1028 against 1272.
    let tg = w.sys.add_group(TgId::ROOT);
    w.sys.open_group(tg);
    w.task.body.tg = tg;
    w.sys.tg[tg.idx()].cpu(Cpu(5)).publish_load(1023, 128);
    w.host.now += 1_000_000_000;
    assert_eq!(target(&mut w), Some(Cpu(0)));
}

/// Up to 5.14 a search that ran out of its budget returned before it read the clock again.
#[test]
fn a_search_without_an_end_is_not_timed() {
    for (avg_idle, cost) in [(0, 8000), (1 << 40, 7000)] {
        let mut w = plain().busy(0..8);
        w.sys
            .features
            .set_all(&[("scan_budget", "prop")])
            .expect("decisions");
        let sd = w.sys.topology.llc_domain(Cpu(0)).expect("one cache");
        sd.state.avg_scan_cost.store(8000, Relaxed);
        w.sys.cpu[0].avg_idle.store(avg_idle, Relaxed);
        w.choose(WakeKind::Wake, 0, 0);
        let sd = w.sys.topology.llc_domain(Cpu(0)).expect("one cache");
        // The clock stands still, so a search that ended takes an eighth off.
        assert_eq!(sd.state.avg_scan_cost.load(Relaxed), cost);
    }
}

/// The search of 5.8, said slowly, without a limit: the target, an idle core, an idle CPU from the
/// target on.
fn core_then_cpu(idle: u32, target: u32) -> u32 {
    let is = |cpu: u32| idle >> cpu & 1 == 1;
    let wrapped = || (0..8).map(|n| (target + n) % 8);
    let core_idles = |cpu: u32| is(cpu) && is(cpu ^ 1);
    if is(target) {
        return target;
    }
    let core = wrapped().find(|cpu| core_idles(*cpu));
    core.or(wrapped().find(|cpu| is(*cpu))).unwrap_or(target)
}

#[test]
fn before_5_12_cores_came_first_then_cpus_then_the_targets_threads() {
    let old = [
        ("idle_search", "core-cpu-thread"),
        ("recent_used_cpu", "off"),
    ];
    let world = |idle: u32, avg_idle: u64| {
        let mut w = threads().busy((0..8).filter(|cpu| idle >> cpu & 1 == 0));
        w.sys.features.set_all(&old).unwrap();
        w.sys.features.set_all(&[("scan_budget", "prop")]).unwrap();
        w.sys.llc[0].set_idle_cores(LlcId(0), true, &mut w.host);
        for words in &w.sys.cpu {
            words.avg_idle.store(avg_idle, Relaxed);
        }
        w
    };
    for (idle, prev) in (0..256).flat_map(|idle| (0..8).map(move |prev| (idle, prev))) {
        let got = world(idle, 1 << 40).choose(WakeKind::Wake, prev, prev);
        assert_eq!(
            got,
            core_then_cpu(idle, prev),
            "idle {idle:#x}, from {prev}"
        );
    }
    // CPUs that never idle long look at the target and two others, then at the target's core. An
    // idle previous CPU's sibling is nothing special.
    let mut w = world(0b0010_0000, 0);
    assert_eq!(
        w.choose(WakeKind::Wake, 2, 2),
        2,
        "CPU 5 is the third after"
    );
    assert!(!w.idle_cores(), "the pass for cores has found none");
    assert_eq!(world(0b0010_0000, 0).choose(WakeKind::Wake, 3, 3), 5);
    assert_eq!(
        world(0b0000_0100, 0).choose(WakeKind::Wake, 3, 3),
        2,
        "its sibling"
    );
}

#[test]
fn a_waker_remembered_where_it_woke() {
    let mut w = plain().busy(0..8);
    let recent = |w: &World, task: usize| w.sys.task[task].recent_used_cpu.load(Relaxed);
    w.sys
        .features
        .set_all(&[("recent_used_cpu", "waker")])
        .unwrap();
    w.sys.task[1].recent_used_cpu.store(6, Relaxed);
    assert_eq!(w.choose(WakeKind::Wake, 5, 2), 5, "nobody idles");
    assert_eq!(recent(&w, w.waker.idx()), 5);
    assert_eq!(recent(&w, 1), 6, "it was not taken");
    w.sys.cpu[6].nr_running.store(0, Relaxed);
    w.sys.cpu[6].curr_is_idle.store(true, Relaxed);
    assert_eq!(w.choose(WakeKind::Wake, 5, 2), 6);
    assert_eq!(recent(&w, 1), 2, "the previous CPU, for it was taken");
    // Today the waker's stays, and the wakee's is the previous CPU.
    w.sys
        .features
        .set_all(&[("recent_used_cpu", "prev")])
        .unwrap();
    w.choose(WakeKind::Wake, 4, 3);
    assert_eq!((recent(&w, w.waker.idx()), recent(&w, 1)), (5, 3));
}

#[test]
fn before_5_11_loads_decided_beside_an_idle_previous_cpu() {
    for (rule, target) in [("on", 5), ("off", 0)] {
        let mut w = world(|cpu, p| {
            (p.node, p.package, p.llc) = (cpu / 4, cpu / 4, cpu / 4);
        })
        .busy([0, 1]);
        w.sys.features.set_all(&[("wa_prev_idle", rule)]).unwrap();
        // Blocked load on the idle CPU 5, little on the busy one.
        w.sys.cpu[5].load_avg.store(3000, Relaxed);
        w.sys.cpu[0].load_avg.store(10, Relaxed);
        let (mut out, waker) = (None, w.waker);
        w.cx(0, |cx, task| {
            out = affine_target(cx, task, Cpu(5), Some(waker), WakeKind::Wake);
        });
        assert_eq!(out, Some(Cpu(target)), "{rule}");
    }
}

#[test]
fn before_4_17_equal_loads_went_to_the_waking_cpu() {
    for (rule, target) in [("on", 0), ("off", 5)] {
        let mut w = world(|cpu, p| {
            (p.node, p.package, p.llc) = (cpu / 4, cpu / 4, cpu / 4);
        })
        .busy([0, 1, 5]);
        let sets = [("wa_ties", rule), ("wa_bias", "off"), ("wa_idle", "off")];
        w.sys.features.set_all(&sets).unwrap();
        w.task.se.avg.load_avg = 0;
        let (mut out, waker) = (None, w.waker);
        w.cx(0, |cx, task| {
            out = affine_target(cx, task, Cpu(5), Some(waker), WakeKind::Wake);
        });
        assert_eq!(out, Some(Cpu(target)), "{rule}");
    }
}

/// Up to 6.6 clusters were domains, but wake-ups did not look at them.
#[test]
fn before_6_7_the_targets_cluster_was_nothing_special() {
    for (order, found) in [("cluster-first", 1), ("thread-then-scan", 4)] {
        let mut w = world(|cpu, p| p.cluster = cpu / 4).busy([0, 2, 3, 5, 6, 7]);
        w.sys
            .features
            .set_all(&[("idle_search", order), ("recent_used_cpu", "off")])
            .unwrap();
        assert_eq!(w.choose(WakeKind::Wake, 3, 3), found, "{order}");
    }
}
