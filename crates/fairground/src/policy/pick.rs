//! Whom to pick: the two generations of the fair class.

/// The rule of the pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// Earliest virtual deadline among the eligible (6.6 and later).
    Eevdf,
    /// Least virtual run time (up to 6.5).
    Cfs,
}

impl Pick {
    /// Whether the tree is ordered by deadline; by virtual run time otherwise.
    #[inline]
    #[must_use]
    pub const fn by_deadline(self) -> bool {
        matches!(self, Self::Eevdf)
    }
}
