//! What files of groups hold in the cases that are held against each other.

use std::collections::{BTreeMap, BTreeSet};

use fairground_report::{Axis, Note, Sweep};
use fairground_sim::workload::Workload;
use fairground_sim::workload::program::Cgroup;

use crate::group_files::{GroupFile, max_text, paths, ranges, weight_text};
use crate::plan::Case;

/// Most groups of one setting that are told one by one.
const EACH_MAX: usize = 16;

/// Makes cases comparable: each tells what the files hold that any of them wrote, and keeps the
/// counters of the groups that any of them limits, or gives a weight.
pub fn side_by_side(cases: &mut [&mut Case]) {
    let mut files: BTreeMap<String, GroupFile> = BTreeMap::new();
    for file in cases.iter().flat_map(|case| &case.files) {
        files.insert(format!("{}/{}", file.path, file.file), file.clone());
    }
    let any = |groups: fn(&Workload) -> Vec<u32>| {
        let all: BTreeSet<u32> = cases.iter().flat_map(|c| groups(&c.workload)).collect();
        Vec::from_iter(all)
    };
    let (limited, weighed) = (any(Workload::counted_groups), any(Workload::weighed));
    let mut told = vec![BTreeMap::new(); cases.len()];
    for (name, file) in &files {
        let all: Vec<&Workload> = cases.iter().map(|case| &case.workload).collect();
        for (name, values) in held(name, file, &all) {
            for (told, value) in told.iter_mut().zip(values) {
                told.insert(name.clone(), value);
            }
        }
    }
    for (case, told) in cases.iter_mut().zip(told) {
        case.settings = told;
        case.workload.watched.clone_from(&limited);
        case.workload.compared.clone_from(&weighed);
    }
}

/// Notes where bursts are swept without a warm-up: what one is worth is seen once the reserve of
/// the beginning is used up.
pub fn full_reserve(sweep: &mut Sweep, workload: &Workload) {
    let is_burst = |axis: &&Axis| axis.name.ends_with("cpu.max.burst");
    let axis = sweep.over.iter().find(is_burst);
    let note = axis.filter(|_| workload.warmup_ns == 0).map(|axis| {
        format!(
            "`{}` is swept without a warm-up: a group begins with its burst saved up, which one \
             that has run for long may not have; give a warm-up",
            axis.name
        )
    });
    sweep.notes.extend(note.map(Note::Said));
}

/// These groups, and before those of a group with a count the path that means all of them.
pub fn with_counted<'a>(paths: &[&'a str]) -> Vec<&'a str> {
    let counted = |path: &'a str| {
        let (stem, number) = path.rsplit_once('.')?;
        number.parse::<u32>().is_ok().then_some(stem)
    };
    let mut all = Vec::new();
    for path in paths {
        let stem = counted(path);
        let several = paths.iter().filter(|p| counted(p) == stem).count() > 1;
        let new = stem.filter(|stem| several && !all.contains(stem) && !paths.contains(stem));
        all.extend(new);
        all.push(path);
    }
    all
}

/// A setting, or what has become of it where later ones wrote to some of its groups: names, and
/// what each workload holds under them.
fn held(name: &str, file: &GroupFile, all: &[&Workload]) -> Vec<(String, Vec<String>)> {
    let mut of_path: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for (n, w) in all.iter().enumerate() {
        for group in file.find(&paths(w)).unwrap_or_default() {
            let group = &w.cgroups[group];
            let values = of_path.entry(group.path.clone()).or_insert_with(|| {
                order.push(group.path.clone());
                vec!["(none)".into(); all.len()]
            });
            values[n] = value(w, group, file.file);
        }
    }
    let kinds: BTreeSet<&Vec<String>> = of_path.values().collect();
    if let [values] = *kinds.iter().copied().collect::<Vec<_>>() {
        return vec![(name.into(), values.clone())];
    }
    if order.len() <= EACH_MAX {
        let name = |path: String| format!("{path}/{}", file.file);
        return of_path.into_iter().map(|(p, v)| (name(p), v)).collect();
    }
    // Together those that are the same in all workloads.
    let mut together: BTreeMap<&Vec<String>, Vec<&String>> = BTreeMap::new();
    for path in &order {
        together.entry(&of_path[path]).or_default().push(path);
    }
    let name = |paths: Vec<&String>| match paths.len() - 1 {
        0 => format!("{}/{}", paths[0], file.file),
        more => format!("{}/{} and {more} more", paths[0], file.file),
    };
    let told = together.into_iter();
    told.map(|(values, paths)| (name(paths), values.clone()))
        .collect()
}

/// What a file of a group holds, as it would be read.
fn value(workload: &Workload, group: &Cgroup, file: &str) -> String {
    match file {
        "cpu.max" => max_text(group.quota_ns, group.period_ns),
        "cpu.max.burst" => (group.burst_ns / 1000).to_string(),
        "cpu.weight" => weight_text(group.shares),
        "cpu.idle" => u8::from(group.idle).to_string(),
        _ => match group.cpuset.and_then(|m| workload.masks.get(m as usize)) {
            Some(mask) => ranges(mask),
            None => "all".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use fairground_sim::workload::Env;

    use super::*;
    use crate::group_files::write;
    use crate::what::Setting;

    fn file(text: &str) -> GroupFile {
        let (name, value) = text.split_once('=').expect("a setting");
        let (name, value) = (name.into(), value.into());
        let file = GroupFile::read(&Setting { name, value });
        file.unwrap_or_else(|e| panic!("{text}: {}", e.text(false)))
    }

    fn groups(number: u32) -> Workload {
        let mut w = Workload::from_argv(&["hogs", "--cgroup", "/"], &Env { cpus: 8 });
        let w = w.as_mut().expect("hogs in the root");
        let each = (0..number).map(|n| Cgroup::new(format!("/g.{n}"), 0));
        w.cgroups.extend(each);
        w.clone()
    }

    fn with(mut w: Workload, files: &[&str]) -> Workload {
        let files: Vec<GroupFile> = files.iter().map(|text| file(text)).collect();
        let written = write(&mut w, 8, &files);
        assert!(
            written.is_ok(),
            "{}",
            written.err().map_or(String::new(), |e| e.text(false))
        );
        w
    }

    #[test]
    fn groups_that_a_later_setting_has_changed_are_told_apart() {
        let first = "/g/cpu.max=10ms/100ms";
        let base = groups(3);
        let patch = with(groups(3), &[first, "/g.1/cpu.max=max"]);
        let told = |base: &Workload, patch: &Workload| {
            let all = held("/g/cpu.max", &file(first), &[base, patch]);
            let row =
                |(name, values): (String, Vec<String>)| format!("{name}: {}", values.join("; "));
            all.into_iter().map(row).collect::<Vec<_>>()
        };
        let (max, ten) = ("max 100000", "10000 100000");
        assert_eq!(
            told(&base, &patch),
            [
                format!("/g.0/cpu.max: {max}; {ten}"),
                format!("/g.1/cpu.max: {max}; {max}"),
                format!("/g.2/cpu.max: {max}; {ten}"),
            ]
        );
        let all = with(groups(3), &[first]);
        assert_eq!(told(&base, &all), [format!("/g/cpu.max: {max}; {ten}")]);
        let many = with(groups(40), &[first, "/g.1/cpu.max=max"]);
        assert_eq!(
            told(&groups(40), &many),
            [
                format!("/g.0/cpu.max and 38 more: {max}; {ten}"),
                format!("/g.1/cpu.max: {max}; {max}"),
            ]
        );
    }

    #[test]
    fn a_group_with_a_count_is_named_as_one_too() {
        let all = with_counted(&["/web.0", "/web.1", "/a.5", "/b"]);
        assert_eq!(all, ["/web", "/web.0", "/web.1", "/a.5", "/b"]);
    }
}
