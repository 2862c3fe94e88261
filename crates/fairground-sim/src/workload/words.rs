//! What the real tool prints, from what the simulated run measured.
use super::marks::{MARK_END, MARK_START, Marks};
use super::rates;
use super::sysbench_words::SysbenchWords;
use core::fmt::Write as _;

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
        /// The line that says what was executed; in the simple format none, as of all of perf.
        head: String,
        /// Number of round trips.
        loops: u64,
    },
    /// `netperf`: one line of results, for the mean client.
    Netperf {
        /// Its test ("UDP_RR").
        test: &'static str,
        /// Bytes of a request and of an answer; of a stream, those of a send and those that come of
        /// one.
        sizes: (u32, u32),
        /// Clients.
        pairs: u32,
    },
    /// `schbench`.
    Schbench {
        /// Length of the run.
        runtime_s: f64,
    },
    /// `perf bench sched messaging`.
    PerfMessaging {
        /// The lines before the total time.
        head: String,
    },
    /// sysbench.
    Sysbench(SysbenchWords),
    /// `perf bench futex wake`.
    PerfFutexWake {
        /// The lines before the runs.
        head: String,
        /// Threads.
        threads: u32,
        /// No line for each run.
        silent: bool,
    },
    /// `perf bench mem memset`.
    PerfMem {
        /// The lines before the speed.
        head: String,
        /// Bytes written.
        bytes: u64,
    },
    /// ebizzy.
    Ebizzy,
    /// cyclictest: one line for each thread.
    Cyclictest {
        /// Its policy ("fifo"), if it is to say so.
        policy: Option<String>,
        /// Its threads, of which the latencies of number n are requests of kind n + 1.
        threads: Vec<CyclicThread>,
    },
}

/// A thread of cyclictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CyclicThread {
    /// Real-time priority; 0 = it is of the fair class.
    pub priority: u8,
    /// Interval, us.
    pub interval_us: u64,
}

impl Words {
    /// The tool's output, without the final line break; empty if it has none or never finished.
    pub fn print(&self, marks: &Marks) -> String {
        match self {
            Self::Sysbench(words) => return words.print(marks),
            Self::PerfFutexWake {
                head,
                threads,
                silent,
            } => return futex_wake(marks, head, *threads, *silent),
            Self::Netperf { test, sizes, pairs } => {
                return rates::netperf(test, *sizes, *pairs, marks);
            }
            Self::Schbench { runtime_s } => return rates::schbench(*runtime_s, marks),
            Self::Cyclictest { policy, threads } => {
                return cyclictest(marks, policy.as_deref(), threads);
            }
            _ => {}
        }
        let Some(us) = elapsed_us(marks) else {
            return String::new();
        };
        let (s, us_rest) = (us / 1_000_000, us % 1_000_000);
        match self {
            Self::None
            | Self::Sysbench(_)
            | Self::PerfFutexWake { .. }
            | Self::Netperf { .. }
            | Self::Cyclictest { .. }
            | Self::Schbench { .. } => String::new(),
            Self::Ebizzy => {
                let records = marks.requests.first().map_or(0, |h| h.len());
                let elapsed_s = us.max(1) as f64 / 1e6;
                let per_s = (records as f64 / elapsed_s).floor();
                format!("{per_s:.0} records/s\nreal {elapsed_s:>5.2} s")
            }
            Self::PerfMem { head, bytes } => {
                let per_s = *bytes as f64 / (us.max(1) as f64 / 1e6);
                if head.is_empty() {
                    return format!("{per_s:.6}");
                }
                let (scale, unit) = match per_s {
                    s if s < 1024.0 => (1.0, "bytes"),
                    s if s < 1_048_576.0 => (1024.0, "KB"),
                    s if s < 1_073_741_824.0 => (1_048_576.0, "MB"),
                    _ => (1_073_741_824.0, "GB"),
                };
                format!("{head}\n\n {:>14.6} {unit}/sec", per_s / scale)
            }
            Self::PerfMessaging { head } | Self::PerfPipe { head, .. } if head.is_empty() => {
                format!("{s}.{:03}", us_rest / 1000)
            }
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

/// One line for each thread, in whole microseconds. Thread ids are those of exported traces.
fn cyclictest(marks: &Marks, policy: Option<&str>, threads: &[CyclicThread]) -> String {
    let mut out = policy.map_or_else(String::new, |policy| format!("policy: {policy}\n\n"));
    for (n, (thread, of)) in threads.iter().zip(marks.exact.iter().skip(1)).enumerate() {
        let us = |ns: u64| ns / 1000;
        let _ = writeln!(
            out,
            "T:{n:2} ({:5}) P:{:2} I:{} C:{:7} Min:{:7} Act:{:5} Avg:{:5} Max:{:8}",
            1000 + n,
            thread.priority,
            thread.interval_us,
            of.count,
            us(of.min_ns),
            us(of.last_ns),
            us(of.mean_ns().unwrap_or(0.0) as u64),
            us(of.max_ns),
        );
    }
    out.trim_end().to_owned()
}

/// Times in whole microseconds, as `gettimeofday` gives them.
fn futex_wake(marks: &Marks, head: &str, threads: u32, silent: bool) -> String {
    let ms: Vec<f64> = marks
        .order
        .iter()
        .map(|ns| (ns / 1000) as f64 / 1e3)
        .collect();
    let n = ms.len() as f64;
    let mut out = head.to_owned();
    if ms.is_empty() {
        return String::new();
    }
    for (i, ms) in ms.iter().enumerate().filter(|_| !silent) {
        let run = i + 1;
        out += &format!("[Run {run}]: Wokeup {threads} of {threads} threads in {ms:.4} ms\n");
    }
    // Of the mean, in per cent of it, as perf's stddev_stats.
    let mean = ms.iter().sum::<f64>() / n;
    let squares: f64 = ms.iter().map(|v| (v - mean) * (v - mean)).sum();
    let off = match ms.len() {
        1 => 0.0,
        _ => 100.0 * (squares / (n - 1.0) / n).sqrt() / mean,
    };
    out + &format!("Wokeup {threads} of {threads} threads in {mean:.4} ms (+-{off:.2}%)")
}

fn elapsed_us(marks: &Marks) -> Option<u64> {
    let start = marks.marks.get(MARK_START as usize)?;
    let end = marks.marks.get(MARK_END as usize)?;
    let finished = start.seen > 0 && end.seen > 0;
    finished.then(|| end.last_ns.saturating_sub(start.first_ns) / 1000)
}
