//! What replays are measured by: a row of each table, and a metric of the statistics over seeds.

use std::collections::{BTreeMap, BTreeSet};

use fairground_report::{ReplayFidelity, ReplayQuantity, Run, Variant, WhatIfRow, compare_replays};
use fairground_trace::fidelity::{Fidelity, Item};

use crate::replay::judged::Judged;
use crate::replay::quantity::{Both, Of, Quantity, WhyNot};

/// The median of the second half.
const LATE: &str = "second_half_latency_us.p50";

/// Percentiles.
pub const LATENCIES: [&str; 4] = [
    "wakeup_latency_us.p50",
    "wakeup_latency_us.p90",
    "wakeup_latency_us.p99",
    LATE,
];

/// All quantities of two sides, in the order of the tables.
pub fn quantities(both: Both<'_>) -> Vec<Quantity> {
    let f = both.0;
    let judged = Judged::of(both);
    let stopped = judged.stopped;
    let new = Quantity::new;
    let (sleepers, runnable) = ("switches from sleepers", "switches from runnable threads");
    let mut all = vec![
        new(
            "elapsed_ms",
            "elapsed, ms",
            "ms",
            Item::Elapsed,
            f.elapsed_ms,
        )
        .lower()
        .at_least(stopped),
        new("cpu_ms", "CPU time, ms", "ms", Item::CpuTime, f.cpu_ms).at_least(stopped),
        new(
            "voluntary_switches",
            sleepers,
            "count",
            Item::Switches,
            f.voluntary,
        )
        .at_least(stopped),
        new(
            "involuntary_switches",
            runnable,
            "count",
            Item::Switches,
            f.involuntary,
        )
        .at_least(stopped),
    ];
    let latencies = LATENCIES.iter().zip(f.latency_us.into_iter().flatten());
    for (name, pair) in latencies {
        let percentile = name.rsplit('.').next().unwrap_or(name);
        let label = format!("wake-up latency {percentile}, us");
        all.push(new(name, &label, "us", Item::Latency, pair).lower());
    }
    if let Some(late) = f.late_latency_us {
        let label = "  p50 in the second half, us";
        all.push(new(LATE, label, "us", Item::LateLatency, late).lower());
    }
    for (cpu, busy) in f.busy_pct.iter().enumerate() {
        let name = format!("busy_pct.cpu{cpu}");
        let label = format!("CPU {cpu} busy, %");
        all.push(Quantity {
            of: Of::Cpu,
            absent: f.cpus.map(|cpus| cpu >= cpus),
            ..new(&name, &label, "%", Item::Busy, *busy)
        });
    }
    all.extend(of_threads(both));
    for q in &mut all {
        q.why_not = judged.why_not(q.item, q.of, q.at_least);
    }
    all
}

fn of_threads((f, before): Both<'_>) -> Vec<Quantity> {
    let undone = before.iter().flat_map(|f| &f.threads).filter(|t| t.undone);
    let undone: BTreeSet<&str> = undone.map(|t| &*t.name).collect();
    let mut all = Vec::new();
    for (n, t) in f.threads.iter().enumerate() {
        let mut push = |what: &str, label: &str, unit, item, pair, at_least| {
            let name = format!("thread.{}.{what}", t.name);
            all.push(Quantity {
                of: Of::Thread(n),
                ..Quantity::new(&name, label, unit, item, pair).at_least(at_least)
            });
        };
        let at_least = [undone.contains(&*t.name), t.undone];
        let label = format!("{}: CPU time, ms", t.name);
        push("cpu_ms", &label, "ms", Item::CpuTime, t.cpu_ms, at_least);
        let (none, half) = ([false; 2], "  in the first half, ms");
        push(
            "first_half_ms",
            half,
            "ms",
            Item::FirstHalf,
            t.half_ms,
            none,
        );
        push(
            "switches",
            "  switches",
            "count",
            Item::Switches,
            t.switches,
            at_least,
        );
    }
    all
}

/// Replays of one side over seeds, as the statistics take them: `runs` have what the kernel cost.
pub fn variant(each: &[Fidelity], runs: &[Run]) -> Variant {
    let run = |(f, run): (&Fidelity, &Run)| {
        let mut counted = Run::new(run.seed);
        counted.functions.clone_from(&run.functions);
        counted.groups.clone_from(&run.groups);
        counted.throttled_by.clone_from(&run.throttled_by);
        let [all, late] = f.replayed_wakeups;
        let of = |metric: &str| if metric == LATE { late } else { all };
        let samples = LATENCIES.iter();
        counted.samples = samples.map(|m| ((*m).into(), of(m) as u64)).collect();
        for q in quantities((f, None)).iter().filter(|q| !q.absent[1]) {
            counted.set_metric(&q.name, q.pair.replayed);
        }
        counted
    };
    Variant {
        runs: each.iter().zip(runs).map(run).collect(),
        ..Variant::default()
    }
}

/// Both replays in each quantity, and notes on that. `both` is of their means; `early`: the what-if
/// does work before it came, so of what it does only the amount is judged.
pub fn compared(
    (beside, home): (&Fidelity, &Fidelity),
    early: bool,
    fidelity: &ReplayFidelity,
    [replayed, what_if]: [&Variant; 2],
    notes: &mut Vec<String>,
) -> Vec<WhatIfRow> {
    let at_home = quantities((home, None));
    let at_home: BTreeMap<&str, &Quantity> = at_home.iter().map(|q| (&*q.name, q)).collect();
    let judged = fidelity.verdicts.iter().filter(|v| v.met.is_some());
    let judged: BTreeSet<&str> = judged.map(|v| &*v.quantity).collect();
    let counts = |q: &Quantity| match q.of {
        Of::Thread(n) => home.threads.get(n).is_some_and(|t| t.counts),
        Of::All | Of::Cpu => !q.absent.contains(&true),
    };
    let faithful = |q: &Quantity| {
        let home = at_home.get(&*q.name).filter(|q| counts(q))?;
        let known = judged.contains(q.item.name());
        known.then(|| home.item.off(home.pair).abs() <= home.item.limit())
    };
    let asked = |q: &Quantity| ReplayQuantity {
        info: q.info(),
        label: q.label.clone(),
        at_least: q.at_least,
        why_not: q.why_not.map(|why| why.words().into()),
        comparable: q.why_not != Some(WhyNot::Stopped) || q.at_least.contains(&true),
        faithful: faithful(q),
    };
    let mut all = quantities((beside, Some(home)));
    for q in all.iter_mut().filter(|q| early && q.item != Item::CpuTime) {
        q.why_not = q.why_not.or(Some(WhyNot::Early));
    }
    let asked: Vec<ReplayQuantity> = all.iter().map(asked).collect();
    compare_replays(&asked, replayed, what_if, notes)
}

/// The least and the most of each quantity over seeds.
pub fn ranges(each: &[Fidelity]) -> BTreeMap<String, (f64, f64)> {
    let mut all: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for q in each.iter().flat_map(|f| quantities((f, None))) {
        let x = q.pair.replayed;
        let range = all.entry(q.name).or_insert((x, x));
        *range = (range.0.min(x), range.1.max(x));
    }
    all
}
