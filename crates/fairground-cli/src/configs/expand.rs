//! The workloads of a configuration on a machine.

use super::series::{Count, Shape};
use super::{Loops, Named, Test};

/// Workloads of a configuration by default, if its tests allow: with five seeds a small machine
/// takes about a minute for them.
const WORKLOADS: usize = 8;
/// Counts of a test by default.
pub(super) const COUNTS: std::ops::RangeInclusive<usize> = 2..=5;
/// Senders of a group, and its receivers.
const FDS: u32 = 20;

/// What a configuration stands for on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expanded {
    /// Command lines, word by word.
    pub workloads: Vec<Vec<String>>,
    /// How many there are with the whole series.
    pub of: usize,
}

/// All workloads, or the first and the last count of each series and some between.
pub fn expand(named: &Named, shape: Shape, whole: bool) -> Expanded {
    let config = &named.config;
    let asked = |test: &&Test| named.test.as_ref().is_none_or(|name| *name == test.name);
    let tests: Vec<&Test> = config.tests.iter().filter(asked).collect();
    let mut expanded = Expanded::default();
    for test in &tests {
        let here = of_test(test, tests.len(), shape, whole);
        expanded.of += here.of;
        expanded.workloads.extend(here.workloads);
    }
    expanded
}

/// The same of one test, where so many are asked for.
pub(super) fn of_test(test: &Test, tests: usize, shape: Shape, whole: bool) -> Expanded {
    let all = counts(test, shape);
    let of = all.len();
    let each = (WORKLOADS / tests.max(1)).clamp(*COUNTS.start(), *COUNTS.end());
    let taken = match (&test.cut, whole) {
        (_, true) => all,
        (Some(cut), false) => values(cut, shape),
        (None, false) => spread(&all, each),
    };
    Expanded {
        workloads: taken.into_iter().map(|n| words(test, shape, n)).collect(),
        of,
    }
}

/// The counts of a test; `None` once where it has no series.
fn counts(test: &Test, shape: Shape) -> Vec<Option<u32>> {
    match &test.series {
        Some(series) => series.on(shape).into_iter().map(Some).collect(),
        None => vec![None],
    }
}

fn values(cut: &[Count], shape: Shape) -> Vec<Option<u32>> {
    let mut values: Vec<Option<u32>> = cut.iter().map(|count| Some(count.on(shape))).collect();
    values.dedup();
    values
}

/// The first, the last, and others at equal distances.
fn spread<T: Copy>(all: &[T], most: usize) -> Vec<T> {
    if all.len() <= most {
        return all.to_vec();
    }
    let last = all.len() - 1;
    let at = |i: usize| all[(i * last + (most - 1) / 2) / (most - 1)];
    (0..most).map(at).collect()
}

fn words(test: &Test, shape: Shape, n: Option<u32>) -> Vec<String> {
    let n = n.unwrap_or(1);
    let loops = test.loops.map_or(0, |loops| loops.of(n));
    let fill = |word: &str| {
        word.replace("{n}", &n.to_string())
            .replace("{nodes}", &shape.nodes.to_string())
            .replace("{loops}", &loops.to_string())
    };
    test.command.split_whitespace().map(fill).collect()
}

impl Loops {
    /// For so many groups.
    fn of(self, groups: u32) -> u32 {
        let in_a_loop = u64::from(groups.max(1)) * u64::from(FDS * FDS);
        ((u64::from(self.messages) / in_a_loop) as u32).max(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configs::{all, find};
    use fairground_sim::machine_file::Machine;
    use fairground_sim::workload::{Env, Workload};

    fn shape(id: &str) -> Shape {
        Shape::new(&Machine::builtin(id).expect("built in").topology)
    }

    fn lines(name: &str, id: &str, whole: bool) -> Vec<String> {
        let named = find(name).ok().expect("a configuration");
        let expanded = expand(&named, shape(id), whole);
        let lines = expanded.workloads.iter().map(|words| words.join(" "));
        lines.collect()
    }

    #[test]
    fn hackbench_of_mmtests_on_8_128_and_224_cpus() {
        let name = "mmtests/scheduler-unbound/hackbench-process-pipes";
        let groups = |id, whole| -> Vec<String> {
            let lines = lines(name, id, whole);
            let last = lines.iter().filter_map(|line| line.split(' ').next_back());
            last.map(String::from).collect()
        };
        let small = lines(name, "xeon-8cpu-2013", false);
        assert_eq!(
            small,
            [
                "perf bench sched messaging --pipe -l 250 -g 1",
                "perf bench sched messaging --pipe -l 50 -g 5",
                "perf bench sched messaging --pipe -l 25 -g 10",
                "perf bench sched messaging --pipe -l 15 -g 16",
                "perf bench sched messaging --pipe -l 7 -g 32",
            ]
        );
        assert_eq!(groups("xeon-8cpu-2013", true).len(), 13);
        let medium = ["1", "48", "96", "192", "296"];
        assert_eq!(groups("icx-8358-2s", false), medium);
        let large = ["1", "57", "140", "196", "296"];
        assert_eq!(groups("spr-8480-2s", false), large);
    }

    #[test]
    fn jobs_of_lkp_take_percentages_of_the_cpus() {
        for (id, half, all) in [
            ("xeon-8cpu-2013", 4, 8),
            ("icx-8358-2s", 64, 128),
            ("spr-8480-2s", 112, 224),
        ] {
            let cut = lines("lkp/hackbench", id, false);
            assert_eq!(cut.len(), 2 * 4, "{id}");
            assert!(cut[0].ends_with(&format!(" -g {half}")), "{}", cut[0]);
            assert!(cut[1].ends_with(&format!(" -g {all}")), "{}", cut[1]);
            let whole = lines("lkp/hackbench", id, true);
            assert!(whole[2].ends_with(&format!(" -g {}", 16 * all)));
        }
        let netperf = lines("lkp/netperf/UDP_RR", "spr-8480-2s", false);
        let pairs =
            ["56", "448"].map(|n| format!("netperf -H 127.0.0.1 -t UDP_RR -l 5ms --pairs {n}"));
        assert_eq!(netperf, pairs);
    }

    #[test]
    fn schbench_has_a_message_thread_for_each_node() {
        let line = |id| lines("mmtests/scheduler-schbench", id, true).pop();
        let last = |nodes, n| Some(format!("schbench -r 100ms -m {nodes} -t {n}"));
        assert_eq!(line("xeon-8cpu-2013"), last(1, 7));
        assert_eq!(line("spr-8480-2s"), last(2, 111));
    }

    #[test]
    fn every_workload_of_every_configuration_has_a_model() {
        for config in all().ok().expect("the files are as they should be") {
            let Ok(named) = find(&config.name) else {
                assert!(config.why_not.is_some(), "{}", config.name);
                continue;
            };
            for id in ["xeon-8cpu-2013", "spr-8480-2s"] {
                let shape = shape(id);
                let env = Env { cpus: shape.cpus };
                let whole = expand(&named, shape, true);
                let cut = expand(&named, shape, false);
                assert_eq!(whole.of, whole.workloads.len(), "{}", config.name);
                assert_eq!(whole.of, cut.of, "{}", config.name);
                assert!(cut.workloads.len() <= whole.of, "{}", config.name);
                for words in cut.workloads {
                    // Making the largest takes seconds; the cut has all forms.
                    assert!(whole.workloads.contains(&words), "{words:?}");
                    if let Err(error) = Workload::from_argv(&words, &env) {
                        panic!("{}: {words:?}: {error}", config.name);
                    }
                }
            }
        }
    }
}
