//! Tables of metrics.

use super::table::{Bar, Cell, Column, Row, Table};
use crate::catalogue::{MetricInfo, is_own};
use crate::number::{change, number};
use crate::percentile::{is_further, is_left_out};
use crate::result::{Compare, Comparison, Judged, RunResult, word_class};
use crate::services::{of_service, services};
use crate::stats::summary;

/// Widest change that the drawings of intervals tell from a wider one, percent.
const BAR_MOST: f64 = 100.0;

/// Metrics of a run: means over the seeds.
pub fn of_run(result: &RunResult) -> Table {
    let runs = result.variants.first().map_or(&[][..], |v| &v.runs);
    let row = |info: &MetricInfo| {
        let values: Vec<f64> = runs.iter().filter_map(|r| r.metric(&info.name)).collect();
        let found = summary(&values).map(|s| s.up_to(info.whole()));
        let (mean, sd) = (found.map(|s| s.mean), found.and_then(|s| s.sd));
        let ci = found.and_then(|s| s.ci95);
        let interval = ci.map_or("-".into(), |[lo, hi]| {
            format!("[{}, {}]", number(Some(lo)), number(Some(hi)))
        });
        Row::from(vec![
            name(info),
            Cell::number(mean, number(mean)),
            Cell::text(&info.unit).class("unit"),
            deviation(mean, sd),
            Cell::text(&interval).class("num"),
        ])
    };
    Table {
        id: "metrics-table".into(),
        caption: "Metrics".into(),
        note: "Means over the seeds.".into(),
        columns: vec![
            Column::left("metric"),
            Column::right("mean"),
            Column::left("unit"),
            Column::right("± sd").title("standard deviation over the seeds, in % of the mean"),
            Column::right("95 % interval").wide(),
        ],
        rows: result
            .metric_info
            .iter()
            .filter(|info| !is_left_out(&result.variants, &info.name))
            .map(row)
            .collect(),
    }
}

/// Base against patch.
pub fn of_compare(result: &Compare) -> Table {
    let scale = scale(&result.comparison);
    let info = |name: &str| result.metric_info.iter().find(|i| i.name == name);
    let row = |c: &Comparison| {
        let first = match info(&c.metric) {
            Some(info) => name(info),
            None => Cell::text(&c.metric).class("name"),
        };
        let (word, class) = (c.word(), word_class(c.word()));
        let Some(per) = c.shown_per() else {
            return vec![Row::from(cells(
                first,
                &c.unit,
                c.total(),
                (word, class),
                scale,
            ))];
        };
        // The verdict stands with the numbers that it is on.
        let total = cells(first, &c.unit, c.total(), ("", ""), scale);
        let label = Cell::text(&per.label()).class("name");
        let label = label.title("the total divided by what each run got done, seed by seed");
        let quotient = cells(label, &c.unit, c.judged(), (word, class), scale);
        let total = Row {
            cells: total,
            joined: true,
        };
        vec![total, Row::from(quotient)]
    };
    Table {
        id: "metrics-table".into(),
        caption: "Base and patch".into(),
        note: format!(
            "Means over the seeds. Intervals hold at 95 % each by itself; drawn from -{scale:.0} % \
             to +{scale:.0} %.{}",
            if result.comparison.iter().any(|c| c.shown_per().is_some()) {
                " Totals of runs that end at a time are judged per unit of work, in the row below \
                 them."
            } else {
                ""
            }
        ),
        columns: vec![
            Column::left("metric"),
            Column::right("base"),
            Column::right("± sd").wide(),
            Column::right("patch"),
            Column::right("± sd").wide(),
            Column::left("unit").wide(),
            Column::right("change"),
            Column::left("95 % interval").wide(),
            Column::left("verdict"),
        ],
        rows: result
            .comparison
            .iter()
            .filter(|row| !is_left_out(&result.variants, &row.metric))
            .flat_map(row)
            .collect(),
    }
}

/// A row of a comparison.
fn cells(first: Cell, unit: &str, on: Judged, said: (&str, &str), scale: f64) -> Vec<Cell> {
    let (word, class) = said;
    vec![
        first,
        Cell::number(on.base, number(on.base)),
        deviation(on.base, on.base_sd),
        Cell::number(on.patch, number(on.patch)),
        deviation(on.patch, on.patch_sd),
        Cell::text(unit).class("unit"),
        Cell::number(on.change_pct, change(on.change_pct)).class(class),
        bar(on, scale, class),
        Cell::text(word).class(class),
    ]
}

/// What one looks for first: the service that clients see, or what else the workload measures and
/// has a direction; where it measures nothing such, and of scenarios, how the machine and its
/// limits were used.
fn looked_for(info: &[MetricInfo]) -> Vec<&MetricInfo> {
    let directed = |m: &&MetricInfo| is_own(&m.name) && !is_further(&m.name) && m.better.is_some();
    let service = services(info)
        .first()
        .map(|service| of_service(info, service));
    let is_service = service.is_some();
    let mut all = service.unwrap_or_else(|| info.iter().filter(directed).take(3).collect());
    let also = |name: &str| info.iter().find(|m| m.name == name);
    if all.is_empty() {
        all.extend(also("wakeup_latency_us.p99"));
    } else if !is_service {
        return all;
    }
    all.extend(
        ["busy_pct", "idle_waste_pct", "throttled_pct"]
            .into_iter()
            .filter_map(also),
    );
    all
}

/// The first that one looks for.
pub fn headlines_of_run(result: &RunResult) -> Vec<(String, String)> {
    let runs = result.variants.first().map_or(&[][..], |v| &v.runs);
    let line = |info: &MetricInfo| {
        let values: Vec<f64> = runs.iter().filter_map(|r| r.metric(&info.name)).collect();
        let mean = summary(&values).map(|s| s.mean);
        (info.name.clone(), format!("{} {}", number(mean), info.unit))
    };
    looked_for(&result.metric_info)
        .into_iter()
        .map(line)
        .collect()
}

/// The same with what the patch does to it.
pub fn headlines_of_compare(result: &Compare) -> Vec<(String, String)> {
    let names = looked_for(&result.metric_info).into_iter();
    let rows = names.filter_map(|m| result.comparison.iter().find(|row| row.metric == m.name));
    let line = |c: &Comparison| {
        let text = format!(
            "{} to {} {}: {}, {}",
            number(c.base),
            number(c.patch),
            c.unit,
            change(c.change_pct),
            if c.is_open() { "no verdict" } else { c.word() }
        );
        (c.metric.clone(), text)
    };
    rows.map(line).collect()
}

fn name(info: &MetricInfo) -> Cell {
    Cell::text(&info.name)
        .title(&info.description)
        .class("name")
}

fn deviation(mean: Option<f64>, sd: Option<f64>) -> Cell {
    let text = match (mean, sd) {
        (Some(mean), Some(sd)) if mean != 0.0 => format!("{:.1} %", 100.0 * sd / mean.abs()),
        (Some(_), Some(_)) => "0.0 %".into(),
        _ => "-".into(),
    };
    Cell::number(sd, text).class("dim")
}

/// The scale of the drawings: wide enough for all rows, if that is not too wide for the others.
fn scale(rows: &[Comparison]) -> f64 {
    let all = rows.iter().flat_map(|c| [c.total(), c.judged()]);
    let ends = all.flat_map(|on| on.ci95_pct);
    let most = ends.flatten().map(f64::abs).fold(0.0, f64::max);
    let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0];
    let fits = steps.into_iter().find(|step| most <= *step);
    fits.unwrap_or(BAR_MOST)
}

fn bar(c: Judged, scale: f64, class: &str) -> Cell {
    let [Some(lo), Some(hi)] = c.ci95_pct else {
        return Cell::text("-").class("dim");
    };
    let mean = c.change_pct.unwrap_or((lo + hi) / 2.0);
    let words = format!("[{}, {}] %", change(Some(lo)), change(Some(hi)));
    Cell {
        bar: Some(Bar::of([lo, hi], mean, scale)),
        ..Cell::default()
    }
    .title(&words.replace("%,", ",").replace("%]", "]"))
    .class(class)
}

#[cfg(test)]
mod tests {
    use super::looked_for;
    use crate::catalogue::{Better, Catalogue, MetricInfo};
    use crate::services::tests::of_services;

    fn names(info: &[MetricInfo]) -> Vec<&str> {
        looked_for(info).into_iter().map(|m| &*m.name).collect()
    }

    #[test]
    fn a_page_begins_with_what_matters() {
        let used = ["busy_pct", "idle_waste_pct"];
        let hog = of_services(&[]);
        assert_eq!(
            names(&hog),
            [&["wakeup_latency_us.p99"], &used[..]].concat()
        );
        let web = of_services(&["web", "db"]);
        let of_web = ["web.latency_us.p50", "web.latency_us.p99", "web.per_s"];
        assert_eq!(names(&web), [&of_web, &used[..]].concat());
        let time = MetricInfo {
            name: "hackbench.time_s".into(),
            unit: "s".into(),
            better: Some(Better::Lower),
            description: String::new(),
        };
        assert_eq!(names(Catalogue::new([time]).rows()), ["hackbench.time_s"]);
    }
}
