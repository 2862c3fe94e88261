//! Several replays as one: means over seeds, and one mean beside another.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Fidelity, Pair, ThreadRow};

impl Fidelity {
    /// The mean of replays of one recording with different seeds: what is recorded is the same in
    /// all. A value that only some have is the mean of those. It counts as stopped if one was, and
    /// threads are undone that one had not done; then means are lower bounds, too.
    #[must_use]
    pub fn mean(all: &[Self]) -> Option<Self> {
        let first = all.first()?;
        let of = |f: &dyn Fn(&Self) -> Pair| mean(all.iter().map(f));
        let some = |f: &dyn Fn(&Self) -> Option<Pair>| {
            let found: Vec<Pair> = all.iter().filter_map(f).collect();
            (!found.is_empty()).then(|| mean(found.into_iter()))
        };
        let latency = [0, 1, 2].map(|p| some(&|f| f.latency_us.map(|l| l[p])));
        let cpus = all.iter().map(|f| f.busy_pct.len()).max().unwrap_or(0);
        let mut undone: Vec<String> = Vec::new();
        for name in all.iter().flat_map(|f| &f.undone) {
            if !undone.contains(name) {
                undone.push(name.clone());
            }
        }
        Some(Self {
            threads: threads(all),
            elapsed_ms: of(&|f| f.elapsed_ms),
            cpu_ms: of(&|f| f.cpu_ms),
            voluntary: of(&|f| f.voluntary),
            involuntary: of(&|f| f.involuntary),
            latency_us: match latency {
                [Some(a), Some(b), Some(c)] => Some([a, b, c]),
                _ => None,
            },
            late_latency_us: some(&|f| f.late_latency_us),
            busy_pct: (0..cpus)
                .map(|cpu| of(&|f| f.busy_pct.get(cpu).copied().unwrap_or(NONE)))
                .collect(),
            stopped_ms: all.iter().filter_map(|f| f.stopped_ms).reduce(f64::max),
            beyond_ms: [0, 1].map(|part| {
                let sum: f64 = all.iter().map(|f| f.beyond_ms[part]).sum();
                sum / all.len() as f64
            }),
            undone,
            ..first.clone()
        })
    }

    /// This replay beside another one of the same recording: what was replayed here counts as
    /// recorded there. Of the recording itself nothing is left.
    #[must_use]
    pub fn beside(&self, other: &Self) -> Self {
        let pair = |a: Pair, b: Pair| Pair {
            recorded: a.replayed,
            replayed: b.replayed,
        };
        let both = |a: Option<Pair>, b: Option<Pair>| a.zip(b).map(|(a, b)| pair(a, b));
        let latency = self.latency_us.zip(other.latency_us);
        let cpus = self.cpus[1].max(other.cpus[1]);
        let busy = |f: &Self, cpu: usize| f.busy_pct.get(cpu).copied().unwrap_or(NONE);
        let (before, after) = (rows(self), rows(other));
        let thread = |name: &str| {
            let (a, b) = (before.get(name), after.get(name));
            let value = |f: fn(&ThreadRow) -> Pair| {
                let side = |t: Option<&&ThreadRow>| t.map_or(NONE, |t| f(t));
                pair(side(a), side(b))
            };
            ThreadRow {
                name: name.into(),
                cpu_ms: value(|t| t.cpu_ms),
                half_ms: value(|t| t.half_ms),
                switches: value(|t| t.switches),
                undone: b.is_some_and(|t| t.undone),
                counts: a.is_some_and(|t| t.counts),
            }
        };
        Self {
            threads: names(&[self, other]).into_iter().map(thread).collect(),
            elapsed_ms: pair(self.elapsed_ms, other.elapsed_ms),
            cpu_ms: pair(self.cpu_ms, other.cpu_ms),
            voluntary: pair(self.voluntary, other.voluntary),
            involuntary: pair(self.involuntary, other.involuntary),
            latency_us: latency.map(|(a, b)| [0, 1, 2].map(|p| pair(a[p], b[p]))),
            late_latency_us: both(self.late_latency_us, other.late_latency_us),
            halves_us: None,
            known_us: [None; 2],
            wakeups: self.wakeups,
            replayed_wakeups: other.replayed_wakeups,
            busy_pct: (0..cpus)
                .map(|cpu| pair(busy(self, cpu), busy(other, cpu)))
                .collect(),
            cpus: [self.cpus[1], other.cpus[1]],
            stopped_ms: other.stopped_ms,
            beyond_ms: other.beyond_ms,
            undone: other.undone.clone(),
        }
    }
}

const NONE: Pair = Pair {
    recorded: 0.0,
    replayed: 0.0,
};

/// Recorded as in the first one, replayed on average.
fn mean(pairs: impl Iterator<Item = Pair>) -> Pair {
    let pairs: Vec<Pair> = pairs.collect();
    let sum: f64 = pairs.iter().map(|p| p.replayed).sum();
    Pair {
        recorded: pairs.first().map_or(0.0, |p| p.recorded),
        replayed: sum / pairs.len().max(1) as f64,
    }
}

/// Rows of a side by name.
type Rows<'a> = FxHashMap<&'a str, &'a ThreadRow>;

fn rows(f: &Fidelity) -> Rows<'_> {
    f.threads.iter().map(|t| (&*t.name, t)).collect()
}

/// Names of all rows, in the order of the first side that has them.
fn names<'a>(of: &[&'a Fidelity]) -> Vec<&'a str> {
    let mut seen = FxHashSet::default();
    let names = of.iter().flat_map(|f| &f.threads).map(|t| &*t.name);
    names.filter(|name| seen.insert(*name)).collect()
}

/// Rows of all by name: a thread that a replay does not have has done nothing there.
fn threads(all: &[Fidelity]) -> Vec<ThreadRow> {
    let sides: Vec<Rows<'_>> = all.iter().map(rows).collect();
    let row = |name: &str| {
        let found: Vec<Option<&ThreadRow>> = sides.iter().map(|s| s.get(name).copied()).collect();
        let recorded = |f: fn(&ThreadRow) -> Pair| {
            let first = found.iter().flatten().next();
            first.map_or(0.0, |t| f(t).recorded)
        };
        let value = |f: fn(&ThreadRow) -> Pair| Pair {
            recorded: recorded(f),
            ..mean(found.iter().map(|t| t.map_or(NONE, f)))
        };
        ThreadRow {
            name: name.into(),
            cpu_ms: value(|t| t.cpu_ms),
            half_ms: value(|t| t.half_ms),
            switches: value(|t| t.switches),
            undone: found.iter().flatten().any(|t| t.undone),
            counts: found.iter().flatten().any(|t| t.counts),
        }
    };
    let all: Vec<&Fidelity> = all.iter().collect();
    names(&all).into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(recorded: f64, replayed: f64) -> Pair {
        Pair { recorded, replayed }
    }

    fn replay(replayed: f64) -> Fidelity {
        let mut f = Fidelity::example(&[("hog (7)", pair(10.0, replayed), pair(5.0, replayed))]);
        f.elapsed_ms = pair(0.1, replayed);
        f
    }

    #[test]
    fn a_mean_is_of_what_was_replayed_and_a_thread_that_is_missing_did_nothing() {
        let (one, mut two) = (replay(1.0), replay(2.0));
        two.threads.push(ThreadRow {
            name: "kid".into(),
            cpu_ms: pair(0.0, 8.0),
            ..two.threads[0].clone()
        });
        two.stopped_ms = Some(30.0);
        two.undone = vec!["kid (8)".into()];
        let mean = Fidelity::mean(&[one.clone(), two, replay(6.0)]).unwrap();
        // The recorded value to the last bit.
        assert_eq!(mean.elapsed_ms, pair(0.1, 3.0));
        assert_eq!(mean.threads[0].cpu_ms, pair(10.0, 3.0));
        assert_eq!(mean.threads[1].cpu_ms, pair(0.0, 8.0 / 3.0));
        assert_eq!((mean.stopped_ms, mean.undone.len()), (Some(30.0), 1));
        assert_eq!(Fidelity::mean(std::slice::from_ref(&one)), Some(one));
        assert_eq!(Fidelity::mean(&[]), None);
    }

    #[test]
    fn beside_another_one_the_replay_stands_where_the_recording_stood() {
        let mut other = replay(4.0);
        other.cpus = [1, 2];
        other.busy_pct.push(pair(0.0, 70.0));
        let beside = replay(2.0).beside(&other);
        assert_eq!(beside.elapsed_ms, pair(2.0, 4.0));
        assert_eq!(beside.threads[0].cpu_ms, pair(2.0, 4.0));
        assert_eq!((beside.cpus, beside.busy_pct.len()), ([1, 2], 2));
        assert_eq!(beside.busy_pct[1], pair(0.0, 70.0));
        assert_eq!(beside.latency_us, None);
    }
}
