//! What the simulated kernel cost in replays, as reports know it: a recording does not say it.

use fairground_report::{Run as Counted, Variant};
use fairground_sim::outcome::Outcome;
use fairground_trace::Names;
use fairground_trace::replay::Run;

use crate::glue;
use crate::limit_events;
use crate::simulate;
use crate::usual;

/// Of the replay and, if there is one, the what-if what each run came to, with one yardstick for
/// what is slow. `slow_ns` says which stretches that waited for quota are, if it was said.
pub fn outcomes(sides: &[(&str, &[Run])], slow_ns: Option<u64>) -> Vec<Vec<Outcome>> {
    let outcome = |run: &Run| {
        let mut outcome = run.outcome.clone();
        simulate::slow_from(&mut outcome, slow_ns);
        outcome
    };
    let of_side = |(_, runs): &(&str, &[Run])| runs.iter().map(outcome).collect();
    let mut outcomes: Vec<Vec<Outcome>> = sides.iter().map(of_side).collect();
    usual::share(&mut outcomes);
    outcomes
}

/// The same as reports know it: a run for each seed.
pub fn costs(names: &Names, sides: &[(&str, &[Run])], outcomes: Vec<Vec<Outcome>>) -> Vec<Variant> {
    let variant = |((name, runs), outcomes): (&(&str, &[Run]), Vec<Outcome>)| Variant {
        name: (*name).into(),
        runs: runs
            .iter()
            .zip(outcomes)
            .map(|(run, outcome)| counted(names, run, outcome))
            .collect(),
        ..Variant::default()
    };
    sides.iter().zip(outcomes).map(variant).collect()
}

/// With the kernel's ids of threads, and times from the recording's start.
fn counted(names: &Names, run: &Run, outcome: Outcome) -> Counted {
    let who = |task: u32| run.who.get(task as usize);
    let tid = |task: u32| who(task).map_or(0, |w| names.kernel_id(w.tid));
    let mut side = glue::run_of(outcome, &tid);
    limit_events::tell(&run.derived.workload, std::slice::from_mut(&mut side));
    let earlier = |ns: &mut u64| *ns = ns.saturating_sub(run.derived.lead_ns);
    let longest = side.idle_waste.as_mut().and_then(|w| w.longest.as_mut());
    if let Some(wait) = longest {
        earlier(&mut wait.from_ns);
    }
    let of_groups = side.groups.iter_mut().filter_map(|g| g.wait.as_mut());
    for wait in of_groups.filter_map(|wait| wait.longest.as_mut()) {
        earlier(&mut wait.from_ns);
        earlier(&mut wait.held_from_ns);
    }
    side
}
