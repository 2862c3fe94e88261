//! `perf bench mem memset`. See `docs/workloads/perf-bench-mem-memset.md`.
use super::common::{Groups, add_program, repeat};
use super::perf_args::Common;
use super::{Env, Error, options};
use crate::workload::marks::{MARK_END, MARK_START};
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::program::{Op, TaskTemplate, Unit, Workload};
use crate::workload::size::parse_bytes;
use crate::workload::words::Words;

/// perf bench mem memset: fills a buffer.
#[derive(clap::Parser, Debug)]
#[command(name = "perf bench mem memset", disable_version_flag = true)]
struct Args {
    /// Bytes of the buffer (B, KB, MB, GB, TB).
    #[arg(short, long, default_value = "1MB", value_parser = perf_size)]
    size: Size,
    /// Which implementation; only that of the C library is modelled, and "all" is it too.
    #[arg(short, long, default_value = "all", value_parser = ["all", "default"])]
    function: String,
    /// How often the buffer is filled.
    #[arg(short = 'l', long = "nr_loops", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    loops: u64,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    cgroups: Groups,
}

pub(super) fn parse_memset(argv: &[String], _env: Env) -> Result<Workload, Error> {
    let tool = "perf bench mem memset";
    let args: Args = options(tool, argv)?;
    let mut w = Workload::new("mem-memset", argv.to_vec());
    let leaves = args.cgroups.build(tool, &mut w)?;
    w.marks = vec!["start".into(), "end".into()];
    let fill = Op::Work {
        unit: Unit::Line {
            set_bytes: args.size.bytes,
        },
        n: args.size.bytes.div_ceil(64),
    };
    // The first time is not measured.
    let mut ops = vec![fill, Op::ReadClock, Op::Mark(MARK_START)];
    repeat(&mut ops, args.loops, [fill]);
    ops.extend([Op::ReadClock, Op::Mark(MARK_END)]);
    let program = add_program(&mut w, "memset", ops);
    let instances = args.cgroups.tree.map_or(1, |_| leaves.len());
    for (i, &leaf) in leaves.iter().enumerate().take(instances) {
        let mut task = TaskTemplate::new("mem-memset", program, i as u32);
        task.cgroup = Some(leaf);
        w.initial.push(w.templates.len() as u32);
        w.templates.push(task);
    }
    let text = &args.size.typed;
    let bytes = args
        .size
        .bytes
        .saturating_mul(args.loops)
        .saturating_mul(instances as u64);
    w.words = Words::PerfMem {
        head: args.common.head(format!(
            "# Running 'mem/memset' benchmark:\n# function 'default' (Default memset() provided by \
             glibc)\n# Copying {text} bytes ..."
        )),
        bytes,
    };
    args.common.note(&mut w);
    let mib = bytes as f64 / f64::from(1 << 20);
    let (start, end, ops) = (MARK_START, MARK_END, mib);
    let per_s = From::OpsPerSpanS { start, end, ops };
    w.metrics = vec![
        MetricDef::new("mem-memset.mib_per_s", "MiB/s", Better::Higher, per_s),
        MetricDef::new(
            "mem-memset.time_s",
            "s",
            Better::Lower,
            From::SpanS { start, end },
        ),
    ];
    Ok(w)
}

/// A size, and as it was typed: perf prints it so.
#[derive(Clone, Debug)]
struct Size {
    bytes: u64,
    typed: String,
}

/// A size as perf takes it: bytes, with or without a B, or a number with KB, MB, GB or TB (powers
/// of 1024), both letters small or both large. A letter alone is none.
fn perf_size(text: &str) -> Result<Size, String> {
    let expected =
        || format!("'{text}' is no size; expected a number with B, KB, MB, GB or TB, like 1MB");
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    match unit {
        "" | "b" | "B" | "kb" | "KB" | "mb" | "MB" | "gb" | "GB" | "tb" | "TB" => Ok(Size {
            bytes: parse_bytes(text)?,
            typed: text.to_owned(),
        }),
        _ => Err(expected()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error, make};
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_bytes() {
        for (line, mib) in [
            ("512KB", 0.5),
            ("1536KB", 1.5),
            ("100B", 100.0 / 1_048_576.0),
        ] {
            let w = make(&format!("perf bench mem memset -s {line}"));
            let mut marks = w.empty_marks();
            marks.mark(MARK_START, 0);
            marks.mark(MARK_END, 1_000_000_000);
            assert_eq!(w.metrics[0].value(&marks), Some(mib), "{line}");
        }
    }

    #[test]
    fn sizes_are_those_that_perf_takes() {
        for (text, bytes) in [("1MB", 1 << 20), ("2kb", 2048), ("7", 7), ("7B", 7)] {
            assert_eq!(perf_size(text).map(|s| s.bytes), Ok(bytes), "{text}");
        }
        for text in ["1M", "1Mb", "1mB", "MB", "", "-1", "0", "1.5MB", "2000TB"] {
            assert!(perf_size(text).is_err(), "{text}");
        }
        assert!(error("perf bench mem memset -s 1M").contains("like 1MB"));
    }
}
