//! Mechanisms of the machine, each by what it leaves behind: lines that move, events, time.

use fairground::event::Event;
use fairground::policy::Features;
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome, Traffic};
use fairground_sim::spec::Scenario;
use fairground_sim::workload::Env;

fn run_on(machine: &Machine, set: &[(&str, &str)], text: &str) -> Outcome {
    let cpus = machine.topology.nr_cpus() as u32;
    let text = format!("name = \"s\"\n{text}");
    let workload = Scenario::parse("s", &text).and_then(|s| s.workload(&Env { cpus }));
    let workload = workload.unwrap_or_else(|e| panic!("{e:?}"));
    let mut features = Features::default();
    features.set_all(set);
    let setup = Setup {
        machine,
        features,
        workload: &workload,
        seed: 1,
        trace: true,
    };
    outcome::run_within(&setup, 5_000_000).unwrap_or_else(|e| panic!("{e}"))
}

fn run(cpus: usize, text: &str) -> Outcome {
    let machine = Machine::builtin("spr-8480-2s").unwrap();
    run_on(&machine.shrunk(cpus).unwrap(), &[], text)
}

/// Traffic of the line of `object` that holds `field`.
fn line<'a>(out: &'a Outcome, object: &str, field: &str) -> &'a Traffic {
    let found = out
        .lines
        .iter()
        .find(|l| l.object == object && l.field.split(',').any(|f| f == field));
    found.unwrap_or_else(|| panic!("no {field} of {object} in {:?}", out.lines))
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
steps = [{ loop = "forever", steps = [{ run = "20us" }, { write = "there", bytes = 1 }, { read = "back", bytes = 1 }] }]
[[task]]
name = "b"
affinity = "1"
steps = [{ loop = "forever", steps = [{ read = "there", bytes = 1 }, { write = "back", bytes = 1 }] }]
"#;

#[test]
fn a_wake_up_of_an_idle_cpu_moves_the_flags_of_its_idle_task() {
    let out = run(2, PING_PONG);
    let flags = line(&out, "task_struct(idle)", "thread_info");
    let woken = wakeups(&out);
    assert!(woken > 500, "{woken}");
    // To the waker that sets the flag, and back to the idle loop that looks.
    assert!(flags.transfers >= 2 * woken, "{flags:?}, {woken}");
    assert!(flags.rmws >= 3 * woken, "{flags:?}, {woken}");
}

#[test]
fn a_switch_clears_the_flag_of_the_task_that_ran() {
    let out = run(
        1,
        r#"
duration = "20ms"
[[task]]
name = "hog"
count = 2
steps = ["hog"]
"#,
    );
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
    let out = run(
        4,
        r#"
duration = "100ms"
[[task]]
name = "hog"
count = 4
steps = ["hog"]
"#,
    );
    let jiffies = line(&out, "timekeeping", "jiffies");
    assert!((98..=101).contains(&jiffies.writes), "{jiffies:?}");
    assert!(jiffies.reads > 4 * jiffies.writes, "{jiffies:?}");
    // After each write the others fetch the line once, however often they read it.
    assert!(jiffies.transfers > 90, "{jiffies:?}");
    assert!(jiffies.transfers <= 5 * jiffies.writes, "{jiffies:?}");
}
