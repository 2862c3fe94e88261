//! What a reader must be told about the decisions of a side: which are not the profile's, and what
//! became of a patch or a tunable that was asked for.

use std::collections::BTreeSet;

use fairground::policy::{Features, Patch, Profile, decisions};
use fairground_sim::workload::Workload;
use fairground_sim::workload::program::{CgroupWrite, Event};
use fairground_trace::derive::Attributes;

use crate::plan::{Case, Plan};
use crate::profile_names::version;
use crate::what::Setting;

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

/// What must be told of a kernel that is run for itself, as in `run` and at a point of a sweep:
/// `settings` are those that made the case of the plan.
pub fn of_case(plan: &Plan, case: &Case, patches: &[&Patch], settings: &[Setting]) -> Vec<String> {
    let mut notes = of_runs(plan, case, patches, settings);
    notes.extend(already_in(patches, plan.profile));
    notes
}

/// The same of what is run, whatever words asked for it: true beside any other run as well.
pub fn of_runs(plan: &Plan, case: &Case, patches: &[&Patch], settings: &[Setting]) -> Vec<String> {
    of_side(plan, case, plan.profile.name, patches, settings)
}

/// The same of one side of a comparison, with its own profile.
pub fn of_side(
    plan: &Plan,
    case: &Case,
    profile: &str,
    patches: &[&Patch],
    settings: &[Setting],
) -> Vec<String> {
    let cpus = plan.machine.topology.nr_cpus();
    let mut notes = case.workload.notes.clone();
    notes.extend(overridden(patches, &case.features));
    notes.extend(in_vain(patches, settings, &case.features));
    notes.extend(grown(settings, &case.features, cpus));
    let uses = Uses::of(&case.features, &case.workload);
    notes.extend(newer(uses, profile));
    notes.extend(slow_in_vain(case));
    notes
}

/// `--slow` where no group has a limit, on no side: nobody waits for quota.
pub fn slow_in_vain(case: &Case) -> Option<String> {
    let in_vain = case.slow_ns.is_some() && case.workload.counted_groups().is_empty();
    in_vain.then(|| SLOW_IN_VAIN.into())
}

/// The same in words.
pub const SLOW_IN_VAIN: &str =
    "--slow is about groups with a limit, and no group has one: it changes nothing";

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

/// Decisions that were set, by name or by a patch, and that have no part because of others: whom
/// else to blame if nothing changes.
pub fn in_vain(patches: &[&Patch], settings: &[Setting], features: &Features) -> Vec<String> {
    let by_patch = patches.iter().flat_map(|p| p.sets).map(|(name, _)| *name);
    let by_name = settings.iter().map(|s| s.name.as_str());
    let set: BTreeSet<&str> = by_patch.chain(by_name).collect();
    let why = |name: &&str| no_part(name, features);
    let vain = set.iter().filter_map(|name| Some((name, why(name)?)));
    vain.map(|(name, why)| {
        format!("{name} has no part under {why}: no value of it changes anything")
    })
    .collect()
}

fn no_part(name: &str, features: &Features) -> Option<&'static str> {
    let decision = decisions().iter().find(|d| d.name == name)?;
    decision.no_part(features)
}

/// Tunables that were set and grow with the number of CPUs: the kernel's debugfs shows them grown,
/// here as in its source they are given before.
pub fn grown(settings: &[Setting], features: &Features, cpus: usize) -> Vec<String> {
    let mut in_effect = features.clone();
    in_effect.tunables = features.tunables.scaled(cpus);
    let ms = |ns: u64| ns as f64 / 1e6;
    let set = SCALED
        .iter()
        .filter(|(name, _)| settings.iter().any(|s| s.name == *name))
        .filter(|(name, _)| no_part(name, features).is_none());
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

/// Which things a run has that only newer kernels had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    burst: bool,
    idle_groups: bool,
    slices: bool,
    lazy: bool,
}

impl Uses {
    /// Those of a workload under these decisions.
    pub fn of(features: &Features, workload: &Workload) -> Self {
        let groups = &workload.cgroups;
        let written = |write: CgroupWrite| workload.events.iter().any(|e| e.write == write);
        let bursts = |e: &Event| matches!(e.write, CgroupWrite::Burst(ns) if ns > 0);
        Self {
            burst: groups.iter().any(|g| g.burst_ns > 0) || workload.events.iter().any(bursts),
            idle_groups: groups.iter().any(|g| g.idle) || written(CgroupWrite::Idle(true)),
            slices: workload.templates.iter().any(|t| t.slice_ns.is_some()),
            lazy: features.preempt.is_lazy(),
        }
    }

    /// Those of a recording with what is known besides.
    pub fn of_recording(features: &Features, known: &Attributes) -> Self {
        let groups = &known.cgroups;
        Self {
            burst: groups.iter().any(|g| g.burst_us.is_some_and(|us| us > 0)),
            idle_groups: groups.iter().any(|g| g.idle),
            slices: known
                .threads
                .iter()
                .any(|t| t.slice_us.is_some_and(|us| us > 0)),
            lazy: features.preempt.is_lazy(),
        }
    }
}

/// What the run has and the kernel of the profile had not: files of groups, slices of tasks, a mode
/// of preemption. They work all the same, as in the first kernel that had them.
pub fn newer(uses: Uses, profile: &str) -> Vec<String> {
    let used = [
        (uses.burst, (5, 14), "cpu.max.burst"),
        (uses.idle_groups, (5, 15), "cpu.idle"),
        (uses.slices, (6, 12), "a slice of a task's own"),
        (uses.lazy, (6, 13), "preempt=lazy"),
    ];
    let kernel = version(profile).unwrap_or_default();
    let newer = used
        .into_iter()
        .filter(|(used, since, _)| *used && kernel < *since);
    newer
        .map(|(_, (major, minor), what)| {
            format!("{what} came with Linux {major}.{minor}, {profile} is run with it all the same")
        })
        .collect()
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
    fn what_has_no_part_is_told_instead_of_how_it_grows() {
        let set = [setting("sched_latency_ns"), setting("base_slice_ns")];
        for (pick, vain, grows) in [
            ("eevdf", "sched_latency_ns", "base_slice_ns"),
            ("cfs", "base_slice_ns", "sched_latency_ns"),
        ] {
            let mut features = Features::default();
            assert!(features.set("pick", pick).is_ok());
            let told = in_vain(&[], &set, &features);
            assert_eq!(told.len(), 1);
            assert!(told[0].starts_with(&format!("{vain} has no part under pick={pick}")));
            let grown = grown(&set, &features, 8);
            assert!(grown.len() == 1 && grown[0].starts_with(grows), "{grown:?}");
        }
        let cfs = Features::of_profile(find_profile("linux-6.5").unwrap());
        let patch = find_patch("wakeup-past-delayed").unwrap();
        assert!(in_vain(&[patch], &[], &cfs)[0].starts_with("wakeup_delayed has no part"));
    }

    #[test]
    fn what_the_kernel_had_not_is_told() {
        let of = |f: &Features, w: &Workload, profile| newer(Uses::of(f, w), profile);
        let mut features = Features::default();
        let mut workload = Workload::new("w", Vec::new());
        assert!(of(&features, &workload, "linux-5.8").is_empty());
        workload.cgroups[0].burst_ns = 1000;
        assert_eq!(of(&features, &workload, "linux-5.8").len(), 1);
        assert!(of(&features, &workload, "linux-6.12-lts").is_empty());
        assert!(features.set("preempt", "lazy").is_ok());
        assert!(of(&features, &workload, "linux-6.12-lts")[0].contains("came with Linux 6.13"));
        for profile in fairground::policy::PROFILES {
            assert!(version(profile.name) > Some((3, 0)), "{}", profile.name);
        }
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

    #[test]
    fn a_recording_with_groups_of_newer_kernels_is_told() {
        let text = "[[cgroup]]\npath = \"/web\"\n\"cpu.max\" = \"20000 100000\"\n";
        let mut known = Attributes::parse(text).unwrap();
        let told = |known: &Attributes| {
            let uses = Uses::of_recording(&Features::default(), known);
            newer(uses, "linux-5.8")
        };
        assert!(told(&known).is_empty());
        known.cgroups[0].burst_us = Some(5);
        assert!(told(&known)[0].starts_with("cpu.max.burst came with Linux 5.14"));
    }
}
