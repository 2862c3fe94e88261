//! How a published quantity is computed from a run.
//!
//! Written in the experiment files as `KIND:ARGUMENT`. Rates are per second of simulated time.

use fairground_sim::outcome::Outcome;
use fairground_sim::workload::Workload;
use serde::Deserialize;

/// A way from a run to a number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Measure {
    /// `metric:NAME`: a metric of the run.
    Metric(String),
    /// `calls_per_s:FUNCTION`: calls of a function.
    CallsPerS(String),
    /// `us_per_call:FUNCTION`: the window's time divided by the calls, us: the time that a fixed
    /// amount of work takes, on a scale of its own.
    UsPerCall(String),
    /// `kbytes_per_s:FUNCTION:BYTES`: messages of so many bytes, one per call of a function.
    KbytesPerS(String, f64),
    /// `share:FUNCTION+FUNCTION`: self time in percent of the cycles of all CPUs that do not halt,
    /// as `perf top` shows it.
    Share(Vec<String>),
    /// `per_5s:METRIC`, `per_30s:METRIC`: a counter, in millions in so many seconds.
    Per(u32, String),
    /// `placed_elsewhere`: wake-ups that chose another CPU than the task's last, in millions per
    /// 5 s: migrations as a probe of `select_task_rq_fair` counts them.
    PlacedElsewhere,
    /// `line:OBJECT.FIELD:reads|writes`: accesses of a field's line in millions a second.
    Line(String, bool),
    /// `top:us|sy|id`: percent of the CPUs' time.
    Top(Mode),
    /// `redundant_flags`: percent of the requests to an idle balancer that change nothing.
    RedundantFlags,
    /// `kick:load|swap`: part of the balance trigger's time in the flags' load or swap, percent.
    Kick(usize),
    /// `llc_misses`: LLC load misses of the scheduler's data, millions in 30 s.
    LlcMisses,
    /// `llc_share:FUNCTION+FUNCTION`: part of these misses in functions, percent.
    LlcShare(Vec<String>),
    /// `placed:CPU,CPU,../CPU,CPU,..`: how many of the tasks that are created in the window are put
    /// on these CPUs, in this order, by base and by patch.
    Placed([Vec<u32>; 2]),
}

/// Where `top` counts time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// User code.
    User,
    /// Kernel code.
    System,
    /// Halted, on the way into and out of it included.
    Idle,
}

impl TryFrom<String> for Measure {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((&text, ""));
        let bad = || format!("`{text}` is no measure");
        let one = |name: &str| match name {
            "" => Err(bad()),
            name => Ok(name.to_string()),
        };
        let several = |names: &str| names.split('+').map(one).collect::<Result<_, _>>();
        Ok(match (kind, rest) {
            ("metric", name) => Self::Metric(one(name)?),
            ("calls_per_s", name) => Self::CallsPerS(one(name)?),
            ("us_per_call", name) => Self::UsPerCall(one(name)?),
            ("kbytes_per_s", _) => {
                let (name, bytes) = rest.rsplit_once(':').ok_or_else(bad)?;
                Self::KbytesPerS(one(name)?, bytes.parse().map_err(|_| bad())?)
            }
            ("share", names) => Self::Share(several(names)?),
            ("per_5s", name) => Self::Per(5, one(name)?),
            ("per_30s", name) => Self::Per(30, one(name)?),
            ("placed_elsewhere", "") => Self::PlacedElsewhere,
            ("line", _) => {
                let (place, what) = rest.rsplit_once(':').ok_or_else(bad)?;
                match what {
                    "reads" => Self::Line(one(place)?, false),
                    "writes" => Self::Line(one(place)?, true),
                    _ => return Err(bad()),
                }
            }
            ("top", "us") => Self::Top(Mode::User),
            ("top", "sy") => Self::Top(Mode::System),
            ("top", "id") => Self::Top(Mode::Idle),
            ("redundant_flags", "") => Self::RedundantFlags,
            ("kick", "load") => Self::Kick(0),
            ("kick", "swap") => Self::Kick(1),
            ("llc_misses", "") => Self::LlcMisses,
            ("llc_share", names) => Self::LlcShare(several(names)?),
            ("placed", sides) => {
                let (base, patch) = sides.split_once('/').ok_or_else(bad)?;
                let cpus = |text: &str| -> Result<Vec<u32>, String> {
                    text.split(',')
                        .map(|n| n.parse().map_err(|_| bad()))
                        .collect()
                };
                Self::Placed([cpus(base)?, cpus(patch)?])
            }
            _ => return Err(bad()),
        })
    }
}

impl Measure {
    /// Whether it needs the tracepoints.
    pub fn needs_trace(&self) -> bool {
        matches!(self, Self::Placed(_))
    }

    /// The metric that it names, if the run has none of this name.
    pub fn missing<'a>(&'a self, run: &Outcome) -> Option<&'a str> {
        let (Self::Metric(name) | Self::Per(_, name)) = self else {
            return None;
        };
        let known = run.metrics.iter().any(|(n, _)| n == name);
        (!known).then_some(name)
    }

    /// The functions that it names.
    #[cfg(test)]
    pub fn functions(&self) -> Vec<&str> {
        match self {
            Self::CallsPerS(name) | Self::UsPerCall(name) | Self::KbytesPerS(name, _) => vec![name],
            Self::Share(names) | Self::LlcShare(names) => {
                names.iter().map(String::as_str).collect()
            }
            _ => Vec::new(),
        }
    }

    /// How many events of a run the value counts; `None` where it counts none.
    pub fn events(&self, run: &Outcome) -> Option<u64> {
        let of = |names: &[String]| names.iter().map(|n| calls(run, n) as u64).sum();
        match self {
            Self::Metric(name) => run.counted.iter().find(|(n, _)| n == name).map(|(_, n)| *n),
            Self::Per(_, name) => metric(run, name).map(|n| n as u64),
            Self::PlacedElsewhere => Some(run.placed_elsewhere),
            Self::CallsPerS(name) | Self::UsPerCall(name) | Self::KbytesPerS(name, _) => {
                Some(calls(run, name) as u64)
            }
            Self::Share(names) => Some(of(names)),
            Self::Line(place, writes) => Some(accesses(run, place, *writes) as u64),
            Self::RedundantFlags | Self::Kick(_) => Some(run.ilb_kicks),
            Self::LlcMisses => Some(load_misses(run, None) as u64),
            Self::LlcShare(names) => Some(load_misses(run, Some(names)) as u64),
            Self::Top(_) | Self::Placed(_) => None,
        }
    }

    /// The value for a run of one side on `cpus` CPUs; `None` if the run says nothing about it.
    pub fn value(&self, run: &Outcome, cpus: usize, patched: bool) -> Option<f64> {
        let seconds = run.elapsed_ns as f64 / 1e9;
        let value = match self {
            Self::Metric(name) => metric(run, name)?,
            Self::CallsPerS(name) => calls(run, name) / seconds,
            Self::UsPerCall(name) => 1e6 * seconds / calls(run, name),
            Self::KbytesPerS(name, bytes) => calls(run, name) * bytes / 1024.0 / seconds,
            Self::Share(names) => {
                let time: f64 = names.iter().map(|name| self_ns(run, name)).sum();
                100.0 * time / awake_ns(run)
            }
            Self::Per(span, name) => metric(run, name)? * f64::from(*span) / seconds / 1e6,
            Self::PlacedElsewhere => run.placed_elsewhere as f64 * 5.0 / seconds / 1e6,
            Self::Line(place, writes) => accesses(run, place, *writes) / seconds / 1e6,
            Self::Top(mode) => {
                let all = run.elapsed_ns as f64 * cpus as f64;
                let user = self_ns(run, "[user]");
                let awake = awake_ns(run);
                100.0 / all
                    * match mode {
                        Mode::User => user,
                        Mode::System => awake - user,
                        Mode::Idle => all - awake,
                    }
            }
            Self::RedundantFlags => 100.0 * run.ilb_redundant as f64 / run.ilb_kicks as f64,
            Self::Kick(part) => {
                let trigger = self_ns(run, "kick_ilb") + self_ns(run, "sched_balance_trigger");
                100.0 * run.ilb_cas_ns[*part] as f64 / trigger
            }
            Self::LlcMisses => load_misses(run, None) * 30.0 / seconds / 1e6,
            Self::LlcShare(names) => 100.0 * load_misses(run, Some(names)) / load_misses(run, None),
            Self::Placed(sides) => {
                let wanted = &sides[usize::from(patched)];
                placement(run).zip(wanted).filter(|(a, b)| a == *b).count() as f64
            }
        };
        value.is_finite().then_some(value)
    }
}

/// The measured window of a workload: from `from` on for `span`, whatever its own length.
pub fn window(workload: &mut Workload, from_ns: u64, span_ns: u64) {
    workload.warmup_ns = from_ns;
    workload.duration = fairground_sim::workload::Until::Time(from_ns + span_ns);
}

fn metric(run: &Outcome, name: &str) -> Option<f64> {
    run.metrics.iter().find(|(n, _)| n == name)?.1
}

fn function(run: &Outcome, name: &str) -> Option<(u64, u64)> {
    let row = run.functions.iter().find(|(n, _, _)| *n == name)?;
    Some((row.1, row.2))
}

fn self_ns(run: &Outcome, name: &str) -> f64 {
    function(run, name).map_or(0.0, |(ns, _)| ns as f64)
}

fn calls(run: &Outcome, name: &str) -> f64 {
    function(run, name).map_or(0.0, |(_, calls)| calls as f64)
}

/// Time of all CPUs in which they execute instructions.
fn awake_ns(run: &Outcome) -> f64 {
    run.busy_ns as f64 - self_ns(run, "[idle exit]")
}

/// Accesses of the lines that hold `OBJECT.FIELD`; of groups, those of the busiest one.
fn accesses(run: &Outcome, place: &str, writes: bool) -> f64 {
    let (object, field) = place.split_once('.').unwrap_or((place, ""));
    let here = run.lines.iter().filter(|l| {
        let kind = l.object.split(' ').next().unwrap_or(&l.object);
        kind == object && l.field.split(',').any(|f| f == field)
    });
    let count = |l: &fairground_sim::outcome::Traffic| {
        if writes { l.writes + l.rmws } else { l.reads }
    };
    here.map(count).max().unwrap_or(0) as f64
}

/// The CPUs of the tasks that were created in the run, in the order of their first wake-up.
///
/// Tasks that are there at the start have no waker, and do not count.
fn placement(run: &Outcome) -> impl Iterator<Item = u32> + '_ {
    use fairground::event::Event;
    let mut busy = std::collections::BTreeSet::new();
    run.trace.iter().filter_map(move |line| match line.event {
        Event::Switch { cpu, .. } => {
            busy.insert(cpu.idx());
            None
        }
        Event::WakeupNew { cpu, .. } if busy.contains(&(line.cpu as usize)) => {
            Some(cpu.idx() as u32)
        }
        _ => None,
    })
}

/// LLC load misses of the scheduler's data, of all functions or some.
fn load_misses(run: &Outcome, of: Option<&[String]>) -> f64 {
    let wanted = |name: &str| of.is_none_or(|names| names.iter().any(|n| n == name));
    let rows = run.load_misses.iter().filter(|(name, _)| wanted(name));
    rows.map(|(_, misses)| *misses as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Measure, String> {
        Measure::try_from(text.to_string())
    }

    #[test]
    fn measures_are_read() {
        assert_eq!(parse("metric:a.b"), Ok(Measure::Metric("a.b".into())));
        assert_eq!(
            parse("share:a+b"),
            Ok(Measure::Share(vec!["a".into(), "b".into()]))
        );
        assert_eq!(
            parse("kbytes_per_s:pipe_write:100"),
            Ok(Measure::KbytesPerS("pipe_write".into(), 100.0))
        );
        assert_eq!(
            parse("line:task_group.load_avg:writes"),
            Ok(Measure::Line("task_group.load_avg".into(), true))
        );
        assert_eq!(
            parse("placed:7,7/8,9"),
            Ok(Measure::Placed([vec![7, 7], vec![8, 9]]))
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "metric:",
            "share",
            "share:",
            "share:a+",
            "llc_share:",
            "calls_per_s:",
            "us_per_call:",
            "per_5s:",
            "top:xx",
            "line:a.b:seen",
            "line::reads",
            "kbytes_per_s:a",
            "kbytes_per_s::100",
            "placed:7,7",
            "placed:7/x",
        ] {
            let read = parse(text);
            assert!(read.is_err(), "{text}: {read:?}");
        }
    }
}
