//! The result of `fairground sweep`: points of a product of settings, each run with the same seeds
//! and held against the first one.
//!
//! | file | subject |
//! | --- | --- |
//! | `knee` | where raising a setting stops to pay |
//! | `notes` | notes of points, each once |
//! | `target` | which is the smallest point that meets a target |
//! | `beware` | what a reader must know of points before believing them |
//! | `text` | tables for people |
//! | `page` | the report page, with a plot for each metric |

mod beware;
mod knee;
mod notes;
mod page;
mod size;
mod target;
mod text;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::{Catalogue, MetricInfo, UnknownMetric};
use crate::compare::compare_metrics;
use crate::complete::complete;
use crate::differing::in_vain;
use crate::lower_bound::lower_bounds;
use crate::machine::MachineId;
use crate::notes::not_sustained;
use crate::number::Number;
use crate::redo::Redo;
use crate::result::{Comparison, Note, OfSeeds, Setup, Variant};
use crate::services::{of_service, services};
use crate::stats::summary;
pub use knee::Knee;
pub use page::sweep_page;
pub use target::{Answer, Meets, Reached, Target, TargetError};
pub use text::sweep_text;

/// The result of `fairground sweep`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Version of Fairground.
    pub fairground: String,
    /// The machine of the first point, whole where numbers of its CPUs are swept.
    pub machine: MachineId,
    /// All machines, if several are swept, each once and whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineId>,
    /// Profile, e.g. `linux-6.18`, of the first point; each point has its own.
    pub profile: String,
    /// The workload's command line.
    pub workload: Vec<String>,
    /// What is swept; the points are the product, the last one changing fastest.
    pub over: Vec<Axis>,
    /// The metrics that tables and plots show.
    pub metrics: Vec<String>,
    /// One for each combination.
    pub points: Vec<Point>,
    /// Where metrics that fall with the setting have their knee, if one setting is swept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knees: Vec<Knee>,
    /// Which point meets the targets, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Unit, direction and meaning of each metric in `runs`.
    pub metric_info: Vec<MetricInfo>,
    /// What is needed to get this result again.
    pub redo: Redo,
    /// What a reader must know before believing the numbers.
    pub notes: Vec<Note>,
}

/// Something that is swept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// What it is called: `/web/cpu.max`, `base_slice_ns`, `cpus`.
    pub name: String,
    /// Its values, as they were given.
    pub values: Vec<String>,
    /// Their sizes, if they are such: CPUs of a `cpu.max` (`null`: no limit), microseconds of a
    /// burst.
    pub sizes: Option<Vec<Number>>,
}

/// One combination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// One value for each of `over`.
    pub values: Vec<String>,
    /// Its machine as it was simulated: with the CPUs and idle states that it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// Its profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Why the kernel refuses it; then there are no runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Whether it meets the targets, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meets: Option<Meets>,
    /// Kinds of request that it does not sustain: they took longer in the second half of the
    /// measured time than in the first, beyond chance, so latencies are those of this length of
    /// run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_sustained: Vec<String>,
    /// Mean, spread and interval of each metric over the seeds.
    pub summary: BTreeMap<String, Spread>,
    /// Of metrics that some seeds have no value of: the mean over all seeds at least, with what
    /// requests that were open had taken by the end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at_least: BTreeMap<String, f64>,
    /// The metrics of `metrics` against the first point that was run.
    pub comparison: Vec<Comparison>,
    /// Decisions, settings and runs; without cache lines and functions.
    pub variant: Variant,
}

/// A sample, summarised.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation; `null` for one run.
    pub sd: Number,
    /// 95 % interval of the mean, low end first; both `null` for one run.
    pub ci95: [Number; 2],
}

/// A point as it was run, or why it was not.
pub type Tried = Result<Variant, String>;

/// What is known of a point beside its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointAbout {
    /// Its machine as it was simulated.
    pub machine: MachineId,
    /// Its profile.
    pub profile: String,
    /// What a reader must know of it before believing its numbers.
    pub notes: Vec<String>,
}

/// What is swept of machines.
const OF_MACHINES: [&str; 3] = ["machine", "cpus", "max-idle"];

/// The points under their names, empty where they were refused, and what was said then.
fn named_variants(tried: Vec<Tried>, names: &[String]) -> (Vec<Variant>, Vec<Option<String>>) {
    let named = |(tried, name): (Tried, &String)| {
        let (variant, refused) = match tried {
            Ok(variant) => (variant, None),
            Err(refused) => (Variant::default(), Some(refused)),
        };
        let name = name.clone();
        (Variant { name, ..variant }, refused)
    };
    tried.into_iter().zip(names).map(named).unzip()
}

impl Sweep {
    /// From the runs of each point, in order; `metrics` are those to show, none for the usual ones.
    ///
    /// # Errors
    /// A metric to show or of a target that there is not.
    pub fn new(
        setup: Setup,
        over: Vec<Axis>,
        tried: Vec<Tried>,
        metrics: &[String],
        targets: &[Target],
    ) -> Result<Self, UnknownMetric> {
        let names: Vec<String> = products(&over).iter().map(|v| label(&over, v)).collect();
        let (mut variants, refusals) = named_variants(tried, &names);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (metric_info, mut notes) = complete(&setup, &mut variants, &names);
        notes.extend(few_seeds(&variants));
        let catalogue = Catalogue::new(metric_info.iter().cloned());
        let asked = metrics.iter().map(|name| catalogue.get(name).cloned());
        let shown = match metrics {
            [] => usual(&metric_info, targets),
            _ => asked.collect::<Result<_, _>>()?,
        };
        let base = variants.iter().find(|v| !v.runs.is_empty()).cloned();
        let points = products(&over).into_iter().zip(variants).zip(refusals);
        let mut of_points: Vec<Vec<Note>> = Vec::new();
        let point = |((values, variant), refused): ((Vec<String>, Variant), Option<String>)| {
            let ran = base.as_ref().filter(|_| refused.is_none());
            let mut told = Vec::new();
            let comparison = ran.map_or(Vec::new(), |base| {
                compare_metrics(&shown, base, &variant, &mut told)
            });
            // A base of 0 is seen in the table, and seeds are the same for all.
            told.retain(|note| matches!(note, Note::Work(_)));
            of_points.push(told);
            Point {
                values,
                refused,
                not_sustained: not_sustained(&variant),
                summary: spreads(&metric_info, &variant),
                at_least: lower_bounds(&metric_info, &variant),
                comparison,
                variant,
                ..Point::default()
            }
        };
        let points: Vec<Point> = points.map(point).collect();
        notes.extend(notes::once(&over, &points, of_points));
        notes.extend(no_different(&over, &points));
        let knees = knee::knees(&over, &points, &shown);
        let shown: Vec<String> = shown.into_iter().map(|info| info.name).collect();
        let mut sweep = Self {
            fairground: setup.fairground,
            machine: setup.machine,
            machines: Vec::new(),
            profile: setup.profile,
            workload: setup.workload,
            knees,
            points,
            over,
            metrics: shown,
            answer: None,
            metric_info,
            redo: setup.redo,
            notes,
        };
        beware::note(&mut sweep, targets);
        target::answer(&mut sweep, targets, &catalogue)?;
        Ok(sweep)
    }

    /// What is known of the points, in their order, and the whole machines, each once: where
    /// numbers of CPUs are swept, one hash does not say it. Each note is kept once, with its
    /// points.
    pub fn describe(&mut self, whole: Vec<MachineId>, points: Vec<PointAbout>) {
        if let Some(first) = whole.first().filter(|_| self.has_several(&OF_MACHINES)) {
            self.machine = first.clone();
        }
        self.machines = if whole.len() > 1 { whole } else { Vec::new() };
        let said = |about: &PointAbout| about.notes.iter().cloned().map(Note::Said).collect();
        let notes: Vec<Vec<Note>> = points.iter().map(said).collect();
        self.notes
            .extend(notes::once(&self.over, &self.points, notes));
        for (point, about) in self.points.iter_mut().zip(points) {
            point.machine = Some(about.machine);
            point.profile = Some(about.profile);
        }
    }

    /// Whether one of these is swept.
    fn has_several(&self, names: &[&str]) -> bool {
        self.over.iter().any(|axis| names.contains(&&*axis.name))
    }

    /// The machines that were simulated, each once, if several are swept.
    fn machines_swept(&self) -> Vec<&MachineId> {
        let mut all: Vec<&MachineId> = Vec::new();
        if self.has_several(&OF_MACHINES) {
            for machine in self.points.iter().filter_map(|p| p.machine.as_ref()) {
                if !all.contains(&machine) {
                    all.push(machine);
                }
            }
        }
        all
    }

    /// Its profile, or that it is swept.
    fn profile_words(&self) -> &str {
        match self.has_several(&["profile"]) {
            true => "swept",
            false => &self.profile,
        }
    }

    /// The knee of `metric`, if that is at this point.
    fn knee_at(&self, point: &Point, metric: &str) -> Option<&Knee> {
        let at = |knee: &&Knee| knee.metric == metric;
        let knee = self.knees.iter().find(at)?;
        let here = self.points.get(knee.point)?;
        (here.values == point.values).then_some(knee)
    }

    fn info(&self, metric: &str) -> Option<&MetricInfo> {
        self.metric_info.iter().find(|info| info.name == metric)
    }
}

/// `cpu.max=20ms/100ms cpu.max.burst=0`.
fn label(over: &[Axis], values: &[String]) -> String {
    let pairs = over
        .iter()
        .zip(values)
        .map(|(axis, value)| format!("{}={value}", axis.name));
    pairs.collect::<Vec<_>>().join(" ")
}

/// All combinations of the values, the last axis changing fastest.
#[must_use]
pub fn products(over: &[Axis]) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    for axis in over {
        let longer = |head: &Vec<String>| {
            let head = head.clone();
            axis.values
                .iter()
                .map(move |value| [head.clone(), vec![value.clone()]].concat())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Which points are the first one again, although something was set: no metric can show it.
fn no_different(over: &[Axis], points: &[Point]) -> Vec<Note> {
    const NOT_REACHED: &str = "the same as the first point in every count of every run: this \
                               workload did not reach what differs between them";
    const IN_VAIN: &str = "the same as the first point: they differ only in decisions that have \
                           no part in either";
    let Some(base) = points.iter().position(|p| !p.variant.runs.is_empty()) else {
        return Vec::new();
    };
    let first = &points[base].variant;
    let same = (base + 1..points.len()).filter(|&i| points[i].variant.counts_as(first));
    let (vain, others): (Vec<usize>, Vec<usize>) =
        same.partition(|&i| in_vain(first, &points[i].variant));
    let note = |(places, words): (Vec<usize>, &str)| {
        let whose = notes::whose(over, points, &places).filter(|_| !places.is_empty())?;
        let note = Box::new(Note::Said(words.into()));
        Some(Note::Of { whose, note })
    };
    let both = [(vain, IN_VAIN), (others, NOT_REACHED)];
    both.into_iter().filter_map(note).collect()
}

fn few_seeds(variants: &[Variant]) -> Option<Note> {
    const ONE_RUN: &str = "one run for each point has no spread, so there is no interval and no \
                           verdict; give more seeds";
    match variants.iter().map(|v| v.runs.len()).max()? {
        1 => Some(Note::Said(ONE_RUN.into())),
        2 => Some(Note::Seeds(OfSeeds::Two)),
        _ => None,
    }
}

fn spreads(info: &[MetricInfo], variant: &Variant) -> BTreeMap<String, Spread> {
    let spread = |info: &MetricInfo| {
        let values = variant.runs.iter().filter_map(|run| run.metric(&info.name));
        let found = summary(&values.collect::<Vec<_>>())?.up_to(info.whole());
        let spread = Spread {
            mean: found.mean,
            sd: found.sd,
            ci95: found.ci95.map_or([None; 2], |ends| ends.map(Some)),
        };
        Some((info.name.clone(), spread))
    };
    info.iter().filter_map(spread).collect()
}

/// What one asks first: latency at p50, latency at p99 and throughput of the service that clients
/// see, the last two of each other one, periods throttled, CPUs used; and what the targets are
/// about.
fn usual(info: &[MetricInfo], targets: &[Target]) -> Vec<MetricInfo> {
    use crate::catalogue::{Better, is_own};
    let own = |m: &&MetricInfo| is_own(&m.name);
    let first = |fits: &dyn Fn(&MetricInfo) -> bool| info.iter().filter(own).find(|m| fits(m));
    let mut shown: Vec<&MetricInfo> = Vec::new();
    let services = services(info);
    for (place, service) in services.iter().enumerate() {
        let of = of_service(info, service);
        shown.extend(&of[usize::from(place > 0)..]);
    }
    if services.is_empty() {
        shown.extend(first(&|m| m.name.ends_with(".p50")));
        shown.extend(first(&|m| m.name.ends_with(".p99")));
        let higher = first(&|m| m.better == Some(Better::Higher));
        let directed = || first(&|m| m.better.is_some());
        shown.extend(higher.or_else(|| shown.is_empty().then(directed).flatten()));
    }
    let also = |name: &str| info.iter().find(|m| m.name == name);
    if shown.iter().all(|m| !m.name.ends_with(".p99")) {
        shown.extend(also("wakeup_latency_us.p99"));
    }
    shown.extend(
        ["throttled_pct", "slow_periods_pct", "busy_pct"]
            .into_iter()
            .filter_map(also),
    );
    for target in targets {
        let missing = shown.iter().all(|m| m.name != target.metric());
        shown.extend(also(target.metric()).filter(|_| missing));
    }
    shown.into_iter().cloned().collect()
}

/// `VALUES...,seed,METRIC...` with one line for each run. A missing number is an empty field. If
/// there are knees, a last field `knee` has the metrics that have theirs at the point.
#[must_use]
pub fn csv_of_sweep(sweep: &Sweep) -> String {
    let metrics = sweep.metric_info.iter().map(|info| info.name.clone());
    let axes = sweep.over.iter().map(|axis| axis.name.clone());
    let knees = |words: String| (!sweep.knees.is_empty()).then_some(words);
    let head = axes.chain(["seed".into()]).chain(metrics);
    let mut records = vec![head.chain(knees("knee".into())).collect()];
    for point in &sweep.points {
        let here = sweep.metrics.iter();
        let here = here.filter(|metric| sweep.knee_at(point, metric).is_some());
        let here = here.cloned().collect::<Vec<_>>().join(" ");
        for run in &point.variant.runs {
            let value = |info: &MetricInfo| {
                run.metric(&info.name)
                    .map_or(String::new(), |value| value.to_string())
            };
            let head = point.values.iter().cloned().chain([run.seed.to_string()]);
            let values = sweep.metric_info.iter().map(value);
            records.push(head.chain(values).chain(knees(here.clone())).collect());
        }
    }
    crate::flat::csv_of(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Better;
    use crate::result::{Run, Verdict};

    fn setup() -> Setup {
        Setup {
            fairground: "0.1.0".into(),
            machine: MachineId {
                id: "m".into(),
                hash: "h".into(),
                ..MachineId::default()
            },
            profile: "linux-6.18".into(),
            workload: vec!["s.toml".into()],
            workload_metrics: vec![MetricInfo {
                name: "test.p99".into(),
                unit: "us".into(),
                better: Some(Better::Lower),
                description: "A latency.".into(),
            }],
            redo: Redo::default(),
        }
    }

    fn runs(mean: f64) -> Variant {
        let run = |(seed, off): (u64, f64)| {
            let mut run = Run::new(seed);
            run.set_metric("test.p99", mean + off);
            run.set_metric("busy_pct", 5.0);
            run
        };
        Variant {
            runs: [(1, -1.0), (2, 0.0), (3, 1.0)].map(run).to_vec(),
            ..Variant::default()
        }
    }

    fn axis(points: usize) -> Axis {
        Axis {
            name: "/web/cpu.max".into(),
            values: (1..=points).map(|i| format!("{i}ms/10ms")).collect(),
            sizes: Some((1..=points).map(|i| Some(0.1 * i as f64)).collect()),
        }
    }

    fn swept(tried: Vec<Tried>, targets: &[Target]) -> Sweep {
        Sweep::new(setup(), vec![axis(tried.len())], tried, &[], targets).unwrap()
    }

    /// A point of three seeds for each mean.
    pub(super) fn sweep_of(means: &[f64]) -> Sweep {
        swept(means.iter().map(|mean| Ok(runs(*mean))).collect(), &[])
    }

    /// With a target.
    pub(super) fn sweep_to(means: &[f64], target: &str) -> Sweep {
        let targets = [Target::parse(target).unwrap()];
        swept(means.iter().map(|mean| Ok(runs(*mean))).collect(), &targets)
    }

    #[test]
    fn points_are_held_against_the_first() {
        let sweep = sweep_of(&[30.0, 20.0, 30.0]);
        assert_eq!(sweep.metrics, ["test.p99", "busy_pct"]);
        let verdicts: Vec<Verdict> = sweep
            .points
            .iter()
            .map(|p| p.comparison[0].verdict)
            .collect();
        assert_eq!(verdicts, [Verdict::Noise, Verdict::Better, Verdict::Noise]);
        let spread = sweep.points[1].summary["test.p99"];
        assert_eq!((spread.mean, spread.sd), (20.0, Some(1.0)));
        let text = sweep_text(&sweep, crate::text::Style::default());
        assert!(text.contains("2ms/10ms  20.00 +-2.484  better"), "{text}");
        assert!(text.lines().all(|line| line.len() < 100), "{text}");
    }

    #[test]
    fn a_refused_point_has_a_reason_and_no_runs() {
        let sweep = swept(
            vec![Err("too much".into()), Ok(runs(5.0)), Ok(runs(4.0))],
            &[],
        );
        assert!(sweep.points[0].comparison.is_empty() && sweep.points[0].summary.is_empty());
        assert_eq!(
            sweep.points[2].comparison[0].base,
            Some(5.0),
            "the first that was run"
        );
        let text = sweep_text(&sweep, crate::text::Style::default());
        assert!(text.contains("refused   too much"), "{text}");
        assert_eq!(csv_of_sweep(&sweep).lines().count(), 7);
    }

    #[test]
    fn the_product_changes_its_last_axis_fastest() {
        let two = |name: &str| Axis {
            name: name.into(),
            values: vec!["1".into(), "2".into()],
            sizes: None,
        };
        let all = products(&[two("a"), two("b")]);
        let joined: Vec<String> = all.iter().map(|values| values.concat()).collect();
        assert_eq!(joined, ["11", "12", "21", "22"]);
    }

    #[test]
    fn a_sweep_comes_back_from_its_json() {
        let sweep = sweep_to(&[30.0, 20.0], "test.p99<25");
        let text = serde_json::to_string(&sweep).unwrap();
        assert_eq!(serde_json::from_str::<Sweep>(&text).unwrap(), sweep);
        let page = sweep_page(&sweep, crate::text::Style::default()).unwrap();
        assert_eq!(page.matches("<svg class=\"chart\"").count(), 2);
        assert!(
            page.contains("test.p99&lt;25") || page.contains("test.p99&#60;25"),
            "the target"
        );
    }

    #[test]
    fn points_without_any_difference_are_the_same_and_their_notes_name_them() {
        let sweep = sweep_of(&[30.0, 30.0, 20.0]);
        let words: Vec<&str> = sweep
            .points
            .iter()
            .map(|p| p.comparison[0].word())
            .collect();
        assert_eq!(words, ["same", "same", "better"]);
        let note = "/web/cpu.max=2ms/10ms: the same as the first point in every count of every run";
        assert!(
            sweep.notes.iter().any(|n| n.to_string().starts_with(note)),
            "{:?}",
            sweep.notes
        );
        let text = sweep_text(&sweep, crate::text::Style::default());
        for part in ["+-2.484  same", "+-2.484  better", "same: every count"] {
            assert!(text.contains(part), "`{part}` is not in {text}");
        }
    }

    #[test]
    fn what_is_swept_is_not_taken_from_the_first_point() {
        let over = |name: &str| Axis {
            name: name.into(),
            values: vec!["1".into(), "2".into()],
            sizes: None,
        };
        let text = |axis: &str, whole: &str| {
            let tried = vec![Ok(runs(1.0)), Ok(runs(2.0))];
            let sweep = Sweep::new(setup(), vec![over(axis)], tried, &[], &[]);
            let mut sweep = sweep.unwrap();
            let machine = |hash: &str| MachineId {
                id: "m".into(),
                hash: hash.into(),
                ..MachineId::default()
            };
            let about = |hash: &str| PointAbout {
                machine: machine(hash),
                profile: format!("linux-{hash}"),
                notes: vec![format!("about {hash}")],
            };
            sweep.describe(vec![machine(whole)], ["h1", "h2"].map(about).to_vec());
            let second = &sweep.points[1];
            assert_eq!(second.profile.as_deref(), Some("linux-h2"));
            assert_eq!(second.machine, Some(machine("h2")));
            sweep_text(&sweep, crate::text::Style::default())
        };
        let cpus = text("cpus", "whole");
        let machines = "machine   swept, fairground 0.1.0\n          m (h1)\n          m (h2)\n";
        assert!(cpus.starts_with(machines), "{cpus}");
        assert!(cpus.contains("profile   linux-6.18\n"), "{cpus}");
        assert!(cpus.contains("note      cpus=2: about h2"), "{cpus}");
        let profiles = text("profile", "whole");
        assert!(profiles.contains("machine   m (h), "), "{profiles}");
        assert!(profiles.contains("profile   swept\n"), "{profiles}");
    }

    #[test]
    fn of_several_services_the_one_that_clients_see_comes_first_and_whole() {
        let info = crate::services::tests::of_services(&["front", "back"]);
        let names: Vec<String> = usual(&info, &[]).into_iter().map(|m| m.name).collect();
        let want = [
            "front.latency_us.p50",
            "front.latency_us.p99",
            "front.per_s",
            "back.latency_us.p99",
            "back.per_s",
            "busy_pct",
        ];
        assert_eq!(names, want);
    }
}
