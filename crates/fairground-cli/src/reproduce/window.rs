//! Whether anything happened in the windows that a row is computed from.
//!
//! A change between two runs in which nothing ran is 0 %, and a rate of three events is a number
//! too; neither says anything. Such a row is a miss that gives this as its reason.

use fairground_report::reproduce::Kind;
use fairground_sim::outcome::Outcome;

use super::experiment::{RowSpec, RunSpec};
use super::measure::Measure;

/// Least number of events on a side for a change, over all seeds: the number of so many independent
/// events spreads by 5 %, the limit of noise.
const FOR_A_CHANGE: u64 = 400;
/// The same for a value, which need be right within a factor of two: a spread of 25 %.
const FOR_A_VALUE: u64 = 16;

/// Why the row says nothing; `None` if it does.
pub fn dead(run: &RunSpec, row: &RowSpec, base: &[&Outcome], patch: &[&Outcome]) -> Option<String> {
    // Of a range the published values are the limits of base.
    let of_patch = row.patch.filter(|_| row.kind != Kind::Range);
    let sides = [("base", base, row.base), ("patch", patch, of_patch)];
    let whole = sides.iter().find_map(|(name, outcomes, _)| {
        let (seed, why) = outcomes
            .iter()
            .find_map(|o| Some((o.seed, still(run, o)?)))?;
        Some(format!("{name}, seed {seed}: {why} in the window"))
    });
    if whole.is_some() {
        return whole;
    }
    let change = matches!(row.kind, Kind::Change | Kind::Noise);
    let needed = if change { FOR_A_CHANGE } else { FOR_A_VALUE };
    sides.iter().find_map(|(name, outcomes, published)| {
        if !change && published.is_none() {
            return None;
        }
        let counts = outcomes.iter().map(|o| row.measure.events(o));
        let events: u64 = counts.collect::<Option<Vec<u64>>>()?.into_iter().sum();
        let few = format!("{name}: {events} events in the windows, fewer than {needed}");
        (events < needed).then_some(few)
    })
}

/// What does not happen at all in a run, though the workload consists of it.
fn still(run: &RunSpec, outcome: &Outcome) -> Option<String> {
    // A program that only calls the kernel has no time of its own, and one that is alone on its CPU
    // is not switched to.
    let of = |place| outcome.functions.iter().find(|(name, ..)| *name == place);
    let computed = of("[user]").is_some_and(|(_, ns, _)| *ns > 0);
    let called = of("entry_SYSCALL_64").is_some_and(|(.., calls)| *calls > 0);
    let counted = outcome.counted.iter().any(|(_, events)| *events > 0);
    if !counted && !computed && !called && outcome.switches == 0 {
        return Some("no task ran".into());
    }
    let rates = run.rows.iter().filter_map(|row| match &row.measure {
        Measure::Metric(name) => Some((name, row.measure.events(outcome)?)),
        _ => None,
    });
    let none = rates.into_iter().find(|(_, events)| *events == 0);
    none.map(|(name, _)| format!("nothing that `{name}` counts happened"))
}

#[cfg(test)]
mod tests {
    use fairground::policy::Features;
    use fairground_sim::machine::Setup;
    use fairground_sim::machine_file::Machine;
    use fairground_sim::workload::{Env, Workload};

    use super::super::measure::window;
    use super::*;

    /// Two CPUs, one group that may run 1 ms in 100, a worker that computes without end.
    fn outcome(from_ns: u64, span_ns: u64) -> Outcome {
        let machine = Machine::from_path_or_id("spr-guest-2cpu").unwrap();
        let line = "schbench -m 1 -t 1 -F 16 -n 1 --cgroup /leaf --cpu-max 2ms/100ms";
        let argv: Vec<String> = line.split(' ').map(String::from).collect();
        let mut workload = Workload::from_argv(&argv, &Env { cpus: 2 }).unwrap();
        window(&mut workload, from_ns, span_ns);
        let setup = Setup {
            machine: &machine,
            features: Features::default(),
            workload: &workload,
            seed: 1,
            trace: false,
        };
        fairground_sim::outcome::run(&setup).unwrap()
    }

    fn run(rows: &str) -> RunSpec {
        let head =
            "name = 'r'\nmachine = 'spr-guest-2cpu'\nworkload = 'w'\nload = 'l'\nseeds = 1\n";
        toml::from_str(&format!("{head}{rows}")).unwrap()
    }

    const ROWS: &str = "
        [[row]]
        metric = 'requests/s'
        measure = 'metric:schbench.rps'
        kind = 'noise'
        [[row]]
        metric = 'misses'
        measure = 'llc_misses'
        kind = 'change'
        base = 100
        patch = 80
        [[row]]
        metric = 'share'
        measure = 'share:update_curr'
        kind = 'at-most'
        base = 99
    ";

    #[test]
    fn nothing_in_the_window_is_said_for_every_row() {
        let (dead_run, spec) = (outcome(50_000_000, 20_000_000), run(ROWS));
        for row in &spec.rows {
            let why = dead(&spec, row, &[&dead_run], &[&dead_run]).expect("a reason");
            assert!(why.contains("base, seed 1: no task ran"), "{why}");
        }
    }

    #[test]
    fn too_few_events_are_said_where_they_are_counted() {
        let (short, spec) = (outcome(0, 2_000_000), run(ROWS));
        let why = |row: usize| dead(&spec, &spec.rows[row], &[&short], &[&short]);
        let requests = spec.rows[0].measure.events(&short).unwrap();
        assert!((1..FOR_A_CHANGE).contains(&requests));
        let words = format!("base: {requests} events in the windows, fewer than 400");
        assert_eq!(why(0), Some(words));
        assert_eq!(why(2), None, "a share needs fewer calls");
        let many = vec![&short; (FOR_A_CHANGE / requests + 1) as usize];
        assert_eq!(dead(&spec, &spec.rows[0], &many, &many), None);
    }
}
