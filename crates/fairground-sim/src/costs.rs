//! What kernel code costs apart from the places it touches: one table for every experiment.
//!
//! Figures are cycles, converted by the machine's clock, hits in the first-level cache included:
//! touches cost extra only where they miss or are atomic. No published table of these exists. Most
//! are estimates from the length of the code paths (instructions of a 6.x x86-64 build at about two
//! a cycle, rounded). A few are set by measurements on the recorded guest, and say so:
//!
//! - unit costs (`costs.json`), named beside the figure;
//! - samples of a kernel 6.18.44 on the same kind of guest, of two threads of one CPU that exchange
//!   bytes or futexes, or yield (`perf record -e cpu-clock:k`). The sampling timer is an interrupt,
//!   so what runs without interrupts is seen where they come on again: `__schedule` with
//!   the switch, a wake-up, work on the return to user space. Shares are of a quiet unit cost.
//!
//! `docs/calibration.md` compares sums with measured operations, and says which rows are no test.
//! Latencies of cache lines, locks, system-call entry, interrupts and switches are not here: they
//! come from the machine file and the cache model.

use fairground::place::Func;

/// Operations of the kernel outside the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum KernelOp {
    /// `write` to a pipe: file lookup, locking, bookkeeping, without copying.
    PipeWrite,
    /// `read` from a pipe.
    PipeRead,
    /// `send` on a stream socket: buffer allocation included.
    SocketSend,
    /// `recv` from a stream socket: buffer release included.
    SocketRecv,
    /// `poll` on one descriptor.
    Poll,
    /// `futex(FUTEX_WAIT)` up to comparing the word.
    FutexWait,
    /// `futex(FUTEX_WAKE)` without the wake-ups.
    FutexWake,
    /// An atomic fast path in user space (mutex, semaphore) apart from its line.
    UserAtomic,
    /// Putting itself on a wait queue and taking itself off again.
    WaitQueue,
    /// `nanosleep` up to sleeping: timer set-up.
    Nanosleep,
    /// A high-resolution timer that fires: its interrupt body.
    HrtimerFire,
    /// `clone` of a thread.
    CloneThread,
    /// `fork` of a small process: page tables copied.
    ForkProcess,
    /// `execve`.
    Exec,
    /// `exit` of a thread.
    ExitThread,
    /// `exit` of a process: address space torn down.
    ExitProcess,
    /// `wait` or `join` that finds a child.
    Wait,
    /// `sched_yield` apart from scheduling.
    Yield,
    /// `sched_setattr`, `setpriority`, `sched_setaffinity` apart from scheduling.
    SetSched,
    /// Moving itself to another cgroup apart from scheduling.
    CgroupAttach,
    /// The receiver's part of a message that starts a queued function (IPI body).
    IpiBody,
    /// Entering and leaving the idle loop.
    IdleLoop,
    /// Spinning for a sleeping lock whose owner runs (optimistic spinning); its time is the wait.
    MutexSpin,
    /// Switching the address space in addition to a switch of threads.
    SwitchMm,
    /// `send` of a datagram, up to the queue of the loopback interface.
    UdpSend,
    /// The receive softirq with a datagram, up to the receiver's queue.
    UdpRcv,
    /// `recv` of a datagram.
    UdpRecv,
    /// `send` on a TCP socket: buffers, without sending segments.
    TcpSend,
    /// Sending a segment, up to the queue of the loopback interface.
    TcpXmit,
    /// The receive softirq with a segment of data and the acknowledgement that it carries.
    TcpRcv,
    /// `recv` from a TCP socket.
    TcpRecv,
    /// Sending an acknowledgement, and the receive softirq with it.
    TcpAck,
    /// `clock_gettime` in the vDSO apart from reading the counter.
    ReadClock,
    /// Return to user space after a switch: the C library's restartable sequence gets the CPU's
    /// number again.
    NotifyResume,
    /// The waker's way out of a wake-up: the task's own lock and that of the wait queue let go.
    WakeEnd,
    /// The way of a task that goes to sleep into `__schedule`, up to the reading of the clock.
    SleepStart,
    /// A write looks at its inode's times (`PipeTimes`).
    FileUpdateTime,
    /// A read looks at its inode's access time.
    TouchAtime,
    /// A page of a pipe from the lists of the CPU, charged to a memory group.
    AllocPage,
    /// A page of a pipe back to the lists of the CPU.
    FreePage,
    /// `futex(FUTEX_WAIT)` after it has compared the word, whatever it found.
    FutexWaitEnd,
    /// `futex(FUTEX_WAIT)` of a task that has to sleep: on the queue and off it again.
    FutexQueue,
}

/// Names and figures by operation.
pub const KERNEL_OPS: [(KernelOp, &str, u32); 42] = [
    // Measured together: one thread that writes a byte to a pipe and reads it back takes 370.7 ns
    // on the guest (Sapphire Rapids, 3.0 GHz). Less two system calls of 109.6 ns and 55 ns that the
    // model charges for lines, atomic updates and the copies, 96 ns or 289 cycles are left; divided
    // as 330 to 300, the estimates of before.
    (KernelOp::PipeWrite, "pipe_write", 151),
    (KernelOp::PipeRead, "pipe_read", 138),
    // Measured together on the guest: one thread that writes a byte to a unix stream socket and
    // reads it back takes 766 ns, of them 402 the write (docs/calibration.md). Less two system
    // calls and the atomic updates that the model charges.
    (KernelOp::SocketSend, "unix_stream_sendmsg", 822),
    (KernelOp::SocketRecv, "unix_stream_recvmsg", 672),
    (KernelOp::Poll, "do_poll", 450),
    // Set by the futex round trip on one CPU, together with the two at the end.
    (KernelOp::FutexWait, "futex_wait_setup", 350),
    (KernelOp::FutexWake, "futex_wake", 200),
    (KernelOp::UserAtomic, "[user atomic]", 12),
    // Set by the recorded time from a switch to the reader of a pipe to its next sleep, which was
    // 40 ns too short (docs/calibration.md).
    (KernelOp::WaitQueue, "prepare_to_wait", 210),
    (KernelOp::Nanosleep, "hrtimer_nanosleep", 350),
    (KernelOp::HrtimerFire, "hrtimer_interrupt", 450),
    (KernelOp::CloneThread, "copy_process(thread)", 24_000),
    (KernelOp::ForkProcess, "copy_process(process)", 150_000),
    (KernelOp::Exec, "do_execveat_common", 600_000),
    (KernelOp::ExitThread, "do_exit(thread)", 15_000),
    (KernelOp::ExitProcess, "do_exit(process)", 90_000),
    (KernelOp::Wait, "do_wait", 1_200),
    (KernelOp::Yield, "sys_sched_yield", 30),
    (KernelOp::SetSched, "sched_setattr", 900),
    (KernelOp::CgroupAttach, "cgroup_attach_task", 6_000),
    (KernelOp::IpiBody, "flush_smp_call_function_queue", 120),
    (KernelOp::IdleLoop, "do_idle", 250),
    (KernelOp::MutexSpin, "osq_lock", 10),
    (KernelOp::SwitchMm, "switch_mm_irqs_off", 220),
    // Measured on the guest with one thread that sends to itself over the loopback interface, so
    // that the softirq runs inside `send` and nobody is woken (docs/calibration.md). UDP, 1 byte:
    // 1371 ns for send and receive, the receive about a ninth of it. TCP, 1 byte, answers that
    // carry the acknowledgements: 1554 ns for the send, 286 for the receive; a `recv` that has to
    // acknowledge takes 1113 ns more. System calls and lines, which the model charges by itself,
    // are subtracted; the shares of sending and of the softirq are estimates.
    (KernelOp::UdpSend, "udp_sendmsg", 1_500),
    (KernelOp::UdpRcv, "udp_queue_rcv_one_skb", 1_457),
    (KernelOp::UdpRecv, "udp_recvmsg", 388),
    (KernelOp::TcpSend, "tcp_sendmsg", 1_500),
    (KernelOp::TcpXmit, "__tcp_transmit_skb", 1_200),
    (KernelOp::TcpRcv, "tcp_v4_rcv", 1_575),
    (KernelOp::TcpRecv, "tcp_recvmsg", 441),
    (KernelOp::TcpAck, "tcp_send_ack", 3_300),
    (KernelOp::ReadClock, "[vdso] clock_gettime", 25),
    // Samples: 6 % of a pipe round trip of 2253 ns with two switches, 9 % of two yields of 1092 ns.
    (KernelOp::NotifyResume, "__rseq_handle_notify_resume", 165),
    // Of a wake-up's sum what is not before `sched_waking`: see `TryToWakeUp`.
    (KernelOp::WakeEnd, "[end of a wake-up]", 165),
    // Of a sleep's sum what is not after the reading of the clock: see `DequeueTask`.
    (KernelOp::SleepStart, "schedule", 570),
    // Measured with a FIFO, which keeps its times in 6.18, too, beside a pipe: 51 ns a write, 52 a
    // read, 217 and 221 cycles of a guest of Zen 5 that needs 3.4 times the cycles that are here
    // for the write and read of a pipe (docs/calibration.md).
    (KernelOp::FileUpdateTime, "file_update_time", 64),
    (KernelOp::TouchAtime, "touch_atime", 65),
    // Measured there with messages that do not join (`O_DIRECT`): 214 ns a write and 274 a read
    // for each page beyond the two that a pipe keeps (docs/calibration.md).
    (KernelOp::AllocPage, "alloc_page", 268),
    (KernelOp::FreePage, "put_page", 343),
    // Shares of one figure, 600, for who sleeps (`FutexWait`). Who finds the word changed takes 123
    // ns more than the emptiest system call where a `FUTEX_WAKE` for nobody takes 45 more (a guest
    // of Zen 4): less lines and atomic updates that is 475. How much of it is before the comparison
    // is an estimate.
    (KernelOp::FutexWaitEnd, "futex_wait", 125),
    (KernelOp::FutexQueue, "futex_queue", 125),
];

/// Cycles for copying one byte between user and kernel memory (`rep movsb` and warm lines: about
/// 16 bytes a cycle, plus start-up, which is in the operation's own figure).
pub const COPY_CYCLES_PER_BYTE: f64 = 0.0625;

/// Cycles of one turn of a scan loop of the scheduler (bit search, compare, branch), beyond
/// touches.
pub const SCAN_CYCLES: u32 = 6;

/// Cycles of a 64-bit division in the figures here: those of Golden Cove (LLVM's model of it).
pub const DIV64_CYCLES: f64 = 18.0;

/// How many 64-bit divisions, one after the other, a call of a scheduler function always makes. On
/// a core whose divider is slower than [`DIV64_CYCLES`] each of them takes so much longer: 30 to 94
/// cycles on Sandy Bridge (`alu.div64` of the machine file).
#[must_use]
pub const fn func_divisions(func: Func) -> u32 {
    match func {
        // Load, runnable and util of an average, each its sum by the period's weight.
        Func::AccumulateSum => 3,
        // A part of the parent's load; a share of the group's; a load by a new weight.
        Func::TgLoadDown | Func::UpdateCfsRqHLoad | Func::UpdateCfsGroup | Func::ReweightEntity => {
            1
        }
        _ => 0,
    }
}

/// Cycles of a scheduler function, without those it calls and without its touches.
#[must_use]
pub const fn func_cycles(func: Func) -> u32 {
    match func {
        Func::Schedule => 100,
        Func::PickNextTask => 45,
        // Samples: the sum with `TryToWakeUp` and `WakeEnd`. The division follows the recorded
        // times from a switch to `sched_waking` and on to `sched_wakeup` (docs/calibration.md).
        Func::EnqueueTask => 358,
        // Samples: the sum with `SleepStart`. The division follows from what recorded kernels have
        // charged to tasks that sleep and to those that are preempted (docs/calibration.md).
        Func::DequeueTask => 230,
        Func::UpdateCurr => 15,
        Func::PlaceEntity => 30,
        Func::PickEevdf => 8,
        Func::SetNextEntity | Func::PutPrevEntity => 25,
        Func::WakeupPreempt => 45,
        Func::TaskTick => 40,
        Func::SchedTick => 90,
        Func::UpdateLoadAvg => 35,
        Func::UpdateCfsGroup => 20,
        Func::ReweightEntity => 60,
        Func::UpdateBlockedAverages => 60,
        Func::UpdateCfsRqHLoad => 25,
        // A dozen for the walk, and the division.
        Func::TgLoadDown => 30,
        Func::TryToWakeUp => 377,
        Func::SelectTaskRq => 60,
        Func::WakeAffine => 25,
        Func::SelectIdleSibling => 35,
        Func::SelectIdleCpu => 30,
        Func::FindIdlestCpu => 80,
        Func::TtwuQueue | Func::TtwuPending => 50,
        Func::TtwuDoActivate => 45,
        Func::BalanceTrigger => 30,
        Func::KickIlb => 20,
        // In the cost of its callers; it has a name for the lines that it waits for.
        Func::IdleCpu => 0,
        Func::NohzIdleBalance => 80,
        Func::BalanceDomains => 60,
        Func::BalanceRq => 120,
        Func::UpdateSdLbStats => 60,
        Func::DetachTasks => 60,
        Func::AttachTasks => 30,
        Func::Newidle => 70,
        Func::ActiveBalance => 100,
        Func::AccountRuntime => 15,
        Func::ThrottleCfsRq | Func::UnthrottleCfsRq => 90,
        Func::WalkTgTree => 5,
        Func::TgThrottleDown | Func::TgUnthrottleUp => 10,
        Func::PeriodTimer | Func::SlackTimer => 120,
        Func::ThrottleWork => 80,
        Func::YieldTask => 40,
        Func::Fork => 400,
        Func::WakeUpNewTask => 150,
        Func::SetAffinity => 300,
        Func::MoveGroup => 300,
        Func::SetShares => 200,
        Func::SpinLock => 8,
        Func::SchedExec => 40,
        Func::MigrationStop => 60,
        Func::NohzEnterIdle => 50,
        Func::NohzRunIdle => 15,
        Func::NohzCsd => 40,
        Func::BalanceSoftirq => 30,
        Func::SetNice => 150,
        Func::SetScheduler => 250,
        Func::CsdUnthrottle => 40,
        Func::TaskDead => 30,
        Func::AccumulateSum => 70,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_divides_takes_at_least_as_long_as_its_divisions() {
        for func in Func::ALL {
            let divisions = f64::from(func_divisions(func)) * DIV64_CYCLES;
            assert!(f64::from(func_cycles(func)) >= divisions, "{func:?}");
        }
    }

    #[test]
    fn the_table_is_in_the_order_of_the_operations() {
        for (i, (op, _, cycles)) in KERNEL_OPS.iter().enumerate() {
            assert_eq!(*op as usize, i);
            assert!(*cycles > 0);
        }
    }
}
