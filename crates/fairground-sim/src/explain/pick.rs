//! The queues of a CPU, as the next choice finds them.

use fairground::math::eevdf::{AvgVruntime, entity_eligible, entity_key};
use fairground::math::weight::scale_load_down;
use fairground::rq::Rq;
use fairground::value::{CfsId, SeId, TaskId, TgId};

use crate::machine::Sim;

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its group.
    pub group: TgId,
    /// It has used its quota.
    pub throttled: bool,
    /// Queued entities, in the order in which they are picked if eligible: earliest deadline first,
    /// or least virtual run time (CFS).
    pub entities: Vec<Entity>,
}

/// A candidate. Times are virtual, ns at nice 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// The task; `None`: a group.
    pub task: Option<TaskId>,
    /// The group that it stands for.
    pub group: Option<TgId>,
    /// It runs, or holds who runs.
    pub current: bool,
    /// It sleeps, but has to stay until its lag is spent.
    pub delayed: bool,
    /// It goes to sleep (or all of its group do), so it is not among those that are chosen from.
    pub leaves: bool,
    /// It has received no more than its due.
    pub eligible: bool,
    /// What it is owed: the queue's virtual time less its own.
    pub lag_ns: i64,
    /// Its deadline, from the queue's virtual time on.
    pub deadline_ns: i64,
    /// Length of its request.
    pub slice_ns: u64,
    /// Weight: 1024 is nice 0.
    pub weight: u64,
}

/// Whether an entity has received no more than its due on its queue.
pub(crate) fn eligible(rq: &Rq, id: SeId) -> bool {
    let own = &rq.se[id.idx()];
    let v0 = rq.cfs[own.cfs_rq.idx()].zero_vruntime;
    let mut all = AvgVruntime::default();
    for se in rq
        .se
        .iter()
        .filter(|se| se.on_rq && se.cfs_rq == own.cfs_rq)
    {
        all.add(entity_key(se.vruntime, v0), scale_load_down(se.load.weight));
    }
    entity_eligible(&all, v0, own.vruntime)
}

/// Entities on a queue.
fn members(rq: &Rq, id: CfsId) -> impl Iterator<Item = SeId> + '_ {
    let on = move |s: &SeId| rq.se[s.idx()].on_rq && rq.se[s.idx()].cfs_rq == id;
    (0..rq.se.len() as u32).map(SeId).filter(on)
}

/// Whether an entity leaves its queue as `leaver` goes to sleep. Who has had more than its due
/// stays for a while, where sleepers `delay`; so does a group that has become empty before.
fn leaves(rq: &Rq, id: SeId, leaver: TaskId, delay: bool) -> bool {
    let empties = match rq.se[id.idx()].my_q {
        None => rq.task_id(id) == leaver,
        Some(q) => {
            let mut own = members(rq, q).peekable();
            own.peek().is_some() && own.all(|own| leaves(rq, own, leaver, delay))
        }
    };
    empties && (!delay || eligible(rq, id))
}

/// All queues of a CPU that have anybody, the root first. Virtual time is that of who is left when
/// `leaver`, who runs, has gone to sleep.
pub fn levels(sim: &Sim<'_>, cpu: u32, leaver: Option<TaskId>) -> Vec<Level> {
    let rq = &sim.rqs[cpu as usize];
    let delay = sim.sys.features.delays_dequeue();
    let leaves = |id: SeId| leaver.is_some_and(|leaver| leaves(rq, id, leaver, delay));
    let mut levels = Vec::new();
    let mut todo = vec![CfsId(0)];
    while let Some(id) = todo.pop() {
        let queue = &rq.cfs[id.idx()];
        let members: Vec<SeId> = members(rq, id).collect();
        let mut all = AvgVruntime::default();
        for slot in members.iter().filter(|slot| !leaves(**slot)) {
            let se = &rq.se[slot.idx()];
            let key = entity_key(se.vruntime, queue.zero_vruntime);
            all.add(key, scale_load_down(se.load.weight));
        }
        let now = queue.zero_vruntime.wrapping_add_signed(all.mean_key());
        let mut entities: Vec<Entity> = Vec::new();
        for slot in members {
            let se = &rq.se[slot.idx()];
            let own = se.my_q.map(|q| rq.cfs[q.idx()].tg);
            todo.extend(se.my_q);
            entities.push(Entity {
                task: own.is_none().then(|| rq.task_id(slot)),
                group: own,
                current: queue.curr == Some(slot),
                delayed: se.sched_delayed,
                leaves: leaves(slot),
                eligible: entity_eligible(&all, queue.zero_vruntime, se.vruntime),
                lag_ns: now.wrapping_sub(se.vruntime) as i64,
                deadline_ns: se.deadline.wrapping_sub(now) as i64,
                slice_ns: se.slice_ns,
                weight: scale_load_down(se.load.weight),
            });
        }
        let by_deadline = sim.sys.features.pick.by_deadline();
        entities.sort_by_key(|e| {
            let first = if by_deadline {
                e.deadline_ns
            } else {
                -e.lag_ns
            };
            (first, e.task, e.group)
        });
        if !entities.is_empty() {
            levels.push(Level {
                group: queue.tg,
                throttled: queue.throttled,
                entities,
            });
        }
    }
    levels
}
