//! Which decisions have no part because of how others are set: the rules of CFS where EEVDF picks,
//! and the other way round.
//!
//! Only what nothing of a run depends on is here, by `tests/no_part.rs` of the simulator: of
//! `vruntime_base` and `buddy_rules`, for example, CFS has a remainder.

use super::{Decision, DelayDequeue, Features, PlaceNew, TtwuQueue};

/// What leaves a decision no part: `NAME=VALUE` of another one.
type Why = fn(&Features) -> Option<&'static str>;

/// Decisions, and what leaves them no part.
static NO_PART: [(&[&str], Why); 8] = [
    (
        &[
            "sched_latency_ns",
            "sched_min_granularity_ns",
            "sched_wakeup_granularity_ns",
            "gentle_fair_sleepers",
            "start_debit",
            "cfs_slice",
        ],
        eevdf,
    ),
    (
        &[
            "base_slice_ns",
            "run_to_parity",
            "place_rel_deadline",
            "yield",
            "lag_limit",
            "reweight",
            "delay_dequeue",
        ],
        cfs,
    ),
    (&["place_lag"], |f| {
        cfs(f).filter(|_| !f.load_balance.eligible_first)
    }),
    (&["place_deadline_initial"], |f| {
        let at_fork = f.place.new == PlaceNew::AtFork;
        cfs(f).or(at_fork.then_some("place_new=at-fork"))
    }),
    (&["wakeup_delayed"], |f| {
        let off = f.delay_dequeue == DelayDequeue::Off;
        let unasked = (!f.wakeup_preemption.is_on()).then_some("wakeup_preemption=off");
        cfs(f).or(off.then_some("delay_dequeue=off")).or(unasked)
    }),
    (&["lb_eligible_first"], |f| {
        (!f.place.lag).then_some("place_lag=off")
    }),
    (&["util_est_above", "util_est_update"], |f| {
        (!f.util_est).then_some("util_est=off")
    }),
    (&["ttwu_on_cpu"], |f| {
        (f.ttwu_queue == TtwuQueue::Direct).then_some("ttwu_queue=direct")
    }),
];

fn eevdf(f: &Features) -> Option<&'static str> {
    f.pick.by_deadline().then_some("pick=eevdf")
}

fn cfs(f: &Features) -> Option<&'static str> {
    (!f.pick.by_deadline()).then_some("pick=cfs")
}

impl Decision {
    /// What of `features` leaves this decision no part, as `pick=cfs`: then no value of it changes
    /// anything. `None` where it has one.
    #[must_use]
    pub fn no_part(&self, features: &Features) -> Option<&'static str> {
        let row = NO_PART.iter().find(|(names, _)| names.contains(&self.name));
        row.and_then(|(_, why)| why(features))
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{Features, decisions, find_profile};

    use super::*;

    #[test]
    fn each_row_is_of_a_decision() {
        for name in NO_PART.iter().flat_map(|(names, _)| *names) {
            assert!(decisions().iter().any(|d| d.name == *name), "{name}");
        }
    }

    #[test]
    fn each_picker_has_decisions_of_its_own() {
        let why = |profile: &str, name: &str| {
            let f = Features::of_profile(find_profile(profile).expect("known"));
            let decision = decisions().iter().find(|d| d.name == name);
            decision.expect("known").no_part(&f)
        };
        for (name, in_6_18, in_6_5) in [
            ("base_slice_ns", None, Some("pick=cfs")),
            ("place_lag", None, Some("pick=cfs")),
            ("sched_latency_ns", Some("pick=eevdf"), None),
            ("start_debit", Some("pick=eevdf"), None),
            ("pick", None, None),
            ("hz", None, None),
        ] {
            let found = (why("linux-6.18", name), why("linux-6.5", name));
            assert_eq!(found, (in_6_18, in_6_5), "{name}");
        }
    }
}
