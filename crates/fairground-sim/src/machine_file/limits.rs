//! The largest values of figures. They are far above those of any machine, and small enough that
//! a run comes to an end: a CPU whose interrupt takes longer than a tick does nothing else.

/// What has to do with a line that comes from anywhere, ns: memory far away takes a tenth of it. A
/// step of kernel code fetches tens of lines, and there are 1000 ticks in a second.
const LINE_NS_MAX: f64 = 1e4;
/// What an interrupt, a system call or a switch is charged, ns: a tenth of the shortest tick.
const CHARGED_NS_MAX: f64 = 1e5;
/// Such operations. What else `[kernel_ops]` has is for checks, a new thread, or how often a
/// hypervisor has the CPU and for how long.
const CHARGED: [&str; 10] = [
    "idle_loop_exit",
    "ipi_send_cpu",
    "ipi_to_handler",
    "irq_entry_exit",
    "sched_clock",
    "switch_to_hw",
    "syscall",
    "tick_handler",
    "timer_irq",
    "timer_program",
];
/// Cycles of a division or of a pause.
const CYCLES_MAX: f64 = 1e4;
/// Times as long as on another core, or as much as one thread does.
const RATIO_MAX: f64 = 100.0;
/// A way out of an idle state, or the shortest stay in one: a second.
const IDLE_US_MAX: f64 = 1e6;
/// Counts of requests and of updates.
const COUNT_MAX: f64 = 1e6;
/// All else: a second, where the unit is ns. Sums of some of them fit a simulated clock.
const LARGEST: f64 = 1e9;

fn largest(path: &str, unit: &str) -> f64 {
    let (table, name) = path.split_once('.').unwrap_or((path, ""));
    match (table, unit) {
        ("cache" | "memory" | "transfer" | "atomics", "ns") => LINE_NS_MAX,
        ("kernel_ops", "ns") if CHARGED.contains(&name) => CHARGED_NS_MAX,
        ("idle", _) => IDLE_US_MAX,
        (_, "cycles") => CYCLES_MAX,
        (_, "ratio") => RATIO_MAX,
        ("atomics", _) => COUNT_MAX,
        _ => LARGEST,
    }
}

/// What is expected instead, if no machine has the figure at `path` with this value.
pub(super) fn refused(path: &str, unit: &str, v: f64) -> Option<String> {
    let largest = largest(path, unit);
    let expected = || format!("a value from 0 to {largest:e} {unit}");
    (!(0.0..=largest).contains(&v)).then(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_file::Machine;

    #[test]
    fn each_unit_has_a_limit() {
        for (path, unit, v, expected) in [
            ("transfer.smt", "ns", 1e8, "0 to 1e4 ns"),
            ("memory.local", "ns", f64::NAN, "0 to 1e4 ns"),
            ("kernel_ops.tick_handler", "ns", 4e6, "0 to 1e5 ns"),
            ("kernel_ops.host_gap_every", "ns", 2e9, "0 to 1e9 ns"),
            ("alu.pause", "cycles", 1e9, "0 to 1e4 cycles"),
            ("alu.core_cycles", "ratio", 101.0, "0 to 1e2 ratio"),
            ("idle.C6.exit_latency_us", "us", -1.0, "0 to 1e6 us"),
        ] {
            let told = refused(path, unit, v).unwrap_or_default();
            assert!(told.ends_with(expected), "{path}: {told}");
        }
        assert_eq!(refused("kernel_ops.host_gap_every", "ns", 5e8), None);
    }

    /// An order of magnitude of room for machines to come.
    #[test]
    fn those_of_the_files_are_far_below() {
        for id in Machine::builtin_ids() {
            let machine = Machine::builtin(id).unwrap();
            for (path, figure) in machine.figures() {
                let most = figure.hi.unwrap_or(figure.v).max(figure.v);
                assert_eq!(
                    refused(path, &figure.unit, 10.0 * most),
                    None,
                    "{id}: {path}"
                );
            }
        }
    }
}
