//! Wake-up placement: the affine choice and the length of the scan.

/// `WA_IDLE`, `WA_WEIGHT`, `WA_BIAS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeAffine {
    /// Prefer an idle waking or previous CPU.
    pub idle: bool,
    /// Otherwise compare loads.
    pub weight: bool,
    /// With a bias for the previous CPU.
    pub bias: bool,
}

/// How many CPUs `select_idle_cpu` looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanBudget {
    /// `SIS_UTIL`: from the utilisation of the cache domain (5.19 and later).
    Util,
    /// `SIS_PROP`: from the average idle time and the cost of a scan (up to 5.18).
    Prop,
    /// The whole domain.
    All,
}
