//! Names of threads that change, in an exported replay: a thread is called what it was called in
//! the recording when it had computed as much. Who creates another one names it first. Units:
//! nanoseconds.

use rustc_hash::FxHashMap;

use super::Replay;
use crate::recording::Recording;
use crate::walk::{Fact, Walk};

/// When a thread ran, in order.
type Ran = Vec<(u64, u64)>;

impl Replay<'_> {
    /// Names the threads of a replay.
    pub(super) fn name_over_time(&self, replayed: &mut Recording) {
        let of = &self.recording.names;
        let renamed = |tid: u32| !of.over_time(tid).is_empty();
        let recorded = ran(self.recording, renamed);
        let again = ran(replayed, renamed);
        for (tid, ran) in recorded {
            let Some(again) = again.get(&tid) else {
                continue;
            };
            let mut names = Vec::new();
            for (nth, (at, name)) in of.over_time(tid).iter().enumerate() {
                // It has the first one from its creation on.
                let at = if nth == 0 {
                    0
                } else {
                    reached(again, computed(&ran, *at))
                };
                names.push((at, name.clone()));
            }
            replayed.names.set_over_time(tid, names);
        }
    }
}

/// When the threads ran that are asked for.
fn ran(recording: &Recording, asked: impl Fn(u32) -> bool) -> FxHashMap<u32, Ran> {
    let mut all: FxHashMap<u32, Ran> = FxHashMap::default();
    Walk::over(&recording.events, recording.cpus, |threads, fact| {
        if let Fact::Ran {
            thread, from, to, ..
        } = fact
            && asked(threads[thread].tid)
        {
            all.entry(threads[thread].tid).or_default().push((from, to));
        }
    });
    all
}

/// How much a thread had computed at a time.
fn computed(ran: &Ran, at: u64) -> u64 {
    let until = |(from, to): &(u64, u64)| at.min(*to).saturating_sub(*from);
    ran.iter().map(until).sum()
}

/// When it had computed so much: as it then runs on, or, if it never has, at its end.
fn reached(ran: &Ran, ns: u64) -> u64 {
    let mut left = ns;
    for (from, to) in ran {
        if left < to - from {
            return from + left;
        }
        left -= to - from;
    }
    ran.last().map_or(u64::MAX, |(_, to)| *to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_when_as_much_was_computed() {
        let recorded = vec![(100, 120), (140, 160)];
        let again = vec![(10, 35), (50, 70)];
        let of = |at: u64| reached(&again, computed(&recorded, at));
        assert_eq!([90, 100, 110, 130, 150].map(of), [10, 10, 20, 30, 55]);
        assert_eq!(reached(&again, 45), 70);
    }
}
