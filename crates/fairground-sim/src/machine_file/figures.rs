//! Figures of a machine file, each with unit, range and source, checked as they are read.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use super::error::Text;
use super::raw::{RawFigure, RawTable, RawValue};
use super::{Figure, MachineError};
use super::{known, limits};

/// The figures of a file, by path, as they are read.
pub(super) struct Figures<'a> {
    pub t: &'a Text<'a>,
    pub sources: &'a BTreeMap<String, String>,
    pub map: BTreeMap<String, Figure>,
}

impl Figures<'_> {
    pub fn table(&mut self, name: &str, table: &RawTable) -> Result<(), MachineError> {
        table
            .iter()
            .try_for_each(|(key, f)| self.add(&format!("{name}.{key}"), f))
    }

    pub fn add(&mut self, path: &str, raw: &Spanned<RawFigure>) -> Result<(), MachineError> {
        let (f, at) = (raw.get_ref(), raw.span());
        known::check(self.t, &at, path, &f.unit)?;
        known::check_source(self.t, &at, path, &f.src, self.sources)?;
        for v in [f.lo, f.hi].into_iter().flatten() {
            check_value(self.t, &at, path, v, &f.unit)?;
        }
        let mut put = |path: String, v: f64| {
            check_value(self.t, &at, &path, v, &f.unit)?;
            if f.lo.is_some_and(|lo| lo > v) || f.hi.is_some_and(|hi| hi < v) {
                return Err(self.t.bad(
                    at.clone(),
                    format!("{path}: v outside lo..hi"),
                    "lo <= v <= hi",
                ));
            }
            let figure = Figure {
                v,
                lo: f.lo,
                hi: f.hi,
                unit: f.unit.clone(),
                conf: f.conf,
                src: f.src.clone(),
                note: f.note.clone(),
            };
            self.map.insert(path, figure);
            Ok(())
        };
        match &f.v {
            RawValue::One(v) => put(path.to_owned(), *v),
            RawValue::Many(list) if list.is_empty() || !known::may_be_list(path) => {
                let expected = match known::may_be_list(path) {
                    true => "a number, or some in a list",
                    false => "one number",
                };
                let message = format!("{path} is a list of {} numbers", list.len());
                Err(self.t.bad(at, message, expected))
            }
            RawValue::Many(list) => list
                .iter()
                .enumerate()
                .try_for_each(|(i, v)| put(format!("{path}.{i}"), *v)),
            // Words explain; only idle_note has them.
            RawValue::Words(_) if path.starts_with("idle_note.") => Ok(()),
            RawValue::Words(w) => Err(self.t.bad(at, format!("{path} is `{w}`"), "a number")),
        }
    }
}

/// Refuses a value that no machine has.
pub(super) fn check_value(
    t: &Text,
    at: &Range<usize>,
    path: &str,
    v: f64,
    unit: &str,
) -> Result<(), MachineError> {
    match limits::refused(path, unit, v) {
        None => Ok(()),
        Some(expected) => Err(t.bad(at.clone(), format!("{path} is {v}"), expected)),
    }
}
