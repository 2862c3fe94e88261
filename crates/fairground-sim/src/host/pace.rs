//! CPUs that differ in capacity: how much longer a slow one takes.

use crate::cache::Ps;
use crate::machine_file::{CpuPlace, FULL_CAPACITY, Topology};

/// A step that is not stretched, in the unit of stretching.
pub const FULL: u64 = 1 << 16;

/// By how much each CPU stretches what it does, in 65536ths; empty if all are as fast.
#[derive(Clone, Debug, Default)]
pub struct Pace(Vec<u64>);

impl Pace {
    /// The CPUs of a machine.
    pub fn new(topology: &Topology) -> Self {
        if !topology.is_asymmetric() {
            return Self::default();
        }
        let of = |p: &CpuPlace| u64::from(FULL_CAPACITY) * FULL / u64::from(p.capacity);
        Self(topology.cpus.iter().map(of).collect())
    }

    /// Whether some are slower than others.
    #[inline]
    pub fn differs(&self) -> bool {
        !self.0.is_empty()
    }

    /// By how much `cpu` stretches a step that its sibling stretches, too, or nobody else.
    pub fn stretch(&self, cpu: u32, beside: Option<u64>) -> u64 {
        self.time_on(cpu, beside.unwrap_or(FULL))
    }

    /// How long `cpu` takes for what takes `ps` on the fastest one.
    #[inline]
    pub fn time_on(&self, cpu: u32, ps: Ps) -> Ps {
        match self.0.get(cpu as usize) {
            None => ps,
            // Rounded up: then it is done.
            Some(slow) => (u128::from(ps) * u128::from(*slow)).div_ceil(FULL.into()) as Ps,
        }
    }

    /// What `cpu` gets done in `ps`, in time of the fastest one.
    #[inline]
    pub fn done_on(&self, cpu: u32, ps: Ps) -> Ps {
        match self.0.get(cpu as usize) {
            None => ps,
            Some(slow) => (u128::from(ps) * u128::from(FULL) / u128::from(*slow)) as Ps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_had_its_time_is_done() {
        let place = |capacity| CpuPlace {
            capacity,
            ..CpuPlace::default()
        };
        let pace = Pace::new(&Topology {
            cpus: [1024, 1, 333, 1000].map(place).to_vec(),
            slit: vec![vec![10]],
            siblings_apart: false,
        });
        assert!(pace.differs());
        for cpu in 0..4 {
            for ps in [0, 1, 999, 1_000_003, 1 << 50] {
                let took = pace.time_on(cpu, ps);
                assert!(took >= ps && pace.done_on(cpu, took) >= ps, "{cpu} {ps}");
            }
        }
        assert_eq!(pace.time_on(0, 77), 77);
        assert_eq!(pace.time_on(1, 2), 2048);
    }
}
