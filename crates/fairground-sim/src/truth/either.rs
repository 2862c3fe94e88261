//! Values of a `case.json` that may be of one kind or another, so that a refusal says what was
//! found and what all of them are.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

use super::case::{Flag, Shares, Value};

impl<'de> Deserialize<'de> for Shares {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let expected = "a whole number of at least 0, or words that begin with \"idle\"";
        one_of(from, expected, |found| match found {
            Json::Number(n) => n.as_u64().map(Self::Number),
            Json::String(words) => words.starts_with("idle").then(|| Self::Idle(words.clone())),
            _ => None,
        })
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        one_of(from, "true, false, 0 or 1", |found| match found {
            Json::Bool(b) => Some(Self::Bool(*b)),
            Json::Number(n) => Some(Self::Number(u8::try_from(n.as_u64()?).ok()?)),
            _ => None,
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        one_of(from, "a whole number or text", |found| match found {
            Json::Number(n) => n.as_i64().map(Self::Number),
            Json::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        })
    }
}

/// What `read` makes of it.
fn one_of<'de, D: Deserializer<'de>, T>(
    from: D,
    expected: &str,
    read: impl Fn(&Json) -> Option<T>,
) -> Result<T, D::Error> {
    let found = Json::deserialize(from)?;
    read(&found).ok_or_else(|| D::Error::custom(format!("{found}, expected {expected}")))
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;

    #[test]
    fn a_refusal_says_what_was_found_and_what_is_expected() {
        let case = |group: &str, value: &str| {
            Case::parse(&format!(
                r#"{{"format":"kernel-truth/1","name":"n","kind":"k","what":"w",
"machine":{{"cpus":2}},"duration_us":4000,"cgroups":[{{"path":"/a",{group}}}],
"events":[{{"at_us":0,"cgroup":"/a","file":"cpu.shares","value":{value}}}],
"tasks":[{{"name":"t","program":[{{"hog":true}}]}}]}}"#
            ))
        };
        for group in [
            r#""shares":0"#,
            r#""shares":"idle (SCHED_IDLE)""#,
            r#""shares":null"#,
            r#""idle":true"#,
            r#""idle":1"#,
        ] {
            assert!(case(group, "7").is_ok(), "{group}");
        }
        assert!(case(r#""idle":0"#, "\"max 1000\"").is_ok());
        for (group, value, path, found) in [
            (r#""shares":-1"#, "7", "cgroups[0].shares", "-1"),
            (r#""shares":"few""#, "7", "cgroups[0].shares", "\"few\""),
            (r#""idle":"no""#, "7", "cgroups[0].idle", "\"no\""),
            (r#""idle":0"#, "1.5", "events[0].value", "1.5"),
            (r#""idle":0"#, "[1]", "events[0].value", "[1]"),
        ] {
            let error = case(group, value).expect_err(found);
            let start = format!("{path}: {found}, expected ");
            assert!(
                error.starts_with(&start) && error.contains("line"),
                "{error}"
            );
        }
    }
}
