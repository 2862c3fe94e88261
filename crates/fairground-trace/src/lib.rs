//! Scheduler traces, in and out.
//!
//! ```text
//!   perf.data   ┐
//!   trace.dat   ├─► open ─► Recording (events, what was left out) ─► walk ─► measure
//!   text        ┘                                                      └──► derive ─► a Workload
//! ```
pub mod act;
pub mod begins;
mod bytes;
mod clock;
pub mod dat;
pub mod derive;
pub mod error;
pub mod event;
pub mod export;
mod fact;
pub mod fidelity;
pub mod groups;
mod lives;
pub mod measure;
mod missing;
mod names;
pub mod open;
pub mod perf;
pub mod raw;
pub mod recording;
pub mod replay;
pub mod save;
pub mod simulated;
mod strangers;
pub mod text;
mod thread;
pub mod told;
mod unzstd;
mod waits;
pub mod walk;
mod wrong_cpu;

pub use error::TraceError;
pub use event::{Context, Event, Kind, Names, State};
pub use open::open;
pub use recording::{LeftOut, Recording};
