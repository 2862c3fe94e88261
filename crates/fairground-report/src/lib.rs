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

mod catalogue;
mod compare;
mod complete;
mod differing;
mod fail_on;
mod flat;
mod groups;
pub mod html;
mod keys;
mod lower_bound;
mod machine;
mod notes;
mod number;
mod percentile;
mod redo;
mod replay;
mod replay_compare;
pub mod reproduce;
mod result;
mod saved;
mod schema;
mod services;
mod signs;
mod stats;
mod sweep;
mod text;
mod throttled_by;
mod two_saved;

pub use catalogue::{
    ALWAYS, Better, Catalogue, GROUP_METRICS, LIMITED, Metric, MetricInfo, UnknownMetric,
    group_metrics, have_own_metrics, nearest,
};
pub use compare::compare_metrics;
pub use differing::differing;
pub use fail_on::{FailOn, FailOnError, Met};
pub use flat::{csv_of_compare, csv_of_run};
pub use groups::time_text;
pub use machine::{MachineId, MachineParts};
pub use notes::beware_of_replays;
pub use number::{Number, change as change_text, interval as interval_text, number as number_text};
pub use redo::{AssumedFigure, NOT_MODELLED, Redo, redo_command};
pub use replay::{
    Changed, EarlyWork, FidelityVerdict, Percentiles, REPLAY_FORMAT, Recorded, Replay, ReplayCosts,
    ReplayFidelity, Replayed, ReplayedThread, Sides, Stopped, WhatIf,
};
pub use replay_compare::{ReplayQuantity, SeedValues, WhatIfRow, compare_replays};
pub use result::{
    BurstFrom, Compare, Comparison, CpuStat, Delay, DelayedStretch, FunctionCost, GroupStat,
    Halves, IdleState, IdleWaste, IrqsOff, LimitFrom, LineTraffic, Method, Note, OfMetric, OfSaved,
    OfSeeds, OfValues, OfWaiting, OfWork, OpenRequests, OtherGroups, PerUnit, Quantiles, QuotaWait,
    QuotaWork, Run, RunResult, SameCounts, Setup, StillWaiting, ThrottledBy, VainWait, Variant,
    Verdict, WaitsOver, WeightFrom, Work,
};
pub use saved::{LoadError, Saved, written_by};
pub use schema::{compare_schema, replay_schema, run_schema, signs_schema, sweep_schema};
pub use signs::{Growth, Place, Signs, Tally, csv_of_signs, signs_page, signs_text};
pub use stats::{Change, Interval, Summary, paired_change, summary, welch_change};
pub use sweep::{
    Answer, Axis, Knee, Meets, Point, PointAbout, Reached, Spread, Sweep, Target, TargetError,
    Tried, csv_of_sweep, products, sweep_page, sweep_text,
};
pub use text::{
    Style, TaskAt, changes_text, compare_text, costs_text, faithful_text, fidelity_text,
    foot as foot_text, groups_text, head as head_text, labelled, run_text, watched_text,
    what_if_text,
};
pub use two_saved::compare_saved;
