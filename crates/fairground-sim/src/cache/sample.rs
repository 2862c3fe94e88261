//! A program's own memory: a few lines stand for all of it.
//!
//! While a program runs on, what it needs is in the caches as far as it fits; how long that takes
//! is part of its run time. What this adds is fetching it anew after a move to another core, or
//! after others have pushed it out. Each sample is a line like any other: it has an owner, an age
//! and a home.
//!
//! The loads do not depend on each other, so as many lines are under way as the core has fill
//! buffers. One line in three is written, an assumption (of three matrices of a product, one is).

use std::ops::Range;

use super::{Access, Cache, LINES_IN_FLIGHT, LineId, MissClass, Ps};

/// Lines that stand for a working set.
const SAMPLES: u64 = 16;
/// One of so many lines is written.
const WRITTEN: u64 = 3;

impl Cache {
    /// Makes the lines that stand for the memory of a program, which starts on `cpu`; the first.
    pub fn alloc_working_set(&mut self, cpu: u32) -> LineId {
        let core = usize::from(self.p.cpu[cpu as usize].core);
        self.alloc_lines(SAMPLES as u32, self.p.node(core) as u32)
    }

    /// `cpu` comes back to a working set of `bytes`, for which the lines from `first` on stand: how
    /// long fetching takes what is farther away than where it stays while the program runs on, and
    /// how many bytes the private caches have lost. Misses of the samples are counted nowhere.
    pub fn come_back(&mut self, cpu: u32, first: LineId, bytes: u64, now: Ps) -> (Ps, u64) {
        let core = usize::from(self.p.cpu[cpu as usize].core);
        let llc = self.p.cores[core].llc as usize;
        let counted = (self.load_misses, self.domains[llc], self.classes);
        let lines = bytes.div_ceil(self.p.line_bytes).max(1);
        let samples = SAMPLES.min(lines);
        let (mut waits, mut missed) = (0, 0);
        let end = |part: u64| lines * part / samples;
        for i in 0..samples {
            let line = first + i as LineId;
            let cost = self.touch(cpu, line, 1, Access::Load, now);
            if i % WRITTEN == 0 {
                self.touch(cpu, line, 1, Access::Store, now);
            }
            if cost.class != MissClass::Hit {
                missed += 1;
                waits += self.farther(end(i)..end(i + 1), cost.latency);
            }
        }
        (self.load_misses, self.domains[llc], self.classes) = counted;
        (waits / LINES_IN_FLIGHT as u64, bytes / samples * missed)
    }

    /// How much longer than in a set that is gone through again and again these lines of it take,
    /// all together, one after the other: there the first ones stay in the L2, the next ones in the
    /// L3.
    fn farther(&self, lines: Range<u64>, latency: Ps) -> Ps {
        let [l2, l3] = [self.p.l2_lines, self.p.l3_lines].map(u64::from);
        let among = |from: u64, to: u64| lines.end.min(to).saturating_sub(lines.start.max(from));
        among(0, l2) * latency + among(l2, l3) * latency.saturating_sub(self.p.llc)
    }
}

#[cfg(test)]
mod tests {
    use super::super::NS;
    use super::*;
    use crate::machine_file::{Distance, Machine};

    const US: Ps = 1000 * NS;
    const KIB: u64 = 1024;

    struct Bench {
        cache: Cache,
        first: LineId,
        bytes: u64,
        now: Ps,
    }

    impl Bench {
        /// A set that is in the caches of CPU 0.
        fn new(bytes: u64) -> Self {
            let machine = Machine::builtin("spr-8480-2s").unwrap();
            let mut cache = Cache::new(&machine, 1);
            let first = cache.alloc_working_set(0);
            let mut bench = Self {
                cache,
                first,
                bytes,
                now: US,
            };
            bench.on(0);
            bench
        }

        fn on(&mut self, cpu: u32) -> Ps {
            self.now += 1000 * US;
            self.cache
                .come_back(cpu, self.first, self.bytes, self.now)
                .0
        }
    }

    fn cpu_of(socket: u32) -> u32 {
        let machine = Machine::builtin("spr-8480-2s").unwrap();
        let cpus = &machine.topology.cpus;
        let there = |c: &usize| cpus[*c].socket == socket && cpus[*c].core != cpus[0].core;
        (0..cpus.len()).find(there).unwrap() as u32
    }

    #[test]
    fn what_is_there_costs_nothing() {
        let mut bench = Bench::new(256 * KIB);
        assert_eq!(bench.on(0), 0);
    }

    #[test]
    fn a_move_fetches_all_and_a_far_one_takes_longer() {
        let (near, far) = (cpu_of(0), cpu_of(1));
        let machine = Machine::builtin("spr-8480-2s").unwrap();
        let mut bench = Bench::new(256 * KIB);
        let (to_near, again) = (bench.on(near), bench.on(near));
        let to_far = bench.on(far);
        assert_eq!(again, 0);
        assert!(to_far > to_near * 3 / 2, "{to_near} {to_far}");
        // 4096 lines, twelve at a time, mostly as a load takes that another core answers.
        let load = machine.load_hitm_ns(Distance::CrossSocket);
        let expected = 4096.0 * load / 12.0 * NS as f64;
        let off = to_far as f64 / expected - 1.0;
        assert!(off.abs() < 0.4, "{to_far} {expected}");
    }

    /// What was not written is still there; a third is fetched again.
    #[test]
    fn who_comes_back_after_a_move_fetches_what_was_written() {
        let mut bench = Bench::new(256 * KIB);
        let away = bench.on(cpu_of(0));
        let back = bench.on(0);
        assert!((away / 5..away / 2).contains(&back), "{away} {back}");
    }

    #[test]
    fn others_push_it_out() {
        let mut bench = Bench::new(256 * KIB);
        bench.cache.advance_footprint(0, 512 * KIB);
        assert_eq!(bench.on(0), 0);
        bench.cache.advance_footprint(0, 8192 * KIB);
        assert!(bench.on(0) > 5 * US);
    }

    /// Three sets that fit beside each other take turns, and push nothing out.
    #[test]
    fn sets_that_fit_are_not_pushed_out_by_taking_turns() {
        let mut bench = Bench::new(256 * KIB);
        let (b, c) = (
            bench.cache.alloc_working_set(0),
            bench.cache.alloc_working_set(0),
        );
        for _ in 0..40 {
            for first in [b, c] {
                bench.now += 1000 * US;
                let (_, lost) = bench.cache.come_back(0, first, bench.bytes, bench.now);
                bench.cache.advance_footprint(0, lost);
            }
        }
        assert_eq!(bench.on(0), 0);
    }

    /// 64 MiB do not fit into the private caches, so most of it comes from the L3 in any case.
    #[test]
    fn what_never_fits_is_part_of_the_run_time() {
        let (mut small, mut large) = (Bench::new(2048 * KIB), Bench::new(65536 * KIB));
        for bench in [&mut small, &mut large] {
            bench.cache.advance_footprint(0, 8192 * KIB);
        }
        let (small, large) = (small.on(0), large.on(0));
        assert!(large < 3 * small, "{small} {large}");
    }

    /// A set is a little larger than another one: what fits of it takes as long.
    #[test]
    fn what_fits_is_charged_however_large_the_set_is() {
        let after_a_move = |bytes| Bench::new(bytes).on(cpu_of(1));
        // The L3 has 105 MiB, a sixteenth of which 1680 MiB are.
        let [all, below, above] = [105, 1679, 1681].map(|mib| after_a_move(mib * 1024 * KIB));
        assert!(
            above > 0 && below.abs_diff(above) < below / 50,
            "{below} {above}"
        );
        assert!((all / 2..=all).contains(&below), "{all} {below}");
    }

    #[test]
    fn no_counter_sees_it() {
        let mut bench = Bench::new(256 * KIB);
        let line = bench.cache.alloc_lines(1, 0);
        for cpu in [0, cpu_of(1), 0] {
            bench.cache.touch(cpu, line, 1, Access::Rmw, bench.now);
        }
        let counted = |cache: &Cache| (cache.domains.clone(), cache.classes, cache.load_misses);
        let before = counted(&bench.cache);
        assert!(before.2 > 0 && before.1[MissClass::TrueSharing as usize] > 0);
        for cpu in [cpu_of(1), cpu_of(0), 0] {
            assert!(bench.on(cpu) > 0, "{cpu}");
            assert_eq!(counted(&bench.cache), before);
        }
    }
}
