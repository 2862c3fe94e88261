//! The periods of groups with a limit, one below the other: how many CPUs a group used from the
//! begin of a period to its end, when its queues were throttled, and whether that made a task slow.

use std::fmt::Write;

use super::plot::{escaped, push, text};
use super::{Figure, Samples};

const WIDTH: f64 = 1140.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 8.0;
const ROW: f64 = 22.0;
const BOTTOM: f64 = 38.0;
/// Most periods of a group in one figure.
const ROWS_MAX: usize = 30;

/// Periods of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Periods {
    /// Its path.
    pub group: String,
    /// Length of a period.
    pub period_ns: u64,
    /// In order of time.
    pub rows: Vec<PeriodRow>,
}

/// One period, in equal parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeriodRow {
    /// Its begin.
    pub from_ns: u64,
    /// CPU time in each part, in thousandths of one CPU.
    pub used: Vec<u32>,
    /// Time of throttled queues in each part, in thousandths of one CPU.
    pub throttled: Vec<u32>,
    /// CPU time of the whole period.
    pub ran_ns: u64,
    /// Waits for quota.
    pub waits: u32,
    /// Whether these made a task slow; `None`: what is slow is not known.
    pub slow: Option<bool>,
}

/// A figure for each group and side.
pub fn figures(samples: &[Samples]) -> Vec<Figure> {
    let mut all = Vec::new();
    for side in samples {
        for periods in &side.periods {
            if periods.rows.iter().all(|row| row.waits == 0) {
                continue;
            }
            let from = busiest(&periods.rows);
            let shown = &periods.rows[from..periods.rows.len().min(from + ROWS_MAX)];
            let side_name = match samples.len() {
                1 => String::new(),
                _ => format!(", {}", side.variant),
            };
            all.push(Figure {
                id: format!("periods-{}", all.len()),
                caption: format!("Periods of {}{side_name}", periods.group),
                note: note(periods, shown, &side.about),
                svg: svg(periods, shown),
            });
        }
    }
    all
}

fn note(periods: &Periods, shown: &[PeriodRow], about: &str) -> String {
    let (all, waited) = (&periods.rows, |rows: &[PeriodRow]| {
        rows.iter().filter(|r| r.waits > 0).count()
    });
    let slow = all.iter().filter(|r| r.slow == Some(true)).count();
    let slow = match all.iter().any(|r| r.slow.is_none()) {
        true => String::new(),
        false => format!(", and in {slow} of these that made one slow"),
    };
    let part = match shown.len() == all.len() {
        true => "All are drawn".to_string(),
        false => format!("{} of them are drawn", shown.len()),
    };
    format!(
        "{about}: in {} of {} periods a task waited for quota{slow}. {part}, from left to right \
         what happened in one: CPUs that the group used, and below in red when its queues were \
         throttled.",
        waited(all),
        all.len(),
    )
}

/// Where the stretch with most slow periods begins, then that with most waiting.
fn busiest(rows: &[PeriodRow]) -> usize {
    let last = rows.len().saturating_sub(ROWS_MAX);
    let weight = |from: &usize| {
        let part = &rows[*from..rows.len().min(from + ROWS_MAX)];
        let slow = part.iter().filter(|r| r.slow == Some(true)).count();
        let waited = part.iter().filter(|r| r.waits > 0).count();
        (slow, waited, std::cmp::Reverse(*from))
    };
    (0..=last).max_by_key(weight).unwrap_or(0)
}

fn svg(periods: &Periods, shown: &[PeriodRow]) -> String {
    let height = TOP + shown.len() as f64 * ROW + BOTTOM;
    let most = shown
        .iter()
        .flat_map(|r| &r.used)
        .max()
        .copied()
        .unwrap_or(0);
    let most = f64::from(most.div_ceil(1000).max(1)) * 1000.0;
    let mut svg = format!(
        "<svg class=\"chart periods\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Periods of {}\">\n",
        escaped(&periods.group)
    );
    for (n, row) in shown.iter().enumerate() {
        put_row(&mut svg, row, TOP + n as f64 * ROW, most, periods.period_ns);
    }
    let base = TOP + shown.len() as f64 * ROW;
    let ms = periods.period_ns as f64 / 1e6;
    for part in 0..=10 {
        let x = LEFT + f64::from(part) / 10.0 * (WIDTH - LEFT - RIGHT);
        push(
            &mut svg,
            format_args!(
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{:.1}\"/>",
                base + 4.0
            ),
        );
        let at = f64::from(part) / 10.0 * ms;
        text(&mut svg, x, base + 17.0, "middle", &format!("{at}"));
    }
    let across = (LEFT + WIDTH - RIGHT) / 2.0;
    let words = format!(
        "ms since the begin of the period; a full row is {} CPUs",
        most / 1e3
    );
    text(&mut svg, across, base + 33.0, "middle", &words);
    svg + "</svg>\n"
}

fn put_row(svg: &mut String, row: &PeriodRow, top: f64, most: f64, period_ns: u64) {
    let width = (WIDTH - LEFT - RIGHT) / row.used.len().max(1) as f64;
    let (floor, room) = (top + ROW - 5.0, ROW - 7.0);
    let mut area = format!("M{LEFT} {floor:.1}");
    let mut red = String::new();
    for (n, (used, throttled)) in row.used.iter().zip(&row.throttled).enumerate() {
        let (x, y) = (
            LEFT + n as f64 * width,
            floor - f64::from(*used) / most * room,
        );
        let _ = write!(area, "L{x:.1} {y:.1}H{:.1}", x + width);
        if *throttled > 0 {
            let _ = write!(red, "M{x:.1} {:.1}h{width:.1}", floor + 2.0);
        }
    }
    let end = WIDTH - RIGHT;
    push(
        svg,
        format_args!("<path class=\"used\" d=\"{area}L{end:.1} {floor:.1}Z\"/>"),
    );
    if !red.is_empty() {
        push(svg, format_args!("<path class=\"throttled\" d=\"{red}\"/>"));
    }
    let from = format!("{:.3} s", row.from_ns as f64 / 1e9);
    text(svg, LEFT - 8.0, floor, "end", &from);
    let cpus = row.ran_ns as f64 / period_ns.max(1) as f64;
    let word = match (row.slow, row.waits) {
        (Some(true), _) => ", slow",
        (Some(false), 1..) => ", harmless",
        (Some(false), 0) | (None, _) => "",
    };
    let words = format!("{cpus:.2} CPUs{word}");
    let class = if row.slow == Some(true) { "slow" } else { "" };
    push(
        svg,
        format_args!(
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{floor:.1}\">{words}</text>",
            end + 8.0
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(waits: &[u32]) -> Samples {
        let row = |(n, waits): (usize, &u32)| PeriodRow {
            from_ns: n as u64 * 100,
            used: vec![1500, 0],
            throttled: vec![0, 16_000],
            ran_ns: 75,
            waits: *waits,
            slow: Some(*waits > 5),
        };
        Samples {
            periods: vec![Periods {
                group: "/a<b".into(),
                period_ns: 100,
                rows: waits.iter().enumerate().map(row).collect(),
            }],
            ..Samples::default()
        }
    }

    #[test]
    fn the_periods_with_most_slow_ones_are_drawn() {
        let mut waits = vec![0; 100];
        (waits[70], waits[95], waits[3]) = (9, 9, 1);
        let figure = &figures(&[side(&waits)])[0];
        assert_eq!(figure.svg.matches("class=\"used\"").count(), ROWS_MAX);
        assert_eq!(figure.svg.matches("CPUs, slow").count(), 2);
        assert!(figure.svg.contains("a full row is 2 CPUs"));
        assert!(figure.svg.contains("a&lt;b") && !figure.svg.contains("a<b"));
        assert!(
            figure.note.contains("in 3 of 100 periods"),
            "{}",
            figure.note
        );
        assert!(figure.note.contains("30 of them are drawn"));
    }

    #[test]
    fn without_waiting_there_is_nothing_to_draw() {
        assert!(figures(&[side(&[0, 0])]).is_empty());
        assert!(figures(&[Samples::default()]).is_empty());
    }
}
