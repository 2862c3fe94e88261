//! Tasks that compute all the time. See `docs/workloads/hogs.md`.
use super::common::{Groups, add_program, length, none_spare, positive};
use super::{Env, Error, options};
use crate::workload::metric::Work;
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::program::{Ns, Op, TaskTemplate, Until, Workload};

/// hogs: tasks that compute all the time.
#[derive(clap::Parser, Debug)]
#[command(name = "hogs", disable_version_flag = true)]
struct Args {
    /// Number of tasks; by default one per CPU.
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    tasks: Option<u32>,
    /// Length of the measurement.
    #[arg(short, long, default_value = "1s", value_parser = positive)]
    duration: Ns,
    /// Time before the measurement that does not count.
    #[arg(long, default_value = "0", value_parser = length)]
    warmup: Ns,
    /// Nice values, dealt to the tasks in turn.
    #[arg(long, value_name = "N,..", value_delimiter = ',', allow_hyphen_values = true,
          value_parser = clap::value_parser!(i8).range(-20..=19))]
    nice: Vec<i8>,
    #[command(flatten)]
    cgroups: Groups,
}

pub(super) fn parse(argv: &[String], env: Env) -> Result<Workload, Error> {
    let args: Args = options("hogs", argv)?;
    let mut w = Workload::new("hogs", argv.to_vec());
    let leaves = args.cgroups.build("hogs", &mut w)?;
    let tasks = args.tasks.unwrap_or(env.cpus).max(1);
    let program = add_program(&mut w, "hog", vec![Op::Hog]);
    none_spare("hogs", "--nice", args.nice.len(), tasks as usize, "task")?;
    for i in 0..tasks {
        let mut task = TaskTemplate::new("hog", program, i);
        task.cgroup = Some(leaves[i as usize % leaves.len()]);
        if !args.nice.is_empty() {
            task.nice = args.nice[i as usize % args.nice.len()];
        }
        w.templates.push(task);
    }
    w.initial = (0..tasks).collect();
    w.duration = Until::Time(args.warmup + args.duration);
    w.warmup_ns = args.warmup;
    let fairness = From::Fairness {
        first: 0,
        end: tasks,
    };
    w.work = Some(Work::new("s of CPU time", From::CpuS));
    w.metrics = vec![
        MetricDef::new("hogs.cpu_s", "s", Better::Higher, From::CpuS),
        MetricDef::new("hogs.fairness", "1", Better::Neither, fairness),
    ];
    Ok(w)
}
