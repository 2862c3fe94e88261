//! Whether a cache domain has a core all of whose threads are idle: remembered, because a search
//! for one costs a look at every CPU.

use super::probe::available_idle_cpu;
use crate::cx::Cx;
use crate::host::Host;
use crate::value::Cpu;

/// Whether the cache of `cpu` may have an idle core.
pub(super) fn test_idle_cores<H: Host>(cx: &mut Cx<H>, cpu: Cpu) -> bool {
    let topology = &cx.sys.topology;
    if topology.llc_domain(cpu).is_none() {
        return false;
    }
    let llc = topology.llc_of[cpu.idx()];
    cx.sys.llc[llc.idx()].has_idle_cores(llc, cx.host)
}

/// Remembers whether the cache of `cpu` has an idle core.
pub(super) fn set_idle_cores<H: Host>(cx: &mut Cx<H>, cpu: Cpu, value: bool) {
    let topology = &cx.sys.topology;
    if topology.llc_domain(cpu).is_some() {
        let llc = topology.llc_of[cpu.idx()];
        cx.sys.llc[llc.idx()].set_idle_cores(llc, value, cx.host);
    }
}

/// `cpu` goes idle: if the other threads of its core are idle, the core is. To be called when
/// the idle task is switched to.
pub fn update_idle_core<H: Host>(cx: &mut Cx<H>, cpu: Cpu) {
    if !cx.sys.traits.smt || test_idle_cores(cx, cpu) {
        return;
    }
    let topology = &cx.sys.topology;
    for sibling in topology.smt_of[cpu.idx()].iter() {
        if sibling != cpu && !available_idle_cpu(cx, sibling) {
            return;
        }
    }
    set_idle_cores(cx, cpu, true);
}
