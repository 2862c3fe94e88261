//! Entities of groups that take a new weight, or propagate, right after a line of their queue.

use fairground::math::pelt::SchedAvg;

use super::records::{Kind, Record};
use super::solve::Reweight;

/// The entity that an update of a queue belongs to has its line at most so many lines before.
pub(super) const AROUND: usize = 16;

/// Entities of groups in the queue `of` that take a new weight after one of their lines, which are
/// written just before it: the line, and its weight in the next.
pub(super) fn reweights<'a>(
    all: &'a [Record],
    of: &'a Record,
    lines: impl Iterator<Item = usize>,
) -> impl Iterator<Item = (&'a Record, Reweight)> {
    let child = |r: &&Record| {
        let parent = r.id.rsplit_once('/').map(|(up, _)| up);
        r.kind == Kind::Group && r.cpu == of.cpu && parent == Some(of.id.as_str())
    };
    lines.filter_map(move |i| {
        let old = Some(&all[i]).filter(child)?;
        let new = all[i + 1..].iter().filter(child).find(|r| r.id == old.id)?;
        let reweight = Reweight {
            avg: old.avg,
            old: old.weight,
            new: new.weight,
        };
        Some((old, reweight))
    })
}

/// Whether something was propagated after the line of a queue: the entity of a group in it has two
/// lines at that clock, and what the second one did to the queue is not recorded.
pub(super) fn propagated(all: &[Record], from: &Record) -> bool {
    let at = from.line - 2;
    let clock = from.avg.last_update_time;
    let child = |r: &&Record| {
        let parent = r.id.rsplit_once('/').map(|(up, _)| up);
        r.kind == Kind::Group
            && r.cpu == from.cpu
            && parent == Some(from.id.as_str())
            && r.avg.last_update_time == clock
    };
    let after = &all[at..all.len().min(at + AROUND)];
    let before = &all[at.saturating_sub(AROUND)..at];
    from.kind == Kind::Queue
        && after
            .iter()
            .filter(child)
            .any(|r| before.iter().filter(child).any(|b| b.id == r.id))
}

/// What a queue is after the line `from`, if the entity of a group in it took a new weight then.
pub(super) fn reweighted(all: &[Record], from: &Record) -> Option<SchedAvg> {
    // Records are in the order of their lines, after the line of the columns.
    let before = 0..from.line - 2;
    let (old, reweight) = reweights(all, from, before.rev().take(AROUND)).next()?;
    let same = old.avg.last_update_time == from.avg.last_update_time;
    same.then(|| reweight.apply(from.avg))
}
