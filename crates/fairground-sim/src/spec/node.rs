//! A file as a tree of values that know where they stand, from TOML or JSON, and [`Fields`], which
//! reads a table: unknown keys, wrong types and values out of range become errors with a place.
use super::error::{Error, Source};
use crate::workload::duration::{parse_dur, parse_ns};
use crate::workload::nearest::nearest;
use crate::workload::program::{Dur, Ns};
use crate::workload::size::parse_bytes;
use core::ops::{Range, RangeInclusive};
use toml::de::{DeTable, DeValue};

/// A value and its place in the file.
#[derive(Clone, Debug)]
pub struct Node {
    /// Byte offsets.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// Keys in the order of the file.
    Table(Vec<(Key, Node)>),
    /// Values in order.
    Array(Vec<Node>),
    /// A text.
    Str(String),
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// None: a key of JSON stands alone.
    Nothing,
    /// Something that is never right here, with its name.
    Other(&'static str),
}

/// A key and its place.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key.
    pub name: String,
    /// Byte offsets.
    pub span: Range<usize>,
}

/// Reads a TOML document.
///
/// # Errors
/// The text is no TOML.
pub fn from_toml(source: &Source) -> Result<Node, Error> {
    let document = DeTable::parse(source.text()).map_err(|e| {
        let message = e.message().lines().collect::<Vec<_>>().join("; ");
        source.error(e.span().unwrap_or(0..0), message)
    })?;
    let span = document.span();
    Ok(table(span, document.get_ref()))
}

fn table(span: Range<usize>, table: &DeTable<'_>) -> Node {
    let entry = |(k, v): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let k: &toml::Spanned<std::borrow::Cow<'_, str>> = k;
        let key = Key {
            name: k.get_ref().clone().into_owned(),
            span: k.span(),
        };
        (key, value(v.span(), v.get_ref()))
    };
    let mut entries: Vec<(Key, Node)> = table.iter().map(entry).collect();
    entries.sort_by_key(|(k, _)| k.span.start);
    Node {
        span,
        value: Value::Table(entries),
    }
}

fn value(span: Range<usize>, from: &DeValue<'_>) -> Node {
    let value = match from {
        DeValue::Table(t) => return table(span, t),
        DeValue::Array(a) => Value::Array(a.iter().map(|v| value(v.span(), v.get_ref())).collect()),
        DeValue::String(s) => Value::Str(s.clone().into_owned()),
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
            Ok(i) => Value::Int(i),
            Err(_) => Value::Other("an integer that is too large"),
        },
        DeValue::Float(_) => Value::Other("a number that is no integer"),
        DeValue::Datetime(_) => Value::Other("a date"),
    };
    Node { span, value }
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Table(_) => "a table",
            Self::Array(_) => "a list",
            Self::Str(_) => "a text",
            Self::Int(_) => "an integer",
            Self::Bool(_) => "true or false",
            Self::Nothing => "nothing",
            Self::Other(what) => what,
        }
    }
}

impl Key {
    /// Refuses a key that names something if it is empty or cannot be shown on a terminal.
    pub fn check_name(&self, source: &Source, what: &str) -> Result<(), Error> {
        let message = if self.name.trim().is_empty() {
            format!("the name of {what} is empty")
        } else if self.name.chars().any(char::is_control) {
            format!("expected the name of {what}, without control characters")
        } else {
            return Ok(());
        };
        Err(source.error(self.span.clone(), message))
    }
}

/// Typed readers of single values.
impl Node {
    /// The error of a value of another type than `expected`.
    pub fn mismatch(&self, source: &Source, expected: &str) -> Error {
        let found = self.value.kind();
        source.error(
            self.span.clone(),
            format!("expected {expected}, found {found}"),
        )
    }

    /// The value as it stands in the file, without quotes.
    pub fn raw<'a>(&self, source: &'a Source) -> &'a str {
        let raw = source.text().get(self.span.clone()).unwrap_or_default();
        raw.trim_matches(|c| c == '"' || c == '\'')
    }

    /// A text, which can be shown on a terminal.
    pub fn str(&self, source: &Source, expected: &str) -> Result<&str, Error> {
        match &self.value {
            Value::Str(s) if s.chars().any(char::is_control) => {
                let message = format!("expected {expected}, without control characters");
                Err(source.error(self.span.clone(), message))
            }
            Value::Str(s) => Ok(s),
            _ => Err(self.mismatch(source, expected)),
        }
    }

    /// The name of something, which is not empty.
    pub fn name(&self, source: &Source, expected: &str) -> Result<&str, Error> {
        match self.str(source, expected)? {
            name if name.trim().is_empty() => {
                let message = format!("expected {expected}, found an empty one");
                Err(source.error(self.span.clone(), message))
            }
            name => Ok(name),
        }
    }

    /// An integer in a range.
    pub fn int(&self, source: &Source, range: RangeInclusive<i64>) -> Result<i64, Error> {
        let expected = format!("an integer from {} to {}", range.start(), range.end());
        match self.value {
            Value::Int(i) if range.contains(&i) => Ok(i),
            Value::Int(i) => Err(source.error(
                self.span.clone(),
                format!("{i} is out of range; expected {expected}"),
            )),
            _ => Err(self.mismatch(source, &expected)),
        }
    }

    /// A truth value; 0 and 1 too, as the kernel's files have them.
    pub fn bool(&self, source: &Source) -> Result<bool, Error> {
        match self.value {
            Value::Bool(b) => Ok(b),
            Value::Int(i @ 0..=1) => Ok(i == 1),
            Value::Int(i) => {
                let message = format!("{i} is out of range; expected true, false, 0 or 1");
                Err(source.error(self.span.clone(), message))
            }
            _ => Err(self.mismatch(source, "true or false")),
        }
    }

    /// A list.
    pub fn array(&self, source: &Source, expected: &str) -> Result<&[Node], Error> {
        match &self.value {
            Value::Array(a) => Ok(a),
            _ => Err(self.mismatch(source, expected)),
        }
    }

    /// The entries of a table.
    pub fn table(&self, source: &Source, expected: &str) -> Result<&[(Key, Node)], Error> {
        match &self.value {
            Value::Table(t) => Ok(t),
            _ => Err(self.mismatch(source, expected)),
        }
    }

    /// A constant duration.
    pub fn ns(&self, source: &Source) -> Result<Ns, Error> {
        let text = self.str(source, "a duration like \"20us\"")?;
        parse_ns(text).map_err(|e| source.error(self.span.clone(), e))
    }

    /// A constant duration above zero.
    pub fn positive_ns(&self, source: &Source) -> Result<Ns, Error> {
        match self.ns(source)? {
            0 => Err(source.error(self.span.clone(), "expected a duration above 0")),
            ns => Ok(ns),
        }
    }

    /// A size of memory.
    pub fn bytes(&self, source: &Source) -> Result<u64, Error> {
        let text = self.str(source, "a size like \"256KiB\"")?;
        parse_bytes(text).map_err(|e| source.error(self.span.clone(), e))
    }

    /// A duration or a distribution.
    pub fn dur(&self, source: &Source) -> Result<Dur, Error> {
        let text = self.str(source, "a duration like \"20us\" or \"exp 1ms\"")?;
        parse_dur(text).map_err(|e| source.error(self.span.clone(), e))
    }

    /// Whether it is the second of two words, not the first.
    pub fn is_second(&self, source: &Source, what: &str, words: [&str; 2]) -> Result<bool, Error> {
        let word = self.str(source, "a word")?;
        let found = words.iter().position(|known| *known == word);
        let found = found.ok_or_else(|| unknown_name(source, &self.span, what, word, words))?;
        Ok(found == 1)
    }

    /// One that is not always 0.
    pub fn positive_dur(&self, source: &Source) -> Result<Dur, Error> {
        let dur = self.dur(source)?;
        match dur.is_zero() {
            true => Err(source.error(self.span.clone(), "expected a duration above 0")),
            false => Ok(dur),
        }
    }
}

/// A table whose keys are all known.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    /// For errors.
    pub source: &'a Source,
    /// The table's place.
    pub node: &'a Node,
    entries: &'a [(Key, Node)],
}

impl<'a> Fields<'a> {
    /// Opens a table; `what` names it in messages ("a task").
    ///
    /// # Errors
    /// It is no table or has a key that is not in `known`.
    pub fn open(
        source: &'a Source,
        node: &'a Node,
        what: &str,
        known: &[&str],
    ) -> Result<Self, Error> {
        let entries = node.table(source, &format!("{what} (a table)"))?;
        for (key, _) in entries {
            if !known.contains(&key.name.as_str()) {
                return Err(unknown_key(source, key, what, known));
            }
        }
        Ok(Self {
            source,
            node,
            entries,
        })
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries
            .iter()
            .find(|(k, _)| k.name == key)
            .map(|(_, v)| v)
    }

    /// The value of a key that must be there.
    pub fn need(&self, key: &str, what: &str) -> Result<&'a Node, Error> {
        let missing = || {
            self.source
                .error(self.node.span.clone(), format!("{what} needs '{key}'"))
        };
        self.get(key).ok_or_else(missing)
    }
}

/// Files of the older interface, and what says the same now.
const V1_FILES: [(&str, &str); 3] = [
    ("cpu.cfs_quota_us", "'cpu.max': \"QUOTA PERIOD\""),
    ("cpu.cfs_period_us", "'cpu.max': \"QUOTA PERIOD\""),
    ("cpu.cfs_burst_us", "'cpu.max.burst'"),
];

fn unknown_key(source: &Source, key: &Key, what: &str, known: &[&str]) -> Error {
    let message = format!(
        "unknown key '{}' in {what}; expected one of {}",
        key.name,
        known.join(", ")
    );
    let dotted = ["cpu", "cpuset"].contains(&key.name.as_str())
        && known.iter().any(|k| k.starts_with("cpu."));
    let of_v2 = V1_FILES.iter().find(|(v1, _)| *v1 == key.name);
    let help = if dotted {
        Some("write the kernel's file names in quotes: \"cpu.weight\" = 100".to_owned())
    } else if let Some((_, v2)) = of_v2.filter(|_| known.contains(&"cpu.max")) {
        Some(format!("that is a file of cgroup v1; expected {v2}"))
    } else {
        nearest(&key.name, known.iter().copied()).map(|n| format!("did you mean '{n}'?"))
    };
    source.error(key.span.clone(), message).help(help)
}

/// The error for a name that nothing has.
pub fn unknown_name<'k>(
    source: &Source,
    span: &Range<usize>,
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> Error {
    let all: Vec<&str> = known.clone().into_iter().take(20).collect();
    let declared = if all.is_empty() {
        "none is declared".into()
    } else {
        all.join(", ")
    };
    let help = nearest(name, known).map(|n| format!("did you mean '{n}'?"));
    let message = format!("unknown {what} '{name}'; known: {declared}");
    source.error(span.clone(), message).help(help)
}

/// The tables `[[key]]`; none if it is not there.
pub(super) fn tables<'a>(top: &Fields<'a>, key: &str) -> Result<&'a [Node], Error> {
    let what = format!("tables written as [[{key}]]");
    top.get(key).map_or(Ok(&[]), |n| n.array(top.source, &what))
}
