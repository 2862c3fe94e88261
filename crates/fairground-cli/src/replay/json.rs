//! What `fairground replay` writes for programs.

use fairground_report::{
    Changed, Percentiles, REPLAY_FORMAT, Recorded, Replay, ReplayCosts, Replayed, ReplayedThread,
    SeedValues, Sides, Stopped, WhatIf,
};
use fairground_trace::fidelity::{Fidelity, Pair};
use fairground_trace::replay::Run;

use crate::failure::Failure;
use crate::glue;
use crate::replay::text;

/// All numbers, as JSON text.
///
/// # Errors
/// A number that JSON does not have.
pub fn json(s: &text::Sides<'_>) -> Result<String, Failure> {
    let home = &s.about.home;
    let costs = s.results.costs.iter().flat_map(|side| {
        let runs = side.runs.iter().cloned();
        runs.map(|run| ReplayCosts::new(&side.name, run))
    });
    let replay = Replay {
        format: REPLAY_FORMAT.into(),
        fairground: glue::VERSION.into(),
        recording: recorded(s),
        machine: home.machine.clone(),
        profile: home.profile.clone(),
        decisions: home.variant.decisions.clone(),
        settings: home.variant.settings.clone(),
        seed: s.about.redo.seeds[0],
        unfinished: unfinished(&s.results.replayed.runs),
        stopped: stopped(&s.results.replayed.mean),
        costs: costs.collect(),
        replay: sides(&s.results.replayed.mean, |p| Replayed {
            recorded: p.recorded,
            replayed: p.replayed,
        }),
        runs: SeedValues::of(&s.results.counted[0].runs),
        fidelity: s.results.fidelity.clone(),
        what_if: what_if(s),
        redo: s.about.redo.clone(),
        notes: [text::notes(s), s.about.notes.clone()].concat(),
    };
    serde_json::to_string_pretty(&replay)
        .map_err(|e| Failure::new(format!("cannot write JSON: {e}")))
}

fn recorded(s: &text::Sides<'_>) -> Recorded {
    let left_out = &s.recording.left_out;
    Recorded {
        trace: s.path.display().to_string(),
        kind: s.recording.format.into(),
        events: s.recording.tracepoints() as u64,
        cpus: s.recording.cpus,
        lost: left_out.lost,
        lost_on: left_out.lost_on.iter().copied().collect(),
        bad: left_out.bad,
        backwards: left_out.backwards,
        skipped: left_out.other_events.clone(),
        cut: left_out.cut.clone(),
        inferred_switches: s.doubts.inferred,
        recorded_on: s.home.machine.id.clone(),
    }
}

fn what_if(s: &text::Sides<'_>) -> Option<WhatIf> {
    let other = s.results.what_if.as_ref()?;
    let kernel = s.about.what_if.as_ref()?;
    Some(WhatIf {
        machine: other.machine.clone(),
        machine_hash: kernel.machine.hash.clone(),
        machine_topology: kernel.machine.topology,
        profile: kernel.profile.clone(),
        patches: s.about.patches.clone(),
        decisions: kernel.variant.decisions.clone(),
        settings: kernel.variant.settings.clone(),
        unfinished: unfinished(&other.side.runs),
        stopped: stopped(&other.beside),
        sides: sides(&other.beside, |p| Changed {
            replayed: p.recorded,
            what_if: p.replayed,
        }),
        comparison: other.rows.clone(),
        runs: SeedValues::of(&s.results.counted[1].runs),
        early: other.early.clone(),
    })
}

fn unfinished(runs: &[Run]) -> u64 {
    runs.iter()
        .map(|run| run.unfinished as u64)
        .max()
        .unwrap_or(0)
}

fn stopped(f: &Fidelity) -> Option<Stopped> {
    f.stopped_ms.map(|at_ms| Stopped {
        at_ms,
        threads: f.undone.clone(),
    })
}

fn sides<P>(f: &Fidelity, pair: impl Fn(Pair) -> P) -> Sides<P> {
    let threads = f.threads.iter().map(|t| ReplayedThread {
        name: t.name.clone(),
        cpu_ms: pair(t.cpu_ms),
        first_half_ms: pair(t.half_ms),
        switches: pair(t.switches),
    });
    Sides {
        elapsed_ms: pair(f.elapsed_ms),
        cpu_ms: pair(f.cpu_ms),
        voluntary_switches: pair(f.voluntary),
        involuntary_switches: pair(f.involuntary),
        wakeup_latency_us: f.latency_us.map(|[p50, p90, p99]| Percentiles {
            p50: pair(p50),
            p90: pair(p90),
            p99: pair(p99),
        }),
        second_half_latency_p50_us: f.late_latency_us.map(&pair),
        busy_pct: f.busy_pct.iter().map(|p| pair(*p)).collect(),
        threads: threads.collect(),
    }
}
