//! Slots of a run queue: where tasks and group entities are kept.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::{CfsRq, Rq};
use crate::shared::TgCpu;
use crate::task::{SchedEntity, Task, TaskBody};
use crate::value::{CfsId, SeId, TgId};

impl Rq {
    /// Makes room, so that holding up to `tasks` tasks at once allocates nothing: those of all
    /// groups, whether they run, wait, sleep with a debt or wait for quota. The queue of a group is
    /// not counted; it allocates when it is made
    /// ([`online_group`](crate::sched::online_group)), and leaves the tasks their room. To balance
    /// without allocating, [`Cx::moving`](crate::cx::Cx::moving) has room too.
    pub fn reserve(&mut self, tasks: usize) {
        self.reserved = self.reserved.max(tasks);
        // Each queue but the root has an entity.
        let slots = self.reserved + self.cfs.len() - 1;
        let more = slots.saturating_sub(self.se.len());
        self.se.reserve(more);
        self.body.reserve(more);
        self.free.reserve(slots.saturating_sub(self.free.len()));
        self.lb_order.reserve(slots);
        if let Some(last) = slots.checked_sub(1) {
            self.nodes.ensure(last as u32);
        }
    }

    /// Takes a task into keeping. The caller enqueues it.
    pub fn take_in(&mut self, task: Task) -> SeId {
        self.new_slot(task.se, Some(task.body))
    }

    /// Gives a task, which is on no queue, out of keeping; `None` if the slot holds no task.
    #[must_use]
    pub fn give_out(&mut self, slot: SeId) -> Option<Task> {
        let body = self.body[slot.idx()].take()?;
        let se = core::mem::replace(&mut self.se[slot.idx()], SchedEntity::nobody());
        debug_assert!(!se.on_rq, "a queued task cannot leave");
        self.free.push(slot);
        Some(Task { se, body })
    }

    /// Runs `f` with an entity in a slot for so long, for code that works on slots; nobody else
    /// sees it there. It is on no queue, before and after.
    pub(crate) fn with_guest(
        &mut self,
        se: SchedEntity,
        f: impl FnOnce(&mut Self, SeId),
    ) -> SchedEntity {
        let slot = self.new_slot(se, None);
        f(self, slot);
        self.free.push(slot);
        core::mem::replace(&mut self.se[slot.idx()], SchedEntity::nobody())
    }

    /// The queue of `tg` on this CPU, if anything of the group was ever here.
    #[inline]
    #[must_use]
    pub fn cfs_of(&self, tg: TgId) -> Option<CfsId> {
        self.cfs_of_tg.get(tg.idx()).copied().flatten()
    }

    /// Enters a new queue for `tg`, whose words are `words`, below `parent`, with an entity `se`
    /// that stands for it. `fair/group.rs` calls this once for each group and CPU.
    pub fn add_cfs(
        &mut self,
        tg: TgId,
        words: Arc<TgCpu>,
        parent: CfsId,
        mut se: SchedEntity,
    ) -> CfsId {
        debug_assert!(self.cfs_of(tg).is_none());
        let id = CfsId(self.cfs.len() as u32);
        se.cfs_rq = parent;
        se.parent = self.cfs[parent.idx()].se;
        se.my_q = Some(id);
        se.name = tg.0;
        se.depth = se.parent.map_or(0, |p| self.se[p.idx()].depth + 1);
        let slot = self.new_slot(se, None);
        self.cfs.push(CfsRq::new(tg, words, parent, slot));
        if self.cfs_of_tg.len() <= tg.idx() {
            self.cfs_of_tg.resize(tg.idx() + 1, None);
        }
        self.cfs_of_tg[tg.idx()] = Some(id);
        if self.reserved > 0 {
            self.reserve(self.reserved);
        }
        id
    }

    fn new_slot(&mut self, se: SchedEntity, body: Option<Box<TaskBody>>) -> SeId {
        if let Some(slot) = self.free.pop() {
            self.se[slot.idx()] = se;
            self.body[slot.idx()] = body;
            return slot;
        }
        let slot = SeId(self.se.len() as u32);
        self.se.push(se);
        self.body.push(body);
        self.nodes.ensure(slot.0);
        slot
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::Features;
    use crate::testing::Bench;
    use crate::value::TgId;

    /// Else a task that comes later would have to allocate a slot.
    #[test]
    fn queues_of_groups_take_no_room_of_tasks() {
        let mut bench = Bench::new(1, Features::default());
        let early = bench.sys.add_group(TgId::ROOT);
        let late = bench.sys.add_group(early);
        bench.start(0, early);
        bench.rqs[0].reserve(100);
        bench.start(0, late);
        let room = |bench: &Bench| {
            let rq = &bench.rqs[0];
            [rq.se.capacity(), rq.body.capacity(), rq.free.capacity()]
        };
        let reserved = room(&bench);
        assert!(reserved.iter().all(|slots| *slots >= 102), "{reserved:?}");
        for n in 2..100 {
            bench.start(0, if n % 2 == 0 { early } else { late });
        }
        assert_eq!((bench.rqs[0].se.len(), room(&bench)), (102, reserved));
    }
}
