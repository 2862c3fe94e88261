//! What is wrong with a file, and where. Renders as one line (`Display`) or, through `miette`, with
//! the source.
use core::fmt;
use core::ops::Range;
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode, SourceSpan};
use std::sync::Arc;

/// The text of a file and its name, for messages.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: Arc<str>,
    named: NamedSource<Arc<str>>,
}

/// The first thing that is wrong with a file.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    message: String,
    help: Option<String>,
    span: Range<usize>,
    line: usize,
    source: Source,
}

impl Source {
    /// A file's name as shown in messages, and its text.
    pub fn new(name: &str, text: &str) -> Self {
        let text: Arc<str> = text.into();
        Self {
            name: name.to_owned(),
            named: NamedSource::new(name, text.clone()),
            text,
        }
    }

    /// An error at `span` (byte offsets; what is out of range or inside a character is moved).
    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> Error {
        let on_boundary = |mut at: usize| {
            at = at.min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = on_boundary(span.start);
        let end = on_boundary(span.end).max(start);
        let line = self.text[..start].matches('\n').count() + 1;
        let source = self.clone();
        let message = message.into();
        Error(Box::new(Inner {
            message,
            help: None,
            span: start..end,
            line,
            source,
        }))
    }

    /// An error of a file that has no text, and so no lines.
    pub fn unread(&self, message: impl Into<String>) -> Error {
        let Error(inner) = self.error(0..0, message);
        Error(Box::new(Inner { line: 0, ..*inner }))
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Error {
    /// Adds a hint, such as the nearest known name.
    #[must_use]
    pub fn help(mut self, help: Option<impl Into<String>>) -> Self {
        self.0.help = help.map(Into::into);
        self
    }

    /// Line of the file, from 1; 0: it could not be read.
    pub fn line(&self) -> usize {
        self.0.line
    }

    /// What is wrong and what was expected, without file and line.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.0.source.name)?;
        if self.0.line > 0 {
            write!(f, "{}:", self.0.line)?;
        }
        write!(f, " {}", self.0.message)?;
        match &self.0.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Error {}

impl Diagnostic for Error {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.0.source.named)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = SourceSpan::from(self.0.span.clone());
        Some(Box::new(core::iter::once(LabeledSpan::new_with_span(
            None, span,
        ))))
    }
}
