//! Scenario files: TOML, or JSON of rt-app, into a [`crate::workload::Workload`].
//!
//! A file becomes a tree of values that know their place (`node`, `json`); `scenario` reads it and
//! leaves cgroups to `groups`, tasks to `tasks`, names and CPU sets to `names`, programs to
//! `steps`. Nothing in a file can make this panic; the first mistake is an [`Error`] with its line.
mod error;
mod groups;
mod json;
mod names;
mod node;
mod rtapp;
mod scenario;
mod schema;
mod steps;
mod tasks;

pub use error::{Error, Source};
pub use names::cpu_list;
pub use scenario::{BYTES_MAX, Length, Named, Scenario};
pub use schema::json as schema_json;
