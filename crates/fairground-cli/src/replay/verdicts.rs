//! Whether a replay is faithful: the verdict on each quantity, or why there is none.

use fairground_report::{FidelityVerdict, ReplayFidelity};
use fairground_trace::fidelity::{Fidelity, Item};

use crate::replay::doubts::Doubts;

/// Medians that are shorter say little if times are whole microseconds.
const COARSE_US: f64 = 10.0;

/// Of a replay: `mean` over its seeds, and `each` of them.
pub fn fidelity(mean: &Fidelity, each: &[Fidelity], doubts: &Doubts) -> ReplayFidelity {
    let verdict = |item: Item| {
        let verdict = mean.verdict(item);
        let why_not = why_not(mean, item, doubts);
        let furthest = verdict.furthest.as_ref();
        let is_met = |f: &&Fidelity| f.verdict(item).met() == Some(true);
        FidelityVerdict {
            quantity: item.name().into(),
            limit: item.limit(),
            unit: if item.is_points() { "points" } else { "%" }.into(),
            recorded: furthest.map(|f| f.pair.recorded),
            replayed: furthest.map(|f| f.pair.replayed),
            off: furthest.map(|f| f.off).filter(|off| off.is_finite()),
            of: furthest.and_then(|f| f.of.clone()),
            met: verdict.met().filter(|_| why_not.is_none()),
            why_not: why_not.map(Into::into),
            seeds_met: each.iter().filter(is_met).count() as u64,
            label: item.words().into(),
        }
    };
    ReplayFidelity::new(Item::ALL.into_iter().map(verdict).collect())
}

/// Why there is no verdict.
fn why_not(f: &Fidelity, item: Item, doubts: &Doubts) -> Option<&'static str> {
    let coarse = |us: Option<f64>| doubts.whole_us && us.is_some_and(|us| us < COARSE_US);
    let latency = match item {
        Item::Latency => f.latency_us.map(|l| l[0].recorded),
        Item::LateLatency => f.late_latency_us.map(|l| l.recorded),
        _ => None,
    };
    let of_times = matches!(item, Item::CpuTime | Item::Busy | Item::FirstHalf);
    let of_length = matches!(
        item,
        Item::Switches | Item::Latency | Item::LateLatency | Item::Busy
    );
    match item {
        // What is missing of it then is no finding; that it took so long is.
        _ if of_length && f.stopped_ms.is_some() => Some("the replay was stopped"),
        _ if of_times && doubts.at_least => Some("the recorded times are lower bounds"),
        _ if of_times && doubts.at_most => Some("the recorded times are upper bounds"),
        _ if coarse(latency) => Some("the recorded times are whole us"),
        Item::Elapsed if doubts.ends_by_time => Some("the recorded run was ended by its time"),
        _ if f.verdict(item).furthest.is_none() => Some("nothing to compare"),
        _ => None,
    }
}
