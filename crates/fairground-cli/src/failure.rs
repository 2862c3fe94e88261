//! What goes wrong, and how it is reported: one message, the nearest known name, exit code 2.

use std::fmt::Display;

use fairground_report::nearest;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};

/// Why there is no result.
pub enum Failure {
    /// Not a failure: help was asked for.
    Help(String),
    /// A sentence, and perhaps what to do.
    Text {
        /// What is wrong.
        message: String,
        /// What would be right.
        help: Option<String>,
    },
    /// Said already: there are other results, and what failed was told when it was known.
    Told,
    /// Something in a file, with its place.
    File(Box<dyn Diagnostic + Send + Sync>),
}

impl Failure {
    /// A sentence.
    pub fn new(message: impl Display) -> Self {
        Self::Text {
            message: message.to_string(),
            help: None,
        }
    }

    /// A sentence, and what to do.
    pub fn with_help(message: impl Display, help: impl Into<String>) -> Self {
        Self::Text {
            message: message.to_string(),
            help: Some(help.into()),
        }
    }

    /// A name that does not exist.
    pub fn unknown<'a>(
        kind: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
        listing: &str,
    ) -> Self {
        Self::Text {
            message: format!("unknown {kind} `{name}`"),
            help: Some(unknown_help(name, known, listing)),
        }
    }

    /// The same, of a place.
    #[must_use]
    pub fn at(self, place: &str) -> Self {
        match self {
            Self::Text { message, help } => Self::Text {
                message: format!("{place}: {message}"),
                help,
            },
            other => other,
        }
    }

    /// The message as shown on standard error.
    pub fn text(&self, colour: bool) -> String {
        match self {
            Self::Help(text) => text.clone(),
            Self::Told => String::new(),
            Self::Text { message, help } => plain(message, help.as_deref()),
            Self::File(diagnostic) => excerpt(diagnostic.as_ref(), colour).unwrap_or_else(|| {
                let help = diagnostic.help().map(|h| h.to_string());
                plain(&diagnostic.to_string(), help.as_deref())
            }),
        }
    }
}

impl<D: Diagnostic + Send + Sync + 'static> From<D> for Failure {
    fn from(diagnostic: D) -> Self {
        Self::File(Box::new(diagnostic))
    }
}

/// The nearest name, or all if they are few, and where they are explained.
pub fn unknown_help<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    listing: &str,
) -> String {
    const FEW: usize = 16;
    let known: Vec<&str> = known.into_iter().collect();
    let list = format!("`fairground list {listing}`");
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? {list} shows all"),
        None if known.len() <= FEW => format!("known: {}; see {list}", known.join(", ")),
        None => format!("{list} shows all"),
    }
}

fn plain(message: &str, help: Option<&str>) -> String {
    let help = help.map_or(String::new(), |h| format!("  help: {h}\n"));
    format!("error: {message}\n{help}")
}

/// The message with the lines of the file that it is about; none if the file has no lines worth
/// showing (it is empty, or all in one long line).
fn excerpt(diagnostic: &dyn Diagnostic, colour: bool) -> Option<String> {
    const BYTES_MAX: usize = 2000;
    let label = diagnostic.labels()?.next()?;
    let code = diagnostic.source_code()?;
    let span = code.read_span(label.inner(), 1, 1).ok()?;
    if span.data().trim_ascii().is_empty() || span.data().len() > BYTES_MAX {
        return None;
    }
    let mut theme = if colour {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    // As all other errors begin, instead of a cross.
    theme.characters.error = "error:".into();
    // The terminal wraps; a message that is cut into lines cannot be searched for, and where it was
    // cut would depend on the length of the path in it.
    let handler = GraphicalReportHandler::new_themed(theme).with_wrap_lines(false);
    let mut text = String::new();
    handler.render_report(&mut text, diagnostic).ok()?;
    // Like all other errors: one line break at the end.
    Some(format!("{}\n", text.trim()))
}

#[cfg(test)]
mod tests {
    use fairground_sim::workload::nearest::nearest as in_scenarios;

    use super::*;

    #[test]
    fn an_excerpt_begins_as_all_errors_do() {
        let label = miette::LabeledSpan::at(4..7, "here");
        let report = miette::miette!(labels = vec![label], "no such word");
        let report = report.with_source_code("one two\n");
        let shown = |colour| excerpt(report.as_ref(), colour).expect("a line to show");
        let (plain, colour) = (shown(false), shown(true));
        assert!(plain.starts_with("error: no such word\n"), "{plain}");
        let mut parts = colour.split('\x1b');
        let mut without = parts.next().unwrap_or_default().to_string();
        assert_ne!(without, colour);
        without.extend(parts.filter_map(|part| Some(part.split_once('m')?.1)));
        assert_eq!(without, plain);
    }

    /// Two crates that do not know each other have the rule.
    #[test]
    fn a_name_is_like_the_same_ones_wherever_it_is_written() {
        let known = ["hackbench", "schbench", "sysbench-cpu", "netperf", "hogs"];
        for (given, like) in [
            ("hackbnech", Some("hackbench")),
            ("Sysbench", Some("sysbench-cpu")),
            ("HOGS", Some("hogs")),
            ("nt", Some("netperf")),
            ("qqq", None),
        ] {
            assert_eq!(nearest(given, known).as_deref(), like, "{given}");
            assert_eq!(in_scenarios(given, known), like, "{given}");
        }
    }
}
