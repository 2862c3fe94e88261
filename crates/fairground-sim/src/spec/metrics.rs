//! What is reported of a scenario, by the names in it.

use core::ops::Range;

use crate::workload::metric::{Better, From, MetricDef, PERCENTILES, Work};
use crate::workload::program::{FOREVER, Op, Until, Workload};

/// Whether the program can come to its end: no hog, no endless loop before an exit.
pub(super) fn ends(w: &Workload, template: u32) -> bool {
    let ops = &w.programs[w.templates[template as usize].program as usize].ops;
    for op in ops {
        match op {
            Op::Hog | Op::LoopStart { count: FOREVER } => return false,
            Op::Exit => return true,
            _ => {}
        }
    }
    true
}

/// Whether some task asks for it that answers nobody itself: a client.
fn is_outermost(w: &Workload, kind: u32) -> bool {
    let begins = |op: &Op| matches!(op, Op::ReqStart(k) | Op::ReqStartDue(k) if *k == kind);
    let serves = |op: &Op| matches!(op, Op::Accept(_));
    let asks = |ops: &[Op]| ops.iter().any(begins) && !ops.iter().any(serves);
    w.programs.iter().any(|program| asks(&program.ops))
}

/// Every mark, kind of request and task of a scenario is reported under its name.
pub(super) fn add_metrics(tasks: &[(String, Range<u32>)], w: &mut Workload) {
    let mut all = Vec::new();
    let mut kinds: Vec<(usize, &String)> = w.requests.iter().enumerate().collect();
    // What clients see comes before what is behind it.
    kinds.sort_by_key(|(k, _)| !is_outermost(w, *k as u32));
    for (k, name) in kinds {
        let request = k as u32;
        let quantile = |permille| From::LatencyQuantileUs { request, permille };
        let mut latency = |what: &str, from| {
            all.push(MetricDef::new(
                format!("{name}.latency_us.{what}"),
                "us",
                Better::Lower,
                from,
            ));
        };
        latency("mean", From::RequestMeanUs(request));
        for (what, permille) in PERCENTILES {
            latency(what, quantile(permille));
        }
        latency("max", quantile(1000));
        let per_s = From::RequestsPerS(request);
        all.push(MetricDef::new(
            format!("{name}.per_s"),
            "1/s",
            Better::Higher,
            per_s,
        ));
    }
    for (k, name) in w.marks.iter().enumerate() {
        let from = From::CountPerS(k as u32);
        all.push(MetricDef::new(
            format!("{name}.marks_per_s"),
            "1/s",
            Better::Neither,
            from,
        ));
    }
    for (name, range) in tasks {
        let (first, end) = (range.start, range.end);
        let of_task = [
            ("cpu_share", From::CpuShare { first, end }),
            ("cpus", From::Cpus { first, end }),
        ];
        for (what, from) in of_task {
            let name = format!("{name}.{what}");
            all.push(MetricDef::new(name, "1", Better::Neither, from));
        }
    }
    if w.templates.iter().any(|t| t.working_set_bytes.is_some()) {
        all.push(MetricDef::fetching("fetch_pct"));
    }
    // How one kind counts against another nobody can say.
    if let ([kind], Until::Time(_)) = (&w.requests[..], w.duration) {
        w.work = Some(Work::new(kind, From::Requests(0)));
    }
    if w.duration == Until::AllExit {
        all.push(MetricDef::new(
            "elapsed_s",
            "s",
            Better::Lower,
            From::ElapsedS,
        ));
    }
    w.metrics = all;
}
