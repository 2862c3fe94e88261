//! A number with its origin.

use serde::Deserialize;

/// How far a figure can be trusted, in falling order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Conf {
    /// Measured on that part, or on one of the same silicon named in the note.
    Measured,
    /// Specification, or a table of the kernel.
    Vendor,
    /// Arithmetic on measured figures, given in the note.
    Derived,
    /// Widely published, not checked again.
    Recalled,
    /// No measurement found.
    Estimate,
}

impl Conf {
    /// The word used in machine files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Vendor => "vendor",
            Self::Derived => "derived",
            Self::Recalled => "recalled",
            Self::Estimate => "estimate",
        }
    }
}

/// One figure of a machine file.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The value to use, in `unit`.
    pub v: f64,
    /// Low end of the measured or plausible range.
    pub lo: Option<f64>,
    /// High end of the range.
    pub hi: Option<f64>,
    /// `ns`, `us`, `cycles`, `ratio`, ...
    pub unit: String,
    /// Trust.
    pub conf: Conf,
    /// Keys into [`Machine::sources`](super::Machine::sources), joined by `+`.
    pub src: String,
    /// Conditions and arithmetic, in words.
    pub note: String,
}

impl Figure {
    pub(super) fn made(v: f64, unit: &str, conf: Conf, note: &str) -> Self {
        Self {
            v,
            lo: None,
            hi: None,
            unit: unit.into(),
            conf,
            src: conf.as_str().into(),
            note: note.into(),
        }
    }
}
