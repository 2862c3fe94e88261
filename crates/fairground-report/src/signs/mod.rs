//! The result of `fairground compare` in several places: one change on several machines, with
//! several numbers of CPUs, under several workloads. Each place is a comparison of its own, the
//! same bytes as it would be alone; together they say where the change shows.
//!
//! | file | subject |
//! | --- | --- |
//! | `block` | which places stand in one table |
//! | `moved` | what explains a place: the cache line and the function that moved most |
//! | `text` | tables for people |
//! | `page` | the report page |

mod block;
mod counted;
mod moved;
mod page;
mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::{Catalogue, UnknownMetric};
use crate::fail_on::{FailOn, FailOnError};
use crate::redo::Redo;
use crate::result::{Compare, Comparison, Note, SAME, Verdict, is_open};
use crate::services::first_looked_at;
pub use page::signs_page;
pub use text::signs_text;

/// The result of `fairground compare` in several places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Signs {
    /// Version of Fairground.
    pub fairground: String,
    /// Profile of patch, e.g. `linux-6.18`.
    pub profile: String,
    /// In the order of the workloads, then machines, then numbers of CPUs; of configurations, in
    /// that of machines, numbers of CPUs, workloads.
    pub places: Vec<Place>,
    /// How often each verdict was reached, and where.
    pub tallies: Vec<Tally>,
    /// What is needed to get this result again.
    pub redo: Redo,
}

/// One machine with one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// Name of the machine.
    pub machine: String,
    /// Its CPUs.
    pub cpus: u64,
    /// The workload's command line.
    pub workload: Vec<String>,
    /// What its verdict is about.
    pub metrics: Vec<String>,
    /// Why it cannot be run; then there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What `fairground compare` says there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Compare>,
}

/// The verdicts of one workload by one metric.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// The workload's command line.
    pub workload: Vec<String>,
    /// The metric.
    pub metric: String,
    /// Where patch is better, as `MACHINE` or `MACHINE:CPUS`.
    pub better: Vec<String>,
    /// Where it is worse.
    pub worse: Vec<String>,
    /// Where it differs, without a direction that is better.
    pub differs: Vec<String>,
    /// Where the interval holds 0.
    pub noise: Vec<String>,
    /// Where no count of any run differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same: Vec<String>,
    /// Where there is no interval, or a side has no value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// Machines that were run with several numbers of CPUs and have a verdict with the most, and
    /// from how many on the change is not noise, up to the largest.
    pub from_cpus: Vec<Growth>,
}

/// From how many CPUs of a machine on a change shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Growth {
    /// Name of the machine.
    pub machine: String,
    /// The smallest number of CPUs from which on each verdict is the same and none is noise;
    /// `null`: with the most it is noise, or nothing differs.
    pub cpus: Option<u64>,
}

/// Most notes of places that are shown.
const NOTES_MAX: usize = 20;

impl Signs {
    /// From the places, in their order. `metrics` are those that verdicts are about, none for
    /// those that one looks at first: latency and rate of a service, else one of the workload.
    ///
    /// # Errors
    /// A metric that no place has.
    pub fn new(
        version: String,
        profile: String,
        mut places: Vec<Place>,
        metrics: &[String],
        redo: Redo,
    ) -> Result<Self, UnknownMetric> {
        for place in &mut places {
            let Some(result) = &place.result else {
                continue;
            };
            place.metrics = match metrics {
                [] => first_looked_at(&result.metric_info)
                    .into_iter()
                    .map(|info| info.name.clone())
                    .collect(),
                asked => {
                    let has = |name: &&String| row(result, name).is_some();
                    asked.iter().filter(has).cloned().collect()
                }
            };
        }
        for name in metrics {
            let missed = places.iter().all(|place| !place.metrics.contains(name));
            let first = places.iter().find_map(|place| place.result.as_ref());
            if let (true, Some(first)) = (missed, first) {
                Catalogue::new(first.metric_info.iter().cloned()).get(name)?;
            }
        }
        let tallies = tallies(&places);
        Ok(Self {
            fairground: version,
            profile,
            places,
            tallies,
            redo,
        })
    }

    /// The reasons for which `condition` wants a failure, place by place, of those whose workload
    /// has its metric.
    ///
    /// # Errors
    /// It cannot be decided in one of them.
    pub fn evaluate(&self, condition: &FailOn) -> Result<Vec<String>, FailOnError> {
        let mut reasons = Vec::new();
        for place in &self.places {
            let Some(result) = &place.result else {
                continue;
            };
            if !condition.is_about(&result.metric_info) {
                continue;
            }
            let met = condition.evaluate(result)?;
            let whose = self.label(place) + &self.workload_of(place);
            reasons.extend(met.map(|met| format!("{whose}: {}", met.reason)));
        }
        Ok(reasons)
    }

    /// The workload of a place in brackets, where there are several.
    fn workload_of(&self, place: &Place) -> String {
        let mut others = self.places.iter().filter(|p| p.result.is_some());
        match others.all(|other| other.workload == place.workload) {
            true => String::new(),
            false => format!(" ({})", place.workload.join(" ")),
        }
    }

    /// What must be known of the places before believing their numbers, each with where it is so.
    pub(crate) fn notes(&self) -> Vec<String> {
        let ran: Vec<&Place> = self.places.iter().filter(|p| p.result.is_some()).collect();
        let mut all: Vec<(&Note, Vec<String>)> = Vec::new();
        for place in &ran {
            let label = self.label(place) + &self.workload_of(place);
            let notes = place.result.iter().flat_map(|result| &result.notes);
            for note in notes.filter(|note| !note.is_of_still_waiting()) {
                match all.iter_mut().find(|(known, _)| *known == note) {
                    Some((_, places)) => places.push(label.clone()),
                    None => all.push((note, vec![label.clone()])),
                }
            }
        }
        let left_out = all.len().saturating_sub(NOTES_MAX);
        all.truncate(NOTES_MAX);
        let said = |(note, places): (&Note, Vec<String>)| match places.len() == ran.len() {
            true => format!("everywhere: {note}"),
            false => format!("{}: {note}", places.join(", ")),
        };
        let mut lines: Vec<String> = all.into_iter().map(said).collect();
        if left_out > 0 {
            lines.push(format!("{left_out} more notes are in the JSON"));
        }
        let late = |p: &&&Place| {
            let notes = p.result.iter().flat_map(|result| &result.notes);
            notes.into_iter().any(Note::is_of_still_waiting)
        };
        let late = ran.iter().filter(late).count();
        if late > 0 {
            lines.push(format!(
                "in {late} of {} places `wakeup_latency_us` lacks wake-ups that had not led to a \
                 switch by the end; how many is in the JSON",
                ran.len()
            ));
        }
        lines
    }

    /// `MACHINE`, with its CPUs if it is there with several numbers of them.
    fn label(&self, place: &Place) -> String {
        label(&self.places, place)
    }
}

impl Tally {
    /// One verdict more, reached at `label`.
    fn count(&mut self, row: &Comparison, label: String) {
        let list = match (row.verdict, row.differs) {
            (Verdict::Better, _) => &mut self.better,
            (Verdict::Worse, _) => &mut self.worse,
            (Verdict::Noise, true) => &mut self.differs,
            (Verdict::Noise, false) if row.is_open() => &mut self.open,
            (Verdict::Noise, false) if row.same => &mut self.same,
            (Verdict::Noise, false) => &mut self.noise,
        };
        list.push(label);
    }
}

fn label(places: &[Place], place: &Place) -> String {
    let mut same = places.iter().filter(|other| other.machine == place.machine);
    match same.all(|other| other.cpus == place.cpus) {
        true => place.machine.clone(),
        false => format!("{}:{}", place.machine, place.cpus),
    }
}

fn row<'a>(result: &'a Compare, metric: &str) -> Option<&'a Comparison> {
    result.comparison.iter().find(|row| row.metric == metric)
}

fn tallies(places: &[Place]) -> Vec<Tally> {
    let mut all: Vec<Tally> = Vec::new();
    for place in places {
        for metric in &place.metrics {
            let Some(row) = place.result.as_ref().and_then(|r| row(r, metric)) else {
                continue;
            };
            let of = |t: &Tally| t.workload == place.workload && t.metric == *metric;
            let at = all.iter().position(of).unwrap_or_else(|| {
                all.push(Tally {
                    workload: place.workload.clone(),
                    metric: metric.clone(),
                    from_cpus: growth(places, &place.workload, metric),
                    ..Tally::default()
                });
                all.len() - 1
            });
            all[at].count(row, label(places, place));
        }
    }
    all
}

/// For each machine with several numbers of CPUs, from how many on the verdict is the same.
fn growth(places: &[Place], workload: &[String], metric: &str) -> Vec<Growth> {
    let mut machines: Vec<&str> = places.iter().map(|p| p.machine.as_str()).collect();
    machines.dedup();
    let mut all: Vec<Growth> = Vec::new();
    for machine in machines {
        let here = places
            .iter()
            .filter(|p| p.machine == machine && p.workload == workload);
        let verdict = |p: &Place| {
            let word = row(p.result.as_ref()?, metric)?.word();
            Some((p.cpus, if word == SAME { "noise" } else { word }))
        };
        let mut sizes: Vec<(u64, &str)> = here.filter_map(verdict).collect();
        sizes.sort_unstable();
        if sizes.len() < 2 || all.iter().any(|g| g.machine == machine) {
            continue;
        }
        let last = sizes.last().map_or("noise", |(_, word)| word);
        if is_open(last) {
            continue;
        }
        let same = sizes.iter().rev().take_while(|(_, word)| *word == last);
        let from = same.last().filter(|_| last != "noise");
        all.push(Growth {
            machine: machine.into(),
            cpus: from.map(|(cpus, _)| *cpus),
        });
    }
    all
}

/// `machine,cpus,workload,variant,seed,METRIC...` with one line for each run. A missing number is
/// an empty field.
#[must_use]
pub fn csv_of_signs(signs: &Signs) -> String {
    let results = || {
        signs
            .places
            .iter()
            .filter_map(|place| place.result.as_ref())
    };
    let mut metrics: Vec<&str> = Vec::new();
    for info in results().flat_map(|result| &result.metric_info) {
        if !metrics.contains(&info.name.as_str()) {
            metrics.push(&info.name);
        }
    }
    let head = ["machine", "cpus", "workload", "variant", "seed"].iter();
    let mut records = vec![head.chain(&metrics).map(|&s| s.to_string()).collect()];
    for place in &signs.places {
        let variants = place.result.iter().flat_map(|result| &result.variants);
        for (variant, run) in variants.flat_map(|v| v.runs.iter().map(move |run| (v, run))) {
            let mut record = vec![
                place.machine.clone(),
                place.cpus.to_string(),
                place.workload.join(" "),
                variant.name.clone(),
                run.seed.to_string(),
            ];
            let value = |name: &&str| run.metric(name).map_or(String::new(), |v| v.to_string());
            record.extend(metrics.iter().map(value));
            records.push(record);
        }
    }
    crate::flat::csv_of(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Better, MetricInfo};
    use crate::machine::{MachineId, MachineParts};
    use crate::result::{Run, Setup, Variant};
    use crate::text::Style;

    /// A place in which the patch makes the workload faster by `gain` of 100.
    fn place(machine: &str, cpus: u64, gain: f64) -> Place {
        let info = |name: &str, better| MetricInfo {
            name: name.into(),
            unit: "1/s".into(),
            better,
            description: "A rate.".into(),
        };
        let setup = Setup {
            fairground: "0.1.0".into(),
            machine: MachineId {
                id: machine.into(),
                hash: "0123456789abcdef".into(),
                topology: Some(MachineParts {
                    cpus,
                    cores: cpus / 2,
                    sockets: 2,
                    llcs: 4,
                }),
            },
            profile: "linux-6.18".into(),
            workload: vec!["test".into()],
            workload_metrics: vec![
                info("test.time_s", Some(Better::Lower)),
                info("test.per_s", Some(Better::Higher)),
            ],
            redo: Redo::default(),
        };
        let side = |mean: f64, wait_ns: u64| {
            let run = |(seed, off): (u64, f64)| {
                let mut run = Run::new(seed);
                run.set_metric("test.per_s", mean + off);
                run.set_metric("test.time_s", 1.0);
                run.set_metric("sched_pct", mean / 10.0);
                run.lines.push(crate::result::LineTraffic {
                    object: "task_group".into(),
                    field: "load_avg".into(),
                    rmws: 10,
                    wait_ns,
                    ..crate::result::LineTraffic::default()
                });
                run.add_function("update_cfs_group", wait_ns, 10, 10_000_000);
                run
            };
            Variant {
                runs: [(1, -1.0), (2, 0.0), (3, 1.5)].map(run).to_vec(),
                ..Variant::default()
            }
        };
        Place {
            machine: machine.into(),
            cpus,
            workload: vec!["test".into()],
            metrics: Vec::new(),
            refused: None,
            result: Some(Compare::new(
                setup,
                side(100.0, 5_000_000),
                side(100.0 + gain, 1_000_000),
            )),
        }
    }

    fn signs(places: Vec<Place>) -> Signs {
        let (version, profile) = ("0.1.0".into(), "linux-6.18".into());
        Signs::new(version, profile, places, &[], Redo::default()).expect("no metric was asked for")
    }

    #[test]
    fn a_change_shows_from_some_number_of_cpus_on() {
        let sizes = [(8, 0.0), (32, 0.0), (128, 20.0), (224, 30.0)];
        let mut places: Vec<Place> = sizes.map(|(n, gain)| place("a", n, gain)).to_vec();
        places.push(place("b", 64, -20.0));
        let signs = signs(places);
        let [tally] = &signs.tallies[..] else {
            panic!("one workload, one metric")
        };
        assert_eq!(tally.metric, "test.per_s");
        assert_eq!(tally.better, ["a:128", "a:224"]);
        assert_eq!(tally.worse, ["b"]);
        assert_eq!(tally.noise, ["a:8", "a:32"]);
        let from = Growth {
            machine: "a".into(),
            cpus: Some(128),
        };
        assert_eq!(tally.from_cpus, [from]);
        let worse = FailOn::parse("test.per_s:worse").expect("a condition");
        let reasons = signs.evaluate(&worse).expect("decided");
        assert!(
            matches!(&reasons[..], [one] if one.starts_with("b: ")),
            "{reasons:?}"
        );
    }

    #[test]
    fn noise_with_the_most_cpus_is_no_growth() {
        let signs = signs(vec![place("a", 8, 20.0), place("a", 16, 0.0)]);
        assert_eq!(signs.tallies[0].from_cpus[0].cpus, None);
    }

    #[test]
    fn text_and_page_have_every_place_and_what_explains_it() {
        let mut places = vec![place("spr-8480-2s", 224, 20.0), place("genoa", 384, 0.0)];
        places.push(Place {
            refused: Some("cannot be shrunk to 7 CPUs".into()),
            result: None,
            cpus: 7,
            ..place("xeon", 8, 0.0)
        });
        let signs = signs(places);
        let text = signs_text(&signs, Style::default());
        assert!(text.lines().all(|line| line.len() < 100), "{text}");
        for part in [
            "spr-8480-2s   224        2     4",
            "+20.00%",
            "better",
            "task_group.load_avg",
            "update_cfs_group",
            "50.00% -> 10.00%",
            "cannot be shrunk to 7 CPUs",
            "better on 1 of 2: spr-8480-2s",
        ] {
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
        let page = signs_page(&signs, Style::default()).expect("a page");
        assert!(page.contains("spr-8480-2s") && page.contains("<svg class=\"chart\""));
        assert_eq!(csv_of_signs(&signs).lines().count(), 1 + 2 * 2 * 3);
    }

    #[test]
    fn what_reached_nothing_is_counted_by_itself_and_said_once() {
        let mut untouched = place("a", 8, 0.0);
        if let Some(result) = &mut untouched.result {
            for row in &mut result.comparison {
                row.same = true;
            }
        }
        let refused = |workload: &str| Place {
            workload: vec![workload.into()],
            refused: Some("has no idle state `C9`".into()),
            result: None,
            ..place("b", 4, 0.0)
        };
        let signs = signs(vec![untouched, refused("x"), refused("y")]);
        assert_eq!(signs.tallies[0].same, ["a"]);
        assert!(signs.tallies[0].noise.is_empty());
        let text = signs_text(&signs, Style::default());
        for (words, times) in [
            ("same on 1 of 1: a", 1),
            ("same: every count", 1),
            ("b, 4 CPUs: has no", 1),
        ] {
            assert_eq!(text.matches(words).count(), times, "{words}: {text}");
        }
    }

    #[test]
    fn signs_come_back_from_their_json() {
        let signs = signs(vec![place("a", 8, 20.0)]);
        let text = serde_json::to_string(&signs).expect("JSON");
        assert_eq!(serde_json::from_str::<Signs>(&text).expect("read"), signs);
    }

    #[test]
    fn a_metric_that_no_place_has_is_refused() {
        let asked = ["test.per_z".to_string()];
        let places = vec![place("a", 8, 0.0)];
        let error = Signs::new(
            String::new(),
            String::new(),
            places,
            &asked,
            Redo::default(),
        );
        assert!(error.is_err_and(|e| e.to_string().contains("test.per_s")));
    }

    /// A rate says nothing of a service whose requests come whether or not it keeps up.
    #[test]
    fn a_service_is_judged_by_its_latency() {
        let mut place = place("a", 8, 0.0);
        if let Some(result) = &mut place.result {
            result.metric_info = crate::services::tests::of_services(&["web"]);
        }
        let signs = signs(vec![place]);
        let want = ["web.latency_us.p50", "web.latency_us.p99", "web.per_s"];
        assert_eq!(signs.places[0].metrics, want);
    }
}
