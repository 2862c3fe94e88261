//! What programs mean on the simulated machine: order of fork and join, pipes, periods, mutexes,
//! warm-up, and the shares that weights and quotas promise.

use fairground::policy::{Features, find_profile};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome};
use fairground_sim::spec::Scenario;
use fairground_sim::workload::program::Op;
use fairground_sim::workload::{Env, Workload};

fn run(cpus: usize, profile: &str, text: &str) -> Outcome {
    let id = if cpus == 1 {
        "kunpeng920-6426-2s"
    } else {
        "spr-8480-2s"
    };
    let machine = Machine::builtin(id).unwrap().shrunk(cpus).unwrap();
    // Threads that share a core take nothing from each other, so a run takes the time it says.
    let machine = match machine.figure("alu.smt_throughput") {
        Some(_) => machine.with_figure("alu.smt_throughput", 2.0).unwrap(),
        None => machine,
    };
    let env = Env { cpus: cpus as u32 };
    let text = format!("name = \"s\"\n{text}");
    let workload = Scenario::parse("s", &text).and_then(|s| s.workload(&env));
    let workload = workload.unwrap_or_else(|e| panic!("{e:?}"));
    let features = Features::of_profile(find_profile(profile).unwrap());
    simulate(&machine, features, &workload)
}

fn simulate(machine: &Machine, features: Features, workload: &Workload) -> Outcome {
    let setup = Setup {
        machine,
        features,
        workload,
        seed: 1,
        trace: false,
    };
    outcome::run_within(&setup, 20_000_000).unwrap_or_else(|e| panic!("{e}"))
}

fn metric(out: &Outcome, name: &str) -> f64 {
    let found = out.metrics.iter().find(|(n, _)| n == name);
    let names: Vec<_> = out.metrics.iter().map(|m| &m.0).collect();
    found
        .and_then(|m| m.1)
        .unwrap_or_else(|| panic!("no {name} in {names:?}"))
}

/// How often a mark was passed.
fn passes(out: &Outcome, mark: &str) -> f64 {
    (metric(out, &format!("{mark}.marks_per_s")) * out.elapsed_ns as f64 / 1e9).round()
}

fn close(what: &str, is: f64, want: f64, tolerance: f64) {
    assert!(
        (is - want).abs() <= tolerance,
        "{what}: {is}, not {want} +- {tolerance}"
    );
}

#[test]
fn nice_values_share_a_cpu_by_their_weights() {
    for profile in ["linux-6.18", "linux-6.12-lts", "linux-6.5"] {
        for cpus in [1, 4] {
            let mut text = String::from("duration = \"4s\"\nwarmup = \"500ms\"\n");
            for cpu in 0..cpus {
                for (name, nice) in [("a", 0), ("b", 5)] {
                    text += &format!(
                        "[[task]]\nname = \"{name}{cpu}\"\nnice = {nice}\naffinity = \"{cpu}\"\n\
                         steps = [\"hog\"]\n"
                    );
                }
            }
            let out = run(cpus, profile, &text);
            for cpu in 0..cpus {
                let [a, b] = ["a", "b"].map(|n| metric(&out, &format!("{n}{cpu}.cpu_share")));
                let what = format!("{profile}, CPU {cpu} of {cpus}");
                close(&what, a / (a + b), 1024.0 / (1024.0 + 335.0), 0.01);
            }
        }
    }
}

/// One draw in twelve of this distribution would be longer than any duration that can be written,
/// one in twenty longer than the machine can count.
#[test]
fn draws_that_are_longer_than_any_run_are_no_mistake() {
    for step in ["run", "sleep", "period"] {
        let text = format!(
            "duration = \"1s\"\n[[task]]\nname = \"a\"\ncount = 100\n\
             steps = [{{ loop = \"forever\", steps = [{{ {step} = \"lognormal 1s 10\" }}, \
             {{ mark = \"turn\" }}] }}]\n"
        );
        for cpus in [1, 2] {
            let out = run(cpus, "linux-6.18", &text);
            assert_eq!(out.elapsed_ns, 1_000_000_000, "{step}");
            assert!(passes(&out, "turn") > 0.0, "{step}");
        }
    }
}

#[test]
fn groups_share_the_machine_by_their_weights() {
    for profile in ["linux-6.18", "linux-6.5"] {
        for cpus in [1, 4] {
            let text = format!(
                "duration = \"4s\"\nwarmup = \"1s\"\n\
                 [[cgroup]]\npath = \"/a\"\n\"cpu.weight\" = 300\n[[cgroup]]\npath = \"/b\"\n\
                 [[task]]\nname = \"a\"\ncgroup = \"/a\"\ncount = {cpus}\nsteps = [\"hog\"]\n\
                 [[task]]\nname = \"b\"\ncgroup = \"/b\"\ncount = {cpus}\nsteps = [\"hog\"]\n"
            );
            let out = run(cpus, profile, &text);
            let [a, b] = ["a.cpu_share", "b.cpu_share"].map(|n| metric(&out, n));
            close(&format!("{profile}, {cpus} CPUs"), a / (a + b), 0.75, 0.01);
        }
    }
}

/// Wherever the window begins and ends between two ticks: CPU time is that of the window.
#[test]
fn a_hog_alone_has_its_cpu_for_all_of_the_window() {
    for (policy, hz, warmup_ms) in [("normal", 100, 7), ("normal", 250, 13), ("fifo", 100, 7)] {
        let priority = if policy == "fifo" {
            "priority = 5\n"
        } else {
            ""
        };
        let text = format!(
            "hz = {hz}\nduration = \"25ms\"\nwarmup = \"{warmup_ms}ms\"\n\
             [[task]]\nname = \"a\"\naffinity = \"0\"\npolicy = \"{policy}\"\n{priority}\
             steps = [\"hog\"]\n"
        );
        let out = run(2, "linux-6.18", &text);
        let what = format!("{policy}, {hz} Hz, from {warmup_ms} ms on");
        close(&what, metric(&out, "a.cpus"), 1.0, 0.001);
    }
}

#[test]
fn a_quota_limits_a_hog() {
    for profile in ["linux-6.18", "linux-6.12-lts", "linux-6.5", "linux-5.8"] {
        for cpus in [1, 2] {
            // Besides a hog on each CPU, so that the sum of all CPU time is known.
            let text = "duration = \"10s\"\nwarmup = \"1s\"\n\
                 [[cgroup]]\npath = \"/a\"\n\"cpu.max\" = \"20000 100000\"\n\
                 [[task]]\nname = \"a\"\ncgroup = \"/a\"\nsteps = [\"hog\"]\n";
            let mut text = String::from(text);
            for cpu in 0..cpus {
                text += &format!(
                    "[[task]]\nname = \"other{cpu}\"\naffinity = \"{cpu}\"\nsteps = [\"hog\"]\n"
                );
            }
            let out = run(cpus, profile, &text);
            let share = metric(&out, "a.cpu_share") * cpus as f64;
            close(&format!("{profile}, {cpus} CPUs"), share, 0.2, 0.005);
        }
    }
}

/// A writer that sleeps for room in a pipe holds its lock when it goes on: it is stopped after the
/// call, where whole queues are stopped before it.
#[test]
fn a_quota_stops_no_task_within_a_system_call() {
    let text = "duration = \"1s\"\npipes = [\"p\"]\n\
                [[cgroup]]\npath = \"/lim\"\n\"cpu.max\" = \"10000 100000\"\n\
                [[task]]\nname = \"hog\"\ncgroup = \"/lim\"\naffinity = [0]\nsteps = [\"hog\"]\n\
                [[task]]\nname = \"in\"\ncgroup = \"/lim\"\naffinity = [0]\n\
                steps = [{ loop = \"forever\", steps = [{ write = \"p\", bytes = 4096 }] }]\n\
                [[task]]\nname = \"out\"\naffinity = [1]\n\
                steps = [{ loop = \"forever\", steps = [{ write = \"p\", bytes = 4096 }] }]\n\
                [[task]]\nname = \"reader\"\naffinity = [2]\nsteps = [{ loop = \"forever\", \
                steps = [{ read = \"p\", bytes = 4096 }, { run = \"100us\" }, \
                { mark = \"read\" }] }]\n";
    let reads = |profile| passes(&run(4, profile, text), "read");
    let (after, before) = (reads("linux-6.18"), reads("linux-6.12-lts"));
    assert!(after > 5000.0, "{after}");
    assert!(before < 3000.0, "{before}");
}

#[test]
fn a_thread_of_the_kernel_runs_on_where_its_group_has_no_quota_left() {
    let text = "duration = \"1s\"\n[[cgroup]]\npath = \"/lim\"\n\"cpu.max\" = \"20000 100000\"\n\
                [[task]]\nname = \"k\"\nprocess = \"kernel\"\ncgroup = \"/lim\"\n\
                steps = [{ loop = \"forever\", steps = [{ run = \"1ms\" }, { mark = \"ms\" }] }]\n";
    let ms = |profile| passes(&run(1, profile, text), "ms");
    assert!(ms("linux-6.18") > 950.0);
    close(
        "throttled with its queue",
        ms("linux-6.12-lts"),
        200.0,
        40.0,
    );
}

/// The kernel refuses a burst above the quota after each write: the burst has to fall first.
#[test]
fn a_quota_and_its_burst_fall_together() {
    let text = "duration = \"1s\"\n[[cgroup]]\npath = \"/g\"\n\"cpu.max\" = \"50000 100000\"\n\
                \"cpu.max.burst\" = 50000\n[[task]]\nname = \"t\"\ncgroup = \"/g\"\n\
                steps = [{ loop = \"forever\", steps = [{ run = \"1ms\" }, { mark = \"ms\" }] }]\n\
                [[event]]\nat = \"1ms\"\ncgroup = \"/g\"\n\"cpu.max\" = \"20000 100000\"\n\
                \"cpu.max.burst\" = 20000\n";
    close("ms", passes(&run(1, "linux-6.18", text), "ms"), 200.0, 60.0);
}

/// A job may use all of one package and four CPUs of the other, whose idle ones it may not use.
#[test]
fn cpus_that_a_new_task_may_not_use_do_not_count() {
    let text = "name = \"s\"\nduration = \"30ms\"\n[[cgroup]]\npath = \"/job\"\n\
                \"cpuset.cpus\" = \"0-35\"\n[[task]]\nname = \"w\"\ntemplate = true\n\
                steps = [\"hog\"]\n\
                [[task]]\nname = \"parent\"\ncgroup = \"/job\"\naffinity = \"0\"\n\
                steps = [{ affinity = \"0-35\" }, { loop = 36, steps = [{ fork = \"w\" }, \
                { run = \"50us\" }] }, { sleep = \"1s\" }]\n";
    let workload = Scenario::parse("s", text).and_then(|s| s.workload(&Env { cpus: 128 }));
    let workload = workload.unwrap_or_else(|e| panic!("{e:?}"));
    let machine = Machine::builtin("icx-8358-2s").unwrap();
    let busy = |rule| {
        let mut features = Features::default();
        features.set_all(&[("idlest_stats", rule)]).unwrap();
        metric(&simulate(&machine, features, &workload), "busy_pct")
    };
    // Of 128 CPUs 36 hogs use all that they may; with all CPUs in the sums some have two.
    let (allowed, all) = (busy("allowed"), busy("all-cpus"));
    assert!(allowed > 26.0 && all < allowed - 1.0, "{allowed} {all}");
}

#[test]
fn the_warm_up_does_not_count() {
    let text = "duration = \"1s\"\nwarmup = \"700ms\"\n\
         [[task]]\nname = \"hog\"\naffinity = \"0\"\nsteps = [\"hog\"]\n\
         [[task]]\nname = \"late\"\naffinity = \"1\"\nsteps = [{ sleep = \"1200ms\" }, \"hog\"]\n\
         [[task]]\nname = \"early\"\nsteps = [{ run = \"300ms\" }]\n";
    let out = run(2, "linux-6.18", text);
    close(
        "all the time",
        metric(&out, "hog.cpu_share"),
        2.0 / 3.0,
        0.005,
    );
    close(
        "half of it",
        metric(&out, "late.cpu_share"),
        1.0 / 3.0,
        0.005,
    );
    close("none of it", metric(&out, "early.cpu_share"), 0.0, 1e-9);
    let cpus = |name: &str| metric(&out, &format!("{name}.cpus"));
    close("one CPU", cpus("hog"), 1.0, 0.005);
    close("half of one", cpus("late"), 0.5, 0.005);
    assert_eq!(out.elapsed_ns, 1_000_000_000);
}

#[test]
fn a_writer_stops_when_the_pipe_is_full_and_goes_on_when_there_is_room() {
    // 16 buffers of a page each, as a new pipe has; the reader comes half-way.
    let text = |reader: &str| {
        format!(
            "duration = \"100ms\"\npipes = [\"p\"]\n\
             [[task]]\nname = \"writer\"\nsteps = [{{ loop = \"forever\", steps = [\
             {{ write = \"p\", bytes = 4096 }}, {{ mark = \"written\" }}] }}]\n\
             [[task]]\nname = \"reader\"\n\
             steps = [{{ sleep = \"50ms\" }}, {reader} {{ sleep = \"10s\" }}]\n"
        )
    };
    let out = run(2, "linux-6.18", &text(""));
    close("nobody reads", passes(&out, "written"), 16.0, 0.0);
    let out = run(2, "linux-6.18", &text("{ read = \"p\", bytes = 100 },"));
    close(
        "part of a buffer is no room",
        passes(&out, "written"),
        16.0,
        0.0,
    );
    let out = run(2, "linux-6.18", &text("{ read = \"p\", bytes = 12288 },"));
    close("three are free", passes(&out, "written"), 19.0, 0.0);
}

#[test]
fn a_period_is_a_grid_and_a_late_arrival_moves_it() {
    let text = "duration = \"1s\"\n\
         [[task]]\nname = \"a\"\nsteps = [{ loop = \"forever\", steps = [\
         { period = \"10ms\" }, { run = \"3ms\" }, { mark = \"in-time\" }] }]\n\
         [[task]]\nname = \"b\"\nsteps = [{ loop = \"forever\", steps = [\
         { period = \"10ms\" }, { run = \"15ms\" }, { mark = \"late\" }] }]\n";
    let out = run(2, "linux-6.18", text);
    // The last one is under way: its point is at 990 ms, or it begins at 985 ms.
    close("on the grid", passes(&out, "in-time"), 99.0, 0.0);
    close("back to back", passes(&out, "late"), 66.0, 1.0);
}

#[test]
fn a_period_that_catches_up_keeps_its_rate_however_late_the_task_is() {
    // Its timers fire up to 50 us late, and every so often it computes for longer than a period.
    let paced = |mean_us: f64, drawn: &str| {
        let late_us = mean_us * 3.0;
        let text = format!(
            "duration = \"5s\"\n[[task]]\nname = \"a\"\nsteps = [{{ loop = \"forever\", steps = [\
             {{ loop = 20, steps = [{{ period = \"{drawn}{mean_us}us\", late = \"catch-up\" }}, \
             {{ mark = \"sent\" }}] }}, {{ run = \"{late_us}us\" }}] }}]\n"
        );
        metric(&run(2, "linux-6.18", &text), "sent.marks_per_s")
    };
    for per_s in [100.0, 450.0, 1000.0, 10_000.0] {
        let mean_us = 1e6 / per_s;
        close("evenly", paced(mean_us, ""), per_s, per_s / 100.0);
        // Three standard deviations of the number of arrivals in 5 s.
        let deviation = 3.0 * f64::sqrt(per_s / 5.0);
        close("at random", paced(mean_us, "exp "), per_s, deviation);
    }
}

#[test]
fn what_is_measured_from_a_point_that_stays_counts_from_there() {
    let longest = |late: &str| {
        let text = format!(
            "duration = \"1s\"\n[[task]]\nname = \"a\"\nsteps = [{{ run = \"50ms\" }}, \
             {{ loop = \"forever\", steps = [{{ period = \"10ms\"{late} }}, \
             {{ begin = \"r\", from = \"due\" }}, {{ run = \"1ms\" }}, {{ end = \"r\" }}] }}]\n"
        );
        metric(&run(1, "linux-6.18", &text), "r.latency_us.max")
    };
    // The first point was at 10 ms, and the task is there at 50 ms.
    close("stays", longest(", late = \"catch-up\""), 41_000.0, 200.0);
    close("shifts", longest(", late = \"shift\""), 1_050.0, 100.0);
    close("shifts", longest(""), 1_050.0, 100.0);
}

#[test]
fn join_waits_for_the_last_child_and_a_mutex_admits_one() {
    let text = "duration = \"exit\"\nmutexes = [\"m\"]\n\
         [[task]]\nname = \"child\"\ntemplate = true\n\
         steps = [{ lock = \"m\" }, { run = \"2ms\" }, { unlock = \"m\" }, { mark = \"done\" }]\n\
         [[task]]\nname = \"parent\"\n\
         steps = [{ fork = \"child\", n = 5 }, \"join\", { mark = \"joined\" }]\n";
    for cpus in [1, 8] {
        let out = run(cpus, "linux-6.18", text);
        close("children", passes(&out, "done"), 5.0, 0.0);
        close("parent", passes(&out, "joined"), 1.0, 0.0);
        // One after the other, however many CPUs there are.
        let ms = out.elapsed_ns as f64 / 1e6;
        assert!((10.0..13.0).contains(&ms), "{cpus} CPUs: {ms} ms");
    }
}

/// A child that outlives its creator, and is asleep when that exits.
#[test]
fn a_run_until_exit_ends_with_the_last_child() {
    let out = run(
        1,
        "linux-6.18",
        r#"
        duration = "exit"
        [[task]]
        name = "creator"
        steps = [{ run = "10us" }, { fork = "child" }, { run = "10us" }]
        [[task]]
        name = "child"
        template = true
        steps = [{ run = "1ms" }, { sleep = "1ms" }, { run = "1ms" }]
        "#,
    );
    close("elapsed, ms", out.elapsed_ns as f64 / 1e6, 3.3, 0.2);
}

/// A waker that exits counts as no synchronous one, so `wait` returns where it was called.
#[test]
fn who_waits_for_children_stays_where_he_is() {
    let machine = Machine::builtin("genoa-9654-2s").unwrap();
    let cpus = machine.topology.nr_cpus() as u32;
    let text = "name = \"s\"\nduration = \"20ms\"\n\
         [[task]]\nname = \"child\"\ntemplate = true\nsteps = [{ run = \"300us\" }]\n\
         [[task]]\nname = \"parent\"\nsteps = [{ loop = \"forever\", \
         steps = [{ fork = \"child\" }, \"join\", { run = \"20us\" }] }]\n";
    let workload = Scenario::parse("s", text).and_then(|s| s.workload(&Env { cpus }));
    let out = simulate(&machine, Features::default(), &workload.unwrap());
    assert!(metric(&out, "wakeups") > 40.0);
    close("migrations", metric(&out, "migrations"), 0.0, 2.0);
}

/// `perf bench futex wake` calls until all are woken, also those that did not sleep yet when it
/// began: here it does not wait for them.
#[test]
fn who_wakes_goes_on_until_all_are_woken() {
    let machine = Machine::builtin("spr-8480-2s").unwrap().shrunk(4).unwrap();
    let argv = ["perf", "bench", "-r", "2", "futex", "wake", "-t", "12"];
    let mut workload = Workload::from_argv(&argv, &Env { cpus: 4 }).unwrap();
    for op in workload.programs.iter_mut().flat_map(|p| &mut p.ops) {
        if matches!(op, Op::Sleep(_)) {
            *op = Op::ReadClock;
        }
    }
    let out = simulate(&machine, Features::default(), &workload);
    assert!(metric(&out, "futex-wake.run_us.max") > 0.0);
}

/// `sched_setaffinity` of CPUs that the group's cpuset does not have is refused.
#[test]
fn a_mask_outside_the_cpuset_is_refused() {
    for (asked, of_a, of_b) in [("3", 0.5, 0.25), ("0,3", 0.25, 0.5)] {
        let text = format!(
            "duration = \"100ms\"\nwarmup = \"20ms\"\n\
             [[cgroup]]\npath = \"/g\"\n\"cpuset.cpus\" = \"0-1\"\n\
             [[task]]\nname = \"t\"\ncgroup = \"/g\"\naffinity = \"1\"\n\
             steps = [{{ affinity = \"{asked}\" }}, \"hog\"]\n\
             [[task]]\nname = \"a\"\naffinity = \"0\"\nsteps = [\"hog\"]\n\
             [[task]]\nname = \"b\"\naffinity = \"1\"\nsteps = [\"hog\"]\n"
        );
        let out = run(4, "linux-6.18", &text);
        let [a, b] = ["a", "b"].map(|name| metric(&out, &format!("{name}.cpu_share")));
        close("a", a, of_a, 0.02);
        close("b", b, of_b, 0.02);
    }
}

/// With `preempt=lazy` a busy CPU is not interrupted for another CPU's wake-up: the tick, or the
/// next return to user space, sees to it. Its own timer's interrupt returns there at once.
#[test]
fn a_lazy_kernel_leaves_a_remote_wake_up_to_the_tick() {
    let text = "duration = \"1s\"\nwarmup = \"200ms\"\nsemaphores = { s = 0 }\n\
                [[task]]\nname = \"hog\"\naffinity = \"1\"\nsteps = [\"hog\"]\n";
    let waiter = "[[task]]\nname = \"waiter\"\naffinity = \"1\"\n\
                  steps = [{ loop = -1, steps = [{ wait = \"s\" }, { run = \"10us\" }] }]\n\
                  [[task]]\nname = \"poster\"\naffinity = \"0\"\n\
                  steps = [{ loop = -1, steps = [{ sleep = \"7.3ms\" }, { post = \"s\" }] }]\n";
    let sleeper = "[[task]]\nname = \"sleeper\"\naffinity = \"1\"\n\
                   steps = [{ loop = -1, steps = [{ sleep = \"7.3ms\" }, { run = \"10us\" }] }]\n";
    let p99 = |preempt: &str, tasks: &str| {
        let mut features = Features::default();
        features.set("preempt", preempt).unwrap();
        let machine = Machine::builtin("kunpeng920-6426-2s").unwrap();
        let machine = machine.shrunk(2).unwrap();
        let scenario = Scenario::parse("s", &format!("name = \"s\"\n{text}{tasks}"));
        let workload = scenario.and_then(|s| s.workload(&Env { cpus: 2 })).unwrap();
        let out = simulate(&machine, features, &workload);
        metric(&out, "wakeup_latency_us.p99")
    };
    let remote = ["none", "voluntary", "lazy"].map(|how| p99(how, waiter));
    assert!(remote[0] < 20.0 && remote[1] < 20.0, "{remote:?}");
    assert!((500.0..1010.0).contains(&remote[2]), "{remote:?}");
    let own = ["voluntary", "lazy"].map(|how| p99(how, sleeper));
    assert!(own.iter().all(|us| *us < 20.0), "{own:?}");
}

/// A futex wakes one after the other with no lock held: where kernel code is preempted the first
/// that is more urgent runs at once, otherwise when all have been woken.
#[test]
fn a_preemptible_kernel_stops_in_the_midst_of_a_wake_up_of_many() {
    let text = "name = \"s\"\nduration = \"200ms\"\nfutexes = [\"f\"]\n\
                [[task]]\nname = \"urgent\"\ncount = 16\naffinity = \"0\"\n\
                policy = \"fifo\"\npriority = 50\n\
                steps = [{ loop = -1, steps = [{ futex_wait = \"f\" }, { run = \"1us\" }] }]\n\
                [[task]]\nname = \"waker\"\naffinity = \"0\"\n\
                steps = [{ loop = -1, steps = [{ sleep = \"5ms\" }, \
                { futex_wake = \"f\", n = 16 }] }]\n";
    let p50 = |preempt: &str| {
        let mut features = Features::default();
        features.set("preempt", preempt).unwrap();
        let machine = Machine::builtin("spr-8480-2s").unwrap();
        let machine = machine.shrunk(2).unwrap();
        let workload = Scenario::parse("s", text).and_then(|s| s.workload(&Env { cpus: 2 }));
        let out = simulate(&machine, features, &workload.unwrap());
        // 16 tasks, woken 39 times.
        let wakeups = metric(&out, "wakeups");
        assert!((600.0..700.0).contains(&wakeups), "{preempt}: {wakeups}");
        metric(&out, "wakeup_latency_us.p50")
    };
    let [none, voluntary, lazy, full] = ["none", "voluntary", "lazy", "full"].map(p50);
    assert!(none > 4.0 && voluntary > 4.0, "{none} {voluntary}");
    assert!(lazy < 2.0 && full < 2.0, "{lazy} {full}");
}

/// In the kernel a new task has nice value, policy, slice and CPUs of the one that makes it.
#[test]
fn who_is_forked_is_scheduled_as_its_creator_where_its_template_does_not_say() {
    let forks = "{ nice = 10 }, { affinity = \"0\" }, { fork = \"heir\" }, { fork = \"own\" }";
    let text = format!(
        "duration = \"2s\"\n\
         [[task]]\nname = \"parent\"\nsteps = [{forks}, \"join\"]\n\
         [[task]]\nname = \"heir\"\ntemplate = true\nsteps = [\"hog\"]\n\
         [[task]]\nname = \"own\"\ntemplate = true\nnice = 0\nsteps = [\"hog\"]\n"
    );
    let out = run(2, "linux-6.18", &text);
    // Both on CPU 0, with weights of 110 and 1024.
    close("heir", metric(&out, "heir.cpu_share"), 110.0 / 1134.0, 0.01);
    close("busy, %", metric(&out, "busy_pct"), 50.0, 0.5);
}
