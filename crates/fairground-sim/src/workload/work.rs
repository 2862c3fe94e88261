//! How much a run got done. Where a run ends at a time, whoever is faster does more meanwhile, and
//! with it come more wake-ups, switches and misses: totals of such a run are to be held against
//! what was done in it.

use super::marks::Marks;
use super::program::{Until, Workload};

/// The work of one run that did not end because its work was done.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkDone {
    /// One of it; `None` if nothing says how much all of the run got done.
    pub unit: Option<String>,
    /// How many; `None` without a unit.
    pub done: Option<f64>,
}

/// The work of a run of `workload`; `None` if its totals are of a work that is given: it ended when
/// that was done.
pub fn work_done(workload: &Workload, marks: &Marks) -> Option<WorkDone> {
    match &workload.work {
        // What another workload did meanwhile is in the totals and not in this count.
        Some(work) if workload.besides == 0 => Some(WorkDone {
            unit: Some(work.unit.clone()),
            done: work.from.value(marks),
        }),
        None if workload.duration == Until::AllExit => None,
        _ => Some(WorkDone {
            unit: None,
            done: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Env;

    fn made(line: &str) -> Workload {
        let argv: Vec<String> = line.split(' ').map(String::from).collect();
        Workload::from_argv(&argv, &Env { cpus: 4 }).unwrap_or_else(|e| panic!("{line}: {e}"))
    }

    #[test]
    fn runs_of_a_given_time_say_what_they_count() {
        for (line, unit) in [
            ("netperf -t UDP_RR -l 8ms", Some("transaction")),
            ("netperf -t TCP_STREAM -l 8ms", Some("send")),
            ("netperf -t UDP_STREAM -l 8ms", Some("datagram")),
            ("netperf -t UDP_RR -l -100", None),
            ("sysbench cpu --time=10ms run", Some("event")),
            ("sysbench cpu --time=0 --events=20 run", None),
            ("schbench -r 5ms", Some("request")),
            ("ebizzy -S 1", Some("record")),
            ("sleepers -d 10ms", Some("turn")),
            ("hogs -d 10ms", Some("s of CPU time")),
            ("cyclictest -D 10ms", Some("cycle")),
            ("cyclictest -l 10", None),
            ("hackbench -l 10", None),
            ("perf bench sched pipe -l 10", None),
        ] {
            let w = made(line);
            let found = w.work.as_ref().map(|work| &*work.unit);
            assert_eq!(found, unit, "{line}");
            let done = work_done(&w, &w.empty_marks());
            assert_eq!(done.and_then(|d| d.unit).as_deref(), unit, "{line}");
        }
    }

    /// The count of one is not that of both; and what has no count of work says so.
    #[test]
    fn what_covers_a_part_of_the_run_is_no_count_of_its_work() {
        let both = made("netperf -t UDP_RR -l 8ms")
            .beside(made("hogs -d 10ms"))
            .unwrap();
        let uncounted = Some(WorkDone {
            unit: None,
            done: None,
        });
        assert_eq!(work_done(&both, &both.empty_marks()), uncounted);
        let both = made("hackbench -l 10")
            .beside(made("hogs -d 10ms"))
            .unwrap();
        assert_eq!(work_done(&both, &both.empty_marks()), None, "given");
        let mut timed = Workload::new("test", Vec::new());
        timed.duration = Until::Time(1000);
        assert_eq!(work_done(&timed, &timed.empty_marks()), uncounted);
    }
}
