//! What a task gives up that yields, where deadlines decide.
//!
//! Sources: "sched/fair: Implement an EEVDF-like scheduling policy", Peter Zijlstra, 2023, for 6.6;
//! "sched/fair: Forfeit vruntime on yield", Fernand Sieber, 2025, for 6.19 and the stable kernels
//! since 6.18.2.

use crate::math::weight::calc_delta_fair;
use crate::task::SchedEntity;

/// `yield_task_fair`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Yielding {
    /// Its deadline goes back by a request, whether it is eligible or not. An eligible task that
    /// nobody else's deadline beats goes on (6.6 to 6.18 as released).
    Deadline,
    /// If it is eligible, it is placed as if it had run up to its deadline (6.18.2 and later).
    Vruntime,
}

impl Yielding {
    /// The running entity yields.
    #[inline]
    pub fn give_up(self, se: &mut SchedEntity, eligible: bool) {
        match self {
            Self::Vruntime if !eligible => return,
            Self::Vruntime => se.vruntime = se.deadline,
            Self::Deadline => {}
        }
        let request = calc_delta_fair(se.slice_ns, &se.load);
        se.deadline = se.deadline.wrapping_add(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Task;
    use crate::value::{TaskId, TgId};

    fn yielded(rule: Yielding, eligible: bool) -> (u64, u64) {
        let mut se = Task::new(TaskId(0), TgId::ROOT, 3_000_000).se;
        (se.vruntime, se.deadline) = (1_000_000, 4_000_000);
        rule.give_up(&mut se, eligible);
        (se.vruntime, se.deadline)
    }

    #[test]
    fn the_deadline_alone_went_back_whoever_was_ahead() {
        for eligible in [true, false] {
            assert_eq!(
                yielded(Yielding::Deadline, eligible),
                (1_000_000, 7_000_000)
            );
        }
        assert_eq!(yielded(Yielding::Vruntime, true), (4_000_000, 7_000_000));
        assert_eq!(yielded(Yielding::Vruntime, false), (1_000_000, 4_000_000));
    }
}
