//! JSON schemas of the results, made from the types; committed under `schemas/`.

use schemars::{JsonSchema, schema_for};

use crate::replay::Replay;
use crate::result::{Compare, RunResult};
use crate::signs::Signs;
use crate::sweep::Sweep;

/// Schema of the result of `fairground run`, as JSON text.
pub fn run_schema() -> String {
    text::<RunResult>()
}

/// Schema of the result of `fairground compare`, as JSON text.
pub fn compare_schema() -> String {
    text::<Compare>()
}

/// Schema of the result of `fairground sweep`, as JSON text.
pub fn sweep_schema() -> String {
    text::<Sweep>()
}

/// Schema of the result of `fairground compare` in several places, as JSON text.
pub fn signs_schema() -> String {
    text::<Signs>()
}

/// Schema of the result of `fairground replay`, as JSON text.
pub fn replay_schema() -> String {
    text::<Replay>()
}

fn text<T: JsonSchema>() -> String {
    format!("{:#}\n", schema_for!(T).to_value())
}
