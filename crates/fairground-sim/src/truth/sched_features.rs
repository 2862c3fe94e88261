//! Features of the recorded kernel that were switched (`/sys/kernel/debug/sched/features`).

use fairground::policy::Features;

/// What a feature that is not as by default means: its name as the file has it, and the decision it
/// sets. Of two that set one decision the later one counts.
const SWITCHED: [(&str, &str, &str); 18] = [
    ("HRTICK", "hrtick", "slice"),
    ("NO_RUN_TO_PARITY", "run_to_parity", "off"),
    ("NO_DELAY_ZERO", "delay_dequeue", "keep"),
    ("NO_DELAY_DEQUEUE", "delay_dequeue", "off"),
    ("NO_PREEMPT_SHORT", "wakeup_preemption", "on"),
    ("NO_WAKEUP_PREEMPTION", "wakeup_preemption", "off"),
    ("NEXT_BUDDY", "next_buddy", "on"),
    ("NO_PICK_BUDDY", "next_buddy", "off"),
    ("NO_PLACE_LAG", "place_lag", "off"),
    ("NO_PLACE_DEADLINE_INITIAL", "place_deadline_initial", "off"),
    ("NO_PLACE_REL_DEADLINE", "place_rel_deadline", "off"),
    ("NO_UTIL_EST", "util_est", "off"),
    ("NO_TTWU_QUEUE", "ttwu_queue", "direct"),
    ("NO_WA_IDLE", "wa_idle", "off"),
    ("NO_WA_WEIGHT", "wa_weight", "off"),
    ("NO_WA_BIAS", "wa_bias", "off"),
    ("NO_NI_RANDOM", "newidle_proportional", "off"),
    ("NO_SIS_UTIL", "scan_budget", "all"),
];

/// The decision and its value that a feature stands for if it is not as by default.
#[must_use]
pub fn decision_of(feature: &str) -> Option<(&'static str, &'static str)> {
    let row = SWITCHED.iter().find(|(name, ..)| *name == feature);
    row.map(|(_, decision, value)| (*decision, *value))
}

/// Sets what `words`, the file's content or any other text, says of features. Those that are no
/// decision here are passed over.
pub(super) fn apply(features: &mut Features, words: &str) {
    let is_named = |name: &str| words.split_whitespace().any(|word| word == name);
    for (name, decision, value) in SWITCHED {
        if is_named(name) {
            let done = features.set(decision, value);
            debug_assert_eq!(done, Ok(()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Features {
        let mut features = Features::default();
        apply(&mut features, words);
        features
    }

    #[test]
    fn every_row_changes_the_default() {
        for (name, decision, value) in SWITCHED {
            let mut expected = Features::default();
            expected.set(decision, value).expect("a decision");
            assert_ne!(expected, Features::default(), "{name}");
            assert_eq!(of(name), expected, "{name}");
        }
    }

    #[test]
    fn the_stronger_of_two_counts_and_defaults_change_nothing() {
        let both = of("NO_WAKEUP_PREEMPTION NO_PREEMPT_SHORT");
        assert_eq!(both, of("NO_WAKEUP_PREEMPTION"));
        assert_eq!(of("PLACE_LAG RUN_TO_PARITY NO_HRTICK"), Features::default());
        assert_eq!(of("see machine.json"), Features::default());
    }
}
