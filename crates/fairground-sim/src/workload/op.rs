//! One operation of a program.
use super::class::Policy;
use super::duration::Dur;
use super::time::Ns;

/// One step of a program. What "blocks" says is a sleep of the task: it leaves its run queue and a
/// cause (a timer, another task) wakes it.
///
/// An operation for which [`Op::takes_time`] holds must cost its task at least a nanosecond (a lock
/// without contention is still an atomic instruction); every loop holds such an operation, so
/// the clock moves. Time that no operation names (system calls, copying) is the machine's to
/// charge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Computes until this much time of its own progress is over (waiting does not count).
    Run(Dur),
    /// Computes until this much time has passed, whether it had a CPU or not: looks at the clock
    /// after each [`BUSY_CHUNK_NS`] of progress.
    Busy(Ns),
    /// Computes until the simulation ends.
    Hog,
    /// Computes `n` units of work, whose length the machine knows.
    Work {
        /// What one unit is.
        unit: Unit,
        /// How many.
        n: u64,
    },
    /// Reads the clock in user space (`clock_gettime` in the vDSO).
    ReadClock,
    /// Touches one of the shared words `first..first + of` of user memory, drawn again if there
    /// are several. Each word has a cache line of its own.
    Touch {
        /// First word.
        first: u32,
        /// How many to draw from, at least 1.
        of: u32,
        /// How.
        how: Touch,
    },
    /// Blocks for this long from now. Zero is no system call and returns at once.
    Sleep(Dur),
    /// Blocks for this long and on to the end of the next tick's interrupt, as timers of the timer
    /// wheel do: they expire in the softirq after a tick.
    SleepTicks(Dur),
    /// Blocks until the next point of a grid of this period (> 0): one period after the point
    /// before. The task has one grid, which begins at its start (`start_ns`). A task that arrives
    /// after its point goes on at once and the grid moves: the next point is one period after
    /// the arrival.
    Period(Dur),
    /// The same, but the grid stays where it is: a task that is late goes on at once until it has
    /// caught up. So the points do not depend on the machine.
    Pace(Dur),
    /// Blocks until the next point of a timer's own series, one period after the point before. Like
    /// the task's grid it begins at the task's start: that of the first to use it, if it is shared.
    Timer {
        /// Timer.
        timer: u32,
        /// All tasks move one series; else each task has its own.
        shared: bool,
        /// Period.
        every: Ns,
        /// A task that is late does not shift the series, as with [`Op::Pace`].
        stays: bool,
    },
    /// Blocks until this long after the task's start (`start_ns`); a time that is over returns at
    /// once.
    SleepUntilTaskTime(Ns),
    /// Blocks until this time of the run, which is the task's start from now on: its grid and
    /// `SleepUntilTaskTime` count from there. A time that is over returns at once.
    StartAt(Ns),
    /// Blocks until this time of the run, which nothing of the task counts from. A time that is
    /// over returns at once.
    SleepUntilRunTime(Ns),
    /// Opens a loop of `count` >= 1 turns, [`FOREVER`](super::program::FOREVER) for ever.
    LoopStart {
        /// Number of turns.
        count: u64,
    },
    /// Closes the loop that was opened at `start` (index of the `LoopStart` in `ops`).
    LoopEnd {
        /// Where to go back to: the operation after this index.
        start: u32,
    },
    /// Leaves the innermost open loop, whose `LoopEnd` is at `end`, when it is time to; else goes
    /// on.
    Leave {
        /// Index of the `LoopEnd`; the task goes on behind it.
        end: u32,
        /// On which condition.
        when: When,
    },
    /// Writes all `bytes` to the channel; blocks while it is full (see
    /// [`ChanKind`](super::chan::ChanKind)).
    Write {
        /// Channel.
        chan: u32,
        /// Bytes of one message.
        bytes: u32,
    },
    /// Reads until `bytes` have arrived; blocks while the channel is empty.
    Read {
        /// Channel.
        chan: u32,
        /// Bytes to be read in all.
        bytes: u32,
    },
    /// Blocks until the channel can be read, and reads nothing. All pollers of a channel are woken
    /// by the write that makes it readable (they wait without `WQ_FLAG_EXCLUSIVE`), the one that
    /// came last first (non-exclusive waiters are put at the head of the wait queue).
    Poll {
        /// Channel.
        chan: u32,
    },
    /// Sends `bytes` to a socket of the loopback interface: a datagram, or bytes of a stream (see
    /// [`Inet`](super::inet::Inet) for when it blocks).
    Send {
        /// Socket of the receiver.
        inet: u32,
        /// Bytes.
        bytes: u32,
    },
    /// Receives from a socket: the oldest datagram, or what there is of a stream, at most `bytes`.
    /// Blocks while there is nothing.
    Recv {
        /// Socket.
        inet: u32,
        /// Most bytes.
        bytes: u32,
    },
    /// Takes one from a counting semaphore, blocks at zero. Waiters are served first come first.
    SemWait(u32),
    /// Adds one to a semaphore; wakes one waiter if there is one.
    SemPost(u32),
    /// Blocks on a futex until a wake-up reaches this task; wake-ups before it are lost.
    FutexWait(u32),
    /// Wakes up to `n` waiters, in the order in which they came.
    FutexWake {
        /// Futex.
        futex: u32,
        /// Most waiters to wake.
        n: u32,
    },
    /// Locks the spin lock of the CPU that the task runs on, of a set with one for each CPU. While
    /// it is taken the task spins in user mode. It keeps the lock when it is moved.
    LockCpu(u32),
    /// Unlocks the lock that `LockCpu` took.
    UnlockCpu(u32),
    /// Locks a mutex: without a system call if it is free, else blocks in `futex(2)`.
    Lock(u32),
    /// Unlocks; a system call and one wake-up only if somebody waits. The woken task has to try
    /// again, so another may get the mutex first (as with a pthread mutex).
    Unlock(u32),
    /// Chooses the mutex `first..first + of` that `LockPicked` and `UnlockPicked` of this task mean
    /// from now on. Takes no time.
    Pick {
        /// First mutex.
        first: u32,
        /// How many to choose from, at least 1.
        of: u32,
        /// How.
        by: PickBy,
    },
    /// [`Op::Lock`] of the mutex that was picked.
    LockPicked,
    /// [`Op::Unlock`] of the mutex that was picked.
    UnlockPicked,
    /// A barrier as it is made of a mutex, a counter and a condition variable. The caller holds the
    /// mutex and holds it afterwards. All but the last release it, sleep, and take it again when
    /// they are woken; the last wakes all the others and keeps the mutex, so what it does before it
    /// unlocks is done before anybody else goes on.
    CondBarrier {
        /// Barrier.
        barrier: u32,
        /// Mutex.
        mutex: u32,
    },
    /// Waits on a condition variable, a futex of the C library's. The caller holds the mutex: it is
    /// released, and taken again after the wake-up. A signal between the release and the sleep is
    /// not lost, but one before is (`pthread_cond_wait`).
    CondWait {
        /// Futex.
        cond: u32,
        /// Mutex.
        mutex: u32,
    },
    /// Wakes one waiter of a condition variable, or all; no system call if nobody waits.
    CondSignal {
        /// Futex.
        cond: u32,
        /// All of them (`pthread_cond_broadcast`).
        all: bool,
    },
    /// Blocks until as many tasks as the barrier has parties are here; the last one wakes the rest.
    Barrier(u32),
    /// `sched_yield(2)`.
    Yield,
    /// Creates a task from a template, a child of this one. Its `start_ns` counts from now.
    Fork {
        /// Template of the child.
        template: u32,
    },
    /// `sched_setaffinity(2)` of the child that this task created last: it was placed at its
    /// creation as its parent may run, and is moved now if it stands elsewhere.
    PinChild {
        /// Mask.
        mask: u32,
    },
    /// Blocks until all children of this task have exited; at once if it has none. Each exit of a
    /// child process wakes the parent, which sleeps again until the last (`wait` in a loop).
    /// Threads are joined in the order of their creation: only the exit that it waits for wakes it.
    Join,
    /// Sets the nice value of this task.
    SetNice(i8),
    /// Sets policy and nice value of this task.
    SetPolicy {
        /// Policy.
        policy: Policy,
        /// Nice value.
        nice: i8,
    },
    /// Restricts this task to the CPUs of a mask.
    SetAffinity(u32),
    /// Moves this task to a cgroup.
    SetCgroup(u32),
    /// Sets the task's own slice, 0 for the default.
    SetSlice(Ns),
    /// Counts a point of the program: number of passes, first and last time.
    Mark(u32),
    /// A request of kind `k` begins now, for this task.
    ReqStart(u32),
    /// A request of kind `k` begins at the time at which the task's last timed wait (`Period`,
    /// `Sleep`, `SleepUntilTaskTime`) was due, so waiting for a CPU after the timer is part of it;
    /// at the end of a wait that did not block, and before any wait, it is now.
    ReqStartDue(u32),
    /// A request of kind `k` begins for the task whose request to a service this one serves: when
    /// it took the list with that request.
    ReqStartCaller(u32),
    /// The request of kind `k` that this task began is over; its duration goes to histogram `k`.
    ReqEnd(u32),
    /// Sends a request of `bytes` to a service and blocks until it is answered. Wakes one server
    /// that waits in `Accept`.
    Call {
        /// Service.
        service: u32,
        /// Bytes of the request.
        bytes: u32,
    },
    /// Takes the oldest request of a service; blocks while there is none. The task keeps it until
    /// its `Reply`.
    Accept(u32),
    /// Answers the request that this task took last from the service and wakes its caller.
    Reply {
        /// Service.
        service: u32,
        /// Bytes of the answer.
        bytes: u32,
    },
    /// Replaces the task's image as `execve(2)` does: it goes to the CPU that `SD_BALANCE_EXEC`
    /// chooses, and loads there. The program goes on.
    Exec,
    /// The task ends. The end of `ops` means the same.
    Exit,
}

/// What a program that is busy for a time computes between two looks at the clock: 32 us, as rt-app
/// does for its `runtime`.
pub const BUSY_CHUNK_NS: Ns = 32_000;

/// A unit of work of [`Op::Work`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A clock cycle.
    Cycle,
    /// A division of 64-bit integers that waits for the one before.
    Div64,
    /// Writing a cache line, or reading one and writing another, many in a row, out of a working
    /// set of this many bytes. If the set is larger than the private caches, the core has
    /// [`FILL_BUFFERS`] misses in flight to the last-level cache or to memory.
    Line {
        /// Bytes that are used over and over.
        set_bytes: u64,
    },
}

/// Line fill buffers of a core: misses that it has in flight. 10 to 16 on Intel cores since 2008
/// (optimization reference manual); one figure for all machines.
pub const FILL_BUFFERS: u64 = 12;

/// Bytes that a core stores in a cycle while the lines are in its private caches (vectors of 256
/// bits, one store a cycle).
pub const STORE_BYTES_PER_CYCLE: u64 = 32;

/// How [`Op::Touch`] touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// A load.
    Load,
    /// A plain store.
    Store,
    /// An atomic update.
    Rmw,
    /// A load and a compare-and-swap, again until nobody was quicker.
    CasLoop,
}

/// Condition of [`Op::Leave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The shared budget is used up; otherwise takes one from it (an atomic operation on its line).
    /// How many were taken before is the task's ticket.
    Empty(u32),
    /// This many nanoseconds have passed since the first pass of a mark. Reads the clock.
    Over {
        /// Mark.
        mark: u32,
        /// Time.
        ns: Ns,
    },
    /// A mark has been passed by anybody. Takes no time.
    Passed(u32),
    /// The task's `FutexWake`s have woken this many since it last left for that. Takes no time.
    Woken(u64),
}

impl When {
    /// Whether asking takes the task any time.
    pub fn takes_time(self) -> bool {
        !matches!(self, Self::Passed(_) | Self::Woken(_))
    }
}

/// How [`Op::Pick`] chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickBy {
    /// All equally likely.
    Random,
    /// By the task's ticket modulo their number.
    Ticket,
}

impl Op {
    /// Whether the operation always moves the clock.
    pub fn takes_time(self) -> bool {
        match self {
            Self::Run(d) | Self::Sleep(d) => !d.is_zero(),
            Self::Work { n, .. } => n > 0,
            Self::Leave { when, .. } => when.takes_time(),
            Self::Pick { .. }
            | Self::Mark(_)
            | Self::ReqStart(_)
            | Self::ReqStartDue(_)
            | Self::ReqStartCaller(_)
            | Self::ReqEnd(_)
            | Self::SleepUntilTaskTime(_)
            | Self::StartAt(_)
            | Self::SleepUntilRunTime(_)
            | Self::LoopStart { .. }
            | Self::LoopEnd { .. } => false,
            _ => true,
        }
    }
}
