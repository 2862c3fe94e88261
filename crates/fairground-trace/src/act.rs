//! What a thread of a simulated run does with others in memory or in a queue, as a static probe in
//! its program says it (`sdt_fairground:write: (0) arg1=3 arg2=100`, as perf prints such probes):
//! which pipe, which lock, how many bytes.

use fairground_sim::workload::op::Touch;
use fairground_sim::workload::program::{Dur, Op, Policy, When};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// What.
    pub what: What,
    /// With which pipe, semaphore, lock, set of CPUs, group, ...: its number among those of its
    /// kind. Of a nice value, 20 more; of a time, its upper half.
    pub object: u32,
    /// How many bytes, or threads to wake; of a barrier or a wait with a mutex, which mutex; of a
    /// signal, 1 if it is for all; of a time, its lower half; of a policy, its number.
    pub n: u32,
}

/// Kinds of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "they are the operations of a program, by the same names"
)]
pub enum What {
    Write,
    Read,
    Poll,
    Send,
    Recv,
    SemWait,
    SemPost,
    FutexWait,
    FutexWake,
    LockCpu,
    UnlockCpu,
    Lock,
    Unlock,
    CondBarrier,
    CondWait,
    CondSignal,
    Barrier,
    Load,
    Store,
    Rmw,
    CasLoop,
    Call,
    Accept,
    Reply,
    Take,
    Period,
    ReadClock,
    Late,
    Start,
    PinChild,
    SetAffinity,
    SetNice,
    SetPolicy,
    SetSlice,
    SetCgroup,
    Exec,
    Join,
    Exit,
}

/// Names of the probes.
const NAMES: [(What, &str); 38] = [
    (What::Write, "write"),
    (What::Read, "read"),
    (What::Poll, "poll"),
    (What::Send, "send"),
    (What::Recv, "recv"),
    (What::SemWait, "sem_wait"),
    (What::SemPost, "sem_post"),
    (What::FutexWait, "futex_wait"),
    (What::FutexWake, "futex_wake"),
    (What::LockCpu, "lock_cpu"),
    (What::UnlockCpu, "unlock_cpu"),
    (What::Lock, "lock"),
    (What::Unlock, "unlock"),
    (What::CondBarrier, "cond_barrier"),
    (What::CondWait, "cond_wait"),
    (What::CondSignal, "cond_signal"),
    (What::Barrier, "barrier"),
    (What::Load, "load"),
    (What::Store, "store"),
    (What::Rmw, "rmw"),
    (What::CasLoop, "cas_loop"),
    (What::Call, "call"),
    (What::Accept, "accept"),
    (What::Reply, "reply"),
    (What::Take, "take"),
    (What::Period, "period"),
    (What::ReadClock, "read_clock"),
    (What::Late, "late"),
    (What::Start, "start"),
    (What::PinChild, "pin_child"),
    (What::SetAffinity, "set_affinity"),
    (What::SetNice, "set_nice"),
    (What::SetPolicy, "set_policy"),
    (What::SetSlice, "set_slice"),
    (What::SetCgroup, "set_cgroup"),
    (What::Exec, "exec"),
    (What::Join, "join"),
    (What::Exit, "exit"),
];

impl What {
    /// The probe.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(what, _)| *what == self);
        found.map_or("", |(_, name)| name)
    }

    /// The other way.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        let found = NAMES.iter().find(|(_, known)| known.as_bytes() == name);
        found.map(|(what, _)| *what)
    }
}

impl Act {
    /// Of an operation of a simulated program, if it is one.
    #[must_use]
    pub fn of(op: Op) -> Option<Self> {
        let (what, object, n) = match op {
            Op::Write { chan, bytes } => (What::Write, chan, bytes),
            Op::Read { chan, bytes } => (What::Read, chan, bytes),
            Op::Poll { chan } => (What::Poll, chan, 0),
            Op::Send { inet, bytes } => (What::Send, inet, bytes),
            Op::Recv { inet, bytes } => (What::Recv, inet, bytes),
            Op::SemWait(k) => (What::SemWait, k, 0),
            Op::SemPost(k) => (What::SemPost, k, 0),
            Op::FutexWait(k) => (What::FutexWait, k, 0),
            Op::FutexWake { futex, n } => (What::FutexWake, futex, n),
            Op::LockCpu(k) => (What::LockCpu, k, 0),
            Op::UnlockCpu(k) => (What::UnlockCpu, k, 0),
            Op::Lock(k) => (What::Lock, k, 0),
            Op::Unlock(k) => (What::Unlock, k, 0),
            Op::CondBarrier { barrier, mutex } => (What::CondBarrier, barrier, mutex),
            Op::CondWait { cond, mutex } => (What::CondWait, cond, mutex),
            Op::CondSignal { cond, all } => (What::CondSignal, cond, u32::from(all)),
            Op::Barrier(k) => (What::Barrier, k, 0),
            Op::Touch { first, how, .. } => (touch(how), first, 0),
            Op::Call { service, bytes } => (What::Call, service, bytes),
            Op::Accept(k) => (What::Accept, k, 0),
            Op::Reply { service, bytes } => (What::Reply, service, bytes),
            Op::Leave { when, .. } => match when {
                When::Empty(budget) => (What::Take, budget, 0),
                When::Over { .. } => (What::ReadClock, 0, 0),
                When::Passed(_) | When::Woken(_) => return None,
            },
            Op::Period(Dur::Const(ns)) => (What::Period, (ns >> 32) as u32, ns as u32),
            // Each look at the clock is one; what it computes in between is told beside.
            Op::ReadClock | Op::Busy(_) => (What::ReadClock, 0, 0),
            // Of any time for which it did not have to wait.
            Op::SleepUntilTaskTime(0) => (What::Late, 0, 0),
            Op::StartAt(ns) => (What::Start, (ns >> 32) as u32, ns as u32),
            Op::PinChild { mask } => (What::PinChild, mask, 0),
            Op::SetAffinity(mask) => (What::SetAffinity, mask, 0),
            Op::SetNice(nice) => (What::SetNice, (i32::from(nice) + 20) as u32, 0),
            Op::SetPolicy { policy, nice } => {
                let nice = (i32::from(nice) + 20) as u32;
                (What::SetPolicy, nice, policy as u32)
            }
            Op::SetSlice(ns) => (What::SetSlice, (ns >> 32) as u32, ns as u32),
            Op::SetCgroup(group) => (What::SetCgroup, group, 0),
            Op::Exec => (What::Exec, 0, 0),
            Op::Join => (What::Join, 0, 0),
            Op::Exit => (What::Exit, 0, 0),
            _ => return None,
        };
        Some(Self { what, object, n })
    }

    /// The operation; the semaphores of a workload begin after `sems` others, and what its threads
    /// take from has a word each after `words` semaphores in all. `None`: the end of the thread,
    /// which is that of its program.
    #[must_use]
    pub fn op(self, sems: u32, words: u32) -> Option<Op> {
        let (k, n) = (self.object, self.n);
        let touch = |how| Op::Touch {
            first: k,
            of: 1,
            how,
        };
        Some(match self.what {
            What::Write => Op::Write { chan: k, bytes: n },
            What::Read => Op::Read { chan: k, bytes: n },
            What::Poll => Op::Poll { chan: k },
            What::Send => Op::Send { inet: k, bytes: n },
            What::Recv => Op::Recv { inet: k, bytes: n },
            What::SemWait => Op::SemWait(k.saturating_add(sems)),
            What::SemPost => Op::SemPost(k.saturating_add(sems)),
            What::FutexWait => Op::FutexWait(k),
            What::FutexWake => Op::FutexWake { futex: k, n },
            What::LockCpu => Op::LockCpu(k),
            What::UnlockCpu => Op::UnlockCpu(k),
            What::Lock => Op::Lock(k),
            What::Unlock => Op::Unlock(k),
            What::CondBarrier => Op::CondBarrier {
                barrier: k,
                mutex: n,
            },
            What::CondWait => Op::CondWait { cond: k, mutex: n },
            What::CondSignal => Op::CondSignal {
                cond: k,
                all: n > 0,
            },
            What::Barrier => Op::Barrier(k),
            What::Load => touch(Touch::Load),
            What::Store => touch(Touch::Store),
            What::Rmw => touch(Touch::Rmw),
            What::CasLoop => touch(Touch::CasLoop),
            What::Call => Op::Call {
                service: k,
                bytes: n,
            },
            What::Accept => Op::Accept(k),
            What::Reply => Op::Reply {
                service: k,
                bytes: n,
            },
            // An atomic update of a word, for which nobody waits.
            What::Take => Op::SemPost(k.saturating_add(words)),
            What::Period => Op::Period(Dur::Const(self.time_ns())),
            What::ReadClock => Op::ReadClock,
            What::Late => Op::SleepUntilTaskTime(0),
            What::Start => Op::StartAt(self.time_ns()),
            What::PinChild => Op::PinChild { mask: k },
            What::SetAffinity => Op::SetAffinity(k),
            What::SetNice => Op::SetNice(nice(k)),
            What::SetPolicy => Op::SetPolicy {
                policy: POLICIES[(n as usize).min(POLICIES.len() - 1)],
                nice: nice(k),
            },
            What::SetSlice => Op::SetSlice(self.time_ns()),
            What::SetCgroup => Op::SetCgroup(k),
            What::Exec => Op::Exec,
            What::Join => Op::Join,
            What::Exit => return None,
        })
    }
}

impl Act {
    /// Of a start, a period or a slice: its time, ns.
    #[must_use]
    pub fn time_ns(self) -> u64 {
        u64::from(self.object) << 32 | u64::from(self.n)
    }
}

/// By number.
const POLICIES: [Policy; 3] = [Policy::Normal, Policy::Batch, Policy::Idle];

fn nice(k: u32) -> i8 {
    k.min(39) as i8 - 20
}

fn touch(how: Touch) -> What {
    match how {
        Touch::Load => What::Load,
        Touch::Store => What::Store,
        Touch::Rmw => What::Rmw,
        Touch::CasLoop => What::CasLoop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_comes_back_from_its_probe() {
        for (what, name) in NAMES {
            assert_eq!(
                (What::named(name.as_bytes()), what.name()),
                (Some(what), name)
            );
            let act = Act {
                what,
                object: 3,
                n: 0,
            };
            match act.op(0, 0) {
                Some(Op::Join) => assert_eq!(what, What::Join),
                Some(Op::ReadClock) => assert_eq!(what, What::ReadClock),
                Some(Op::Exec) => assert_eq!(what, What::Exec),
                Some(Op::SleepUntilTaskTime(0)) => assert_eq!(what, What::Late),
                Some(Op::SemPost(3)) => assert!(matches!(what, What::SemPost | What::Take)),
                Some(op) => assert_eq!(Act::of(op), Some(act)),
                None => assert_eq!(what, What::Exit),
            }
        }
        assert_eq!(
            Act::of(Op::SemWait(1)).unwrap().op(5, 9),
            Some(Op::SemWait(6))
        );
        assert_eq!((Act::of(Op::Yield), What::named(b"yield")), (None, None));
    }
}
