//! From the words of each CPU to the queue, where every group is one CPU: then the record tells
//! them all. And which CPU of a group balances, where the record tells that all or none idle.

use std::sync::atomic::Ordering::Relaxed;

use fairground::balance::{
    IdleType, LbEnv, sched_balance_find_src_group, sched_balance_find_src_rq, should_we_balance,
};
use fairground::system::System;
use fairground::value::Cpu;

use super::record::Record;
use super::row::Count;
use super::state;

const GONE: &str = "the kernel looked at the queues a moment after the groups: the tasks were gone";

/// Counts of a file.
pub(super) struct Counts {
    src_cpu: Count,
    balancing_cpu: Count,
}

impl Counts {
    pub(super) fn new(case: &str) -> Self {
        Self {
            src_cpu: Count::new(case, "src_cpu"),
            balancing_cpu: Count::new(case, "balancing_cpu"),
        }
    }

    pub(super) fn counts(self) -> [Count; 2] {
        [self.src_cpu, self.balancing_cpu]
    }

    /// Replays one attempt.
    pub(super) fn record(&mut self, sys: &System, env: LbEnv<'_>, line: usize, r: &Record) {
        if r.groups.iter().all(|row| row.2 == 1) {
            self.queue(sys, env, line, r);
        }
        self.balancer(sys, env, line, r);
    }

    fn queue(&mut self, sys: &System, mut env: LbEnv<'_>, line: usize, r: &Record) {
        for (id, row) in env.sd.groups.iter().zip(&r.groups) {
            let words = &sys.cpu[row.1 as usize];
            words.nr_running.store(row.9.0, Relaxed);
            // One number is recorded: that by which the kernel balances.
            words.h_nr_queued.store(row.10.0, Relaxed);
            words.h_nr_runnable.store(row.10.0, Relaxed);
            words.curr_is_idle.store(row.4 == 1, Relaxed);
            words.load_avg.store(row.5.0, Relaxed);
            words.capacity.store(row.6.0, Relaxed);
            // Of a single CPU: what others use. Of the local one its capacity is computed anew.
            let full = u64::from(sys.topology.places[row.1 as usize].capacity);
            let used = if row.2 == 1 {
                full.saturating_sub(row.6.0)
            } else {
                0
            };
            words.util_avg_rt.store(used as u32, Relaxed);
            words.util_avg.store(row.7.0, Relaxed);
            words.runnable_avg.store(row.8.0, Relaxed);
            let state = &sys.topology.group(*id).state;
            state.capacity.store(row.6.0, Relaxed);
            state.imbalance.store(row.12.0, Relaxed);
        }
        let failed = &env.sd.state.nr_balance_failed;
        failed.store(r.nr_balance_failed, Relaxed);
        let ours = state::on(sys, env.dst_cpu, 0, |cx| {
            let busiest = sched_balance_find_src_group(cx, &mut env)?;
            let src = sched_balance_find_src_rq(cx, &env, busiest.group);
            Some((src.map_or(-1, |cpu| i64::from(cpu.0)), busiest.imbalance))
        });
        let theirs = r.busiest.as_ref().map(|b| (b.src_cpu, b.imbalance));
        if theirs.is_some_and(|(src, _)| src == -1) {
            return self.src_cpu.skip(GONE);
        }
        self.src_cpu.compare(ours == theirs, line, || {
            format!("CPU and amount {ours:?} instead of {theirs:?}")
        });
    }

    fn balancer(&mut self, sys: &System, env: LbEnv<'_>, line: usize, r: &Record) {
        let Some(local) = r.groups.first() else {
            return;
        };
        let (idle, weight) = (local.4, local.2);
        let told = weight > 1 && (idle == 0 || idle == weight);
        // A CPU can stop idling between the test and the count.
        let stopped = idle == 0 && env.idle == IdleType::Idle;
        if env.idle == IdleType::NewlyIdle || !told || stopped {
            return;
        }
        let group = env.local_group(sys);
        for cpu in group.span.iter() {
            let words = &sys.cpu[cpu.idx()];
            words.curr_is_idle.store(idle != 0, Relaxed);
            words.nr_running.store(u32::from(idle == 0), Relaxed);
        }
        let balances = |cpu: &Cpu| {
            let other = LbEnv {
                dst_cpu: *cpu,
                ..env
            };
            state::on(sys, *cpu, 0, |cx| should_we_balance(cx, &other))
        };
        let ours: Vec<Cpu> = group.span.iter().filter(balances).collect();
        self.balancing_cpu.compare(ours == [env.dst_cpu], line, || {
            format!("{ours:?} instead of {:?}", env.dst_cpu)
        });
    }
}
