//! Who used the time: self time and calls of each function, as `perf top` without children.

use fairground::place::Func;

use crate::cache::Ps;
use crate::costs::{KERNEL_OPS, KernelOp};

/// Where time can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A scheduler function.
    Func(Func),
    /// Another operation of the kernel.
    Op(KernelOp),
    /// User code.
    User,
    /// Entry into and return from system calls.
    Syscall,
    /// Entry into and return from interrupts.
    Irq,
    /// The tick outside the scheduler.
    Tick,
    /// Registers, stack, address space.
    SwitchTo,
    /// Sending interrupts.
    IpiSend,
    /// Leaving an idle state.
    IdleExit,
    /// Between the functions above: entry points that have no name of their own.
    Other,
}

const OPS: usize = KERNEL_OPS.len();
const OTHERS: [&str; 8] = [
    "[user]",
    "entry_SYSCALL_64",
    "irq_entry_exit",
    "update_process_times",
    "__switch_to",
    "send_IPI",
    "[idle exit]",
    "[kernel, other]",
];
const PLACES: usize = Func::COUNT + OPS + OTHERS.len();

impl Place {
    const fn index(self) -> usize {
        match self {
            Place::Func(f) => f as usize,
            Place::Op(op) => Func::COUNT + op as usize,
            Place::User => Func::COUNT + OPS,
            Place::Syscall => Func::COUNT + OPS + 1,
            Place::Irq => Func::COUNT + OPS + 2,
            Place::Tick => Func::COUNT + OPS + 3,
            Place::SwitchTo => Func::COUNT + OPS + 4,
            Place::IpiSend => Func::COUNT + OPS + 5,
            Place::IdleExit => Func::COUNT + OPS + 6,
            Place::Other => Func::COUNT + OPS + 7,
        }
    }
}

/// Names of all places that a profile can have, in its order.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    let funcs = Func::ALL.iter().map(|f| f.name());
    funcs.chain(KERNEL_OPS.iter().map(|o| o.1)).chain(OTHERS)
}

/// Self time and calls by place.
#[derive(Clone, Debug)]
pub struct Profile {
    self_ps: [u64; PLACES],
    calls: [u64; PLACES],
    load_misses: [u64; PLACES],
    now: Func,
    since: Ps,
    depth: u32,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            self_ps: [0; PLACES],
            calls: [0; PLACES],
            load_misses: [0; PLACES],
            now: Func::Schedule,
            since: 0,
            depth: 0,
        }
    }
}

impl Profile {
    /// Kernel code begins at `at` on some CPU, outside any function.
    #[inline]
    pub fn resume(&mut self, at: Ps) {
        debug_assert_eq!(self.depth, 0, "a call into the engine has not been left");
        self.since = at;
    }

    /// `func` is entered.
    #[inline]
    pub fn enter(&mut self, func: Func, at: Ps) -> Func {
        self.self_ps[self.place()] += at - self.since;
        self.depth += 1;
        self.since = at;
        self.calls[func as usize] += 1;
        core::mem::replace(&mut self.now, func)
    }

    /// The innermost function is left for `outer`.
    #[inline]
    pub fn leave(&mut self, outer: Func, at: Ps) {
        self.self_ps[self.now as usize] += at - self.since;
        self.now = outer;
        self.since = at;
        self.depth -= 1;
    }

    /// A call of `place` takes `ps` from `at` on, outside the engine.
    #[inline]
    pub fn add(&mut self, place: Place, at: Ps, ps: Ps) {
        self.calls[place.index()] += 1;
        self.add_time(place, at, ps);
    }

    /// The same without counting a call.
    #[inline]
    pub fn add_time(&mut self, place: Place, at: Ps, ps: Ps) {
        debug_assert_eq!(self.depth, 0, "time outside the engine while inside it");
        self.rest(at);
        self.self_ps[place.index()] += ps;
        self.since = at + ps;
    }

    /// A CPU has spent `ps` in `place`, before what it does now.
    #[inline]
    pub fn add_elsewhere(&mut self, place: Place, ps: Ps) {
        self.self_ps[place.index()] += ps;
    }

    /// Kernel code of this CPU ends at `at`, outside any function.
    #[inline]
    pub fn rest(&mut self, at: Ps) {
        debug_assert_eq!(self.depth, 0, "inside a function");
        self.self_ps[Place::Other.index()] += at - self.since;
        self.since = at;
    }

    /// Whether `func` is the innermost function.
    #[must_use]
    pub fn is_in(&self, func: Func) -> bool {
        self.depth > 0 && self.now == func
    }

    fn place(&self) -> usize {
        if self.depth > 0 {
            self.now as usize
        } else {
            Place::Other.index()
        }
    }

    /// `n` loads of the scheduler's data missed the last-level cache.
    #[inline]
    pub fn missed(&mut self, n: u64) {
        let place = self.place();
        self.load_misses[place] += n;
    }

    /// Everything starts again at zero, outside any function.
    pub fn clear(&mut self) {
        debug_assert_eq!(self.depth, 0, "inside the engine");
        *self = Self::default();
    }

    /// Self time of everything together.
    #[must_use]
    pub fn total_ps(&self) -> u64 {
        self.self_ps.iter().sum()
    }

    /// Time in user code.
    #[must_use]
    pub fn user_ps(&self) -> u64 {
        self.self_ps[Place::User.index()]
    }

    /// Self time of the scheduler's functions.
    #[must_use]
    pub fn scheduler_ps(&self) -> u64 {
        self.self_ps[..Func::COUNT].iter().sum()
    }

    /// How often a place was entered.
    #[must_use]
    pub fn calls(&self, place: Place) -> u64 {
        self.calls[place.index()]
    }

    /// Name and last-level cache load misses of every place that had any.
    pub fn load_misses(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let rows = function_names().zip(self.load_misses);
        rows.filter(|(_, misses)| *misses > 0)
    }

    /// Name, self time and calls of every place that was used.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64, u64)> + '_ {
        function_names()
            .zip(self.self_ps.iter().zip(&self.calls))
            .filter(|(_, (ps, calls))| **ps + **calls > 0)
            .map(|(name, (ps, calls))| (name, *ps, *calls))
    }
}
