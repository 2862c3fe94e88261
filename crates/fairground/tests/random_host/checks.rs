//! What has to hold after each step, and when everybody has left.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use fairground::host::{Kick, StopWork, Timer};
use fairground::rq::HigherClass;
use fairground::sched;
use fairground::shared::OnRq;
use fairground::task::Prev;
use fairground::value::{Cpu, SeId, TaskId, TgId};

use crate::kernel::{Kernel, MS, Stage, TaskState};

/// How far load tracking may be from the average that it approximates, of 1024: it counts a period
/// of 22 when that is over, and has a few for its integers.
const UTIL_ERROR: f64 = 40.0;

/// Where fair tasks were found.
#[derive(Clone, Copy, Debug)]
enum Place {
    Queue,
    Host,
}

type Seen = BTreeMap<TaskId, Place>;

fn note(seen: &mut Seen, id: TaskId, place: Place) {
    let other = seen.insert(id, place);
    assert!(other.is_none(), "{id:?} is in {place:?} and in {other:?}");
}

impl Kernel {
    /// Everything that has to hold between two calls.
    pub fn check(&self) {
        let mut seen = Seen::new();
        for cpu in 0..self.nr_cpus() {
            self.check_current(cpu);
            self.check_published(cpu);
            self.check_queues(cpu);
            self.check_idle(cpu);
            for (slot, body) in (0..).zip(&self.rqs[cpu].body) {
                if let Some(body) = body {
                    note(&mut seen, body.id, Place::Queue);
                    self.check_queued(cpu, SeId(slot));
                }
            }
        }
        self.check_mine(&mut seen);
        for task in self.tasks.iter().filter(|t| t.priority.is_none()) {
            let found = seen.contains_key(&task.id);
            assert_eq!(found, task.stage != Stage::Dead, "{:?}", task.id);
        }
        for task in self.tasks.iter().filter(|t| t.priority.is_some()) {
            self.check_higher(task);
        }
        for tg in self.groups.iter().filter(|tg| **tg != TgId::ROOT) {
            self.check_group(*tg);
        }
        let limited = |tg: &TgId| self.sys.tg[tg.idx()].bandwidth.is_limited();
        let any = self.groups.iter().any(limited);
        assert_eq!(any, self.sys.bandwidth_used());
        if !self.has_higher {
            self.check_capacities();
        }
    }

    /// Where nobody but fair tasks uses the CPUs, each group of CPUs has all that they have.
    fn check_capacities(&self) {
        let topology = &self.sys.topology;
        for group in &topology.groups {
            let of = |cpu: Cpu| u64::from(topology.places[cpu.idx()].capacity);
            let full: u64 = group.span.iter().map(of).sum();
            let capacity = group.state.capacity.load(Relaxed);
            assert_eq!(capacity, full, "CPUs {:?}", group.span);
        }
    }

    /// Who runs: one class at a time.
    fn check_current(&self, cpu: usize) {
        let (rq, current) = (&self.rqs[cpu], self.cpus[cpu].current);
        let higher = self.runs_higher(cpu);
        assert_eq!(rq.higher, higher.map(HigherClass::RealTime), "CPU {cpu}");
        let fair = current.filter(|_| higher.is_none());
        assert_eq!(rq.curr_task(), fair, "CPU {cpu}");
        // The switch to the stopper comes with the request for its work.
        let heard = !rq.need_resched || self.board.resched[cpu] || rq.stopper;
        assert!(heard, "CPU {cpu} was asked for a switch, and nobody knows");
    }

    fn check_published(&self, cpu: usize) {
        let (rq, words) = (&self.rqs[cpu], &self.sys.cpu[cpu]);
        let idles = self.cpus[cpu].current.is_none();
        assert_eq!(words.curr_is_idle.load(Relaxed), idles, "CPU {cpu}");
        assert_eq!(words.nr_running.load(Relaxed), rq.nr_running);
        let full = u64::from(self.sys.topology.places[cpu].capacity);
        let capacity = words.capacity.load(Relaxed);
        assert!((1..=full).contains(&capacity), "capacity {capacity}");
        let used = words.util_avg_rt.load(Relaxed);
        assert!(used <= 1024 && u64::from(used) == rq.avg_rt.util_avg);
        // On a slow CPU load tracking has a time of its own.
        let fresh = rq.avg_rt.last_update_time + 1024 > rq.clock.pelt();
        if full == 1024 && fresh {
            let mut twin = self.cpus[cpu].used;
            twin.advance(rq.clock.clock, self.runs_higher(cpu).is_some());
            let off = (twin.util() - f64::from(used)).abs();
            assert!(off <= UTIL_ERROR, "CPU {cpu}: {used}, not {}", twin.util());
        }
    }

    /// Counts and weights of the queues of a CPU.
    fn check_queues(&self, cpu: usize) {
        let (rq, state) = (&self.rqs[cpu], &self.cpus[cpu]);
        let runs = usize::from(self.runs_higher(cpu).is_some());
        let higher = (state.waiting.len() + runs) as u32 + u32::from(rq.stopper);
        assert_eq!(rq.nr_running, rq.cfs[0].h_nr_queued + higher, "CPU {cpu}");
        if self.sys.features.throttle.is_per_task() {
            let queued = |s: usize| rq.body[s].is_some() && rq.se[s].on_rq;
            let queued = (0..rq.body.len()).filter(|s| queued(*s)).count() as u32;
            assert_eq!(rq.nr_running, queued + higher, "CPU {cpu}");
        }
        for (i, cfs) in rq.cfs.iter().enumerate() {
            let on = |se: &&fairground::task::SchedEntity| {
                se.on_rq && se.cfs_rq.idx() == i && se.name != TaskId::NONE.0
            };
            let weights = rq.se.iter().filter(on).map(|se| se.load.weight);
            let (nr, weight) = (weights.clone().count() as u32, weights.sum::<u64>());
            assert_eq!((nr, weight), (cfs.nr_queued, cfs.load.weight), "{i}, {cpu}");
        }
    }

    /// Nobody waits for a CPU that idles, or a task of a higher class for a fair one, unless the
    /// CPU is about to act.
    fn check_idle(&self, cpu: usize) {
        let (rq, state) = (&self.rqs[cpu], &self.cpus[cpu]);
        if self.board.resched[cpu] || !self.board.kicks[cpu].is_empty() {
            return;
        }
        let runnable = rq.cfs[0].h_nr_runnable;
        let idles = state.current.is_none();
        assert!(!idles || runnable == 0, "CPU {cpu} idles, {runnable} wait");
        let gives_way = state.fair_turn || self.runs_higher(cpu).is_some();
        let waits = !gives_way && self.higher_is_ready(cpu);
        assert!(!waits, "a task of a higher class waits for CPU {cpu}");
    }

    /// A fair task that a queue keeps.
    fn check_queued(&self, cpu: usize, slot: SeId) {
        let rq = &self.rqs[cpu];
        let (se, body) = (&rq.se[slot.idx()], rq.body[slot.idx()].as_ref());
        let body = body.expect("a task");
        let (id, task) = (body.id, &self.tasks[body.id.idx()]);
        let how = (se.on_rq, se.sched_delayed, body.throttled);
        let fits = match task.stage {
            Stage::Runnable => (se.on_rq && !se.sched_delayed) || body.throttled,
            Stage::Sleeps => se.on_rq && se.sched_delayed && !body.throttled,
            Stage::Listed(_) | Stage::Dead => false,
        };
        assert!(fits, "{id:?} {:?} in a queue: {how:?}", task.stage);
        let words = &self.sys.task[id.idx()];
        let at = (words.cpu.load(Relaxed), words.slot.load(Relaxed));
        assert_eq!((at, words.on_rq()), ((cpu as u32, slot.0), OnRq::Queued));
        let runs = self.cpus[cpu].current == Some(id);
        assert_eq!(words.on_cpu.load(Relaxed), runs, "{id:?}");
        assert_eq!(body.tg, task.tg);
        let zero = rq.cfs[se.cfs_rq.idx()].zero_vruntime;
        let far = (se.vruntime.wrapping_sub(zero) as i64).unsigned_abs();
        assert!(!se.on_rq || far < 1 << 44, "{id:?} {se:?}");
        let leaves = self.board.kicks[cpu].contains(&Kick::Stop(StopWork::Migrate));
        let may_stay = body.cpus_allowed.has(Cpu(cpu as u32));
        assert!(
            may_stay || leaves,
            "{id:?} may not be on CPU {cpu}: {how:?}"
        );
        self.check_time(cpu, slot, id);
    }

    /// A task is charged until the last update if it runs, and for all that it has run if not.
    fn check_time(&self, cpu: usize, slot: SeId, id: TaskId) {
        let (rq, state) = (&self.rqs[cpu], &self.cpus[cpu]);
        let se = &rq.se[slot.idx()];
        let ran = self.tasks[id.idx()].ran_ns;
        if state.current != Some(id) {
            return assert_eq!(se.sum_exec_runtime, ran, "time of {id:?}");
        }
        let charged = se.sum_exec_runtime - ran;
        let last = if se.on_rq {
            rq.clock.task - se.exec_start
        } else {
            0
        };
        let full = rq.clock.clock - state.since;
        let least = state.left_at.map_or(full, |at| at - state.since);
        let fits = (least..=full).contains(&(charged + last));
        assert!(
            fits,
            "time of {id:?}: {charged}, {last} of {least} to {full}"
        );
    }

    /// Fair tasks that are with the host.
    fn check_mine(&self, seen: &mut Seen) {
        for (id, task) in &self.board.parked {
            note(seen, *id, Place::Host);
            let state = &self.tasks[id.idx()];
            assert_eq!(state.stage, Stage::Sleeps);
            assert!(
                task.se.vlag.unsigned_abs() < 1 << 40,
                "lag {}",
                task.se.vlag
            );
            assert_eq!(task.se.sum_exec_runtime, state.ran_ns, "time of {id:?}");
        }
        for (cpu, state) in self.cpus.iter().enumerate() {
            for (task, ..) in &state.wake_list {
                note(seen, task.body.id, Place::Host);
                let stage = self.tasks[task.body.id.idx()].stage;
                assert_eq!(stage, Stage::Listed(cpu));
            }
        }
    }

    /// A task of a higher class is in one place, where the engine thinks that it is.
    fn check_higher(&self, task: &TaskState) {
        let mut places = 0;
        let words = &self.sys.task[task.id.idx()];
        let mut runs = false;
        for (cpu, state) in self.cpus.iter().enumerate() {
            let here = state.current == Some(task.id);
            runs |= here;
            if here || state.waiting.contains(&task.id) {
                places += 1;
                assert_eq!(words.cpu.load(Relaxed), cpu as u32, "{:?}", task.id);
            }
        }
        let runnable = task.stage == Stage::Runnable;
        assert_eq!(places, u32::from(runnable), "{:?}", task.id);
        assert_eq!(words.on_cpu.load(Relaxed), runs, "{:?}", task.id);
        assert_eq!(words.on_rq(), OnRq::No);
    }

    /// Load and quota of a group.
    fn check_group(&self, id: TgId) {
        let tg = &self.sys.tg[id.idx()];
        let queues = || {
            self.rqs
                .iter()
                .flat_map(|rq| &rq.cfs)
                .filter(|q| q.tg == id)
        };
        let load: u64 = queues().map(|q| q.tg_load_avg_contrib).sum();
        assert_eq!(load as i64, tg.peek_load_avg(), "load of {id:?}");
        let throttled = queues().any(|q| q.throttled);
        let timer = self.board.timers.contains_key(&Timer::Period(id));
        let ends = tg.bandwidth.peek_period_active() && timer;
        assert!(!throttled || ends, "{id:?} is throttled for ever");
        assert_eq!(throttled, tg.bandwidth.peek_first_throttled().is_some());
        if let Some((quota, burst)) = tg.bandwidth.peek_limit() {
            assert!(tg.bandwidth.peek_runtime() <= quota + burst + 100 * MS);
        }
    }

    /// All limits are lifted and everybody exits; then loads go down to nothing.
    pub fn drain(&mut self) {
        for tg in self.groups.clone() {
            if tg != TgId::ROOT {
                let set = self.call(0, |cx, rqs| {
                    sched::set_bandwidth(cx, rqs, tg, None, 100 * MS, 0)
                });
                assert!(set.is_ok());
            }
        }
        self.serve_all(100);
        for _ in 0..400 {
            self.all_exit();
            self.advance(MS);
            if self.tasks.iter().all(|t| t.stage == Stage::Dead) {
                break;
            }
        }
        assert!(self.tasks.iter().all(|t| t.stage == Stage::Dead));
        self.check();
        for rq in &self.rqs {
            assert_eq!((rq.nr_running, rq.cfs[0].nr_queued), (0, 0));
        }
        self.decay();
    }

    fn all_exit(&mut self) {
        for task in 0..self.tasks.len() {
            let TaskState { id, stage, .. } = self.tasks[task];
            match (stage == Stage::Sleeps, self.is_higher(id)) {
                (true, true) => self.wake_higher(0, id),
                (true, false) => self.wake(0, id),
                (false, _) => {}
            }
        }
        self.serve_all(100);
        for cpu in 0..self.nr_cpus() {
            if self.cpus[cpu].current.is_some() {
                self.leave(cpu, Prev::Exits);
            }
            self.serve_all(100);
        }
    }

    /// Four seconds with ticks on all CPUs: in a tick what is left of a load is brought up to date.
    fn decay(&mut self) {
        let ticks = 4_000 * MS / self.sys.features.tick_ns();
        for _ in 0..ticks {
            for cpu in &mut self.cpus {
                cpu.tickless = false;
            }
            self.advance(self.sys.features.tick_ns());
        }
        // A queue that leaves the list of leaves with something published never takes it back.
        let taken_back = self.sys.features.load.leaf_published;
        let groups = self.groups.iter().filter(|tg| **tg != TgId::ROOT);
        for tg in groups.filter(|_| taken_back) {
            let left = self.sys.tg[tg.idx()].peek_load_avg();
            assert!(left.abs() <= 2 * self.nr_cpus() as i64, "load {left} left");
        }
        // While a whole queue is throttled, what joins or leaves it does not go on to those above,
        // which may leave the list. A weight that is written then takes it there all the same, as
        // in the kernel (`__sched_group_set_shares`), and it stays until something runs there.
        let per_task = self.sys.features.throttle.is_per_task();
        let excused = self.weighs_throttled && !per_task;
        let queues = self.rqs.iter().flat_map(|rq| &rq.cfs);
        for cfs in queues.filter(|cfs| cfs.on_list || !excused) {
            let avg = &cfs.avg;
            let left = avg.load_avg.max(avg.util_avg).max(avg.runnable_avg);
            assert!(left <= 2 && avg.util_est == 0, "left {avg:?}");
        }
        for (words, place) in self.sys.cpu.iter().zip(&self.sys.topology.places) {
            assert_eq!(words.util_avg_rt.load(Relaxed), 0);
            let capacity = words.capacity.load(Relaxed);
            assert_eq!(capacity, u64::from(place.capacity), "comes back");
        }
    }
}
