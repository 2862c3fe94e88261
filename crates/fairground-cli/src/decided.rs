//! What a reader must be told about the decisions of a side: which are not the profile's, and what
//! became of a patch or a tunable that was asked for.

use fairground::policy::{Features, Patch, Profile, decisions};

use crate::args::Setting;

/// A tunable's value, ns.
type Value = fn(&Features) -> u64;

/// The tunables that grow with the number of CPUs: with the value in effect, ns.
const SCALED: [(&str, Value); 4] = [
    ("base_slice_ns", |f| f.tunables.base_slice_ns),
    ("sched_latency_ns", |f| f.tunables.latency_ns),
    ("sched_min_granularity_ns", |f| {
        f.tunables.min_granularity_ns
    }),
    ("sched_wakeup_granularity_ns", |f| {
        f.tunables.wakeup_granularity_ns
    }),
];

/// The decisions that are not the profile's: `name = value (profile: value)`.
pub fn beside_profile(features: &Features, profile: &Profile) -> Vec<String> {
    let before = Features::of_profile(profile);
    let changed = decisions().iter().filter_map(|d| {
        let [was, is] = [&before, features].map(|f| (d.get)(f));
        (was != is).then(|| format!("{} = {is} ({}: {was})", d.name, profile.name))
    });
    changed.collect()
}

/// Patches that the kernel of a run has by its profile, so that naming them changed nothing.
pub fn already_in(patches: &[&Patch], profile: &Profile) -> Vec<String> {
    let without = Features::of_profile(profile);
    let had = patches.iter().filter(|patch| {
        let mut with = without.clone();
        patch.apply(&mut with);
        with == without
    });
    had.map(|p| {
        format!(
            "{} is in {} already, so naming it changes nothing",
            p.name, profile.name
        )
    })
    .collect()
}

/// Decisions of a patch that `--set` took back.
pub fn overridden(patches: &[&Patch], features: &Features) -> Vec<String> {
    let value = |name: &str| {
        let found = decisions().iter().find(|d| d.name == name);
        found.map(|d| (d.get)(features)).unwrap_or_default()
    };
    let all = patches
        .iter()
        .flat_map(|p| p.sets.iter().map(move |set| (p, set)));
    let other = all.filter(|(_, (name, wants))| value(name) != *wants);
    other
        .map(|(patch, (name, wants))| {
            let is = value(name);
            format!(
                "{} sets {name} = {wants}, but --set makes it {is}",
                patch.name
            )
        })
        .collect()
}

/// Tunables that were set and grow with the number of CPUs: the kernel's debugfs shows them grown,
/// here as in its source they are given before.
pub fn grown(settings: &[Setting], features: &Features, cpus: usize) -> Vec<String> {
    let mut in_effect = features.clone();
    in_effect.tunables = features.tunables.scaled(cpus);
    let ms = |ns: u64| ns as f64 / 1e6;
    let set = SCALED
        .iter()
        .filter(|(name, _)| settings.iter().any(|s| s.name == *name));
    let notes = set.filter_map(|(name, get)| {
        let [given, grown] = [get(features), get(&in_effect)];
        (given != grown).then(|| {
            format!(
                "{name} is given before scaling: {} ms is {} ms on {cpus} CPUs, as debugfs shows \
                 it (--set tunable_scaling=none takes it as it is)",
                ms(given),
                ms(grown)
            )
        })
    });
    notes.collect()
}

#[cfg(test)]
mod tests {
    use fairground::policy::{find_patch, find_profile};

    use super::*;

    fn setting(name: &str) -> Setting {
        Setting {
            name: name.into(),
            value: String::new(),
        }
    }

    #[test]
    fn a_slice_is_told_as_debugfs_shows_it() {
        let mut features = Features::default();
        assert!(features.set("base_slice_ns", "3000000").is_ok());
        let notes = grown(&[setting("base_slice_ns")], &features, 8);
        assert!(notes[0].contains("3 ms is 12 ms on 8 CPUs"), "{notes:?}");
        assert!(grown(&[setting("hz")], &features, 8).is_empty());
        assert!(features.set("tunable_scaling", "none").is_ok());
        assert!(grown(&[setting("base_slice_ns")], &features, 8).is_empty());
    }

    #[test]
    fn a_patch_that_the_profile_has_or_that_was_taken_back_is_told() {
        let patch = find_patch("tg-load-avg-ratelimit").unwrap();
        let new = find_profile("linux-6.18").unwrap();
        let old = find_profile("linux-6.5").unwrap();
        assert_eq!(already_in(&[patch], new).len(), 1);
        assert!(already_in(&[patch], old).is_empty());
        let mut features = Features::of_profile(old);
        patch.apply(&mut features);
        assert!(overridden(&[patch], &features).is_empty());
        assert_eq!(beside_profile(&features, old).len(), 1);
        assert!(features.set("tg_load_avg_period_ns", "5").is_ok());
        assert!(overridden(&[patch], &features)[0].contains("makes it 5"));
    }
}
