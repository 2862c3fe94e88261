//! What the real tool prints, from what the simulated run measured.
use super::metric::Marks;

/// Whose words a workload speaks.
#[derive(Clone, Debug, PartialEq)]
pub enum Words {
    /// No tool of its own: nothing is printed.
    None,
    /// rt-tests hackbench.
    Hackbench {
        /// The lines before the time ("Running in ... mode", "Each sender ...").
        head: String,
    },
    /// `perf bench sched pipe`.
    PerfPipe {
        /// The line that says what was executed.
        head: String,
        /// Number of round trips.
        loops: u64,
    },
    /// `perf bench sched messaging`.
    PerfMessaging {
        /// The lines before the total time.
        head: String,
    },
}

/// Marks 0 and 1 of every workload that has words are the start and the end of its own clock.
pub const MARK_START: u32 = 0;
/// See [`MARK_START`].
pub const MARK_END: u32 = 1;

impl Words {
    /// The tool's output, without the final line break; empty if it has none or never finished.
    pub fn print(&self, marks: &Marks) -> String {
        let Some(us) = elapsed_us(marks) else {
            return String::new();
        };
        let (s, us_rest) = (us / 1_000_000, us % 1_000_000);
        match self {
            Self::None => String::new(),
            Self::Hackbench { head } => format!("{head}\nTime: {s}.{:03}", us_rest / 1000),
            Self::PerfMessaging { head } => {
                format!(
                    "{head}\n\n{:>15}: {s}.{:03} [sec]",
                    "Total time",
                    us_rest / 1000
                )
            }
            Self::PerfPipe { head, loops } => {
                let per_op = us as f64 / *loops as f64;
                let per_s = (*loops as f64 / (us.max(1) as f64 / 1e6)).floor();
                format!(
                    "{head}\n\n{:>15}: {s}.{:03} [sec]\n\n{per_op:>15.6} usecs/op\n{per_s:>15.0} \
                     ops/sec",
                    "Total time",
                    us_rest / 1000,
                )
            }
        }
    }
}

fn elapsed_us(marks: &Marks) -> Option<u64> {
    let start = marks.marks.get(MARK_START as usize)?;
    let end = marks.marks.get(MARK_END as usize)?;
    let finished = start.seen > 0 && end.seen > 0;
    finished.then(|| end.last_ns.saturating_sub(start.first_ns) / 1000)
}
