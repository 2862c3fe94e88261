//! `perf bench futex wake`. See `docs/workloads/perf-bench-futex-wake.md`.
use super::common::{Groups, TASKS_MAX, add_program, repeat};
use super::{Env, Error, bad, options};
use crate::workload::duration::Dur;
use crate::workload::marks::ORDER_MAX;
use crate::workload::marks::{MARK_END, MARK_START};
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::program::{FOREVER, Op, TaskTemplate, When, Workload};
use crate::workload::words::Words;

/// perf bench futex wake: threads block on one futex and are woken a few at a time.
#[derive(clap::Parser, Debug)]
#[command(name = "perf bench futex wake", disable_version_flag = true)]
struct Args {
    /// Threads; by default one per CPU.
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    threads: Option<u32>,
    /// Threads that one call wakes.
    #[arg(short = 'w', long, default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nwakes: u32,
    /// Prints only the summary.
    #[arg(short, long)]
    silent: bool,
    /// Futexes that processes could share.
    #[arg(short = 'S', long)]
    shared: bool,
    /// Locks all memory, as it is here without.
    #[arg(short, long)]
    mlockall: bool,
    /// Format of the output (`perf bench -f FORMAT`): default, or simple without the first line.
    #[arg(long, value_name = "FORMAT", default_value = "default",
          value_parser = ["default", "simple"])]
    format: String,
    /// How often all is repeated (`perf bench -r N`).
    #[arg(short, long, default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..=ORDER_MAX as i64))]
    repeat: u32,
    #[command(flatten)]
    cgroups: Groups,
}

/// How long the first thread waits until all others are sure to sleep.
const SETTLE_NS: u64 = 100_000_000;

pub(super) fn parse_wake(argv: &[String], env: Env) -> Result<Workload, Error> {
    let tool = "perf bench futex wake";
    let args: Args = options(tool, argv)?;
    let threads = args.threads.unwrap_or(env.cpus).max(1);
    let mut w = Workload::new("futex-wake", argv.to_vec());
    let leaves = args.cgroups.build(tool, &mut w)?;
    let instances = args.cgroups.tree.map_or(1, |_| leaves.len() as u32);
    let tasks = u64::from(threads) * u64::from(instances) * u64::from(args.repeat);
    if tasks > TASKS_MAX {
        let message = format!("{tasks} threads in all repeats are more than {TASKS_MAX}");
        return Err(bad(tool, message));
    }
    w.masks = (0..env.cpus.max(1)).map(|cpu| vec![cpu]).collect();
    w.marks = vec!["start".into(), "end".into()];
    w.requests = vec!["run".into()];
    for (instance, &leaf) in leaves.iter().enumerate().take(instances as usize) {
        add_instance(&mut w, &args, threads, instance as u32, leaf);
    }
    let kind = if args.shared { "shared" } else { "private" };
    let nwakes = args.nwakes;
    let title = match args.format.as_str() {
        "simple" => "",
        _ => "# Running 'futex/wake' benchmark:\n",
    };
    w.words = Words::PerfFutexWake {
        head: format!(
            "{title}Run summary: blocking on {threads} threads (at \
             [{kind}] futex), waking up {nwakes} at a time.\n\n"
        ),
        threads,
        silent: args.silent,
    };
    let run = |permille| From::RequestQuantileUs {
        request: 0,
        permille,
    };
    let us =
        |name: &str, from| MetricDef::new(format!("futex-wake.{name}"), "us", Better::Lower, from);
    w.metrics = vec![
        us("run_us.avg", From::RequestMeanUs(0)),
        us("run_us.max", run(1000)),
    ];
    Ok(w)
}

/// The measured part, which begins at operation `at`: wakes `n` at a time until all are woken, for
/// who does not sleep yet is not.
fn wake_all(at: u32, futex: u32, n: u32, threads: u32) -> [Op; 10] {
    let start = at + 3;
    [
        Op::Sleep(Dur::Const(SETTLE_NS)),
        Op::ReadClock,
        Op::ReqStart(0),
        Op::LoopStart { count: FOREVER },
        Op::FutexWake { futex, n },
        Op::Leave {
            end: start + 3,
            when: When::Woken(u64::from(threads)),
        },
        Op::LoopEnd { start },
        Op::ReadClock,
        Op::ReqEnd(0),
        Op::Join,
    ]
}

fn add_instance(w: &mut Workload, args: &Args, threads: u32, instance: u32, leaf: u32) {
    let (futex, barrier, lock) = (w.n_futexes, w.barriers.len() as u32, w.n_mutexes);
    w.n_futexes += 1;
    w.barriers.push(threads + 1);
    // The tool's lock, then one in the descriptor of each thread.
    w.n_mutexes += 1 + threads;
    let gate = [
        Op::Lock(lock),
        Op::CondBarrier {
            barrier,
            mutex: lock,
        },
        Op::Unlock(lock),
    ];
    let first = w.templates.len() as u32;
    for i in 0..threads {
        let own = lock + 1 + i;
        // A thread with an affinity waits until its maker has set it.
        let mut ops = vec![Op::Lock(own), Op::Unlock(own)];
        ops.extend(gate);
        ops.push(Op::FutexWait(futex));
        let program = add_program(w, "waiter", ops);
        let mut waiter = TaskTemplate::new("futex-wake", program, instance);
        waiter.thread = true;
        waiter.cgroup = Some(leaf);
        w.templates.push(waiter);
    }
    let mut ops = vec![Op::Mark(MARK_START)];
    let mut run = Vec::new();
    let cpus = w.masks.len() as u32;
    for i in 0..threads {
        let own = lock + 1 + i;
        run.extend([
            Op::Lock(own),
            Op::Fork {
                template: first + i,
            },
            Op::PinChild { mask: i % cpus },
            Op::Unlock(own),
        ]);
    }
    run.extend(gate);
    // Inside the loop of the repeats, which begins at 1.
    let at = 2 + run.len() as u32;
    run.extend(wake_all(at, futex, args.nwakes, threads));
    repeat(&mut ops, u64::from(args.repeat), run);
    ops.push(Op::Mark(MARK_END));
    let program = add_program(w, "main", ops);
    let mut main = TaskTemplate::new("futex-wake", program, instance);
    main.cgroup = Some(leaf);
    w.initial.push(w.templates.len() as u32);
    w.templates.push(main);
}
