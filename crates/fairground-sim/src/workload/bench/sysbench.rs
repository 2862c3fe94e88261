//! The tests of sysbench 1.0 that need no database. See `docs/workloads/sysbench.md`.
use super::common::repeat;
use super::sysbench_frame::{General, Test, event, touch};
use super::{Env, Error, bad, options};
use crate::workload::program::{FOREVER, Op, PickBy, Touch, Unit, When, Workload};
use crate::workload::size::parse_bytes;
use crate::workload::sysbench_words::Speed;

/// sysbench threads: threads take turns with few mutexes and yield inside.
#[derive(clap::Parser, Debug)]
#[command(name = "sysbench threads", disable_version_flag = true)]
struct ThreadsArgs {
    /// Turns of an event; each locks, yields and unlocks.
    #[arg(long, default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    thread_yields: u64,
    /// Mutexes; an event uses one of them.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    thread_locks: u32,
    #[command(flatten)]
    general: General,
}

/// sysbench mutex: each thread locks random mutexes, with a loop before each.
#[derive(clap::Parser, Debug)]
#[command(name = "sysbench mutex", disable_version_flag = true)]
struct MutexArgs {
    /// Mutexes.
    #[arg(long, default_value_t = 4096,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    mutex_num: u32,
    /// Locks that each thread takes.
    #[arg(long, default_value_t = 50_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    mutex_locks: u64,
    /// Turns of an empty loop before each lock.
    #[arg(long, default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    mutex_loops: u64,
    #[command(flatten)]
    general: General,
}

/// sysbench cpu: looks for prime numbers by division.
#[derive(clap::Parser, Debug)]
#[command(name = "sysbench cpu", disable_version_flag = true)]
struct CpuArgs {
    /// Upper limit of the primes of an event.
    #[arg(long, default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    cpu_max_prime: u64,
    #[command(flatten)]
    general: General,
}

/// sysbench memory: reads or writes a block over and over.
#[derive(clap::Parser, Debug)]
#[command(name = "sysbench memory", disable_version_flag = true)]
struct MemoryArgs {
    /// Bytes of a block, a power of two.
    #[arg(long, default_value = "1K", value_parser = parse_bytes)]
    memory_block_size: u64,
    /// Bytes that all threads transfer.
    #[arg(long, default_value = "100G", value_parser = parse_bytes)]
    memory_total_size: u64,
    /// One block for all threads, or one for each.
    #[arg(long, default_value = "global", value_parser = ["global", "local"])]
    memory_scope: String,
    /// What is done with it.
    #[arg(long, default_value = "write", value_parser = ["read", "write", "none"])]
    memory_oper: String,
    /// In order, or at random.
    #[arg(long, default_value = "seq", value_parser = ["seq", "rnd"])]
    memory_access_mode: String,
    #[command(flatten)]
    general: General,
}

/// Bytes of a `pthread_mutex_t` on 64-bit Linux.
const MUTEX_BYTES: u32 = 40;

pub(super) fn parse_threads(argv: &[String], _env: Env) -> Result<Workload, Error> {
    let args: ThreadsArgs = options("sysbench threads", argv)?;
    let test = Test {
        tool: "sysbench threads",
        mode: String::new(),
        speed: Speed::None,
        per_thread: FOREVER,
        timed: false,
        // An array of its own begins at a line of its own.
        mutexes: args.thread_locks.next_multiple_of(8),
        counts: true,
    };
    test.build(argv, &args.general, MUTEX_BYTES, |w, ops, first_mutex| {
        // The number of the request says which mutex it uses.
        let request = w.budgets.len() as u32;
        w.budgets.push(FOREVER);
        let when = When::Empty(request);
        ops.push(Op::Leave { end: 0, when });
        event(ops, |ops| {
            ops.push(Op::Pick {
                first: first_mutex,
                of: args.thread_locks,
                by: PickBy::Ticket,
            });
            let turn = [Op::LockPicked, Op::Yield, Op::UnlockPicked];
            repeat(ops, args.thread_yields, turn);
        });
    })
}

pub(super) fn parse_mutex(argv: &[String], _env: Env) -> Result<Workload, Error> {
    let args: MutexArgs = options("sysbench mutex", argv)?;
    let test = Test {
        tool: "sysbench mutex",
        mode: String::new(),
        speed: Speed::None,
        per_thread: 1,
        timed: true,
        mutexes: args.mutex_num,
        counts: true,
    };
    test.build(argv, &args.general, 64, |w, ops, first_mutex| {
        let global_var = w.n_words;
        w.n_words += 1;
        event(ops, |ops| {
            let pick = Op::Pick {
                first: first_mutex,
                of: args.mutex_num,
                by: PickBy::Random,
            };
            // A turn of the empty loop compares and counts: one cycle.
            let work = Op::Work {
                unit: Unit::Cycle,
                n: args.mutex_loops,
            };
            // `thread_locks`, the address of the mutexes, stands beside it; on its line, as is
            // assumed.
            let increment = [
                touch(global_var, 1, Touch::Load),
                Op::LockPicked,
                touch(global_var, 1, Touch::Load),
                touch(global_var, 1, Touch::Store),
                Op::UnlockPicked,
            ];
            let turn = [pick, work].into_iter().chain(increment);
            repeat(ops, args.mutex_locks, turn);
        });
    })
}

pub(super) fn parse_cpu(argv: &[String], _env: Env) -> Result<Workload, Error> {
    let args: CpuArgs = options("sysbench cpu", argv)?;
    let test = Test {
        tool: "sysbench cpu",
        mode: format!("Prime numbers limit: {}\n\n", args.cpu_max_prime),
        speed: Speed::Cpu,
        per_thread: FOREVER,
        timed: false,
        mutexes: 0,
        counts: true,
    };
    let work = Op::Work {
        unit: Unit::Div64,
        n: divisions(args.cpu_max_prime).max(1),
    };
    test.build(argv, &args.general, 64, |_, ops, _| {
        event(ops, |ops| ops.push(work));
    })
}

pub(super) fn parse_memory(argv: &[String], _env: Env) -> Result<Workload, Error> {
    let args: MemoryArgs = options("sysbench memory", argv)?;
    let tool = "sysbench memory";
    let block = args.memory_block_size;
    if block < 8 || !block.is_power_of_two() || block > 1 << 30 {
        let message = "--memory-block-size: expected a power of two from 8 bytes to 1G";
        return Err(bad(tool, message));
    }
    let per_thread = args.memory_total_size / block / u64::from(args.general.threads);
    if per_thread == 0 {
        let message = "--memory-total-size: expected at least a block for each thread";
        return Err(bad(tool, message));
    }
    let (oper, scope) = (&args.memory_oper, &args.memory_scope);
    let test = Test {
        tool,
        mode: format!(
            "Running memory speed test with the following options:\n  block size: {}KiB\n  \
             total size: {}MiB\n  operation: {oper}\n  scope: {scope}\n\n",
            block >> 10,
            args.memory_total_size >> 20,
        ),
        speed: Speed::Memory {
            block: if oper == "none" { 0 } else { block },
        },
        per_thread,
        timed: false,
        mutexes: 0,
        counts: false,
    };
    let shared = scope == "global" && oper != "none" && args.general.threads > 1;
    let random = args.memory_access_mode == "rnd";
    test.build(argv, &args.general, 64, |w, ops, _| {
        let (first, lines) = (w.n_words, (block / 64).clamp(1, SHARED_LINES_MAX) as u32);
        w.n_words += if shared { lines } else { 0 };
        event(ops, |ops| {
            // A word of 8 bytes each cycle in order; a random number costs more than the access.
            let per_word = if random { RANDOM_CYCLES } else { 1 };
            ops.push(Op::Work {
                unit: Unit::Cycle,
                n: block / 8 * per_word,
            });
            if shared {
                let how = match oper.as_str() {
                    "read" => Touch::Load,
                    _ => Touch::Store,
                };
                ops.extend((0..lines).map(|i| match random {
                    true => touch(first, lines, how),
                    false => touch(first + i, 1, how),
                }));
            }
        });
    })
}

/// Most lines of a shared block whose way between caches is modelled.
const SHARED_LINES_MAX: u64 = 64;
/// Cycles of a random number with its conversion from and to a floating-point number: estimate from
/// the length of the code.
const RANDOM_CYCLES: u64 = 15;

/// Divisions until the primes below `limit` are known: each number from 3 on is divided by 2, 3,
/// and so on up to its root or its first divisor.
fn divisions(limit: u64) -> u64 {
    let of = |c: u64| {
        let roots = (2..).take_while(move |l| l * l <= c);
        let tried = roots
            .clone()
            .take_while(move |l| !c.is_multiple_of(*l))
            .count() as u64;
        let composite = tried < roots.count() as u64;
        tried + u64::from(composite)
    };
    (3..limit).map(of).sum()
}
