//! Results of Fairground, and every number that is computed from them.
//!
//! ```text
//!   Run (one seed) ─► Variant (base | patch) ─► RunResult ──► JSON, CSV, text
//!                                         ├──► Compare   ──► JSON, CSV, text, FailOn
//!                                         │       └─► Signs ──► JSON, CSV, text, FailOn
//!                                         └──► Sweep     ──► JSON, CSV, text, Target
//!   Replay (two sides of a recording) ──► JSON, text
//! ```
//!
//! Data goes in by value: this crate knows neither the simulator nor the command line, reads no
//! clock and no file. Same input, same bytes out: only `Vec` and `BTreeMap`, and fields are
//! written in the order in which they are declared.
//!
//! A number that is not finite is never written. It becomes `null`, is left out of the
//! statistics, and the result's `notes` say so.
#![forbid(unsafe_code)]

mod beware;
mod catalogue;
mod compare;
mod comparison;
mod differing;
mod fail_on;
mod few_beyond;
mod few_periods;
mod flat;
mod groups;
pub mod html;
mod machine;
mod note;
mod redo;
mod replay;
mod replay_compare;
pub mod reproduce;
mod requests;
mod result;
mod saved;
mod schema;
mod sides;
mod signs;
mod stats;
mod sweep;
mod text;
mod throttled_by;
mod two_saved;
mod watched;
mod work;

pub use beware::beware_of_replays;
pub use catalogue::{
    ALWAYS, Better, Catalogue, GROUP_METRICS, LIMITED, Metric, MetricInfo, UnknownMetric,
    group_metrics, have_own_metrics, nearest,
};
pub use compare::compare_metrics;
pub use differing::differing;
pub use fail_on::{FailOn, FailOnError, Met};
pub use flat::{csv_of_compare, csv_of_run};
pub use groups::{BurstFrom, CpuStat, GroupStat, LimitFrom, OtherGroups, WeightFrom, time_text};
pub use machine::{MachineId, MachineParts};
pub use note::{Note, OfMetric, OfSaved, OfSeeds, OfValues, OfWaiting, OfWork};
pub use redo::{AssumedFigure, NOT_MODELLED, Redo, redo_command};
pub use replay::{
    Changed, FidelityVerdict, Percentiles, REPLAY_FORMAT, Recorded, Replay, ReplayCosts,
    ReplayFidelity, Replayed, ReplayedThread, Sides, Stopped, WhatIf,
};
pub use replay_compare::{ReplayQuantity, SeedValues, WhatIfRow, compare_replays};
pub use requests::Halves;
pub use result::{
    Compare, Comparison, FunctionCost, LineTraffic, Method, Number, Run, RunResult, Setup, Variant,
    Verdict,
};
pub use saved::{LoadError, Saved};
pub use schema::{compare_schema, replay_schema, run_schema, signs_schema, sweep_schema};
pub use signs::{Growth, Place, Signs, Tally, csv_of_signs, signs_page, signs_text};
pub use stats::{Change, Summary, paired_change, summary, welch_change};
pub use sweep::{
    Answer, Axis, Knee, Meets, Point, PointAbout, Reached, Spread, Sweep, Target, TargetError,
    Tried, csv_of_sweep, products, sweep_page, sweep_text,
};
pub use text::{
    Style, TaskAt, change as change_text, changes_text, compare_text, costs_text, faithful_text,
    fidelity_text, foot as foot_text, groups_text, head as head_text, interval as interval_text,
    labelled, number as number_text, run_text, watched_text, what_if_text,
};
pub use throttled_by::ThrottledBy;
pub use two_saved::compare_saved;
pub use watched::{
    Delay, DelayedStretch, IdleWaste, IrqsOff, OpenRequests, Quantiles, QuotaWait, QuotaWork,
    StillWaiting, VainWait, WaitsOver,
};
pub use work::{PerUnit, Work};
