//! What a simulated run knows beyond tracepoints: counters of groups, and waits.

use std::collections::BTreeMap;

use fairground::place::Lock;
use fairground_sim::costs::KERNEL_OPS;
use fairground_sim::samples::{GroupState, Wait, Waited};

/// Counters of groups have a value so often, ns: a hundredth of a usual period.
pub const GROUPS_EVERY_NS: u64 = 1_000_000;
/// Waits that are shown as slices, ns: longer than any line needs that nobody else wants.
pub const WAITS_FROM_NS: u64 = 500;

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
        let mut of: Vec<Vec<&GroupState>> = vec![Vec::new(); paths.len()];
        for state in states {
            if let Some(of) = of.get_mut(state.group as usize) {
                of.push(state);
            }
        }
        for (group, of) in of.iter().enumerate().skip(1) {
            for (name, unit, value) in COUNTERS {
                let points = of.iter().filter_map(|s| Some((s.at_ns, value(s)?)));
                let mut points: Vec<(u64, i64)> = points.collect();
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

    /// Leaves out what was before `from_ns` and makes all times later by `by_ns`.
    pub fn shift(&mut self, from_ns: u64, by_ns: i64) {
        let later = |at: u64| at.saturating_add_signed(by_ns);
        for track in &mut self.counters {
            // What a counter had when it begins is what it had last.
            let first = track
                .points
                .iter()
                .rposition(|p| p.0 <= from_ns)
                .unwrap_or(0);
            track.points.drain(..first);
            for point in &mut track.points {
                point.0 = later(point.0.max(from_ns));
            }
        }
        for track in &mut self.slices {
            track.slices.retain(|s| s.0 >= from_ns);
            for slice in &mut track.slices {
                (slice.0, slice.1) = (later(slice.0), later(slice.1));
            }
        }
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
            Waited::Mm(line) => format!("line of mm_struct {}", line.name()),
            Waited::Other(Some((object, field)), _) => format!("line of {object} {field}"),
            Waited::Other(None, op) => format!("line in {}", KERNEL_OPS[op as usize].1),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_the_values_of_its_own_states() {
        let paths = ["/", "/a", "/b"].map(String::from);
        let state = |at_ns: u64, group: u32, load_avg: i64| GroupState {
            at_ns,
            group,
            load_avg,
            ..GroupState::default()
        };
        let states: Vec<GroupState> = (0..4)
            .flat_map(|t| [state(t, 0, 9), state(t, 1, 5), state(t, 2, t as i64)])
            .collect();
        let extras = Extras::new(&paths, &states, &[]);
        let told: Vec<_> = extras
            .counters
            .iter()
            .map(|c| (c.parent, c.name, c.points.len()))
            .collect();
        assert_eq!(told, [(1, "load_avg", 1), (2, "load_avg", 4)]);
    }

    #[test]
    fn a_counter_keeps_the_value_that_it_began_with() {
        let counter = CounterTrack {
            parent: 1,
            name: "quota left",
            unit: "ns",
            points: vec![(0, 5), (10, 6), (30, 7)],
        };
        let slices = vec![(5, 6, "a".to_string()), (25, 26, "b".to_string())];
        let name = "CPU 0 waits".to_string();
        let mut extras = Extras {
            parents: Vec::new(),
            counters: vec![counter],
            slices: vec![SliceTrack { name, slices }],
        };
        extras.shift(20, 100);
        assert_eq!(extras.counters[0].points, [(120, 6), (130, 7)]);
        assert_eq!(extras.slices[0].slices, [(125, 126, "b".to_string())]);
    }
}
