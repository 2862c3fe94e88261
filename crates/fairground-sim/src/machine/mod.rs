//! The event loop of the simulated machine.
//!
//! Every CPU is in one of three states: it runs kernel code, which is atomic in steps of a few
//! microseconds (one step = one event; fork, exec and exit of a process are tens to hundreds); it
//! runs user code until a point in time; or it is idle.
//! An interrupt waits for the end of the running step, stops the clock of user code, and may leave
//! further steps behind. Only this module and its children know the whole state.
//!
//! | file | subject |
//! | --- | --- |
//! | `due`, `queue`, `soon` | what can become due; all in order; what of it is soon |
//! | `cpu`, `task` | state of one CPU, of one task |
//! | `setup` | from a workload to groups, tasks and first events |
//! | `step` | one step of kernel code: switch, wake-up, softirq |
//! | `irq`, `hrtimer`, `ipi` | interrupts and the tick; timers; messages from other CPUs |
//! | `idle`, `menu` | idle states and the tick that stops; the governor that chooses |
//! | `real_time` | tasks of the real-time class, which the engine only hears of |
//! | `rt_attributes` | where such a task may run, and its group |
//! | `exec`, `syscall` | one operation of a program; its way into the kernel and back |
//! | `user` | what programs do in user space: work, shared words, the clock |
//! | `working_set` | memory that a program comes back to after it was off its CPU |
//! | `sleep` | sleeps for a time, until a time, until a tick; periods |
//! | `chan`, `chan_lines`, `tmp_page` | pipes; their lines; the pages that one keeps |
//! | `pipe_mutex`, `osq` | the mutex of a pipe; the queue of those who spin for one |
//! | `unix_sock` | unix stream sockets |
//! | `slab`, `skb_lines` | memory of messages in sockets, and who fetches which line of it |
//! | `futex`, `waitable` | hash buckets and their waiters; what tasks wait on |
//! | `sync` | semaphores, futexes, barriers, services as programs use them |
//! | `mutex` | mutexes, and the barrier that is made of one |
//! | `inet`, `ip_id` | UDP and TCP over the loopback interface; numbers of packets |
//! | `spin` | spin locks of user code, one for each CPU |
//! | `life` | fork, exec, exit, join |
//! | `settle` | a warm-up in which balancing does the work of seconds |
//! | `siblings` | programs on the threads of one core |
//! | `gaps` | time that a hypervisor takes |
//! | `turns` | an emulator that runs one CPU after the other |
//! | `control` | exact times for runs beside a recording |
//! | `stuck` | who waits for what when nothing can happen any more |
//! | `time_limit` | how long a run may be |

mod chan;
mod chan_lines;
mod cond;
mod control;
pub(crate) mod cpu;
mod due;
mod exec;
mod futex;
mod gaps;
pub mod hrtimer;
mod idle;
mod inet;
mod ip_id;
mod ipi;
pub(crate) mod irq;
mod life;
mod menu;
mod mutex;
mod osq;
mod pipe_mutex;
mod pipe_waiters;
pub mod queue;
mod real_time;
mod rt_attributes;
mod settle;
mod setup;
mod siblings;
mod skb_lines;
mod slab;
mod sleep;
mod soon;
mod spin;
mod step;
mod stuck;
mod sync;
mod syscall;
pub(crate) mod task;
#[cfg(test)]
pub(crate) mod testing;
mod time_limit;
mod tmp_page;
pub mod todo;
mod turns;
mod unix_sock;
mod user;
mod waitable;
mod working_set;

pub use idle::Stays;
pub use setup::{SetupError, topology_of};
pub use stuck::Stuck;

use fairground::cx::Cx;
use fairground::host::Timer;
use fairground::policy::Features;
use fairground::rq::Rq;
use fairground::shared::OnRq;
use fairground::system::System;
use fairground::task::Task;
use fairground::value::{Cpu, CpuMask, TaskId};
use rustc_hash::FxHashMap;

use crate::cache::{NS, Ps};
use crate::host::{Place, SimHost};
use crate::machine_file;
use crate::rng::Generator;
use crate::workload::marks::Marks;
use crate::workload::program::{Born, Workload};
use cpu::CpuState;
use due::{Due, Ipi};
use idle::IdleTable;
use queue::Queue;
use task::{SimTask, Stage};

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The machine.
    pub machine: &'a machine_file::Machine,
    /// The scheduler's behaviour.
    pub features: Features,
    /// What runs.
    pub workload: &'a Workload,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Keep every tracepoint.
    pub trace: bool,
}

/// The simulated machine with a workload on it.
pub struct Sim<'a> {
    pub(crate) sys: System,
    pub(crate) rqs: Vec<Rq>,
    pub(crate) host: SimHost,
    pub(crate) workload: &'a Workload,
    pub(crate) marks: Marks,
    pub(crate) tasks: Vec<SimTask>,
    /// What each began with.
    born: Vec<Born>,
    pub(crate) cpus: Vec<CpuState>,
    pub(crate) queue: Queue,
    pub(crate) now: Ps,
    pub(crate) moving: Vec<Task>,
    pub(crate) timers: FxHashMap<Timer, hrtimer::Armed>,
    chans: Vec<chan::ChanState>,
    /// Whether tasks of a template share their table of open files with other threads.
    shares_files: Vec<bool>,
    inets: Vec<inet::InetState>,
    ip_idents: ip_id::IpIdents,
    osq_nodes: osq::OsqNodes,
    slabs: slab::Slabs,
    cpu_locks: Vec<spin::CpuLocks>,
    sync: sync::Sync,
    user: user::Shared,
    idle: IdleTable,
    distance: machine_file::Topology,
    ipi: [Ps; 5],
    transfer: [Ps; 5],
    pub(crate) tick: Ps,
    /// All CPUs take turns in one stream of instructions (an emulator on one host thread).
    turns: Option<turns::Turns>,
    tick_phase: Ps,
    /// The CPU whose tick counts jiffies (`tick_do_timer_cpu`), and the last one written.
    do_timer: Option<u32>,
    jiffies: u64,
    pub(crate) groups: Vec<fairground::value::TgId>,
    pub(crate) limits: Vec<irq::Limit>,
    cpuset: Vec<CpuMask>,
    start_rng: Generator,
    /// Tasks that have not exited, whoever created them, but those beside.
    living: u32,
    next_mm: u32,
    /// Nothing counts before, and whether that is over.
    warmup: Ps,
    warm: bool,
    /// See [`Sim::next_milestone`].
    milestone: Ps,
    /// Counters of the groups that are reported (`cpu_stat`) at the end of the warm-up; empty
    /// without one.
    pub(crate) warm_stats: Vec<(u32, fairground::shared::CpuStat)>,
    /// Whether any task can be of the real-time class, and where the search for a CPU for one goes
    /// on.
    has_real_time: bool,
    rt_spread: u32,
    /// Jiffy at which balancing was hurried last.
    settled_at: u64,
    /// The run ends soon after this mark has been passed so often.
    pub(crate) ends_at: Option<(u32, u64)>,
    seed: u64,
    /// Time for which tasks fetch their working sets, since the warm-up.
    fetched: Ps,
    ended: bool,
    /// Who looks at every tracepoint, if anybody does.
    pub(crate) watch: Option<Box<crate::watch::Watch>>,
    /// Events processed.
    pub events: u64,
}

impl<'a> Sim<'a> {
    /// Runs until the workload's end; the time of that end.
    ///
    /// # Errors
    /// [`Stuck`] when nothing can happen any more but tasks still wait, or the run is too long.
    pub fn run(&mut self) -> Result<Ps, Stuck> {
        while !self.ended {
            self.one_event()?;
        }
        self.finish();
        Ok(self.now)
    }

    /// Like [`Sim::run`], for at most `events` events; `None` if that is not enough.
    ///
    /// # Errors
    /// [`Stuck`] when nothing can happen any more but tasks still wait, or the run is too long.
    pub fn run_within(&mut self, events: u64) -> Result<Option<Ps>, Stuck> {
        while !self.ended {
            if self.events >= events {
                return Ok(None);
            }
            self.one_event()?;
        }
        self.finish();
        Ok(Some(self.now))
    }

    /// Whether the workload's end is reached.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the warm-up is over, so that counters count.
    pub(crate) fn measures(&self) -> bool {
        self.warm
    }

    /// Processes one event.
    ///
    /// # Errors
    /// As [`Sim::run`].
    #[inline]
    pub(crate) fn one_event(&mut self) -> Result<(), Stuck> {
        let Some((at, due)) = self.queue.pop() else {
            return Err(self.stuck());
        };
        debug_assert!(at >= self.now, "time does not run back");
        self.now = at;
        self.events += 1;
        if at >= self.milestone {
            self.pass_milestone(at)?;
        }
        self.handle(at, due);
        if self.host.seen.as_ref().is_some_and(|seen| !seen.is_empty()) {
            self.watch_event();
        }
        Ok(())
    }

    fn handle(&mut self, at: Ps, due: Due) {
        if self.turns.is_some() && !self.has_turn(at, due) {
            return;
        }
        match due {
            Due::Work { cpu, stamp } => {
                let state = &self.cpus[cpu as usize];
                if state.work_stamp != stamp {
                    return;
                }
                if let Some(later) = state.busy_after(at) {
                    self.queue.push(later, due);
                    return;
                }
                self.work(cpu, at);
            }
            Due::Tick { cpu, stamp } => {
                let state = &self.cpus[cpu as usize];
                if state.tick_stamp == stamp && state.tick_on {
                    self.interrupt(cpu, at, due);
                }
            }
            Due::Timer { cpu, .. } | Due::Wait { cpu, .. } => {
                if !self.is_stale(due) {
                    self.interrupt(cpu, at, due);
                }
            }
            Due::Ipi {
                cpu,
                kind: Ipi::Polled,
            } if !self.cpus[cpu as usize].pending.polled => {}
            Due::Ipi { cpu, .. } => self.interrupt(cpu, at, due),
            Due::Write { event } => self.interrupt(0, at, Due::Write { event }),
            Due::End => self.ended = true,
            Due::Turn { .. } => {}
        }
    }

    /// Calls into the engine on behalf of `cpu`, at the host's time.
    #[inline]
    pub(crate) fn engine<T>(
        &mut self,
        f: impl FnOnce(&mut Cx<'_, SimHost>, &mut Vec<Rq>) -> T,
    ) -> T {
        let cpu = Cpu(self.host.cpu);
        let mut cx = Cx::new(&self.sys, &mut self.host, cpu, &mut self.moving);
        f(&mut cx, &mut self.rqs)
    }

    /// The executing CPU is done with a step at the host's time: act on what the engine asked for
    /// and go on with the next step, unless user code or idling has been started.
    fn step_done(&mut self, cpu: u32) {
        self.drain_requests(cpu);
        let state = &mut self.cpus[cpu as usize];
        let from = state.busy_until.max(self.now);
        let at = state.gaps.cut(from, self.host.at);
        state.busy_until = at;
        state.count_busy(at, self.warmup);
        self.host.at = at;
        self.host.profile.rest(at);
        if self.host.smt.is_some() {
            self.tell_sibling(cpu);
        }
        if self.turns.is_some() {
            self.may_end_turn(cpu);
        }
    }

    fn push_work(&mut self, cpu: u32, at: Ps) {
        let state = &mut self.cpus[cpu as usize];
        state.work_stamp = state.work_stamp.wrapping_add(1);
        let stamp = state.work_stamp;
        self.queue.push_work(at, cpu, stamp);
    }

    /// User code of `cpu`, if any runs, has run up to `at`.
    #[inline]
    fn stop_user(&mut self, cpu: u32, at: Ps) {
        if let Some(since) = self.cpus[cpu as usize].user_since.take() {
            self.charge_user(cpu, since, at);
        }
    }

    /// Charges user code, and remembers what is left of it.
    #[inline(never)]
    fn charge_user(&mut self, cpu: u32, since: Ps, at: Ps) {
        let ran = at - since;
        let counted = at.saturating_sub(since.max(self.warmup));
        self.host.profile.add_elsewhere(Place::User, counted);
        let state = &mut self.cpus[cpu as usize];
        state.count_busy(at, self.warmup);
        let Some(id) = state.curr else {
            debug_assert!(false, "user code without a task");
            return;
        };
        let advanced = self.advanced(cpu, since, at);
        // Who spins is in the course of an operation, however long that takes.
        let spins = self.tasks[id.idx()].stage == Stage::Again;
        if let Some(trace) = self
            .host
            .thread_trace
            .as_mut()
            .filter(|_| ran > 0 && !spins)
        {
            // The end of a stretch may be noticed late.
            let work = advanced.min(self.tasks[id.idx()].run_left);
            trace.user(cpu, id, (since, at), work);
        }
        let task = &mut self.tasks[id.idx()];
        if task.run_left != Ps::MAX {
            task.run_left = task.run_left.saturating_sub(advanced);
        }
        if task.fetch_left > 0 {
            // It comes first. What was fetched before the warm-up was over does not count.
            let fetched = task.fetch_left.min(advanced);
            task.fetch_left -= fetched;
            self.fetched += fetched.min(counted);
        }
        // Who is slowed down goes through less memory; a hypervisor's gaps are not told apart.
        let ran = if self.host.smt.is_some() {
            advanced
        } else {
            self.host.pace.done_on(cpu, ran)
        };
        let template = &self.workload.templates[task.template as usize];
        let bytes = u64::from(template.footprint_bytes_per_us) * ran / (1000 * NS);
        if bytes > 0 {
            let state = &mut self.cpus[cpu as usize];
            let fresh =
                state.goes_through(id, bytes, template.working_set_bytes.unwrap_or(u64::MAX));
            self.host.cache.advance_footprint(cpu, fresh);
        }
    }

    /// What was charged so far does not count.
    fn end_warmup(&mut self) {
        self.warm = true;
        // However short the part of the warm-up at its own pace was.
        self.sys.hurry_vruntime(0);
        self.host.clear_counters();
        self.sys.nohz.clear_counters();
        self.warm_stats = self.cpu_stats();
        for id in 0..self.tasks.len() {
            // Of who runs on, what comes between the end of the warm-up and this event counts.
            self.tasks[id].warm_ns = self.charged_ns(TaskId(id as u32), self.warmup);
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.host.at / NS
    }

    /// Settles the accounts at the end.
    pub(crate) fn finish(&mut self) {
        for cpu in 0..self.cpus.len() as u32 {
            // A CPU whose last step ends after the run has not come to its user code yet.
            let since = self.cpus[cpu as usize].user_since;
            if since.is_some_and(|since| since <= self.now) {
                self.stop_user(cpu, self.now);
            }
            let since = self.cpus[cpu as usize].spins_since;
            if since.is_some_and(|since| since <= self.now) {
                self.stop_spin(cpu, self.now);
            }
        }
        self.leave_requests_open();
        self.marks.elapsed_ns = (self.now / NS).saturating_sub(self.workload.warmup_ns);
        self.marks.user_ns = self.host.profile.user_ps() / NS;
        self.marks.fetch_ns = self.fetched / NS;
        self.marks.busy_ns = self.busy() / NS;
        self.marks.capacity_ns = self.marks.elapsed_ns * self.cpus.len() as u64;
        for id in 0..self.tasks.len() {
            let charged = self.charged_ns(TaskId(id as u32), self.now);
            let task = &self.tasks[id];
            self.marks.tasks.push(crate::workload::marks::TaskTime {
                template: task.template,
                cpu_ns: charged.saturating_sub(task.warm_ns),
                requests: task.ended,
                request_ns: task.ended_ns,
            });
        }
    }

    /// CPU time that a task has had by `at`, ns: what it was charged, and what it has run since.
    fn charged_ns(&mut self, id: TaskId, at: Ps) -> u64 {
        use std::sync::atomic::Ordering::Relaxed;
        if let Some(task) = &self.host.parked[id.idx()] {
            return task.se.sum_exec_runtime + self.uncharged_ns(id, at);
        }
        let shared = &self.sys.task[id.idx()];
        if shared.on_rq() == OnRq::No {
            let buried = self.tasks[id.idx()].cpu_ns;
            return on_its_way(&mut self.cpus, id).map_or(buried, |t| t.se.sum_exec_runtime);
        }
        let (cpu, slot) = (shared.cpu.load(Relaxed), shared.slot.load(Relaxed));
        let rq = &self.rqs[cpu as usize];
        let Some(se) = rq.se.get(slot as usize) else {
            return 0;
        };
        // What it has run since it was last charged counts too (`task_sched_runtime`).
        let runs = rq.curr.is_some_and(|c| c.0 == slot);
        let since = (at / NS + crate::host::BOOT_NS).saturating_sub(se.exec_start);
        se.sum_exec_runtime + if runs { since } else { 0 }
    }

    /// Path of a group.
    #[must_use]
    pub fn group_path(&self, tg: fairground::value::TgId) -> &str {
        self.workload
            .cgroups
            .get(tg.idx())
            .map_or("/", |g| g.path.as_str())
    }

    /// Busy time of all CPUs since the warm-up.
    #[must_use]
    pub fn busy(&self) -> Ps {
        self.cpus.iter().map(|c| c.busy).sum()
    }

    /// The part of it up to now: a step that is under way has been counted whole.
    #[must_use]
    pub fn busy_within(&self) -> Ps {
        let now = self.now.max(self.warmup);
        let within = |c: &CpuState| c.busy - c.busy.min(c.counted_to.saturating_sub(now));
        self.cpus.iter().map(within).sum()
    }

    /// Queues of groups on CPUs that came to be.
    #[must_use]
    pub fn nr_group_queues(&self) -> usize {
        self.rqs.iter().map(|rq| rq.cfs.len() - 1).sum()
    }
}

/// A woken task that no queue has taken in yet.
fn on_its_way(cpus: &mut [cpu::CpuState], id: TaskId) -> Option<&mut Task> {
    cpus.iter_mut()
        .flat_map(|c| {
            let sent = c.wake_list.iter_mut().map(|w| &mut w.0);
            c.leaving.iter_mut().chain(sent)
        })
        .find(|t| t.body.id == id)
}
