//! The run queue of one CPU: everything that only the holder of its lock may change.
//!
//! A scheduling entity lives in a slot: `se[slot]` for what is scheduled, `body[slot]` for the
//! rest of a task (`None` for a group's entity), and node `slot` of `nodes` for its place in a
//! tree. Queues are `cfs[id]`; `CfsId::ROOT` is the root, the others are made when a group first
//! has something on this CPU. What other CPUs may read is in
//! [`CpuShared`](crate::shared::CpuShared), written by [`Rq::publish`].

mod arena;
mod cfs_rq;
mod clock;
mod lb_list;
mod lookup;

pub use cfs_rq::CfsRq;
pub use clock::{CLOCK_BEGINS, RqClock, Runs};
pub use lb_list::LbList;
pub use lookup::Rqs;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::math::pelt::{Passed, SchedAvg};
use crate::place::{Kind, Object};
use crate::shared::Relaxed;
use crate::system::System;
use crate::task::{SchedEntity, TaskBody};
use crate::tree::Nodes;
use crate::value::{CfsId, Cpu, SeId, TaskId, TgId};

/// One CPU's run queue. All fields are `[own]`: touched only by the holder of its lock.
///
/// In the order of use: with hundreds of CPUs it matters how many host lines a tick goes to.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Rq {
    /// Whose queue it is.
    pub cpu: Cpu,
    /// The running fair task.
    pub curr: Option<SeId>,
    /// Queued tasks of all classes, including the running one, excluding throttled ones
    /// (`rq->nr_running`).
    pub nr_running: u32,
    /// `TIF_NEED_RESCHED` is set in the `thread_info` of the running task, or of the idle task.
    pub need_resched: bool,
    /// `TIF_NEED_RESCHED_LAZY` is set there: the task makes room at its return to user space, or
    /// at the next tick.
    pub need_resched_lazy: bool,
    /// The next switch takes the clock as it is (`RQCF_REQ_SKIP`): whoever asked for it has just
    /// updated it. So the time from a wake-up that preempts to the switch is the woken task's.
    pub skip_clock: bool,
    /// `Host::resched` was called for the current `need_resched`.
    pub resched_sent: bool,
    /// The CPU was idle at its last tick or idle-balancing kick.
    pub idle_balance: bool,
    /// The class above the fair one whose task runs: no fair task is current, but the CPU is not
    /// idle.
    pub higher: Option<HigherClass>,
    /// The tick was stopped and the CPU counted in `nohz`.
    pub nohz_tick_stopped: bool,
    /// Some queue's load has not decayed away.
    pub has_blocked_load: bool,
    /// The stopper is asked to push a task to `push_cpu`.
    pub active_balance: bool,
    /// The stopper is queued: it counts in `nr_running`.
    pub stopper: bool,
    /// Entities by slot.
    pub se: Vec<SchedEntity>,
    /// Queues; 0 is the root.
    pub cfs: Vec<CfsRq>,
    /// Task bodies by slot; `None` for group entities and free slots.
    pub body: Vec<Option<Box<TaskBody>>>,
    /// Tree nodes by slot.
    pub nodes: Nodes,
    /// Its clocks.
    pub clock: RqClock,
    /// What load tracking has found for the time that it last went over.
    pub passed: Passed,
    /// Since when the CPU is idle, ns; 0 = not.
    pub idle_stamp: u64,
    /// Running average of the length of idle periods, ns.
    pub avg_idle: u64,
    /// Load of a task too big for this CPU's capacity; 0 = none.
    pub misfit_task_load: u64,
    /// Jiffy of the last update of the blocked load of this CPU.
    pub last_blocked_update: u64,
    /// The tasks queued here in the order of load balancing (`cfs_tasks`).
    pub lb_order: LbList,
    /// Context switches.
    pub nr_switches: u64,
    free: Vec<SeId>,
    /// Tasks for which room was asked ([`Rq::reserve`]).
    reserved: usize,
    /// For each task group, its queue here, once made.
    cfs_of_tg: Vec<Option<CfsId>>,
    /// Head of the list of queues that have load to decay, children before parents.
    pub leaf_head: Option<CfsId>,
    /// Target of active balancing.
    pub push_cpu: Cpu,
    /// Jiffy of the eager h_load walk (patch `lazy-h-load`, old behaviour).
    pub h_load_throttle: u64,
    /// Tasks whose load at the root was asked for (`task_h_load`).
    pub h_load_calls: u64,
    /// Entities walked up for them.
    pub h_load_walks: u64,
    /// A task that replaces its image wants to go to another CPU. By the time the stopper comes it
    /// may have left.
    pub exec_dest: Option<(TaskId, Cpu)>,
    /// First of the queues to unthrottle (`cfsb_csd_list`).
    pub unthrottle_first: Option<CfsId>,
    /// Last of them.
    pub unthrottle_last: Option<CfsId>,
    /// Idle balancing that the softirq should do (`NOHZ_*` bits).
    pub nohz_idle_balance: u32,
    /// When the timer for the end of the running task's turn is due (`hrtick_time`), ns; 0 = not
    /// set.
    pub hrtick_at: u64,
    /// How much of the CPU the real-time class uses (`avg_rt`).
    pub avg_rt: SchedAvg,
}

/// A scheduling class above the fair one, which the host picks and runs
/// ([`switch_to_higher`](crate::sched::switch_to_higher)).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HigherClass {
    /// The stopper ([`run_stopper`](crate::sched::run_stopper)): what it uses of a CPU counts for
    /// nobody.
    Stop,
    /// Real-time and deadline tasks: what they use is taken off the capacity for fair tasks.
    RealTime(TaskId),
}

impl Rq {
    /// An empty run queue of a CPU of `sys` at time `now_ns`, [`CLOCK_BEGINS`] or later.
    #[must_use]
    pub fn new(sys: &System, cpu: Cpu, now_ns: u64) -> Self {
        debug_assert!(now_ns >= CLOCK_BEGINS, "0 means never in some words");
        let capacity = sys.topology.places[cpu.idx()].capacity.into();
        let root = CfsRq::root(sys.tg[TgId::ROOT.idx()].cpu(cpu).clone());
        Self {
            cpu,
            clock: RqClock::new(now_ns, capacity),
            passed: Passed::default(),
            se: Vec::new(),
            body: Vec::new(),
            nodes: Nodes::default(),
            free: Vec::new(),
            reserved: 0,
            cfs: alloc::vec![root],
            cfs_of_tg: alloc::vec![Some(CfsId::ROOT)],
            curr: None,
            nr_running: 0,
            leaf_head: None,
            need_resched: false,
            need_resched_lazy: false,
            skip_clock: false,
            resched_sent: false,
            avg_idle: 1_000_000,
            idle_stamp: 0,
            has_blocked_load: false,
            active_balance: false,
            stopper: false,
            push_cpu: cpu,
            misfit_task_load: 0,
            nohz_tick_stopped: false,
            last_blocked_update: 0,
            h_load_throttle: 0,
            h_load_calls: 0,
            h_load_walks: 0,
            nr_switches: 0,
            exec_dest: None,
            higher: None,
            unthrottle_first: None,
            unthrottle_last: None,
            lb_order: LbList::new(),
            idle_balance: false,
            nohz_idle_balance: 0,
            hrtick_at: 0,
            avg_rt: SchedAvg::default(),
        }
    }

    /// This run queue as a place.
    #[inline]
    #[must_use]
    pub fn object(&self) -> Object {
        Object::rq(self.cpu)
    }

    /// Whether the idle task runs.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.curr.is_none() && self.higher.is_none()
    }

    /// The CPU begins to idle: its clocks take note.
    pub(crate) fn enter_idle(&mut self) {
        let used = u64::from(self.cfs[0].avg.util_sum) + u64::from(self.avg_rt.util_sum);
        self.clock.enter_idle(used);
    }

    /// The `task_struct` of whoever runs, the idle task's if nobody does: whose `thread_info` has
    /// the flags of this CPU.
    #[inline]
    #[must_use]
    pub fn curr_object(&self) -> Object {
        let (kind, a) = match (self.curr_task(), self.higher) {
            (Some(id), _) | (None, Some(HigherClass::RealTime(id))) => (Kind::Task, id.0),
            (None, _) => (Kind::IdleTask, self.cpu.0),
        };
        Object { kind, a, b: 0 }
    }

    /// A queue as a place.
    #[inline]
    #[must_use]
    pub fn cfs_object(&self, cfs: CfsId) -> Object {
        self.cfs[cfs.idx()].object(self.cpu)
    }

    /// An entity as a place.
    #[inline]
    #[must_use]
    pub fn se_object(&self, se: SeId) -> Object {
        self.se[se.idx()].object(self.cpu)
    }

    /// Who runs.
    #[inline]
    #[must_use]
    pub fn curr_task(&self) -> Option<TaskId> {
        self.curr.map(|se| self.task_id(se))
    }

    /// Which task is in a slot; [`TaskId::NONE`] for a group.
    #[inline]
    #[must_use]
    pub fn task_id(&self, se: SeId) -> TaskId {
        // Not from the body, which is on a host line of its own.
        let entity = &self.se[se.idx()];
        let id = match entity.my_q {
            None => TaskId(entity.name),
            Some(_) => TaskId::NONE,
        };
        debug_assert_eq!(
            Some(id),
            self.body[se.idx()]
                .as_ref()
                .map_or(Some(TaskId::NONE), |b| Some(b.id))
        );
        id
    }

    /// `slot`, if it is a task's here and that task is `id`: for who had both from other places.
    #[must_use]
    pub(crate) fn slot_of(&self, id: TaskId, slot: SeId) -> Option<SeId> {
        let entity = self.se.get(slot.idx())?;
        (entity.my_q.is_none() && entity.name == id.0).then_some(slot)
    }

    /// Writes the words that other CPUs may read.
    #[inline]
    pub fn publish(&self, sys: &System) {
        let cfs = &self.cfs[0];
        let words = &sys.cpu[self.cpu.idx()];
        words.nr_running.store(self.nr_running, Relaxed);
        words.h_nr_queued.store(cfs.h_nr_queued, Relaxed);
        words.h_nr_runnable.store(cfs.h_nr_runnable, Relaxed);
        words.h_nr_idle.store(cfs.h_nr_idle, Relaxed);
        words.curr_is_idle.store(self.is_idle(), Relaxed);
        let (load_avg, tg) = self.curr.map_or((0, 0), |curr| {
            let se = &self.se[curr.idx()];
            (se.avg.load_avg, self.cfs[se.cfs_rq.idx()].tg.0)
        });
        words.curr_load_avg.store(load_avg, Relaxed);
        words.curr_tg.store(tg, Relaxed);
        let task = self.curr_task().map_or(0, |id| id.0 + 1);
        words.curr_task.store(task, Relaxed);
        words.load_avg.store(cfs.avg.load_avg, Relaxed);
        words.runnable_avg.store(cfs.avg.runnable_avg, Relaxed);
        words.util_avg.store(cfs.avg.util_avg, Relaxed);
        words.util_est.store(cfs.avg.util_est, Relaxed);
        words.idle_stamp.store(self.idle_stamp, Relaxed);
        words.avg_idle.store(self.avg_idle, Relaxed);
        words.misfit_task_load.store(self.misfit_task_load, Relaxed);
        words.clock_idle.store(self.clock.idle, Relaxed);
        words.clock_pelt_idle.store(self.clock.pelt_idle, Relaxed);
        words.has_blocked_load.store(self.has_blocked_load, Relaxed);
        words
            .last_blocked_update
            .store(self.last_blocked_update, Relaxed);
        words
            .nohz_tick_stopped
            .store(self.nohz_tick_stopped, Relaxed);
    }
}
