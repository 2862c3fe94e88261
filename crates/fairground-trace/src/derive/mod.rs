//! From a recording to programs: what each thread computes between blockings, what wakes it, and
//! whom it wakes. Times are in nanoseconds.
//!
//! | file | subject |
//! | --- | --- |
//! | `log` | the recording, thread by thread |
//! | `cause` | timer or thread: what wakes a sleeper, where the recording leaves it open |
//! | `chance` | who of those that were current at a wake-up has done it |
//! | `exposure` | whom an interrupt that wakes a thread would meet |
//! | `cut` | who was computing when the recording ended |
//! | `attributes` | what a trace does not say: groups, policies, affinity; from a file |
//! | `inherited` | what that file says of threads that others create |
//! | `refused` | what is wrong with that file, and where |
//! | `run`, `objects` | attributes of a simulated run, and what its threads share |
//! | `step` | what a thread did, one thing at a time |
//! | `tick` | the recorded kernel's tick, as far as it shows |
//! | `period` | when quota periods end, as far as it shows |
//! | `pins` | affinity as far as it shows |
//! | `tails` | what a wake-up takes on the recorded machine beyond the model |
//! | `process` | which threads share an address space |
//! | `truth` | attributes of a recorded case |
//! | `program` | the program of one thread |
//! | `yields` | who gives up its CPU by itself |
//! | `cgroups` | groups and what is written to them |
//! | `workload` | a [`fairground_sim`] workload of it |

pub mod attributes;
pub mod cause;
mod cgroups;
mod chance;
pub mod cut;
mod exposure;
pub mod inherited;
pub mod log;
pub mod objects;
pub mod period;
pub mod pins;
pub mod process;
mod program;
pub mod refused;
mod run;
mod spelled;
mod step;
pub mod tails;
pub mod tick;
pub mod truth;
pub mod workload;
pub mod yields;

pub use attributes::Attributes;
pub use log::{Log, Logs, Step};
pub use workload::{Derived, Trim, derive};
