//! What a level is allowed, and which levels add nothing.

use alloc::vec::Vec;

use super::SdFlags;
use super::levels::Raw;

/// Failed attempts before cache-hot tasks are moved.
pub(super) const fn cache_nice_tries(flags: &SdFlags) -> u32 {
    if flags.share_cpucapacity {
        0
    } else if flags.numa {
        2
    } else {
        1
    }
}

/// For each level the tasks by which NUMA nodes may differ.
///
/// The first level above the last-level caches sets it: with several caches in a node one task
/// for each, otherwise an eighth of the node's CPUs. A NUMA level of `k` times the CPUs of the
/// first one allows `k` times as many. Source: "sched/numa: Adjust imb_numa_nr to a better
/// approximation of memory channels", Mel Gorman, 2022, for 6.0.
pub(super) fn imb_numa_nr(chain: &[Raw]) -> Vec<u32> {
    let (mut imb, mut imb_span) = (0, 1);
    let mut out = Vec::new();
    for (i, sd) in chain.iter().enumerate() {
        let weight = sd.span.weight();
        let child = i.checked_sub(1).map(|below| &chain[below]);
        let above_caches = !sd.flags.share_llc && child.is_some_and(|c| c.flags.share_llc);
        if let (true, Some(child)) = (above_caches, child) {
            let caches = weight / child.span.weight();
            imb = if caches == 1 { weight >> 3 } else { caches };
            imb = imb.max(1);
            let numa = chain[i + 1..].iter().find(|above| above.flags.numa);
            imb_span = numa.map_or(weight, |above| above.span.weight());
            out.push(imb);
        } else {
            out.push(imb * (weight / imb_span).max(1));
        }
    }
    out
}

/// The levels of a chain that do something, with the flags they end up with.
///
/// A level above that has one group (it spans no more than the level below it) does nothing but
/// spread wake-ups: it goes if the level below does that too, and leaves it its preference for
/// siblings. A lowest level of one CPU goes too.
pub(super) fn worth_keeping(chain: &[Raw]) -> Vec<(usize, SdFlags)> {
    let mut kept: Vec<(usize, SdFlags)> = Vec::new();
    for (level, sd) in chain.iter().enumerate() {
        let Some((below, flags)) = kept.last_mut() else {
            kept.push((level, sd.flags));
            continue;
        };
        let one_group = sd.span == chain[level - 1].span;
        let alone = sd.span.weight() == 1;
        let useless = alone || (one_group && !sd.flags.wake_affine);
        let same = sd.span == chain[*below].span;
        let covered = same && one_group && (flags.wake_affine || !sd.flags.wake_affine);
        if useless || covered {
            flags.prefer_sibling |= sd.flags.prefer_sibling;
        } else {
            kept.push((level, sd.flags));
        }
    }
    if kept
        .first()
        .is_some_and(|(l, _)| chain[*l].span.weight() == 1)
    {
        kept.remove(0);
    }
    kept
}
