//! A line plot with intervals, as an SVG that needs no script.

use std::fmt::Write;

use serde::Serialize;

use crate::number::number;

const WIDTH: f64 = 1140.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;
/// Colours that a page has (`--c0` to `--c7`).
const COLOURS: usize = 8;
/// From the smallest to the largest value beyond which the axis is logarithmic.
const WIDE: f64 = 30.0;

/// A plot that needs no script.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figure {
    /// Anchor.
    pub id: String,
    /// What it is.
    pub caption: String,
    /// What to know about it.
    pub note: String,
    /// The drawing, with its legend.
    pub svg: String,
}

/// One value with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Which of the plot's places.
    pub place: usize,
    /// Mean.
    pub mean: f64,
    /// Interval of it, if there is one.
    pub ci: Option<[f64; 2]>,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is, if there are several.
    pub name: String,
    /// Its values, from left to right.
    pub dots: Vec<Dot>,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What the values are.
    pub title: String,
    /// What changes from left to right.
    pub across: String,
    /// Its values, with where they stand: any unit.
    pub places: Vec<(String, f64)>,
    /// The lines.
    pub series: Vec<Series>,
    /// Level lines with their names.
    pub levels: Vec<(String, f64)>,
    /// The place of the knee, if there is one.
    pub knee: Option<usize>,
}

/// The upright axis.
struct Axis {
    lo: f64,
    hi: f64,
    log: bool,
}

impl Axis {
    fn of(plot: &Plot) -> Self {
        let dots = plot.series.iter().flat_map(|s| &s.dots);
        let ends = dots.flat_map(|d| d.ci.map_or([d.mean; 2], |[lo, hi]| [lo.min(d.mean), hi]));
        let all: Vec<f64> = ends.chain(plot.levels.iter().map(|(_, at)| *at)).collect();
        let hi = all.iter().copied().fold(f64::MIN, f64::max);
        let means = plot.series.iter().flat_map(|s| &s.dots).map(|d| d.mean);
        let least = means.fold(f64::MAX, f64::min);
        // Above or below 0 is what the plot is about.
        let signed = plot.levels.iter().any(|(_, at)| *at == 0.0);
        if !signed && least > 0.0 && hi / least > WIDE {
            return Self {
                lo: 10f64.powf(least.log10().floor()),
                hi: hi * 1.1,
                log: true,
            };
        }
        // An interval that goes below 0 where no value can is cut there.
        let means = plot.series.iter().flat_map(|s| &s.dots).map(|d| d.mean);
        let lo = match signed {
            true => all.iter().copied().fold(0.0, f64::min),
            false => means.fold(0.0, f64::min),
        };
        // A line at 0 only still needs an axis.
        let hi = if hi > lo {
            hi + (hi - lo) * 0.05
        } else {
            lo + 1.0
        };
        Self { lo, hi, log: false }
    }

    fn y(&self, value: f64) -> f64 {
        let share = if self.log {
            let value = value.max(self.lo);
            (value / self.lo).log10() / (self.hi / self.lo).log10()
        } else {
            (value - self.lo) / (self.hi - self.lo)
        };
        HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let decades = (-30..30).flat_map(|d| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(d)));
            return decades
                .filter(|t| (self.lo..=self.hi).contains(t))
                .collect();
        }
        let rough = (self.hi - self.lo) / 6.0;
        let unit = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * unit);
        let step = steps.into_iter().find(|s| *s >= rough).unwrap_or(rough);
        let (first, last) = (
            (self.lo / step).ceil() as i64,
            (self.hi / step).floor() as i64,
        );
        (first..=last.min(first + 20))
            .map(|i| i as f64 * step)
            .collect()
    }
}

impl Plot {
    /// The drawing, with what each point is when it is pointed at.
    #[must_use]
    pub fn svg(&self) -> String {
        let axis = Axis::of(self);
        let mut svg = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{}\">\n",
            escaped(&self.title)
        );
        for tick in axis.ticks() {
            let y = axis.y(tick);
            push(
                &mut svg,
                format_args!(
                    "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/>",
                    WIDTH - RIGHT
                ),
            );
            text(&mut svg, LEFT - 8.0, y + 4.0, "end", &number(Some(tick)));
        }
        self.put_places(&mut svg);
        for (name, level) in &self.levels {
            let y = axis.y(*level);
            push(
                &mut svg,
                format_args!(
                    "<path class=\"level\" d=\"M{LEFT} {y:.1}H{}\"/>",
                    WIDTH - RIGHT
                ),
            );
            text(&mut svg, WIDTH - RIGHT, y - 4.0, "end", name);
        }
        if let Some(place) = self.knee {
            let x = self.x(place);
            let line = format_args!(
                "<path class=\"level\" d=\"M{x:.1} {TOP}V{}\"/>",
                HEIGHT - BOTTOM
            );
            push(&mut svg, line);
            text(&mut svg, x + 6.0, TOP + 10.0, "start", "knee");
        }
        for (i, series) in self.series.iter().enumerate() {
            self.put_series(&mut svg, &axis, series, i % COLOURS);
        }
        svg + "</svg>\n" + &self.legend()
    }

    fn x(&self, place: usize) -> f64 {
        let at = |i: usize| self.places.get(i).map_or(0.0, |(_, at)| *at);
        let all = || self.places.iter().map(|(_, at)| *at);
        let (lo, hi) = (
            all().fold(f64::MAX, f64::min),
            all().fold(f64::MIN, f64::max),
        );
        let share = if hi > lo {
            (at(place) - lo) / (hi - lo)
        } else {
            0.5
        };
        LEFT + 20.0 + share * (WIDTH - LEFT - RIGHT - 40.0)
    }

    /// Names below the axis, those that do not run into the one before.
    fn put_places(&self, svg: &mut String) {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by(|a, b| self.x(*a).total_cmp(&self.x(*b)));
        let mut free = f64::MIN;
        for i in order {
            let (name, x) = (&self.places[i].0, self.x(i));
            let half = name.chars().count() as f64 * 3.1;
            if x - half >= free {
                text(svg, x, HEIGHT - BOTTOM + 16.0, "middle", name);
                free = x + half + 8.0;
            }
        }
        text(
            svg,
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 8.0,
            "middle",
            &self.across,
        );
    }

    fn put_series(&self, svg: &mut String, axis: &Axis, series: &Series, colour: usize) {
        let mut line = String::new();
        for dot in &series.dots {
            let step = if line.is_empty() { 'M' } else { 'L' };
            let _ = write!(
                line,
                "{step}{:.1} {:.1}",
                self.x(dot.place),
                axis.y(dot.mean)
            );
        }
        let stroke = format!("style=\"stroke:var(--c{colour})\"");
        push(
            svg,
            format_args!("<path class=\"curve\" {stroke} d=\"{line}\"/>"),
        );
        for dot in &series.dots {
            let (x, y) = (self.x(dot.place), axis.y(dot.mean));
            let place = self.places.get(dot.place).map_or("", |(name, _)| name);
            let mut words = [&*series.name, place].join(" ").trim().to_string();
            words += &format!(": {}", number(Some(dot.mean)));
            if let Some([lo, hi]) = dot.ci {
                let (top, end) = (axis.y(hi), axis.y(lo));
                push(
                    svg,
                    format_args!(
                        "<path class=\"curve\" {stroke} d=\"M{x:.1} {top:.1}V{end:.1}M{:.1} \
                         {top:.1}h8M{:.1} {end:.1}h8\"/>",
                        x - 4.0,
                        x - 4.0
                    ),
                );
                words += &format!(" [{}, {}]", number(Some(lo)), number(Some(hi)));
            }
            push(
                svg,
                format_args!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" style=\"fill:var(--c{colour})\">\
                     <title>{}</title></circle>",
                    escaped(&words)
                ),
            );
        }
    }

    fn legend(&self) -> String {
        if self.series.len() < 2 {
            return String::new();
        }
        let entry = |(i, s): (usize, &Series)| {
            format!(
                "<span><i style=\"background:var(--c{})\"></i>{}</span>",
                i % COLOURS,
                escaped(&s.name)
            )
        };
        let entries: String = self.series.iter().enumerate().map(entry).collect();
        format!("<p class=\"legend\">{entries}</p>\n")
    }
}

pub(super) fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escaped(words);
    push(
        svg,
        format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"),
    );
}

pub(super) fn push(svg: &mut String, line: std::fmt::Arguments<'_>) {
    // A string takes all.
    let _ = writeln!(svg, "{line}");
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(means: &[f64]) -> Plot {
        let dot = |(place, &mean): (usize, &f64)| Dot {
            place,
            mean,
            ci: Some([mean * 0.9, mean * 1.1]),
        };
        Plot {
            title: "p99 <b>".into(),
            across: "cpu.max".into(),
            places: (0..means.len())
                .map(|i| (format!("{i}ms"), i as f64))
                .collect(),
            series: vec![Series {
                name: String::new(),
                dots: means.iter().enumerate().map(dot).collect(),
            }],
            levels: vec![("< 20".into(), 20.0)],
            knee: None,
        }
    }

    #[test]
    fn a_drawing_has_a_point_an_interval_and_words_for_each_value() {
        let svg = plot(&[10.0, 30.0, 20.0]).svg();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(
            svg.contains("<title>1ms: 30.00 [27.00, 33.00]</title>"),
            "{svg}"
        );
        assert!(svg.contains("p99 &lt;b&gt;") && !svg.contains("<b>"));
        assert!(svg.contains("class=\"level\"") && svg.contains("&lt; 20"));
    }

    #[test]
    fn a_knee_is_an_upright_line_at_its_place() {
        let mut plot = plot(&[30.0, 10.0, 9.0]);
        assert!(!plot.svg().contains(">knee<"));
        plot.knee = Some(1);
        let (svg, x) = (plot.svg(), plot.x(1));
        let line = format!("class=\"level\" d=\"M{x:.1} ");
        assert!(svg.contains(&line) && svg.contains(">knee</text>"), "{svg}");
    }

    #[test]
    fn nothing_is_drawn_outside_and_no_number_is_without_end() {
        let cases: [&[f64]; 5] = [&[0.0], &[0.0, 0.0], &[1e-9, 1e12], &[-5.0, 5.0], &[7.0]];
        for means in cases {
            let svg = plot(means).svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            for y in svg.split("cy=\"").skip(1) {
                let y: f64 = y.split('"').next().unwrap().parse().unwrap();
                assert!(
                    (TOP - 0.1..=HEIGHT - BOTTOM + 0.1).contains(&y),
                    "{means:?}: {y}"
                );
            }
        }
    }
}
