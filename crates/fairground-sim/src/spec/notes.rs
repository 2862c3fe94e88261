//! What is right in a file and yet not what one may think: it is noted, not refused.
use std::collections::BTreeSet;

use crate::workload::program::{Ns, Op, TaskTemplate, Until, Workload};

/// Slices outside of these are set to the nearer one, as in the kernel (`sched_setattr`).
const SLICE_NS: [Ns; 2] = [100_000, 100_000_000];
/// Most names that are given one by one.
const NAMED: usize = 3;

/// Adds what is to know of `w`, which is complete but for its notes.
pub(super) fn add(w: &mut Workload) {
    let late = starts_too_late(w);
    let slices = slices_cut(w);
    w.notes.extend(late.into_iter().chain(slices));
}

/// Tasks that would start after the end. Not refused, as an event is: `--duration` may well cut a
/// recording short that was saved as a scenario.
fn starts_too_late(w: &Workload) -> Option<String> {
    let Until::Time(end_ns) = w.duration else {
        return None;
    };
    let late = |t: &&TaskTemplate| t.start_ns > 0 && t.start_ns >= end_ns;
    let names = names(w.templates.iter().filter(late).map(|t| &*t.name))?;
    let ms = end_ns as f64 / 1e6;
    Some(format!(
        "{names} would start after the end of the run, which is at {ms} ms, and take no part in it"
    ))
}

/// Slices that are not as the file says.
fn slices_cut(w: &Workload) -> Option<String> {
    let [least, most] = SLICE_NS;
    let outside = |ns: Ns| ns > 0 && !(least..=most).contains(&ns);
    let steps = |t: &TaskTemplate| {
        let ops = w.programs.get(t.program as usize).map(|p| &p.ops);
        let mut ops = ops.into_iter().flatten();
        ops.any(|op| matches!(op, Op::SetSlice(ns) if outside(*ns)))
    };
    let cut = |t: &&TaskTemplate| t.slice_ns.is_some_and(outside) || steps(t);
    let names = names(w.templates.iter().filter(cut).map(|t| &*t.name))?;
    Some(format!(
        "a slice of {names} is below 0.1 ms or above 100 ms: it is set to the nearer of these, as \
         in the kernel"
    ))
}

/// Each name once, of many the first ones; `None` if there is none.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let each: Vec<&str> = all.filter(|name| seen.insert(*name)).collect();
    let few: Vec<String> = each.iter().take(NAMED).map(|n| format!("'{n}'")).collect();
    let more = each.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!(" and {more} more"));
    (!few.is_empty()).then(|| few.join(", ") + &more.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use crate::spec::Scenario;
    use crate::workload::Env;

    fn notes(text: &str) -> Vec<String> {
        let scenario = Scenario::parse("s.toml", text).expect("right");
        scenario.workload(&Env { cpus: 2 }).expect("right").notes
    }

    #[test]
    fn who_starts_too_late_and_whose_slice_is_cut_is_told() {
        let task = |name: &str, more: &str| {
            format!("[[task]]\nname = \"{name}\"\n{more}\nsteps = [\"hog\"]\n")
        };
        let run = |tasks: &str| notes(&format!("duration = \"10ms\"\n{tasks}"));
        assert!(run(&task("a", "start = \"9ms\"\nslice = \"1ms\"")).is_empty());
        let late = run(&(task("a", "start = \"1s\"\ncount = 3") + &task("b", "")));
        let told = "'a' would start after the end of the run, which is at 10 ms, and take no part \
                    in it";
        assert_eq!(late, [told]);
        for slice in ["50us", "500ms"] {
            let cut = run(&task("a", &format!("slice = \"{slice}\"")));
            assert!(cut.len() == 1 && cut[0].starts_with("a slice of 'a' is below 0.1 ms"));
        }
        let steps = "[[task]]\nname = \"c\"\nsteps = [{ slice = \"50us\" }, \"hog\"]\n";
        assert!(run(steps)[0].contains("a slice of 'c'"));
        assert!(run(&task("a", "slice = \"0\"")).is_empty(), "the default");
    }
}
