//! What a simulated run knows beyond tracepoints: counters of groups, and waits.

use std::collections::BTreeMap;

use fairground::place::Lock;
use fairground_sim::costs::KERNEL_OPS;
use fairground_sim::samples::{GroupState, Wait, Waited};

/// A track of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterTrack {
    /// The track that it stands below; of [`Extras::parents`].
    pub parent: usize,
    /// Name.
    pub name: &'static str,
    /// Unit, for people.
    pub unit: &'static str,
    /// Time (ns) and value, wherever the value changes.
    pub points: Vec<(u64, i64)>,
}

/// A track of slices that do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceTrack {
    /// Name.
    pub name: String,
    /// From, to (ns), name.
    pub slices: Vec<(u64, u64, String)>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Names of the tracks above others.
    pub parents: Vec<String>,
    /// Counters.
    pub counters: Vec<CounterTrack>,
    /// Slices.
    pub slices: Vec<SliceTrack>,
}

type Value = fn(&GroupState) -> Option<i64>;

const COUNTERS: [(&str, &str, Value); 5] = [
    ("load_avg", "load", |s| Some(s.load_avg)),
    ("util_avg", "util", |s| Some(s.util_avg as i64)),
    ("shares on CPUs", "weight", |s| Some(s.weight as i64)),
    ("quota left", "ns", |s| s.runtime_ns.map(|ns| ns as i64)),
    ("throttled queues", "queues", |s| {
        s.runtime_ns.map(|_| i64::from(s.throttled))
    }),
];

impl Extras {
    /// Of the states of groups, in order of time, and the waits of a run. The root has no counters:
    /// it has neither weight nor limit, and nobody publishes its load.
    #[must_use]
    pub fn new(paths: &[String], states: &[GroupState], waits: &[Wait]) -> Self {
        let mut extras = Self {
            parents: paths.iter().map(|path| format!("cgroup {path}")).collect(),
            ..Self::default()
        };
        for group in 1..paths.len() {
            for (name, unit, value) in COUNTERS {
                let of = states.iter().filter(|s| s.group as usize == group);
                let mut points: Vec<(u64, i64)> =
                    of.filter_map(|s| Some((s.at_ns, value(s)?))).collect();
                points.dedup_by_key(|p| p.1);
                if points.iter().any(|p| p.1 != 0) {
                    extras.counters.push(CounterTrack {
                        parent: group,
                        name,
                        unit,
                        points,
                    });
                }
            }
        }
        extras.slices = slices(paths, waits);
        extras
    }
}

fn slices(paths: &[String], waits: &[Wait]) -> Vec<SliceTrack> {
    let mut by_cpu: BTreeMap<u32, Vec<(u64, u64, String)>> = BTreeMap::new();
    let path = |group: u32| paths.get(group as usize).map_or("?", String::as_str);
    for wait in waits {
        let what = match wait.what {
            Waited::Lock(Lock::Rq(cpu)) => format!("lock of rq {}", cpu.0),
            Waited::Lock(Lock::Bandwidth(tg)) => format!("lock of quota {}", path(tg.0)),
            Waited::Line(o) => match o.kind {
                fairground::place::Kind::Tg => format!("line of task_group {}", path(o.a)),
                kind => format!("line of {} {}", kind.name(), o.a),
            },
            Waited::Own(op) => format!("line in {}", KERNEL_OPS[op as usize].1),
        };
        let track = by_cpu.entry(wait.cpu).or_default();
        // A wait inside another one, as of the line of a lock's own word, is a part of that.
        let after = track.last().is_none_or(|(_, end, _)| wait.from_ns >= *end);
        if after && wait.to_ns > wait.from_ns {
            track.push((wait.from_ns, wait.to_ns, what));
        }
    }
    let track = |(cpu, slices)| SliceTrack {
        name: format!("CPU {cpu} waits"),
        slices,
    };
    by_cpu.into_iter().map(track).collect()
}
