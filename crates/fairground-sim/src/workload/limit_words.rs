//! `cpu.max` and `cpu.max.burst` in words: as the kernel's files hold them, and with units. Read so
//! from the command line, from scenarios and from attributes of recordings.

use super::cpu_counts::{limit_hint, quota_hint};
use super::duration::parse_ns;
use super::program::Ns;
use super::validate::{PERIOD_EXPECTED, PERIOD_NS_MAX, QUOTA_EXPECTED, QUOTA_NS_MIN};

/// Thirteen days: what is more is a mistake, and the sums of a group would not hold it.
const QUOTA_NS_MAX: Ns = 1 << 50;

/// Why words are no `cpu.max`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was expected.
    pub expected: String,
    /// How what may have been meant is written, if the words are a number of CPUs (`500m`).
    pub hint: Option<String>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.hint.as_ref().unwrap_or(&self.expected))
    }
}

/// Reads `cpu.max`: quota (`None`: max) and period (`None`: it stays) of `QUOTA PERIOD` or
/// `QUOTA/PERIOD`, in microseconds or with units; `max`.
///
/// # Errors
/// [`Refused`].
pub fn cpu_max(text: &str) -> Result<(Option<Ns>, Option<Ns>), Refused> {
    const EXPECTED: &str =
        "expected QUOTA PERIOD in microseconds, QUOTA/PERIOD with units like 20ms/100ms, or max";
    let refused = |expected: &str, hint: Option<String>| Refused {
        expected: expected.into(),
        hint,
    };
    let words: Vec<&str> = match text.contains('/') {
        true => text.split('/').map(str::trim).collect(),
        false => text.split_whitespace().collect(),
    };
    let (quota, period) = match *words.as_slice() {
        _ if words.contains(&"") => return Err(refused(EXPECTED, None)),
        [quota] => (quota, None),
        [quota, period] => (quota, Some(period)),
        _ => return Err(refused(EXPECTED, None)),
    };
    let of = |word: &str| match parse_ns(word).is_err() && word.parse::<u64>().is_err() {
        true => Err(refused(EXPECTED, limit_hint(word))),
        false => time(word).map_err(|expected| refused(&expected, None)),
    };
    let quota_ns = if quota == "max" {
        None
    } else {
        Some(of(quota)?)
    };
    let period_ns = period.map(of).transpose()?;
    if quota_ns.is_some_and(|ns| ns < QUOTA_NS_MIN) {
        let hint = quota_hint(quota, period.is_some());
        return Err(refused(QUOTA_EXPECTED, hint));
    }
    if quota_ns.is_some_and(|ns| ns > QUOTA_NS_MAX) {
        let machine = format!("{quota} is more than any machine has; `max` is no limit");
        return Err(refused(&machine, None));
    }
    if period_ns.is_some_and(|ns| !(QUOTA_NS_MIN..=PERIOD_NS_MAX).contains(&ns)) {
        return Err(refused(PERIOD_EXPECTED, None));
    }
    Ok((quota_ns, period_ns))
}

/// Reads microseconds, or a time with a unit; whole microseconds, as the files have them.
///
/// # Errors
/// What was expected.
pub fn time(text: &str) -> Result<Ns, String> {
    let ns = match text.parse::<u64>() {
        Ok(us) if us <= 1 << 40 => us * 1000,
        Ok(us) => return Err(format!("{us} us is too long")),
        Err(_) => parse_ns(text)?,
    };
    if ns % 1000 == 0 {
        Ok(ns)
    } else {
        Err("expected whole microseconds".into())
    }
}
