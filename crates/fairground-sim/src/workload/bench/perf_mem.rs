//! `perf bench mem memset`. See `docs/workloads/perf-bench-mem-memset.md`.
use super::common::{Groups, add_program, repeat, size};
use super::{Env, Error, options};
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::program::{Op, TaskTemplate, Unit, Workload};
use crate::workload::words::{MARK_END, MARK_START, Words};

/// perf bench mem memset: fills a buffer.
#[derive(clap::Parser, Debug)]
#[command(name = "perf bench mem memset", disable_version_flag = true)]
struct Args {
    /// Bytes of the buffer (B, KB, MB, GB, TB).
    #[arg(short, long, default_value = "1MB", value_parser = size)]
    size: u64,
    /// Which implementation; only that of the C library is modelled, and "all" is it too.
    #[arg(short, long, default_value = "all", value_parser = ["all", "default"])]
    function: String,
    /// How often the buffer is filled.
    #[arg(short = 'l', long = "nr_loops", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    loops: u64,
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
            set_bytes: args.size,
        },
        n: args.size.div_ceil(64),
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
    let text = argv_size(argv);
    let bytes = args
        .size
        .saturating_mul(args.loops)
        .saturating_mul(instances as u64);
    w.words = Words::PerfMem {
        head: format!(
            "# Running 'mem/memset' benchmark:\n# function 'default' (Default memset() provided by \
             glibc)\n# Copying {text} bytes ..."
        ),
        bytes,
    };
    let (start, end, ops) = (MARK_START, MARK_END, bytes >> 20);
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

/// The size as it was typed: perf prints it so.
fn argv_size(argv: &[String]) -> String {
    let value = argv
        .iter()
        .enumerate()
        .find_map(|(i, arg)| match arg.as_str() {
            "-s" | "--size" => argv.get(i + 1).cloned(),
            arg => arg
                .strip_prefix("--size=")
                .or(arg.strip_prefix("-s"))
                .map(str::to_owned),
        });
    value.unwrap_or_else(|| "1MB".into())
}
