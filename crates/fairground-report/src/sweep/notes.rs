//! What must be known of some points of a sweep before believing their numbers: each note once,
//! with the points that it is about.

use super::{Axis, Point, label};
use crate::result::Note;

/// Most points that a note names one by one.
const NAMED_MAX: usize = 4;

/// The notes of the points, in the order in which they first come. Points without any are those
/// that were refused, or need none; `run` says which of them were run.
pub(super) fn once(over: &[Axis], points: &[Point], of_points: Vec<Vec<Note>>) -> Vec<Note> {
    let mut all: Vec<(Note, Vec<usize>)> = Vec::new();
    for (i, note) in (0..)
        .zip(of_points)
        .flat_map(|(i, notes)| notes.into_iter().map(move |note| (i, note)))
    {
        match all.iter_mut().find(|(known, _)| *known == note) {
            Some((_, places)) if places.last() == Some(&i) => {}
            Some((_, places)) => places.push(i),
            None => all.push((note, vec![i])),
        }
    }
    let said = |(note, places): (Note, Vec<usize>)| match whose(over, points, &places) {
        None => note,
        Some(whose) => Note::Of {
            whose,
            note: Box::new(note),
        },
    };
    all.into_iter().map(said).collect()
}

/// The points at these places in few words; `None` for all that were run.
pub(super) fn whose(over: &[Axis], points: &[Point], places: &[usize]) -> Option<String> {
    let ran: Vec<usize> = (0..points.len())
        .filter(|&i| points[i].refused.is_none())
        .collect();
    if places == ran {
        return None;
    }
    let by_axis = over.iter().enumerate().find_map(|(at, axis)| {
        let there = |value: &&String| places.iter().any(|&i| points[i].values[at] == **value);
        let values: Vec<&String> = axis.values.iter().filter(there).collect();
        let with_them = ran
            .iter()
            .filter(|&&i| values.contains(&&points[i].values[at]));
        let few = values.len() <= NAMED_MAX;
        let said = || {
            let values: Vec<&str> = values.iter().map(|v| v.as_str()).collect();
            format!("{}={}", axis.name, values.join(","))
        };
        (few && with_them.eq(places)).then(said)
    });
    by_axis.or_else(|| {
        let named = places.iter().take(NAMED_MAX);
        let mut names: Vec<String> = named.map(|&i| label(over, &points[i].values)).collect();
        let more = places.len().saturating_sub(NAMED_MAX);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        Some(names.join("; "))
    })
}

#[cfg(test)]
mod tests {
    use super::super::products;
    use super::*;

    fn axis(name: &str, values: &[&str]) -> Axis {
        Axis {
            name: name.into(),
            values: values.iter().map(|v| (*v).into()).collect(),
            sizes: None,
        }
    }

    /// Of all points for which `has` says so, given their values.
    fn told(over: &[Axis], refused: &[usize], has: impl Fn(&[String]) -> bool) -> Vec<String> {
        let points: Vec<Point> = (0..)
            .zip(products(over))
            .map(|(i, values)| Point {
                refused: refused.contains(&i).then(String::new),
                values,
                ..Point::default()
            })
            .collect();
        let notes = points.iter().map(|point| match point.refused {
            None if has(&point.values) => vec![Note::Said("so".into()); 2],
            _ => Vec::new(),
        });
        let notes = once(over, &points, notes.collect());
        notes.into_iter().map(String::from).collect()
    }

    #[test]
    fn a_note_names_the_points_that_it_is_about_in_few_words() {
        let over = [axis("a", &["1", "2", "3"]), axis("b", &["x", "y"])];
        assert_eq!(told(&over, &[], |_| true), ["so"]);
        assert_eq!(told(&over, &[2], |_| true), ["so"], "all that were run");
        assert_eq!(told(&over, &[], |v| v[1] == "y"), ["b=y: so"]);
        assert_eq!(told(&over, &[], |v| v[0] != "1"), ["a=2,3: so"]);
        let one = |v: &[String]| v == ["2", "x"];
        assert_eq!(told(&over, &[], one), ["a=2 b=x: so"]);
        let many = |v: &[String]| v != ["2", "x"];
        let said = "a=1 b=x; a=1 b=y; a=2 b=y; a=3 b=x; 1 more: so";
        assert_eq!(told(&over, &[], many), [said]);
        assert!(told(&over, &[], |_| false).is_empty());
    }
}
