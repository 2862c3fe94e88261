//! Looking at one CPU: the tests for idleness, and the touches they cost.

use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, Fields, Kind, Object, cfs_rq, rq as f};
use crate::shared::Relaxed;
use crate::value::Cpu;

/// The root `cfs_rq` of `cpu` is read.
#[inline]
pub(crate) fn read_root_cfs<H: Host>(cx: &mut Cx<H>, cpu: Cpu, fields: Fields) {
    let object = Object {
        kind: Kind::CfsRq,
        a: cpu.0,
        b: 0,
    };
    cx.touch(object, fields, Access::Read);
}

/// Whether `cpu` is idle and nothing is on its way to it. (A preempted virtual CPU would not
/// count as available; machines under a hypervisor are not modelled.)
#[inline]
pub(super) fn available_idle_cpu<H: Host>(cx: &mut Cx<H>, cpu: Cpu) -> bool {
    cx.idle_cpu(cpu)
}

/// Whether `cpu` runs nothing but `SCHED_IDLE` work, which gives way at once. Kernels that did not
/// ask did not touch its lines for it either.
#[inline]
pub(super) fn sched_idle_cpu<H: Host>(cx: &mut Cx<H>, cpu: Cpu) -> bool {
    if !cx.features().sched_idle_cpu {
        return false;
    }
    cx.read_rq(cpu, f::NR_RUNNING);
    read_root_cfs(cx, cpu, cfs_rq::NR_QUEUED);
    cx.sys.cpu[cpu.idx()].sched_idle_cpu()
}

/// Whether a task would run on `cpu` at once.
#[inline]
pub(super) fn runs_at_once<H: Host>(cx: &mut Cx<H>, cpu: Cpu) -> bool {
    available_idle_cpu(cx, cpu) || sched_idle_cpu(cx, cpu)
}

/// Load of the root queue of `cpu`.
#[inline]
pub(super) fn cpu_load<H: Host>(cx: &mut Cx<H>, cpu: Cpu) -> u64 {
    read_root_cfs(cx, cpu, cfs_rq::AVG);
    cx.sys.cpu[cpu.idx()].load_avg.load(Relaxed)
}

/// Capacity of `cpu` for fair tasks.
#[inline]
pub(super) fn capacity_of<H: Host>(cx: &mut Cx<H>, cpu: Cpu) -> u64 {
    cx.read_rq(cpu, f::CAPACITY);
    cx.sys.cpu[cpu.idx()].capacity.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Features;
    use crate::testing::Bench;

    #[test]
    fn a_busy_cpu_is_known_by_who_runs_there() {
        let mut bench = Bench::new(1, Features::default());
        bench.on(0, |_, _| ()); // publishes
        let words_read = |bench: &mut Bench| {
            bench.host.touches.clear();
            let idle = bench.call(0, |cx, _| available_idle_cpu(cx, Cpu(0)));
            let read = bench.host.touches.iter().map(|(_, fields, _)| *fields);
            (idle, read.collect::<alloc::vec::Vec<_>>())
        };
        let all = alloc::vec![f::CURR, f::NR_RUNNING, f::TTWU_PENDING];
        assert_eq!(words_read(&mut bench), (true, all));
        bench.sys.cpu[0].nr_running.store(1, Relaxed);
        let first_two = alloc::vec![f::CURR, f::NR_RUNNING];
        assert_eq!(words_read(&mut bench), (false, first_two));
        bench.sys.cpu[0].curr_is_idle.store(false, Relaxed);
        assert_eq!(words_read(&mut bench), (false, alloc::vec![f::CURR]));
    }
}
