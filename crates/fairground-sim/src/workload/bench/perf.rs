//! The scheduler benchmarks that are built into perf. See `docs/workloads/perf-bench-sched-*.md`.
use super::common::{Groups, add_program, repeat};
use super::hackbench::{Messaging, time_metric};
use super::perf_args::Common;
use super::{Env, Error, options};
use crate::workload::marks::{MARK_END, MARK_START};
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::program::{Chan, ChanKind, Op, TaskTemplate, Workload};
use crate::workload::words::Words;

/// perf bench sched pipe: two tasks pass a word back and forth over two pipes.
#[derive(clap::Parser, Debug)]
#[command(name = "perf bench sched pipe", disable_version_flag = true)]
struct PipeArgs {
    /// Round trips.
    #[arg(short, long = "loop", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    loops: u64,
    /// Two threads instead of two processes.
    #[arg(short = 'T', long)]
    threaded: bool,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    cgroups: Groups,
}

/// perf bench sched messaging: hackbench as it is built into perf.
#[derive(clap::Parser, Debug)]
#[command(name = "perf bench sched messaging", disable_version_flag = true)]
struct MessagingArgs {
    /// Groups of 20 senders and 20 receivers.
    #[arg(short, long, default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..=25_000))]
    group: u32,
    /// Messages that each sender sends to each receiver.
    #[arg(short = 'l', long = "nr_loops", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    loops: u64,
    /// Sends over pipes instead of unix sockets.
    #[arg(short, long)]
    pipe: bool,
    /// Threads instead of processes.
    #[arg(short, long)]
    thread: bool,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    cgroups: Groups,
}

pub(super) fn parse_messaging(argv: &[String], _env: Env) -> Result<Workload, Error> {
    let tool = "perf bench sched messaging";
    let args: MessagingArgs = options(tool, argv)?;
    let load = Messaging {
        tool,
        name: "sched-messaging",
        groups: args.group,
        fds: 20,
        loops: args.loops,
        bytes: 100,
        pipe: args.pipe,
        threads: args.thread,
    };
    let mut workload = load.build(argv, &args.cgroups)?;
    let what = if args.thread { "threads" } else { "processes" };
    let (groups, tasks) = (args.group, args.group * 40);
    workload.words = Words::PerfMessaging {
        head: args.common.head(format!(
            "# Running 'sched/messaging' benchmark:\n# 20 sender and receiver {what} per group\n\
             # {groups} groups == {tasks} {what} run"
        )),
    };
    args.common.note(&mut workload);
    workload
        .metrics
        .insert(0, time_metric("sched-messaging.time_s"));
    Ok(workload)
}

/// The word that is passed: an `int`.
const WORD_BYTES: u32 = 4;

pub(super) fn parse_pipe(argv: &[String], _env: Env) -> Result<Workload, Error> {
    let tool = "perf bench sched pipe";
    let args: PipeArgs = options(tool, argv)?;
    let mut w = Workload::new("sched-pipe", argv.to_vec());
    let leaves = args.cgroups.build(tool, &mut w)?;
    w.marks = vec!["start".into(), "end".into()];
    w.chans = vec![
        Chan {
            kind: ChanKind::PIPE
        };
        2
    ];
    let read = |chan| Op::Read {
        chan,
        bytes: WORD_BYTES,
    };
    let write = |chan| Op::Write {
        chan,
        bytes: WORD_BYTES,
    };
    let (mut first, mut second) = (Vec::new(), vec![Op::Mark(MARK_START)]);
    repeat(&mut first, args.loops, [read(0), write(1)]);

    // Threads: the parent makes both and waits. Processes: the parent is the second itself.
    let leaf = |i: usize| Some(leaves[i % leaves.len()]);
    let mut forked = vec![add_program(&mut w, "first", first)];
    if args.threaded {
        let mut ops = Vec::new();
        repeat(&mut ops, args.loops, [write(0), read(1)]);
        forked.push(add_program(&mut w, "second", ops));
        second.extend([Op::Fork { template: 0 }, Op::Fork { template: 1 }]);
    } else {
        second.push(Op::Fork { template: 0 });
        repeat(&mut second, args.loops, [write(0), read(1)]);
    }
    second.extend([Op::Join, Op::Mark(MARK_END)]);
    for (i, program) in forked.into_iter().enumerate() {
        let mut task = TaskTemplate::new("sched-pipe", program, u32::from(!args.threaded));
        task.thread = args.threaded;
        task.cgroup = leaf(i);
        w.templates.push(task);
    }
    let program = add_program(&mut w, "parent", second);
    let mut parent = TaskTemplate::new("sched-pipe", program, 0);
    parent.cgroup = leaf(1);
    w.initial = vec![w.templates.len() as u32];
    w.templates.push(parent);

    args.common.note(&mut w);
    pipe_results(&mut w, &args);
    Ok(w)
}

/// What the tool prints, and the metrics it means.
fn pipe_results(w: &mut Workload, args: &PipeArgs) {
    let loops = args.loops;
    let what = if args.threaded {
        "threads"
    } else {
        "processes"
    };
    let head = format!(
        "# Running 'sched/pipe' benchmark:\n# Executed {loops} pipe operations between two {what}"
    );
    let head = args.common.head(head);
    w.words = Words::PerfPipe { head, loops };
    let (start, end, ops) = (MARK_START, MARK_END, loops);
    let us_per = From::SpanUsPer { start, end, ops };
    let ops = ops as f64;
    let per_s = From::OpsPerSpanS { start, end, ops };
    w.metrics = vec![
        MetricDef::new("sched-pipe.usecs_per_op", "us", Better::Lower, us_per),
        MetricDef::new("sched-pipe.ops_per_s", "1/s", Better::Higher, per_s),
        time_metric("sched-pipe.time_s"),
    ];
}
