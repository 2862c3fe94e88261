//! The measurements in their order, each with the words that the machine file says about it.

use std::io;
use std::time::{Duration, Instant};

use crate::figure::Base;
use crate::levels;
use crate::measure::lines::{self, SPACED, Update};
use crate::measure::{groups, kernel, memory};
use crate::pairs::{self, Class, Pair};
use crate::plan::Calibration;
use crate::sample::{self, Spread, percentile, quiet, spread};

/// Time for all pairs of CPUs together.
const PAIRS_TIME: Duration = Duration::from_secs(50);

/// What is known so far, and how thoroughly to go on.
pub(crate) struct Run<'a> {
    /// Every pair of allowed CPUs.
    pub every: Vec<Pair>,
    /// Batches of each measurement.
    pub count: u32,
    /// Pairs of each class.
    pub each: usize,
    pub quick: bool,
    pub base: &'a Base,
    /// Where everything is measured that needs one CPU.
    pub cpu: u32,
    pub out: Calibration,
}

impl Run<'_> {
    pub(crate) fn clock(&mut self) -> io::Result<()> {
        let step = self.of(&memory::chain_ns(self.cpu, self.count)?);
        let cycles = 6.0;
        let note = format!(
            "a chain of {cycles} dependent one-cycle operations takes {:.3} ns",
            step.v
        );
        self.out
            .figures
            .derived("machine.model_ghz", cycles / step.v, "GHz", &note);
        let ghz = cycles / step.v;
        let divide = self.of(&memory::division_ns(self.cpu, self.count)?);
        let note = "64-bit quotient, divisor 3; less one cycle of the loop's exclusive or";
        let divide = (divide.v * ghz - 1.0).max(1.0);
        self.out
            .figures
            .derived("alu.div64", divide, "cycles", note);
        self.pause(ghz)
    }

    /// On arm64 a CPU that waits for a lock of the kernel waits for the line, without rounds.
    fn pause(&mut self, ghz: f64) -> io::Result<()> {
        if cfg!(target_arch = "aarch64") {
            let figures = &mut self.out.figures;
            figures.derived("alu.pause", 0.0, "cycles", "the kernel waits by WFE");
            return Ok(());
        }
        let pause = self.of(&memory::pause_ns(self.cpu, self.count)?);
        let note = format!("a pause of a spinning CPU takes {:.1} ns", pause.v);
        let figures = &mut self.out.figures;
        figures.derived("alu.pause", pause.v * ghz, "cycles", &note);
        Ok(())
    }

    pub(crate) fn memory(&mut self) -> io::Result<()> {
        let caches = self.out.system.caches.clone();
        let hops = if self.quick { 20_000 } else { 100_000 };
        let line = caches.first().map_or(64, |c| c.line);
        let mut below = 0;
        for cache in caches.iter().filter(|c| c.level <= 3) {
            // Well inside this level, and far too large for the one before.
            let kib = u64::from(cache.size_kib / 2).min(4 * below.max(8));
            let path = format!("cache.l{}.latency", cache.level);
            if kib > below {
                let times = memory::loads((self.cpu, self.cpu), kib, line, self.count, hops)?;
                let note = format!("dependent loads in random order over {kib} KiB");
                self.put(&path, self.of(&times), "ns", &note);
            } else {
                let why = "hardly larger than the level before";
                self.stand_in(&[&path], "ns", why);
            }
            below = u64::from(cache.size_kib);
        }
        let available = levels::available_kib();
        let kib = levels::memory_kib(below, available, self.quick);
        let note = format!(
            "dependent loads in random order over {kib} KiB; {}",
            pages()
        );
        let count = self.count.min(11);
        let times = memory::loads((self.cpu, self.cpu), kib, line, count, hops)?;
        self.put("memory.local", self.of(&times), "ns", &note);
        let mut paths = vec!["memory.local"];
        for (path, home) in self.remote_homes() {
            match home {
                Some(home) => {
                    let times = memory::loads((self.cpu, home), kib, line, count, hops)?;
                    let note = format!("as local, memory first touched by CPU {home}");
                    self.put(path, self.of(&times), "ns", &note);
                    paths.push(path);
                }
                None => self.stand_in(&[path, "memory.local"], "ns", "no CPU there is allowed"),
            }
        }
        if let Some(why) = levels::not_alone(below, kib) {
            for path in paths {
                self.out.figures.doubt(path, &why);
                self.out.warnings.push(format!("{path}: {why}"));
            }
        }
        let impossible = levels::doubt_impossible(&mut self.out.figures);
        self.out.warnings.extend(impossible);
        Ok(())
    }

    /// Figures of memory on other nodes, and a CPU of such a node.
    fn remote_homes(&self) -> Vec<(&'static str, Option<u32>)> {
        let system = &self.out.system;
        let package = |cpu| system.cpu(cpu).map(|c| c.package);
        let node = |cpu: u32| system.nodes.iter().position(|n| n.cpus.contains(&cpu));
        let here = (package(self.cpu), node(self.cpu));
        let cpus: Vec<u32> = self.every.iter().flat_map(|p| [p.a, p.b]).collect();
        let find = |same: bool| {
            let other = |c: &u32| (package(*c) == here.0) == same && node(*c) != here.1;
            cpus.iter().copied().find(other)
        };
        let mut homes = Vec::new();
        if self.out.shape.sockets > 1 {
            homes.push(("memory.remote", find(false)));
        }
        if self.out.shape.nodes_per_socket > 1 {
            homes.push(("memory.same_socket_other_die", find(true)));
        }
        homes
    }

    pub(crate) fn updates(&mut self) -> io::Result<()> {
        for (path, update, note) in [
            (
                "atomics.rmw_uncontended",
                Update::Add,
                "fetch_add in a loop",
            ),
            (
                "atomics.cas_loop_uncontended",
                Update::CasLoop,
                "load and compare-and-swap in a loop",
            ),
            (
                "atomics.store_uncontended",
                Update::Store,
                "load and store in a loop, each after the other",
            ),
        ] {
            let times = lines::alone(self.cpu, update, 0, self.count)?;
            self.put(path, self.of(&times), "ns", note);
        }
        Ok(())
    }

    pub(crate) fn lines(&mut self) -> io::Result<()> {
        let start = Instant::now();
        let mut by_class: Vec<(Class, Vec<f64>)> = Vec::new();
        // Farthest class first: if time runs out, the nearest have fewest pairs and are most alike.
        for pair in pairs::sampled(&self.every, self.each).iter().rev() {
            let (count, turns) = (self.count, 200);
            let known = by_class.last().filter(|(class, _)| *class == pair.class);
            if known.is_some() && start.elapsed() > PAIRS_TIME {
                continue;
            }
            let times = lines::transfer((pair.a, pair.b), count, turns)?;
            let Some(ns) = quiet(&times) else { continue };
            match by_class.last_mut() {
                Some((class, values)) if *class == pair.class => values.push(ns),
                _ => by_class.push((pair.class, vec![ns])),
            }
        }
        for (class, values) in by_class.iter().rev() {
            let n = values.len();
            let all = self.every.iter().filter(|p| p.class == *class).count();
            let note = format!("compare-and-swap ping-pong / 2, {n} of {all} pairs of CPUs");
            if let Some(value) = spread(values) {
                self.put(&format!("transfer.{}", class.key()), value, "ns", &note);
            }
            self.out.pairs.push((*class, n));
        }
        Ok(())
    }

    pub(crate) fn contention(&mut self) -> io::Result<()> {
        let apart = lines::alone(self.cpu, Update::Add, SPACED, self.count)?;
        let apart = self.of(&apart).v;
        for (class, cpus) in self.representatives() {
            let key = class.key();
            let count = self.count * 4;
            let spaced = lines::contended(cpus, Update::Add, SPACED, count)?;
            let path = format!("atomics.rmw_service_{key}");
            let note = format!(
                "two CPUs, updates {:.0} ns apart: what one takes beyond its {apart:.1} ns alone",
                apart
            );
            match sample::contended_extra(apart, &spaced) {
                Some(value) => self.put(&path, value, "ns", &note),
                None => self.cannot(&path, "the two CPUs hardly ever ran at the same time"),
            }
            let tight = |update| -> io::Result<Option<Spread>> {
                let batches = lines::contended(cpus, update, 0, count)?;
                Ok(sample::contended_extra(0.0, &batches))
            };
            if let Some(add) = tight(Update::Add)? {
                let note = "two CPUs, fetch_add in a loop: time of one as each sees it";
                self.put(&format!("atomics.rmw_tight_loop_{key}"), add, "ns", note);
                if let Some(cas) = tight(Update::CasLoop)? {
                    let ratio = cas.v / add.v.max(0.1);
                    let note = format!("{:.0} ns by {:.0} ns, tight loop, two CPUs", cas.v, add.v);
                    let path = format!("atomics.cas_loop_over_rmw_{key}");
                    self.out.figures.derived(&path, ratio, "ratio", &note);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn calls(&mut self) -> io::Result<()> {
        let (cpu, count) = (self.cpu, self.count);
        for (key, times, note) in [
            ("syscall", kernel::syscall(cpu, count)?, "getppid"),
            (
                "sched_yield_alone",
                kernel::yield_alone(cpu, count)?,
                "nothing else to run there",
            ),
            (
                "sched_clock",
                kernel::clock(cpu, count)?,
                "clock_gettime in user space stands for it",
            ),
            (
                "pipe_write_read_self",
                kernel::pipe_alone(cpu, count)?,
                "one byte, one thread",
            ),
            (
                "yield_pair_same_cpu",
                kernel::yield_pair(cpu, count)?,
                "two threads, one sched_yield each: two switches",
            ),
            (
                "pipe_roundtrip_same_cpu",
                kernel::pipe_round_trip((cpu, cpu), count)?,
                "two threads of one process: two switches and four system calls",
            ),
        ] {
            self.put(&format!("kernel_ops.{key}"), self.of(&times), "ns", note);
        }
        if let Some(pair) = self.value("kernel_ops.yield_pair_same_cpu") {
            let note = "half of yield_pair_same_cpu: the system call and the scheduler are in it";
            let figures = &mut self.out.figures;
            figures.derived("kernel_ops.context_switch_same_cpu", pair / 2.0, "ns", note);
        }
        let gaps = kernel::gaps(cpu, if self.quick { 200 } else { 1000 })?;
        let rate = gaps.len() as f64 / if self.quick { 0.2 } else { 1.0 };
        self.gaps(&gaps, rate);
        Ok(())
    }

    /// In a guest, what the host takes beyond the ticks; else the tick as a busy loop sees it.
    fn gaps(&mut self, gaps: &[f64], rate: f64) {
        let Some(length) = spread(gaps) else { return };
        let beyond = rate - f64::from(self.out.hz);
        let note = format!(
            "middle of {} gaps of 1 to 100 us in a busy loop",
            gaps.len()
        );
        if self.out.system.guest && beyond > 100.0 {
            self.put("kernel_ops.host_gap", length, "ns", &note);
            let note = format!("{rate:.0} gaps a second less {} ticks", self.out.hz);
            let every = (1e9 / beyond).round();
            let figures = &mut self.out.figures;
            figures.derived("kernel_ops.host_gap_every", every, "ns", &note);
            let kept = format!("as host_gap, of {} gaps", gaps.len());
            for (name, share) in [("least", 0.0), ("p90", 0.9), ("p99", 0.99), ("most", 1.0)] {
                let value = percentile(gaps, share);
                figures.derived(&format!("kernel_ops.host_gap_{name}"), value, "ns", &kept);
            }
        } else {
            let note = format!("{note}, {rate:.0} a second: the tick with all that it does");
            self.put("kernel_ops.busy_loop_gap", length, "ns", &note);
        }
    }

    pub(crate) fn wakeups(&mut self) -> io::Result<()> {
        let representatives = self.representatives();
        for (class, cpus) in &representatives {
            let times = kernel::pipe_round_trip(*cpus, self.count.min(21))?;
            let path = format!("kernel_ops.pipe_roundtrip_{}", class.key());
            let note = format!("CPUs {} and {}, each idle in between", cpus.0, cpus.1);
            self.put(&path, self.of(&times), "ns", &note);
        }
        if let Some((_, cpus)) = representatives.iter().find(|(c, _)| *c != Class::Smt) {
            let times = kernel::wake_latency(*cpus, if self.quick { 100 } else { 1000 })?;
            let note = "write to a pipe until the reader on an idle CPU has the byte, median";
            if let Some(value) = spread(&times) {
                let value = Spread {
                    hi: value.v.max(percentile(&times, 0.9)),
                    ..value
                };
                self.put("kernel_ops.wake_latency_idle_cpu", value, "ns", note);
            }
        }
        Ok(())
    }

    pub(crate) fn groups(&mut self) -> io::Result<()> {
        let path = "kernel_ops.group_level_pipe_roundtrip";
        let turns = if self.quick { 3 } else { 15 };
        match groups::turns(self.cpu, turns, self.count.min(21)) {
            Ok(turns) => {
                let depth = groups::DEPTH;
                let note = format!(
                    "one level of groups, from depths 0 and {depth}, {} turns",
                    turns.len()
                );
                match sample::per_level(&turns, depth).filter(|level| level.v > 0.0) {
                    Some(level) => {
                        let level = Spread {
                            lo: level.lo.max(0.0),
                            ..level
                        };
                        self.put(path, level, "ns", &note);
                    }
                    None => self.cannot(path, "smaller than the noise of this machine"),
                }
            }
            Err(e) => self.cannot(path, &format!("no groups can be made: {e}")),
        }
        Ok(())
    }
}

/// Whether large arrays get huge pages: with small ones a load also walks the page table.
fn pages() -> String {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let chosen = text.split(['[', ']']).nth(1).unwrap_or("unknown");
    format!("transparent huge pages: {chosen}")
}
