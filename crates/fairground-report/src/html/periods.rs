//! The periods of groups with a limit, one below the other: how many CPUs a group used from the
//! begin of a period to its end, when its queues were throttled, and whether that made a task slow.

use std::fmt::Write;

use super::plot::{Figure, escaped, push, text};
use super::samples::{PeriodRow, Periods, Samples};
use crate::groups::time_text;

const WIDTH: f64 = 1140.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 8.0;
const ROW: f64 = 22.0;
const BOTTOM: f64 = 38.0;
/// Most periods of a group in one figure.
const ROWS_MAX: usize = 30;

/// A figure for each group and side, and each length of periods in which a task waited.
pub fn figures(samples: &[Samples]) -> Vec<Figure> {
    let mut all = Vec::new();
    for side in samples {
        for periods in &side.periods {
            if waited(&periods.rows) == 0 {
                continue;
            }
            let is_other =
                |p: &&Periods| p.group == periods.group && p.period_ns != periods.period_ns;
            let others: Vec<&Periods> = side.periods.iter().filter(is_other).collect();
            let length = match others[..] {
                [] => String::new(),
                _ => format!(" of {}", time_text(periods.period_ns)),
            };
            let from = busiest(&periods.rows);
            let shown = &periods.rows[from..periods.rows.len().min(from + ROWS_MAX)];
            let side_name = match samples.len() {
                1 => String::new(),
                _ => format!(", {}", side.variant),
            };
            all.push(Figure {
                id: format!("periods-{}", all.len()),
                caption: format!("Periods{length} of {}{side_name}", periods.group),
                note: note(periods, &length, shown, &side.about) + &beside(&others),
                svg: svg(periods, shown),
            });
        }
    }
    all
}

/// In how many of some periods a task waited.
fn waited(rows: &[PeriodRow]) -> usize {
    rows.iter().filter(|row| row.waits > 0).count()
}

/// Where the group's periods of other lengths are.
fn beside(others: &[&Periods]) -> String {
    let one = |other: &&Periods| {
        let how = match waited(&other.rows) {
            0 => "not drawn, as no task waited",
            _ => "drawn apart",
        };
        let length = time_text(other.period_ns);
        format!("{} of {length} ({how})", other.rows.len())
    };
    match others {
        [] => String::new(),
        _ => {
            let all: Vec<String> = others.iter().map(one).collect();
            format!(" Periods of other lengths: {}.", all.join(", "))
        }
    }
}

fn note(periods: &Periods, length: &str, shown: &[PeriodRow], about: &str) -> String {
    let all = &periods.rows;
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
        "{about}: in {} of {} periods{length} a task waited for quota{slow}. {part}, from left to \
         right what happened in one: CPUs that the group used, and below in red when its queues \
         were throttled.",
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
        put_row(&mut svg, row, TOP + n as f64 * ROW, most, periods);
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

fn put_row(svg: &mut String, row: &PeriodRow, top: f64, most: f64, of: &Periods) {
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
    // The first of a replay may have begun before the recording.
    let from = (row.from_ns as f64 - of.origin_ns as f64) / 1e9;
    let from = format!("{from:.3} s");
    text(svg, LEFT - 8.0, floor, "end", &from);
    let cpus = row.ran_ns as f64 / of.period_ns.max(1) as f64;
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
            to_ns: n as u64 * 100 + 100,
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
                origin_ns: 0,
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
    fn periods_of_other_lengths_are_drawn_by_themselves_or_counted() {
        let mut one = side(&[9, 0, 1]);
        for (waits, period_ns) in [(&[0, 2][..], 50_000_000), (&[0], 20_000_000)] {
            let other = side(waits).periods.remove(0);
            one.periods.push(Periods { period_ns, ..other });
        }
        one.periods[0].period_ns = 100_000_000;
        one.periods[0].origin_ns = 1_000_000_000;
        let all = figures(&[one]);
        let captions: Vec<_> = all.iter().map(|f| f.caption.as_str()).collect();
        assert_eq!(
            captions,
            ["Periods of 100 ms of /a<b", "Periods of 50 ms of /a<b"]
        );
        let note = &all[0].note;
        assert!(
            note.contains("in 2 of 3 periods of 100 ms a task"),
            "{note}"
        );
        let others =
            "lengths: 2 of 50 ms (drawn apart), 1 of 20 ms (not drawn, as no task waited).";
        assert!(note.ends_with(others), "{note}");
        assert!(all[1].note.contains("3 of 100 ms (drawn apart)"));
        assert!(all[0].svg.contains(">-1.000 s<"), "{}", all[0].svg);
    }

    #[test]
    fn without_waiting_there_is_nothing_to_draw() {
        assert!(figures(&[side(&[0, 0])]).is_empty());
        assert!(figures(&[Samples::default()]).is_empty());
    }
}
