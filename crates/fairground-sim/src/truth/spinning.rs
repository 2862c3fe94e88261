//! Loops whose turns take no time: the recorder's thread spins in them, and the clock of the
//! simulated machine must go on.
//!
//! The first turn is made step by step (`until_us` may sleep in it), the others as computing.

use super::builder::{Builder, Turns};
use super::case::Step;
use crate::machine_file::Machine;
use crate::workload::program::{Dur, FOREVER, Ns, Op};

/// What a turn takes the recorder, ns: it reads the counter of time once (`run_us: 0`), as
/// `sched_clock` of the machine file does. Without any step it takes less, for `period_us: 0` more.
pub(super) fn turn_ns(machine: &Machine) -> f64 {
    machine.kernel_op_ns("sched_clock").unwrap_or(0.0).max(1.0)
}

/// Turns that are computed in one piece.
pub(super) const AT_ONCE: u64 = 1000;

/// Up to so many turns the time does not matter.
const FEW: u64 = 1000;

/// Turns of all loops within some steps, which take no time; `None` if they do.
fn timeless(steps: &[Step]) -> Option<u64> {
    steps.iter().try_fold(0_u64, |sum, step| match step {
        Step::Loop(0, _) | Step::Until(_) | Step::Period(0) => Some(sum),
        Step::Run(us) if *us * 1e3 < 0.5 => Some(sum),
        Step::Loop(turns, body) => Some(sum.saturating_add(all_turns(*turns, timeless(body)?))),
        _ => None,
    })
}

/// Turns of a loop and of those within it, [`FOREVER`] if they do not end.
fn all_turns(turns: i64, within: u64) -> u64 {
    let turns = u64::try_from(turns).unwrap_or(FOREVER);
    turns.saturating_mul(within.saturating_add(1))
}

/// Turns after the first one of a loop in which the recorder spins; `None` if that is no such loop.
pub(super) fn spins(turns: i64, body: &[Step]) -> Option<u64> {
    let within = timeless(body)?;
    let all = all_turns(turns, within);
    let first = within.saturating_add(1);
    (all > FEW).then(|| match all {
        FOREVER => FOREVER,
        all => all - first,
    })
}

impl Builder<'_> {
    /// `spins` turns of a loop, each of [`turn_ns`].
    pub(super) fn spin(&self, spins: u64, ops: &mut Vec<Op>, turns: Turns) {
        let (pieces, rest) = match spins {
            FOREVER => (FOREVER, 0),
            spins => (spins / AT_ONCE, spins % AT_ONCE),
        };
        for (count, turns_each, mark) in [(pieces, AT_ONCE, turns.of_pieces), (rest, 1, turns.one)]
        {
            if count > 0 {
                let start = ops.len() as u32;
                ops.push(Op::LoopStart { count });
                let ns = (turns_each as f64 * self.turn_ns).round() as Ns;
                ops.push(Op::Run(Dur::Const(ns)));
                ops.push(Op::Mark(mark));
                ops.push(Op::LoopEnd { start });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_within_turns_are_counted() {
        let inner = || Step::Loop(9, vec![Step::Run(0.0)]);
        assert_eq!(spins(-1, &[]), Some(FOREVER));
        assert_eq!(spins(2000, &[Step::Until(5), Step::Period(0)]), Some(1999));
        assert_eq!(spins(500, &[inner()]), Some(499 * 10));
        assert_eq!(spins(2, &[Step::Loop(-1, Vec::new())]), Some(FOREVER));
        assert_eq!(spins(100, &[inner()]), None, "few");
        assert_eq!(spins(-1, &[Step::Loop(3, vec![Step::Yield])]), None);
        assert_eq!(spins(-1, &[Step::Run(0.001)]), None, "1 ns is some time");
    }
}
