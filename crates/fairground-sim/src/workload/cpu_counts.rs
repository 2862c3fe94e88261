//! Numbers of CPUs as container managers have them (`500m`, `1.3`, `50%`), found where a file of a
//! cgroup is read, which holds a time per period or a weight: how to write what is meant.
//!
//! Sources of the two scales of weights: docs/cpu-limits.md.

use super::duration::parse_ns;

/// Most CPUs that a bare number stands for: a quota of so few microseconds is refused anyway.
const BARE_MAX: u64 = 512;

/// How a limit of so many CPUs is written, if `word` is a number of CPUs: `50ms/100ms` of `500m`.
#[must_use]
pub fn limit_hint(word: &str) -> Option<String> {
    let ms = (cpus(word)? * 1e5).round() / 1e3;
    (ms >= 1.0).then(|| {
        format!("`{word}` is a number of CPUs; a limit is a time per period: {ms}ms/100ms")
    })
}

/// [`limit_hint`] of a quota; beside a period a bare number is one of microseconds.
#[must_use]
pub fn quota_hint(quota: &str, has_period: bool) -> Option<String> {
    let bare = quota.bytes().all(|b| b.is_ascii_digit());
    limit_hint(quota).filter(|_| !(bare && has_period))
}

/// The weights that a request of so many CPUs may have become, if `word` is a number of CPUs and no
/// weight itself.
#[must_use]
pub fn weight_hint(word: &str) -> Option<String> {
    if word.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let [linear, quadratic] = weights(cpus(word)?);
    Some(format!(
        "`{word}` is a number of CPUs; as a request of Kubernetes it became a weight of {linear} \
         (linear) or {quadratic} (quadratic scale): docs/cpu-limits.md says which"
    ))
}

/// CPUs in `500m`, `0.5`, `2`, `50%`, `2cpu`; none in what is a time.
fn cpus(word: &str) -> Option<f64> {
    let word = word.trim();
    let number = |text: &str| text.trim_end().parse::<f64>().ok();
    let named = ["cpus", "cpu", "CPUs", "CPU"];
    let cpus = if let Some(percent) = word.strip_suffix('%') {
        number(percent)? / 100.0
    } else if let Some(cpus) = named.iter().find_map(|unit| word.strip_suffix(unit)) {
        number(cpus)?
    } else if parse_ns(word).is_ok() {
        return None;
    } else if let Some(milli) = word.strip_suffix('m') {
        number(milli)? / 1e3
    } else {
        let bare = word.parse::<u64>().ok();
        number(word).filter(|_| bare.is_none_or(|n| n <= BARE_MAX))?
    };
    (cpus.is_finite() && cpus > 0.0 && cpus <= 1e4).then_some(cpus)
}

/// `cpu.weight` of a request by the linear and by the quadratic scale.
fn weights(cpus: f64) -> [u64; 2] {
    let shares = ((cpus * 1024.0) as u64).clamp(2, 262_144);
    let linear = 1 + (shares - 2) * 9999 / 262_142;
    let log = libm::log2(shares as f64);
    let power = (log * log + 125.0 * log) / 612.0 - 7.0 / 34.0;
    // A whole power of ten must not be rounded up for the last bit of a logarithm.
    let quadratic = libm::ceil(libm::pow(10.0, power) - 1e-9) as u64;
    [linear, quadratic]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_a_period_a_bare_number_is_no_number_of_cpus() {
        assert!(quota_hint("500", false).is_some() && quota_hint("500m", true).is_some());
        assert_eq!(quota_hint("500", true), None);
    }

    #[test]
    fn numbers_of_cpus_are_known_from_times() {
        for (word, limit) in [
            ("500m", "50ms/100ms"),
            ("1250m", "125ms/100ms"),
            ("1.3", "130ms/100ms"),
            (".5", "50ms/100ms"),
            ("2", "200ms/100ms"),
            ("50%", "50ms/100ms"),
            ("2cpu", "200ms/100ms"),
            ("2 CPUs", "200ms/100ms"),
            ("33.3333%", "33.333ms/100ms"),
        ] {
            let hint = limit_hint(word).unwrap_or_default();
            let period = format!("a limit is a time per period: {limit}");
            assert!(hint.ends_with(&period), "{word}: {hint}");
        }
        for word in [
            "20ms", "20000", "max", "", "m", "-1", "-0.5", "0", "nan", "inf", "1e9", "1m",
        ] {
            assert_eq!(limit_hint(word), None, "{word}");
        }
    }

    /// The table of docs/cpu-limits.md.
    #[test]
    fn a_request_becomes_one_of_two_weights() {
        for (request, scales) in [
            ("100m", [4, 17]),
            ("250m", [10, 35]),
            ("500m", [20, 59]),
            ("1.0", [39, 100]),
            ("2cpu", [79, 174]),
            ("4000m", [157, 303]),
            ("8.0", [313, 532]),
        ] {
            assert_eq!(cpus(request).map(weights), Some(scales), "{request}");
            let [linear, quadratic] = scales;
            let part = format!("a weight of {linear} (linear) or {quadratic} (quadratic");
            let hint = weight_hint(request).unwrap_or_default();
            assert!(hint.contains(&part), "{hint}");
        }
        assert_eq!(weight_hint("20000"), None, "a weight that is too large");
        assert_eq!(weight_hint("heavy"), None);
    }
}
