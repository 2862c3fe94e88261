//! schbench. See `docs/workloads/schbench.md`.
use super::common::{Groups, TASKS_MAX, add_program, repeat, seconds as seconds_or_0};
use super::netperf_args::seconds;
use super::{Env, Error, bad, options};
use crate::workload::metric::Work;
use crate::workload::metric::{Better, From, MetricDef, PERCENTILES};
use crate::workload::program::{Dur, FOREVER, Ns, Op, TaskTemplate, Until, Workload};
use crate::workload::words::Words;

/// schbench: message threads hand requests to workers, which sleep and compute.
#[derive(clap::Parser, Debug)]
#[command(name = "schbench", disable_version_flag = true)]
struct Args {
    /// Message threads.
    #[arg(short, long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    message_threads: u32,
    /// Workers of each message thread; by default one for each CPU in all.
    #[arg(short, long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    threads: Option<u32>,
    /// Length of the run: seconds, or a duration with its unit. The tool's default is 30 seconds.
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    runtime: Ns,
    /// Time before statistics count: seconds, or a duration with its unit; by default 0, and with
    /// --tree until all processes are there, and 20 ms.
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds_or_0)]
    warmuptime: Option<Ns>,
    /// Time between two reports of the tool; one report is printed, at the end.
    #[arg(short, long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    intervaltime: Ns,
    /// KiB of the matrices that a worker multiplies.
    #[arg(short = 'F', long = "cache-footprint", alias = "cache_footprint", value_name = "KIB",
          default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    cache_footprint: u32,
    /// Multiplications in a request.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    operations: u32,
    /// How long a worker sleeps in a request, us.
    #[arg(short, long, alias = "sleep_usec", value_name = "USEC", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(0..=1_000_000_000))]
    sleep_usec: u32,
    /// No lock of the CPU around the multiplications.
    #[arg(short = 'L', long)]
    no_locking: bool,
    #[command(flatten)]
    cgroups: Groups,
}

/// Picoseconds of one multiply-and-add of the naive product, measured (docs/workloads/schbench.md).
const MULTIPLY_ADD_PS: u64 = 546;
/// Three matrices of this many bytes an element.
const MATRICES: u64 = 3;
const ELEMENT_BYTES: u64 = 8;

/// One process is made after the other.
const START_NS: Ns = 60_000;
const SETTLE_NS: Ns = 20_000_000;

const REQUEST: u32 = 0;
const WAKEUP: u32 = 0;

pub(super) fn parse(argv: &[String], env: Env) -> Result<Workload, Error> {
    let tool = "schbench";
    let args: Args = options(tool, argv)?;
    let mut w = Workload::new(tool, argv.to_vec());
    let leaves = args.cgroups.build(tool, &mut w)?;
    let workers = args
        .threads
        .unwrap_or(env.cpus.div_ceil(args.message_threads));
    let each = u64::from(args.message_threads) * (u64::from(workers) + 1) + 1;
    let tasks = each * leaves.len() as u64;
    if tasks > TASKS_MAX {
        return Err(bad(
            tool,
            format!("{tasks} tasks are more than {TASKS_MAX}"),
        ));
    }
    w.marks = vec!["request".into()];
    w.requests = vec!["wakeup".into(), "request".into()];
    for (process, &leaf) in leaves.iter().enumerate() {
        add_process(&mut w, &args, process as u32, leaf, workers);
    }
    let created = match leaves.len() as u64 {
        1 => 0,
        n => n * START_NS + SETTLE_NS,
    };
    w.warmup_ns = args.warmuptime.unwrap_or(created);
    w.duration = Until::Time(w.warmup_ns + args.runtime);
    w.work = Some(Work::new("request", From::Count(REQUEST)));
    results(&mut w, &args);
    Ok(w)
}

/// One schbench: its main thread makes the message threads, each of which makes its workers.
fn add_process(w: &mut Workload, args: &Args, process: u32, leaf: u32, workers: u32) {
    let locks = w.n_cpu_locks;
    w.n_cpu_locks += 1;
    let mut main = Vec::new();
    for _ in 0..args.message_threads {
        let service = w.services.len() as u32;
        w.services.push(format!("schbench-{service}"));
        w.futex_services.push(service);
        let program = add_program(w, "worker", worker(args, service, locks));
        let template = w.templates.len() as u32;
        let mut task = TaskTemplate::new("schbench-worker", program, process);
        task.thread = true;
        task.cgroup = Some(leaf);
        task.footprint_bytes_per_us = footprint(args);
        task.working_set_bytes = Some(u64::from(args.cache_footprint) * 1024);
        task.fetches = true;
        w.templates.push(task);

        let mut ops = vec![Op::Fork { template }; workers as usize];
        let serve = [
            Op::Accept(service),
            Op::ReqStartCaller(WAKEUP),
            Op::Reply { service, bytes: 0 },
        ];
        repeat(&mut ops, FOREVER, serve);
        let program = add_program(w, "message", ops);
        let template = w.templates.len() as u32;
        let mut task = TaskTemplate::new("schbench-msg", program, process);
        task.thread = true;
        task.cgroup = Some(leaf);
        w.templates.push(task);
        main.push(Op::Fork { template });
    }
    main.push(Op::Join);
    let program = add_program(w, "main", main);
    let mut task = TaskTemplate::new("schbench", program, process);
    task.cgroup = Some(leaf);
    w.initial.push(w.templates.len() as u32);
    w.templates.push(task);
}

fn worker(args: &Args, service: u32, locks: u32) -> Vec<Op> {
    let mut turn = vec![
        Op::Call { service, bytes: 0 },
        Op::ReqEnd(WAKEUP),
        Op::ReqStart(1),
    ];
    if args.sleep_usec > 0 {
        turn.push(Op::Sleep(Dur::Const(u64::from(args.sleep_usec) * 1000)));
    }
    if !args.no_locking {
        turn.push(Op::LockCpu(locks));
    }
    let ns = u64::from(args.operations) * multiplication_ns(args);
    if ns > 0 {
        turn.push(Op::Run(Dur::Const(ns)));
    }
    if !args.no_locking {
        turn.push(Op::UnlockCpu(locks));
    }
    turn.extend([Op::ReqEnd(1), Op::Mark(REQUEST)]);
    let mut ops = Vec::new();
    repeat(&mut ops, FOREVER, turn);
    ops
}

/// One naive product of two square matrices.
fn multiplication_ns(args: &Args) -> u64 {
    let elements = u64::from(args.cache_footprint) * 1024 / MATRICES / ELEMENT_BYTES;
    elements.isqrt().pow(3) * MULTIPLY_ADD_PS / 1000
}

/// All three matrices pass through the caches in one multiplication, the same ones in the next.
fn footprint(args: &Args) -> u32 {
    let us = (multiplication_ns(args) / 1000).max(1);
    (u64::from(args.cache_footprint) * 1024 / us) as u32
}

fn results(w: &mut Workload, args: &Args) {
    let quantile = |request, permille| From::RequestQuantileUs { request, permille };
    let lower =
        |name: &str, from| MetricDef::new(format!("schbench.{name}"), "us", Better::Lower, from);
    let rps = From::CountPerS(REQUEST);
    let mut metrics = Vec::new();
    for (request, name) in (0..).zip(["wakeup_us", "request_us"]) {
        let latency = |(what, permille): (&str, u32)| {
            lower(&format!("{name}.{what}"), quantile(request, permille))
        };
        metrics.extend(PERCENTILES.map(latency));
        metrics.push(latency(("max", 1000)));
    }
    metrics.extend([
        MetricDef::new("schbench.rps", "1/s", Better::Higher, rps),
        MetricDef::fetching("schbench.fetch_pct"),
    ]);
    w.metrics = metrics;
    w.words = Words::Schbench {
        runtime_s: args.runtime as f64 / 1e9,
    };
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error, make};
    use super::*;

    #[test]
    fn one_schbench_in_each_leaf() {
        let w = make("schbench -m 2 -t 3 --tree 2:2 --cpu-max 2ms/10ms");
        assert_eq!(w.initial.len(), 4);
        assert_eq!(w.n_cpu_locks, 4);
        assert_eq!(w.futex_services.len(), 8);
        let limited = w.cgroups.iter().filter(|g| g.quota_ns == Some(2_000_000));
        assert_eq!(limited.count(), 4);
        let message = w.programs.iter().find(|p| p.name == "message").unwrap();
        let forks = message.ops.iter().filter(|o| matches!(o, Op::Fork { .. }));
        assert_eq!(forks.count(), 3);
        // One worker for each of 8 CPUs.
        let w = make("schbench -m 3");
        let message = w.programs.iter().find(|p| p.name == "message").unwrap();
        let forks = message.ops.iter().filter(|o| matches!(o, Op::Fork { .. }));
        assert_eq!(forks.count(), 3);
    }

    #[test]
    fn a_request_sleeps_and_multiplies() {
        let worker = |line: &str| {
            let w = make(line);
            let found = w.programs.iter().find(|p| p.name == "worker");
            found.unwrap().ops.clone()
        };
        let ops = worker("schbench -n 2 -s 50");
        assert!(ops.contains(&Op::Sleep(Dur::Const(50_000))));
        // 104 elements a side.
        assert!(ops.contains(&Op::Run(Dur::Const(2 * (104 * 104 * 104 * 546 / 1000)))));
        assert!(ops.contains(&Op::LockCpu(0)) && ops.contains(&Op::UnlockCpu(0)));
        assert!(!worker("schbench -L").contains(&Op::LockCpu(0)));
    }

    #[test]
    fn the_words_of_the_tool() {
        let w = make("schbench -r 2");
        let mut marks = w.empty_marks();
        marks.elapsed_ns = 2_000_000_000;
        for i in 0..1000 {
            marks.request(0, 0, 5_000 + i);
            marks.request(1, 0, 1_690_000);
            marks.mark(0, 1);
        }
        let words = w.words.print(&marks);
        for line in [
            "Wakeup Latencies percentiles (usec) runtime 2 (s) (1000 total samples)",
            "\t  50.0th: 5          (",
            "\t* 99.0th: 16",
            "average rps: 500.00",
        ] {
            assert!(words.contains(line), "{words}");
        }
        let rps = w.metrics.iter().find(|m| m.name == "schbench.rps");
        assert_eq!(rps.and_then(|m| m.value(&marks)), Some(500.0));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, expected) in [
            ("schbench --thraeds 3", "did you mean '--threads'?"),
            ("schbench -m 10000 -t 100000", "more than 1000000"),
            ("schbench -r 0", "more than 0"),
            ("schbench --cpu-max 2ms", "expected QUOTA/PERIOD"),
            ("schbench --cpu-max 2ms/2s", "from 1ms to 1s"),
            ("schbench --cpu-max 500m", "per period: 50ms/100ms"),
            ("schbench --cpu-max 0.5/100ms", "per period: 50ms/100ms"),
            (
                "schbench --cgroup / --cpu-max 2ms/10ms",
                "the root cgroup has no limit",
            ),
        ] {
            let message = error(line);
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
