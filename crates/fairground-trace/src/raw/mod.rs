//! Raw tracepoint records, as perf.data and trace.dat have them, by the format files of the kernel
//! that wrote them.
//!
//! | file | subject |
//! | --- | --- |
//! | `format` | a format file: where each field is |
//! | `headers` | the block of format files that both kinds of file have |
//! | `ours` | which tracepoints are read, and the fields that each must have |
//! | `decode` | from a record to an event |

pub mod decode;
pub mod format;
pub mod headers;
pub(crate) mod ours;
