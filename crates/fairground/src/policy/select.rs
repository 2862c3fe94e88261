//! Wake-up placement: the affine choice and the length of the scan.

/// `WA_IDLE`, `WA_WEIGHT`, `WA_BIAS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeAffine {
    /// Prefer an idle waking or previous CPU ("sched/core: Fix wake_affine() performance
    /// regression", Peter Zijlstra, 2017, for 4.14).
    pub idle: bool,
    /// Otherwise compare loads.
    pub weight: bool,
    /// With a bias for the previous CPU.
    pub bias: bool,
    /// An idle previous CPU is the choice, whatever the loads ("sched/fair: Check for idle core in
    /// wake_affine", Julia Lawall, 2020, for 5.11).
    pub prev_idle: bool,
    /// Equal loads go to the waking CPU even if its task does not say that it will sleep (up to
    /// 4.16; "sched/fair: Do not migrate on wake_affine_weight() if weights are equal", Mel Gorman,
    /// 2018, for 4.17).
    pub ties: bool,
}

impl WakeAffine {
    /// Factors for the loads of the waking and of the previous CPU: half of what the domain
    /// tolerates as imbalance speaks for staying (`WA_BIAS`).
    #[inline]
    #[must_use]
    pub fn load_factors(self, imbalance_pct: u32) -> (i64, i64) {
        if self.bias {
            (100, 100 + (i64::from(imbalance_pct) - 100) / 2)
        } else {
            (1, 1)
        }
    }
}

/// Which CPU a wake-up tries besides target and previous one, because the task knows it.
///
/// Sources: "sched/fair: Use a recently used CPU as an idle candidate and the basis for SIS", Mel
/// Gorman, 2018, for 4.16; "sched/fair: Use prev instead of new target as recent_used_cpu", the
/// same, 2021, for 5.15.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecentUsedCpu {
    /// None (up to 4.15).
    Off,
    /// That from which the task last woke another one itself, or the previous one of when the last
    /// such CPU was taken (up to 5.14).
    Waker,
    /// That on which it was before the previous one (5.15 and later).
    Prev,
}

impl RecentUsedCpu {
    /// Whether there is one.
    #[inline]
    #[must_use]
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether the previous CPU is remembered, given that the remembered one was `taken` or not.
    #[inline]
    #[must_use]
    pub const fn remembers_prev(self, taken: bool) -> bool {
        match self {
            Self::Off => false,
            Self::Waker => taken,
            Self::Prev => true,
        }
    }

    /// Whether a waker remembers the CPU on which it wakes.
    #[inline]
    #[must_use]
    pub const fn remembers_waking(self) -> bool {
        matches!(self, Self::Waker)
    }
}

/// How many CPUs `select_idle_cpu` looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanBudget {
    /// `SIS_UTIL`: from the utilisation of the cache domain (6.0 and later).
    Util,
    /// `SIS_PROP`: from the average idle time and the cost of a scan (up to 5.19).
    Prop,
    /// The whole domain.
    All,
    /// A core that is idle as a whole, wherever, or else a thread of the target's core; without
    /// SMT any CPU (up to 4.8).
    ///
    /// Source: "sched/fair: Rewrite select_idle_siblings()", Peter Zijlstra, 2016, for 4.9, whose
    /// changelog says what came before.
    CoreOrTarget,
}

/// What a scan is to be limited by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanLimit {
    /// The cache domain's own limit, kept up to date by load balancing.
    OfCache,
    /// This many CPUs.
    Cpus(u32),
}

impl ScanBudget {
    /// Whether balancing publishes a limit for each cache.
    #[inline]
    #[must_use]
    pub const fn is_published(self) -> bool {
        matches!(self, Self::Util)
    }

    /// Whether of a core that is partly busy only the target's own is looked at.
    #[inline]
    #[must_use]
    pub const fn wants_whole_cores(self) -> bool {
        matches!(self, Self::CoreOrTarget)
    }

    /// Whether the time of a scan is measured, for [`limit`](Self::limit).
    #[inline]
    #[must_use]
    pub const fn measures_scans(self) -> bool {
        matches!(self, Self::Prop)
    }

    /// The limit for a CPU whose idle periods last `avg_idle_ns`, in a domain of `weight` CPUs
    /// where scans take `avg_cost_ns`: of the time until the next idle period only a small part
    /// (1/512) may be spent. The count starts at four or more, and the last one ends the scan
    /// without a look.
    #[inline]
    #[must_use]
    pub fn limit(self, weight: u32, avg_idle_ns: u64, avg_cost_ns: u64) -> ScanLimit {
        match self {
            Self::Util => ScanLimit::OfCache,
            Self::All | Self::CoreOrTarget => ScanLimit::Cpus(u32::MAX),
            Self::Prop => {
                let cost = avg_cost_ns + 1;
                let span = u64::from(weight) * (avg_idle_ns / 512);
                let cpus = if span > 4 * cost { span / cost } else { 4 };
                ScanLimit::Cpus(u32::try_from(cpus - 1).unwrap_or(u32::MAX))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_of_old_kernels_get_longer_with_idle_time_and_never_short_of_three() {
        let limit = |idle, cost| ScanBudget::Prop.limit(16, idle, cost);
        assert_eq!(limit(0, 0), ScanLimit::Cpus(3));
        assert_eq!(limit(512_000, 999), ScanLimit::Cpus(15));
        assert_eq!(limit(512_000, 3_999), ScanLimit::Cpus(3));
    }
}
