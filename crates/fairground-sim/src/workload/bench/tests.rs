use super::*;
use crate::workload::metric::{Marks, TaskTime};
use crate::workload::program::{Cgroup, ChanKind, Op, Until};
use crate::workload::words::{MARK_END, MARK_START};

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
            "hackbench --pip",
            "hackbench: unknown option '--pip'; did you mean '--pipe'?",
        ),
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
        ("hogs --duration 0", "expected more than 0"),
        ("sleepers --period nan", "not a finite duration"),
        ("sleepers --run -1ms", "unknown option"),
        ("sleepers --run=-1ms", "is negative"),
    ] {
        let message = error(line);
        assert!(message.contains(expected), "{line}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert!(Workload::from_argv::<&str>(&[], &ENV).is_err());
    assert!(matches!(
        Workload::from_argv(&["hogs", "--help"], &ENV),
        Err(Error::Help(_))
    ));
}

#[test]
fn the_words_of_the_tools() {
    let w = make("perf bench sched pipe -l 1000");
    let mut marks = Marks::new(&w);
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
fn metrics_of_hogs_and_sleepers() {
    let w = make("hogs --tasks 2");
    let mut marks = Marks::new(&w);
    marks.elapsed_ns = 1_000_000_000;
    assert_eq!(w.metrics[1].value(&marks), None);
    let task = |template, cpu_ns| TaskTime { template, cpu_ns };
    marks.tasks = vec![task(0, 300_000_000), task(1, 100_000_000)];
    assert_eq!(w.metrics[0].value(&marks), Some(0.4));
    assert_eq!(w.metrics[1].value(&marks), Some(0.8));

    let w = make("sleepers --tasks 4 --warmup 10ms");
    assert_eq!(w.templates[1].start_ns, 250_000);
    assert_eq!(
        make("sleepers --tasks 4 --in-phase").templates[1].start_ns,
        0
    );
    let mut marks = Marks::new(&w);
    assert!(w.metrics[..5].iter().all(|m| m.value(&marks).is_none()));
    marks.request(0, 9_000_000, 11_000_000);
    marks.request(0, 11_000_000, 11_020_000);
    marks.mark(0, 11_020_000);
    marks.elapsed_ns = 1_000_000_000;
    assert_eq!(w.metrics[0].value(&marks).map(f64::round), Some(20.0));
    assert_eq!(w.metrics[4].value(&marks), Some(1.0));
}
