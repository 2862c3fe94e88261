//! What explains a place: the cache line whose waiting changed most, and the function whose share
//! of the busy time did.

use crate::result::Variant;
use crate::text::{Functions, place_name, traffic};

/// Something that base and patch have different amounts of.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The line's words, or the function.
    pub name: String,
    /// In base.
    pub base: f64,
    /// In patch.
    pub patch: f64,
}

impl Moved {
    fn by(&self) -> f64 {
        (self.patch - self.base).abs()
    }

    fn more(self, other: Option<Self>) -> Option<Self> {
        match other {
            Some(other) if other.by() >= self.by() => Some(other),
            _ => Some(self),
        }
    }
}

/// The cache line that CPUs waited for most differently: ms of all CPUs together, a run.
pub fn line(base: &Variant, patch: &Variant) -> Option<Moved> {
    let tables = [traffic(base), traffic(patch)];
    let mut most = None;
    for place in tables[0].keys().chain(tables[1].keys()) {
        let [base, patch] = [0, 1].map(|i| tables[i].get(place).map_or(0.0, |t| t.wait_ns / 1e6));
        let name = place_name(place.0, place.1);
        most = Moved { name, base, patch }.more(most);
    }
    most.filter(|moved| moved.by() > 0.0)
}

/// The function whose share of the busy CPU time differs most, percent.
pub fn function(base: &Variant, patch: &Variant) -> Option<Moved> {
    let mut most = None;
    for row in Functions::of([base, patch]).rows {
        let [base, patch] = [0, 1].map(|side: usize| 100.0 * row.costs[side].share);
        let name = row.name.to_string();
        most = Moved { name, base, patch }.more(most);
    }
    most.filter(|moved| moved.by() > 0.0)
}
