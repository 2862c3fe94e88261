//! Choosing a CPU for a task: reads what CPUs publish, changes nothing of theirs.
//!
//! Read first: `shared/cpu.rs` and `shared/llc.rs` (the words that are looked at) and
//! `topology/domain.rs`. The way of a choice:
//!
//! ```text
//! select_task_rq ── affinity, fallback
//!   └ select_task_rq_fair
//!       ├ walk of the domains of the calling CPU   -> slow (fork, exec) or fast (wake-up)
//!       ├ idlest.rs   group by group, CPU by CPU   (sched_balance_find_dst_cpu)
//!       └ affine.rs   waker or previous CPU, then
//!         idle.rs     an idle CPU near it          (select_idle_sibling)
//! ```
//!
//! State that a choice changes: the waker's flips, the wakee's `recent_used_cpu` (up to 5.14 the
//! waker's, too), the cache's `has_idle_cores`, the memo of hierarchical load and, where scans are
//! limited by their cost, that cost. Not modelled: energy-aware placement, utilisation clamps, core
//! scheduling, preferred NUMA nodes (NUMA balancing), per-CPU kernel threads as wakers.

mod affine;
mod capacity;
mod group_stats;
mod idle;
mod idle_core;
mod idlest;
mod probe;

pub use group_stats::GroupLoad;
pub use idle_core::update_idle_core;
pub(crate) use probe::read_root_cfs;

use crate::cx::Cx;
use crate::fair::h_load::Unlocked;
use crate::fair::load::sync_entity_load_avg;
use crate::host::Host;
use crate::math::pelt::{SchedAvg, task_util_est};
use crate::place::{Access, Func, Kind, Object, sd as f, task as task_f};
use crate::shared::Relaxed;
use crate::task::{SchedEntity, Task, TaskBody, WakeKind};
use crate::topology::{SchedDomain, SdFlags};
use crate::value::{Cpu, CpuMask, GroupId, TaskId, TgId};

/// What choosing needs to know of the task.
struct Wakee<'a> {
    id: TaskId,
    tg: TgId,
    avg: &'a SchedAvg,
    allowed: &'a CpuMask,
    /// Where it is or last was (`task_cpu`).
    cpu: Cpu,
    /// It is on a queue: it execs.
    on_rq: bool,
}

/// Where the walk over the domains leads.
#[derive(Clone, Copy)]
enum Route<'a> {
    /// Into the groups of this domain.
    Slow(&'a SchedDomain),
    /// To an idle CPU near `target`; `affine`: the wakee could be pulled to the waker.
    Fast { target: Cpu, affine: bool },
    /// Nowhere: no domain balances tasks of this kind.
    Stay,
}

/// The CPU on which a woken, new or exec-ing task should run: the fair choice within the task's
/// affinity. A task that may use one CPU only gets that; a choice outside the affinity (the
/// previous CPU was taken away) becomes the first allowed CPU of that CPU's node, else of all.
///
/// `prev` is where it last ran, for a new task its parent's CPU. `waker` is the task that runs
/// on the calling CPU, `None` while that is idle, even if an interrupt wakes. A synchronous
/// waker that is exiting must say [`WakeKind::Wake`].
pub fn select_task_rq<H: Host>(
    cx: &mut Cx<H>,
    task: &mut Task,
    prev: Cpu,
    waker: Option<TaskId>,
    kind: WakeKind,
) -> Cpu {
    touch_task(cx, task.body.id, task_f::ALLOWED | task_f::CPU);
    let mut cpu = prev;
    if task.body.cpus_allowed.weight() > 1 {
        cpu = select_task_rq_fair(cx, task, prev, waker, kind);
    }
    allowed_or_fallback(cx, &task.body.cpus_allowed, cpu)
}

/// The CPU on which a task should run, by the rules of the fair class alone; see
/// [`select_task_rq`]. With `Exec` the task is the running one, or a copy of it, on its queue.
pub fn select_task_rq_fair<H: Host>(
    cx: &mut Cx<H>,
    task: &mut Task,
    prev: Cpu,
    waker: Option<TaskId>,
    kind: WakeKind,
) -> Cpu {
    cx.span(Func::SelectTaskRq, |cx| {
        match route(cx, &Wakee::of(cx, &task.se, &task.body), prev, waker, kind) {
            Route::Slow(sd) => {
                // A new task has no averages to age; one that execs is as old as its queue.
                if kind != WakeKind::Fork && !task.se.on_rq {
                    sync_entity_load_avg(cx, task, prev);
                }
                let wakee = Wakee::of(cx, &task.se, &task.body);
                idlest::find_dst_cpu(cx, sd, &wakee, prev, kind)
            }
            Route::Fast { target, affine } => {
                if cx.sys.traits.asym_capacity {
                    sync_entity_load_avg(cx, task, prev);
                }
                let wakee = Wakee::of(cx, &task.se, &task.body);
                let chosen = idle::select_idle_sibling(cx, &wakee, prev, target);
                if affine {
                    idle::remember_waking(cx, waker);
                }
                chosen
            }
            Route::Stay => prev,
        }
    })
}

/// The CPU around which a wake-up looks for an idle one: the first half of
/// [`select_task_rq_fair`], with its changes to the waker's flips. `None` if the choice goes
/// through the groups of the domains instead.
pub fn affine_target<H: Host>(
    cx: &mut Cx<H>,
    task: &Task,
    prev: Cpu,
    waker: Option<TaskId>,
    kind: WakeKind,
) -> Option<Cpu> {
    match route(cx, &Wakee::of(cx, &task.se, &task.body), prev, waker, kind) {
        Route::Fast { target, .. } => Some(target),
        Route::Slow(_) | Route::Stay => None,
    }
}

/// How busy the slow path finds a group of `sd`, without `task`.
pub fn group_load<H: Host>(
    cx: &mut Cx<H>,
    sd: &SchedDomain,
    group: GroupId,
    task: &Task,
) -> GroupLoad {
    let wakee = Wakee::of(cx, &task.se, &task.body);
    group_stats::group_load(cx, sd, group, &wakee)
}

/// Walks the domains of the calling CPU upwards, to the first that spans the previous CPU and
/// may pull the wakee here, or to the highest that balances tasks of this kind.
fn route<'a, H: Host>(
    cx: &mut Cx<'a, H>,
    wakee: &Wakee,
    prev: Cpu,
    waker: Option<TaskId>,
    kind: WakeKind,
) -> Route<'a> {
    let mut want_affine = false;
    if kind.is_wakeup() {
        affine::record_wakee(cx, waker, wakee.id);
        want_affine = !affine::wake_wide(cx, waker, wakee.id) && wakee.allowed.has(cx.cpu);
    }
    let mut slow = None;
    for sd in cx.sys.topology.domains(cx.cpu) {
        touch_domain(cx, cx.cpu, sd);
        if want_affine && sd.flags.wake_affine && sd.span.has(prev) {
            let mut target = prev;
            if cx.cpu != prev {
                let sync = kind == WakeKind::Sync;
                target = affine::wake_affine(cx, sd, wakee, prev, waker, sync);
            }
            return Route::Fast {
                target,
                affine: true,
            };
        }
        if balances(sd.flags, kind) {
            slow = Some(sd);
        } else if !want_affine {
            break;
        }
    }
    match slow {
        Some(sd) => Route::Slow(sd),
        None if kind.is_wakeup() => Route::Fast {
            target: prev,
            affine: want_affine,
        },
        None => Route::Stay,
    }
}

/// Whether tasks of this kind are spread over the groups of a domain. Wake-ups never are: the
/// kernel's `SD_BALANCE_WAKE` is set nowhere since 2.6.32 but by hand.
fn balances(flags: SdFlags, kind: WakeKind) -> bool {
    match kind {
        WakeKind::Fork => flags.balance_fork,
        WakeKind::Exec => flags.balance_exec,
        WakeKind::Wake | WakeKind::Sync => false,
    }
}

fn allowed_or_fallback<H: Host>(cx: &Cx<H>, allowed: &CpuMask, cpu: Cpu) -> Cpu {
    if allowed.has(cpu) {
        return cpu;
    }
    let places = &cx.sys.topology.places;
    let node = places[cpu.idx()].node;
    let near = allowed.iter().find(|c| places[c.idx()].node == node);
    near.or(allowed.first()).unwrap_or(cpu)
}

fn touch_task<H: Host>(cx: &mut Cx<H>, task: TaskId, fields: crate::place::Fields) {
    let object = Object {
        kind: Kind::Task,
        a: task.0,
        b: 0,
    };
    cx.touch(object, fields, Access::Read);
}

fn touch_domain<H: Host>(cx: &mut Cx<H>, cpu: Cpu, sd: &SchedDomain) {
    let object = Object {
        kind: Kind::Sd,
        a: cpu.0,
        b: sd.level,
    };
    cx.touch(object, f::FIXED, Access::Read);
}

impl<'a> Wakee<'a> {
    fn of<H: Host>(cx: &Cx<H>, se: &'a SchedEntity, body: &'a TaskBody) -> Self {
        Self {
            id: body.id,
            tg: body.tg,
            avg: &se.avg,
            allowed: &body.cpus_allowed,
            cpu: Cpu(cx.sys.task[body.id.idx()].cpu.load(Relaxed)),
            on_rq: se.on_rq,
        }
    }

    fn unlocked(&self) -> Unlocked {
        Unlocked {
            id: Some(self.id),
            tg: self.tg,
            cpu: self.cpu,
            load_avg: self.avg.load_avg,
        }
    }

    /// Whether its load is part of that of `cpu`: not if it is new, or was last elsewhere.
    fn contributes_to(&self, cpu: Cpu) -> bool {
        self.cpu == cpu && self.avg.last_update_time != 0
    }

    /// Utilisation it is expected to need.
    fn util_est(&self) -> u64 {
        task_util_est(self.avg)
    }
}
