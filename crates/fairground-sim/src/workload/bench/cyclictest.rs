//! How late timers are served. See `docs/workloads/cyclictest.md`.
use super::common::{Groups, add_program, repeat, seconds};
use super::{Env, Error, bad, options};
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::program::{FOREVER, Ns, Op, RealTime, TaskTemplate, Until, Workload};
use crate::workload::words::{CyclicThread, Words};

const TOOL: &str = "cyclictest";
/// How long it runs where nobody says: the tool goes on until it is stopped.
const ENDLESS_NS: Ns = 1_000_000_000;
/// Most threads.
const THREADS_MAX: i64 = 1024;

/// cyclictest: threads that sleep until a point in time, and how much later they run.
#[derive(clap::Parser, Debug)]
#[command(name = "cyclictest", disable_version_flag = true)]
struct Args {
    /// Threads; without a number one per CPU.
    #[arg(short, long, value_name = "NUM", num_args = 0..=1, default_missing_value = "0",
          value_parser = clap::value_parser!(i64).range(0..=THREADS_MAX))]
    threads: Option<i64>,
    /// Priority of the first thread, each further one has one less; 0 is the fair class.
    #[arg(short, long, value_name = "PRIO", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=99))]
    priority: u8,
    /// Class of the threads: other, batch, idle, fifo or rr.
    #[arg(long, value_name = "NAME",
          value_parser = ["other", "normal", "batch", "idle", "fifo", "rr"])]
    policy: Option<String>,
    /// Interval of the first thread, us.
    #[arg(short, long, value_name = "INTV", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    interval: u64,
    /// How much longer the interval of each further thread is, us.
    #[arg(short, long, value_name = "DIST",
          value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    distance: Option<u64>,
    /// Number of loops of the first thread; 0 is endless.
    #[arg(short, long, value_name = "LOOPS", default_value_t = 0)]
    loops: u64,
    /// Length of the run: seconds, or with m, h or d.
    #[arg(short = 'D', long, value_name = "TIME", value_parser = seconds)]
    duration: Option<Ns>,
    /// Each thread on a CPU of its own.
    #[arg(short, long, value_name = "PROC-SET", num_args = 0..=1, default_missing_value = "all")]
    affinity: Option<String>,
    /// As -t and -a, and all threads have one priority and interval.
    #[arg(short = 'S', long)]
    smp: bool,
    /// CPUs may sleep deeply: the tool does not ask for short ways out of idle.
    #[arg(long)]
    laptop: bool,
    /// Has no meaning here: pages do not fault.
    #[arg(short, long)]
    mlockall: bool,
    /// Has no meaning here: there is one clock.
    #[arg(short, long)]
    nanosleep: bool,
    /// Prints the result at the end only, as is done here.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    cgroups: Groups,
}

pub(super) fn parse(argv: &[String], env: Env) -> Result<Workload, Error> {
    let args: Args = options(TOOL, argv)?;
    let mut w = Workload::new(TOOL, argv.to_vec());
    let leaves = args.cgroups.build(TOOL, &mut w)?;
    let all = args.smp || args.threads == Some(0);
    let threads = if all {
        env.cpus
    } else {
        args.threads.unwrap_or(1) as u32
    };
    let bound = args.smp || args.affinity.is_some();
    if args.affinity.as_deref().is_some_and(|set| set != "all") {
        return Err(bad(
            TOOL,
            "sets of CPUs are not modelled; expected -a alone",
        ));
    }
    w.requests.push("latency".into());
    let distance = args.distance.unwrap_or(if args.smp { 0 } else { 500 });
    let mut told = Vec::new();
    for i in 0..threads {
        let kind = w.requests.len() as u32;
        w.requests.push(format!("thread {i}"));
        let interval_us = args.interval + u64::from(i) * distance;
        // The run ends with the loops of the first.
        let loops = if args.loops > 0 && i == 0 {
            args.loops
        } else {
            FOREVER
        };
        let turn = [
            Op::Period(interval_us * 1000),
            Op::ReadClock,
            Op::ReqStartDue(0),
            Op::ReqEnd(0),
            Op::ReqStartDue(kind),
            Op::ReqEnd(kind),
        ];
        let mut ops = Vec::new();
        repeat(&mut ops, loops, turn);
        let program = add_program(&mut w, "cyclictest", ops);
        let mut task = TaskTemplate::new("cyclictest", program, 0);
        task.thread = true;
        task.cgroup = Some(leaves[i as usize % leaves.len()]);
        let below = if args.smp { 0 } else { i.min(99) as u8 };
        class(&args, below, &mut task);
        if bound {
            task.affinity = Some(w.masks.len() as u32);
            w.masks.push(vec![i % env.cpus]);
        }
        told.push(CyclicThread {
            priority: task.real_time.map_or(0, |rt| rt.priority),
            interval_us,
        });
        w.templates.push(task);
    }
    w.initial = (0..threads).collect();
    w.no_idle_states = !args.laptop;
    ends(&args, &mut w);
    w.metrics = metrics();
    let policy = args
        .policy
        .as_deref()
        .unwrap_or(if args.priority > 0 { "fifo" } else { "other" });
    w.words = Words::Cyclictest {
        policy: policy.to_owned(),
        threads: told,
    };
    Ok(w)
}

/// Policy and priority of the thread that is `below` the first.
fn class(args: &Args, below: u8, task: &mut TaskTemplate) {
    use crate::workload::program::Policy;
    let priority = args.priority.saturating_sub(below);
    match args.policy.as_deref() {
        Some("batch") => task.policy = Policy::Batch,
        Some("idle") => task.policy = Policy::Idle,
        Some("other" | "normal") => {}
        rest => {
            let takes_turns = rest == Some("rr");
            let wanted = priority > 0 || rest.is_some();
            task.real_time = wanted.then(|| RealTime {
                priority: priority.max(1),
                takes_turns,
            });
        }
    }
}

/// When the run is over.
fn ends(args: &Args, w: &mut Workload) {
    match (args.duration, args.loops) {
        (Some(ns), _) => w.duration = Until::Time(ns),
        (None, 0) => {
            w.duration = Until::Time(ENDLESS_NS);
            w.notes
                .push("without -D or -l the tool goes on until it is stopped; here for 1 s".into());
        }
        // The others are stopped by the first.
        (None, _) => w.beside_from = 1,
    }
}

fn metrics() -> Vec<MetricDef> {
    let quantile = |permille| From::RequestQuantileUs {
        request: 0,
        permille,
    };
    let latency = |name: &str, from| {
        let name = format!("cyclictest.latency_us.{name}");
        MetricDef::new(name, "us", Better::Lower, from)
    };
    vec![
        latency("mean", From::RequestMeanUs(0)),
        latency("p50", quantile(500)),
        latency("p99", quantile(990)),
        latency("max", quantile(1000)),
        MetricDef::new("cyclictest.cycles", "1", Better::Neither, From::Requests(0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Setup, Sim};
    use crate::machine_file::Machine;

    const ENV: Env = Env { cpus: 8 };

    fn of(argv: &str) -> Result<Workload, Error> {
        let argv: Vec<&str> = argv.split(' ').collect();
        Workload::from_argv(&argv, &ENV)
    }

    /// Priority and interval of each thread.
    fn threads(argv: &str) -> Vec<(u8, u64)> {
        match of(argv).unwrap().words {
            Words::Cyclictest { threads, .. } => threads
                .iter()
                .map(|t| (t.priority, t.interval_us))
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn further_threads_have_less_priority_and_longer_intervals() {
        assert_eq!(threads("cyclictest"), [(0, 1000)]);
        let three = threads("cyclictest -t3 -p 2 -i 200");
        assert_eq!(three, [(2, 200), (1, 700), (0, 1200)]);
        assert_eq!(threads("cyclictest -t -p 80").len(), 8);
        assert_eq!(threads("cyclictest -S -p 80"), [(80, 1000); 8]);
        assert_eq!(threads("cyclictest -t 2 --policy rr -d 0"), [(1, 1000); 2]);
        assert!(of("cyclictest -a 0-3").is_err());
        assert!(of("cyclictest -p 100").is_err());
        let policies = of("cyclictest --policy batch").unwrap();
        assert_eq!(policies.templates[0].policy, crate::workload::Policy::Batch);
    }

    /// Mean latency in us, and what the tool prints.
    fn measured(argv: &str) -> (f64, String) {
        let workload = of(argv).unwrap();
        let machine = Machine::builtin("xeon-8cpu-2013").unwrap();
        let setup = Setup {
            machine: &machine,
            features: fairground::policy::Features::default(),
            workload: &workload,
            seed: 1,
            trace: false,
        };
        let mut sim = Sim::new(&setup).unwrap();
        sim.run().unwrap();
        let mean = workload.metrics[0].value(&sim.marks).unwrap();
        (mean, workload.words.print(&sim.marks))
    }

    /// Fair tasks have timers with 50 us of slack, and CPUs that may sleep take time to wake up.
    #[test]
    fn real_time_threads_wake_up_earlier_and_from_polling_at_once() {
        let (fifo, words) = measured("cyclictest -p 80 -l 20");
        let (fair, _) = measured("cyclictest -l 20");
        let (laptop, _) = measured("cyclictest -p 80 -l 20 --laptop -i 20000");
        assert!(fifo < 3.0 && (50.0..55.0).contains(&fair), "{fifo} {fair}");
        assert!(laptop > fifo + 20.0, "{laptop}");
        let line =
            "T: 0 ( 1000) P:80 I:1000 C:     20 Min:      1 Act:    1 Avg:    1 Max:       1";
        assert_eq!(words, format!("policy: fifo\n\n{line}"));
    }
}
