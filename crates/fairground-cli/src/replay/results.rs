//! What came of the replays: of that at home, whether it is faithful, and of the what-if, how it
//! differs from the one at home.

use fairground_report::{EarlyWork, ReplayFidelity, Variant, WhatIfRow, beware_of_replays};
use fairground_sim::watch::quota::QuotaWait;
use fairground_trace::fidelity::Fidelity;
use fairground_trace::replay::Run;

use crate::replay::costs::{costs, outcomes};
use crate::replay::doubts::Doubts;
use crate::replay::early;
use crate::replay::quantities::{LATENCIES, compared, variant};
use crate::replay::seeds::{self, Asking, Side};
use crate::replay::verdicts;

/// Both replays.
pub struct Results {
    /// Where the recording was made.
    pub replayed: Side,
    /// Whether that is faithful.
    pub fidelity: ReplayFidelity,
    /// The other one, if there is one.
    pub what_if: Option<Other>,
    /// What the kernel cost, side by side.
    pub costs: Vec<Variant>,
    /// Waiting for quota with the first seed, side by side.
    pub quota: Vec<Vec<QuotaWait>>,
    /// What each replay came to, side by side.
    pub counted: Vec<Variant>,
}

/// A what-if.
pub struct Other {
    /// On which machine.
    pub machine: String,
    /// Beside the recording.
    pub side: Side,
    /// Beside the replay at home: means.
    pub beside: Fidelity,
    /// The same with intervals and verdicts.
    pub rows: Vec<WhatIfRow>,
    /// What it does before it came.
    pub early: Vec<EarlyWork>,
}

/// What is to know of throttling and of few wake-ups, as of a run or of two sides.
fn beware(counted: &[Variant]) -> Vec<String> {
    let names = ["the replay", "the what-if"].into_iter();
    let named = names.zip(counted).map(|(name, variant)| Variant {
        name: name.into(),
        ..variant.clone()
    });
    beware_of_replays(&named.collect::<Vec<_>>(), &LATENCIES)
}

impl Results {
    /// Runs all that is asked for. What a reader must know is pushed to `notes`.
    ///
    /// # Errors
    /// A sentence, as of [`seeds::run`].
    pub fn new(
        asking: &Asking<'_>,
        doubts: &Doubts,
        notes: &mut Vec<String>,
    ) -> Result<Self, String> {
        let mut sides = seeds::run(asking)?.into_iter();
        let replayed = sides.next().ok_or("no replay")?;
        let what_if = sides.next();
        let fidelity = verdicts::fidelity(&replayed.mean, &replayed.each, doubts);
        let both = || std::iter::once(&replayed).chain(&what_if);
        let runs: Vec<(&str, &[Run])> = ["replayed", "what if"]
            .into_iter()
            .zip(both().map(|side| &side.runs[..]))
            .collect();
        let outcomes = outcomes(&runs, asking.args.what.slow);
        let first = outcomes.iter().filter_map(|side| side.first());
        let quota = first.map(|run| run.watched.as_ref().map_or(vec![], |w| w.quota.clone()));
        let quota = quota.collect();
        let mut costs = costs(asking.names, &runs, outcomes);
        let counted: Vec<Variant> = both()
            .zip(&costs)
            .map(|(side, costs)| variant(&side.each, &costs.runs))
            .collect();
        notes.extend(beware(&counted));
        let what_if = what_if.map(|side| {
            let beside = replayed.mean.beside(&side.mean);
            let (both, variants) = ((&beside, &replayed.mean), [&counted[0], &counted[1]]);
            let known = [asking.sides[0].1, asking.sides[1].1];
            let early = early::early([&replayed.runs, &side.runs], &costs[0], known);
            costs[1].at_most = early.iter().map(|e| e.group.clone()).collect();
            Other {
                machine: asking.sides[1].0.machine.id.clone(),
                rows: compared(both, !early.is_empty(), &fidelity, variants, notes),
                early,
                side,
                beside,
            }
        });
        Ok(Self {
            replayed,
            fidelity,
            what_if,
            costs,
            quota,
            counted,
        })
    }

    /// The what-if, or the replay at home if there is none.
    pub fn last(&self) -> &Side {
        let other = self.what_if.as_ref();
        other.map_or(&self.replayed, |other| &other.side)
    }
}
