//! Placement where CPUs differ in capacity.
//!
//! Source: Documentation/scheduler/sched-capacity.rst. Clamps (uclamp) are not modelled, so a
//! task either fits a CPU or does not.

use super::Wakee;
use super::probe::{capacity_of, runs_at_once};
use crate::cx::Cx;
use crate::host::Host;
use crate::math::fits_capacity;
use crate::topology::{SchedDomain, Topology};
use crate::value::{Cpu, CpuMask};

/// Whether the task fits `cpu`; always where all CPUs are the same.
pub(super) fn asym_fits_cpu<H: Host>(cx: &mut Cx<H>, wakee: &Wakee, cpu: Cpu) -> bool {
    !cx.sys.traits.asym_capacity || fits_capacity(wakee.util_est(), capacity_of(cx, cpu))
}

/// The smallest domain of `cpu` in which every capacity of the machine is found
/// (`sd_asym_cpucapacity`).
pub(super) fn asym_domain(topology: &Topology, cpu: Cpu) -> Option<&SchedDomain> {
    let capacity = |cpu: Cpu| topology.places[cpu.idx()].capacity;
    let full = |span: &CpuMask| {
        CpuMask::first_n(topology.nr_cpus())
            .and_not(span)
            .iter()
            .all(|out| span.iter().any(|within| capacity(within) == capacity(out)))
    };
    let mut domains = topology.domains(cpu).iter();
    domains.find(|sd| sd.flags.asym_cpucapacity && full(&sd.span))
}

/// The first idle CPU that the task fits, from `target` on; else the idle one with the most
/// capacity.
pub(super) fn select_idle_capacity<H: Host>(
    cx: &mut Cx<H>,
    wakee: &Wakee,
    sd: &SchedDomain,
    target: Cpu,
) -> Option<Cpu> {
    let util = wakee.util_est();
    let (mut best, mut best_capacity) = (None, 0);
    cx.host.begin_scan();
    for cpu in sd.span.and(wakee.allowed).iter_wrap(target) {
        cx.host.next_turn();
        let capacity = capacity_of(cx, cpu);
        if !runs_at_once(cx, cpu) {
            continue;
        }
        if fits_capacity(util, capacity) {
            best = Some(cpu);
            break;
        }
        if capacity > best_capacity {
            (best, best_capacity) = (Some(cpu), capacity);
        }
    }
    cx.host.end_scan();
    best
}
