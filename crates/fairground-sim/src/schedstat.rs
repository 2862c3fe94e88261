//! `/proc/schedstat`, version 17, of a run up to a moment.
//!
//! Read first: `Documentation/scheduler/sched-stats.rst`, which has the fields and their order. The
//! counters of balancing are the engine's own (`SdState`); what happens to tasks is counted from
//! tracepoints. Times are in nanoseconds.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use fairground::event::Event;
use fairground::topology::SchedDomain;
use fairground::value::{Cpu, CpuMask, TaskId};

use crate::host::BOOT_NS;
use crate::machine::Sim;

/// Counters of a CPU's row, in its order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Row {
    pub yields: u64,
    pub schedules: u64,
    to_idle: u64,
    wakeups: u64,
    local: u64,
    ran_ns: u64,
    waited_ns: u64,
    slices: u64,
}

/// All counters that the engine does not keep.
pub(crate) struct SchedStats {
    /// By CPU.
    pub cpus: Vec<Row>,
    /// Wake-ups on another CPU, by waking CPU and the smallest domain of it that has both.
    wake_remote: Vec<Vec<u64>>,
}

impl SchedStats {
    /// Nothing has happened.
    pub fn new(sim: &Sim<'_>) -> Self {
        let levels = |cpu: Cpu| vec![0; sim.sys.topology.domains(cpu).len()];
        Self {
            cpus: vec![Row::default(); sim.rqs.len()],
            wake_remote: sim.rqs.iter().map(|rq| levels(rq.cpu)).collect(),
        }
    }

    /// What the tracepoints say. As in the kernel, time on a CPU is counted when it ends, and
    /// waiting on the CPU where it was.
    pub fn count(&mut self, sim: &Sim<'_>) {
        let rows = &mut self.cpus;
        // Since when each CPU has run somebody; since when each task has waited.
        let mut running: Vec<Option<(TaskId, u64)>> = vec![None; rows.len()];
        let mut waiting: Vec<Option<u64>> = vec![None; sim.tasks.len()];
        let mut woken_by = vec![0; sim.tasks.len()];
        for line in sim.host.counters.trace.as_deref().unwrap_or(&[]) {
            match line.event {
                Event::Waking { task, .. } => {
                    rows[line.cpu as usize].wakeups += 1;
                    woken_by[task.idx()] = line.cpu;
                }
                Event::Wakeup { task, cpu } => {
                    let by: u32 = woken_by[task.idx()];
                    waiting[task.idx()] = Some(line.at_ns);
                    if cpu.0 == by {
                        rows[by as usize].local += 1;
                        continue;
                    }
                    let mut domains = sim.sys.topology.domains(Cpu(by)).iter();
                    if let Some(level) = domains.position(|sd| sd.span.has(cpu)) {
                        self.wake_remote[by as usize][level] += 1;
                    }
                }
                Event::WakeupNew { task, .. } => waiting[task.idx()] = Some(line.at_ns),
                Event::Migrate { task, from, .. } => {
                    let row = &mut rows[from.idx()];
                    if let Some((_, since)) = running[from.idx()].take_if(|(t, _)| *t == task) {
                        // The stopper has taken the CPU from it.
                        row.ran_ns += line.at_ns - since;
                        waiting[task.idx()] = Some(line.at_ns);
                    } else if let Some(since) = &mut waiting[task.idx()] {
                        row.waited_ns += line.at_ns.saturating_sub(*since);
                        *since = line.at_ns;
                    }
                }
                Event::Switch {
                    cpu,
                    prev,
                    prev_runnable,
                    next,
                } => {
                    let row = &mut rows[cpu.idx()];
                    if let Some((_, since)) = running[cpu.idx()].take() {
                        row.ran_ns += line.at_ns - since;
                    }
                    if let Some(prev) = prev.filter(|_| prev_runnable) {
                        waiting[prev.idx()] = Some(line.at_ns);
                    }
                    match next {
                        None => row.to_idle += 1,
                        Some(next) => {
                            row.slices += 1;
                            running[cpu.idx()] = Some((next, line.at_ns));
                            if let Some(since) = waiting[next.idx()].take() {
                                row.waited_ns += line.at_ns.saturating_sub(since);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The file.
    pub fn text(&self, sim: &Sim<'_>, at_ns: u64) -> String {
        let jiffies = sim.sys.features.jiffies(at_ns + BOOT_NS);
        let mut text = format!("version 17\ntimestamp {jiffies}\n");
        for (cpu, r) in (0..).zip(&self.cpus) {
            // The second is a place that nothing has counted into for many versions.
            let _ = writeln!(
                text,
                "cpu{cpu} {} 0 {} {} {} {} {} {} {}",
                r.yields,
                r.schedules,
                r.to_idle,
                r.wakeups,
                r.local,
                r.ran_ns,
                r.waited_ns,
                r.slices
            );
            let domains = sim.sys.topology.domains(Cpu(cpu)).iter().enumerate();
            for (level, sd) in domains {
                let remote = self.wake_remote[cpu as usize][level];
                domain(sd, level, self.cpus.len(), remote, &mut text);
            }
        }
        text
    }
}

/// One domain: 11 counters each for busy, idle and newly idle CPUs, then 12.
fn domain(sd: &SchedDomain, level: usize, cpus: usize, wake_remote: u64, text: &mut String) {
    let of = |counter: &AtomicU64| counter.load(Relaxed);
    let s = &sd.state;
    let _ = write!(
        text,
        "domain{level} {} {}",
        sd.kind.name(),
        mask(&sd.span, cpus)
    );
    for idle in 0..3 {
        let [load, util, task, misfit] = &s.lb_imbalance[idle];
        for counter in [
            &s.lb_count[idle],
            &s.lb_balanced[idle],
            &s.lb_failed[idle],
            load,
            util,
            task,
            misfit,
            &s.lb_gained[idle],
            &s.lb_hot_gained[idle],
            &s.lb_nobusyq[idle],
            &s.lb_nobusyg[idle],
        ] {
            let _ = write!(text, " {}", of(counter));
        }
    }
    // Balancing at exec and fork, and passive balancing at wake-up, have not been counted by any
    // kernel for long; their places have stayed.
    let _ = writeln!(
        text,
        " {} {} {} 0 0 0 0 0 0 {wake_remote} {} 0",
        of(&s.alb_count),
        of(&s.alb_failed),
        of(&s.alb_pushed),
        of(&s.ttwu_move_affine)
    );
}

/// As the kernel prints masks: hexadecimal, 32 bits between commas, the highest first.
fn mask(mask: &CpuMask, cpus: usize) -> String {
    let words = cpus.div_ceil(32).max(1);
    let word = |n: usize| {
        let bits = (cpus - n * 32).min(32);
        let has = |bit: &usize| mask.has(Cpu((n * 32 + bit) as u32));
        let value = (0..bits)
            .filter(has)
            .fold(0_u32, |word, bit| word | 1 << bit);
        format!("{value:0width$x}", width = bits.div_ceil(4))
    };
    let words: Vec<String> = (0..words).rev().map(word).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_those_of_the_kernel() {
        let of = |cpus: &[u32]| cpus.iter().map(|c| Cpu(*c)).collect::<CpuMask>();
        assert_eq!(mask(&of(&[0, 1, 2, 3, 4, 5, 6, 7]), 8), "ff");
        assert_eq!(mask(&of(&[1]), 2), "2");
        assert_eq!(mask(&of(&[0, 33]), 40), "02,00000001");
    }
}
