//! One yardstick for what is slow, of each group, for all kernels and limits that are held against
//! each other.
//!
//! What a run finds usual by itself depends on the waiting that it is to measure
//! (`fairground_sim::watch::quota`). So all take it from the side in which the smallest share of a
//! group's stretches waited for quota, of several the first, seed by seed. It is known only when
//! that side has run, and is applied to the periods that the others have kept.

use std::collections::BTreeSet;

use fairground_sim::outcome::Outcome;
use fairground_sim::watch::quota::QuotaWait;

/// Gives all sides the yardstick of one, group by group. Each has the same seeds, in order.
pub fn share(sides: &mut [Vec<Outcome>]) {
    fn waits(run: &mut Outcome) -> &mut [QuotaWait] {
        run.watched.as_mut().map_or(&mut [], |w| &mut w.quota)
    }
    let sides = sides.iter_mut();
    level(
        &mut sides
            .map(|runs| runs.iter_mut().map(waits).collect())
            .collect::<Vec<_>>(),
    );
}

/// Groups of each run of each side.
type Side<'a> = Vec<&'a mut [QuotaWait]>;

fn level(sides: &mut [Side<'_>]) {
    let first = sides.iter().filter_map(|side| side.first());
    let paths: BTreeSet<String> = first
        .flat_map(|run| run.iter().map(|w| w.path.clone()))
        .collect();
    for path in &paths {
        let Some(side) = least(sides, path) else {
            continue;
        };
        let of_run = |run: &&mut [QuotaWait]| {
            let wait = run.iter().find(|w| w.path == *path)?;
            Some((wait.usual_ns, wait.unreliable))
        };
        let usual: Vec<_> = sides[side].iter().map(of_run).collect();
        for (run, usual) in sides
            .iter_mut()
            .flat_map(|side| side.iter_mut().zip(&usual))
        {
            let wait = run.iter_mut().find(|w| w.path == *path);
            if let (Some(wait), Some(usual)) = (wait, usual) {
                (wait.usual_ns, wait.unreliable) = *usual;
            }
        }
    }
}

/// The side in which the smallest share of the group's stretches waited; `None` if none ended.
fn least(sides: &[Side<'_>], path: &str) -> Option<usize> {
    let waited = |runs: &Side<'_>| {
        let of_group = runs
            .iter()
            .flat_map(|run| run.iter())
            .filter(|w| w.path == path);
        let add = |(all, late): (u64, u64), w: &QuotaWait| (all + w.stretches, late + w.delayed);
        let (all, late) = of_group.fold((0, 0), add);
        (all > 0).then(|| late as f64 / all as f64)
    };
    let all = sides.iter().map(waited).enumerate();
    let known = all.filter_map(|(side, share)| Some((side, share?)));
    let least = known.min_by(|(_, a), (_, b)| a.total_cmp(b));
    least.map(|(side, _)| side)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(groups: &[(&str, u64, u64)]) -> Vec<QuotaWait> {
        let wait = |(path, delayed, usual_ns): &(&str, u64, u64)| QuotaWait {
            path: (*path).into(),
            stretches: 100,
            delayed: *delayed,
            usual_ns: *usual_ns,
            unreliable: *delayed > 10,
            ..QuotaWait::default()
        };
        groups.iter().map(wait).collect()
    }

    #[test]
    fn all_take_that_of_the_side_that_waited_least() {
        let mut runs = [
            run(&[("/a", 50, 70), ("/b", 0, 5)]),
            run(&[("/a", 2, 40), ("/b", 0, 6)]),
            run(&[("/a", 2, 41)]),
        ];
        for _ in 0..2 {
            let sides = runs.iter_mut().map(|run| vec![&mut run[..]]);
            level(&mut sides.collect::<Vec<_>>());
            let found = |side: usize| -> Vec<(u64, bool)> {
                runs[side]
                    .iter()
                    .map(|w| (w.usual_ns, w.unreliable))
                    .collect()
            };
            assert_eq!(found(0), [(40, false), (5, false)]);
            assert_eq!(found(1), [(40, false), (5, false)]);
            assert_eq!(found(2), [(40, false)]);
        }
    }
}
