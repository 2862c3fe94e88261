//! Idle balancing's machine-wide words, and the root domain's.
//!
//! Every accessor of a scheduler word takes the host and reports the touch; the counts for
//! reports are not words of the kernel and touch nothing.

use alloc::vec::Vec;
use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};

use super::{CpuShared, Relaxed};
use crate::host::Host;
use crate::place::{Access, Fields, Kind, Object, nohz as f, rd as frd, rq as frq};
use crate::value::{Cpu, CpuMask, MAX_CPUS};

/// What an idle balancer is asked to do; the kernel's `NOHZ_*` bits of `rq->nohz_flags`.
pub mod nohz_kick {
    /// Balance the domains of the idle CPUs.
    pub const BALANCE: u32 = 1;
    /// Decay their blocked load.
    pub const STATS: u32 = 1 << 1;
    /// Decay it from the own idle loop (set by a newly idle CPU for itself).
    pub const NEWILB: u32 = 1 << 2;
    /// Compute `nohz.next_balance` again.
    pub const NEXT: u32 = 1 << 3;
    /// What comes with an IPI; who sets the first of these owns the IPI.
    pub const MASK: u32 = BALANCE | STATS | NEXT;
}

/// `[any]` The `nohz` structure: CPUs whose tick is stopped, and when somebody must balance for
/// them.
#[derive(Debug)]
pub struct Nohz {
    mask: Vec<AtomicU64>,
    /// Number of CPUs in the mask `[any]`.
    nr_cpus: AtomicU32,
    /// Some idle CPU has load to decay `[any]`.
    has_blocked: AtomicBool,
    /// `next_balance` must be computed again `[any]`.
    needs_update: AtomicBool,
    /// When the next balance on behalf of idle CPUs is due, jiffies `[any]`.
    next_balance: AtomicU64,
    /// When the blocked load should next be decayed, jiffies `[any]`.
    next_blocked: AtomicU64,
    /// `sched_balance_running`: somebody balances a level that only one CPU may at a time `[any]`.
    balance_running: AtomicBool,
    /// From when until when somebody was last, in the host's time ([`Host::moment`]): where calls
    /// begin in order of time but each runs to its end, one that begins meanwhile comes after it.
    balance_ran: [AtomicU64; 2],
    /// Kicks that found an idle CPU and are over, since the start: for reports.
    pub kicks: AtomicU64,
    /// Those of them whose bits were all set already: for reports.
    pub redundant_kicks: AtomicU64,
}

impl Nohz {
    /// Nobody idle.
    #[must_use]
    pub fn new() -> Self {
        Self {
            mask: (0..MAX_CPUS / 64).map(|_| AtomicU64::new(0)).collect(),
            nr_cpus: AtomicU32::new(0),
            has_blocked: AtomicBool::new(false),
            needs_update: AtomicBool::new(false),
            next_balance: AtomicU64::new(0),
            next_blocked: AtomicU64::new(0),
            balance_running: AtomicBool::new(false),
            balance_ran: [AtomicU64::new(0), AtomicU64::new(0)],
            kicks: AtomicU64::new(0),
            redundant_kicks: AtomicU64::new(0),
        }
    }

    /// Counts from here on.
    pub fn clear_counters(&self) {
        self.kicks.store(0, Relaxed);
        self.redundant_kicks.store(0, Relaxed);
    }

    /// A kick is over, which has changed something or not. Both are counted at one time, so that
    /// what begins before the counters are cleared is in both or in none.
    pub(crate) fn count_kick(&self, redundant: bool) {
        self.kicks.fetch_add(1, Relaxed);
        self.redundant_kicks
            .fetch_add(u64::from(redundant), Relaxed);
    }

    /// Reaches for the mask of the idle CPUs.
    pub(crate) fn reach_idle_cpus<H: Host + ?Sized>(&self, host: &mut H) {
        touch(f::IDLE_CPUS_MASK, Access::Read, host);
    }

    /// The idle CPUs; the mask has been reached.
    #[must_use]
    pub fn idle_cpus(&self) -> CpuMask {
        CpuMask::from_words(|i| self.mask[i].load(Relaxed))
    }

    /// Adds or removes `cpu`, and counts it.
    pub fn set_idle<H: Host + ?Sized>(&self, cpu: Cpu, idle: bool, host: &mut H) {
        touch(f::IDLE_CPUS_MASK, Access::Rmw, host);
        touch(f::NR_CPUS, Access::Rmw, host);
        let (word, bit) = (&self.mask[cpu.idx() / 64], 1 << (cpu.0 % 64));
        if idle {
            word.fetch_or(bit, Relaxed);
            self.nr_cpus.fetch_add(1, Relaxed);
            // Before `has_blocked`: see `end_clear`.
            fence(SeqCst);
        } else {
            word.fetch_and(!bit, Relaxed);
            self.nr_cpus.fetch_sub(1, Relaxed);
        }
    }

    /// Whether some CPU is in tickless idle; no touch is reported.
    #[inline]
    #[must_use]
    pub(crate) fn anybody(&self) -> bool {
        self.nr_cpus.load(Relaxed) > 0
    }

    /// Number of CPUs in tickless idle.
    #[inline]
    #[must_use]
    pub fn nr_cpus<H: Host + ?Sized>(&self, host: &mut H) -> u32 {
        touch(f::NR_CPUS, Access::Read, host);
        self.nr_cpus.load(Relaxed)
    }

    /// Whether some idle CPU has load to decay.
    #[inline]
    #[must_use]
    pub fn has_blocked<H: Host + ?Sized>(&self, host: &mut H) -> bool {
        touch(f::HAS_BLOCKED, Access::Read, host);
        self.has_blocked.load(Relaxed)
    }

    /// See [`Nohz::has_blocked`].
    #[inline]
    pub fn set_has_blocked<H: Host + ?Sized>(&self, value: bool, host: &mut H) {
        touch(f::HAS_BLOCKED, Access::Write, host);
        self.has_blocked.store(value, Relaxed);
    }

    /// Whether `next_balance` must be computed again.
    #[inline]
    #[must_use]
    pub fn needs_update<H: Host + ?Sized>(&self, host: &mut H) -> bool {
        touch(f::HAS_BLOCKED, Access::Read, host);
        self.needs_update.load(Relaxed)
    }

    /// See [`Nohz::needs_update`].
    #[inline]
    pub fn set_needs_update<H: Host + ?Sized>(&self, value: bool, host: &mut H) {
        touch(f::HAS_BLOCKED, Access::Write, host);
        self.needs_update.store(value, Relaxed);
    }

    /// When the next balance on behalf of idle CPUs is due, jiffies.
    #[inline]
    #[must_use]
    pub fn next_balance<H: Host + ?Sized>(&self, host: &mut H) -> u64 {
        touch(f::NEXT_BALANCE, Access::Read, host);
        self.next_balance.load(Relaxed)
    }

    /// See [`Nohz::next_balance`].
    #[inline]
    pub fn set_next_balance<H: Host + ?Sized>(&self, jiffies: u64, host: &mut H) {
        self.begin_next_balance(host);
        self.end_next_balance(jiffies);
    }

    /// The first half of [`Nohz::set_next_balance`]: the store is on its way.
    #[inline]
    pub(crate) fn begin_next_balance<H: Host + ?Sized>(&self, host: &mut H) {
        touch(f::NEXT_BALANCE, Access::Write, host);
    }

    /// The second half: others see it.
    #[inline]
    pub(crate) fn end_next_balance(&self, jiffies: u64) {
        self.next_balance.store(jiffies, Relaxed);
    }

    /// Clears what a balance for the idle is about to do, behind a full barrier: the CPU waits
    /// until the line is its own. The first half: the stores are on their way.
    #[inline]
    pub(crate) fn begin_clear<H: Host + ?Sized>(&self, host: &mut H) {
        touch(f::HAS_BLOCKED, Access::Rmw, host);
    }

    /// The second half: others see them, before the mask of idle CPUs is read. So who misses a CPU
    /// that comes into the mask does not take back what that CPU says after it.
    #[inline]
    pub(crate) fn end_clear(&self, has_blocked: bool, needs_update: bool) {
        if has_blocked {
            self.has_blocked.store(false, Relaxed);
        }
        if needs_update {
            self.needs_update.store(false, Relaxed);
        }
        fence(SeqCst);
    }

    /// When the blocked load should next be decayed, jiffies.
    #[inline]
    #[must_use]
    pub fn next_blocked<H: Host + ?Sized>(&self, host: &mut H) -> u64 {
        touch(f::NEXT_BLOCKED, Access::Read, host);
        self.next_blocked.load(Relaxed)
    }

    /// See [`Nohz::next_blocked`].
    #[inline]
    pub fn set_next_blocked<H: Host + ?Sized>(&self, jiffies: u64, host: &mut H) {
        touch(f::NEXT_BLOCKED, Access::Write, host);
        self.next_blocked.store(jiffies, Relaxed);
    }

    /// Becomes the only one that balances a serialized level; false if somebody is at it.
    #[inline]
    #[must_use]
    pub fn try_start_serialized<H: Host + ?Sized>(&self, host: &mut H) -> bool {
        touch(f::BALANCE_RUNNING, Access::Rmw, host);
        let now = host.moment();
        let [from, until] = &self.balance_ran;
        let meanwhile = from.load(Relaxed) <= now && now < until.load(Relaxed);
        if meanwhile || self.balance_running.swap(true, Relaxed) {
            return false;
        }
        from.store(now, Relaxed);
        true
    }

    /// Lets the next one balance.
    #[inline]
    pub fn end_serialized<H: Host + ?Sized>(&self, host: &mut H) {
        touch(f::BALANCE_RUNNING, Access::Write, host);
        self.balance_ran[1].store(host.moment(), Relaxed);
        self.balance_running.store(false, Relaxed);
    }
}

impl Default for Nohz {
    fn default() -> Self {
        Self::new()
    }
}

/// When this CPU balances next and what that costs: written without its lock by whoever balances
/// on its behalf.
impl CpuShared {
    /// Next periodic balance of `cpu`, whose words these are, jiffies.
    #[inline]
    #[must_use]
    pub fn next_balance<H: Host + ?Sized>(&self, cpu: Cpu, host: &mut H) -> u64 {
        self.next_balance_and(cpu, Fields(0), host)
    }

    /// The same by a caller who reads other fields of the `rq` with it: one report for all.
    #[inline]
    pub(crate) fn next_balance_and<H: Host + ?Sized>(
        &self,
        cpu: Cpu,
        also: Fields,
        host: &mut H,
    ) -> u64 {
        touch_rq(cpu, frq::NEXT_BALANCE | also, Access::Read, host);
        self.next_balance.load(Relaxed)
    }

    /// See [`CpuShared::next_balance`].
    #[inline]
    pub fn set_next_balance<H: Host + ?Sized>(&self, cpu: Cpu, jiffies: u64, host: &mut H) {
        touch_rq(cpu, frq::NEXT_BALANCE, Access::Write, host);
        self.next_balance.store(jiffies, Relaxed);
    }

    /// Longest recent cost of a newly-idle balance of `cpu` over all levels, ns.
    #[inline]
    #[must_use]
    pub fn max_idle_balance_cost<H: Host + ?Sized>(&self, cpu: Cpu, host: &mut H) -> u64 {
        touch_rq(cpu, frq::AVG_IDLE, Access::Read, host);
        self.max_idle_balance_cost.load(Relaxed)
    }

    /// See [`CpuShared::max_idle_balance_cost`].
    #[inline]
    pub fn set_max_idle_balance_cost<H: Host + ?Sized>(&self, cpu: Cpu, ns: u64, host: &mut H) {
        touch_rq(cpu, frq::AVG_IDLE, Access::Write, host);
        self.max_idle_balance_cost.store(ns, Relaxed);
    }

    pub(crate) fn init_max_idle_balance_cost(mut self, ns: u64) -> Self {
        self.max_idle_balance_cost = AtomicU64::new(ns);
        self
    }
}

/// `rq->nohz_flags`, reached by every kicker.
impl CpuShared {
    /// Reaches for the flags of `cpu`, whose words these are: to read them, or to update them. On
    /// x86 the latter is a loop of compare-and-swap that writes even if nothing changes.
    #[inline]
    pub(crate) fn reach_nohz_flags<H: Host + ?Sized>(&self, cpu: Cpu, how: Access, host: &mut H) {
        touch_rq(cpu, frq::NOHZ_FLAGS, how, host);
    }

    /// The flags, which have been reached.
    #[inline]
    #[must_use]
    pub(crate) fn nohz_flags(&self) -> u32 {
        self.nohz_flags.load(Relaxed)
    }

    /// Sets `bits` of the flags, which have been reached; the flags before.
    #[inline]
    pub(crate) fn or_nohz_flags(&self, bits: u32) -> u32 {
        self.nohz_flags.fetch_or(bits, Relaxed)
    }

    /// Sets `bits` of the flags, which have been reached, if they are still as they were `seen`:
    /// who sets the first bit of [`MASK`](nohz_kick::MASK) owns the kick, so this and the clearing
    /// of the kicked CPU must not pass each other.
    #[inline]
    #[must_use]
    pub(crate) fn swap_nohz_flags(&self, seen: u32, bits: u32) -> bool {
        self.nohz_flags
            .compare_exchange(seen, seen | bits, Relaxed, Relaxed)
            .is_ok()
    }

    /// Clears `bits` of the flags, which have been reached; the flags before.
    #[inline]
    pub(crate) fn clear_nohz_flags(&self, bits: u32) -> u32 {
        self.nohz_flags.fetch_and(!bits, Relaxed)
    }
}

/// `[any]` The root domain's words.
#[derive(Debug, Default)]
pub struct RootDomain {
    /// Some CPU has more than one task: newly-idle balancing is worth a try.
    pub overloaded: AtomicBool,
}

impl RootDomain {
    /// Whether some CPU has tasks that another could run.
    #[inline]
    #[must_use]
    pub fn is_overloaded<H: Host + ?Sized>(&self, host: &mut H) -> bool {
        touch_rd(frd::OVERLOAD, Access::Read, host);
        self.overloaded.load(Relaxed)
    }

    /// Remembers it; writes only if it differs, as the kernel does (`set_rd_overloaded`).
    #[inline]
    pub fn set_overloaded<H: Host + ?Sized>(&self, value: bool, host: &mut H) {
        touch_rd(frd::OVERLOAD, Access::Read, host);
        if self.overloaded.load(Relaxed) != value {
            touch_rd(frd::OVERLOAD, Access::Write, host);
            self.overloaded.store(value, Relaxed);
        }
    }
}

#[inline]
fn touch<H: Host + ?Sized>(fields: Fields, access: Access, host: &mut H) {
    let object = Object {
        kind: Kind::Nohz,
        a: 0,
        b: 0,
    };
    host.touch(object, fields, access);
}

#[inline]
fn touch_rq<H: Host + ?Sized>(cpu: Cpu, fields: Fields, access: Access, host: &mut H) {
    host.touch(Object::rq(cpu), fields, access);
}

#[inline]
fn touch_rd<H: Host + ?Sized>(fields: Fields, access: Access, host: &mut H) {
    let object = Object {
        kind: Kind::Rd,
        a: 0,
        b: 0,
    };
    host.touch(object, fields, access);
}
