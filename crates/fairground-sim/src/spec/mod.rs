//! Scenario files: TOML, or JSON of rt-app, into a [`crate::workload::Workload`].
//!
//! A file becomes a tree of values that know their place (`node`, `json`); `read` makes a
//! `scenario` of it and leaves cgroups to `groups` (their files to `group_values`), tasks to
//! `tasks`, names and CPU sets to `names`, programs to `steps` and `holding`, what is reported to
//! `metrics`. Nothing in a file can make this panic; the first mistake is an [`Error`] with its
//! line.
mod error;
mod group_values;
mod groups;
mod holding;
mod json;
mod metrics;
mod names;
mod node;
mod notes;
mod read;
mod rtapp;
mod scenario;
mod schema;
mod steps;
mod tasks;

pub use error::{Error, Source};
pub use names::cpu_list;
pub use read::BYTES_MAX;
pub use scenario::{Length, Named, Scenario};
pub use schema::json as schema_json;
