//! What the clock shows of turns: where CPUs share one stream of instructions, a step that is
//! longer than its turn goes on in the next one, and the clock meanwhile went on for the others.

use crate::cache::Ps;

/// The turn in which a step is executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Whose it is.
    pub cpu: u32,
    /// When it ends.
    pub until: Ps,
    /// How long a turn is now.
    pub length: Ps,
    /// How many other CPUs have something to execute.
    pub others: Ps,
}

impl Turn {
    /// How long others have had their turns when `cpu` has executed up to what is `at` without
    /// them.
    pub fn others(&self, cpu: u32, at: Ps) -> Ps {
        if cpu != self.cpu || at <= self.until {
            return 0;
        }
        let rounds = (at - self.until).div_ceil(self.length);
        rounds * self.length * self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_beyond_its_turn_waits_for_a_turn_of_each_other_cpu() {
        let turn = Turn {
            cpu: 1,
            until: 1_000,
            length: 100,
            others: 15,
        };
        assert_eq!(turn.others(1, 1_000), 0);
        assert_eq!(turn.others(1, 1_001), 1_500);
        assert_eq!(turn.others(1, 1_100), 1_500);
        assert_eq!(turn.others(1, 1_101), 3_000);
        assert_eq!(turn.others(0, 5_000), 0, "not its turn");
    }
}
