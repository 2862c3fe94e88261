//! JSON into the tree of [`super::node`]: with places, and with keys in the order of the file,
//! because rt-app runs the events of a phase in that order. The grammar is RFC 8259, and what
//! rt-app's files have beyond it: comments, a comma before the end, a key twice, a key alone.
//! Numbers are checked by Rust's own parsers.
use super::error::{Error, Source};
use super::node::{Key, Node, Value};
use core::ops::Range;

/// Deepest nesting that is read.
const DEPTH_MAX: u32 = 64;

/// Reads a JSON document.
///
/// # Errors
/// The text is no JSON, or nests too deep.
pub fn from_json(source: &Source) -> Result<Node, Error> {
    const BOM: char = '\u{feff}';
    let mut reader = Reader {
        source,
        text: source.text(),
        at: 0,
    };
    // Some editors begin a file so; TOML allows it, too.
    if reader.text.starts_with(BOM) {
        reader.at = BOM.len_utf8();
    }
    let node = reader.value(0)?;
    reader.skip();
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.fail("the end of the file")),
    }
}

struct Reader<'a> {
    source: &'a Source,
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: u32) -> Result<Node, Error> {
        self.skip();
        let start = self.at;
        if depth > DEPTH_MAX {
            return Err(self.fail(&format!("at most {DEPTH_MAX} levels of nesting")));
        }
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Value::Str(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node {
            span: start..self.at,
            value,
        })
    }

    fn object(&mut self, depth: u32) -> Result<Value, Error> {
        self.at += 1;
        let mut entries: Vec<(Key, Node)> = Vec::new();
        self.skip();
        if self.take(b'}') {
            return Ok(Value::Table(entries));
        }
        loop {
            self.skip();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.fail("a key in quotes"));
            }
            let key = Key {
                name: self.string()?,
                span: start..self.at,
            };
            self.skip();
            let value = match self.peek() {
                Some(b',' | b'}') => Node {
                    span: key.span.clone(),
                    value: Value::Nothing,
                },
                _ if self.take(b':') => self.value(depth + 1)?,
                _ => return Err(self.fail("':'")),
            };
            entries.push((key, value));
            self.skip();
            let more = self.take(b',');
            self.skip();
            if self.take(b'}') {
                return Ok(Value::Table(entries));
            }
            if !more {
                return Err(self.fail("',' or '}'"));
            }
        }
    }

    fn array(&mut self, depth: u32) -> Result<Value, Error> {
        self.at += 1;
        let mut values = Vec::new();
        self.skip();
        if self.take(b']') {
            return Ok(Value::Array(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            self.skip();
            let more = self.take(b',');
            self.skip();
            if self.take(b']') {
                return Ok(Value::Array(values));
            }
            if !more {
                return Err(self.fail("',' or ']'"));
            }
        }
    }

    /// Finds the end of a string and lets serde_json resolve its escapes.
    fn string(&mut self) -> Result<String, Error> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err(self.source.error(start..start + 1, "a text without an end")),
            }
        }
        self.at += 1;
        let quoted = self.text.get(start..self.at).unwrap_or_default();
        let bad = |_| {
            self.source
                .error(start..self.at, "a text with a wrong escape")
        };
        serde_json::from_str(quoted).map_err(bad)
    }

    fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        while matches!(
            self.peek(),
            Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
        ) {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        if let Ok(integer) = text.parse() {
            return Ok(Value::Int(integer));
        }
        let fraction = |_: f64| Value::Other("a number that is no integer");
        let bad = |_| {
            self.source
                .error(start..self.at, format!("'{text}' is no number"))
        };
        text.parse().map(fraction).map_err(bad)
    }

    fn word(&mut self) -> Result<Value, Error> {
        let words = [
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("null", Value::Other("null")),
        ];
        for (word, value) in words {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.fail("a value"))
    }

    fn skip(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let skipped = if let Some(comment) = rest.strip_prefix("/*") {
                // What has no end is told as what is found instead of the next thing.
                comment.find("*/").map_or(0, |end| end + 4)
            } else if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else {
                rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len()
            };
            if skipped == 0 {
                return;
            }
            self.at += skipped;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn fail(&self, expected: &str) -> Error {
        let span: Range<usize> = self.at..self.at + 1;
        if self.text[self.at..].starts_with("/*") {
            return self.source.error(span, "a comment without an end");
        }
        match self.text.get(self.at..).and_then(|t| t.chars().next()) {
            Some(c) => self
                .source
                .error(span, format!("expected {expected}, found {c:?}")),
            None => self.source.error(
                span,
                format!("expected {expected}, found the end of the file"),
            ),
        }
    }
}
