//! One plot for each change: every row's published and simulated change, and below the values that
//! are compared themselves.

use fairground_report::reproduce::{Class, Kind, Row};
use plotters::prelude::*;

use super::Reproduced;
use crate::failure::Failure;

const ROW_PX: u32 = 22;
const WIDTH_PX: u32 = 1000;
const NAMES_PX: u32 = 430;
const HEAD_PX: u32 = 60;
const FOOT_PX: u32 = 50;
const PUBLISHED: RGBColor = RGBColor(120, 120, 120);
const SIMULATED: RGBColor = RGBColor(20, 90, 170);
const MISSED: RGBColor = RGBColor(200, 40, 30);
const GRID: RGBColor = RGBColor(225, 225, 225);
/// What is farther from the published value is drawn at the edge.
const FARTHEST: f64 = 100.0;

/// The points of one row.
struct Line {
    name: String,
    missed: bool,
    published: Option<f64>,
    simulated: Option<f64>,
    ci: [Option<f64>; 2],
}

/// Rows on one axis.
struct Panel {
    title: String,
    legend: &'static str,
    axis: Axis,
    lines: Vec<Line>,
}

/// What the horizontal places mean.
enum Axis {
    /// Percent, from and to.
    Percent(f64, f64),
    /// A multiple of the published value, on a logarithmic scale.
    Multiple,
}

/// An SVG of the rows that are compared: grey is published, blue simulated, red a miss. Of changes
/// with their 95 % interval, of values as a multiple of the published ones.
///
/// # Errors
/// The drawing fails, which no input makes it do.
pub fn svg(change: &Reproduced) -> Result<String, Failure> {
    let mut panels = vec![changes(change), values(change)];
    panels.retain(|panel| !panel.lines.is_empty());
    let height = panels.iter().map(Panel::height).sum();
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH_PX, height)).into_drawing_area();
        draw(&area, &panels).map_err(|e| Failure::new(format!("cannot plot: {e}")))?;
    }
    Ok(text)
}

fn changes(change: &Reproduced) -> Panel {
    let is_change = |kind: &Kind| matches!(kind, Kind::Change | Kind::Noise);
    let lines = lines(change, is_change, |row| Line {
        published: row.published.change_pct,
        simulated: row.simulated.change_pct,
        ci: row.simulated.ci95_pct,
        ..Line::named(row)
    });
    let of = |l: &Line| [l.published, l.simulated];
    let (lo, hi) = lines
        .iter()
        .flat_map(of)
        .flatten()
        .fold((0f64, 0f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
    Panel {
        title: format!(
            "{}: change from base to patch, percent",
            change.experiment.change
        ),
        legend: "grey: published; blue: simulated, with 95 % interval; red: missed",
        axis: Axis::Percent(lo - 5.0 - hi * 0.05, hi * 1.08 + 5.0),
        lines,
    }
}

fn values(change: &Reproduced) -> Panel {
    let is_value = |kind: &Kind| !matches!(kind, Kind::Change | Kind::Noise);
    let lines = lines(change, is_value, |row| Line {
        published: Some(1.0),
        simulated: row.level,
        ..Line::named(row)
    });
    Panel {
        title: format!(
            "{}: value of base, as a multiple of the published one",
            change.experiment.change
        ),
        legend: "grey: published; blue: simulated; red: missed; no point: nothing to measure",
        axis: Axis::Multiple,
        lines,
    }
}

fn lines(
    change: &Reproduced,
    of_kind: impl Fn(&Kind) -> bool,
    line: impl Fn(&Row) -> Line,
) -> Vec<Line> {
    let mut lines = Vec::new();
    for (run, rows) in &change.rows {
        let asked = run.rows.iter().zip(rows);
        for (_, row) in asked.filter(|(spec, _)| of_kind(&spec.kind)) {
            let mut line = line(row);
            line.name = format!("{} {}", run.name, line.name);
            lines.push(line);
        }
    }
    lines
}

impl Line {
    fn named(row: &Row) -> Self {
        Self {
            name: row.metric.clone(),
            missed: row.class == Class::Miss,
            published: None,
            simulated: None,
            ci: [None, None],
        }
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(area: &Area<'_>, panels: &[Panel]) -> Drawn {
    area.fill(&WHITE)?;
    let mut top = 0;
    for panel in panels {
        panel.draw_frame(area, top)?;
        for (i, line) in panel.lines.iter().enumerate() {
            let y = top + HEAD_PX + ROW_PX * i as u32 + ROW_PX / 2;
            line.draw(area, &panel.axis, y as i32)?;
        }
        top += panel.height();
    }
    area.present()?;
    Ok(())
}

fn text(size: u32, colour: &RGBColor) -> TextStyle<'_> {
    ("sans-serif", size).into_font().color(colour)
}

impl Panel {
    fn height(&self) -> u32 {
        HEAD_PX + ROW_PX * self.lines.len() as u32 + FOOT_PX
    }

    /// Title, legend and grid.
    fn draw_frame(&self, area: &Area<'_>, top: u32) -> Drawn {
        let (above, bottom) = (
            (top + HEAD_PX) as i32,
            (top + self.height() - FOOT_PX) as i32,
        );
        let top = top as i32;
        let title = Text::new(self.title.clone(), (10, top + 10), text(18, &BLACK));
        area.draw(&title)?;
        area.draw(&Text::new(
            self.legend,
            (10, top + 34),
            text(13, &PUBLISHED),
        ))?;
        for (at, label, main) in self.axis.ticks() {
            let x = self.axis.place(at);
            let colour = if main { BLACK } else { GRID };
            area.draw(&PathElement::new(vec![(x, above), (x, bottom)], colour))?;
            area.draw(&Text::new(label, (x - 10, bottom + 8), text(12, &BLACK)))?;
        }
        Ok(())
    }
}

impl Line {
    fn draw(&self, area: &Area<'_>, axis: &Axis, y: i32) -> Drawn {
        let colour = if self.missed { MISSED } else { SIMULATED };
        let name = Text::new(self.name.clone(), (10, y - 7), text(13, &BLACK));
        area.draw(&name)?;
        if let [Some(from), Some(to)] = self.ci {
            let ends = vec![(axis.place(from), y), (axis.place(to), y)];
            area.draw(&PathElement::new(ends, colour))?;
        }
        if let Some(v) = self.published {
            area.draw(&Circle::new((axis.place(v), y), 5, PUBLISHED.filled()))?;
        }
        if let Some(v) = self.simulated {
            area.draw(&Circle::new((axis.place(v), y), 4, colour.filled()))?;
        }
        Ok(())
    }
}

impl Axis {
    /// Where a value is drawn, px from the left.
    fn place(&self, value: f64) -> i32 {
        let share = match *self {
            Self::Percent(lo, hi) => (value - lo) / (hi - lo),
            Self::Multiple => 0.5 + value.ln() / FARTHEST.ln() / 2.0,
        };
        let width = f64::from(WIDTH_PX - NAMES_PX - 40);
        (f64::from(NAMES_PX) + share.clamp(0.0, 1.0) * width) as i32
    }

    /// Lines of the grid: their value, what is below them, and whether it is the one that counts.
    fn ticks(&self) -> Vec<(f64, String, bool)> {
        match *self {
            Self::Percent(lo, hi) => round_numbers(lo, hi)
                .map(|v| (v, format!("{v:+.0}"), v == 0.0))
                .collect(),
            Self::Multiple => [0.01, 0.1, 0.5, 1.0, 2.0, 10.0, FARTHEST]
                .map(|v| (v, format!("x{v}"), v == 1.0))
                .to_vec(),
        }
    }
}

/// About ten round numbers from `lo` to `hi`.
fn round_numbers(lo: f64, hi: f64) -> impl Iterator<Item = f64> {
    let rough = (hi - lo) / 10.0;
    let unit = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|m| m * unit)
        .into_iter()
        .find(|s| *s >= rough)
        .unwrap_or(rough);
    let first = (lo / step).ceil() as i64;
    (first..=(hi / step).floor() as i64).map(move |i| i as f64 * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_left_or_right_of_the_published_one() {
        let axis = Axis::Multiple;
        let places = [0.0, 0.001, 0.01, 0.5, 1.0, 2.0, 100.0, 1e6].map(|v| axis.place(v));
        assert!(places.is_sorted());
        let [none, least, .., half, same, twice, most, beyond] = places;
        assert_eq!((none, most), (least, beyond), "at the edges");
        assert!((half..twice).contains(&same) && half < same);
    }

    #[test]
    fn the_axis_of_changes_has_its_zero() {
        let ticks = Axis::Percent(-40.0, 90.0).ticks();
        assert!(
            ticks
                .iter()
                .any(|(at, label, main)| *main && *at == 0.0 && label == "+0")
        );
        assert!((5..=12).contains(&ticks.len()));
    }
}
