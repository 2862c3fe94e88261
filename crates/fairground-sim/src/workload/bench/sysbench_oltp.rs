//! sysbench oltp_read_only against PostgreSQL. See `docs/workloads/sysbench-oltp.md`.
use super::common::{Groups, add_program, length, repeat};
use super::netperf_args::seconds;
use super::sysbench_frame::head;
use super::{Env, Error, bad, options};
use crate::rng::{SPLITMIX64_STEP, mix};
use crate::workload::inet::Reader;
use crate::workload::metric::Work;
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::op::Touch;
use crate::workload::program::{Dur, FOREVER, Inet, Ns, Op, TaskTemplate, Until, Workload};
use crate::workload::sysbench_words::{Speed, SysbenchWords, Workers};
use crate::workload::words::Words;

const TOOL: &str = "sysbench oltp_read_only";

/// sysbench oltp_read_only: read-only transactions, each client thread with a PostgreSQL backend.
#[derive(clap::Parser, Debug)]
#[command(name = "sysbench oltp_read_only", disable_version_flag = true)]
struct Args {
    /// Client threads, each with a connection of its own.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    threads: u32,
    /// Length of the measurement: seconds, or a duration with its unit. The tool's default is 10
    /// seconds.
    #[arg(long, value_name = "SECONDS", default_value = "100ms",
          value_parser = seconds)]
    time: Ns,
    /// Tables.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    tables: u32,
    /// Rows of a table; all of it is cached.
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    table_size: u32,
    /// Percentile of the latency that is printed, 0 for none.
    #[arg(long, default_value_t = 95, value_parser = clap::value_parser!(u32).range(0..=100))]
    percentile: u32,
    /// Limit for the number of transactions: only 0, none.
    #[arg(long, value_name = "N", default_value = "0", value_parser = no_events)]
    events: u32,
    /// Database: only this one.
    #[arg(long, value_name = "NAME", default_value = "pgsql", value_parser = pgsql)]
    db_driver: String,
    /// Selects of one row in a transaction.
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(0..=1000))]
    point_selects: u32,
    /// Whether there are selects of ranges.
    #[arg(long, value_name = "BOOL", default_value = "on", value_parser = on_off,
          action = clap::ArgAction::Set)]
    range_selects: bool,
    /// Rows of a range.
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    range_size: u32,
    /// Selects of a range.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    simple_ranges: u32,
    /// Sums over a range.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    sum_ranges: u32,
    /// Sorted selects of a range.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    order_ranges: u32,
    /// Selects of what is distinct in a range.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    distinct_ranges: u32,
    /// No BEGIN and COMMIT.
    #[arg(long, value_name = "BOOL", default_value = "off", value_parser = on_off,
          action = clap::ArgAction::Set)]
    skip_trx: bool,
    /// Time before the measurement that does not count; by default until all tasks are there, and
    /// 15 ms.
    #[arg(long, value_parser = length)]
    warmup: Option<Ns>,
    /// What to do: only this.
    #[arg(value_parser = run)]
    command: Option<String>,
    #[command(flatten)]
    cgroups: Groups,
}

fn pgsql(text: &str) -> Result<String, String> {
    let known = (text == "pgsql").then(|| text.to_owned());
    known.ok_or_else(|| "expected pgsql, the only database that is modelled".into())
}

fn run(text: &str) -> Result<String, String> {
    let known = (text == "run").then(|| text.to_owned());
    known.ok_or_else(|| "expected run: the tables are always there".into())
}

fn no_events(text: &str) -> Result<u32, String> {
    match text {
        "0" => Ok(0),
        _ => Err("expected 0: --time says how long, transactions before it do not count".into()),
    }
}

fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err("expected on or off".into()),
    }
}

/// A kind of statement: what it computes apart from system calls, and what it sends.
struct Statement {
    /// The backend's own time.
    backend_ns: u64,
    /// The client's, from an answer to the next statement.
    client_ns: u64,
    /// Bytes of the statement (`Bind`, `Execute`, `Sync` of a prepared one).
    request: u32,
    /// Bytes of the answer.
    reply: u32,
    /// How much of the backend's time is over before it sends rows, in percent.
    before_rows: u64,
    /// Whether it reads a table: takes a snapshot and descends an index.
    reads: bool,
}

/// BEGIN and COMMIT.
const CONTROL: Statement = Statement {
    backend_ns: 4_400,
    client_ns: 2_700,
    request: 60,
    reply: 40,
    before_rows: 100,
    reads: false,
};
/// One row by its key.
const POINT: Statement = Statement {
    backend_ns: 17_500,
    client_ns: 4_600,
    request: 60,
    reply: 180,
    before_rows: 100,
    reads: true,
};
/// The sum of an integer over 100 rows.
const SUM: Statement = Statement {
    backend_ns: 54_000,
    client_ns: 4_600,
    request: 70,
    reply: 60,
    before_rows: 100,
    reads: true,
};
/// A string of 120 bytes from each of 100 rows: as they are found; sorted; without equals.
const SIMPLE: Statement = Statement {
    backend_ns: 81_000,
    client_ns: 19_000,
    request: 70,
    reply: 13_300,
    before_rows: 0,
    reads: true,
};
const ORDER: Statement = Statement {
    backend_ns: 142_000,
    client_ns: 22_000,
    before_rows: 70,
    ..SIMPLE
};
const DISTINCT: Statement = Statement {
    backend_ns: 145_000,
    client_ns: 18_000,
    before_rows: 70,
    ..SIMPLE
};

/// PostgreSQL sends when this many bytes are there.
const SEND_BUFFER: u32 = 8192;
/// Rows of a range in the measurements.
const ROWS_MEASURED: u64 = 100;
/// Differences between statements of a kind, in percent; assumed.
const SPREAD_PERCENT: u64 = 10;
/// Transactions with tables of their own before a client's choices repeat.
const TRANSACTIONS: u32 = 2;
/// Words of shared memory: the lock that a snapshot takes, the locks of the partitions of the table
/// of buffers, and the descriptors of buffers: the roots of the indexes, then all other pages.
const PROC_ARRAY: u32 = 0;
const MAPPING: u32 = 1;
const MAPPING_PARTITIONS: u32 = 128;
const BUFFERS: u32 = MAPPING + MAPPING_PARTITIONS;
/// Snapshots of a statement that reads: one to bind its parameters, one to run it.
const SNAPSHOTS: u32 = 2;
/// Pages that it looks up beside the root of its index: 56 lookups in a transaction. Counted with
/// tables whose index has two levels; a third is one page more.
const OTHER_PAGES: u32 = 3;
/// Rows of a table in a page of it, and in a page of its index (226 bytes and 20 for each).
const ROWS_OF_PAGE: u32 = 36;
const KEYS_OF_PAGE: u32 = 367;
/// Pages of all tables: each has a line in the model.
const PAGES_MAX: u64 = 4_000_000;
/// A backend and a client thread are made one after the other.
const START_NS: Ns = 70_000;
const SETTLE_NS: Ns = 15_000_000;
const TRANSACTION: u32 = 0;

pub(super) fn parse(argv: &[String], env: Env) -> Result<Workload, Error> {
    let args: Args = options(TOOL, argv)?;
    let pages = u64::from(args.tables) * pages_of_table(&args);
    if pages > PAGES_MAX {
        let message = format!(
            "{} tables of {} rows have {pages} pages; expected at most {PAGES_MAX}",
            args.tables, args.table_size
        );
        return Err(bad(TOOL, message));
    }
    if statements(&args).is_empty() {
        return Err(bad(TOOL, "a transaction without statements"));
    }
    let mut w = Workload::new("sysbench-oltp", argv.to_vec());
    let leaves = args.cgroups.build(TOOL, &mut w)?;
    w.marks = vec!["transaction".into()];
    w.requests = vec!["transaction".into()];
    w.n_words = BUFFERS + args.tables + other_pages(&args);
    for client in 0..args.threads {
        let leaf = leaves[client as usize % leaves.len()];
        add_client(&mut w, &args, client, leaf);
    }
    w.initial = (0..2 * args.threads).collect();
    let created = START_NS * Ns::from(args.threads);
    w.warmup_ns = args.warmup.unwrap_or(created + SETTLE_NS);
    w.duration = Until::Time(w.warmup_ns + args.time);
    w.notes.extend(short_warm_up(&args, w.warmup_ns, env.cpus));
    w.work = Some(Work::new("transaction", From::Count(TRANSACTION)));
    results(&mut w, &args);
    Ok(w)
}

/// What to say if the first transactions of all clients, which begin at the same time, last longer
/// than the warm-up: rates are those of the start, then.
fn short_warm_up(args: &Args, warmup_ns: Ns, cpus: u32) -> Option<String> {
    let of_one = |s: &Statement| {
        s.scaled(s.backend_ns, POINT.backend_ns, args)
            + s.scaled(s.client_ns, POINT.client_ns, args)
    };
    let one: u64 = statements(args).into_iter().map(of_one).sum();
    let first_ns = one * u64::from(args.threads) / u64::from(cpus.max(1));
    let ms = |ns: u64| ns.div_ceil(1_000_000);
    (first_ns > warmup_ns).then(|| {
        format!(
            "the warm-up of {} ms is shorter than the first transactions of {} clients, which take \
             {} ms on {cpus} CPUs; --warmup makes it longer",
            ms(warmup_ns),
            args.threads,
            ms(first_ns)
        )
    })
}

/// The statements of a transaction, in their order.
fn statements(args: &Args) -> Vec<&'static Statement> {
    let control = u32::from(!args.skip_trx);
    let ranges = u32::from(args.range_selects);
    let kinds = [
        (&CONTROL, control),
        (&POINT, args.point_selects),
        (&SIMPLE, ranges * args.simple_ranges),
        (&SUM, ranges * args.sum_ranges),
        (&ORDER, ranges * args.order_ranges),
        (&DISTINCT, ranges * args.distinct_ranges),
        (&CONTROL, control),
    ];
    kinds
        .into_iter()
        .flat_map(|(kind, n)| std::iter::repeat_n(kind, n as usize))
        .collect()
}

fn add_client(w: &mut Workload, args: &Args, client: u32, leaf: u32) {
    let there = w.inets.len() as u32;
    let reader = |reader| match Inet::REQUEST {
        Inet::Tcp {
            sndbuf,
            window,
            piggyback,
            ..
        } => Inet::Tcp {
            sndbuf,
            window,
            piggyback,
            reader,
        },
        udp @ Inet::Udp { .. } => udp,
    };
    // The backend waits in epoll_wait, libpq in poll.
    w.inets.push(reader(Reader::Epoll));
    w.inets.push(reader(Reader::Poll));
    let (mut asks, mut answers) = (Vec::new(), Vec::new());
    let mut choice = Choice {
        state: client.into(),
    };
    for _ in 0..TRANSACTIONS {
        asks.push(Op::ReqStart(0));
        for statement in statements(args) {
            statement.ask(&mut asks, args, there);
            statement.answer(&mut answers, args, there, &mut choice);
        }
        asks.extend([Op::ReqEnd(0), Op::Mark(TRANSACTION)]);
    }
    for (name, body, process) in [("postgres", answers, client + 1), ("sysbench", asks, 0)] {
        let mut ops = Vec::new();
        repeat(&mut ops, FOREVER, body);
        let program = add_program(w, name, ops);
        let mut task = TaskTemplate::new(name, program, process);
        task.thread = process == 0;
        task.cgroup = Some(leaf);
        w.templates.push(task);
    }
}

impl Statement {
    /// Rows, as many times as in the measurement.
    fn scaled(&self, ns: u64, of_one_row: u64, args: &Args) -> u64 {
        if !self.reads || self.backend_ns == POINT.backend_ns {
            return ns;
        }
        of_one_row + ns.saturating_sub(of_one_row) * u64::from(args.range_size) / ROWS_MEASURED
    }

    fn reply_bytes(&self, args: &Args) -> u32 {
        if self.reply <= SEND_BUFFER {
            return self.reply;
        }
        let bytes = u64::from(self.reply) * u64::from(args.range_size) / ROWS_MEASURED;
        (bytes as u32).max(POINT.reply)
    }

    /// Sizes of the pieces in which the answer is sent.
    fn pieces(&self, args: &Args) -> Vec<u32> {
        let bytes = self.reply_bytes(args);
        let mut pieces = vec![SEND_BUFFER; (bytes / SEND_BUFFER) as usize];
        if !bytes.is_multiple_of(SEND_BUFFER) {
            pieces.push(bytes % SEND_BUFFER);
        }
        pieces
    }

    fn ask(&self, ops: &mut Vec<Op>, args: &Args, there: u32) {
        let ns = self.scaled(self.client_ns, POINT.client_ns, args);
        ops.push(Op::Run(spread(ns)));
        let bytes = self.request;
        ops.push(Op::Send { inet: there, bytes });
        for bytes in self.pieces(args) {
            let inet = there + 1;
            ops.push(Op::Recv { inet, bytes });
        }
    }

    fn answer(&self, ops: &mut Vec<Op>, args: &Args, there: u32, choice: &mut Choice) {
        let bytes = self.request;
        ops.push(Op::Recv { inet: there, bytes });
        if self.reads {
            for _ in 0..SNAPSHOTS {
                ops.extend(shared_lock(PROC_ARRAY));
            }
            ops.extend(read_page(choice.below(args.tables)));
            for _ in 0..OTHER_PAGES + third_level(args) {
                ops.extend(read_page(args.tables + choice.below(other_pages(args))));
            }
        }
        let ns = self.scaled(self.backend_ns, POINT.backend_ns, args);
        let pieces = self.pieces(args);
        let before = ns * self.before_rows / 100;
        let each = (ns - before) / pieces.len() as u64;
        for (i, &bytes) in pieces.iter().enumerate() {
            let ns = if i == 0 { before + each } else { each };
            if ns > 0 {
                ops.push(Op::Run(spread(ns)));
            }
            let inet = there + 1;
            ops.push(Op::Send { inet, bytes });
        }
    }
}

/// Pages of all tables and their indexes, but the roots.
fn other_pages(args: &Args) -> u32 {
    args.tables * pages_of_table(args) as u32
}

fn pages_of_table(args: &Args) -> u64 {
    let of = |rows_of_page| u64::from(args.table_size.div_ceil(rows_of_page));
    of(ROWS_OF_PAGE) + of(KEYS_OF_PAGE)
}

/// 1 if the root of an index cannot name all of its leaves.
fn third_level(args: &Args) -> u32 {
    u32::from(args.table_size.div_ceil(KEYS_OF_PAGE) > KEYS_OF_PAGE)
}

/// A lock in shared mode: `LWLockAcquire` counts itself in by a compare-and-swap, `LWLockRelease`
/// subtracts. Nobody has it exclusively, so nobody sleeps. Between the two nothing is computed
/// here: a snapshot that can be used again takes some 65 instructions (`GetSnapshotDataReuse`), an
/// estimate by its source.
fn shared_lock(first: u32) -> [Op; 2] {
    [Touch::CasLoop, Touch::Rmw].map(|how| Op::Touch { first, of: 1, how })
}

/// A page is found by the table of buffers, pinned, its content locked, and all given back. Pin and
/// unpin swap the word of state, on the line that has the content's lock.
fn read_page(page: u32) -> impl Iterator<Item = Op> {
    let (first, of, how) = (BUFFERS + page, 1, Touch::CasLoop);
    let pin = Op::Touch { first, of, how };
    let all = [pin].into_iter().chain(shared_lock(first)).chain([pin]);
    shared_lock(MAPPING + page % MAPPING_PARTITIONS)
        .into_iter()
        .chain(all)
}

fn spread(ns: u64) -> Dur {
    let part = ns * SPREAD_PERCENT / 100;
    Dur::Uniform {
        lo: ns - part,
        hi: ns + part,
    }
}

/// Each statement reads a table and pages chosen at random.
struct Choice {
    state: u64,
}

impl Choice {
    /// SplitMix64, below `n`.
    fn below(&mut self, n: u32) -> u32 {
        self.state = self.state.wrapping_add(SPLITMIX64_STEP);
        (mix(self.state) % u64::from(n)) as u32
    }
}

fn results(w: &mut Workload, args: &Args) {
    let queries = statements(args).len() as u32;
    let tps = From::CountPerS(TRANSACTION);
    let mark = TRANSACTION;
    let factor = f64::from(queries);
    let quantile = From::RequestQuantileUs {
        request: 0,
        permille: 950,
    };
    let higher = |name: &str, from| MetricDef::new(name, "1/s", Better::Higher, from);
    let lower = |name: &str, from| MetricDef::new(name, "us", Better::Lower, from);
    w.metrics = vec![
        higher("oltp.tps", tps),
        higher("oltp.queries_per_s", From::ScaledPerS { mark, factor }),
        lower("oltp.latency_us.mean", From::RequestMeanUs(0)),
        lower("oltp.latency_us.p95", quantile),
    ];
    let control = 2 * u32::from(!args.skip_trx);
    w.words = Words::Sysbench(SysbenchWords {
        head: head(args.threads, ""),
        speed: Speed::Oltp {
            reads: queries - control,
            other: control,
        },
        // A backend, then its client.
        workers: Workers {
            end: 2 * args.threads,
            every: 2,
        },
        percentile: args.percentile,
    });
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error, make};
    use super::*;
    use crate::workload::marks::TaskTime;

    fn ops<'a>(w: &'a Workload, name: &str) -> &'a [Op] {
        &w.programs.iter().find(|p| p.name == name).unwrap().ops
    }

    #[test]
    fn a_transaction_has_the_statements_of_the_tool() {
        let w = make("sysbench oltp_read_only --threads=3 --tables=16 --table_size=10000 run");
        assert_eq!(w.templates.len(), 6);
        let sends = |ops: &[Op]| ops.iter().filter(|o| matches!(o, Op::Send { .. })).count();
        // BEGIN, 10 rows, 4 ranges, COMMIT; three of the answers come in two pieces.
        assert_eq!(sends(ops(&w, "sysbench")), 16 * TRANSACTIONS as usize);
        assert_eq!(sends(ops(&w, "postgres")), 19 * TRANSACTIONS as usize);
        // Threads of one client process, a backend process each.
        assert!(w.templates[1].thread && w.templates[1].process == w.templates[3].process);
        assert_ne!(w.templates[0].process, w.templates[2].process);
        let w = make("sysbench oltp_read_only --skip-trx=on --range-selects=off --point_selects=2");
        assert_eq!(sends(ops(&w, "postgres")), 2 * TRANSACTIONS as usize);
    }

    #[test]
    fn a_transaction_takes_the_locks_that_were_counted() {
        let w = make("sysbench oltp_read_only --tables=16");
        let touches = |words: std::ops::Range<u32>, how| {
            let is = |op: &&Op| match op {
                Op::Touch { first, how: h, .. } => words.contains(first) && *h == how,
                _ => false,
            };
            ops(&w, "postgres").iter().filter(is).count() / TRANSACTIONS as usize
        };
        let mapping = MAPPING..BUFFERS;
        assert_eq!(touches(PROC_ARRAY..MAPPING, Touch::CasLoop), 28);
        assert_eq!(touches(mapping.clone(), Touch::CasLoop), 56);
        assert_eq!(touches(mapping, Touch::Rmw), 56);
        // Pin, lock, unpin; the root of the index is one of four pages.
        assert_eq!(touches(BUFFERS..w.n_words, Touch::CasLoop), 3 * 56);
        assert_eq!(touches(BUFFERS..BUFFERS + 16, Touch::Rmw), 14);
    }

    #[test]
    fn larger_tables_have_a_level_more() {
        let lookups = |rows: u32| {
            let w = make(&format!("sysbench oltp_read_only --table-size={rows}"));
            let is = |op: &&Op| {
                matches!(op, Op::Touch { first, how: Touch::Rmw, .. }
                if (MAPPING..BUFFERS).contains(first))
            };
            ops(&w, "postgres").iter().filter(is).count() / TRANSACTIONS as usize
        };
        assert_eq!([100_000, 134_689, 134_690].map(lookups), [56, 56, 70]);
    }

    #[test]
    fn more_clients_than_the_warm_up_is_made_for_are_noted() {
        let notes = |line: &str| make(&format!("sysbench oltp_read_only {line}")).notes;
        assert!(notes("--threads=200").is_empty());
        let said = notes("--threads=1000").join("");
        assert!(said.contains("the warm-up of 85 ms is shorter"), "{said}");
        assert!(notes("--threads=1000 --warmup=1s").is_empty());
        assert_eq!(notes("--threads=50 --warmup=1ms").len(), 1);
    }

    #[test]
    fn a_longer_range_costs_more() {
        let run = |line: &str| {
            let w = make(line);
            let time = |op: &Op| match op {
                Op::Run(Dur::Uniform { lo, hi }) => lo.midpoint(*hi),
                _ => 0,
            };
            ops(&w, "postgres").iter().map(time).sum::<u64>()
        };
        let base = "sysbench oltp_read_only --skip-trx=on --point-selects=0";
        assert!(run(&format!("{base} --range-size=200")) > run(base) * 3 / 2);
    }

    #[test]
    fn the_words_of_the_tool() {
        let w = make("sysbench oltp_read_only --threads=2");
        let mut marks = w.empty_marks();
        for _ in 0..100 {
            marks.mark(0, w.warmup_ns);
            marks.request(0, w.warmup_ns, w.warmup_ns + 2_000_000);
        }
        marks.elapsed_ns = 100_000_000;
        marks.tasks = (0..4)
            .map(|template| TaskTime {
                template,
                requests: [0, 40, 0, 60][template as usize],
                request_ns: [0, 100_000_000, 0, 100_000_000][template as usize],
                ..TaskTime::default()
            })
            .collect();
        let words = w.words.print(&marks);
        for line in [
            "        read:                            1400",
            "        other:                           200",
            "    transactions:                        100    (1000.00 per sec.)",
            "    queries:                             1600   (16000.00 per sec.)",
            "    total time:                          0.1000s",
            // A slot of the tool's histogram, not 2.00.
            "         95th percentile:                        2.00",
            "         sum:                                  200.00",
            "    events (avg/stddev):           50.0000/10.00",
            "    execution time (avg/stddev):   0.1000/0.00",
        ] {
            assert!(words.contains(line), "{words}");
        }
        assert_eq!(w.metrics[0].value(&marks), Some(1000.0));
        assert_eq!(w.metrics[1].value(&marks), Some(16000.0));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, expected) in [
            (
                "sysbench oltp_read_only --thread=3",
                "did you mean '--threads'?",
            ),
            (
                "sysbench oltp_read_only --skip-trx=maybe",
                "expected on or off",
            ),
            ("sysbench oltp_read_only prepare", "expected run"),
            ("sysbench oltp_read_only --events=5", "expected 0: --time"),
            (
                "sysbench oltp_read_only --tables=100 --table-size=10000000",
                "at most 4000000",
            ),
            (
                "sysbench oltp_read_only --skip-trx=on --range-selects=off --point-selects=0",
                "without statements",
            ),
        ] {
            let message = error(line);
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
