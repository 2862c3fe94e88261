//! Tasks of the real-time class (`SCHED_FIFO`, `SCHED_RR`): who of them runs where and when. The
//! fair class only learns how many there are on a CPU, that one runs, and for how long.
//!
//! ```text
//! order     the highest priority first; a task that is preempted stays first of its priority, one
//!           that yields or whose turn of 100 ms (SCHED_RR) is over goes last
//! wake-up   stays on its CPU, fair tasks or not, unless a real-time task runs there that it cannot
//!           preempt, or one that can be nowhere else: then where the least urgent task runs
//! push      who is preempted, or waits when another begins to run, goes where it can run at once
//! pull      a CPU that comes down to a lower priority takes a more urgent task that waits
//! limit     where fair tasks wait, they have 50 ms of each second
//! ```
//!
//! Sources: sched(7), "Linux Kernel Development" (Love, 2010) and the kernel's documentation on
//! real-time group scheduling (`sched-rt-group.rst`) for priorities, turns and the limit;
//! S. Rostedt, "Real-time Linux kernel scheduler" (Linux Journal, 2009), for push, pull and the
//! search for the CPU of the lowest priority; "sched/fair: Add a trivial fair server" and what
//! follows it (P. Zijlstra, D. Bristot de Oliveira, 6.12) for where the limit holds.

use std::collections::BTreeMap;

use fairground::event::{Event, Migration};
use fairground::place::Func;
use fairground::sched::{self, HigherComes, ToRunning};
use fairground::task::Prev;
use fairground::value::{Cpu, CpuMask, TaskId};

use super::Sim;
use super::task::Life;
use crate::cache::{NS, Ps};
use crate::costs::KernelOp;
use crate::host::Place;
use crate::workload::program::RealTime;

/// How long a `SCHED_RR` task runs before another of its priority does (`RR_TIMESLICE`).
pub(super) const TURN_NS: u64 = 100_000_000;
/// Period of the limit (`sched_rt_period_us`), and how much of it is for real-time tasks if others
/// wait (`sched_rt_runtime_us`; from 6.12 on what the fair server leaves).
pub const PERIOD_NS: u64 = 1_000_000_000;
/// See [`PERIOD_NS`].
pub const RUNTIME_NS: u64 = 950_000_000;

/// The real-time tasks of one CPU that wait, and how much of it such tasks have had.
#[derive(Debug, Default)]
pub struct RtRq {
    /// In order: the most urgent first, then by place in the row of its priority.
    waiting: BTreeMap<(u8, i64), TaskId>,
    next_place: i64,
    /// Since when the one that runs has not been charged.
    since: Ps,
    /// The one that runs goes last of its priority at the next switch.
    goes_last: bool,
    /// Number of the period that is counted.
    period: u64,
    /// What real-time tasks have used of it.
    used_ns: u64,
}

impl RtRq {
    /// The later the less urgent.
    fn rank(priority: u8) -> u8 {
        u8::MAX - priority
    }

    fn push_back(&mut self, priority: u8, id: TaskId) {
        self.next_place += 1;
        self.waiting
            .insert((Self::rank(priority), self.next_place), id);
    }

    fn push_front(&mut self, priority: u8, id: TaskId) {
        self.next_place += 1;
        self.waiting
            .insert((Self::rank(priority), -self.next_place), id);
    }

    fn remove(&mut self, id: TaskId) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|_, task| *task != id);
        self.waiting.len() < before
    }

    /// Waiting real-time tasks, the most urgent first.
    pub fn waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.waiting.values().copied()
    }

    /// Priority of the most urgent that waits.
    fn highest(&self) -> Option<u8> {
        let ((rank, _), _) = self.waiting.first_key_value()?;
        Some(u8::MAX - rank)
    }

    /// Whether real-time tasks have had their part of the second that `now_ns` is in.
    fn is_over(&self, now_ns: u64) -> bool {
        self.period == now_ns / PERIOD_NS && self.used_ns >= RUNTIME_NS
    }

    fn charge(&mut self, now_ns: u64, ns: u64) {
        if self.period != now_ns / PERIOD_NS {
            (self.period, self.used_ns) = (now_ns / PERIOD_NS, 0);
        }
        self.used_ns += ns;
    }
}

impl Sim<'_> {
    pub(crate) fn real_time(&self, id: TaskId) -> Option<RealTime> {
        self.tasks[id.idx()].real_time
    }

    /// The real-time task that runs on `cpu`.
    pub(super) fn runs_real_time(&self, cpu: u32) -> Option<(TaskId, RealTime)> {
        let id = self.cpus[cpu as usize].curr?;
        self.real_time(id).map(|rt| (id, rt))
    }

    /// The highest real-time priority on `cpu`; 0 = fair tasks or none.
    fn highest_on(&self, cpu: u32) -> u8 {
        let runs = self.runs_real_time(cpu).map_or(0, |(_, rt)| rt.priority);
        let waits = self.cpus[cpu as usize].rt.highest().unwrap_or(0);
        runs.max(waits)
    }

    pub(super) fn allowed_of(&self, id: TaskId) -> CpuMask {
        let parked = self.host.parked[id.idx()].as_ref();
        parked.map_or_else(CpuMask::empty, |task| task.body.cpus_allowed)
    }

    /// A real-time task that sleeps or is new is woken by the executing CPU.
    pub(super) fn wake_real_time(&mut self, id: TaskId, comes: HigherComes) {
        let prev = self.task_cpu(id);
        if comes == HigherComes::Woken {
            let prev_cpu = prev;
            self.host.note(Event::Waking { task: id, prev_cpu });
            let off = self.tasks[id.idx()].off_cpu_at;
            self.host.spin_until(Place::Func(Func::TryToWakeUp), off);
        }
        self.engine(|cx, _| cx.span(Func::SelectTaskRq, |_| ()));
        let cpu = self.select_task_rq_rt(id, prev.0);
        if comes == HigherComes::Woken && cpu != prev.0 {
            self.tell_move(id, prev.0, cpu, Migration::Placement);
        }
        self.tasks[id.idx()].life = Life::Runnable;
        self.enqueue_real_time(id, cpu, comes);
        self.host.op(KernelOp::WakeEnd);
    }

    fn enqueue_real_time(&mut self, id: TaskId, cpu: u32, comes: HigherComes) {
        let Some(rt) = self.real_time(id) else { return };
        let running = self.runs_real_time(cpu);
        let takes_over = running.is_some_and(|(other, theirs)| {
            theirs.priority == rt.priority && self.takes_over(cpu, id, other)
        });
        let to_running = match running {
            Some((_, theirs)) if rt.priority <= theirs.priority && !takes_over => ToRunning::Waits,
            _ => ToRunning::Preempts,
        };
        if takes_over {
            self.cpus[cpu as usize].rt.goes_last = true;
            self.cpus[cpu as usize].rt.push_front(rt.priority, id);
        } else {
            self.cpus[cpu as usize].rt.push_back(rt.priority, id);
        }
        self.engine(|cx, rqs| sched::enqueue_higher(cx, rqs, Cpu(cpu), id, comes, to_running));
    }

    /// Whether `id`, which can run on `cpu` only, comes before `other` of the same priority, which
    /// runs there and can go elsewhere (`check_preempt_equal_prio`). That one then waits behind all
    /// of its priority, in the kernel in front of them, until it is pushed.
    fn takes_over(&mut self, cpu: u32, id: TaskId, other: TaskId) -> bool {
        let asked = self.rqs[cpu as usize].need_resched;
        let stays = |sim: &mut Self, id: TaskId| {
            sim.allowed_of(id).weight() < 2 || sim.find_lowest_rq(id, cpu).is_none()
        };
        !asked && stays(self, id) && !stays(self, other)
    }

    /// Where a woken task goes (`select_task_rq_rt`).
    fn select_task_rq_rt(&mut self, id: TaskId, prev: u32) -> u32 {
        let allowed = self.allowed_of(id);
        let mine = self.real_time(id).map_or(0, |rt| rt.priority);
        let stands = self.runs_real_time(prev).is_some_and(|(other, theirs)| {
            theirs.priority >= mine || self.allowed_of(other).weight() < 2
        });
        let may_stay = allowed.has(Cpu(prev));
        if may_stay && !stands {
            return prev;
        }
        let lowest = self.find_lowest_rq(id, prev);
        let stay = if may_stay { Some(prev) } else { None };
        let first = allowed.first().map(|cpu| cpu.0);
        lowest.or(stay).or(first).unwrap_or(prev)
    }

    /// An allowed CPU on which the most urgent task is less urgent than `id`, the least urgent of
    /// all: that which it comes from, else the executing one or any, the nearer the better
    /// (`find_lowest_rq`).
    fn find_lowest_rq(&mut self, id: TaskId, from: u32) -> Option<u32> {
        let mine = self.real_time(id)?.priority;
        let allowed = self.allowed_of(id);
        let lowest = allowed.iter().map(|cpu| self.highest_on(cpu.0)).min()?;
        if lowest >= mine {
            return None;
        }
        let mut mask = CpuMask::empty();
        for cpu in allowed.iter().filter(|c| self.highest_on(c.0) == lowest) {
            mask.set(cpu);
        }
        if mask.has(Cpu(from)) {
            return Some(from);
        }
        let this = Cpu(self.host.cpu);
        let domains = self.sys.topology.domains(Cpu(from));
        let spans = domains.iter().filter(|sd| sd.flags.wake_affine);
        for span in spans.map(|sd| sd.span) {
            let near = mask.and(&span);
            if near.has(this) {
                return Some(this.0);
            }
            if let Some(cpu) = near.iter_wrap(Cpu(self.rt_spread + 1)).next() {
                self.rt_spread = cpu.0;
                return Some(cpu.0);
            }
        }
        if mask.has(this) {
            return Some(this.0);
        }
        let cpu = mask.iter_wrap(Cpu(self.rt_spread + 1)).next()?.0;
        self.rt_spread = cpu;
        Some(cpu)
    }

    /// A switch on `cpu` of which a real-time task is a part; false if it is not: the fair class
    /// then chooses.
    pub(super) fn switch_real_time(&mut self, cpu: u32, prev: Prev) -> bool {
        let c = cpu as usize;
        let ran = self.runs_real_time(cpu);
        if let Some((id, rt)) = ran {
            self.charge_real_time(cpu, id);
            let last = std::mem::take(&mut self.cpus[c].rt.goes_last);
            // One that may not be here any more does not wait here.
            let stays = prev == Prev::Runnable && self.allowed_of(id).has(Cpu(cpu));
            match (stays, last) {
                (true, false) => self.cpus[c].rt.push_front(rt.priority, id),
                (true, true) => self.cpus[c].rt.push_back(rt.priority, id),
                (false, _) => {}
            }
            if self.cpus[c].rt.highest() < Some(rt.priority) {
                self.pull_real_time(cpu);
            }
        }
        let others_first = self.others_first(cpu, prev);
        let next = self.cpus[c].rt.waiting().next().filter(|_| !others_first);
        let Some(next) = next else {
            if ran.is_some() {
                let switch = self.engine(|cx, rqs| sched::switch_from_higher(cx, rqs, prev));
                self.switched(cpu, switch.prev, switch.next);
            }
            return ran.is_some();
        };
        self.cpus[c].rt.remove(next);
        let switch = self.engine(|cx, rqs| sched::switch_to_higher(cx, rqs, prev, next));
        self.cpus[c].rt.since = self.host.at;
        self.switched(cpu, switch.prev, switch.next);
        self.push_real_time(cpu);
        true
    }

    /// Whether real-time tasks have to leave `cpu` to fair ones until the second is over.
    fn others_first(&self, cpu: u32, prev: Prev) -> bool {
        let rq = &self.rqs[cpu as usize];
        let leaves = prev != Prev::Runnable && rq.curr.is_some();
        let others = rq.cfs[0].h_nr_runnable.saturating_sub(leaves.into());
        others > 0 && self.cpus[cpu as usize].rt.is_over(self.now_ns())
    }

    /// Whether fair tasks have `cpu` only because the real-time ones that are there have had their
    /// part of the second.
    pub(crate) fn real_time_is_over(&self, cpu: u32) -> bool {
        self.highest_on(cpu) > 0 && self.cpus[cpu as usize].rt.is_over(self.now_ns())
    }

    /// Whether a real-time task waits for `cpu`, which would idle.
    pub(super) fn real_time_waits(&self, cpu: u32) -> bool {
        self.cpus[cpu as usize].rt.highest().is_some()
    }

    /// Tasks that wait on `cpu` go where they can run at once, for as long as the most urgent that
    /// can be elsewhere finds such a place (`push_rt_tasks`).
    fn push_real_time(&mut self, cpu: u32) {
        loop {
            let movable = |id: &TaskId| self.allowed_of(*id).weight() > 1;
            let pushable = self.cpus[cpu as usize].rt.waiting().find(movable);
            let to = pushable.and_then(|id| Some((id, self.find_lowest_rq(id, cpu)?)));
            match to {
                Some((id, to)) if to != cpu => self.move_real_time(id, cpu, to, Migration::Balance),
                _ => return,
            }
        }
    }

    /// `cpu` comes down to a lower priority: the most urgent task that waits elsewhere and may come
    /// does, if it is more urgent than all here (`pull_rt_task`).
    fn pull_real_time(&mut self, cpu: u32) {
        let here = self.cpus[cpu as usize].rt.highest().unwrap_or(0);
        let mut best: Option<(u8, u32, TaskId)> = None;
        for (from, state) in (0..).zip(&self.cpus) {
            for id in state.rt.waiting().filter(|_| from != cpu) {
                let priority = self.real_time(id).map_or(0, |rt| rt.priority);
                let beats = priority > best.map_or(here, |b| b.0);
                if beats && self.allowed_of(id).has(Cpu(cpu)) {
                    best = Some((priority, from, id));
                }
            }
        }
        if let Some((_, from, id)) = best {
            self.move_real_time(id, from, cpu, Migration::Balance);
        }
    }

    /// A task that waits on `from` goes to `to`.
    pub(super) fn move_real_time(&mut self, id: TaskId, from: u32, to: u32, why: Migration) {
        self.cpus[from as usize].rt.remove(id);
        self.engine(|cx, rqs| sched::dequeue_higher(cx, rqs, Cpu(from)));
        self.tell_move(id, from, to, why);
        self.enqueue_real_time(id, to, HigherComes::Moved);
    }

    fn tell_move(&mut self, task: TaskId, from: u32, to: u32, why: Migration) {
        let (from, to) = (Cpu(from), Cpu(to));
        self.host.note(Event::Migrate {
            task,
            from,
            to,
            why,
        });
    }

    /// After the scheduler's part of the tick.
    pub(super) fn real_time_tick(&mut self, cpu: u32) {
        let c = cpu as usize;
        let fair_waits = self.rqs[c].cfs[0].h_nr_runnable > 0;
        let Some((id, rt)) = self.runs_real_time(cpu) else {
            // A new second may have begun.
            if self.real_time_waits(cpu) && !self.cpus[c].rt.is_over(self.now_ns()) {
                self.engine(sched::resched_higher);
            }
            return;
        };
        self.charge_real_time(cpu, id);
        let mut gives_way = fair_waits && self.cpus[c].rt.is_over(self.now_ns());
        let left = &mut self.tasks[id.idx()].turn_left_ns;
        *left = left.saturating_sub(self.tick / NS);
        // A turn is a whole number of ticks: what rounding has left of the last one is none.
        if rt.takes_turns && *left < self.tick / NS / 2 {
            *left = TURN_NS;
            if self.cpus[c].rt.highest() == Some(rt.priority) {
                self.cpus[c].rt.goes_last = true;
                gives_way = true;
            }
        }
        if gives_way {
            self.engine(sched::resched_higher);
        }
    }

    /// The running task goes last of its priority at the switch that follows (`sched_yield`).
    pub(super) fn real_time_yields(&mut self, cpu: u32) {
        self.cpus[cpu as usize].rt.goes_last = true;
    }

    /// What the running task has used since it was last charged.
    pub(super) fn charge_real_time(&mut self, cpu: u32, id: TaskId) {
        let (at, rt) = (self.host.at, &mut self.cpus[cpu as usize].rt);
        let ns = at.saturating_sub(rt.since) / NS;
        rt.since += ns * NS;
        rt.charge(at / NS, ns);
        if let Some(task) = &mut self.host.parked[id.idx()] {
            task.se.sum_exec_runtime += ns;
            self.sys.charge_higher(task.body.tg, ns);
        }
    }

    /// What a real-time task has run by `at` since it was last charged, ns.
    pub(crate) fn uncharged_ns(&self, id: TaskId, at: Ps) -> u64 {
        let on = self.tasks[id.idx()]
            .on_cpu
            .filter(|_| self.real_time(id).is_some());
        on.map_or(0, |cpu| {
            at.saturating_sub(self.cpus[cpu as usize].rt.since) / NS
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing::{server, with};
    use crate::machine_file::Machine;
    use crate::spec::Scenario;
    use crate::workload::{Env, Workload};

    fn scenario(text: &str) -> Workload {
        let parsed = Scenario::parse("test.toml", &format!("duration = \"3s\"\n{text}"));
        let made = parsed.and_then(|s| s.workload(&Env { cpus: 2 }));
        made.unwrap_or_else(|e| panic!("{e:?}"))
    }

    /// CPU time in ms of the first tasks after `ms` on two CPUs with a core each.
    fn cpu_ms(text: &str, ms: u64) -> Vec<u64> {
        let workload = scenario(text);
        let machine = Machine::builtin("kunpeng920-6426-2s").unwrap();
        let machine = machine.shrunk(2).unwrap();
        with(&machine, &workload, &[], |sim| {
            sim.run_to(ms * 1_000_000).unwrap();
            let ids = 0..sim.tasks.len() as u32;
            ids.map(|id| sim.charged_ns(TaskId(id), sim.now) / 1_000_000)
                .collect()
        })
    }

    const TURNS: &str = "steps = [{ loop = \"forever\", steps = [{ run = \"1ms\" }] }]";

    fn task(name: &str, how: &str) -> String {
        format!("[[task]]\nname = \"{name}\"\naffinity = [0]\n{how}\n{TURNS}\n")
    }

    #[test]
    fn the_most_urgent_runs_and_fair_tasks_have_a_twentieth() {
        let text = task("low", "policy = \"fifo\"\npriority = 10")
            + &task("high", "policy = \"fifo\"\npriority = 20")
            + &task("fair", "");
        let got = cpu_ms(&text, 2000);
        assert_eq!(got[0], 0, "{got:?}");
        assert!((1898..=1902).contains(&got[1]), "{got:?}");
        assert!((98..=102).contains(&got[2]), "{got:?}");
    }

    #[test]
    fn turns_are_of_rr_and_who_yields_goes_last() {
        let rr = "policy = \"rr\"\npriority = 10";
        let fifo = "policy = \"fifo\"\npriority = 10";
        let got = cpu_ms(&(task("a", rr) + &task("b", rr)), 450);
        assert!(
            got[0].abs_diff(250) < 3 && got[1].abs_diff(200) < 3,
            "{got:?}"
        );
        let got = cpu_ms(&(task("a", fifo) + &task("b", fifo)), 450);
        assert!(got[0] > 448 && got[1] == 0, "{got:?}");
        let yields = TURNS.replace("}] }]", "}, \"yield\"] }]");
        let both = (task("a", fifo) + &task("b", fifo)).replace(TURNS, &yields);
        let got = cpu_ms(&both, 450);
        assert!(got[0].abs_diff(got[1]) <= 2, "{got:?}");
    }

    /// Who can run there only takes over from one of its priority that can go elsewhere.
    #[test]
    fn who_cannot_move_comes_before_an_equal_that_can() {
        let floats = "[[task]]\nname = \"floats\"\npolicy = \"fifo\"\npriority = 10\n\
             start = \"2ms\"\nsteps = [{ affinity = [0] }, { run = \"5ms\" },\n\
             { affinity = \"all\" }, \"hog\"]\n";
        let bound = "[[task]]\nname = \"bound\"\naffinity = [0]\npolicy = \"fifo\"\n\
             priority = 10\nsteps = [{ sleep = \"20ms\" }, { run = \"30ms\" }]\n";
        let text = floats.to_owned() + bound;
        let got = cpu_ms(&text, 60);
        assert_eq!(got[1], 30, "{got:?}");
        assert!(got[0] >= 57, "it has gone on on the other CPU: {got:?}");
        // Where it cannot move either, who came first goes on.
        let got = cpu_ms(&text.replace("{ affinity = \"all\" }, ", ""), 60);
        assert_eq!(got[1], 0, "{got:?}");
    }

    #[test]
    fn a_turn_is_a_whole_number_of_ticks() {
        let rr = "policy = \"rr\"\npriority = 10";
        let workload = scenario(&(task("a", rr) + &task("b", rr)));
        let machine = Machine::builtin("kunpeng920-6426-2s").unwrap();
        let machine = machine.shrunk(2).unwrap();
        for hz in ["100", "250", "300", "1000"] {
            with(&machine, &workload, &[("hz", hz)], |sim| {
                sim.run_to(850_000_000).unwrap();
                let ms = [0, 1].map(|id| sim.charged_ns(TaskId(id), sim.now) / 1_000_000);
                // Nine turns are over or begun; with 3.3 ms more each they would be 30 ms apart.
                assert!(ms[0].abs_diff(450) <= 12, "{hz}: {ms:?}");
            });
        }
    }

    #[test]
    fn who_is_preempted_is_pushed_and_who_waits_is_pulled() {
        // Only the first may be elsewhere: it leaves CPU 0 to the second.
        let movable = task("a", "policy = \"fifo\"\npriority = 10").replace("affinity = [0]\n", "");
        let stays = task("b", "policy = \"fifo\"\npriority = 20\nstart = \"5ms\"");
        let got = cpu_ms(&(movable + &stays), 100);
        assert!(got[0] > 97 && got[1].abs_diff(95) <= 2, "{got:?}");
        // Three on two CPUs; the third waits until CPU 1 has nobody so urgent.
        let sleeps = "[[task]]\nname = \"c\"\naffinity = [1]\npolicy = \"fifo\"\npriority = 30\n\
                      steps = [{ run = \"20ms\" }, { sleep = \"1s\" }]\n";
        let third = task("d", "policy = \"fifo\"\npriority = 5").replace("affinity = [0]\n", "");
        let got = cpu_ms(
            &(sleeps.to_owned() + &stays.replace("5ms", "0ms") + &third),
            100,
        );
        assert!(got[0] == 20 && got[2].abs_diff(80) <= 2, "{got:?}");
    }

    #[test]
    fn a_fair_task_is_moved_away_from_a_cpu_that_real_time_tasks_use() {
        let busy = task("rt", "policy = \"fifo\"\npriority = 10").replace(
            "{ run = \"1ms\" }",
            "{ run = \"1ms\" }, { sleep = \"1ms\" }",
        );
        let fair = task("fair", "").replace("affinity = [0]\n", "");
        let got = cpu_ms(&(busy + &fair), 1000);
        assert!(got[1] > 900, "{got:?}");
    }

    /// In `cpu.stat` of its groups, but not limited by their quota.
    #[test]
    fn a_group_is_charged_for_its_real_time_tasks_and_does_not_limit_them() {
        let groups = "[[cgroup]]\npath = \"/g\"\n\"cpu.max\" = \"10000 100000\"\n\
                      [[cgroup]]\npath = \"/g/in\"\n";
        let inside = task("rt", "policy = \"fifo\"\npriority = 10\ncgroup = \"/g/in\"");
        let fair = task("fair", "cgroup = \"/g\"").replace("[0]", "[1]");
        let workload = scenario(&format!("{groups}{inside}{fair}"));
        let ms = with(&server(2), &workload, &[], |sim| {
            sim.run_to(500_000_000).unwrap();
            let stat = |group: u32| sim.sys.tg[group as usize].cpu_stat().usage_ns / 1_000_000;
            (stat(1), stat(2))
        });
        // The fair one has 10 ms of each period and what ticks overrun.
        assert!(ms.1 >= 494 && (545..=565).contains(&ms.0), "{ms:?}");
    }

    /// Between two ticks, by itself.
    #[test]
    fn who_leaves_a_group_leaves_there_what_it_has_run() {
        let text = "[[cgroup]]\npath = \"/a\"\n[[cgroup]]\npath = \"/b\"\n[[task]]\n\
                    name = \"rt\"\naffinity = [0]\npolicy = \"fifo\"\npriority = 10\n\
                    cgroup = \"/a\"\nsteps = [{ run = \"2500us\" }, { cgroup = \"/b\" }, \
                    { run = \"1s\" }]\n";
        let us = with(&server(2), &scenario(text), &[], |sim| {
            sim.run_to(50_000_000).unwrap();
            [1, 2].map(|group: usize| sim.sys.tg[group].cpu_stat().usage_ns / 1000)
        });
        assert!((2500..2600).contains(&us[0]) && us[1] > 46_000, "{us:?}");
    }

    #[test]
    fn a_timer_of_a_real_time_task_has_no_slack() {
        let of = |how: &str| {
            let text = task("a", how).replace("{ run = \"1ms\" }", "{ sleep = \"1ms\" }");
            with(&server(2), &scenario(&text), &[], |sim| {
                sim.run_to(500_000).unwrap();
                let ((must, _), may) = sim.cpus[0].hrtimers.first_key_value().expect("it sleeps");
                (must - may) / NS
            })
        };
        assert_eq!((of(""), of("policy = \"rr\"\npriority = 1")), (50_000, 0));
    }
}
