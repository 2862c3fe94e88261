//! Why a recording cannot be read at all. Smaller damage is counted instead
//! ([`crate::recording::LeftOut`]).

/// Why there is no recording. The name of the file is the caller's to add.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Nothing of a compressed file can be unpacked.
    #[error("damaged compressed file: {0}")]
    Packed(String),
    /// It is none of the known kinds.
    #[error("not a trace: expected perf.data, trace.dat, or text of `perf script` or ftrace{hint}")]
    Unknown {
        /// What it looks like.
        hint: String,
    },
    /// It is a known kind, but damaged where nothing can be read without it.
    #[error("damaged {format} at byte {at}: {what}")]
    Damaged {
        /// Kind of file.
        format: &'static str,
        /// Where.
        at: u64,
        /// What was expected.
        what: String,
    },
    /// A kind of file, or part of one, that is not read.
    #[error("{what} is not supported; {help}")]
    Unsupported {
        /// What.
        what: String,
        /// What to do.
        help: &'static str,
    },
    /// It has no scheduler events.
    #[error(
        "no sched_switch in this {format}; record with `perf sched record` or `trace-cmd record \
         -e sched`{also}"
    )]
    NoSwitches {
        /// Kind of file.
        format: &'static str,
        /// What it has instead.
        also: String,
    },
}
