//! The memory that a program comes back to after it was off its CPU.

use fairground::value::TaskId;

use super::Sim;
use super::task::Stage;
use crate::cache::{NS, Ps};

impl Sim<'_> {
    /// The task goes on computing after a switch to it: what its working set has lost meanwhile has
    /// to be fetched first, which interrupts and preemption can cut like any computing.
    pub(super) fn fetch_working_set(&mut self, cpu: u32, id: TaskId) {
        let task = &mut self.tasks[id.idx()];
        let spins = task.run_left == Ps::MAX && task.stage == Stage::Again;
        // Who spins for a lock comes to its memory when it has that.
        if spins || !std::mem::take(&mut task.comes_back) {
            return;
        }
        let template = &self.workload.templates[task.template as usize];
        let Some(bytes) = template.working_set_bytes else {
            return;
        };
        let (cache, task) = (&mut self.host.cache, &mut self.tasks[id.idx()]);
        let first = *task
            .samples
            .get_or_insert_with(|| cache.alloc_working_set(cpu));
        let (fetch, lost) = cache.come_back(cpu, first, bytes, self.host.at);
        if template.footprint_bytes_per_us == 0 {
            // What is still there pushes nothing out.
            cache.advance_footprint(cpu, lost);
        }
        if !template.fetches {
            return; // it is in the run times, but the caches change all the same
        }
        // Programs compute for whole nanoseconds, so that their traces say how long.
        let fetch = fetch / NS * NS;
        if task.run_left != Ps::MAX {
            task.run_left += fetch;
        }
        task.fetch_left += fetch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing::{at_5ms, on, server};

    /// Mean of a turn's time, us, and the part of the computing that is fetching.
    fn turns(argv: &str) -> (f64, f64) {
        on(&server(8), argv, &[], |sim| {
            sim.run().unwrap();
            let value = |name: &str| {
                let all = &sim.workload.metrics;
                let def = all.iter().find(|m| m.name == name).unwrap();
                def.value(&sim.marks).unwrap()
            };
            (value("sleepers.turn_us.mean"), value("sleepers.fetch_pct"))
        })
    }

    #[test]
    fn who_spins_for_a_lock_fetches_when_it_has_that() {
        let argv = format!("{ALONE} --working-set 256KiB");
        at_5ms(&server(2), &argv, &[], |sim| {
            let id = TaskId(0);
            let spin = |sim: &mut Sim<'_>, stage| {
                let task = &mut sim.tasks[id.idx()];
                (task.comes_back, task.run_left, task.stage) = (true, Ps::MAX, stage);
                sim.fetch_working_set(0, id);
                sim.tasks[id.idx()].comes_back
            };
            assert!(spin(sim, Stage::Again), "later");
            assert!(!spin(sim, Stage::Start));
        });
    }

    const ALONE: &str = "sleepers --tasks 1 --period 1ms --run 100us --duration 50ms --warmup 5ms";

    #[test]
    fn a_set_that_stays_costs_nothing() {
        let (_, part) = turns(&format!("{ALONE} --working-set 256KiB"));
        assert!(part < 0.5, "{part}");
    }

    /// 64 tasks of 256 KiB on four cores of 2 MiB.
    #[test]
    fn sets_that_do_not_fit_beside_each_other_are_fetched_in_each_turn() {
        let many = "sleepers --tasks 64 --period 10ms --run 100us --duration 50ms --warmup 20ms";
        let (turn, part) = turns(&format!("{many} --working-set 256KiB"));
        let (without, none) = turns(&format!("{many} --working-set 64B"));
        assert!(none < 0.5, "{none}");
        assert!(part > 3.0, "{part}");
        assert!(turn > without + 3.0, "{turn} {without}");
    }
}
