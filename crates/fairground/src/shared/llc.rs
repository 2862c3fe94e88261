//! What the CPUs of one last-level cache share (`sched_domain_shared`).

use core::sync::atomic::{AtomicBool, AtomicU32};

use super::Relaxed;
use crate::host::Host;
use crate::place::{Access, Fields, Kind, Object, llc as f};
use crate::value::LlcId;

/// `[any]` Words of one last-level cache domain. The accessors take the cache's id, to report the
/// touch.
#[derive(Debug, Default)]
pub struct LlcShared {
    /// CPUs that are not in tickless idle `[any]`.
    nr_busy_cpus: AtomicU32,
    /// A whole core was seen idle `[any]`.
    has_idle_cores: AtomicBool,
    /// CPUs that `select_idle_cpu` may look at, from utilisation `[any]`.
    nr_idle_scan: AtomicU32,
}

impl LlcShared {
    /// The words of an idle cache domain of `weight` CPUs, all with a running tick: the whole
    /// domain may be scanned, and with `smt` some core is idle.
    #[must_use]
    pub fn new(weight: u32, smt: bool) -> Self {
        Self {
            nr_busy_cpus: AtomicU32::new(weight),
            has_idle_cores: AtomicBool::new(smt),
            nr_idle_scan: AtomicU32::new(weight),
        }
    }

    /// CPUs that are not in tickless idle.
    #[inline]
    #[must_use]
    pub fn nr_busy_cpus<H: Host + ?Sized>(&self, id: LlcId, host: &mut H) -> u32 {
        touch(id, f::NR_BUSY_CPUS, Access::Read, host);
        self.nr_busy_cpus.load(Relaxed)
    }

    /// A CPU leaves tickless idle (`busy`) or enters it.
    #[inline]
    pub fn count_busy<H: Host + ?Sized>(&self, id: LlcId, busy: bool, host: &mut H) {
        touch(id, f::NR_BUSY_CPUS, Access::Rmw, host);
        if busy {
            self.nr_busy_cpus.fetch_add(1, Relaxed);
        } else {
            self.nr_busy_cpus.fetch_sub(1, Relaxed);
        }
    }

    /// Whether some core may be idle (`test_idle_cores`).
    #[inline]
    #[must_use]
    pub fn has_idle_cores<H: Host + ?Sized>(&self, id: LlcId, host: &mut H) -> bool {
        touch(id, f::HAS_IDLE_CORES, Access::Read, host);
        self.has_idle_cores.load(Relaxed)
    }

    /// Remembers whether some core is idle (`set_idle_cores`).
    #[inline]
    pub fn set_idle_cores<H: Host + ?Sized>(&self, id: LlcId, value: bool, host: &mut H) {
        touch(id, f::HAS_IDLE_CORES, Access::Write, host);
        self.has_idle_cores.store(value, Relaxed);
    }

    /// CPUs that a wake-up may look at (`SIS_UTIL`).
    #[inline]
    #[must_use]
    pub fn nr_idle_scan<H: Host + ?Sized>(&self, id: LlcId, host: &mut H) -> u32 {
        touch(id, f::NR_IDLE_SCAN, Access::Read, host);
        self.nr_idle_scan.load(Relaxed)
    }

    /// Sets the scan limit; writes only if it differs, as the kernel does.
    #[inline]
    pub fn set_nr_idle_scan<H: Host + ?Sized>(&self, id: LlcId, value: u32, host: &mut H) {
        touch(id, f::NR_IDLE_SCAN, Access::Read, host);
        if self.nr_idle_scan.load(Relaxed) != value {
            touch(id, f::NR_IDLE_SCAN, Access::Write, host);
            self.nr_idle_scan.store(value, Relaxed);
        }
    }
}

#[inline]
fn touch<H: Host + ?Sized>(id: LlcId, fields: Fields, access: Access, host: &mut H) {
    let object = Object {
        kind: Kind::Llc,
        a: id.0,
        b: 0,
    };
    host.touch(object, fields, access);
}
