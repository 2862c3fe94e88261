//! What Perfetto's tables `sched_slice` and `thread_state` are to have for a recording, from its
//! events by the rules of those tables (perfetto.dev/docs/data-sources/cpu-scheduling).

use std::collections::BTreeMap;

use fairground_trace::{Event, Kind, State};

/// A slice: start, length (-1: open), CPU, thread, priority, state at its end.
pub type Slice = (u64, i64, u32, u32, i64, String);
/// A state: start, length (-1: open), CPU if it runs, thread, state, who woke it.
pub type ThreadState = (u64, i64, Option<u32>, u32, String, Option<u32>);

fn letter(state: State) -> String {
    match state {
        State::Runnable => "R".into(),
        State::Dead => "X".into(),
        State::Blocked(letter) => char::from(letter).into(),
    }
}

/// Rows of `sched_slice`: from each switch of a CPU to its next one.
pub fn slices(events: &[Event]) -> Vec<Slice> {
    let mut open: BTreeMap<u32, usize> = BTreeMap::new();
    let mut rows: Vec<Slice> = Vec::new();
    for event in events {
        let Kind::Switch {
            state,
            next,
            next_prio,
            ..
        } = event.kind
        else {
            continue;
        };
        if let Some(row) = open.insert(event.cpu, rows.len()) {
            rows[row].1 = (event.at_ns - rows[row].0) as i64;
            rows[row].5 = letter(state);
        }
        let none = String::new();
        rows.push((event.at_ns, -1, event.cpu, next, next_prio.into(), none));
    }
    rows.sort();
    rows
}

/// Rows of `thread_state`, without the idle tasks. Of a new thread the first is that it runs:
/// `sched_wakeup_new` makes none.
pub fn states(events: &[Event]) -> Vec<ThreadState> {
    let mut rows: Vec<ThreadState> = Vec::new();
    let mut last: BTreeMap<u32, usize> = BTreeMap::new();
    let mut enter = |at: u64, tid: u32, cpu: Option<u32>, state: String, by: Option<u32>| {
        if tid == 0 {
            return;
        }
        if let Some(row) = last.insert(tid, rows.len()) {
            rows[row].1 = (at - rows[row].0) as i64;
        }
        rows.push((at, -1, cpu, tid, state, by));
    };
    let mut now: BTreeMap<u32, State> = BTreeMap::new();
    let mut runs: BTreeMap<u32, bool> = BTreeMap::new();
    for event in events {
        let at = event.at_ns;
        match event.kind {
            Kind::Switch {
                prev, state, next, ..
            } => {
                // Of who ran before the first switch only what follows is known.
                enter(at, prev, None, letter(state), None);
                now.insert(prev, state);
                runs.insert(prev, false);
                enter(at, next, Some(event.cpu), "Running".into(), None);
                runs.insert(next, true);
            }
            Kind::Waking { tid, .. } => {
                let asleep = !matches!(now.get(&tid), Some(State::Runnable));
                if asleep && runs.get(&tid) != Some(&true) {
                    enter(at, tid, None, "R".into(), Some(event.tid));
                    now.insert(tid, State::Runnable);
                }
            }
            _ => {}
        }
    }
    rows.sort();
    rows
}
