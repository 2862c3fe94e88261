//! Mechanisms of the machine, each by what it leaves behind: lines that move, events, time.

use fairground::event::Event;
use fairground::policy::Features;
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome, Traffic};
use fairground_sim::spec::Scenario;
use fairground_sim::workload::{Env, Workload};

fn run_on(machine: &Machine, text: &str) -> Outcome {
    let cpus = machine.topology.nr_cpus() as u32;
    let text = format!("name = \"s\"\n{text}");
    let workload = Scenario::parse("s", &text).and_then(|s| s.workload(&Env { cpus }));
    let workload = workload.unwrap_or_else(|e| panic!("{e:?}"));
    outcome_of(machine, &workload)
}

fn outcome_of(machine: &Machine, workload: &Workload) -> Outcome {
    let setup = Setup {
        machine,
        features: Features::default(),
        workload,
        seed: 1,
        trace: true,
    };
    outcome::run_within(&setup, 5_000_000).unwrap_or_else(|e| panic!("{e}"))
}

/// On a machine whose idle CPUs watch their flags; for one CPU on one that has cores with one.
fn run(cpus: usize, text: &str) -> Outcome {
    let id = if cpus == 1 {
        "kunpeng920-6426-2s"
    } else {
        "spr-8480-2s"
    };
    let machine = Machine::builtin(id).unwrap();
    run_on(&machine.shrunk(cpus).unwrap(), text)
}

/// Tasks, each by its name and its other keys, on `cpus` CPUs, after other sections.
fn tasks(cpus: usize, duration: &str, first: &str, tasks: &[(&str, &str)]) -> Outcome {
    let mut text = format!("duration = \"{duration}\"\n{first}\n");
    for (name, keys) in tasks {
        text += &format!("[[task]]\nname = \"{name}\"\n{keys}\n");
    }
    run(cpus, &text)
}

/// `count` hogs on `cpus` CPUs.
fn hogs(cpus: usize, count: u32, duration: &str) -> Outcome {
    let keys = format!("count = {count}\nsteps = [\"hog\"]");
    tasks(cpus, duration, "", &[("hog", &keys)])
}

/// Traffic of the line of `object` that holds `field`.
fn line<'a>(out: &'a Outcome, object: &str, field: &str) -> &'a Traffic {
    let found = out
        .lines
        .iter()
        .find(|l| l.object == object && l.field.split(',').any(|f| f == field));
    found.unwrap_or_else(|| panic!("no {field} of {object} in {:?}", out.lines))
}

/// A function of the kernel: time in it, ns, and calls. None of a function that never ran.
fn function(out: &Outcome, name: &str) -> (u64, u64) {
    let row = out.functions.iter().find(|f| f.0 == name);
    row.map_or((0, 0), |f| (f.1, f.2))
}

fn wakeups(out: &Outcome) -> u64 {
    let woken = |e: &&fairground_sim::host::TraceLine| matches!(e.event, Event::Wakeup { .. });
    out.trace.iter().filter(woken).count() as u64
}

const PING_PONG: &str = r#"
duration = "20ms"
pipes = ["there", "back"]
[[task]]
name = "a"
affinity = "0"
steps = [{ loop = "forever", steps = [
  { run = "20us" },
  { write = "there", bytes = 1 },
  { read = "back", bytes = 1 },
] }]
[[task]]
name = "b"
affinity = "1"
steps = [{ loop = "forever", steps = [
  { read = "there", bytes = 1 },
  { write = "back", bytes = 1 },
] }]
"#;

#[test]
fn a_wake_up_of_an_idle_cpu_moves_the_flags_of_its_idle_task() {
    let machine = Machine::builtin("spr-8480-2s").unwrap().shrunk(4).unwrap();
    // A core in a deeper state has lost its lines, so the L3 answers.
    let machine = machine.with_idle_up_to("C1").unwrap();
    let core = |cpu: usize| machine.topology.cpus[cpu].core;
    let other = (1..4).find(|c| core(*c) != core(0)).expect("two cores");
    let text = PING_PONG.replace("affinity = \"1\"", &format!("affinity = \"{other}\""));
    let out = run_on(&machine, &text);
    let flags = line(&out, "task_struct(idle)", "thread_info");
    let woken = wakeups(&out);
    assert!(woken > 200, "{woken}");
    // To the waker that sets the flag, and back to the idle loop that looks.
    assert!(flags.transfers >= 2 * woken, "{flags:?}, {woken}");
    assert!(flags.rmws >= 3 * woken, "{flags:?}, {woken}");
}

#[test]
fn a_switch_clears_the_flag_of_the_task_that_ran() {
    let out = hogs(1, 2, "20ms");
    let flags = line(&out, "task_struct", "thread_info");
    assert!(out.switches > 3);
    assert!(
        flags.rmws >= out.switches - 2,
        "{flags:?}, {}",
        out.switches
    );
}

#[test]
fn one_cpu_writes_jiffies_and_all_read_them() {
    let out = hogs(4, 4, "100ms");
    let jiffies = line(&out, "timekeeping", "jiffies");
    assert!((98..=101).contains(&jiffies.writes), "{jiffies:?}");
    assert!(jiffies.reads > 4 * jiffies.writes, "{jiffies:?}");
    // After each write the others fetch the line once, however often they read it.
    assert!(jiffies.transfers > 90, "{jiffies:?}");
    assert!(jiffies.transfers <= 5 * jiffies.writes, "{jiffies:?}");
}

#[test]
fn a_child_pays_for_its_exec_and_may_go_elsewhere_with_it() {
    let shell = r#"steps = [{ loop = "forever", steps = [{ fork = "tool", n = 12 }, "join"] }]"#;
    let tool = r#"template = true
        steps = [{ run = "exp 300us" }, "exec", { run = "exp 300us" }]"#;
    let out = tasks(8, "40ms", "", &[("shell", shell), ("tool", tool)]);
    let count = |name: &str| function(&out, name);
    let (exec_ns, execs) = count("do_execveat_common");
    assert!(execs > 50, "{execs}");
    assert!(count("sched_exec").1 >= execs);
    assert!(exec_ns > execs * 150_000);
    // The parent is back from a fork in a third of the time that an image takes.
    let born = |l: &fairground_sim::host::TraceLine| {
        matches!(l.event, Event::WakeupNew { .. }).then_some(l.at_ns)
    };
    let births: Vec<u64> = out.trace.iter().filter_map(born).collect();
    let shortest = births.windows(2).map(|w| w[1] - w[0]).min();
    assert!(shortest.is_some_and(|gap| gap < 100_000), "{shortest:?}");
    let moved = count("migration_cpu_stop").1;
    assert!(moved > 0, "no child has gone elsewhere at its exec");
}

#[test]
fn interrupts_come_during_long_system_calls() {
    let loader = r#"steps = [{ loop = "forever", steps = ["exec", { run = "10us" }] }]"#;
    let sleeper = r#"nice = -10
        steps = [{ loop = "forever", steps = [{ sleep = "500us" }] }]"#;
    let out = tasks(1, "100ms", "", &[("loader", loader), ("sleeper", sleeper)]);
    let mut asleep_since = None;
    let (mut longest, mut woken_at, mut waited) = (0, 0, 0);
    for line in &out.trace {
        match line.event {
            Event::Switch { next, .. } if next.is_some_and(|t| t.0 == 1) && woken_at > 0 => {
                waited = waited.max(line.at_ns - woken_at);
            }
            Event::Switch {
                prev,
                prev_runnable: false,
                ..
            } if prev.is_some_and(|t| t.0 == 1) => {
                asleep_since = Some(line.at_ns);
            }
            Event::Wakeup { task, .. } if task.0 == 1 => {
                longest = longest.max(line.at_ns - asleep_since.take().unwrap_or(line.at_ns));
                woken_at = line.at_ns;
            }
            _ => {}
        }
    }
    assert!(longest > 490_000, "{longest}");
    // With a slack of 50 us; an image takes 350 us.
    assert!(longest < 570_000, "{longest}");
    // The loader gives way between two pieces (`cond_resched`), and goes on after.
    assert!(waited < 5_000, "{waited}");
    let (_, execs) = function(&out, "do_execveat_common");
    assert!(execs > 200, "{execs}");
}

/// When each of two sleepers woke first, us after 1 ms.
fn two_sleepers(slack: &str) -> [f64; 2] {
    let begins =
        |at: &str| format!("{slack}\nsteps = [{{ until = \"{at}\" }}, {{ sleep = \"1s\" }}]");
    let (early, late) = (begins("1ms"), begins("930us"));
    let out = tasks(1, "3ms", "", &[("early", &early), ("late", &late)]);
    [0, 1].map(|n| {
        let woken = |l: &&fairground_sim::host::TraceLine| {
            let it = matches!(l.event, Event::Wakeup { task, .. } if task.0 == n);
            it && l.at_ns > 900_000
        };
        let first = out.trace.iter().find(woken).expect("it wakes up");
        first.at_ns as f64 / 1e3 - 1000.0
    })
}

#[test]
fn timers_with_slack_fire_together() {
    let [early, late] = two_sleepers("timer_slack = \"1ns\"");
    // The second task begins some 100 us later, and its time counts from there.
    assert!((0.0..10.0).contains(&early), "{early}");
    assert!((15.0..45.0).contains(&(late - early)), "{early} {late}");
    let gap = late - early;
    let [early, late] = two_sleepers("");
    assert!((45.0..65.0).contains(&early), "{early}");
    assert!(late - early < gap.min(10.0), "{early} {late}");
}

#[test]
fn a_task_that_enters_a_group_goes_to_its_cpus() {
    let group = r#"cgroup = [{ path = "/a", "cpuset.cpus" = "0-1" }]"#;
    let hog = r#"count = 4
        steps = [{ run = "5ms" }, { cgroup = "/a" }, "hog"]"#;
    let out = tasks(4, "40ms", group, &[("hog", hog)]);
    let on = |from_ms: u64, to_ms: u64| {
        let mut cpus: Vec<u32> = Vec::new();
        for line in &out.trace {
            let inside = (from_ms * 1_000_000..to_ms * 1_000_000).contains(&line.at_ns);
            if let Event::Switch {
                cpu, next: Some(_), ..
            } = line.event
                && inside
            {
                cpus.push(cpu.0);
            }
        }
        cpus
    };
    assert!(on(0, 5).iter().any(|c| *c >= 2), "spread before");
    let after = on(15, 40);
    assert!(
        !after.is_empty() && after.iter().all(|c| *c < 2),
        "{after:?}"
    );
}

#[test]
fn scheduler_time_has_names() {
    let out = run(4, PING_PONG);
    let time = |name: &str| function(&out, name).0;
    let all: u64 = out.functions.iter().map(|f| f.1).sum();
    let other = time("[kernel, other]");
    assert!(other * 200 < all, "{other} of {all} ns");
    assert!(time("nohz_run_idle_balance") > 0);
}

#[test]
fn each_switch_to_a_task_ends_with_work_on_the_return_to_user_space() {
    let out = run(2, PING_PONG);
    let calls = |name: &str| function(&out, name).1;
    let to_task = |l: &&fairground_sim::host::TraceLine| {
        matches!(l.event, Event::Switch { next: Some(_), .. })
    };
    let switches = out.trace.iter().filter(to_task).count() as u64;
    assert!(switches > 100);
    assert_eq!(calls("__rseq_handle_notify_resume"), switches);
}

/// Mean length of a yield in a group so many levels down, beside nobody or somebody, ns.
fn yield_ns(depth: usize, others: usize) -> f64 {
    let group: String = (1..=depth).map(|d| format!("/g{d}")).collect();
    let mut text = String::from("duration = \"20ms\"\n");
    for level in 1..=depth {
        let path: String = (1..=level).map(|d| format!("/g{d}")).collect();
        text += &format!("[[cgroup]]\npath = \"{path}\"\n");
    }
    let group = if depth == 0 { "/" } else { &group };
    for nth in 0..=others {
        text += &format!(
            "[[task]]\nname = \"t{nth}\"\ncgroup = \"{group}\"\nsteps = [{{ loop = \"forever\", \
             steps = [\"yield\", {{ mark = \"turn\" }}] }}]\n"
        );
    }
    let out = run(1, &text);
    let rate = out.metrics.iter().find(|m| m.0 == "turn.marks_per_s");
    1e9 / rate.and_then(|m| m.1).expect("turns")
}

#[test]
fn a_level_of_groups_costs_a_fraction_of_a_yield() {
    let (flat, deep) = (yield_ns(0, 1), yield_ns(6, 1));
    let level = (deep - flat) / 6.0;
    assert!(level > 0.0 && level < flat / 20.0, "{flat} and {deep}");
    // Alone there is nobody to switch to.
    assert!(yield_ns(0, 0) < flat / 1.5);
}

/// Time of one write to a pipe of hackbench on 16 CPUs, without waiting for its mutex, ns.
fn pipe_write_ns(mode: &str) -> f64 {
    let machine = Machine::builtin("spr-8480-2s").unwrap();
    let machine = machine.shrunk(16).unwrap();
    let argv = [
        "hackbench",
        "--pipe",
        mode,
        "-g",
        "1",
        "-f",
        "4",
        "-l",
        "300",
    ];
    let argv: Vec<String> = argv.map(String::from).to_vec();
    let workload = Workload::from_argv(&argv, &Env { cpus: 16 }).unwrap();
    let out = outcome_of(&machine, &workload);
    let (ns, calls) = function(&out, "pipe_write");
    ns as f64 / calls as f64
}

#[test]
fn threads_hand_the_count_of_an_open_file_around_and_processes_do_not() {
    let (threads, processes) = (pipe_write_ns("--threads"), pipe_write_ns("--process"));
    assert!(threads > processes + 30.0, "{threads} and {processes} ns");
}

#[test]
fn a_throttled_group_is_found_by_its_pointers() {
    let groups = r#"cgroup = [{ path = "/a" }, { path = "/a/b", "cpu.max" = "2000 10000" }]"#;
    let hog = r#"count = 2
        cgroup = "/a/b"
        steps = ["hog"]"#;
    let out = tasks(2, "60ms", groups, &[("hog", hog)]);
    let calls = |name: &str| function(&out, name).1;
    let walks = calls("tg_throttle_down") + calls("tg_unthrottle_up");
    assert!(walks >= 10, "{walks}");
    assert_eq!(
        calls("walk_tg_tree_from"),
        walks,
        "nothing is below the group"
    );
    let queues = line(&out, "task_group arrays", "cfs_rq");
    assert!(queues.reads >= walks && queues.writes == 0, "{queues:?}");
}
