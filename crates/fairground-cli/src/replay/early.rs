//! What a what-if does before it was recorded, though it may not have been there to do by then
//! (`fairground_trace::replay::Early`): of which groups, and what can be believed of these.

use fairground_report::{EarlyWork, Variant};
use fairground_trace::derive::Attributes;
use fairground_trace::derive::attributes::Group;
use fairground_trace::replay::{Early, Run};

/// Of more of what a group computes, per cent, it is told: a choice, that of `judged`.
const EARLY_PCT: f64 = 1.0;

/// Groups that do work early in the what-if, beyond what they do so at home. `home` are the replays
/// there as reports know them, `known` is what is known of groups on both sides.
pub fn early(
    [replayed, what_if]: [&[Run]; 2],
    home: &Variant,
    known: [&Attributes; 2],
) -> Vec<EarlyWork> {
    let groups = groups(home, known);
    let at_home = work(replayed, |run| &run.early);
    let early = work(what_if, |run| &run.early).into_iter();
    let beyond = early
        .filter(|group| groups.contains(&&*group.group))
        .map(|group| {
            let before = at_home.iter().find(|g| g.group == group.group);
            EarlyWork {
                early_ms: group.early_ms - before.map_or(0.0, |g| g.early_ms),
                ..group
            }
        });
    beyond.filter(is_told).collect()
}

/// Groups whose threads had work left when they had no quota, of which a scenario made of the
/// recording does what it can.
pub fn waited(replayed: &[Run], home: &Variant) -> Vec<EarlyWork> {
    let groups = throttled(home);
    let waited = work(replayed, |run| &run.waited).into_iter();
    let waited = waited.filter(|group| groups.contains(&&*group.group));
    waited.filter(is_told).collect()
}

fn is_told(group: &EarlyWork) -> bool {
    group.early_ms * 100.0 > EARLY_PCT * group.computed_ms
}

/// Of each group: means over the seeds, and the most of any.
fn work(runs: &[Run], of: fn(&Run) -> &Vec<Early>) -> Vec<EarlyWork> {
    let first = runs.first().map_or(&[][..], |run| &of(run)[..]);
    let n = runs.len() as f64;
    let group = |(i, group): (usize, &Early)| {
        let all = || runs.iter().filter_map(|run| of(run).get(i));
        let mean = |ns: fn(&Early) -> u64| all().map(ns).sum::<u64>() as f64 / n / 1e6;
        EarlyWork {
            group: group.path.clone(),
            computed_ms: mean(|g| g.computed_ns),
            early_ms: mean(|g| g.early_ns),
            most_ms: all().map(|g| g.most_ns).max().unwrap_or(0) as f64 / 1e6,
        }
    };
    first.iter().enumerate().map(group).collect()
}

/// Groups that the tables have and that can have waited for what the what-if gives them: those that
/// were throttled and, if it changes a weight, all.
fn groups<'a>(home: &'a Variant, known: [&Attributes; 2]) -> Vec<&'a str> {
    let [before, after] = known.map(|known| {
        let weight = |g: &Group| (g.weight, g.shares, g.nice, g.idle);
        known.cgroups.iter().map(weight).collect::<Vec<_>>()
    });
    match before == after {
        true => throttled(home),
        false => home.runs.iter().flat_map(paths).collect(),
    }
}

fn paths(run: &fairground_report::Run) -> impl Iterator<Item = &str> {
    run.groups.iter().map(|group| &*group.path)
}

fn throttled(home: &Variant) -> Vec<&str> {
    let groups = home.runs.iter().flat_map(|run| &run.groups);
    let throttled = groups.filter(|group| group.stat.nr_throttled > 0);
    throttled.map(|group| &*group.path).collect()
}

/// What to know of a what-if that does work early.
pub fn note(early: &[EarlyWork]) -> Option<String> {
    let each: Vec<String> = early.iter().map(words).collect();
    (!each.is_empty()).then(|| {
        format!(
            "{}: its threads had been awake since before, waiting for quota or a CPU, and a replay \
             blocks only where the recording did, so requests that came meanwhile may be worked on \
             before they came. In the rows with `<`, CPU use and throttled and slow periods are \
             upper bounds; no verdict on elapsed, which is a lower bound, switches, busy shares, \
             wake-up latency and the first half",
            each.join(", ")
        )
    })
}

fn words(group: &EarlyWork) -> String {
    format!(
        "{:.3} s of the {:.3} s that {} computes are done earlier than in the recording, by up to \
         {:.0} ms",
        group.early_ms / 1e3,
        group.computed_ms / 1e3,
        group.group,
        group.most_ms
    )
}

/// The same for the head of a scenario made of a recording.
pub fn saved(waited: &[EarlyWork]) -> Vec<String> {
    let one = |group: &EarlyWork| {
        format!(
            "{:.3} s of the {:.3} s that {} computes were done after waits of up to {:.0} ms for \
             quota or a CPU without a sleep: what of it had come by then is not known. With more \
             CPU time it is done at once here: CPU use and the share of throttled periods are \
             upper bounds then.",
            group.early_ms / 1e3,
            group.computed_ms / 1e3,
            group.group,
            group.most_ms
        )
    };
    waited.iter().map(one).collect()
}
