//! Every switch as a named value, with the values it takes.

use super::{Features, table::DECISIONS};
use alloc::string::{String, ToString};
use core::fmt;

/// One decision point as a named value.
#[derive(Debug)]
pub struct Decision {
    /// Name for `--set NAME=VALUE`.
    pub name: &'static str,
    /// What it decides.
    pub what: &'static str,
    /// The values it takes, for messages.
    pub values: &'static str,
    /// Reads it.
    pub get: fn(&Features) -> String,
    /// Sets it; false if the value is not one of `values`.
    pub set: fn(&mut Features, &str) -> bool,
}

/// Why a setting was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetError {
    /// No decision has this name.
    UnknownDecision(String),
    /// The decision does not take this value.
    BadValue {
        /// The decision.
        decision: &'static str,
        /// The value given.
        value: String,
        /// The values it takes.
        values: &'static str,
    },
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownDecision(name) => write!(f, "no decision is called `{name}`"),
            Self::BadValue {
                decision,
                value,
                values,
            } => write!(f, "`{decision}` cannot be `{value}`; it takes {values}"),
        }
    }
}

impl core::error::Error for SetError {}

impl Features {
    /// Sets one decision by name.
    ///
    /// # Errors
    /// When the name or the value is unknown.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SetError> {
        let decision = decisions()
            .iter()
            .find(|d| d.name == name)
            .ok_or_else(|| SetError::UnknownDecision(name.to_string()))?;
        if (decision.set)(self, value) {
            return Ok(());
        }
        Err(SetError::BadValue {
            decision: decision.name,
            value: value.to_string(),
            values: decision.values,
        })
    }

    /// Sets decisions by name, in order.
    ///
    /// # Errors
    /// The first name or value that is unknown; what comes before it is set.
    pub fn set_all(&mut self, pairs: &[(&str, &str)]) -> Result<(), SetError> {
        pairs
            .iter()
            .try_for_each(|(name, value)| self.set(name, value))
    }

    /// Whether each decision has a value that it takes: fields can be set to others.
    ///
    /// # Errors
    /// The first that has not.
    pub fn check(&self) -> Result<(), SetError> {
        let mut same = self.clone();
        decisions()
            .iter()
            .try_for_each(|d| same.set(d.name, &(d.get)(self)))
    }
}

/// All decision points by name.
#[must_use]
pub fn decisions() -> &'static [Decision] {
    &DECISIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decision_reads_back_its_default() {
        let mut f = Features::default();
        for d in decisions() {
            let value = (d.get)(&f);
            assert!((d.set)(&mut f, &value), "{} = {value}", d.name);
        }
        assert_eq!(f, Features::default());
    }

    #[test]
    fn what_a_decision_does_not_take_is_refused_with_what_it_takes() {
        let mut f = Features::default();
        let refused = f.set_all(&[("hz", "250"), ("hz", "0"), ("pick", "cfs")]);
        let text = refused.map_err(|e| e.to_string());
        assert_eq!(
            text,
            Err("`hz` cannot be `0`; it takes 100, 250, 300, 1000".to_string())
        );
        assert_eq!((f.hz, f.check()), (250, Ok(())));
        let unknown = f.set("pik", "cfs").map_err(|e| e.to_string());
        assert_eq!(unknown, Err("no decision is called `pik`".to_string()));
        f.hz = 0;
        assert!(f.check().is_err());
    }
}
