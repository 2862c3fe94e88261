//! What executing costs on a machine, rounded once to picoseconds.

use fairground::place::{Fields, Func, Kind, Object, cfs_rq, se};

use super::Rounds;
use crate::cache::{NS, Ps};
use crate::costs::{self, KERNEL_OPS, KernelOp};
use crate::machine_file::Machine;

/// Costs of the machine and the scheduler's functions, in picoseconds.
#[derive(Clone, Debug)]
pub struct Prices {
    pub(crate) func: [Ps; Func::COUNT],
    pub(super) op: [Ps; KERNEL_OPS.len()],
    pub(super) scan: Ps,
    pub(super) copy_per_kib: Ps,
    /// Reading the time-stamp counter.
    pub clock: Ps,
    /// Looks of a CPU that spins.
    pub(super) rounds: Rounds,
    /// Entry into and return from a system call.
    pub syscall: Ps,
    /// Hardware part of a switch.
    pub switch: Ps,
    /// Entry into and return from an interrupt.
    pub irq: Ps,
    /// The tick outside the scheduler.
    pub tick: Ps,
    /// From a timer's time to its interrupt, beyond `irq`: what a hypervisor needs to deliver it.
    pub timer_irq: Ps,
    /// Setting the hardware's next timer; a guest leaves to its hypervisor for it.
    pub timer_program: Ps,
    /// From the end of the interrupt that woke an idle CPU to `schedule_idle`.
    pub idle_loop_exit: Ps,
    /// Sender's part of an interrupt to another CPU.
    pub ipi_send: Ps,
    /// Writing down what balancing sees of a group, where a recorder does that.
    pub group_record: Ps,
    /// Writing down an update of load tracking, of an entity and of a queue, likewise.
    pub update_record: [Ps; 2],
}

/// What of a program's system calls costs something beyond the scheduler.
const CALLS: [KernelOp; 13] = [
    KernelOp::FutexWait,
    KernelOp::FutexWaitEnd,
    KernelOp::FutexQueue,
    KernelOp::FutexWake,
    KernelOp::UserAtomic,
    KernelOp::WaitQueue,
    KernelOp::Nanosleep,
    KernelOp::CloneThread,
    KernelOp::ForkProcess,
    KernelOp::ExitThread,
    KernelOp::ExitProcess,
    KernelOp::Yield,
    KernelOp::SetSched,
];

impl Prices {
    /// Takes the prices of system calls away.
    pub(super) fn free_calls(&mut self) {
        self.syscall = 0;
        for op in CALLS {
            self.op[op as usize] = 0;
        }
    }

    /// What writing down an update of load tracking takes, if this is one; not of the root.
    #[inline]
    pub(super) fn of_update(&self, object: Object, updates: Fields) -> Ps {
        let [entity, queue] = self.update_record;
        match object.kind {
            _ if entity | queue == 0 => 0,
            Kind::TaskSe | Kind::GroupSe if updates.intersects(se::AVG) => entity,
            Kind::CfsRq if object.b != 0 && updates.intersects(cfs_rq::AVG) => queue,
            _ => 0,
        }
    }

    pub(super) fn new(machine: &Machine) -> Self {
        let cycles = |n: f64| (n * 1000.0 / machine.ghz()).round() as Ps;
        let scale = machine.cost_scale();
        let op_ns =
            |name: &str| (machine.kernel_op_ns(name).unwrap_or(0.0) * NS as f64).round() as Ps;
        let pace = machine.core_cycles();
        let slower_division = (machine.div64_cycles() - costs::DIV64_CYCLES).max(0.0);
        let mut func = [0; Func::COUNT];
        for f in Func::ALL {
            // A divider has a figure of its own, so the core's pace is that of the rest.
            let divisions = f64::from(costs::func_divisions(f));
            let divided = divisions * costs::DIV64_CYCLES;
            let rest = f64::from(costs::func_cycles(f)) - divided;
            let all = (rest * pace + divided) * scale.scheduler;
            func[f as usize] = cycles(all + divisions * slower_division);
        }
        let mut op = [0; KERNEL_OPS.len()];
        for (slot, (_, _, n)) in op.iter_mut().zip(KERNEL_OPS) {
            *slot = cycles(f64::from(n) * pace * scale.kernel);
        }
        // A machine on which this was measured by itself.
        if machine.kernel_op_ns("clone_thread").is_some() {
            op[KernelOp::CloneThread as usize] = op_ns("clone_thread");
        }
        Self {
            func,
            op,
            scan: cycles(f64::from(costs::SCAN_CYCLES) * pace * scale.scheduler),
            copy_per_kib: cycles(costs::COPY_CYCLES_PER_BYTE * 1024.0),
            clock: op_ns("sched_clock"),
            rounds: Rounds(cycles(machine.pause_cycles())),
            syscall: op_ns("syscall"),
            switch: op_ns("switch_to_hw"),
            irq: op_ns("irq_entry_exit"),
            tick: op_ns("tick_handler"),
            timer_irq: op_ns("timer_irq"),
            timer_program: op_ns("timer_program"),
            idle_loop_exit: op_ns("idle_loop_exit"),
            ipi_send: op_ns("ipi_send_cpu"),
            group_record: 0,
            update_record: [0; 2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core's pace is that of all kernel code but divisions, which have a figure of their own.
    #[test]
    fn a_slower_core_takes_more_cycles() {
        let m = Machine::builtin("icx-8358-2s").unwrap();
        let with = |pace| Prices::new(&m.with_figure("alu.core_cycles", pace).unwrap());
        let (same, slow) = (with(1.0), with(2.0));
        let cycle = 1000.0 / m.ghz();
        let (ttwu, walk) = (Func::TryToWakeUp as usize, Func::TgLoadDown as usize);
        assert!(slow.func[ttwu].abs_diff(2 * same.func[ttwu]) <= 1);
        let divided = (costs::DIV64_CYCLES * cycle) as Ps;
        let rest = same.func[walk] - divided;
        assert!(slow.func[walk].abs_diff(2 * rest + divided) <= 2);
        let op = KernelOp::PipeWrite as usize;
        assert!(slow.op[op].abs_diff(2 * same.op[op]) <= 1);
        assert_eq!(slow.copy_per_kib, same.copy_per_kib, "bound by lines");
        assert_eq!((slow.syscall, slow.irq), (same.syscall, same.irq));
    }
}
