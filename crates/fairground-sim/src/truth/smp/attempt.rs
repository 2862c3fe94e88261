//! `balance/lb_decisions_*.jsonl`: attempts to balance that passed the test "should this CPU
//! balance".
//!
//! Each is replayed three times: from the sums of its groups (`busiest`), from the words of each
//! CPU where every group is one CPU (`words`), and the taking of tasks (`detach`).

use fairground::system::System;

use super::file::File;
use super::files::Recording;
use super::record::Record;
use super::row::{DecisionRow, rows};
use super::{busiest, detach, runs, state, words};
use crate::truth::TruthError;

/// Whether there are attempts of the run `key`, and when which CPU, newly idle, looked for work.
pub(super) fn newly_idle(
    file: &File<'_>,
    key: &str,
) -> Result<(bool, Vec<(f64, u32)>), TruthError> {
    let mut found = Vec::new();
    let mut any = false;
    for record in file.json_lines::<Record>() {
        let (_, record) = record?;
        any |= record.case == key;
        if record.case == key && record.idle == 2 && record.by_cpu == record.dst_cpu {
            found.push((record.t, record.by_cpu));
        }
    }
    Ok((any, found))
}

/// Replays a file.
pub(super) fn check(
    recording: &Recording,
    file: &File<'_>,
    changes: &[(&str, &str)],
) -> Result<Vec<DecisionRow>, TruthError> {
    let guest = &recording.machine(file)?;
    let sys = state::system(guest, changes);
    let mut from_sums = busiest::Counts::new(file.name);
    let mut from_words = words::Counts::new(file.name);
    let mut taken = detach::Counts::new(file.name, guest, changes, runs::at_root(recording, file)?);
    for record in file.json_lines::<Record>() {
        let (line, r) = record?;
        let error = |what| file.error(line, what);
        let env = r.env(&sys).map_err(error)?;
        from_sums.record(&sys, env, line, &r);
        // The next ones change the words of the CPUs and groups.
        from_words.record(&sys, env, line, &r);
        taken.record(line, &r).map_err(error)?;
        restore(&sys);
    }
    let counts = from_sums.counts().into_iter();
    Ok(rows(
        counts.chain(from_words.counts()).chain(taken.counts()),
    ))
}

/// Back to a machine at full capacity on which nothing runs.
fn restore(sys: &System) {
    use std::sync::atomic::Ordering::Relaxed;
    for (words, place) in sys.cpu.iter().zip(&sys.topology.places) {
        words.nr_running.store(0, Relaxed);
        words.h_nr_queued.store(0, Relaxed);
        words.h_nr_runnable.store(0, Relaxed);
        words.curr_is_idle.store(true, Relaxed);
        words.load_avg.store(0, Relaxed);
        words.util_avg.store(0, Relaxed);
        words.runnable_avg.store(0, Relaxed);
        words.capacity.store(u64::from(place.capacity), Relaxed);
        words.util_avg_rt.store(0, Relaxed);
    }
    for group in &sys.topology.groups {
        group.state.imbalance.store(false, Relaxed);
    }
}
