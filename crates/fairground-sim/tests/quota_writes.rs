//! Periods with waiting for quota, whatever is written to `cpu.max` during the run: none is slow
//! that is not counted, by the scheduler or as one that was cut off.

use fairground::policy::{Features, find_profile};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome};
use fairground_sim::spec::Scenario;
use fairground_sim::workload::Env;
use proptest::prelude::*;

/// Three tasks, of which one sleeps now and then, in a group with this limit and these writes (ms).
fn run(limit: &str, writes: &[(u64, String)], profile: &str) -> Outcome {
    let mut text = format!(
        "name = \"t\"\nduration = \"300ms\"\nwarmup = \"50ms\"\n\
         [[cgroup]]\npath = \"/p\"\n\"cpu.max\" = \"{limit}\"\n\
         [[task]]\nname = \"hog\"\ncount = 2\ncgroup = \"/p\"\nsteps = [\"hog\"]\n\
         [[task]]\nname = \"sleeper\"\ncgroup = \"/p\"\nsteps = [{{ loop = \"forever\", \
         steps = [{{ run = \"700us\" }}, {{ sleep = \"200us\" }}] }}]\n"
    );
    for (ms, max) in writes {
        text += &format!("[[event]]\nat = \"{ms}ms\"\ncgroup = \"/p\"\n\"cpu.max\" = \"{max}\"\n");
    }
    let workload = Scenario::parse("t", &text).and_then(|s| s.workload(&Env { cpus: 2 }));
    let machine = Machine::builtin("spr-guest-2cpu").expect("built in");
    let setup = Setup {
        machine: &machine,
        features: Features::of_profile(find_profile(profile).expect("known")),
        workload: &workload.unwrap_or_else(|e| panic!("{e:?}")),
        seed: 1,
        trace: false,
    };
    outcome::run_watched(&setup).unwrap_or_else(|e| panic!("{e}"))
}

/// Slow periods if every stretch that waited is slow, and periods in all.
fn slow_of_all(out: &mut Outcome) -> (u64, u64) {
    let quota = &mut out.watched.as_mut().expect("watched").quota[0];
    quota.limit_ns = Some(0);
    (
        quota.slow(),
        out.groups[0].stat.nr_periods + quota.uncounted,
    )
}

#[test]
fn a_period_that_max_cuts_off_is_counted_on_both_sides() {
    // Written in the middle of a period: the fifth since the end of the warm-up, wherever they end.
    let writes = [(150, "max".to_string())];
    let mut out = run("4ms/20ms", &writes, "linux-6.18");
    let uncounted = out.watched.as_ref().map(|w| w.quota[0].uncounted);
    let (slow, all) = slow_of_all(&mut out);
    assert_eq!(uncounted, Some(1));
    assert_eq!(slow, all, "throttled in all of them");
    assert!((5..=6).contains(&slow), "{slow}");
}

#[test]
fn periods_of_another_length_count_with_those_before() {
    let mut out = run("4ms/20ms", &[(150, "8ms/40ms".into())], "linux-6.18");
    let (slow, all) = slow_of_all(&mut out);
    assert_eq!(slow, all);
    // Five of 20 ms, and five of 40 ms, wherever they end.
    assert!((9..=11).contains(&slow), "{slow}");
}

fn a_limit() -> impl Strategy<Value = String> {
    let period = prop_oneof![Just(5u64), Just(10), Just(20), Just(50), Just(100)];
    let limit = (1u64..12, period);
    prop_oneof![
        1 => Just("max".to_string()),
        3 => limit.prop_map(|(quota, period)| format!("{quota}ms/{period}ms")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn never_more_periods_are_slow_than_there_are(
        limit in a_limit(),
        writes in prop::collection::vec((1u64..340, a_limit()), 1..8),
        old in any::<bool>(),
    ) {
        let profile = if old { "linux-6.12-lts" } else { "linux-6.18" };
        let mut out = run(&limit, &writes, profile);
        if out.groups.iter().all(|g| !g.counted) {
            return Ok(());
        }
        let (slow, all) = slow_of_all(&mut out);
        prop_assert!(slow <= all, "{slow} of {all}");
    }
}
