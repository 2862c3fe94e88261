//! Every switch as a named value, with the values it takes.

use super::{Features, table::DECISIONS};
use alloc::string::{String, ToString};

/// One decision point as a named value.
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

    /// Sets a row of pairs, which the tests know to be valid.
    pub fn set_all(&mut self, pairs: &[(&str, &str)]) {
        for (name, value) in pairs {
            let done = self.set(name, value);
            debug_assert!(done.is_ok(), "catalogue rows are valid: {done:?}");
        }
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
}
