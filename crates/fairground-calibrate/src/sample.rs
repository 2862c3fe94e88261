//! Arithmetic on measured times. Nothing here measures: tests hand the times in.

/// A value with its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The value to use.
    pub v: f64,
    /// The smallest.
    pub lo: f64,
    /// The largest.
    pub hi: f64,
}

/// The value of an operation from the times of many short batches: their lower quartile. What
/// disturbs a batch (an interrupt, another program, the host) makes it longer, never shorter,
/// so the middle is too high on a busy machine; the minimum is too low where the clock boosts.
pub fn quiet(batches: &[f64]) -> Option<f64> {
    let sorted = sorted(batches)?;
    Some(sorted[(sorted.len() - 1) / 4])
}

/// The middle value of several, with the smallest and the largest.
pub fn spread(values: &[f64]) -> Option<Spread> {
    let sorted = sorted(values)?;
    let n = sorted.len();
    Some(Spread {
        v: (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
        lo: sorted[0],
        hi: sorted[n - 1],
    })
}

/// What an update of a line costs beyond its time alone while another CPU updates it as often:
/// the middle of the batches in which the other really did. A batch is its time an operation and
/// how many operations the other CPU made for each of ours; outside 0.5 to 2 one of the two was
/// off its CPU. `None` if that leaves fewer than three.
pub fn contended_extra(alone: f64, batches: &[(f64, f64)]) -> Option<Spread> {
    let met: Vec<f64> = batches
        .iter()
        .filter(|(_, others)| (0.5..=2.0).contains(others))
        .map(|(ns, _)| (ns - alone).max(0.0))
        .collect();
    spread(&met).filter(|_| met.len() >= 3)
}

/// The cost of one level of groups, from the same operation at depth 0 and at `depth`, measured
/// in turns: the middle difference of neighbours, so that a slow drift falls out. May be
/// negative, where noise is larger than the level.
pub fn per_level(turns: &[(f64, f64)], depth: u32) -> Option<Spread> {
    let differences: Vec<f64> = turns
        .iter()
        .map(|(top, deep)| (deep - top) / f64::from(depth.max(1)))
        .collect();
    spread(&differences)
}

/// The value below which a share `p` of the others lie; 0 of none.
pub(crate) fn percentile(values: &[f64], p: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((last * p) as usize).copied().unwrap_or(0.0)
}

fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then_some(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_batches_do_not_move_the_value() {
        let mut batches = vec![100.0; 12];
        batches.extend([4000.0, 4_000_000.0, 250.0]);
        batches.push(99.0);
        assert_eq!(quiet(&batches), Some(100.0));
        assert_eq!(quiet(&[]), None);
        assert_eq!(quiet(&[f64::NAN, 5.0]), Some(5.0));
    }

    #[test]
    fn the_range_of_a_class_is_that_of_its_pairs() {
        let s = spread(&[55.0, 36.0, 72.0, 57.0]).unwrap();
        assert_eq!((s.v, s.lo, s.hi), (56.0, 36.0, 72.0));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn contention_counts_only_while_both_run() {
        // The second and the last batch ran while the other CPU did something else.
        let batches = [
            (96.0, 1.0),
            (31.0, 0.01),
            (94.0, 0.9),
            (98.0, 1.1),
            (31.0, 7.0),
        ];
        let extra = contended_extra(31.0, &batches).unwrap();
        assert_eq!((extra.v, extra.lo, extra.hi), (65.0, 63.0, 67.0));
        assert_eq!(contended_extra(31.0, &batches[..2]), None);
        // Never less than nothing.
        let slower_alone = [(20.0, 1.0), (20.0, 1.0), (20.0, 1.0)];
        assert_eq!(contended_extra(31.0, &slower_alone).unwrap().v, 0.0);
    }

    #[test]
    fn a_level_is_the_difference_of_neighbours() {
        // The clock slows down by half from turn to turn; the difference does not.
        let turns = [(2000.0, 2060.0), (3000.0, 3060.0), (4000.0, 4066.0)];
        let level = per_level(&turns, 6).unwrap();
        assert_eq!((level.v, level.lo, level.hi), (10.0, 10.0, 11.0));
        assert!(per_level(&[(100.0, 94.0)], 6).unwrap().v < 0.0);
    }
}
