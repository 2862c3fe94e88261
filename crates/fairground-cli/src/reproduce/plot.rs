//! One plot for each change: every row's published and simulated change, or value.

use fairground_report::reproduce::{Class, Kind, Row};
use plotters::prelude::*;

use super::Reproduced;
use crate::failure::Failure;

const ROW_PX: u32 = 22;
const WIDTH_PX: u32 = 1000;
const NAMES_PX: u32 = 430;
const HEAD_PX: u32 = 60;
const PUBLISHED: RGBColor = RGBColor(120, 120, 120);
const SIMULATED: RGBColor = RGBColor(20, 90, 170);
const MISSED: RGBColor = RGBColor(200, 40, 30);

/// The points of one row: published and simulated.
struct Line<'a> {
    name: String,
    row: &'a Row,
    published: Option<f64>,
    simulated: Option<f64>,
    ci: [Option<f64>; 2],
}

/// An SVG of the rows whose change is compared: grey is published, blue simulated with its 95 %
/// interval, red a miss.
///
/// # Errors
/// The drawing fails, which no input makes it do.
pub fn svg(change: &Reproduced) -> Result<String, Failure> {
    let lines = lines(change);
    let height = HEAD_PX + ROW_PX * lines.len() as u32 + 50;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH_PX, height)).into_drawing_area();
        draw(&area, change, &lines).map_err(|e| Failure::new(format!("cannot plot: {e}")))?;
    }
    Ok(text)
}

fn lines(change: &Reproduced) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for (run, rows) in &change.rows {
        for (spec, row) in run.rows.iter().zip(rows) {
            if !matches!(spec.kind, Kind::Change | Kind::Noise) {
                continue;
            }
            lines.push(Line {
                name: format!("{} {}", run.name, row.metric),
                row,
                published: row.published.change_pct,
                simulated: row.simulated.change_pct,
                ci: row.simulated.ci95_pct,
            });
        }
    }
    lines
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(area: &Area<'_>, change: &Reproduced, lines: &[Line<'_>]) -> Drawn {
    area.fill(&WHITE)?;
    let text = |size: u32, colour: &RGBColor| ("sans-serif", size).into_font().color(colour);
    let title = format!(
        "{}: change from base to patch, percent",
        change.experiment.change
    );
    area.draw(&Text::new(title, (10, 10), text(18, &BLACK)))?;
    let legend = "grey: published   blue: simulated, with 95 % interval   red: missed";
    area.draw(&Text::new(legend, (10, 34), text(13, &PUBLISHED)))?;
    let values = || {
        let of = |l: &Line<'_>| [l.published, l.simulated];
        lines.iter().flat_map(of).flatten().chain([0.0])
    };
    let (lo, hi) = values().fold((0f64, 0f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
    let (lo, hi) = (lo - 5.0 - hi * 0.05, hi * 1.08 + 5.0);
    let x = |v: f64| {
        let share = ((v - lo) / (hi - lo)).clamp(0.0, 1.0);
        (f64::from(NAMES_PX) + share * f64::from(WIDTH_PX - NAMES_PX - 20)) as i32
    };
    let bottom = (HEAD_PX + ROW_PX * lines.len() as u32) as i32;
    for tick in ticks(lo, hi) {
        let colour = if tick == 0.0 {
            BLACK
        } else {
            RGBColor(225, 225, 225)
        };
        let ends = vec![(x(tick), HEAD_PX as i32), (x(tick), bottom)];
        area.draw(&PathElement::new(ends, colour))?;
        let label = format!("{tick:+.0}");
        area.draw(&Text::new(
            label,
            (x(tick) - 10, bottom + 8),
            text(12, &BLACK),
        ))?;
    }
    for (i, line) in lines.iter().enumerate() {
        let y = (HEAD_PX + ROW_PX * i as u32 + ROW_PX / 2) as i32;
        let colour = if line.row.class == Class::Miss {
            MISSED
        } else {
            SIMULATED
        };
        area.draw(&Text::new(line.name.clone(), (10, y - 7), text(13, &BLACK)))?;
        if let [Some(from), Some(to)] = line.ci {
            area.draw(&PathElement::new(vec![(x(from), y), (x(to), y)], colour))?;
        }
        if let Some(v) = line.published {
            area.draw(&Circle::new((x(v), y), 5, PUBLISHED.filled()))?;
        }
        if let Some(v) = line.simulated {
            area.draw(&Circle::new((x(v), y), 4, colour.filled()))?;
        }
    }
    area.present()?;
    Ok(())
}

/// About ten round numbers from `lo` to `hi`.
fn ticks(lo: f64, hi: f64) -> impl Iterator<Item = f64> {
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
