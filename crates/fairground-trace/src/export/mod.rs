//! A recording, or a simulated run in its form, for the tools that people use.
//!
//! | file | subject |
//! | --- | --- |
//! | `text` | the layout of `perf script` |
//! | `table` | JSON lines and CSV |
//! | `perfetto`, `wire` | Perfetto's protobuf |
//! | `shown` | names of threads |
//! | `load` | how many threads want each CPU |
//! | `extras` | what a simulated run knows beyond tracepoints |

mod extras;
mod load;
mod perfetto;
mod shown;
mod table;
mod text;
mod wire;

use std::io::{self, Write};
use std::path::Path;

use fairground_sim::exact::Exact;

pub use extras::{CounterTrack, Extras, GROUPS_EVERY_NS, SliceTrack, WAITS_FROM_NS};

use crate::recording::Recording;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The layout of `perf script`.
    Text,
    /// Perfetto's protobuf.
    Perfetto,
    /// One JSON object a line.
    JsonLines,
    /// Comma-separated.
    Csv,
}

/// Ends of file names.
pub const ENDS: [&str; 4] = ["pftrace", "txt", "jsonl", "csv"];

impl Format {
    /// By the end of a file's name; `None` if it is none of [`ENDS`].
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "txt" => Some(Self::Text),
            "pftrace" => Some(Self::Perfetto),
            "jsonl" => Some(Self::JsonLines),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }

    /// With what a run keeps of which [`Extras`] are made, if there is room for them.
    #[must_use]
    pub fn exact(self, exact: Exact) -> Exact {
        match self {
            Self::Perfetto => Exact {
                groups_every_ns: GROUPS_EVERY_NS,
                waits_from_ns: Some(WAITS_FROM_NS),
                ..exact
            },
            Self::Text | Self::JsonLines | Self::Csv => exact,
        }
    }
}

/// Writes a recording.
///
/// # Errors
/// Those of `out`.
pub fn write(recording: &Recording, format: Format, out: &mut impl Write) -> io::Result<()> {
    write_with(recording, &Extras::default(), format, out)
}

/// Writes a recording, and what else is known where the format has room for it (Perfetto).
///
/// # Errors
/// Those of `out`.
pub fn write_with(
    recording: &Recording,
    extras: &Extras,
    format: Format,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Text => text::write(recording, out),
        Format::Perfetto => perfetto::write(recording, extras, out),
        Format::JsonLines => table::json_lines(recording, out),
        Format::Csv => table::csv(recording, out),
    }
}
