//! Virtual time, eligibility and placement against exact rationals.

use std::collections::BTreeSet;

use fairground::math::eevdf::{AvgVruntime, entity_eligible, place_lag, rescale};
use fairground::math::weight::{
    LoadWeight, calc_delta, calc_delta_fair, nice_to_weight, scale_load,
};
use proptest::prelude::*;

/// Keys within some seconds of the reference, weights of tasks and groups.
fn entities() -> impl Strategy<Value = Vec<(i64, u64)>> {
    let key = -4_000_000_000i64..4_000_000_000;
    let weight = prop_oneof![
        (-20i8..20).prop_map(|nice| u64::from(nice_to_weight(nice))),
        2u64..=1 << 18,
    ];
    prop::collection::vec((key, weight), 1..40)
}

fn exact_sums(entities: &[(i64, u64)]) -> (i128, i128) {
    entities.iter().fold((0, 0), |(s, w), &(k, wi)| {
        (s + i128::from(k) * i128::from(wi), w + i128::from(wi))
    })
}

fn summed(entities: &[(i64, u64)]) -> AvgVruntime {
    let mut all = AvgVruntime::default();
    for &(key, weight) in entities {
        all.add(key, weight);
    }
    all
}

proptest! {
    #[test]
    fn mean_is_the_floor_of_the_exact_mean(entities in entities(), v0 in any::<u64>()) {
        let (sum, weight) = exact_sums(&entities);
        let all = summed(&entities);
        prop_assert_eq!(i128::from(all.mean_key()), sum.div_euclid(weight));
        let (curr, tree) = entities.split_first().unwrap();
        let v = summed(tree).avg_vruntime(v0, Some(*curr));
        prop_assert_eq!(v, v0.wrapping_add(all.mean_key() as u64));
    }

    #[test]
    fn eligible_is_lag_of_zero_or_more(entities in entities(), v0 in any::<u64>()) {
        let (sum, weight) = exact_sums(&entities);
        let all = summed(&entities);
        let mut eligible = 0;
        for &(key, _) in &entities {
            let exact = sum - i128::from(key) * weight >= 0;
            let vruntime = v0.wrapping_add(key as u64);
            prop_assert_eq!(entity_eligible(&all, v0, vruntime), exact);
            // The rounded mean decides alike, because keys are whole numbers.
            prop_assert_eq!(key <= all.mean_key(), exact);
            eligible += u32::from(exact);
        }
        // Somebody always is: lags sum to zero.
        prop_assert!(eligible > 0);
    }

    #[test]
    fn moving_the_reference_or_leaving_keeps_the_sums(
        entities in entities(), by in -1_000_000_000i64..1_000_000_000
    ) {
        let mut all = summed(&entities);
        all.shift(by);
        let moved: Vec<_> = entities.iter().map(|&(k, w)| (k - by, w)).collect();
        prop_assert_eq!(all, summed(&moved));
        for &(key, weight) in &moved {
            all.remove(key, weight);
        }
        prop_assert_eq!(all, AvgVruntime::default());
    }

    #[test]
    fn placement_keeps_the_lag(
        entities in entities(), weight in 2u64..=1 << 18, vlag in -3_000_000i64..3_000_000
    ) {
        let mut all = summed(&entities);
        let key = all.mean_key() - place_lag(vlag, all.load, weight);
        all.add(key, weight);
        // Three roundings of one ns each: the mean before and after, and the inflated lag.
        let lag = all.mean_key() - key;
        prop_assert!((lag - vlag).abs() <= 3, "{} instead of {}", lag, vlag);
    }

    #[test]
    fn reweighting_keeps_the_service_owed(
        old in 2u64..=1 << 18, new in 2u64..=1 << 18, vlag in -3_000_000i64..3_000_000
    ) {
        let (old, new) = (scale_load(old), scale_load(new));
        let exact = i128::from(vlag) * i128::from(old) / i128::from(new);
        prop_assert_eq!(i128::from(rescale(vlag, old, new)), exact);
    }

    /// The bound of the derivation above `calc_delta`, with the truncation of the inverse.
    #[test]
    fn division_by_a_weight(
        delta in 0u64..1 << 36, weight in 2u64..=1 << 20, load in 2u64..=1 << 20
    ) {
        let got = calc_delta(delta, scale_load(weight), &LoadWeight::new(scale_load(load)));
        let exact = u128::from(delta) * u128::from(weight) / u128::from(load);
        let slack = 2 + ((exact * u128::from(load)) >> 31) + (exact >> 30);
        prop_assert!(u128::from(got) <= exact, "{} > {}", got, exact);
        prop_assert!(u128::from(got) + slack >= exact, "{} << {}", got, exact);
    }
}

/// A deadline just set is one slice of virtual time away: `calc_delta_fair` for tasks (inverse
/// from the table) and group entities (inverse computed), against a recorded 6.18 kernel.
#[test]
fn every_recorded_deadline() {
    let (mut equal, mut moved_since, mut weights) = (0, 0, BTreeSet::new());
    for line in include_str!("data/eevdf/deadlines.csv").lines().skip(1) {
        let columns: Vec<&str> = line.split(',').collect();
        let n: Vec<u64> = columns[2..]
            .iter()
            .map(|column| column.parse().unwrap())
            .collect();
        let [weight, slice, ahead, times] = n[..] else {
            panic!("{line}")
        };
        let load = match columns[1] {
            "task_se" => task_load(weight),
            _ => LoadWeight::new(weight),
        };
        weights.insert(weight);
        if ahead == calc_delta_fair(slice, &load) {
            equal += times;
        } else {
            moved_since += times;
        }
    }
    assert_eq!((equal, moved_since), (5336, 14));
    assert_eq!(weights.len(), 186);
}

fn task_load(weight: u64) -> LoadWeight {
    (-20..20)
        .map(LoadWeight::from_nice)
        .chain([LoadWeight::idle_prio()])
        .find(|load| load.weight == weight)
        .unwrap()
}
