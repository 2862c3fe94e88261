//! Tables of a replay: how faithful it is, and what-if.

use super::head::labelled;
use super::legend::EACH_ALONE;
use super::table::{Align, render};
use crate::number::{change, interval, number};
use crate::replay::{EarlyWork, FidelityVerdict, ReplayFidelity};
use crate::replay_compare::WhatIfRow;
use crate::result::Verdict;

/// How far the replay is from the recording, by quantity, each with its verdict.
pub fn fidelity_text(fidelity: &ReplayFidelity, seeds: usize) -> String {
    const HEADER: [&str; 6] = [
        "fidelity",
        "limit",
        "off",
        "verdict",
        "seeds",
        "furthest off",
    ];
    let rows: Vec<Vec<String>> = fidelity
        .verdicts
        .iter()
        .map(|v| fidelity_row(v, seeds))
        .collect();
    let mut align = [Align::Left; HEADER.len()];
    (align[1], align[2]) = (Align::Right, Align::Right);
    render(&HEADER, &rows, &align)
}

fn fidelity_row(v: &FidelityVerdict, seeds: usize) -> Vec<String> {
    let off = match (v.off, v.replayed) {
        (Some(off), _) => format!("{}{}", signed(off), v.unit_sign()),
        // The recording has none of it.
        (None, Some(_)) => "-".into(),
        (None, None) => String::new(),
    };
    let met = v.met.map(|_| format!("{} of {seeds}", v.seeds_met));
    vec![
        v.label.clone(),
        format!("{}{}", v.limit, v.unit_sign()),
        off,
        v.word().into(),
        met.unwrap_or_default(),
        v.why_not
            .clone()
            .or_else(|| v.of.clone())
            .unwrap_or_default(),
    ]
}

/// With its sign, unless it is shown as zero.
fn signed(x: f64) -> String {
    match format!("{x:+.1}") {
        text if text[1..] == *"0.0" => "0.0".into(),
        text => text,
    }
}

/// In front of a what-if: whether the replay at home is good enough to believe it, and whether the
/// what-if does work `early`, which that says nothing about.
pub fn faithful_text(fidelity: &ReplayFidelity, early: &[EarlyWork]) -> String {
    let words = |met: Option<bool>| -> Vec<&str> {
        let some = fidelity.verdicts.iter().filter(|v| v.met == met);
        some.map(|v| v.plain()).collect()
    };
    let (met, missed, unknown) = (words(Some(true)), words(Some(false)), words(None));
    let given = met.len() + missed.len();
    let unknown = match unknown[..] {
        [] => String::new(),
        _ => format!("; no verdict on: {}", unknown.join(", ")),
    };
    let groups: Vec<&str> = early.iter().map(|e| &*e.group).collect();
    let ahead = match groups[..] {
        [] => String::new(),
        _ => format!(
            "it does work of {} before that may have come, so take its figures of {} as the bounds \
             that the note below the table says",
            groups.join(", "),
            if groups.len() == 1 {
                "that group"
            } else {
                "these groups"
            }
        ),
    };
    match missed[..] {
        [] if !early.is_empty() => labelled(
            "warning",
            &format!(
                "at home the replay meets all {given} limits, but this what-if is not to be \
                 believed as far as these go: {ahead}{unknown}"
            ),
        ),
        [] => labelled(
            "faithful",
            &format!(
                "at home the replay meets all {given} limits, so this what-if may be believed as \
                 far as these go{unknown}"
            ),
        ),
        _ => labelled(
            "warning",
            &format!(
                "at home the replay misses {} of {given} limits: {}; do not believe what this \
                 what-if says of them{}{unknown}",
                missed.len(),
                missed.join(", "),
                match early {
                    [] => String::new(),
                    _ => format!("; and {ahead}"),
                }
            ),
        ),
    }
}

/// The what-if beside the replay.
pub fn what_if_text(rows: &[&WhatIfRow]) -> String {
    const HEADER: [&str; 6] = [
        "",
        "replayed",
        "what if",
        "change",
        "95 % CI (%)",
        "verdict",
    ];
    let body: Vec<Vec<String>> = rows.iter().map(|row| what_if_row(row)).collect();
    let mut align = [Align::Right; HEADER.len()];
    (align[0], align[5]) = (Align::Left, Align::Left);
    render(&HEADER, &body, &align) + &legend(rows)
}

fn what_if_row(row: &WhatIfRow) -> Vec<String> {
    let c = &row.comparison;
    let bound = |text: String, at_least: bool| match at_least && text != "-" {
        true => format!("> {text}"),
        false => text,
    };
    vec![
        row.label.clone(),
        bound(number(c.base), row.at_least[0]),
        bound(number(c.patch), row.at_least[1]),
        bound(change(c.change_pct), row.at_least[1]),
        interval(c.ci95_pct).unwrap_or("-".into()),
        row.word(),
    ]
}

/// What the words of the table mean, where they need it.
fn legend(rows: &[&WhatIfRow]) -> String {
    let mut text = String::new();
    let any = |f: &dyn Fn(&WhatIfRow) -> bool| rows.iter().any(|row| f(row));
    if any(&|r| r.comparison.ci95_pct[0].is_some()) {
        text += &labelled("", EACH_ALONE);
    }
    if any(&|r| r.comparison.differs && r.comparison.verdict == Verdict::Noise) {
        let words = "differs: the interval excludes 0, but neither direction is better";
        text += &labelled("", words);
    }
    if any(&|r| r.is_doubtful()) {
        let words = "?: at home the replay is off by more than its limit in this, so do not \
                     believe it here";
        text += &labelled("", words);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(quantity: &str, off: Option<f64>, met: Option<bool>) -> FidelityVerdict {
        FidelityVerdict {
            quantity: quantity.into(),
            label: quantity.into(),
            limit: 5.0,
            unit: "%".into(),
            recorded: Some(1.0),
            replayed: Some(2.0),
            off,
            of: Some("hog (7)".into()),
            met,
            why_not: None,
            seeds_met: 2,
        }
    }

    #[test]
    fn a_replay_is_faithful_if_it_misses_nothing_and_says_what_it_cannot_judge() {
        let good = ReplayFidelity::new(vec![
            verdict("elapsed", Some(-0.04), Some(true)),
            verdict("switches", None, None),
        ]);
        assert!(good.faithful);
        let text = faithful_text(&good, &[]);
        assert!(
            text.starts_with("faithful  at home the replay meets all 1 limits"),
            "{text}"
        );
        assert!(text.contains("no verdict on: switches"), "{text}");
        let table = fidelity_text(&good, 3);
        assert!(
            table.contains("0.0 %  met") && table.contains("2 of 3"),
            "{table}"
        );
        let bad = ReplayFidelity::new(vec![
            verdict("elapsed", Some(12.0), Some(false)),
            verdict("switches", Some(1.0), Some(true)),
        ]);
        assert!(!bad.faithful);
        let text = faithful_text(&bad, &[]);
        assert!(text.starts_with("warning   at home the replay misses 1 of 2 limits: elapsed"));
        assert!(
            !ReplayFidelity::new(Vec::new()).faithful,
            "nothing was judged"
        );
    }

    #[test]
    fn a_what_if_that_does_work_before_it_came_is_not_to_be_believed_as_it_is() {
        let early = [EarlyWork {
            group: "/api".into(),
            computed_ms: 1500.0,
            early_ms: 700.0,
            most_ms: 400.0,
        }];
        let good = ReplayFidelity::new(vec![verdict("elapsed", Some(0.0), Some(true))]);
        let text = faithful_text(&good, &early);
        assert!(
            text.starts_with("warning   at home the replay meets all 1 limits, but"),
            "{text}"
        );
        assert!(
            text.contains("/api") && !text.contains("may be believed"),
            "{text}"
        );
        let bad = ReplayFidelity::new(vec![verdict("elapsed", Some(9.0), Some(false))]);
        let text = faithful_text(&bad, &early);
        assert!(
            text.contains("misses 1 of 1") && text.contains("/api"),
            "{text}"
        );
    }
}
