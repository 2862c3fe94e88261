//! ebizzy 0.3. See `docs/workloads/ebizzy.md`.
use super::common::{Groups, TASKS_MAX, add_program, repeat, seconds};
use super::{Env, Error, bad, options};
use crate::workload::duration::Dur;
use crate::workload::marks::{MARK_END, MARK_START};
use crate::workload::metric::Work;
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::program::{FOREVER, Ns, Op, TaskTemplate, Unit, When, Workload};
use crate::workload::words::Words;

/// ebizzy: threads copy chunks of memory and look something up in the copy.
#[derive(clap::Parser, Debug)]
#[command(name = "ebizzy", disable_version_flag = true)]
struct Args {
    /// Threads; by default two per CPU.
    #[arg(short = 't', value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    threads: Option<u32>,
    /// Time to run: seconds, or with a unit ("50ms").
    #[arg(short = 'S', value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    seconds: Ns,
    /// Chunks.
    #[arg(short = 'n', value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    chunks: u64,
    /// Bytes of a chunk.
    #[arg(short = 's', value_name = "BYTES", default_value_t = 524_288,
          value_parser = clap::value_parser!(u64).range(8..=1 << 30))]
    size: u64,
    /// Copies byte by byte instead of with memcpy.
    #[arg(short = 'l')]
    no_lib_memcpy: bool,
    /// Never uses mmap (what the model does anyway).
    #[arg(short = 'M')]
    never_mmap: bool,
    /// Searches from the start instead of by halves.
    #[arg(short = 'z')]
    linear: bool,
    #[command(flatten)]
    cgroups: Groups,
}

/// Grain of the loop in which threads wait for the start.
const SPIN_CYCLES: u64 = 3000;
/// A step of a binary search: a load that depends on the one before and a branch that is often
/// mispredicted. Estimate.
const PROBE_CYCLES: u64 = 30;

pub(super) fn parse(argv: &[String], env: Env) -> Result<Workload, Error> {
    let args: Args = options("ebizzy", argv)?;
    if args.seconds == 0 {
        return Err(bad("ebizzy", "-S: expected more than 0"));
    }
    let threads = args.threads.unwrap_or(2 * env.cpus).max(1);
    let mut w = Workload::new("ebizzy", argv.to_vec());
    let leaves = args.cgroups.build("ebizzy", &mut w)?;
    let instances = args.cgroups.tree.map_or(1, |_| leaves.len() as u32);
    let tasks = u64::from(instances) * u64::from(threads + 1);
    if tasks > TASKS_MAX {
        let message = format!("{tasks} tasks are more than {TASKS_MAX}");
        return Err(bad("ebizzy", message));
    }
    w.marks = vec!["start".into(), "end".into()];
    w.requests = vec!["record".into()];
    for (instance, &leaf) in leaves.iter().enumerate().take(instances as usize) {
        add_instance(&mut w, &args, threads, instance as u32, leaf);
    }
    w.words = Words::Ebizzy;
    let (start, end, request) = (MARK_START, MARK_END, 0);
    w.work = Some(Work::new("record", From::Requests(request)));
    let per_s = From::RequestsPerSpanS {
        start,
        end,
        request,
    };
    let mean = From::RequestMeanUs(request);
    w.metrics = vec![
        MetricDef::new("ebizzy.records_per_s", "1/s", Better::Higher, per_s),
        MetricDef::new("ebizzy.record_us.avg", "us", Better::Lower, mean),
        MetricDef::new("ebizzy.cpu_s", "s", Better::Neither, From::CpuS),
    ];
    Ok(w)
}

fn add_instance(w: &mut Workload, args: &Args, threads: u32, instance: u32, leaf: u32) {
    let go = w.marks.len() as u32;
    w.marks.push(format!("go of {instance}"));
    w.marks.push(format!("stop of {instance}"));
    let program = add_program(w, "searcher", searcher(args, go, go + 1));
    let mut task = TaskTemplate::new("ebizzy", program, instance);
    task.thread = true;
    task.cgroup = Some(leaf);
    let template = w.templates.len() as u32;
    w.templates.push(task);

    let pattern = Op::Work {
        unit: Unit::Line {
            set_bytes: args.chunks * args.size,
        },
        n: (args.chunks * args.size).div_ceil(64),
    };
    let mut ops = vec![pattern];
    repeat(&mut ops, u64::from(threads), [Op::Fork { template }]);
    ops.extend([
        Op::Mark(MARK_START),
        Op::Mark(go),
        Op::Sleep(Dur::Const(args.seconds)),
        Op::Mark(MARK_END),
        Op::Mark(go + 1),
        Op::Join,
    ]);
    let program = add_program(w, "main", ops);
    let mut main = TaskTemplate::new("ebizzy", program, instance);
    main.cgroup = Some(leaf);
    w.initial.push(w.templates.len() as u32);
    w.templates.push(main);
}

/// A thread: spins until the start, then copies and searches until the stop.
fn searcher(args: &Args, go: u32, stop: u32) -> Vec<Op> {
    let cycles = |n| Op::Work {
        unit: Unit::Cycle,
        n,
    };
    let leave = |mark, end| Op::Leave {
        end,
        when: When::Passed(mark),
    };
    let mut ops = Vec::new();
    repeat(&mut ops, FOREVER, [leave(go, 3), cycles(SPIN_CYCLES)]);
    let copy = match args.no_lib_memcpy {
        true => cycles(args.size),
        false => Op::Work {
            unit: Unit::Line {
                set_bytes: (args.chunks + 1) * args.size,
            },
            n: args.size.div_ceil(64),
        },
    };
    let records = (args.size / 8).max(1);
    // A key is found half-way on average.
    let search = match args.linear {
        true => cycles((records / 2).max(1)),
        false => cycles(PROBE_CYCLES * u64::from(records.ilog2() + 1)),
    };
    let turn = [
        leave(stop, 10),
        Op::ReqStart(0),
        copy,
        search,
        Op::ReqEnd(0),
    ];
    repeat(&mut ops, FOREVER, turn);
    debug_assert_eq!(ops.len(), 11);
    ops
}
