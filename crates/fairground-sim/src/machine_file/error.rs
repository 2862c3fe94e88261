//! What can be wrong with a machine description, and where it stands in the file.

use std::ops::Range;

use miette::{Diagnostic, NamedSource, SourceSpan};
use thiserror::Error;
use toml::Spanned;

/// Why a machine could not be read.
#[derive(Debug, Error, Diagnostic)]
pub enum MachineError {
    /// Neither a built-in id nor a file.
    #[error("unknown machine `{name}`")]
    #[diagnostic(help("{}", unknown_help(nearest, known)))]
    UnknownId {
        /// What was asked for.
        name: String,
        /// The built-in id with the smallest edit distance, if any is near.
        nearest: Option<String>,
        /// All built-in ids.
        known: String,
    },
    /// The file could not be read.
    #[error("cannot read machine file `{path}`: {source}")]
    Io {
        /// Path as given.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file without content.
    #[error("machine file `{path}` is empty")]
    #[diagnostic(help("expected a TOML machine description (schema = 1) or `lstopo --of xml`"))]
    Empty {
        /// Path as given.
        path: String,
    },
    /// A file over the size limit.
    #[error("machine file `{path}` has more than the limit of {limit} bytes")]
    TooLarge {
        /// Path as given.
        path: String,
        /// Size allowed.
        limit: u64,
    },
    /// Something in the file is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Bad(Box<BadFile>),
    /// The places of its CPUs contradict each other.
    #[error("machine file `{path}`: {source}")]
    Places {
        /// Path as given.
        path: String,
        /// Which.
        source: fairground::topology::TopologyError,
    },
    /// A request that this machine cannot satisfy (`shrunk`, `with_figure`).
    #[error("machine `{id}`: {message}")]
    #[diagnostic(help("expected {expected}"))]
    Request {
        /// Machine id.
        id: String,
        /// What is wrong.
        message: String,
        /// What would be accepted.
        expected: String,
    },
}

/// A complaint with its place in the file.
#[derive(Debug, Error, Diagnostic)]
#[error("{path}:{line}: {message}")]
#[diagnostic(help("expected {expected}"))]
pub struct BadFile {
    /// Path as given.
    pub path: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What should stand there.
    pub expected: String,
    /// The text, for the printed excerpt.
    #[source_code]
    pub text: NamedSource<String>,
    /// The place in the text.
    #[label("here")]
    pub span: SourceSpan,
}

fn unknown_help(nearest: &Option<String>, known: &str) -> String {
    match nearest {
        Some(n) => {
            format!("did you mean `{n}`? Known: {known}; or the path of a .toml or .xml file")
        }
        None => format!("known: {known}; or the path of a .toml or .xml file"),
    }
}

/// A text under inspection: makes a [`BadFile`] with line and excerpt.
pub(super) struct Text<'a> {
    pub path: &'a str,
    pub text: &'a str,
}

impl Text<'_> {
    /// Refuses a name that could not be seen, or would do something to a terminal.
    ///
    /// # Errors
    /// With what is expected instead.
    pub fn name(
        &self,
        name: &Spanned<String>,
        key: &str,
        expected: &str,
    ) -> Result<(), MachineError> {
        let text = name.get_ref();
        if text.trim().is_empty() {
            return Err(self.bad(name.span(), format!("{key} is empty"), expected));
        }
        if text.chars().any(char::is_control) {
            let message = format!("{key} has control characters");
            return Err(self.bad(name.span(), message, expected));
        }
        Ok(())
    }

    pub fn bad(
        &self,
        at: Range<usize>,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) -> MachineError {
        let start = at.start.min(self.text.len());
        let line = 1 + self.text.as_bytes()[..start]
            .iter()
            .filter(|b| **b == b'\n')
            .count();
        MachineError::Bad(Box::new(BadFile {
            path: self.path.to_owned(),
            line,
            message: message.into(),
            expected: expected.into(),
            text: NamedSource::new(self.path, self.text.to_owned()),
            span: (start..at.end.clamp(start, self.text.len())).into(),
        }))
    }
}
