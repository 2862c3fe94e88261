//! Reading results back.

use serde::de::DeserializeOwned;

use crate::catalogue::nearest;
use crate::result::{Compare, RunResult, Setup, Variant};

/// A result that was written with `--json`.
#[derive(Clone, Debug, PartialEq)]
pub enum Saved {
    /// Of `fairground run`.
    Run(RunResult),
    /// Of `fairground compare`.
    Compare(Compare),
}

/// Why a file is not a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Not JSON at all.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// JSON that was not written to its end.
    #[error("cut off: the JSON ends at line {line}, column {column}, before it is whole")]
    CutOff {
        /// Line of the end.
        line: usize,
        /// Column of the end.
        column: usize,
    },
    /// JSON of another tool.
    #[error("JSON, but no result of fairground: expected {expected}; found {found}")]
    OfAnotherTool {
        /// The keys that every result has.
        expected: String,
        /// What is there, with the name that was perhaps meant.
        found: String,
    },
    /// The result of a command that compares nothing with anything saved.
    #[error("expected a result of `run` or of `compare` in one place; this is one of {0}")]
    AnotherResult(&'static str),
    /// JSON, but not a result: what is wrong, and at which key.
    #[error("not a fairground result: {problem} at `{place}`")]
    NotAResult {
        /// Path of keys, `.` for the whole file.
        place: String,
        /// What was expected.
        problem: String,
    },
}

impl Saved {
    /// Parses the text of a result of `run` or `compare`.
    ///
    /// # Errors
    /// [`LoadError`] names the key that is missing or wrong, and where it is.
    pub fn parse(text: &str) -> Result<Self, LoadError> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|e| {
            match e.is_eof() && !text.trim().is_empty() {
                true => LoadError::CutOff {
                    line: e.line(),
                    column: e.column(),
                },
                false => LoadError::NotJson(e.to_string()),
            }
        })?;
        if let Some(of) = other_result(&value) {
            return Err(LoadError::AnotherResult(of));
        }
        of_another_tool(&value)?;
        if value.get("comparison").is_some() {
            let compare: Compare = read(value)?;
            check(&compare.variants, &["base", "patch"])?;
            Ok(Self::Compare(compare))
        } else {
            let run: RunResult = read(value)?;
            check(&run.variants, &["base"])?;
            Ok(Self::Run(run))
        }
    }

    /// The variant called `name`, or the only one there is.
    pub(crate) fn into_variant(self, name: &str) -> (Setup, Variant) {
        let (run, variants) = match self {
            Self::Run(run) => (run.clone(), run.variants),
            Self::Compare(c) => {
                let of_patch = c.patch_machine.filter(|_| name == "patch");
                let run = RunResult {
                    fairground: c.fairground,
                    machine: of_patch.unwrap_or(c.machine),
                    profile: c.profile,
                    workload: c.workload,
                    variants: Vec::new(),
                    changes: Vec::new(),
                    metric_info: c.metric_info,
                    redo: c.redo,
                    notes: Vec::new(),
                };
                (run, c.variants)
            }
        };
        let setup = Setup {
            fairground: run.fairground,
            machine: run.machine,
            profile: run.profile,
            workload: run.workload,
            workload_metrics: run.metric_info,
            redo: run.redo,
        };
        let found = variants.iter().position(|v| v.name == name).unwrap_or(0);
        let variant = variants.into_iter().nth(found).unwrap_or_else(|| Variant {
            name: name.into(),
            ..Variant::default()
        });
        (setup, variant)
    }
}

/// The command that has written a file, if it is a result of one; for those that want another's.
#[must_use]
pub fn written_by(value: &serde_json::Value) -> Option<&'static str> {
    let has = |key: &str| value.get(key).is_some();
    let first = value.get(0);
    Some(match () {
        () if has("places") || has("comparison") => "compare",
        () if has("points") => "sweep",
        () if has("replay") => "replay",
        () if has("variants") => "run",
        () if first.is_some_and(|row| row.get("published").is_some()) => "reproduce",
        () if first.is_some_and(|row| row.get("tolerance").is_some()) => "truth",
        () => return None,
    })
}

/// What a file is that another command has written.
fn other_result(value: &serde_json::Value) -> Option<&'static str> {
    let has = |key: &str| value.get(key).is_some();
    let first = value.get(0);
    Some(match () {
        () if has("places") => {
            "`compare` on several machines or workloads: take one of them, say with \
             `jq '.places[0].result'`"
        }
        () if has("points") => "`sweep`",
        () if has("replay") => "`replay`",
        () if first.is_some_and(|row| row.get("published").is_some()) => {
            "`reproduce`, which takes it with --saved"
        }
        () if first.is_some_and(|row| row.get("tolerance").is_some()) => "`truth`",
        () => return None,
    })
}

/// The keys that results of `run` and `compare` have, and most other files do not.
const KEYS: [&str; 5] = ["fairground", "machine", "profile", "workload", "variants"];

/// Most keys of another tool's file that are named.
const KEYS_NAMED: usize = 6;

/// A file with most of the keys is a result that lacks one; with less it is something else.
fn of_another_tool(value: &serde_json::Value) -> Result<(), LoadError> {
    use serde_json::Value;
    let missing = |key: &&&str| value.get(**key).is_none();
    let missing: Vec<&str> = KEYS.iter().filter(missing).copied().collect();
    if missing.len() * 2 < KEYS.len() {
        return Ok(());
    }
    let found = match value {
        Value::Object(keys) if keys.is_empty() => "none".into(),
        Value::Object(keys) => {
            let mut names: Vec<String> = Vec::new();
            names.extend(keys.keys().take(KEYS_NAMED).map(|key| format!("`{key}`")));
            if keys.len() > KEYS_NAMED {
                names.push(format!("{} more", keys.len() - KEYS_NAMED));
            }
            let near = missing.iter().find_map(|key| {
                let near = nearest(key, keys.keys().map(String::as_str))?;
                Some(format!(" (is `{near}` meant to be `{key}`?)"))
            });
            names.join(", ") + &near.unwrap_or_default()
        }
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::String(_) => "a string".into(),
        other => format!("`{other}`"),
    };
    let expected = KEYS.map(|key| format!("`{key}`")).join(", ");
    Err(LoadError::OfAnotherTool { expected, found })
}

fn read<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, LoadError> {
    serde_path_to_error::deserialize(value).map_err(|error| LoadError::NotAResult {
        place: error.path().to_string(),
        problem: error.inner().to_string(),
    })
}

/// What the types cannot say: the right variants, and a run in each.
fn check(variants: &[Variant], names: &[&str]) -> Result<(), LoadError> {
    let fault = |place: String, problem: String| Err(LoadError::NotAResult { place, problem });
    let found: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
    if found != names {
        let problem = format!("expected the variants {names:?}, found {found:?}");
        return fault("variants".into(), problem);
    }
    for (index, variant) in variants.iter().enumerate() {
        if variant.runs.is_empty() {
            return fault(
                format!("variants[{index}].runs"),
                "expected at least one run".into(),
            );
        }
    }
    Ok(())
}
