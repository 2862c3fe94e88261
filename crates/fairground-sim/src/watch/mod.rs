//! What a run can be watched for beside its metrics: CPUs that stay idle while tasks wait (`idle`),
//! tasks that wait for quota (`quota`), and what throttling makes CPUs do (`quota_work`).
//!
//! The first two are made from the scheduler's tracepoints, in order of time. A step of a CPU is
//! carried out as a whole, so its tracepoints come ahead of those of steps that began earlier but
//! on other CPUs; they are held back until no earlier one can come. Watching changes nothing and
//! takes no simulated time.

pub mod idle;
pub mod kept_off;
pub mod quota;
mod quota_rows;
pub mod quota_work;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::Ordering::Relaxed;

use fairground::event::Event;
use fairground::rq::Rq;
use fairground::shared::OnRq;
use fairground::value::{Cpu, CpuMask, SeId, TaskId, TgId};

use crate::cache::{NS, Ps};
use crate::host::StillWaiting;
use crate::machine::Sim;
use idle::IdleWaste;
use kept_off::KeptOff;
use quota::QuotaWait;
use quota_rows::PeriodTimer;

/// What came of watching a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// CPUs that were idle while tasks waited.
    pub idle: IdleWaste,
    /// Waiting for quota, by group with a limit.
    pub quota: Vec<QuotaWait>,
    /// For how long quotas kept tasks of which groups off the CPU.
    pub kept_off: Vec<KeptOff>,
    /// Wake-ups that have no latency, as their task has not run by the end.
    pub still_waiting: StillWaiting,
}

/// A thread of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// Its number.
    pub task: u32,
    /// Its name.
    pub name: String,
}

/// Where a waiting task may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum May {
    /// Everywhere.
    Anywhere,
    /// On one CPU only.
    Here,
    /// On these.
    Within(CpuMask),
}

/// A task that is runnable and does not run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub may: May,
    /// The group whose throttled queue holds it back.
    pub held: Option<u32>,
}

/// A tracepoint with what the machine knows about it.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// The task of this group became runnable.
    Wake {
        task: u32,
        group: u32,
        cpu: u32,
        waiting: Waiting,
    },
    /// Who ran, and how it waits if it is still runnable; who runs, and its group.
    Switch {
        cpu: u32,
        prev: Option<(u32, Option<Waiting>)>,
        next: Option<(u32, u32)>,
    },
    /// A task came to another CPU.
    Move {
        task: u32,
        cpu: u32,
        waiting: Waiting,
    },
    /// Of the tasks that wait on this CPU these are held back, each by a group.
    Hold { cpu: u32, held: Vec<(u32, u32)> },
}

/// The order of changes: time, then number.
#[derive(Debug)]
struct Later {
    at: Ps,
    number: u64,
    change: Change,
}

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Later {}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Later {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// Both ledgers, and the changes that are held back.
#[derive(Debug)]
pub(crate) struct Watch {
    later: BinaryHeap<Reverse<Later>>,
    number: u64,
    /// Wake-ups that are held back, by task: when, and their number.
    woken: BTreeMap<u32, (Ps, u64)>,
    idle: idle::Ledger,
    quota: quota::Ledger,
}

impl Watch {
    fn put(&mut self, at: Ps, change: Change) {
        match &change {
            Change::Wake { task, .. } => {
                self.woken.insert(*task, (at, self.number));
            }
            Change::Switch {
                next: Some((task, _)),
                ..
            } => self.wake_before(at, *task),
            _ => {}
        }
        self.hold(at, change);
    }

    fn hold(&mut self, at: Ps, change: Change) {
        let number = self.number;
        self.number += 1;
        self.later.push(Reverse(Later { at, number, change }));
    }

    /// `task` runs at `at`. As steps are carried out as a whole, another CPU can have pulled it at
    /// a time before the end of the step that has queued it: then it was woken by then.
    fn wake_before(&mut self, at: Ps, task: u32) {
        let Some((_, number)) = self.woken.remove(&task).filter(|woken| woken.0 > at) else {
            return;
        };
        let mut wake = None;
        self.later.retain(|Reverse(later)| {
            let keep = later.number != number;
            if !keep {
                wake = Some(later.change.clone());
            }
            keep
        });
        if let Some(wake) = wake {
            self.hold(at, wake);
        }
    }

    /// Nothing can come before `now` any more.
    fn pass(&mut self, now: Ps) {
        while let Some(Reverse(first)) = self.later.peek()
            && first.at < now
            && let Some(Reverse(Later { at, change, number })) = self.later.pop()
        {
            if let Change::Wake { task, .. } = &change
                && self.woken.get(task).is_some_and(|woken| woken.1 == number)
            {
                self.woken.remove(task);
            }
            self.idle.see(at, &change);
            self.quota.see(at, &change);
        }
    }
}

impl Sim<'_> {
    /// From now on the run is watched.
    pub(crate) fn begin_watch(&mut self) {
        let from = self.workload.warmup_ns * NS;
        self.host.seen = Some(Vec::new());
        self.host.worked = Some(Vec::new());
        let quota = quota::Ledger::new(self.workload, from, &|g| self.period_timer(g));
        self.watch = Some(Box::new(Watch {
            later: BinaryHeap::new(),
            number: 0,
            woken: BTreeMap::new(),
            idle: idle::Ledger::new(&self.sys.topology, from),
            quota,
        }));
    }

    fn period_timer(&self, group: u32) -> PeriodTimer {
        let limit = self.limits[group as usize];
        let bandwidth = &self.sys.tg[self.groups[group as usize].idx()].bandwidth;
        let expires = bandwidth.peek_period_expires();
        PeriodTimer {
            length: limit.period_ns.max(1) * NS,
            expires: expires.saturating_sub(crate::host::BOOT_NS) * NS,
            active: bandwidth.peek_period_active(),
            limited: limit.quota_ns.is_some(),
        }
    }

    /// `cpu.max` of `group` has been written.
    pub(crate) fn watch_limit(&mut self, group: u32) {
        let (at, timer) = (self.now, self.period_timer(group));
        if let Some(watch) = &mut self.watch {
            watch.quota.write(at, group, timer);
        }
    }

    /// Takes in the tracepoints of the event that has just been carried out.
    #[inline(never)]
    pub(crate) fn watch_event(&mut self) {
        let (Some(mut watch), Some(mut seen)) = (self.watch.take(), self.host.seen.take()) else {
            return;
        };
        for (at, event) in seen.drain(..) {
            if let Some(change) = self.change(event) {
                watch.put(at, change);
            }
        }
        for done in self.host.worked.iter_mut().flat_map(|w| w.drain(..)) {
            watch.quota.worked(&done);
        }
        watch.pass(self.now);
        (self.watch, self.host.seen) = (Some(watch), Some(seen));
    }

    /// What came of it, at the end of the run.
    pub(crate) fn end_watch(&mut self) -> Option<Watched> {
        let mut watch = self.watch.take()?;
        watch.pass(self.now);
        let capacity = self.now.saturating_sub(self.workload.warmup_ns * NS);
        let names = |task: u32| Who {
            task,
            name: self.tasks.get(task as usize).map_or(String::new(), |t| {
                self.workload.templates[t.template as usize].name.clone()
            }),
        };
        let (quota, kept_off) = watch.quota.end(
            self.now,
            self.workload,
            &|g| self.period_timer(g),
            &|g| self.group_path(TgId(g)).into(),
            &names,
        );
        Some(Watched {
            still_waiting: self.host.counters.still_waiting(self.now / NS),
            idle: watch
                .idle
                .end(self.now, capacity * self.cpus.len() as u64, &names),
            quota,
            kept_off,
        })
    }

    fn change(&self, event: Event) -> Option<Change> {
        match event {
            Event::Wakeup { task, cpu } | Event::WakeupNew { task, cpu } => Some(Change::Wake {
                task: task.0,
                group: self.group_of(task),
                cpu: cpu.0,
                waiting: self.waiting(task),
            }),
            Event::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => Some(Change::Switch {
                cpu: cpu.0,
                prev: prev.map(|p| (p.0, prev_runnable.then(|| self.waiting(p)))),
                next: next.map(|n| (n.0, self.group_of(n))),
            }),
            Event::Migrate { task, to, .. } => Some(Change::Move {
                task: task.0,
                cpu: to.0,
                waiting: self.waiting(task),
            }),
            Event::Throttle { cpu, .. } => Some(Change::Hold {
                cpu: cpu.0,
                held: held_on(&self.rqs[cpu.idx()]),
            }),
            Event::Waking { .. } | Event::Fork { .. } | Event::Exit { .. } | Event::Nice { .. } => {
                None
            }
        }
    }

    fn group_of(&self, task: TaskId) -> u32 {
        self.tasks.get(task.idx()).map_or(0, |t| t.cgroup)
    }

    fn waiting(&self, task: TaskId) -> Waiting {
        let words = &self.sys.task[task.idx()];
        let kept = (words.on_rq() != OnRq::No).then(|| {
            let rq = &self.rqs[Cpu(words.cpu.load(Relaxed)).idx()];
            (rq, SeId(words.slot.load(Relaxed)))
        });
        let body = match kept {
            Some((rq, slot)) => rq.body.get(slot.idx()).and_then(Option::as_ref),
            // One of the real-time class.
            None => self.host.parked[task.idx()].as_ref().map(|t| &t.body),
        };
        let all = self.sys.cpus();
        let allowed = body.map_or(all, |body| body.cpus_allowed.and(&all));
        let may = match allowed.weight() as usize {
            0 | 1 => May::Here,
            n if n == self.cpus.len() => May::Anywhere,
            _ => May::Within(allowed),
        };
        let held = kept.and_then(|(rq, slot)| holder(rq, slot));
        Waiting { may, held }
    }
}

/// The group whose throttled queue is nearest above an entity.
fn holder(rq: &Rq, slot: SeId) -> Option<u32> {
    let mut at = rq.se[slot.idx()].cfs_rq;
    if rq.cfs[at.idx()].throttle_count == 0 {
        return None;
    }
    loop {
        let queue = &rq.cfs[at.idx()];
        if queue.throttled {
            return Some(queue.tg.0);
        }
        queue.se?;
        at = queue.parent;
    }
}

fn held_on(rq: &Rq) -> Vec<(u32, u32)> {
    let bodies = rq.body.iter().enumerate();
    let held = bodies.filter_map(|(slot, body)| {
        let id = body.as_ref()?.id;
        Some((id.0, holder(rq, SeId(slot as u32))?))
    });
    held.collect()
}

#[cfg(test)]
mod tests {
    use fairground::policy::Features;
    use fairground::topology;

    use super::*;
    use crate::machine::Setup;
    use crate::machine_file::Machine;
    use crate::outcome::{self, Outcome};
    use crate::workload::{Env, Workload};

    fn both(machine: &str, cpus: usize, profile: &str, line: &str) -> [Outcome; 2] {
        let machine = Machine::builtin(machine).unwrap().shrunk(cpus).unwrap();
        let argv: Vec<String> = line.split(' ').map(String::from).collect();
        let workload = Workload::from_argv(&argv, &Env { cpus: cpus as u32 }).unwrap();
        let features = Features::of_profile(fairground::policy::find_profile(profile).unwrap());
        let setup = Setup {
            machine: &machine,
            features,
            workload: &workload,
            seed: 1,
            trace: false,
        };
        let plain = outcome::run(&setup).unwrap();
        [plain, outcome::run_watched(&setup).unwrap()]
    }

    fn watched(cpus: usize, profile: &str, line: &str) -> Watched {
        let [plain, watched] = both("spr-8480-2s", cpus, profile, line);
        assert_eq!(plain.metrics, watched.metrics);
        assert_eq!(plain.events, watched.events);
        assert_eq!(plain.watched, None);
        watched.watched.unwrap()
    }

    /// CPU 1 pulls and runs a task that CPU 0 queues at the end of a long step, and it sleeps again
    /// before that end.
    #[test]
    fn who_runs_was_woken_before() {
        let machine = topology::Machine {
            cpus: vec![topology::CpuPlace::default(); 2],
            ..topology::Machine::default()
        };
        let topology = topology::Topology::build(&machine).unwrap();
        let line = ["hogs", "--tasks", "1", "-d", "1ms"].map(String::from);
        let workload = Workload::from_argv(&line, &Env { cpus: 2 }).unwrap();
        let timer = PeriodTimer {
            length: NS,
            expires: 0,
            active: false,
            limited: false,
        };
        let mut watch = Watch {
            later: BinaryHeap::new(),
            number: 0,
            woken: BTreeMap::new(),
            idle: idle::Ledger::new(&topology, 0),
            quota: quota::Ledger::new(&workload, 0, &|_| timer),
        };
        let switch = |prev: Option<u32>, next: Option<u32>| Change::Switch {
            cpu: 1,
            prev: prev.map(|task| (task, None)),
            next: next.map(|task| (task, 0)),
        };
        let waiting = Waiting {
            may: May::Anywhere,
            held: None,
        };
        let wake = Change::Wake {
            task: 0,
            group: 0,
            cpu: 0,
            waiting,
        };
        let us = 1000 * NS;
        watch.put(70 * us, wake);
        watch.put(4 * us, switch(None, Some(0)));
        watch.put(5 * us, switch(Some(0), None));
        watch.pass(10_000 * us);
        let name = |task| Who {
            task,
            name: String::new(),
        };
        let found = watch.idle.end(10_000 * us, 20_000 * us, &name);
        assert_eq!((found.cpu_ns, found.waits), (0, [0; 4]));
    }

    #[test]
    fn watching_changes_nothing_and_sees_what_balancing_needs() {
        let found = watched(8, "linux-6.18", "hackbench -g 2 -f 4 -l 20 --pipe");
        let idle = found.idle;
        assert!(idle.cpu_ns > 0 && idle.cpu_ns < idle.capacity_ns);
        assert!(idle.near_ns <= idle.cpu_ns);
        let longest = idle.longest.unwrap();
        assert!(longest.ns > 0 && longest.cpu != longest.idle_cpu);
        assert_eq!(longest.who.name, "hackbench");
        assert!(found.quota.is_empty());
    }

    #[test]
    fn a_cpu_of_each_waits_for_nobody() {
        // After the first few ms each hog has a CPU of its own.
        let line = "hogs --tasks 4 --duration 100ms --warmup 100ms";
        let idle = watched(8, "linux-6.18", line).idle;
        assert_eq!((idle.cpu_ns, idle.waits), (0, [0; 4]));
        // More than CPUs: none is idle.
        let line = "hogs --tasks 16 --duration 100ms --warmup 100ms";
        let idle = watched(8, "linux-6.18", line).idle;
        assert_eq!(idle.waits[2], 0);
        assert!(idle.cpu_ns < idle.capacity_ns / 1000, "{idle:?}");
    }

    #[test]
    fn a_hog_loses_throughput_to_its_quota_but_is_not_slow() {
        for profile in ["linux-6.18", "linux-6.12-lts"] {
            let line = "hogs --tasks 1 --duration 1s --warmup 250ms --cpu-max 20ms/100ms";
            let quota = &watched(2, profile, line).quota[0];
            assert_eq!((quota.stretches, quota.slow()), (0, 0), "{profile}");
            assert_eq!(quota.periods.len(), 10, "{profile}");
            assert_eq!(quota.waited(), 10, "{profile}");
            for period in &quota.periods {
                assert!(period.ran_ns.abs_diff(20_000_000) < 2_000_000, "{period:?}");
                assert!(
                    period.waited_ns.abs_diff(80_000_000) < 2_000_000,
                    "{period:?}"
                );
            }
        }
    }

    #[test]
    fn the_work_of_throttling_is_counted_by_period() {
        for profile in ["linux-6.18", "linux-6.12-lts"] {
            let line = "hogs --tasks 1 --duration 1s --warmup 250ms --cpu-max 20ms/100ms";
            let [plain, watched] = both("spr-8480-2s", 2, profile, line);
            assert_eq!(plain.metrics, watched.metrics);
            let calls = |name: &str| {
                let found = watched.functions.iter().find(|(n, ..)| *n == name);
                found.map_or(0, |(_, _, calls)| *calls)
            };
            let visits = calls("tg_throttle_down") + calls("tg_unthrottle_up");
            let quota = &watched.watched.unwrap().quota[0];
            for period in &quota.periods {
                let work = &period.work;
                let counts = [
                    work.throttled,
                    work.unthrottled,
                    work.put_off,
                    work.put_back,
                ];
                assert_eq!(counts, [1; 4], "{profile}");
                assert_eq!(work.walked, 2, "{profile}");
                assert!((1..100_000).contains(&work.timer_ns), "{work:?}");
            }
            let work = &quota.work;
            assert_eq!((work.walked, visits), (20, 20), "{profile}");
            assert_eq!((work.walked_in, work.moved_in), ([2; 3], [2; 3]));
            assert_eq!((work.throttled, work.unthrottled), (10, 10), "{profile}");
            let times = [&work.timer, &work.throttle, &work.unthrottle].map(|i| i.times);
            assert_eq!(times, [10; 3], "{profile}");
            let longest = quota.periods.iter().map(|p| p.work.timer_ns).max();
            assert_eq!(longest, Some(work.timer.ns[2]), "{profile}");
        }
    }

    #[test]
    fn sleepers_that_are_throttled_are_slow() {
        // 13 ms in 77 ms is less than 20 ms in 100 ms, but now and then two turns fall into one
        // period, and the second waits for the next.
        let line = "sleepers --tasks 1 --run 13ms --period 77ms --duration 4s --cpu-max 20ms/100ms";
        for profile in ["linux-6.18", "linux-6.12-lts"] {
            let quota = &watched(2, profile, line).quota[0];
            assert!((51..=52).contains(&quota.stretches), "{profile}: {quota:?}");
            assert!((5..25).contains(&quota.delayed), "{profile}: {quota:?}");
            let off = quota.usual_ns.abs_diff(13_000_000);
            assert!(off < 1_000_000, "{profile}: {quota:?}");
            // Of two periods that a stretch spans only the first has waiting in it.
            assert_eq!(quota.waited(), quota.delayed, "{profile}: {quota:?}");
            // One that waited for less than a tenth of its time was not slow.
            assert!((1..=quota.waited()).contains(&quota.slow()), "{profile}");
            let patient = quota::QuotaWait {
                limit_ns: Some(u64::MAX),
                ..quota.clone()
            };
            assert_eq!((patient.slow(), patient.waited()), (0, quota.waited()));
            let longest = quota.longest.as_ref().unwrap();
            let worked = longest.took_ns - longest.waited_ns;
            assert!(worked.abs_diff(13_000_000) < 1_000_000, "{longest:?}");
        }
    }
}
