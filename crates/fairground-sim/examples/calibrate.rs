//! Small operations on the simulated guest beside what was measured on the real one: the table of
//! `docs/calibration.md`. `cargo run --release -p fairground-sim --example calibrate`
use fairground::policy::Features;
use fairground_sim::{
    machine::Setup, machine_file::Machine, outcome, spec::Scenario, workload::Env,
};

/// What is measured, where its two tasks run, how many groups above them, and the figure in ns.
struct Row {
    what: &'static str,
    scenario: fn(depth: usize) -> String,
    depth: usize,
    measured: f64,
}

const ROWS: [Row; 13] = [
    row(
        "sched_yield, nobody else",
        |d| alone(d, "\"yield\""),
        0,
        206.0,
    ),
    row(
        "FUTEX_WAKE, nobody waits",
        |d| alone(d, "{ futex_wake = \"f\", n = 1 }"),
        0,
        184.58,
    ),
    row(
        "pipe write + read of one byte by one thread",
        |d| {
            alone(
                d,
                "{ write = \"a\", bytes = 1 }, { read = \"a\", bytes = 1 }",
            )
        },
        0,
        370.7,
    ),
    row(
        "a yield of each of two threads, one CPU",
        yields,
        0,
        1091.76,
    ),
    row("the same in a group 2 levels down", yields, 2, 1156.66),
    row("the same in a group 6 levels down", yields, 6, 1196.8),
    row("pipe round trip, one CPU", |d| pipe(d, "0"), 0, 2252.64),
    row(
        "the same in a group 2 levels down",
        |d| pipe(d, "0"),
        2,
        2382.56,
    ),
    row(
        "the same in a group 6 levels down",
        |d| pipe(d, "0"),
        6,
        2507.98,
    ),
    row("pipe round trip, two CPUs", |d| pipe(d, "1"), 0, 8898.4),
    row(
        "the same in a group 6 levels down",
        |d| pipe(d, "1"),
        6,
        9944.76,
    ),
    row("futex round trip, one CPU", |d| futex(d, "0"), 0, 2122.7),
    row("futex round trip, two CPUs", |d| futex(d, "1"), 0, 7352.64),
];

const fn row(
    what: &'static str,
    scenario: fn(usize) -> String,
    depth: usize,
    measured: f64,
) -> Row {
    Row {
        what,
        scenario,
        depth,
        measured,
    }
}

fn main() {
    let machine = Machine::builtin("spr-guest-2cpu").expect("a built-in machine");
    println!("| operation | measured, ns | simulated, ns | off by |\n| --- | ---: | ---: | ---: |");
    for row in &ROWS {
        let text = (row.scenario)(row.depth);
        let workload = Scenario::parse("calibrate", &text)
            .and_then(|s| s.workload(&Env { cpus: 2 }))
            .unwrap_or_else(|e| panic!("{}: {e:?}", row.what));
        let setup = Setup {
            machine: &machine,
            features: Features::default(),
            workload: &workload,
            seed: 1,
            trace: false,
        };
        let out = outcome::run(&setup).unwrap_or_else(|e| panic!("{}: {e}", row.what));
        let rate = out.metrics.iter().find(|m| m.0 == "turn.marks_per_s");
        let ns = 1e9 / rate.and_then(|m| m.1).expect("turns were counted");
        let off = 100.0 * (ns / row.measured - 1.0);
        println!(
            "| {} | {:.0} | {ns:.0} | {off:+.0} % |",
            row.what, row.measured
        );
    }
}

/// Declarations, with `depth` groups one below the other; and the name of the deepest.
fn head(depth: usize) -> (String, String) {
    let mut text = String::from(
        "name = \"c\"\nduration = \"100ms\"\nwarmup = \"20ms\"\npipes = [\"a\", \"b\"]\n\
         futexes = [\"f\"]\nsemaphores = { s = 0, t = 0 }\n",
    );
    let mut path = String::new();
    for level in 0..depth {
        path += &format!("/g{level}");
        text += &format!("[[cgroup]]\npath = \"{path}\"\n");
    }
    (text, if depth == 0 { "/".into() } else { path })
}

fn task(name: &str, cpu: &str, group: &str, steps: &str) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\nprocess = \"c\"\naffinity = \"{cpu}\"\ncgroup = \"{group}\"\n\
         steps = [{{ loop = \"forever\", steps = [{steps}] }}]\n"
    )
}

fn alone(depth: usize, steps: &str) -> String {
    let (head, group) = head(depth);
    head + &task(
        "one",
        "0",
        &group,
        &format!("{steps}, {{ mark = \"turn\" }}"),
    )
}

fn yields(depth: usize) -> String {
    let (head, group) = head(depth);
    head + &task("one", "0", &group, "\"yield\", { mark = \"turn\" }")
        + &task("two", "0", &group, "\"yield\"")
}

fn pipe(depth: usize, cpu: &str) -> String {
    let (head, group) = head(depth);
    let one = "{ write = \"a\", bytes = 1 }, { read = \"b\", bytes = 1 }, { mark = \"turn\" }";
    let two = "{ read = \"a\", bytes = 1 }, { write = \"b\", bytes = 1 }";
    head + &task("one", "0", &group, one) + &task("two", cpu, &group, two)
}

/// Two words to wait on, as semaphores: one wake-up and one wait of each.
fn futex(depth: usize, cpu: &str) -> String {
    let (head, group) = head(depth);
    let one = "{ post = \"s\" }, { wait = \"t\" }, { mark = \"turn\" }";
    let two = "{ wait = \"s\" }, { post = \"t\" }";
    head + &task("one", "0", &group, one) + &task("two", cpu, &group, two)
}
