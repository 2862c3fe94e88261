//! Steps 5 and 7 of the validation ladder: closed queues and the false-sharing classifier.

use fairground_sim::cache::{Access, Cache, LineId, MissClass, NS, Options, Ps};
use fairground_sim::machine_file::{Distance, Machine};

/// Event loop over CPUs that repeat `touch`, think; ns between two completions, machine-wide.
fn closed(
    cache: &mut Cache,
    cpus: &[u32],
    think: Ps,
    ops: usize,
    touch: impl Fn(&mut Cache, u32, Ps) -> Ps,
) -> f64 {
    let mut next: Vec<(Ps, u32)> = cpus
        .iter()
        .enumerate()
        .map(|(i, c)| (i as Ps * 7 * NS, *c))
        .collect();
    let warm = ops / 4;
    let (mut from, mut last) = (0, 0);
    for i in 0..ops + warm {
        let at = (0..next.len()).min_by_key(|i| next[*i]).unwrap();
        let (now, cpu) = next[at];
        let done = touch(cache, cpu, now);
        next[at].0 = done + think;
        last = now;
        if i == warm {
            from = now;
        }
    }
    (last - from) as f64 / ops as f64 / NS as f64
}

/// X = min(1/S, N/(Z+R)), with S the service and R the unloaded response of one update.
#[test]
fn step_5_closed_queue() {
    let no_knee = Options {
        knee: false,
        ..Options::default()
    };
    for id in ["spr-8480-2s", "icx-8358-2s", "kunpeng920-6426-2s"] {
        let m = Machine::builtin(id).unwrap();
        // One socket, one die, one thread for each core: one distance class.
        let die = m.topology.cpus[0];
        let cpus: Vec<u32> = (0..m.topology.nr_cpus() as u32)
            .filter(|c| {
                let p = m.topology.cpus[*c as usize];
                (p.socket, p.llc, p.thread) == (0, die.llc, 0)
            })
            .filter(|c| id != "kunpeng920-6426-2s" || c % 4 == 0)
            .collect();
        let d = m.topology.cpus[0].distance(&m.topology.cpus[cpus[1] as usize]);
        let (s, r) = (m.rmw_service_ns(d), m.transfer_ns(d));
        for n in [1, 2, 4, 8, 16, 32] {
            for z in [0.0, 100.0, 500.0, 2000.0, 10_000.0] {
                let Some(some) = cpus.get(..n) else { continue };
                let mut cache = Cache::with_options(&m, 1, no_knee);
                let line = cache.alloc_lines(1, 0);
                let think = (z * 1000.0) as Ps;
                let gap = closed(&mut cache, some, think, 4000, |c, cpu, now| {
                    c.touch(cpu, line, 1, Access::Rmw, now).done_at
                });
                let r = if n == 1 {
                    m.value("atomics.rmw_uncontended").unwrap()
                } else {
                    r
                };
                let alone = (z + r) / n as f64;
                let bound = if n == 1 { alone } else { s.max(alone) };
                let off = gap / bound - 1.0;
                assert!(
                    off.abs() < 0.05,
                    "{id} N={n} Z={z}: {gap:.1} vs {bound:.1} ns"
                );
            }
        }
    }
}

/// One CPU writes a line, then `readers` read it at the same time and `writer` updates it: the ns
/// that each reader waits, and those that the update waits.
fn reads_then_update(id: &str, readers: &[u32], writer: u32) -> (Vec<u64>, u64) {
    let m = Machine::builtin(id).unwrap();
    let mut cache = Cache::new(&m, 1);
    let line = cache.alloc_lines(1, 0);
    for cpu in [1, 0] {
        cache.touch(cpu, line, 1, Access::Rmw, 0);
    }
    let now = 10_000 * NS;
    let read = |cpu: &u32| cache.touch(*cpu, line, 1, Access::Load, now).wait;
    let waits = readers.iter().map(read).collect();
    let update = cache.touch(writer, line, 1, Access::Rmw, now);
    (waits, update.wait)
}

/// The first load of an L3 domain after a write keeps the line busy, as an update does; those that
/// follow are served by the domain's copy as soon as it is there, all at once.
#[test]
fn loads_of_a_copy_in_the_own_l3_do_not_queue() {
    let first_load = |id: &str, d: Distance| {
        let m = Machine::builtin(id).unwrap();
        (m.rmw_service_ns(d) * 1000.0).round() as Ps
    };
    // One domain: one transaction, however many readers.
    let busy = first_load("spr-8480-2s", Distance::SameSocket);
    let readers: Vec<u32> = (2..40).collect();
    let (waits, update) = reads_then_update("spr-8480-2s", &readers, 40);
    assert_eq!(waits[0], 0);
    assert!(waits[1..].iter().all(|w| *w == busy), "{waits:?}");
    assert_eq!(update, busy);
    // Dies of eight cores with an L3 each: a transaction of each die, and nothing for the others.
    let die = first_load("genoa-9654-2s", Distance::SameSocket);
    let own = first_load("genoa-9654-2s", Distance::SameDie);
    let (waits, update) = reads_then_update("genoa-9654-2s", &[2, 3, 4, 8, 9, 10, 16, 17], 5);
    assert_eq!(waits[..3], [0, own, own]);
    assert_eq!(waits[3..6], [own, own + die, own + die]);
    assert_eq!(waits[6..], [own + die, own + 2 * die]);
    assert_eq!(update, own + 2 * die);
}

/// The server with the knee that its file leaves off.
fn with_knee() -> Machine {
    let m = Machine::builtin("spr-8480-2s").unwrap();
    m.with_figure("atomics.ingress_slope", 1.0).unwrap()
}

/// The knee lengthens service only beyond the limit, and only where the file has one.
#[test]
fn knee_is_off_where_it_should_be() {
    let m = with_knee();
    let gap = |cpus: usize, knee: bool| {
        let options = Options {
            knee,
            ..Options::default()
        };
        let mut cache = Cache::with_options(&m, 1, options);
        let line = cache.alloc_lines(1, 0);
        let cpus: Vec<u32> = (0..cpus as u32).collect();
        closed(&mut cache, &cpus, 0, 20_000, |c, cpu, now| {
            c.touch(cpu, line, 1, Access::Rmw, now).done_at
        })
    };
    assert_eq!(gap(64, true), gap(64, false));
    let (with, without) = (gap(112, true), gap(112, false));
    println!("112 CPUs on one line: {without:.1} ns, with the knee {with:.1} ns");
    assert!(with > without * 1.02);
}

/// However loads and updates mix, no more requests are outstanding than there are CPUs.
#[test]
fn knee_of_mixed_requests_is_that_of_the_requests_there_are() {
    let m = with_knee();
    let gap = |knee: bool| {
        let options = Options {
            knee,
            ..Options::default()
        };
        let mut cache = Cache::with_options(&m, 1, options);
        let line = cache.alloc_lines(1, 0);
        let cpus: Vec<u32> = (0..224).collect();
        closed(&mut cache, &cpus, 0, 20_000, |c, cpu, now| {
            let access = if cpu.is_multiple_of(4) {
                Access::Rmw
            } else {
                Access::Load
            };
            c.touch(cpu, line, 1, access, now).done_at
        })
    };
    let (with, without) = (gap(true), gap(false));
    println!("224 CPUs, 3 loads an update: {without:.1} ns, with the knee {with:.1} ns");
    let most = 1.0 + (224.0 - 96.0) / 96.0;
    assert!(
        with > without && with < without * most * 1.1,
        "{with} {without}"
    );
}

/// Counters of 8 CPUs on one line, and padded to a line each.
#[test]
fn step_7_false_sharing() {
    let m = Machine::builtin("spr-8480-2s").unwrap();
    for access in [Access::Store, Access::Rmw] {
        for (padded, words_apart) in [(false, true), (true, true), (false, false)] {
            let mut cache = Cache::new(&m, 1);
            let first = cache.alloc_lines(8, 0);
            let place = |cpu: u32| -> (LineId, u8) {
                match (padded, words_apart) {
                    (true, _) => (first + cpu, 1),
                    (false, true) => (first, 1 << cpu),
                    (false, false) => (first, 1),
                }
            };
            let mut now = 0;
            for i in 0..8000 {
                let cpu = i % 8;
                let (line, word) = place(cpu);
                now = cache.touch(cpu, line, word, access, now).done_at + 100 * NS;
            }
            let (t, f) = (
                cache.touches(MissClass::TrueSharing),
                cache.touches(MissClass::FalseSharing),
            );
            let stats = cache.line_stats(first);
            match (padded, words_apart) {
                (true, _) => assert_eq!((t, f, stats.transfers), (0, 0, 0)),
                (false, true) => assert_eq!((t, f), (0, 8000 - 8)),
                (false, false) => assert_eq!((t, f), (8000 - 8, 0)),
            }
            assert_eq!(u64::from(stats.false_sharing), f);
        }
    }
}

/// A reader of a constant beside a counter: the classic case of `perf c2c`.
#[test]
fn step_7_a_constant_beside_a_counter() {
    let m = Machine::builtin("icx-8358-2s").unwrap();
    let mut cache = Cache::new(&m, 1);
    let line = cache.alloc_lines(1, 0);
    for i in 0..1000 {
        let now = i * 1000 * NS;
        cache.touch(0, line, 0b1, Access::Rmw, now);
        cache.touch(1, line, 0b10, Access::Load, now + 300 * NS);
        cache.touch(2, line, 0b1, Access::Load, now + 600 * NS);
    }
    let s = cache.line_stats(line);
    assert_eq!((s.false_sharing, s.true_sharing), (999, 999));
    // Each update invalidates the two readers first.
    assert_eq!(s.upgrades, 999);
    assert_eq!((s.reads, s.rmws), (2000, 1000));
}
