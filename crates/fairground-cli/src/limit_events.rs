//! What a scenario, or a simulated run that is replayed, writes to files of groups meanwhile: in
//! results, and beside what `--set` and `--over` write to the same files.

use std::collections::{BTreeMap, BTreeSet};

use fairground_report::{BurstFrom, LimitFrom, Run, WeightFrom, time_text};
use fairground_sim::workload::Workload;
use fairground_sim::workload::program::{Cgroup, CgroupWrite, Event};

use crate::group_files::{GroupFile, max_text, paths, weight_text};

/// Most writes of a scenario that notes are about.
const NOTES_MAX: usize = 4;

/// Tells the groups of runs which limits, bursts and weights they had in the measured time, where
/// these changed.
pub fn tell(workload: &Workload, runs: &mut [Run]) {
    let (changes, weights) = (changes(workload), weights(workload));
    let bursts = bursts(workload);
    for group in runs.iter_mut().flat_map(|run| &mut run.groups) {
        if let Some(limits) = changes.get(&*group.path) {
            group.limits.clone_from(limits);
        }
        if let Some(bursts) = bursts.get(&*group.path) {
            group.bursts.clone_from(bursts);
        }
        if let Some(weights) = weights.get(&*group.path) {
            group.weights.clone_from(weights);
        }
    }
}

/// The weights of each group with more than one, by path.
fn weights(workload: &Workload) -> BTreeMap<&str, Vec<WeightFrom>> {
    let mut all: BTreeMap<&str, Vec<WeightFrom>> = BTreeMap::new();
    let mut now: Vec<(u64, bool)> = workload
        .cgroups
        .iter()
        .map(|g| (g.shares, g.idle))
        .collect();
    let text = |(shares, idle): (u64, bool)| match idle {
        true => "idle".to_string(),
        false => weight_text(shares),
    };
    for event in &workload.events {
        let group = event.cgroup as usize;
        let before = text(now[group]);
        match event.write {
            CgroupWrite::Shares(shares) => now[group].0 = shares,
            // A group that is no longer idle has the weight of a new one.
            CgroupWrite::Idle(idle) if idle != now[group].1 => {
                now[group] = (Cgroup::new("", 0).shares, idle);
            }
            _ => continue,
        }
        let weight = text(now[group]);
        let first = |from_ns, weight| WeightFrom { from_ns, weight };
        let of_group = all.entry(&workload.cgroups[group].path);
        let weights = of_group.or_insert_with(|| vec![first(0, before)]);
        if weights.last().is_none_or(|last| last.weight != weight) {
            weights.push(first(event.at_ns, weight));
        }
    }
    measured(all, workload, |weight| weight.from_ns)
}

/// The limits of each group with more than one, by path.
fn changes(workload: &Workload) -> BTreeMap<&str, Vec<LimitFrom>> {
    let mut all: BTreeMap<&str, Vec<LimitFrom>> = BTreeMap::new();
    for event in &workload.events {
        let CgroupWrite::Max {
            quota_ns,
            period_ns,
        } = event.write
        else {
            continue;
        };
        let group = &workload.cgroups[event.cgroup as usize];
        let limits = all.entry(&group.path).or_insert_with(|| {
            vec![LimitFrom {
                from_ns: 0,
                max: max_text(group.quota_ns, group.period_ns),
            }]
        });
        let max = max_text(quota_ns, period_ns);
        if limits.last().is_none_or(|last| last.max != max) {
            limits.push(LimitFrom {
                from_ns: event.at_ns,
                max,
            });
        }
    }
    measured(all, workload, |limit| limit.from_ns)
}

/// The bursts of each group with more than one, by path.
fn bursts(workload: &Workload) -> BTreeMap<&str, Vec<BurstFrom>> {
    let mut all: BTreeMap<&str, Vec<BurstFrom>> = BTreeMap::new();
    for event in &workload.events {
        let CgroupWrite::Burst(ns) = event.write else {
            continue;
        };
        let group = &workload.cgroups[event.cgroup as usize];
        let from = |from_ns, ns| BurstFrom {
            from_ns,
            burst: ns / 1000,
        };
        let of_group = all.entry(&group.path);
        let bursts = of_group.or_insert_with(|| vec![from(0, group.burst_ns)]);
        if bursts.last().is_none_or(|last| last.burst != ns / 1000) {
            bursts.push(from(event.at_ns, ns));
        }
    }
    measured(all, workload, |burst| burst.from_ns)
}

/// What each group had in the measured time, if that was not the same throughout: from what held at
/// the end of the warm-up on.
fn measured<'a, T>(
    mut all: BTreeMap<&'a str, Vec<T>>,
    workload: &Workload,
    from_ns: fn(&T) -> u64,
) -> BTreeMap<&'a str, Vec<T>> {
    for values in all.values_mut() {
        let held = values
            .iter()
            .rposition(|v| from_ns(v) <= workload.warmup_ns);
        values.drain(..held.unwrap_or(0));
    }
    all.retain(|_, values| values.len() > 1);
    all
}

/// That the scenario writes to files within the warm-up, so that nothing before is measured.
pub fn in_warmup(workload: &Workload) -> Vec<String> {
    let warmup_ns = workload.warmup_ns;
    let early = workload.events.iter().filter(|e| e.at_ns < warmup_ns);
    let early: Vec<&Event> = early.collect();
    let one = |event: &&Event| {
        let (file, value) = written(event.write);
        let path = &workload.cgroups[event.cgroup as usize].path;
        format!("{path}/{file} = {value} at {}", time_text(event.at_ns))
    };
    let mut told: Vec<String> = early.iter().take(NOTES_MAX).map(one).collect();
    if early.len() > NOTES_MAX {
        told.push(format!("{} more", early.len() - NOTES_MAX));
    }
    let note = || {
        format!(
            "events within the warm-up ({}), so what was before them is not measured: {}. Times \
             of events count from the start of the run",
            time_text(warmup_ns),
            told.join(", ")
        )
    };
    (!told.is_empty()).then(note).into_iter().collect()
}

/// That `who`, the scenario or the recorded run, writes later what is set.
pub fn notes(who: &str, workload: &Workload, files: &[GroupFile]) -> Vec<String> {
    let paths = paths(workload);
    let each = |file: &GroupFile| {
        let groups = file.find(&paths).unwrap_or_default();
        let file = file.file;
        groups.into_iter().map(move |group| (file, group))
    };
    let set: BTreeSet<(&str, usize)> = files.iter().flat_map(each).collect();
    let mut notes: Vec<String> = Vec::new();
    let mut writes = 0;
    for event in &workload.events {
        let (file, value) = written(event.write);
        let group = event.cgroup as usize;
        if !set.contains(&(file, group)) {
            continue;
        }
        writes += 1;
        if writes <= NOTES_MAX {
            notes.push(format!(
                "{who} writes {}/{file} = {value} at {}, whatever is set",
                paths[group],
                time_text(event.at_ns)
            ));
        }
    }
    if writes > NOTES_MAX {
        notes.push(format!(
            "{who} writes {} more times to files that are set",
            writes - NOTES_MAX
        ));
    }
    notes
}

fn written(write: CgroupWrite) -> (&'static str, String) {
    match write {
        CgroupWrite::Max {
            quota_ns,
            period_ns,
        } => ("cpu.max", max_text(quota_ns, period_ns)),
        CgroupWrite::Burst(ns) => ("cpu.max.burst", (ns / 1000).to_string()),
        CgroupWrite::Shares(shares) => ("cpu.weight", weight_text(shares)),
        CgroupWrite::Idle(idle) => ("cpu.idle", u8::from(idle).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use fairground_sim::spec::Scenario;
    use fairground_sim::workload::Env;

    use super::*;
    use crate::what::Setting;

    fn workload(events: &[(&str, &str)]) -> Workload {
        warmed("0s", events)
    }

    fn warmed(warmup: &str, events: &[(&str, &str)]) -> Workload {
        let head = format!("warmup = \"{warmup}\"\n");
        let mut text = head
            + "name = \"t\"\nduration = \"1s\"\n\
                        [[cgroup]]\npath = \"/p\"\n\"cpu.max\" = \"10000 100000\"\n\
                        [[task]]\nname = \"a\"\ncgroup = \"/p\"\nsteps = [\"hog\"]\n";
        for (at, write) in events {
            text += &format!("[[event]]\nat = \"{at}\"\ncgroup = \"/p\"\n{write}\n");
        }
        let made = Scenario::parse("t", &text).and_then(|s| s.workload(&Env { cpus: 2 }));
        made.unwrap_or_else(|e| panic!("{e:?}"))
    }

    #[test]
    fn a_weight_that_changes_is_told_with_its_times() {
        let w = workload(&[
            ("200ms", r#""cpu.weight" = 900"#),
            ("300ms", r#""cpu.idle" = true"#),
            ("400ms", r#""cpu.idle" = false"#),
        ]);
        let told = |w: &WeightFrom| (w.from_ns / 1_000_000, w.weight.clone());
        let all: Vec<_> = weights(&w)["/p"].iter().map(told).collect();
        let said = [(0, "100"), (200, "900"), (300, "idle"), (400, "100")];
        assert_eq!(all, said.map(|(ms, weight)| (ms, weight.to_string())));
        assert!(weights(&workload(&[("200ms", r#""cpu.weight" = 100"#)])).is_empty());
    }

    #[test]
    fn a_limit_that_changes_is_told_with_its_times() {
        let max = r#""cpu.max" = "max""#;
        let w = workload(&[("200ms", r#""cpu.max" = "10000""#), ("400ms", max)]);
        let limits = &changes(&w)["/p"];
        let told: Vec<(u64, &str)> = limits.iter().map(|l| (l.from_ns, &*l.max)).collect();
        assert_eq!(told, [(0, "10000 100000"), (400_000_000, "max 100000")]);
        assert!(changes(&workload(&[("200ms", r#""cpu.weight" = 50"#)])).is_empty());
    }

    #[test]
    fn of_a_warm_up_only_what_holds_at_its_end_is_told() {
        let max = |max: &str| format!("\"cpu.max\" = \"{max}\"");
        let events = [
            ("200ms", &*max("max")),
            ("400ms", &max("20000 100000")),
            ("700ms", &max("30000 100000")),
        ];
        let told = |warmup: &str| {
            let w = warmed(warmup, &events);
            let limits = changes(&w).remove("/p").unwrap_or_default();
            let limits = limits.iter().map(|l| l.from_ns / 1_000_000);
            (limits.collect::<Vec<_>>(), in_warmup(&w))
        };
        assert_eq!(told("0s"), (vec![0, 200, 400, 700], Vec::new()));
        assert_eq!(told("200ms"), (vec![200, 400, 700], Vec::new()));
        let (limits, notes) = told("500ms");
        assert_eq!(limits, [400, 700]);
        let note = "events within the warm-up (500 ms), so what was before them is not measured: \
                    /p/cpu.max = max 100000 at 200 ms, /p/cpu.max = 20000 100000 at 400 ms. Times \
                    of events count from the start of the run";
        assert_eq!(notes, [note]);
        assert_eq!(told("900ms").0, [0; 0]);
    }

    #[test]
    fn a_burst_that_changes_is_told_with_its_times() {
        let burst = |us: u64| format!("\"cpu.max.burst\" = {us}");
        let (some, none) = (burst(5000), burst(0));
        let w = workload(&[("200ms", &some), ("300ms", &some), ("400ms", &none)]);
        let told: Vec<(u64, u64)> = bursts(&w)["/p"]
            .iter()
            .map(|b| (b.from_ns, b.burst))
            .collect();
        assert_eq!(told, [(0, 0), (200_000_000, 5000), (400_000_000, 0)]);
        assert!(bursts(&workload(&[("200ms", &none)])).is_empty());
    }

    #[test]
    fn what_is_set_and_written_later_is_noted() {
        let w = workload(&[("500ms", r#""cpu.max" = "20000 100000""#)]);
        let set = |text: &str| {
            let (name, value) = text.split_once('=').expect("a setting");
            let (name, value) = (name.into(), value.into());
            let file = GroupFile::read(&Setting { name, value });
            notes(
                "the scenario",
                &w,
                &[file.unwrap_or_else(|e| panic!("{}", e.text(false)))],
            )
        };
        let note = "the scenario writes /p/cpu.max = 20000 100000 at 500 ms, whatever is set";
        assert_eq!(set("/p/cpu.max=90ms"), [note]);
        assert_eq!(set("/*/cpu.max=90ms"), [note]);
        assert_eq!(set("/p/cpu.weight=50"), [""; 0]);
    }
}
