//! Where an entity on a queue is after a change of its weight.
//!
//! Sources: changelogs of "sched/eevdf: Fix vruntime adjustment on reweight" (Abel Wu, 2023, 6.7),
//! "sched/fair: Fix EEVDF entity placement bug causing scheduling lag" (Peter Zijlstra, 6.13) and
//! of its revert (19 February 2026), which says what was wrong: placing takes the mean for that of
//! the others, but a running entity is in it.

/// What a change of weight does to the place of a queued entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reweight {
    /// Lag and the rest of the request are kept as service, measured from the queue's virtual time,
    /// which stays: `v' = V - (V - v) w / w'` and `d' = V + (d - V) w / w'` (6.7 to 6.12, and since
    /// the revert).
    KeepsMean,
    /// It is placed as one that joins (6.13 to 6.18.44). A running entity is in the mean already,
    /// so its lag grows by what placing makes up for: a light entity beside a heavy one that runs
    /// while its weight changes again and again has less than its share.
    AsJoining,
}
