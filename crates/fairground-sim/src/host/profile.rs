//! Who used the time: self time and calls of each function, as `perf top` without children.

use fairground::place::Func;

use super::stacks::{Stack, Stacks};
use crate::cache::{NS, Ps};
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
    /// After a switch, on the new stack.
    FinishTaskSwitch,
    /// Sending interrupts.
    IpiSend,
    /// Leaving an idle state.
    IdleExit,
    /// Between the functions above: entry points that have no name of their own.
    Other,
}

const OPS: usize = KERNEL_OPS.len();
const OTHERS: [&str; 9] = [
    "[user]",
    "entry_SYSCALL_64",
    "irq_entry_exit",
    "update_process_times",
    "__switch_to",
    "finish_task_switch",
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
            Place::FinishTaskSwitch => Func::COUNT + OPS + 5,
            Place::IpiSend => Func::COUNT + OPS + 6,
            Place::IdleExit => Func::COUNT + OPS + 7,
            Place::Other => Func::COUNT + OPS + 8,
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
    other_misses: [u64; PLACES],
    now: Func,
    since: Ps,
    /// Functions that were entered and not left; from [`KEPT`] on if stacks are kept, so that the
    /// usual path asks one question only.
    depth: i32,
    stacks: Option<Box<Stacks>>,
}

/// No function is entered, and stacks are kept.
const KEPT: i32 = i32::MIN;

impl Default for Profile {
    fn default() -> Self {
        Self {
            self_ps: [0; PLACES],
            calls: [0; PLACES],
            load_misses: [0; PLACES],
            other_misses: [0; PLACES],
            now: Func::Schedule,
            since: 0,
            depth: 0,
            stacks: None,
        }
    }
}

impl Profile {
    /// Keeps time by stack from now on.
    pub fn keep_stacks(&mut self) {
        debug_assert!(self.is_outside(), "inside a function");
        self.depth = KEPT;
        self.stacks = Some(Box::default());
    }

    /// Time by stack, if it was kept.
    #[must_use]
    pub fn stacks(&self) -> Vec<Stack> {
        self.stacks.as_ref().map_or(Vec::new(), |s| s.rows(NS))
    }

    /// Kernel code begins at `at` on some CPU, outside any function.
    #[inline]
    pub fn resume(&mut self, at: Ps) {
        debug_assert!(
            self.is_outside(),
            "a call into the engine has not been left"
        );
        self.since = at;
    }

    /// `func` is entered.
    #[inline(always)]
    pub fn enter(&mut self, func: Func, at: Ps) -> Func {
        if self.depth > 0 {
            self.self_ps[self.now as usize] += at - self.since;
        } else {
            self.enter_rare(func, at - self.since);
        }
        self.depth += 1;
        self.since = at;
        self.calls[func as usize] += 1;
        core::mem::replace(&mut self.now, func)
    }

    /// `func` goes on, which was left unfinished.
    pub fn reenter(&mut self, func: Func, at: Ps) -> Func {
        let outer = self.enter(func, at);
        self.calls[func as usize] -= 1;
        if let Some(stacks) = &mut self.stacks {
            stacks.reentered();
        }
        outer
    }

    /// A first function, or one whose stack is kept, after `ps` outside or in the one around it.
    #[inline(never)]
    fn enter_rare(&mut self, func: Func, ps: Ps) {
        if self.is_outside() {
            self.charge_other(Place::Other, ps, 0);
        } else {
            self.self_ps[self.now as usize] += ps;
            if let Some(stacks) = &mut self.stacks {
                stacks.charge(ps);
            }
        }
        if let Some(stacks) = &mut self.stacks {
            stacks.enter(func as usize);
        }
    }

    /// The innermost function is left for `outer`.
    #[inline]
    pub fn leave(&mut self, outer: Func, at: Ps) {
        self.self_ps[self.now as usize] += at - self.since;
        self.depth -= 1;
        if self.depth < 0
            && let Some(stacks) = &mut self.stacks
        {
            stacks.charge(at - self.since);
            stacks.leave();
        }
        self.now = outer;
        self.since = at;
    }

    /// `func` is entered at `at` and left after `ps`.
    #[inline(always)]
    pub fn call(&mut self, func: Func, at: Ps, ps: Ps) {
        if self.depth > 0 {
            self.calls[func as usize] += 1;
            self.self_ps[func as usize] += ps;
            // Not the time of the function around it.
            self.since += ps;
        } else {
            let outer = self.enter(func, at);
            self.leave(outer, at + ps);
        }
    }

    /// A call of `place` takes `ps` from `at` on, outside the engine.
    #[inline]
    pub fn add(&mut self, place: Place, at: Ps, ps: Ps) {
        self.add_calls(place, at, ps, 1);
    }

    /// A call of `place` begins; its time comes later.
    #[inline]
    pub fn count(&mut self, place: Place) {
        self.charge_other(place, 0, 1);
    }

    /// The same as [`add`](Self::add) without counting a call.
    #[inline]
    pub fn add_time(&mut self, place: Place, at: Ps, ps: Ps) {
        self.add_calls(place, at, ps, 0);
    }

    #[inline]
    fn add_calls(&mut self, place: Place, at: Ps, ps: Ps, calls: u64) {
        debug_assert!(self.is_outside(), "inside a function");
        let rest = at - self.since;
        self.since = at + ps;
        self.self_ps[Place::Other.index()] += rest;
        self.self_ps[place.index()] += ps;
        self.calls[place.index()] += calls;
        if let Some(stacks) = &mut self.stacks {
            stacks.charge_other(Place::Other.index(), rest, 0);
            stacks.charge_other(place.index(), ps, calls);
        }
    }

    /// Within a function `place` takes `ps`, which is not the function's time.
    pub fn add_within(&mut self, place: Place, ps: Ps, calls: u64) {
        debug_assert!(!self.is_outside(), "in no function");
        self.since += ps;
        self.charge_other(place, ps, calls);
    }

    /// A CPU has spent `ps` in `place`, before what it does now.
    #[inline]
    pub fn add_elsewhere(&mut self, place: Place, ps: Ps) {
        self.charge_other(place, ps, 0);
    }

    /// Kernel code of this CPU ends at `at`, outside any function.
    #[inline]
    pub fn rest(&mut self, at: Ps) {
        debug_assert!(self.is_outside(), "inside a function");
        self.charge_other(Place::Other, at - self.since, 0);
        self.since = at;
    }

    #[inline]
    fn charge_other(&mut self, place: Place, ps: Ps, calls: u64) {
        self.self_ps[place.index()] += ps;
        self.calls[place.index()] += calls;
        if let Some(stacks) = &mut self.stacks {
            stacks.charge_other(place.index(), ps, calls);
        }
    }

    fn place(&self) -> usize {
        if self.is_outside() {
            Place::Other.index()
        } else {
            self.now as usize
        }
    }

    fn is_outside(&self) -> bool {
        self.depth == 0 || self.depth == KEPT
    }

    /// `n` loads of the scheduler's data missed the last-level cache.
    #[inline]
    pub fn missed(&mut self, n: u64) {
        let place = self.place();
        self.load_misses[place] += n;
    }

    /// The same in a call of `func` that is told with its end.
    #[inline]
    pub fn missed_in(&mut self, func: Func, n: u64) {
        self.load_misses[func as usize] += n;
    }

    /// `n` loads of lines that are no scheduler's data missed the last-level cache.
    #[inline]
    pub fn missed_other(&mut self, place: Place, n: u64) {
        self.other_misses[place.index()] += n;
    }

    /// Everything starts again at zero, outside any function.
    pub fn clear(&mut self) {
        debug_assert!(self.is_outside(), "inside the engine");
        let kept = self.stacks.is_some();
        *self = Self::default();
        if kept {
            self.keep_stacks();
        }
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

    /// Self time of one place.
    #[must_use]
    pub fn self_ps_of(&self, place: Place) -> u64 {
        self.self_ps[place.index()]
    }

    /// Self time of the scheduler's functions.
    #[must_use]
    pub fn scheduler_ps(&self) -> u64 {
        let funcs = self.self_ps[..Func::COUNT].iter().sum::<u64>();
        funcs + self.self_ps[Place::FinishTaskSwitch.index()]
    }

    /// How often a place was entered.
    #[must_use]
    pub fn calls(&self, place: Place) -> u64 {
        self.calls[place.index()]
    }

    /// Name and last-level cache load misses of the scheduler's data, of every place that had any.
    pub fn load_misses(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let rows = function_names().zip(self.load_misses);
        rows.filter(|(_, misses)| *misses > 0)
    }

    /// The same of all other lines: pipes, sockets, messages, a program's shared words.
    pub fn other_misses(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let rows = function_names().zip(self.other_misses);
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
