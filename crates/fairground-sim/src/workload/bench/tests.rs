use super::*;
use crate::workload::marks::TaskTime;
use crate::workload::marks::{MARK_END, MARK_START};
use crate::workload::metric::MetricDef;
use crate::workload::program::{Cgroup, ChanKind, Op, Until, When};

const ENV: Env = Env { cpus: 8 };

pub(super) fn make(line: &str) -> Workload {
    let argv: Vec<&str> = line.split(' ').collect();
    let workload = Workload::from_argv(&argv, &ENV).unwrap_or_else(|e| panic!("{line}: {e}"));
    assert_eq!(workload.validate(), Ok(()), "{line}");
    workload
}

pub(super) fn error(line: &str) -> String {
    let argv: Vec<&str> = line.split(' ').collect();
    Workload::from_argv(&argv, &ENV)
        .expect_err(line)
        .to_string()
}

#[test]
fn every_known_workload_has_defaults_that_are_sound() {
    for known in Workload::known() {
        let workload = make(known.name);
        assert!(!workload.metrics.is_empty());
        // One group below the root: the root's load is not published.
        assert!(workload.templates.iter().all(|t| t.cgroup == Some(1)));
    }
}

/// Options that no synopsis has: what every workload has.
const OF_ALL: [&str; 5] = [
    "--cgroup",
    "--weight",
    "--cpu-max",
    "--idle-groups",
    "--help",
];
/// And what a tool has that changes nothing here.
const WITHOUT_EFFECT: [(&str, &str); 8] = [
    ("netperf", "--host"),
    ("perf bench futex wake", "--mlockall"),
    ("ebizzy", "-M"),
    ("sysbench oltp_read_only", "--events"),
    ("sysbench oltp_read_only", "--db-driver"),
    ("schbench", "--intervaltime"),
    ("cyclictest", "--mlockall"),
    ("cyclictest", "--nanosleep"),
];

/// The names of each option, from what `--help` answers.
fn options_of(known: &Known) -> Vec<Vec<String>> {
    let argv: Vec<&str> = known.name.split(' ').chain(["--help"]).collect();
    let Err(Error::Help(text)) = Workload::from_argv(&argv, &ENV) else {
        panic!("{} has no help", known.name);
    };
    let names = |line: &str| -> Vec<String> {
        let words = line.split_whitespace().map(|w| w.trim_end_matches(','));
        let names = words.take_while(|w| w.starts_with('-'));
        names.map(String::from).collect()
    };
    text.lines().map(names).filter(|n| !n.is_empty()).collect()
}

#[test]
fn every_synopsis_has_the_options_that_its_tool_takes() {
    for known in Workload::known() {
        let is_of_name = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        let words = known.synopsis.split(|c: char| !is_of_name(c));
        let shown: Vec<&str> = words.filter(|w| w.starts_with('-')).collect();
        let options = options_of(known);
        assert!(options.len() > OF_ALL.len(), "{}: {options:?}", known.name);
        for names in &options {
            let left_out = names.iter().any(|name| {
                let name = name.as_str();
                OF_ALL.contains(&name) || WITHOUT_EFFECT.contains(&(known.name, name))
            });
            let is_shown = names.iter().any(|name| shown.contains(&name.as_str()));
            assert!(left_out || is_shown, "{}: {names:?}", known.name);
        }
        for name in shown {
            let is_one = options.iter().flatten().any(|known| known == name);
            assert!(is_one, "{}: {name}", known.name);
        }
        // None is required: the name alone is a workload.
        let optional = known.synopsis.split("] ").all(|part| part.starts_with('['));
        assert!(optional, "{}: {}", known.name, known.synopsis);
    }
}

#[test]
fn every_metric_is_one_of_a_form() {
    for line in [
        "hackbench -T --pipe -l 5 --tree 1:2",
        "perf bench sched pipe -T --cpu-max 5ms/10ms",
        "perf bench sched messaging -t -p",
        "netperf",
        "netperf -t tcp_rr -r 64,128 --pairs 2",
        "netperf -t udp_stream -m 64",
        "perf bench futex wake -s -S -r 2",
        "perf bench mem memset -s 2MB -l 3",
        "sysbench threads --events=9 --time=0",
        "sysbench mutex --threads=2 --percentile=99",
        "sysbench cpu --events=1",
        // A thread does one event, as in the test with mutexes.
        "sysbench memory --memory-total-size=1K",
        "ebizzy -t 2",
        "sysbench oltp_read_only --threads=2 --skip-trx=on",
        "schbench -L -s 10",
        "hogs --tasks 3 --nice 0,5",
        "sleepers --tasks 3 --in-phase --warmup 1ms",
    ] {
        let mut known = Workload::known().iter();
        let known = known.find(|k| line.starts_with(k.name)).expect(line);
        let forms: Vec<Workload> = known.forms().map(|form| make(&form)).collect();
        for metric in make(line).metrics {
            let same = |m: &MetricDef| {
                (&m.name, &m.unit, m.better) == (&metric.name, &metric.unit, metric.better)
            };
            let listed = forms.iter().any(|w| w.metrics.iter().any(same));
            assert!(listed, "{line}: {}", metric.name);
        }
    }
}

#[test]
fn hackbench_has_the_structure_of_the_tool() {
    let w = make("hackbench -g 2 -f 3 -l 10 --pipe --threads");
    assert_eq!(w.templates.len(), 2 * 2 * 3 + 1);
    assert_eq!(w.chans.len(), 2 + 2 * 3);
    assert!(w.templates.iter().all(|t| t.process == 0));
    let ops = |name: &str| &w.programs.iter().find(|p| p.name == name).unwrap().ops;
    assert!(ops("receiver").contains(&Op::LoopStart { count: 30 }));
    assert!(ops("sender").contains(&Op::LoopStart { count: 10 }));
    let read = |p: &&crate::workload::Program| p.name == "receiver";
    assert_eq!(w.programs.iter().filter(read).count(), 6);
    assert!(ops("sender").contains(&Op::Write {
        chan: 2,
        bytes: 100
    }));
    let parent = &w.programs[w.templates[w.initial[0] as usize].program as usize].ops;
    assert_eq!(
        parent
            .iter()
            .filter(|op| matches!(op, Op::Fork { .. }))
            .count(),
        12
    );
    let w = make("hackbench");
    assert_eq!(
        (w.templates.len(), w.chans[2].kind),
        (401, ChanKind::SOCKET)
    );
    assert!(!w.templates[0].thread);
}

#[test]
fn sysbench_has_the_structure_of_the_tool() {
    let w = make("sysbench --threads=3 threads --thread-locks=2 --events=9 run");
    assert_eq!(w.argv[..2], ["sysbench", "threads"]);
    assert_eq!((w.templates.len(), w.initial.len()), (2, 1));
    assert!(w.templates[0].thread && w.templates.iter().all(|t| t.process == 0));
    // Everybody and the first thread meet at the start; events and requests are counted apart.
    assert_eq!((&w.barriers, &w.budgets), (&vec![4], &vec![9, u64::MAX]));
    assert_eq!(w.mutex_stride, 40);
    let worker = &w.programs[0].ops;
    let count = |op| worker.iter().filter(|o| **o == op).count();
    assert_eq!((count(Op::Yield), count(Op::LockPicked)), (1, 1));
    assert!(worker.contains(&Op::LoopStart { count: 1000 }));
    assert!(w.programs[1].ops.contains(&Op::LoopStart { count: 3 }));
    assert_eq!(w.duration, Until::AllExit);

    let w = make("sysbench mutex --threads=2 --tree 1:3");
    assert_eq!((w.templates.len(), w.initial.len()), (6, 3));
    assert_eq!((w.barriers.len(), w.marks.len()), (3, 2 + 3));
    assert_ne!(w.templates[0].cgroup, w.templates[1].cgroup);
    assert!(w.programs[0].ops.contains(&Op::LoopStart { count: 50_000 }));
}

#[test]
fn futex_wake_pins_its_threads_in_turn() {
    let w = make("perf bench -r 2 futex wake -t 10 -w 3");
    assert_eq!(w.argv[4], "--repeat=2");
    let main = &w.programs.last().unwrap().ops;
    let pins: Vec<u32> = main
        .iter()
        .filter_map(|op| match op {
            Op::PinChild { mask } => Some(*mask),
            _ => None,
        })
        .collect();
    assert_eq!(pins, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
    let all_woken = |op: &Op| {
        matches!(
            op,
            Op::Leave {
                when: When::Woken(10),
                ..
            }
        )
    };
    assert!(main.iter().any(all_woken));
    assert!(main.contains(&Op::LoopStart { count: 2 }));
}

#[test]
fn a_tree_has_its_leaves() {
    let w = make("hogs --tasks 12 --tree 3:2 --idle-groups 5");
    assert_eq!(w.cgroups.len(), 1 + 2 + 4 + 8 + 5);
    assert_eq!(
        w.cgroups[w.templates[0].cgroup.unwrap() as usize].path,
        "/g0/g0/g0"
    );
    assert_eq!(w.templates[0].cgroup, w.templates[8].cgroup);
    assert_eq!(w.duration, Until::Time(1_000_000_000));
    let w = make("hogs --tasks 2 --tree 1:2 --weight 100,200 --nice -5,0 --duration 20ms");
    assert_eq!(w.cgroups[2].shares, Cgroup::shares_of_weight(200));
    assert_eq!(w.templates[0].nice, -5);
    let w = make("hogs --cgroup /a/b");
    assert_eq!((w.cgroups.len(), w.templates.len()), (3, 8));
    assert_eq!(make("hogs --cgroup /").templates[0].cgroup, Some(0));
}

#[test]
fn mistakes_get_one_sentence_with_the_nearest_name() {
    for (line, expected) in [
        ("hackbnch", "did you mean 'hackbench'?"),
        (
            "perf bench sched pip",
            "did you mean 'perf bench sched pipe'?",
        ),
        ("perf stat", "unknown workload 'perf stat'"),
        (
            "hackbench --pieps",
            "hackbench: unknown option '--pieps'; did you mean '--pipe'?",
        ),
        ("hackbench -g 1 2", "hackbench: unexpected argument '2'"),
        ("hackbench -g 0", "1..=100000"),
        ("hackbench -g -3", "unknown option '-3'"),
        ("hackbench -s", "a value is required"),
        ("hackbench -g 100000 -f 10000", "more than 1000000"),
        ("hogs --tree 3", "expected depth:width"),
        ("hogs --tree 16:100000", "more than 1000000"),
        ("hogs --weight 0", "1..=10000"),
        ("hogs --weight 10001", "1..=10000"),
        (
            "hogs --cgroup / --weight 5",
            "the root cgroup has no weight",
        ),
        ("hogs --cgroup a", "absolute path"),
        ("hogs --nice 20", "19"),
        (
            "hogs --tasks 4 --nice 0,5,10,15,19",
            "--nice has 5 values for 4; expected at most one per task",
        ),
        ("sleepers --tasks 1 --nice 0,5", "--nice has 2 values for 1"),
        (
            "hogs --tasks 16 --weight 100,900",
            "--weight has 2 values for 1; expected at most one per cgroup; --tree makes more",
        ),
        ("hogs --duration 0", "expected more than 0"),
        ("sleepers --period nan", "not a finite duration"),
        ("sleepers --run -1ms", "unknown option"),
        ("sleepers --run=-1ms", "is negative"),
    ] {
        assert_mistake(line, expected);
    }
    assert!(Workload::from_argv::<&str>(&[], &ENV).is_err());
    assert!(matches!(
        Workload::from_argv(&["hogs", "--help"], &ENV),
        Err(Error::Help(_))
    ));
}

fn assert_mistake(line: &str, expected: &str) {
    let message = error(line);
    assert!(message.contains(expected), "{line}: {message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn mistakes_in_benchmarks_of_threads() {
    for (line, expected) in [
        ("sysbench", "unknown workload 'sysbench'"),
        ("sysbench thread", "did you mean 'sysbench threads'?"),
        ("sysbench oltp", "unknown workload 'sysbench oltp'"),
        (
            "sysbench threads --thread-lock=2",
            "sysbench threads: unknown option '--thread-lock'; did you mean '--thread-locks'?",
        ),
        ("sysbench threads --threads=0", "1..=100000"),
        ("sysbench threads --time=0", "the test never ends"),
        ("sysbench cpu --time=-1", "is negative"),
        ("sysbench cpu --time=ten", "is no duration"),
        ("sysbench threads prepare", "; expected 'run'"),
        (
            "sysbench memory --memory-oper=wirte",
            "did you mean 'write'?",
        ),
        ("sysbench memory --memory-block-size=1000", "a power of two"),
        ("sysbench memory --memory-block-size=x", "is no size"),
        (
            "sysbench memory --memory-total-size=1K --threads=2",
            "a block for each thread",
        ),
        (
            "sysbench mutex --mutex-num=1000000 --tree 1:2",
            "mutexes are more than",
        ),
        ("perf bench futex wake -t 0", "1..=100000"),
        (
            "perf bench futex wake -t 100000 -r 100",
            "more than 1000000",
        ),
        (
            "perf bench futex wak",
            "did you mean 'perf bench futex wake'?",
        ),
        ("perf bench mem memset -s 1XB", "is no size"),
        ("ebizzy -S 0", "expected more than 0"),
        ("ebizzy -m", "unknown option '-m'"),
    ] {
        assert_mistake(line, expected);
    }
}

#[test]
fn the_words_of_the_tools() {
    let w = make("perf bench sched pipe -l 1000");
    let mut marks = w.empty_marks();
    marks.mark(MARK_START, 1_000);
    assert_eq!(w.words.print(&marks), "", "not finished");
    marks.mark(MARK_END, 12_569_000);
    assert_eq!(
        w.words.print(&marks),
        "# Running 'sched/pipe' benchmark:\n\
         # Executed 1000 pipe operations between two processes\n\n\
         \x20    Total time: 0.012 [sec]\n\n\
         \x20     12.568000 usecs/op\n\
         \x20         79567 ops/sec"
    );
    assert_eq!(w.metrics[0].value(&marks), Some(12.568));
    let w = make("hackbench");
    assert_eq!(
        w.words.print(&marks),
        "Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)\n\
         Each sender will pass 100 messages of 100 bytes\nTime: 0.012"
    );
    let w = make("perf bench sched messaging -g 1 -t");
    assert_eq!(
        w.words.print(&marks),
        "# Running 'sched/messaging' benchmark:\n\
         # 20 sender and receiver threads per group\n# 1 groups == 40 threads run\n\n\
         \x20    Total time: 0.012 [sec]"
    );
}

#[test]
fn the_words_of_sysbench_and_perf_futex() {
    let w = make("sysbench threads --threads=2");
    let mut marks = w.empty_marks();
    assert_eq!(w.words.print(&marks), "", "not finished");
    marks.mark(MARK_START, 1_000);
    marks.request(0, 1_000, 91_000);
    marks.request(0, 91_000, 331_000);
    marks.mark(MARK_END, 9_501_000);
    marks.tasks = vec![
        TaskTime {
            template: 0,
            requests: 2,
            request_ns: 330_000,
            ..TaskTime::default()
        },
        TaskTime::default(),
        TaskTime {
            template: 1,
            ..TaskTime::default()
        },
    ];
    assert_eq!(
        w.words.print(&marks),
        "Running the test with following options:\nNumber of threads: 2\n\n\
         Initializing worker threads...\n\nThreads started!\n\n\nGeneral statistics:\n    \
         total time:                          0.0095s\n    \
         total number of events:              2\n\nLatency (ms):\n         \
         min:                                    0.09\n         \
         avg:                                    0.17\n         \
         max:                                    0.24\n         \
         95th percentile:                        0.24\n         \
         sum:                                    0.33\n\nThreads fairness:\n    \
         events (avg/stddev):           1.0000/1.00\n    \
         execution time (avg/stddev):   0.0002/0.00"
    );
    let value = |name: &str| {
        let metric = w.metrics.iter().find(|m| m.name.ends_with(name)).unwrap();
        metric.value(&marks).unwrap()
    };
    assert_eq!((value(".events"), value("events_stddev")), (2.0, 1.0));
    assert_eq!(value("events_per_s").round(), 211.0);

    let w = make("perf bench futex wake -t 8 -r 2");
    let mut marks = w.empty_marks();
    marks.request(0, 0, 120_999);
    marks.request(0, 0, 130_000);
    assert_eq!(
        w.words.print(&marks),
        "# Running 'futex/wake' benchmark:\nRun summary: blocking on 8 threads (at [private] \
         futex), waking up 1 at a time.\n\n[Run 1]: Wokeup 8 of 8 threads in 0.1200 ms\n[Run 2]: \
         Wokeup 8 of 8 threads in 0.1300 ms\nWokeup 8 of 8 threads in 0.1250 ms (+-4.00%)"
    );
}

#[test]
fn metrics_of_hogs_and_sleepers() {
    let w = make("hogs --tasks 2");
    let mut marks = w.empty_marks();
    marks.elapsed_ns = 1_000_000_000;
    assert_eq!(w.metrics[1].value(&marks), None);
    let task = |template, cpu_ns| TaskTime {
        template,
        cpu_ns,
        ..TaskTime::default()
    };
    marks.tasks = vec![task(0, 300_000_000), task(1, 100_000_000)];
    assert_eq!(w.metrics[0].value(&marks), Some(0.4));
    assert_eq!(w.metrics[1].value(&marks), Some(0.8));

    let w = make("sleepers --tasks 4 --warmup 10ms");
    assert_eq!(w.templates[1].start_ns, 250_000);
    assert_eq!(
        make("sleepers --tasks 4 --in-phase").templates[1].start_ns,
        0
    );
    let mut marks = w.empty_marks();
    assert!(w.metrics[..5].iter().all(|m| m.value(&marks).is_none()));
    marks.request(0, 9_000_000, 11_000_000);
    marks.request(0, 11_000_000, 11_020_000);
    marks.mark(0, 11_020_000);
    marks.elapsed_ns = 1_000_000_000;
    // The mean of 2 ms, begun in the warm-up, and 20 us.
    assert_eq!(w.metrics[0].value(&marks), Some(1010.0));
    let turns = w.metrics.iter().find(|m| m.name == "sleepers.turns_per_s");
    assert_eq!(turns.and_then(|m| m.value(&marks)), Some(1.0));
}

#[test]
fn the_last_of_an_option_given_twice_holds_and_unique_begins_are_enough() {
    let same = |a: &str, b: &str| {
        let (a, b) = (make(a), make(b));
        assert_eq!((a.programs, a.chans), (b.programs, b.chans));
    };
    same(
        "hackbench -g 2 -g 3 -T --processes",
        "hackbench --group 3 -P",
    );
    same("hackbench --pip --loop=7", "hackbench -p -p -l 7");
    same("schbench --thread 3", "schbench -t 9 -t 3");
    same(
        "perf bench sched pipe -l 5 --loop 6",
        "perf bench sched pipe -l 6",
    );
}

#[test]
fn everybody_is_held_back_by_what_the_messages_go_through() {
    for (line, kind) in [
        ("hackbench", ChanKind::SOCKET),
        ("hackbench --pipe", ChanKind::PIPE),
        ("perf bench sched messaging", ChanKind::SOCKET),
        ("perf bench sched messaging -p", ChanKind::PIPE),
    ] {
        assert!(make(line).chans.iter().all(|c| c.kind == kind), "{line}");
    }
}
