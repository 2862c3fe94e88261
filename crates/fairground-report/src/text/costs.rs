//! The tables that explain a comparison: which words were fought over, and which scheduler
//! functions took the time.

use std::collections::BTreeMap;

use super::table::{Align, render};
use crate::number::count;
use crate::result::{Run, Variant};

/// Means over the runs of a variant, per place.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub reads: f64,
    pub writes: f64,
    pub rmws: f64,
    pub transfers: f64,
    pub remote: f64,
    pub upgrades: f64,
    pub false_sharing: f64,
    pub wait_ns: f64,
}

impl Traffic {
    /// The sum.
    pub fn and(self, other: &Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            rmws: self.rmws + other.rmws,
            transfers: self.transfers + other.transfers,
            remote: self.remote + other.remote,
            upgrades: self.upgrades + other.upgrades,
            false_sharing: self.false_sharing + other.false_sharing,
            wait_ns: self.wait_ns + other.wait_ns,
        }
    }
}

/// Places of all tables, the one that was waited for most first.
pub(crate) fn places_by_wait<'a>(
    tables: &[BTreeMap<(&'a str, &'a str), Traffic>],
) -> Vec<(&'a str, &'a str)> {
    let mut places: Vec<(&str, &str)> = tables.iter().flat_map(|t| t.keys().copied()).collect();
    let wait = |place: &(&str, &str)| {
        let waits = tables.iter().filter_map(|t| t.get(place));
        waits.map(|t| t.wait_ns).fold(0.0, f64::max)
    };
    let fetched = |place: &(&str, &str)| {
        let fetches = tables.iter().filter_map(|t| t.get(place));
        fetches.map(|t| t.transfers).fold(0.0, f64::max)
    };
    places.sort_unstable();
    places.dedup();
    places.sort_by(|a, b| {
        let by_wait = wait(b).total_cmp(&wait(a));
        by_wait.then_with(|| fetched(b).total_cmp(&fetched(a)))
    });
    places
}

/// Shared places by waiting, in the spirit of `perf c2c`. `wait` is the place's part of all the
/// waiting for cache lines in its variant; `wait ns` is that of one touch.
pub fn lines_text(variants: &[Variant], most: usize) -> String {
    let tables: Vec<_> = variants.iter().map(traffic).collect();
    let places = places_by_wait(&tables);
    let dropped = places.len().saturating_sub(most);
    let mut rows = Vec::new();
    for place in places.iter().take(most) {
        for (index, (variant, table)) in variants.iter().zip(&tables).enumerate() {
            let all: f64 = table.values().map(|t| t.wait_ns).sum();
            let t = table.get(place).copied().unwrap_or_default();
            let name = if index == 0 {
                place_name(place.0, place.1)
            } else {
                String::new()
            };
            rows.push(line_row(name, &variant.name, t, all));
        }
    }
    let mut header = vec![
        "cache line of",
        "",
        "reads",
        "writes",
        "rmws",
        "transfers",
        "wait ns",
        "wait",
    ];
    let mut align = vec![Align::Right; header.len()];
    align[..2].fill(Align::Left);
    if variants.len() == 1 {
        // There is one side.
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
        header.remove(1);
        align.remove(1);
    }
    let mut text = render(&header, &rows, &align);
    // Who wants no table wants no words about it either.
    if dropped > 0 && most > 0 {
        text += &format!("... and {dropped} more\n");
    }
    text
}

/// `object.field,field`, cut to what the table has room for; `,+3` stands for three more fields
/// of the line.
pub(crate) fn place_name(object: &str, fields: &str) -> String {
    const WIDTH: usize = 38;
    let fields: Vec<&str> = fields.split(',').collect();
    for shown in (1..=fields.len()).rev() {
        let mut name = format!("{object}.{}", fields[..shown].join(","));
        if shown < fields.len() {
            name += &format!(",+{}", fields.len() - shown);
        }
        // One field is shown whatever its length: a line must have a name.
        if name.chars().count() <= WIDTH || shown == 1 {
            return name;
        }
    }
    object.into()
}

fn line_row(place: String, variant: &str, t: Traffic, all_wait_ns: f64) -> Vec<String> {
    let touches = t.reads + t.writes + t.rmws;
    let each = if touches > 0.0 {
        t.wait_ns / touches
    } else {
        0.0
    };
    let share = if all_wait_ns > 0.0 {
        100.0 * t.wait_ns / all_wait_ns
    } else {
        0.0
    };
    let mut row = vec![place, variant.into()];
    row.extend([t.reads, t.writes, t.rmws, t.transfers].map(count));
    row.extend([format!("{each:.1}"), format!("{share:.1}%")]);
    row
}

pub(crate) fn traffic(variant: &Variant) -> BTreeMap<(&str, &str), Traffic> {
    let mut sums: BTreeMap<(&str, &str), Traffic> = BTreeMap::new();
    let part = 1.0 / variant.runs.len().max(1) as f64;
    for line in variant.runs.iter().flat_map(|run| &run.lines) {
        let mean = |sum: u64| sum as f64 * part;
        let one = Traffic {
            reads: mean(line.reads),
            writes: mean(line.writes),
            rmws: mean(line.rmws),
            transfers: mean(line.transfers),
            remote: mean(line.remote),
            upgrades: mean(line.upgrades),
            false_sharing: mean(line.false_sharing),
            wait_ns: mean(line.wait_ns),
        };
        let sum = sums.entry((&line.object, &line.field)).or_default();
        *sum = sum.and(&one);
    }
    sums
}

/// Share of the busy CPU time per scheduler function, in the shape of `perf top`, and what of its
/// loads missed the LLC; for two variants also the difference in points, largest share first.
pub fn functions_text(variants: &[Variant], most: usize) -> String {
    let functions = Functions::of(variants);
    let misses = functions.have_misses();
    let rows: Vec<Vec<String>> = functions
        .rows
        .iter()
        .take(most)
        .map(|f| {
            let percent = |cost: &MeanCost| format!("{:.2}%", cost.share * 100.0);
            let mut row: Vec<String> = f.costs.iter().map(percent).collect();
            if let [base, patch] = f.costs[..] {
                row.push(format!("{:+.2}", (patch.share - base.share) * 100.0));
            }
            if misses {
                row.extend(f.costs.iter().map(|cost| count(cost.llc_misses)));
            }
            row.push(f.name.into());
            row
        })
        .collect();
    let (shares, missed): (&[&str], &[&str]) = match variants.len() {
        2 => (
            &["base", "patch", "diff"],
            &["LLC misses base", "LLC misses patch"],
        ),
        _ => (&["share"], &["LLC misses"]),
    };
    let mut header = shares.to_vec();
    header.extend(missed.iter().filter(|_| misses));
    let mut align = vec![Align::Right; header.len()];
    header.push("function");
    align.push(Align::Left);
    let mut text = render(&header, &rows, &align);
    let dropped = functions.rows.len().saturating_sub(most);
    if dropped > 0 && most > 0 {
        text += &format!("... and {dropped} more\n");
    }
    text
}

/// What functions cost on each side, largest share first.
pub(crate) struct Functions<'a> {
    pub rows: Vec<FunctionRow<'a>>,
}

/// One function; costs by variant.
pub(crate) struct FunctionRow<'a> {
    pub name: &'a str,
    pub costs: Vec<MeanCost>,
}

/// Means over the runs of a variant.
#[derive(Clone, Copy, Default)]
pub(crate) struct MeanCost {
    /// Part of the time in which CPUs were not idle, 0 to 1.
    pub share: f64,
    pub llc_misses: f64,
}

impl<'a> Functions<'a> {
    pub fn of(variants: impl IntoIterator<Item = &'a Variant>) -> Self {
        let variants: Vec<&Variant> = variants.into_iter().collect();
        let mut sums: BTreeMap<&str, Vec<MeanCost>> = BTreeMap::new();
        for (side, variant) in variants.iter().enumerate() {
            let part = 1.0 / variant.runs.len().max(1) as f64;
            for (name, cost) in variant.runs.iter().flat_map(|run| &run.functions) {
                let costs = sums.entry(name).or_default();
                costs.resize(variants.len(), MeanCost::default());
                costs[side].share += cost.share.unwrap_or(0.0) * part;
                costs[side].llc_misses += cost.llc_misses as f64 * part;
            }
        }
        let row = |(name, costs)| FunctionRow { name, costs };
        let mut rows: Vec<_> = sums.into_iter().map(row).collect();
        let most = |row: &FunctionRow<'_>| row.costs.iter().map(|c| c.share).fold(0.0, f64::max);
        rows.sort_by(|a, b| most(b).total_cmp(&most(a)));
        Self { rows }
    }

    /// Whether anything missed: results of older versions do not say.
    pub fn have_misses(&self) -> bool {
        let mut costs = self.rows.iter().flat_map(|row| &row.costs);
        costs.any(|cost| cost.llc_misses > 0.0)
    }
}

/// What the real tool would have printed: of each variant's first seed.
pub fn words_text(variants: &[Variant]) -> String {
    let mut told: Vec<(&str, &Run)> = Vec::new();
    for variant in variants {
        let run = variant.runs.first().filter(|run| !run.output.is_empty());
        told.extend(run.map(|run| (variant.name.as_str(), run)));
    }
    let mut text = String::new();
    for (name, run) in &told {
        // Of a run alone there is no side to name.
        text += &match (variants.len(), *name) {
            (1, "base") => format!("seed {}:\n", run.seed),
            _ => format!("{name}, seed {}:\n", run.seed),
        };
        for line in &run.output {
            text += format!("  {line}").trim_end();
            text += "\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_keeps_its_first_fields() {
        assert_eq!(place_name("rq", "lock"), "rq.lock");
        assert_eq!(
            place_name("sched_entity(task)", "slice,nr_migrations,depth,parent"),
            "sched_entity(task).slice,+3"
        );
        let long = "a_field_name_that_no_table_has_room_for";
        assert_eq!(
            place_name("rq", &format!("{long},b")),
            format!("rq.{long},+1")
        );
    }
}
