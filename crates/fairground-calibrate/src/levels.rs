//! Caches and memory from the nearest to the farthest: over how much memory is measured, and
//! whether the figures can be.

use crate::figure::{Conf, Figures};

/// Levels, nearest first.
const LEVELS: [&str; 6] = [
    "cache.l1.latency",
    "cache.l2.latency",
    "cache.l3.latency",
    "memory.local",
    "memory.same_socket_other_die",
    "memory.remote",
];

/// Figures whose ratio is nearer to 1 are the same but for noise: nodes of a guest may be no nodes.
const SAME: f64 = 0.98;

/// Memory is measured over at least this much, KiB.
const LEAST_KIB: u64 = 64 << 10;
/// And over at most this much, whatever there is: to fill it and draw the order of its lines takes
/// some 2 s a GiB. Indices of words have 32 bits, so beyond 16 GiB they would not do.
const MOST_KIB: u64 = 8 << 20;
/// The same for a quick calibration.
const MOST_QUICK_KIB: u64 = 2 << 20;

/// Over how much memory is measured, KiB: four times the last level, so that most loads miss it,
/// but no more than a quarter of what is available.
pub(crate) fn memory_kib(last_kib: u64, available_kib: u64, quick: bool) -> u64 {
    let most = if quick { MOST_QUICK_KIB } else { MOST_KIB };
    let most = most.min(available_kib / 4);
    (4 * last_kib).min(most).max(LEAST_KIB)
}

/// Why loads over `kib` are not of memory alone; `None` if they are as far as can be.
pub(crate) fn not_alone(last_kib: u64, kib: u64) -> Option<String> {
    let share = (100 * last_kib).checked_div(kib).unwrap_or(0).min(100);
    (kib < 4 * last_kib).then(|| {
        format!(
            "not memory alone: {kib} KiB are less than four times the last level of {last_kib} \
             KiB, where up to {share} % of these loads end"
        )
    })
}

/// Memory that this program may still take, KiB; 0 if the system does not say.
pub(crate) fn available_kib() -> u64 {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let limits = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    least_kib(&text("/proc/meminfo"), &limits.map(text))
}

/// Who is in a container sees the memory of the whole system, but the limits of its own group.
fn least_kib(info: &str, limits: &[String]) -> u64 {
    let line = info.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    // `max`, and a file that is not there, are no limit.
    let limits = limits.iter().filter_map(|l| l.trim().parse::<u64>().ok());
    number
        .unwrap_or(0)
        .min(limits.min().unwrap_or(u64::MAX) / 1024)
}

/// Marks measured figures of which a farther level is faster than a nearer one; gives a warning for
/// each such level. Which of the two is wrong cannot be told, so neither counts as measured.
pub(crate) fn doubt_impossible(figures: &mut Figures) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut slowest: Option<(&str, f64)> = None;
    for far in LEVELS {
        let measured = figures.get(far).filter(|f| f.conf != Conf::Estimate);
        let Some(v) = measured.map(|f| f.value.v) else {
            continue;
        };
        match slowest {
            Some((near, least)) if v < SAME * least => {
                let both = format!("{far} = {v:.1} ns is less than {near} = {least:.1} ns");
                for path in [near, far] {
                    figures.doubt(path, &format!("impossible: {both}"));
                }
                warnings.push(format!(
                    "{both}, though it is farther: one of them is wrong, and neither counts as \
                     measured; repeat it on a quiet machine"
                ));
            }
            Some((_, least)) if v <= least => {}
            _ => slowest = Some((far, v)),
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Base;
    use crate::sample::Spread;

    fn figures(list: &[(&str, f64)]) -> Figures {
        let mut figures = Figures::default();
        for (path, v) in list {
            let (v, lo, hi) = (*v, *v, *v);
            figures.measured(path, Spread { v, lo, hi }, "ns", "loads");
        }
        figures
    }

    #[test]
    fn memory_is_measured_over_four_times_the_last_level_where_it_may() {
        let gib = 1 << 20;
        assert_eq!(memory_kib(480 << 10, 24 * gib, true), 4 * (480 << 10));
        assert_eq!(memory_kib(480 << 10, 24 * gib, false), 4 * (480 << 10));
        assert_eq!(memory_kib(480 << 10, 4 * gib, false), gib);
        assert_eq!(memory_kib(1 << 20, 64 * gib, true), 2 * gib);
        assert_eq!(memory_kib(1 << 20, 64 * gib, false), 4 * gib);
        assert_eq!(memory_kib(8 << 10, 64 * gib, false), 64 << 10);
        // Nothing is known of the memory.
        assert_eq!(memory_kib(480 << 10, 0, false), 64 << 10);
        assert_eq!(not_alone(480 << 10, 4 * (480 << 10)), None);
        let why = not_alone(480 << 10, gib).unwrap();
        assert!(why.starts_with("not memory alone: 1048576 KiB"), "{why}");
        assert!(why.contains("491520 KiB, where up to 46 %"), "{why}");
        assert!(not_alone(480 << 10, 64 << 10).unwrap().contains("100 %"));
    }

    #[test]
    fn a_farther_level_that_is_faster_is_not_measured() {
        let mut figures = figures(&[
            ("cache.l1.latency", 1.2),
            ("cache.l2.latency", 3.9),
            ("cache.l3.latency", 66.0),
            ("memory.local", 61.0),
        ]);
        let warnings = doubt_impossible(&mut figures);
        assert_eq!(warnings.len(), 1);
        let both = "memory.local = 61.0 ns is less than cache.l3.latency = 66.0 ns";
        assert!(warnings[0].starts_with(both), "{}", warnings[0]);
        for path in ["memory.local", "cache.l3.latency"] {
            let f = figures.get(path).unwrap();
            assert_eq!(f.conf, Conf::Doubtful);
            assert_eq!(f.note, format!("loads; impossible: {both}"));
        }
        let near = figures.get("cache.l2.latency").unwrap();
        assert_eq!(near.conf, Conf::Measured);
    }

    #[test]
    fn what_is_the_same_or_of_another_machine_is_left() {
        let mut some = figures(&[("cache.l2.latency", 4.0), ("memory.local", 100.0)]);
        let base = Base {
            id: "other".into(),
            figures: [("cache.l3.latency".to_string(), 300.0)].into(),
        };
        some.from_base(&base, &["cache.l3.latency"], "ns", "not described");
        let v = Spread {
            v: 99.0,
            lo: 98.0,
            hi: 101.0,
        };
        some.measured("memory.remote", v, "ns", "loads");
        assert_eq!(doubt_impossible(&mut some), Vec::<String>::new());
        assert_eq!(some.get("memory.remote").unwrap().conf, Conf::Measured);
    }

    #[test]
    fn memory_is_what_the_system_and_the_group_allow() {
        let info = "MemTotal: 9 kB\nMemAvailable:   2048000 kB\n";
        let least = |limits: [&str; 2]| least_kib(info, &limits.map(String::from));
        assert_eq!(least(["max\n", ""]), 2_048_000);
        assert_eq!(least(["", "9223372036854771712\n"]), 2_048_000);
        assert_eq!(least(["1048576\n", ""]), 1024);
        assert_eq!(least_kib("", &[]), 0);
    }
}
