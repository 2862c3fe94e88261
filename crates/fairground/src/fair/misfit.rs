//! Tasks that are too big for their CPU, on machines whose CPUs differ in capacity.
//!
//! Sources: "sched/fair: Add 'group_misfit_task' load-balance type" and "sched/fair: Kick nohz
//! balance if rq->misfit_task_load", Morten Rasmussen and Valentin Schneider, for 4.20;
//! "sched/fair: Check if a task has a fitting CPU when updating misfit", Qais Yousef, for 6.10;
//! Documentation/scheduler/sched-capacity.rst.

use super::h_load::task_h_load;
use crate::cx::Cx;
use crate::host::Host;
use crate::math::fits_capacity;
use crate::math::pelt::task_util_est;
use crate::place::{Access, rq as frq, se as fse};
use crate::rq::Rq;
use crate::shared::Relaxed;
use crate::value::{Cpu, SeId};

/// Notes the load of `task`, which begins or goes on to run, if it is too big for this CPU and may
/// run on a bigger one; else, and for a CPU that has run dry (`None`), that there is none
/// (`update_misfit_status`). Balancing reads it.
#[inline(always)]
pub(crate) fn update_misfit_status<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: Option<SeId>) {
    if cx.sys.traits.asym_capacity {
        note(cx, rq, task);
    }
}

#[inline(never)]
fn note<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: Option<SeId>) {
    let misfit = task.filter(|&task| is_misfit(cx, rq, task));
    // In deep trees the load can be zero; the mark must be seen all the same.
    rq.misfit_task_load = misfit.map_or(0, |task| task_h_load(cx, rq, task).max(1));
    cx.touch(rq.object(), frq::MISFIT, Access::Write);
}

fn is_misfit<H: Host>(cx: &mut Cx<H>, rq: &Rq, task: SeId) -> bool {
    cx.touch(rq.se_object(task), fse::AVG, Access::Read);
    let left = cx.sys.cpu[rq.cpu.idx()].capacity.load(Relaxed);
    if fits_capacity(task_util_est(&rq.se[task.idx()].avg), left) {
        return false;
    }
    let places = &cx.sys.topology.places;
    let own = places[rq.cpu.idx()].capacity;
    let bigger = |cpu: Cpu| cx.sys.cpus().has(cpu) && places[cpu.idx()].capacity > own;
    let body = rq.body[task.idx()].as_ref();
    body.is_some_and(|body| body.cpus_allowed.iter().any(bigger))
}

#[cfg(test)]
mod tests {
    use crate::fair::Enqueue;
    use crate::lab::{Lab, nice};
    use crate::policy::Features;
    use crate::shared::Relaxed;
    use crate::value::{Cpu, CpuMask};

    /// A task that has run for a second on CPU 0, which has so much of the capacity of CPU 1 and
    /// so much `left` by other classes; its mark after the next tick.
    fn marked(cpus_allowed: CpuMask, capacity: u32, left: u64) -> u64 {
        let mut lab = Lab::new(Features::default());
        for (place, capacity) in lab.sys.topology.places.iter_mut().zip([capacity, 1024]) {
            place.capacity = capacity;
        }
        lab.sys.traits.asym_capacity = true;
        lab.rq.clock.capacity = capacity.into();
        lab.sys.cpu[0].capacity.store(left, Relaxed);
        let hog = lab.spawn(nice(0), Enqueue::INITIAL);
        let body = lab.rq.body[hog.idx()].as_mut().expect("a task");
        body.cpus_allowed = cpus_allowed;
        lab.run(1_000_000_000);
        lab.rq.misfit_task_load
    }

    #[test]
    fn a_hog_on_a_small_cpu_is_marked_if_it_may_go_to_a_bigger_one() {
        let both = CpuMask::first_n(2);
        assert!(marked(both, 512, 512) > 900);
        assert_eq!(marked(CpuMask::of(Cpu(0)), 512, 512), 0);
        assert_eq!(marked(both, 1024, 1024), 0, "it has the biggest");
    }

    #[test]
    fn what_other_classes_leave_counts() {
        let both = CpuMask::first_n(2);
        assert_eq!(marked(both, 512, 1024 * 2), 0, "room enough");
        assert!(marked(both, 512, 256) > 900);
    }
}
