//! Address spaces at a context switch: which one a CPU has loaded, and the two lines of its
//! `mm_struct` that the switch writes.
//!
//! ```text
//! to a task of the kernel   the loaded one stays (lazy TLB), referred to (`mmgrab_lazy_tlb`)
//! back to a user task       that reference is dropped with the queue unlocked (`mmdrop_lazy_tlb`)
//! to another address space  on x86 the CPU's bit in `mm_cpumask` of both, by decision
//! ```
//!
//! All but the drop is done with the run queue locked. All threads of a process share its lines.
//! Sources: Documentation/mm/active_mm.rst; "lazy tlb: allow lazy tlb mm refcounting to be
//! configurable", Nicholas Piggin, 2023 (6.4; x86 and arm64 count); "mm: move mm_count into its own
//! cache line", Mathieu Desnoyers, 2023 (6.5).
//!
//! Not modelled: the fields that a switch only reads, concurrency ids (`mm_cid`).

use fairground::place::Func;
use fairground::policy::MmCpumask;
use fairground::value::{Cpu, CpuMask, TaskId};

use super::{Place, SimHost, Waited};
use crate::cache::{Access, Cache, LineId, Ps};
use crate::costs::KernelOp;

/// What a switch writes on either line; nothing else is there.
const WORD: u8 = 1;

/// The lines of an `mm_struct` that a switch writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmLine {
    /// The count of references, those of idle tasks among them.
    Count,
    /// The CPUs that it is or was loaded on.
    Cpumask,
}

impl MmLine {
    const NAMES: [&str; 2] = ["mm_count", "mm_cpumask"];

    /// The field that is there.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The address spaces of a machine, by number.
#[derive(Debug, Default)]
pub struct Mms {
    /// Of each task; `None` = of the kernel's.
    of_task: Vec<Option<u32>>,
    /// Loaded on each CPU; `None` = the kernel's own.
    loaded: Vec<Option<u32>>,
    all: Vec<Mm>,
    /// On x86: when the CPU's bit is cleared.
    cpumask: Option<MmCpumask>,
    /// Of which the executing CPU has to drop a reference after its switch.
    drops: Option<u32>,
}

/// One of them.
#[derive(Clone, Debug, Default)]
struct Mm {
    /// First of two lines: the count of references, and the mask.
    lines: Option<LineId>,
    /// CPUs that it is or was loaded on.
    cpus: CpuMask,
}

impl Mms {
    /// Of a machine of so many CPUs.
    pub fn new(cpus: usize, arch: &str, cpumask: MmCpumask) -> Self {
        Self {
            loaded: vec![None; cpus],
            cpumask: (arch == "x86_64").then_some(cpumask),
            ..Self::default()
        }
    }

    /// The next task is there.
    pub fn made(&mut self, mm: Option<u32>) {
        self.of_task.push(mm);
    }

    fn of(&self, task: Option<TaskId>) -> Option<u32> {
        self.of_task.get(task?.idx()).copied().flatten()
    }

    fn at(&mut self, mm: u32) -> &mut Mm {
        let i = mm as usize;
        if self.all.len() <= i {
            self.all.resize(i + 1, Mm::default());
        }
        &mut self.all[i]
    }

    fn line(&mut self, mm: u32, which: MmLine, cache: &mut Cache) -> LineId {
        let lines = &mut self.at(mm).lines;
        *lines.get_or_insert_with(|| cache.alloc_object("mm_struct", &MmLine::NAMES, 0))
            + which as LineId
    }
}

impl SimHost {
    /// The executing CPU, with its queue locked, goes from one task to another; `None` = the idle
    /// task (`context_switch`).
    pub(super) fn context_switch(&mut self, prev: Option<TaskId>, next: Option<TaskId>) {
        if prev == next {
            return;
        }
        let cpu = self.cpu as usize;
        let (from, to) = (self.mms.of(prev), self.mms.of(next));
        let loaded = self.mms.loaded[cpu];
        match to {
            None if from.is_some() => self.count_mm(loaded),
            None => {}
            Some(mm) => {
                if loaded != to {
                    let op = KernelOp::SwitchMm;
                    self.spend_within(Place::Op(op), self.prices.op[op as usize]);
                    self.move_bit(loaded, mm);
                    self.mms.loaded[cpu] = to;
                }
                if from.is_none() {
                    self.mms.drops = loaded;
                }
            }
        }
        self.spend_within(Place::SwitchTo, self.prices.switch);
    }

    /// After the switch, with the queue unlocked.
    pub fn finish_task_switch(&mut self) {
        self.profile.count(Place::FinishTaskSwitch);
        if let Some(mm) = self.mms.drops.take() {
            let from = self.at;
            self.touch_mm(mm, MmLine::Count, Access::Rmw, Place::FinishTaskSwitch);
            let ps = self.at - from;
            self.profile.add_time(Place::FinishTaskSwitch, from, ps);
        }
    }

    fn count_mm(&mut self, mm: Option<u32>) {
        if let Some(mm) = mm {
            // Compiled into its caller, as is `context_switch`.
            let place = Place::Func(Func::Schedule);
            self.touch_mm_within(mm, MmLine::Count, Access::Rmw, place);
        }
    }

    /// The CPU leaves the mask of one address space, by decision, and comes to that of another.
    fn move_bit(&mut self, from: Option<u32>, to: u32) {
        let Some(rule) = self.mms.cpumask else { return };
        let cpu = Cpu(self.cpu);
        let eager = rule == MmCpumask::EachSwitch;
        let place = Place::Op(KernelOp::SwitchMm);
        if eager && let Some(from) = from {
            self.touch_mm_within(from, MmLine::Cpumask, Access::Rmw, place);
            self.mms.at(from).cpus.clear(cpu);
        }
        if !eager {
            self.touch_mm_within(to, MmLine::Cpumask, Access::Load, place);
        }
        let cpus = &mut self.mms.at(to).cpus;
        if !cpus.has(cpu) {
            cpus.set(cpu);
            self.touch_mm_within(to, MmLine::Cpumask, Access::Rmw, place);
        }
    }

    /// Within a function of the engine.
    fn touch_mm_within(&mut self, mm: u32, which: MmLine, access: Access, place: Place) {
        let from = self.at;
        self.touch_mm(mm, which, access, place);
        self.profile.add_within(place, self.at - from, 0);
    }

    fn touch_mm(&mut self, mm: u32, which: MmLine, access: Access, place: Place) {
        let line = self.mms.line(mm, which, &mut self.cache);
        let (from, before) = (self.at, self.cache.load_misses);
        self.at = self.cache.pass_from(self.thread, line, WORD, access, from);
        self.stalled += self.at - from;
        let missed = self.cache.load_misses - before;
        self.profile.missed_other(place, missed);
        if self.at > from {
            self.waited(from, Waited::Mm(which));
        }
    }

    /// The executing CPU does something within a function of the engine that is none of its.
    fn spend_within(&mut self, place: Place, ps: Ps) {
        let ps = self.stretched(ps);
        self.profile.add_within(place, ps, 1);
        self.at += ps;
    }
}

#[cfg(test)]
mod tests {
    use crate::costs::KernelOp;
    use crate::host::Place;
    use crate::machine::testing::{on, server, with};
    use crate::machine_file::Machine;
    use crate::spec::Scenario;
    use crate::workload::Env;

    /// How often the masks were written, by decision, and how often they can be if bits are only
    /// set: once by each CPU for each address space.
    fn writes(argv: &str, rule: &str) -> (u32, u32) {
        on(&server(8), argv, &[("mm_cpumask", rule)], |sim| {
            sim.run().unwrap();
            let lines = sim.host.mms.all.iter().filter_map(|mm| mm.lines);
            let of_mask = lines.map(|first| sim.host.cache.line_stats(first + 1).rmws);
            let all: Vec<u32> = of_mask.collect();
            (all.iter().sum(), 8 * all.len() as u32)
        })
    }

    #[test]
    fn a_mask_is_written_at_each_switch_or_once_by_each_cpu() {
        let processes = "perf bench sched messaging -g 1 -l 50";
        let (lazy, once) = writes(processes, "lazy");
        assert!(lazy > 0 && lazy <= once, "{lazy} {once}");
        let (each, once) = writes(processes, "each-switch");
        assert!(each > 4 * once, "{each} {once}");
        // Threads have no other address space to go to.
        for rule in ["lazy", "each-switch"] {
            let (writes, once) = writes(&format!("{processes} -t"), rule);
            assert!(writes <= once, "{rule}: {writes} {once}");
        }
    }

    /// On Arm, where nothing else is written.
    #[test]
    fn who_goes_idle_keeps_a_reference_of_what_is_loaded() {
        let machine = Machine::builtin("kunpeng920-6426-2s").unwrap();
        let machine = machine.shrunk(1).unwrap();
        let argv = "sleepers --tasks 1 --period 1ms --run 20us --duration 10ms";
        on(&machine, argv, &[], |sim| {
            sim.run().unwrap();
            let line = sim.host.mms.all[0].lines.unwrap();
            // Each turn begins with a switch from the idle task, and ends with one to it.
            let (turns, counted) = (sim.marks.marks[0].count, sim.host.cache.line_stats(line));
            assert!(turns > 5, "{turns}");
            assert!(u64::from(counted.rmws) >= 2 * turns, "{counted:?} {turns}");
            assert_eq!(sim.host.mms.drops, None);
        });
    }

    /// Threads that sleep and wake all the time: CPUs wait for the count where the kernel does.
    #[test]
    fn the_wait_for_a_reference_is_that_of_the_switch() {
        let threads = "hackbench --pipe --threads -g 2 -f 4 -l 50";
        on(&server(8), threads, &[], |sim| {
            sim.run().unwrap();
            let (mut named, profile) = (sim.host.cache.named_traffic(), &sim.host.profile);
            let counted = named.find(|(name, _)| *name == ("mm_struct", "mm_count"));
            let (_, count) = counted.expect("threads have an address space");
            let drops = profile.self_ps_of(Place::FinishTaskSwitch);
            let switch_mm = profile.self_ps_of(Place::Op(KernelOp::SwitchMm));
            assert!(count.transfers > 20 && drops > 0, "{count:?} {drops}");
            assert!(drops > switch_mm, "{drops} {switch_mm}");
            let switches = profile.calls(Place::FinishTaskSwitch);
            assert!(switches > u64::from(count.rmws) / 2, "{switches} {count:?}");
        });
    }

    #[test]
    fn processes_with_a_name_need_no_more_room_than_others() {
        let mut text = String::from("name = \"s\"\nduration = \"2ms\"\n");
        for name in ["web", "db"] {
            text += &format!(
                "[[task]]\nname = \"{name}\"\nprocess = \"{name}\"\ncount = 2\n\
                 steps = [{{ loop = \"forever\", steps = [{{ sleep = \"100us\" }}] }}]\n"
            );
        }
        let scenario = Scenario::parse("s", &text).unwrap();
        let workload = scenario.workload(&Env { cpus: 2 }).unwrap();
        with(&server(2), &workload, &[], |sim| {
            sim.run().unwrap();
            let all = &sim.host.mms.all;
            assert_eq!(all.iter().filter(|mm| mm.lines.is_some()).count(), 2);
            assert!(all.len() <= 6, "four templates, two names: {}", all.len());
        });
    }
}
