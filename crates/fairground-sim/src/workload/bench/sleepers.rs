//! Tasks that a periodic timer wakes. See `docs/workloads/sleepers.md`.
use super::common::{Groups, add_program, length, none_spare, positive, repeat};
use super::{Env, Error, options};
use crate::workload::duration::parse_dur;
use crate::workload::metric::Work;
use crate::workload::metric::{Better, CpuTime, From, MetricDef, PERCENTILES};
use crate::workload::program::{Dur, FOREVER, Ns, Op, TaskTemplate, Until, Workload};
use crate::workload::size::parse_bytes;

/// sleepers: tasks that wake up by a periodic timer, compute a little and sleep again.
#[derive(clap::Parser, Debug)]
#[command(name = "sleepers", disable_version_flag = true)]
struct Args {
    /// Number of tasks; by default one per CPU.
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    tasks: Option<u32>,
    /// Period of the timer.
    #[arg(short, long, default_value = "1ms", value_parser = positive)]
    period: Ns,
    /// What each turn computes: a duration or a distribution like "exp 20us".
    #[arg(short, long, default_value = "20us", value_parser = parse_dur)]
    run: Dur,
    /// Length of the measurement.
    #[arg(short, long, default_value = "1s", value_parser = positive)]
    duration: Ns,
    /// Time before the measurement that does not count.
    #[arg(long, default_value = "0", value_parser = length)]
    warmup: Ns,
    /// All timers expire at the same times; by default they are spread evenly over the period.
    #[arg(long)]
    in_phase: bool,
    /// Nice values, dealt to the tasks in turn.
    #[arg(long, value_name = "N,..", value_delimiter = ',', allow_hyphen_values = true,
          value_parser = clap::value_parser!(i8).range(-20..=19))]
    nice: Vec<i8>,
    /// Memory that each task goes through in a turn, like 256KiB: after a move, or where others
    /// have pushed it out of the caches, the turn takes longer.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    working_set: Option<u64>,
    #[command(flatten)]
    cgroups: Groups,
}

pub(super) fn parse(argv: &[String], env: Env) -> Result<Workload, Error> {
    let args: Args = options("sleepers", argv)?;
    let mut w = Workload::new("sleepers", argv.to_vec());
    let leaves = args.cgroups.build("sleepers", &mut w)?;
    let tasks = args.tasks.unwrap_or(env.cpus).max(1);
    w.requests = vec!["turn".into()];
    w.marks = vec!["turn".into()];
    let turn = [
        Op::Period(Dur::Const(args.period)),
        Op::ReqStartDue(0),
        Op::Run(args.run),
        Op::ReqEnd(0),
        Op::Mark(0),
    ];
    let mut ops = Vec::new();
    repeat(&mut ops, FOREVER, turn);
    let program = add_program(&mut w, "sleeper", ops);
    none_spare(
        "sleepers",
        "--nice",
        args.nice.len(),
        tasks as usize,
        "task",
    )?;
    for i in 0..tasks {
        let mut task = TaskTemplate::new("sleeper", program, i);
        task.cgroup = Some(leaves[i as usize % leaves.len()]);
        if !args.nice.is_empty() {
            task.nice = args.nice[i as usize % args.nice.len()];
        }
        task.working_set_bytes = args.working_set;
        task.fetches = true;
        if !args.in_phase {
            let share = u128::from(args.period) * u128::from(i) / u128::from(tasks);
            task.start_ns = share as Ns;
        }
        w.templates.push(task);
    }
    w.initial = (0..tasks).collect();
    w.duration = Until::Time(args.warmup + args.duration);
    w.warmup_ns = args.warmup;
    w.work = Some(Work::new("turn", From::Count(0)));
    w.metrics = metrics();
    if args.working_set.is_some() {
        w.metrics.push(MetricDef::fetching("sleepers.fetch_pct"));
    }
    Ok(w)
}

fn metrics() -> Vec<MetricDef> {
    let quantile = |permille| From::RequestQuantileUs {
        request: 0,
        permille,
    };
    let latency = |name: &str, from| {
        MetricDef::new(
            format!("sleepers.turn_us.{name}"),
            "us",
            Better::Lower,
            from,
        )
    };
    let share = |name: &str, part| {
        let name = format!("sleepers.{name}_pct");
        MetricDef::new(name, "%", Better::Neither, From::CpuTime(part))
    };
    let mut all = vec![latency("mean", From::RequestMeanUs(0))];
    all.extend(PERCENTILES.map(|(name, permille)| latency(name, quantile(permille))));
    all.extend([
        latency("max", quantile(1000)),
        MetricDef::new(
            "sleepers.turns_per_s",
            "1/s",
            Better::Higher,
            From::CountPerS(0),
        ),
        MetricDef::new("sleepers.cpu_s", "s", Better::Neither, From::CpuS),
        share("us", CpuTime::User),
        share("sy", CpuTime::System),
        share("id", CpuTime::Idle),
    ]);
    all
}
