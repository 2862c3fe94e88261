//! What a program does in user space: work of a length that the machine knows, shared words, the
//! clock, and the conditions on which it leaves a loop.

use fairground::value::TaskId;

use super::Sim;
use super::due::Due;
use crate::cache::{Access, LineId, NS, Ps};
use crate::costs::KernelOp;
use crate::host::Place;
use crate::machine_file::Machine;
use crate::workload::op::{BUSY_CHUNK_NS, FILL_BUFFERS, STORE_BYTES_PER_CYCLE};
use crate::workload::program::{Op, Touch, Unit, When, Workload};

/// Lengths of the units of work, picoseconds.
#[derive(Clone, Copy, Debug)]
pub struct UnitPrices {
    cycle: Ps,
    div64: Ps,
    private_line: Ps,
    llc_line: Ps,
    memory_line: Ps,
    /// Size of the private and of the last-level cache, bytes.
    private: u64,
    llc: u64,
    line_bytes: u64,
}

impl UnitPrices {
    /// From the machine's figures: latency divided by the misses in flight for lines.
    pub fn new(machine: &Machine) -> Self {
        let cycle = (1000.0 / machine.ghz()).round() as Ps;
        let figure = |path: &str| machine.figure(path).map_or(0.0, |f| f.v);
        let line = |ns: f64| (ns * NS as f64).round() as Ps / FILL_BUFFERS;
        let line_bytes = u64::from(machine.line_bytes());
        let private_line = line_bytes.div_ceil(STORE_BYTES_PER_CYCLE) * cycle;
        let of_core = machine.caches.iter().filter(|c| c.shared_by == "core");
        let last = machine.caches.last();
        let latency = last.map_or(0.0, |c| figure(&format!("cache.l{}.latency", c.level)));
        Self {
            cycle,
            div64: ((figure("alu.div64") * cycle as f64).round() as Ps).max(cycle),
            private_line,
            llc_line: line(latency).max(private_line),
            memory_line: line(figure("memory.local")).max(private_line),
            private: of_core.map(|c| c.size_bytes).max().unwrap_or(0),
            llc: last.map_or(0, |c| c.size_bytes),
            line_bytes,
        }
    }

    fn of(&self, unit: Unit) -> Ps {
        match unit {
            Unit::Cycle => self.cycle,
            Unit::Div64 => self.div64,
            Unit::Line { set_bytes } if set_bytes <= self.private => self.private_line,
            Unit::Line { set_bytes } if set_bytes <= self.llc => self.llc_line,
            Unit::Line { .. } => self.memory_line,
        }
    }

    /// Bytes that `n` units pull into the private caches.
    fn fills(&self, unit: Unit, n: u64) -> u64 {
        match unit {
            Unit::Line { set_bytes } if set_bytes > self.private => {
                n.saturating_mul(self.line_bytes)
            }
            _ => 0,
        }
    }
}

/// A shared counter that tasks take from.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    taken: u64,
    limit: u64,
    line: Option<LineId>,
}

/// Shared words and budgets.
#[derive(Debug)]
pub struct Shared {
    words: Vec<Option<LineId>>,
    budgets: Vec<Budget>,
    /// Lengths of units of work.
    pub units: UnitPrices,
}

impl Shared {
    /// All words untouched, all budgets full.
    pub fn new(workload: &Workload, machine: &Machine) -> Self {
        let full = |limit: &u64| Budget {
            taken: 0,
            limit: *limit,
            line: None,
        };
        Self {
            words: vec![None; workload.n_words as usize],
            budgets: workload.budgets.iter().map(full).collect(),
            units: UnitPrices::new(machine),
        }
    }
}

impl Sim<'_> {
    /// The task computes; lines that it writes push others out of its caches.
    pub(super) fn user_work(&mut self, id: TaskId, unit: Unit, n: u64) {
        let units = self.user.units;
        let fills = units.fills(unit, n);
        if fills > 0 {
            self.host.cache.advance_footprint(self.host.cpu, fills);
        }
        self.tasks[id.idx()].run_left = n.saturating_mul(units.of(unit)).min(Ps::MAX - 1);
        self.advance(id);
    }

    pub(super) fn clock_gettime(&mut self, id: TaskId) {
        self.read_clock();
        self.advance(id);
    }

    /// Looks at the clock, and computes on if it is not time yet.
    pub(super) fn busy_for(&mut self, id: TaskId, ns: u64) {
        self.read_clock();
        let now = self.now_ns();
        let task = &mut self.tasks[id.idx()];
        if now < *task.busy_until_ns.get_or_insert(now.saturating_add(ns)) {
            task.run_left = BUSY_CHUNK_NS * NS;
            return;
        }
        task.busy_until_ns = None;
        self.advance(id);
    }

    fn read_clock(&mut self) {
        self.host.op(KernelOp::ReadClock);
        self.host
            .spend(Place::Op(KernelOp::ReadClock), self.host.prices.clock);
    }

    pub(super) fn touch_word(&mut self, id: TaskId, first: u32, of: u32, how: Touch) {
        let nth = match of {
            1 => 0,
            of => self.tasks[id.idx()].rng.below(u64::from(of)) as u32,
        };
        if let Some(trace) = &mut self.host.thread_trace {
            let (first, of) = (first + nth, 1);
            trace.act = Some(Op::Touch { first, of, how });
        }
        let word = (first + nth) as usize;
        let line = match self.user.words[word] {
            Some(line) => line,
            None => {
                let line = self.host.cache.alloc_named(("[user]", "word"), 1, 0);
                self.user.words[word] = Some(line);
                line
            }
        };
        let access = match how {
            Touch::Load => Access::Load,
            Touch::Store => Access::Store,
            Touch::Rmw => Access::Rmw,
            Touch::CasLoop => Access::CasLoop,
        };
        self.touch(KernelOp::UserAtomic, line, 1, access);
        self.advance(id);
    }

    /// Ends the run, if it was to end when this mark had been passed so often, as soon as the last
    /// task may have gone to sleep.
    pub(super) fn end_if_done(&mut self, mark: u32) {
        // From the mark to the sleep there are a system call and a switch, some microseconds. This
        // leaves room for an interrupt between them, and no run is much longer for it.
        const ASLEEP_NS: u64 = 1_000_000;
        let seen = self.marks.marks[mark as usize].seen;
        if self.ends_at == Some((mark, seen)) {
            self.queue.push(self.host.at + ASLEEP_NS * NS, Due::End);
        }
    }

    /// Whether the task goes on with the word that `op` has touched, and computes nothing between:
    /// its core may still have the line, so both are one step.
    pub(super) fn stays_at_word(&self, id: TaskId, op: Op) -> bool {
        let Op::Touch { first, of: 1, .. } = op else {
            return false;
        };
        let task = &self.tasks[id.idx()];
        let ops = &self.workload.programs[task.program as usize].ops;
        let next = ops.get(task.pc as usize);
        matches!(next, Some(Op::Touch { first: same, of: 1, .. }) if *same == first)
    }

    /// Leaves the innermost loop, or not, by what can be asked without taking time. The caller adds
    /// one to `pc`.
    pub(super) fn leave_at_once(&mut self, id: TaskId, end: u32, when: When) {
        let task = &mut self.tasks[id.idx()];
        let leaves = match when {
            When::Passed(mark) => self.marks.marks[mark as usize].seen > 0,
            When::Woken(all) => {
                let enough = task.woken_others >= all;
                task.woken_others -= if enough { all } else { 0 };
                enough
            }
            When::Empty(_) | When::Over { .. } => {
                debug_assert!(false, "{when:?} takes time");
                false
            }
        };
        if leaves {
            task.leave_loop(end);
        }
    }

    /// Leaves the innermost loop, or not.
    pub(super) fn leave(&mut self, id: TaskId, end: u32, when: When) {
        let leaves = match when {
            When::Empty(budget) => !self.take(id, budget),
            When::Over { mark, ns } => {
                self.read_clock();
                let mark = self.marks.marks[mark as usize];
                mark.seen > 0 && self.now_ns() >= mark.first_ns.saturating_add(ns)
            }
            When::Passed(_) | When::Woken(_) => {
                debug_assert!(false, "{when:?} is bookkeeping");
                false
            }
        };
        if leaves {
            self.tasks[id.idx()].leave_loop(end);
        }
        self.advance(id);
    }

    /// Takes one from a budget; false if nothing is left.
    fn take(&mut self, id: TaskId, budget: u32) -> bool {
        let b = budget as usize;
        let line = match self.user.budgets[b].line {
            Some(line) => line,
            None => {
                let line = self.host.cache.alloc_named(("[user]", "budget"), 1, 0);
                self.user.budgets[b].line = Some(line);
                line
            }
        };
        self.host.op(KernelOp::UserAtomic);
        self.touch(KernelOp::UserAtomic, line, 1, Access::Rmw);
        let budget = &mut self.user.budgets[b];
        if budget.taken >= budget.limit {
            return false;
        }
        self.tasks[id.idx()].ticket = budget.taken;
        budget.taken += 1;
        true
    }
}
