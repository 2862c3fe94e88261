//! Tables of a sign table: its places, put together so that what there is most of goes down.
//! One workload in many places has a table with a row for each place; many workloads in few places
//! (a configuration, a series of counts) have one for each place with a row for each workload.

use super::counted::sentences;
use super::{Place, Signs, Tally, row};
use crate::machine::MachineParts;
use crate::text::labelled;

/// Columns of a workload's name where a table has many others.
const SHORT: usize = 18;

/// Places under one heading.
pub(super) struct Block<'a> {
    /// What all rows have in common.
    pub head: String,
    /// Headings of the columns that name a row.
    pub header: Vec<&'static str>,
    /// Headings of what else tells places apart: of what their machines consist.
    pub parts: Vec<&'static str>,
    /// The metrics that verdicts are about.
    pub metrics: Vec<String>,
    /// The rows.
    pub rows: Vec<Row<'a>>,
    /// The verdicts counted in sentences, for each metric.
    pub counted: Vec<Vec<String>>,
}

/// A place and its name in the tables.
pub(super) struct Row<'a> {
    pub place: &'a Place,
    /// As many words as the block has headings.
    pub name: Vec<String>,
    /// The same, shorter.
    pub short: Vec<String>,
    /// As many words as there are headings for what the machine consists of.
    pub parts: Vec<String>,
}

/// The places as tables.
pub(super) fn blocks(signs: &Signs) -> Vec<Block<'_>> {
    let ran = || signs.places.iter().filter(|place| place.result.is_some());
    let spots = distinct(ran().map(spot));
    let workloads = distinct(ran().map(|place| &place.workload));
    if workloads.len() <= spots.len() {
        return by_workload(signs);
    }
    let mut all = Vec::new();
    for here in spots {
        let places = || ran().filter(|place| spot(place) == here);
        for metrics in distinct(places().map(|place| &place.metrics)) {
            let places = places().filter(|place| place.metrics == *metrics);
            all.push(of_spot(here, metrics, &places.collect::<Vec<_>>()));
        }
    }
    all
}

fn spot(place: &Place) -> (&str, u64) {
    (&place.machine, place.cpus)
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

fn by_workload(signs: &Signs) -> Vec<Block<'_>> {
    let mut all = Vec::new();
    let mut left = &signs.tallies[..];
    while let [first, ..] = left {
        let same = left.iter().take_while(|t| t.workload == first.workload);
        let (tallies, rest) = left.split_at(same.count());
        left = rest;
        let here = |place: &&Place| place.workload == first.workload && place.result.is_some();
        let named = |place| Row {
            name: place_name(place),
            short: place_name(place),
            parts: place_parts(place),
            place,
        };
        all.push(Block {
            head: labelled("workload", &first.workload.join(" ")),
            header: vec!["machine", "CPUs"],
            parts: vec!["sockets", "LLCs"],
            metrics: tallies.iter().map(|t| t.metric.clone()).collect(),
            rows: signs.places.iter().filter(here).map(named).collect(),
            counted: tallies.iter().map(sentences).collect(),
        });
    }
    all
}

fn place_name(place: &Place) -> Vec<String> {
    vec![place.machine.clone(), place.cpus.to_string()]
}

/// Sockets and last-level caches.
pub(super) fn place_parts(place: &Place) -> Vec<String> {
    match parts(place) {
        Some(parts) => vec![parts.sockets.to_string(), parts.llcs.to_string()],
        None => vec!["-".into(); 2],
    }
}

fn parts(place: &Place) -> Option<MachineParts> {
    place.result.as_ref()?.machine.topology
}

/// Workloads of one place, by their numbers: their names are long.
fn of_spot<'a>(
    (machine, cpus): (&str, u64),
    metrics: &[String],
    places: &[&'a Place],
) -> Block<'a> {
    let lines: Vec<&[String]> = places.iter().map(|place| &place.workload[..]).collect();
    let own = own_words(&lines);
    let parts = places.iter().find_map(|place| parts(place));
    let parts = parts.map_or_else(|| format!("{cpus} CPUs"), |parts| parts.words());
    let mut head = labelled("machine", &format!("{machine}, {parts}"));
    for (i, words) in lines.iter().enumerate() {
        let label = if i == 0 { "workloads" } else { "" };
        // Not wrapped: it is there to be copied.
        head += &format!("{label:<10}{:>2}  {}\n", i + 1, words.join(" "));
    }
    let row = |(i, place): (usize, &&'a Place)| {
        let name = format!("{:>2}  {}", i + 1, own[i]);
        Row {
            place,
            short: vec![shortened(&name)],
            name: vec![name],
            parts: Vec::new(),
        }
    };
    Block {
        head,
        header: vec!["workload"],
        parts: Vec::new(),
        metrics: metrics.to_vec(),
        rows: places.iter().enumerate().map(row).collect(),
        counted: metrics
            .iter()
            .map(|metric| counted(metric, places))
            .collect(),
    }
}

/// How often each verdict was reached, and by which of the workloads.
fn counted(metric: &str, places: &[&Place]) -> Vec<String> {
    let mut tally = Tally::default();
    for (i, place) in places.iter().enumerate() {
        let row = place.result.as_ref().and_then(|result| row(result, metric));
        if let Some(row) = row {
            tally.count(row, (i + 1).to_string());
        }
    }
    sentences(&tally)
}

/// Of each line the words that not all begin or end with, with the option that they belong to.
fn own_words(lines: &[&[String]]) -> Vec<String> {
    let [first, others @ ..] = lines else {
        return Vec::new();
    };
    if others.is_empty() {
        return vec![first.join(" ")];
    }
    let least = lines.iter().map(|line| line.len()).min().unwrap_or(0);
    let same = |at: &dyn Fn(&[String]) -> usize| {
        let word = &first[at(first)];
        others.iter().all(|line| line[at(line)] == *word)
    };
    let mut head = (0..least).take_while(|&i| same(&|_| i)).count();
    let left = least - head;
    let tail = (0..left).take_while(|&i| same(&|line| line.len() - 1 - i));
    let tail = tail.count();
    if head > 0 && first[head - 1].starts_with('-') && !first[head - 1].contains('=') {
        head -= 1;
    }
    let own = |line: &&[String]| line[head..line.len() - tail].join(" ");
    lines.iter().map(own).collect()
}

fn shortened(name: &str) -> String {
    if name.len() <= SHORT {
        return name.into();
    }
    let kept: String = name.chars().take(SHORT - 2).collect();
    format!("{}..", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(lines: &[&str]) -> Vec<String> {
        let lines: Vec<Vec<String>> = lines
            .iter()
            .map(|line| line.split(' ').map(String::from).collect())
            .collect();
        own_words(&lines.iter().map(|line| &line[..]).collect::<Vec<_>>())
    }

    #[test]
    fn a_workload_is_named_by_the_words_that_others_lack() {
        assert_eq!(own(&["x -p -g 1", "x -p -g 16"]), ["-g 1", "-g 16"]);
        let both = ["x --threads=1 run", "x --threads=16 run"];
        assert_eq!(own(&both), ["--threads=1", "--threads=16"]);
        assert_eq!(own(&["x -p -l 5 -g 1", "x -l 5 -g 1"]), ["-p", ""]);
        assert_eq!(own(&["x -g 1"]), ["x -g 1"]);
        assert_eq!(own(&["a", "b c"]), ["a", "b c"]);
    }

    #[test]
    fn long_names_are_cut_where_there_is_no_room() {
        assert_eq!(shortened(" 1  -l 250 -g 1"), " 1  -l 250 -g 1");
        assert_eq!(shortened(" 3  --pipe --thread -g 1"), " 3  --pipe --thr..");
    }
}
