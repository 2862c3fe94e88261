//! Step 2 of the validation ladder: measured curves of contended operations.
//!
//! The machines are built from figures that do not come from the curves they are checked on,
//! except where the text says so; no constant is fitted to a row. Rows that the model does not
//! meet are listed as known misses, and must stay misses: a row that starts to fit fails the test
//! too, so that the list is looked at again.

use fairground_sim::cache::{Access, Cache, NS, Options, Ps};
use fairground_sim::machine_file::Machine;
use toml::{Table, Value};

const CURVES: &str = include_str!("../../../machines/calibration/contended-ops.toml");
const TOLERANCE: f64 = 0.15;

struct Curves {
    threads: Vec<usize>,
    table: Table,
}

impl Curves {
    fn of(name: &str) -> Self {
        let file: Table = CURVES.parse().unwrap();
        let machines = file["machine"].as_array().unwrap();
        let has = |m: &&Value| m["name"].as_str().unwrap().contains(name);
        let table = machines
            .iter()
            .find(has)
            .unwrap()
            .as_table()
            .unwrap()
            .clone();
        let list = table["threads"].as_array().unwrap();
        let threads = list
            .iter()
            .map(|v| v.as_integer().unwrap() as usize)
            .collect();
        Self { threads, table }
    }

    fn ns(&self, key: &str) -> Vec<f64> {
        let number = |v: &Value| {
            v.as_float()
                .unwrap_or_else(|| v.as_integer().unwrap() as f64)
        };
        self.table[key]
            .as_array()
            .unwrap()
            .iter()
            .map(number)
            .collect()
    }

    /// Single-thread costs are inputs; contended rows are what is checked.
    fn one(&self, key: &str) -> f64 {
        self.ns(key)[0]
    }
}

/// A machine of one socket; `costs` goes into `[transfer]` and `[atomics]`.
fn machine(cores: usize, cluster: usize, c: &Curves, transfer: &str, atomics: &str) -> Machine {
    let f =
        |v: f64| format!("{{ v = {v:?}, unit = \"ns\", conf = \"measured\", src = \"curves\" }}");
    let cache = |level: u8, kib: u32, ns: f64| {
        format!(
            "[[cache]]\nlevel = {level}\nsize_kib = {kib}\nways = 8\nline = 64\n\
             shared_by = \"core\"\nlatency = {}\n",
            f(ns)
        )
    };
    let text = format!(
        "schema = 1\n[machine]\nid = \"calibration\"\nname = \"c\"\narch = \"any\"\n\
         model_ghz = {{ v = 2.0, unit = \"GHz\", conf = \"measured\", src = \"curves\" }}\n\
         [topology]\nsockets = 1\ndies_per_socket = 1\ncores_per_die = {cores}\n\
         threads_per_core = 1\ncpus = {cores}\nllc_domains_per_socket = 1\n\
         numa_nodes_per_socket = 1\ncluster_cpus = {cluster}\nslit = [[10]]\n\
         cpu_numbering = \"linear\"\n{}{}{}[memory]\nlocal = {}\n\
         [transfer]\n{transfer}\n[atomics]\nrmw_uncontended = {}\ncas_loop_uncontended = {}\n\
         store_uncontended = {}\n{atomics}\n\
         [sources]\ncurves = \"measured curves\"\ntext = \"as published\"\n",
        cache(1, 32, 1.5),
        cache(2, 256, 4.0),
        cache(3, 8192, 12.0),
        f(70.0),
        f(c.one("atomic_add_ns")),
        f(c.one("cas_add_ns")),
        f(c.one("plain_add_ns")),
    );
    Machine::from_toml("calibration", &text).unwrap()
}

fn figure(key: &str, ns: f64) -> String {
    format!("{key} = {{ v = {ns:?}, unit = \"ns\", conf = \"measured\", src = \"text\" }}\n")
}

/// N threads loop on one variable (or each on its own): ns per operation of one thread.
fn tight_loop(m: &Machine, n: usize, access: Access, private: bool) -> f64 {
    let mut cache = Cache::with_options(m, 1, Options::default());
    let first = cache.alloc_lines(n as u32, 0);
    let mut next: Vec<(Ps, usize)> = (0..n).map(|i| (i as Ps * NS, i)).collect();
    let ops = 4000 * n;
    let mut from = 0;
    for i in 0..ops * 5 / 4 {
        let at = (0..n).min_by_key(|i| next[*i]).unwrap();
        let (now, cpu) = next[at];
        if i == ops / 4 {
            from = now;
        }
        let line = if private { first + cpu as u32 } else { first };
        next[at].0 = cache.touch(cpu as u32, line, 1, access, now).done_at;
    }
    let end = next.iter().map(|n| n.0).min().unwrap();
    (end - from) as f64 / ops as f64 * n as f64 / NS as f64
}

/// Prints the whole curve; returns the thread counts outside the tolerance.
fn misses(name: &str, m: &Machine, c: &Curves, key: &str) -> Vec<usize> {
    let (access, private) = match key {
        "atomic_add_ns" => (Access::Rmw, false),
        "cas_add_ns" => (Access::CasLoop, false),
        "plain_add_ns" => (Access::Store, false),
        _ => (Access::Store, true),
    };
    let mut out = Vec::new();
    for (n, want) in c.threads.iter().zip(c.ns(key)) {
        // The thread-local loop is a different one: its single-thread cost is its own input.
        let scale = if private {
            c.one(key) / c.one("plain_add_ns")
        } else {
            1.0
        };
        let got = tight_loop(m, *n, access, private) * scale;
        let off = got / want - 1.0;
        println!(
            "{name} {key} {n}: {got:.1} ns, measured {want:.1} ({:+.0} %)",
            off * 100.0
        );
        if off.abs() > TOLERANCE {
            out.push(*n);
        }
    }
    out
}

const KEYS: [&str; 4] = ["atomic_add_ns", "cas_add_ns", "plain_add_ns", "tls_add_ns"];

fn check(name: &str, m: &Machine, c: &Curves, known: [&[usize]; 4]) {
    let measured = |key: &&str| c.table.contains_key(*key);
    let found: Vec<_> = KEYS
        .into_iter()
        .filter(measured)
        .map(|key| misses(name, m, c, key))
        .collect();
    assert_eq!(found, known[..found.len()], "{name}: rows outside 15 %");
}

/// Hand-over 20 ns: CAS ping-pong of quad-core clients (19.3 and 21, another source).
///
/// Known misses: 4 threads of fetch_add (-17 %); CAS loops (-26 to -54 %: a lower bound, see
/// `cache/cas.rs`); plain adds (-30 %, 1 ns: the store buffer is not quite free).
#[test]
fn skylake_client() {
    let c = Curves::of("6700HQ");
    let service = figure("rmw_service_same_socket", 20.0);
    let m = machine(4, 0, &c, &figure("same_socket", 20.0), &service);
    check("Skylake", &m, &c, [&[4], &[2, 3, 4], &[2, 3, 4], &[]]);
}

/// No hand-over is published for this part: the same ring, so the same 20 ns, and that is some 20 %
/// too long. CAS loops as for Skylake.
#[test]
fn ice_lake_client() {
    let c = Curves::of("1035G4");
    let service = figure("rmw_service_same_socket", 20.0);
    let m = machine(4, 0, &c, &figure("same_socket", 20.0), &service);
    check("Ice Lake", &m, &c, [&[2, 3, 4], &[2, 3, 4], &[], &[]]);
}

/// No hand-over is published: two rows of the fetch_add curve (2 threads: one cluster, 15.4 ns;
/// 8 threads: two clusters) are used for the two classes; the others are predictions, and most are
/// misses: within the first cluster the measured cost nearly doubles from 2 to 3 threads, and from
/// 9 on it grows with the square of the threads. LL/SC that fails and repeats is not modelled.
#[test]
fn cortex_a72() {
    let c = Curves::of("A72");
    let curve = c.ns("atomic_add_ns");
    let near = curve[1] / 2.0;
    // Round robin over two clusters of four, random order: 4 of 7 successors are in the other.
    let far = (curve[7] / 8.0 - near * 3.0 / 7.0) * 7.0 / 4.0;
    let pair = |prefix: &str| {
        figure(&format!("{prefix}same_cluster"), near)
            + &figure(&format!("{prefix}same_socket"), far)
    };
    let m = machine(16, 4, &c, &pair(""), &pair("rmw_service_"));
    let add = [3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16];
    let cas = [3, 4, 5, 8, 10, 11, 12, 13, 14, 15, 16];
    check("A72", &m, &c, [&add, &cas, &[], &[]]);
}

/// Far atomics: 9.4 ns at the system cache (measured 8.5 to 9.4, whatever the number of cores).
///
/// Known misses: CAS loops (-18 to -49 %) and plain stores, which this part lets wait (4 to 34 ns).
#[test]
fn neoverse_n1() {
    let c = Curves::of("Neoverse");
    let far = figure("far_atomic_service", 9.4);
    let m = machine(16, 0, &c, &figure("same_socket", 30.0), &far);
    let from_two: Vec<usize> = (2..=16).collect();
    check("N1", &m, &c, [&[], &from_two, &from_two, &[]]);
}

/// The guest of whose measurements the file `spr-guest-2cpu` is made. In a tight loop the owner
/// fits about three updates into one tenure; the model lets a waiting request through after one, as
/// kernel paths, which touch once, do. So it says twice as much for the tight loop.
#[test]
fn sapphire_rapids_guest() {
    let c = Curves::of("Sapphire Rapids");
    let m = Machine::builtin("spr-guest-2cpu").unwrap();
    check("SPR guest", &m, &c, [&[2], &[2], &[], &[]]);
}

/// Two CPUs, straight-line work between the operations: ns that the other CPU adds to each.
///
/// Out-of-order execution over such work hides about half of a hand-over; branchy kernel code hides
/// less, and the model hides nothing of an update. Expected from the model, and asserted: never
/// less than measured, except for plain stores, which it hides altogether; and that a CAS loop is
/// made longer by no more than an update, for its load and its swap are one transaction.
#[test]
fn sapphire_rapids_guest_spaced() {
    let c = Curves::of("Sapphire Rapids");
    let m = Machine::builtin("spr-guest-2cpu").unwrap();
    let (mut updates, mut swaps) = (Vec::new(), 0);
    for (key, access) in [
        ("atomic_add_extra_ns", Access::Rmw),
        ("cas_add_extra_ns", Access::CasLoop),
        ("plain_add_extra_ns", Access::Store),
        ("load_extra_ns", Access::Load),
    ] {
        for (work, want) in c.ns("spaced_work_ns").into_iter().zip(c.ns(key)) {
            let mut cache = Cache::new(&m, 1);
            let line = cache.alloc_lines(1, 0);
            let think = (work * 1000.0) as Ps;
            // CPU 0 is the one observed; CPU 1 updates at the same rate. The work varies by a
            // quarter: two strict periods would lock on to each other.
            let mut next = [0, think / 2];
            let (mut extra, mut count) = (0, 0);
            for i in 0..10_000u64 {
                let cpu = usize::from(next[1] < next[0]);
                let kind = if cpu == 0 { access } else { Access::Rmw };
                let cost = cache.touch(cpu as u32, line, 1, kind, next[cpu]);
                if cpu == 0 {
                    extra += cost.done_at - next[0];
                    count += 1;
                }
                let jitter = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
                next[cpu] = cost.done_at + think * 3 / 4 + think * jitter / (1 << 17);
            }
            let alone = match access {
                Access::Rmw => m.value("atomics.rmw_uncontended").unwrap(),
                Access::CasLoop => m.value("atomics.cas_loop_uncontended").unwrap(),
                Access::Store => m.value("atomics.store_uncontended").unwrap(),
                _ => m.cache_latency_ns(1),
            };
            let got = extra as f64 / f64::from(count) / NS as f64 - alone;
            println!("{key} {work}: {got:.1} ns, measured {want:.1}");
            match access {
                Access::Store => assert!(got < 1.0),
                _ => assert!(got > want * (1.0 - TOLERANCE)),
            }
            updates.extend((access == Access::Rmw).then_some(got));
            if access == Access::CasLoop {
                // Measured: 66, 45, 22 for 65, 38, 25.
                let (loops, update) = (got, updates[swaps]);
                assert!(loops < update * 1.2, "a loop {loops}, an update {update}");
                swaps += 1;
            }
        }
    }
}
