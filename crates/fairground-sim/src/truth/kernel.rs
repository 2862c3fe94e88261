//! The kernel of a case: the profile with what the case says of its machine, or why not.

use fairground::policy::{Features, Preemption, find_profile};
use fairground::shared::BANDWIDTH_SLICE;

use super::case::MachineWords;
use crate::machine_file::Machine;

/// The profile of the recorded kernel.
pub const PROFILE: &str = "linux-6.18";

/// The profile as it is.
///
/// # Errors
/// When there is no such profile.
pub(super) fn profile() -> Result<Features, String> {
    let profile = find_profile(PROFILE).ok_or("the profile is missing")?;
    Ok(Features::of_profile(profile))
}

/// The kernel that `words` describe, on `machine`. Nothing that they say is passed over.
///
/// # Errors
/// The key, and what of it cannot be simulated.
pub(super) fn features(words: &MachineWords, machine: &Machine) -> Result<Features, String> {
    let mut features = profile()?;
    super::sched_features::apply(&mut features, &words.sched_features);
    let cpus = machine.topology.nr_cpus();
    // The recorded kernel's mode, unless the case names another one and not this.
    let preemption = words.preemption.to_lowercase();
    let modes = [
        ("none", Preemption::None),
        ("lazy", Preemption::Lazy),
        ("voluntary", Preemption::Voluntary),
        ("full", Preemption::Full),
    ];
    let named = modes.iter().find(|(word, _)| preemption.contains(word));
    features.preempt = named.map_or(Preemption::None, |(_, mode)| *mode);
    if words.cpus as usize != cpus {
        let (id, theirs) = (&machine.id, words.cpus);
        return Err(format!(
            "machine.cpus: {id} has {cpus} CPUs, the case {theirs}"
        ));
    }
    if words.smt && machine.topology.cpus.iter().all(|cpu| cpu.thread == 0) {
        let id = &machine.id;
        return Err(format!("machine.smt: the CPUs of {id} are no hyperthreads"));
    }
    if words.autogroup {
        return Err("machine.autogroup: autogroups are not modelled, expected false".into());
    }
    if let Some(hz) = words.hz
        && features.set("hz", &hz.to_string()).is_err()
    {
        return Err(format!("machine.hz: {hz}, expected 100, 250, 300 or 1000"));
    }
    if let Some(ns) = words.tick_ns
        && ns != features.tick_ns()
    {
        let (hz, tick) = (features.hz, features.tick_ns());
        return Err(format!(
            "machine.tick_ns: {ns}, but at {hz} Hz a tick is {tick} ns"
        ));
    }
    if let Some(ns) = words.base_slice_ns {
        // The kernel shows it scaled by the number of CPUs.
        let by = features.tunables.factor(cpus);
        if !(100_000..=100_000_000).contains(&ns) || ns % by != 0 {
            return Err(format!(
                "machine.base_slice_ns: {ns}, expected 100000 to 100000000, a multiple of {by}"
            ));
        }
        features.tunables.base_slice_ns = ns / by;
    }
    if let Some(us) = words.cfs_bandwidth_slice_us
        && us * 1000 != BANDWIDTH_SLICE
    {
        let ours = BANDWIDTH_SLICE / 1000;
        return Err(format!(
            "machine.cfs_bandwidth_slice_us: {us}, the engine has {ours}"
        ));
    }
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> MachineWords {
        MachineWords {
            cpus: 2,
            ..MachineWords::default()
        }
    }

    fn of(words: &MachineWords) -> Result<Features, String> {
        let machine = Machine::builtin(crate::truth::simulate::MACHINE).expect("a machine");
        features(words, &machine)
    }

    #[test]
    fn what_a_case_says_of_its_kernel_holds() {
        let words = MachineWords {
            hz: Some(1000),
            tick_ns: Some(1_000_000),
            base_slice_ns: Some(6_000_000),
            cfs_bandwidth_slice_us: Some(5000),
            ..words()
        };
        let features = of(&words).expect("a kernel");
        assert_eq!(features.hz, 1000);
        assert_eq!(features.tunables.scaled(2).base_slice_ns, 6_000_000);
    }

    #[test]
    fn the_mode_of_preemption_is_none_unless_the_case_names_another() {
        for (says, mode) in [
            ("", Preemption::None),
            (
                "PREEMPT_DYNAMIC, default mode none (no lazy preemption)",
                Preemption::None,
            ),
            ("PREEMPT_VOLUNTARY", Preemption::Voluntary),
            ("PREEMPT_LAZY", Preemption::Lazy),
            ("PREEMPT_DYNAMIC, preempt=full", Preemption::Full),
        ] {
            let words = MachineWords {
                preemption: says.into(),
                ..words()
            };
            assert_eq!(of(&words).expect("a kernel").preempt, mode, "{says}");
        }
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_with_its_key() {
        type Change = fn(&mut MachineWords);
        let changes: [(&str, Change); 9] = [
            ("cpus", |w| w.cpus = 4),
            ("smt", |w| w.smt = true),
            ("autogroup", |w| w.autogroup = true),
            ("hz", |w| w.hz = Some(0)),
            ("hz", |w| w.hz = Some(2000)),
            ("tick_ns", |w| w.tick_ns = Some(4_000_000)),
            ("base_slice_ns", |w| w.base_slice_ns = Some(0)),
            ("base_slice_ns", |w| w.base_slice_ns = Some(1_400_001)),
            ("cfs_bandwidth_slice_us", |w| {
                w.cfs_bandwidth_slice_us = Some(10_000)
            }),
        ];
        for (key, change) in changes {
            let mut words = words();
            change(&mut words);
            let error = of(&words).expect_err(key);
            assert!(error.starts_with(&format!("machine.{key}: ")), "{error}");
        }
    }
}
