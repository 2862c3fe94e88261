//! How long a picked entity is protected from better-placed ones.
//!
//! Source: changelogs of `RUN_TO_PARITY` (6.6), `PREEMPT_SHORT` (6.12) and of "Fix NO_RUN_TO_PARITY
//! case" and "Limit run to parity to the min slice of enqueued entities" (Vincent Guittot, 6.17).
//! That a change of a running task renews its protection up to 6.16: recorded on 6.12.117
//! (kernel-truth-smp, `bal_nice`), see docs/fidelity-smp.md.

use crate::math::eevdf::{vruntime_before, vruntime_min};
use crate::math::weight::calc_delta_fair;
use crate::task::SchedEntity;

/// `RUN_TO_PARITY` and its history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunToParity {
    /// Never, so any better-placed entity is picked (`NO_RUN_TO_PARITY` up to 6.16). Its mark is
    /// kept as for [`OwnSlice`](Self::OwnSlice): short slices cut a turn as they do there.
    None,
    /// Only for the base slice as it is before scaling by CPUs, so that a picked entity does
    /// something before it is preempted (`NO_RUN_TO_PARITY`, 6.17 and later).
    Off,
    /// Until the deadline it had when picked is reached or it becomes ineligible
    /// (6.6 to 6.16: a mark equal to the deadline, which any new deadline ends).
    OwnSlice,
    /// For the shortest slice on the queue (6.17 and later).
    ShortestSlice,
}

impl RunToParity {
    /// Starts the protection of an entity that was picked. `quantum_ns` is the base slice before
    /// scaling, `min_slice` (ns) the shortest slice on its queue.
    #[inline]
    pub fn protect(self, se: &mut SchedEntity, quantum_ns: u64, min_slice: u64) {
        let slice = match self {
            Self::Off => quantum_ns,
            Self::None | Self::OwnSlice => u64::MAX,
            Self::ShortestSlice => min_slice,
        };
        se.vprot = se.deadline;
        if slice < se.slice_ns {
            let end = se.vruntime.wrapping_add(calc_delta_fair(slice, &se.load));
            se.vprot = vruntime_min(se.vprot, end);
        }
    }

    /// Whether an entity that runs is protected anew when it has been taken off its queue and put
    /// back, as a change of its nice value or group does.
    #[inline]
    #[must_use]
    pub const fn renews(self) -> bool {
        matches!(self, Self::None | Self::OwnSlice)
    }

    /// Whether the running entity is protected from being left for a better-placed one.
    #[inline]
    #[must_use]
    pub const fn protects(self, se: &SchedEntity) -> bool {
        !matches!(self, Self::None) && self.is_marked(se)
    }

    /// Whether the mark of its protection stands.
    const fn is_marked(self, se: &SchedEntity) -> bool {
        match self {
            Self::None | Self::OwnSlice => se.vprot == se.deadline,
            Self::Off | Self::ShortestSlice => vruntime_before(se.vruntime, se.vprot),
        }
    }

    /// Ends the protection.
    #[inline]
    pub fn cancel(self, se: &mut SchedEntity) {
        if self.is_marked(se) {
            se.vprot = match self {
                Self::None | Self::OwnSlice => se.deadline.wrapping_add(1),
                Self::Off | Self::ShortestSlice => se.vruntime,
            };
        }
    }

    /// The entity has a new weight and place; `rest` is what was left of its protection, rescaled,
    /// virtual ns. The old mark does not survive a new deadline.
    #[inline]
    pub fn reweighted(self, se: &mut SchedEntity, rest: Option<i64>) {
        match (self, rest) {
            (Self::None | Self::OwnSlice, _) => se.vprot = se.deadline.wrapping_add(1),
            (Self::Off | Self::ShortestSlice, Some(rest)) => {
                se.vprot = se.vruntime.wrapping_add(rest as u64);
            }
            (Self::Off | Self::ShortestSlice, None) => {}
        }
    }

    /// Whether the running entity, with its request unfinished, should let the queue choose again.
    /// `by_slice` = short slices preempt; `eligible` answers for the running entity.
    #[inline]
    pub fn gives_way(
        self,
        se: &SchedEntity,
        by_slice: bool,
        eligible: impl FnOnce() -> bool,
    ) -> bool {
        match self {
            Self::None | Self::OwnSlice => by_slice && !self.is_marked(se) && !eligible(),
            Self::Off | Self::ShortestSlice => !self.is_marked(se),
        }
    }

    /// Whether a woken entity with a shorter slice lifts the protection. Up to 6.16 only if it is
    /// eligible and either earlier or the running one is not eligible: `better` answers that.
    #[inline]
    pub fn is_lifted(self, better: impl FnOnce() -> bool) -> bool {
        match self {
            Self::None | Self::OwnSlice => better(),
            Self::Off | Self::ShortestSlice => true,
        }
    }

    /// Whether lifted protection is lost even if the woken entity is not picked.
    #[inline]
    #[must_use]
    pub const fn loses_at_once(self) -> bool {
        matches!(self, Self::None | Self::OwnSlice)
    }

    /// A shorter slice has joined without preempting: protection ends after that slice at most.
    #[inline]
    pub fn shorten(self, se: &mut SchedEntity, min_slice: u64) {
        if matches!(self, Self::ShortestSlice) {
            let end = se
                .vruntime
                .wrapping_add(calc_delta_fair(min_slice, &se.load));
            se.vprot = vruntime_min(se.vprot, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_protection_the_mark_still_says_whether_short_slices_cut_the_turn() {
        let mut se = SchedEntity {
            deadline: 100,
            ..SchedEntity::default()
        };
        for (parity, protected) in [(RunToParity::None, false), (RunToParity::OwnSlice, true)] {
            parity.protect(&mut se, 1, 1);
            assert_eq!(parity.protects(&se), protected);
            assert!(!parity.gives_way(&se, true, || false));
            parity.cancel(&mut se);
            assert!(parity.gives_way(&se, true, || false) && !parity.protects(&se));
        }
    }
}
