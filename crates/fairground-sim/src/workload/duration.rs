//! Durations as people write them: "20us", "1.5ms", "exp 1ms", "uniform 1ms 3ms",
//! "normal 1ms 200us" (mean, standard deviation), "lognormal 1ms 0.5" (median, sigma); and drawing
//! from them. Inverse transform and Box-Muller with a portable libm, so that every platform draws
//! the same.
use super::time::Ns;

/// A length of time: a constant or a seeded distribution, drawn again at each use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dur {
    /// Always this.
    Const(Ns),
    /// Every value from `lo` to `hi` equally likely.
    Uniform {
        /// Smallest.
        lo: Ns,
        /// Largest.
        hi: Ns,
    },
    /// Exponential.
    Exp {
        /// Mean.
        mean: Ns,
    },
    /// Normal; negative draws count as 0.
    Normal {
        /// Mean.
        mean: Ns,
        /// Standard deviation.
        sd: Ns,
    },
    /// Log-normal, told by its median and the standard deviation of the logarithm in 1/1000.
    LogNormal {
        /// Median.
        median: Ns,
        /// Sigma times 1000: 1000 puts the 84th percentile at e times the median.
        sigma_milli: u32,
    },
}

/// Longest duration that is taken, and that is drawn: about 11.5 days. The machine counts
/// picoseconds, and has numbers for 213 days: sums of a few stay far from overflow.
pub const DURATION_NS_MAX: Ns = 1_000_000_000_000_000;

const EXPECTED: &str = "expected a number with a unit (ns, us, ms, s), like \"20us\" or \"1.5ms\"";

/// How many ns a unit of time has.
#[must_use]
pub fn unit_ns(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1.0),
        "us" | "µs" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        _ => None,
    }
}

/// Reads a constant as command lines have it: also in minutes, hours and days.
///
/// # Errors
/// As [`parse_ns`].
pub fn parse_length_ns(text: &str) -> Result<Ns, String> {
    let long = [('m', 60.0), ('h', 3600.0), ('d', 86_400.0)];
    let number = long.iter().find_map(|(unit, seconds)| {
        let number: f64 = text.trim().strip_suffix(*unit)?.trim_end().parse().ok()?;
        Some(number * seconds).filter(|s| s.is_finite())
    });
    match number {
        Some(s) => parse_ns(&format!("{s}s")),
        None => parse_ns(text),
    }
}

/// Reads a constant.
///
/// # Errors
/// A sentence that says what is wrong and what was expected.
pub fn parse_ns(text: &str) -> Result<Ns, String> {
    let text = text.trim();
    let unit_at = text
        .find(|c: char| c.is_ascii_alphabetic() || c == 'µ')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number = number.trim();
    if let Some(word) = ["nan", "inf", "infinity", "-inf"]
        .iter()
        .find(|w| text == **w)
    {
        return Err(format!("'{word}' is not a finite duration; {EXPECTED}"));
    }
    if number.starts_with('-') {
        return Err(format!("'{text}' is negative; {EXPECTED}"));
    }
    let scale = match (unit, unit_ns(unit)) {
        (_, Some(ns)) => ns,
        ("", None) if number == "0" => 1.0,
        ("", None) => return Err(format!("'{text}' has no unit; {EXPECTED}")),
        (_, None) => return Err(format!("'{text}' is no duration; {EXPECTED}")),
    };
    let value: f64 = number
        .parse()
        .map_err(|_| format!("'{text}' is no duration; {EXPECTED}"))?;
    let ns = (value * scale).round();
    if !ns.is_finite() || ns > DURATION_NS_MAX as f64 {
        return Err(format!(
            "'{text}' is too long; the most is {}s",
            DURATION_NS_MAX / 1_000_000_000
        ));
    }
    Ok(ns as Ns)
}

/// Reads a constant or a distribution.
///
/// # Errors
/// As [`parse_ns`].
pub fn parse_dur(text: &str) -> Result<Dur, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match *words.as_slice() {
        ["exp", mean] => Ok(Dur::Exp {
            mean: parse_ns(mean)?,
        }),
        ["uniform", lo, hi] => {
            let (lo, hi) = (parse_ns(lo)?, parse_ns(hi)?);
            if lo > hi {
                return Err(format!("'{text}': the lower end is above the upper end"));
            }
            Ok(Dur::Uniform { lo, hi })
        }
        ["normal", mean, sd] => Ok(Dur::Normal {
            mean: parse_ns(mean)?,
            sd: parse_ns(sd)?,
        }),
        ["lognormal", median, sigma] => {
            let bad = || format!("'{sigma}' is no sigma; expected a number from 0 to 10");
            let value: f64 = sigma.parse().map_err(|_| bad())?;
            if !(0.0..=10.0).contains(&value) {
                return Err(bad());
            }
            let sigma_milli = (value * 1000.0).round() as u32;
            Ok(Dur::LogNormal {
                median: parse_ns(median)?,
                sigma_milli,
            })
        }
        ["nan" | "inf" | "infinity"] => parse_ns(text).map(Dur::Const),
        [first, ..] if first.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            let known = ["exp", "uniform", "normal", "lognormal"];
            let hint = super::nearest::nearest(first, known)
                .filter(|k| *k != first)
                .map(|k| format!("did you mean '{k}'? "))
                .unwrap_or_default();
            Err(format!(
                "'{text}' is no duration; {hint}expected \"20us\", \"exp MEAN\", \
                 \"uniform LO HI\", \
                 \"normal MEAN SD\" or \"lognormal MEDIAN SIGMA\""
            ))
        }
        _ => parse_ns(text).map(Dur::Const),
    }
}

impl Dur {
    /// Whether every draw is 0.
    pub fn is_zero(self) -> bool {
        match self {
            Self::Const(ns) | Self::Exp { mean: ns } | Self::LogNormal { median: ns, .. } => {
                ns == 0
            }
            Self::Uniform { hi, .. } => hi == 0,
            Self::Normal { mean, sd } => mean == 0 && sd == 0,
        }
    }

    /// No draw is longer.
    pub fn longest(self) -> Ns {
        match self {
            Self::Const(ns) | Self::Uniform { hi: ns, .. } => ns,
            Self::Exp { .. } | Self::Normal { .. } | Self::LogNormal { .. } => DURATION_NS_MAX,
        }
    }

    /// Draws a value; `bits` gives uniformly distributed words from the task's own generator.
    /// A constant takes none. Uses a portable libm, so every platform draws the same.
    pub fn draw(self, mut bits: impl FnMut() -> u64) -> Ns {
        // 53 bits, never 0: the logarithm below must be finite.
        let mut unit = || ((bits() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64);
        match self {
            Self::Const(ns) => ns,
            Self::Uniform { lo, hi } => {
                let span = hi.saturating_sub(lo).saturating_add(1);
                // Multiply and shift: unbiased to within span / 2^64.
                lo + ((u128::from(bits()) * u128::from(span)) >> 64) as u64
            }
            Self::Exp { mean } => to_ns(-libm::log(unit()) * mean as f64),
            Self::Normal { mean, sd } => {
                let (a, b) = (unit(), unit());
                to_ns(mean as f64 + sd as f64 * standard_normal(a, b))
            }
            Self::LogNormal {
                median,
                sigma_milli,
            } => {
                let (a, b) = (unit(), unit());
                let exponent = f64::from(sigma_milli) / 1000.0 * standard_normal(a, b);
                to_ns(median as f64 * libm::exp(exponent))
            }
        }
    }
}

/// Box-Muller: two uniform numbers in (0, 1] make one standard normal.
fn standard_normal(a: f64, b: f64) -> f64 {
    libm::sqrt(-2.0 * libm::log(a)) * libm::cos(2.0 * core::f64::consts::PI * b)
}

/// Rounds; draws below 0 are 0 (the cast saturates), those above the longest duration are that.
fn to_ns(x: f64) -> Ns {
    (libm::round(x) as Ns).min(DURATION_NS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{SPLITMIX64_STEP, mix};

    #[test]
    fn constants() {
        for (text, ns) in [
            ("20us", 20_000),
            ("1.5ms", 1_500_000),
            ("2 s", 2_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_ns(text), Ok(ns), "{text}");
        }
        for text in [
            "-1ms", "nan", "inf", "1e400s", "5", "5 min", "", "ms", "1..2ms", "1e9s",
        ] {
            assert!(parse_ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn distributions() {
        assert_eq!(parse_dur("exp 1ms"), Ok(Dur::Exp { mean: 1_000_000 }));
        let uniform = Dur::Uniform {
            lo: 1_000_000,
            hi: 3_000_000,
        };
        assert_eq!(parse_dur("uniform 1ms 3ms"), Ok(uniform));
        assert!(parse_dur("uniform 3ms 1ms").is_err());
        assert!(parse_dur("lognormal 1ms nan").is_err());
        assert!(
            parse_dur("unifrm 1ms 3ms")
                .unwrap_err()
                .contains("did you mean 'uniform'")
        );
    }

    /// splitmix64.
    fn bits(mut state: u64) -> impl FnMut() -> u64 {
        move || {
            state = state.wrapping_add(SPLITMIX64_STEP);
            mix(state)
        }
    }

    #[test]
    fn draws_have_their_mean() {
        let ms = 1_000_000.0;
        for (text, mean) in [
            ("2ms", 2.0),
            ("exp 2ms", 2.0),
            ("uniform 1ms 3ms", 2.0),
            ("normal 2ms 100us", 2.0),
            ("lognormal 2ms 0.5", 2.0 * 1.133_148),
        ] {
            let (dur, mut bits) = (parse_dur(text).unwrap(), bits(7));
            let n = 20_000;
            let sum: f64 = (0..n).map(|_| dur.draw(&mut bits) as f64).sum();
            let found = sum / f64::from(n) / ms;
            // Four standard errors of the widest of them, the exponential.
            assert!(
                (found - mean).abs() < 4.0 * 2.0 / f64::from(n).sqrt(),
                "{text}: {found}"
            );
        }
    }

    #[test]
    fn draws_stay_in_range() {
        let mut bits = bits(1);
        let (narrow, wide) = (
            Dur::Uniform { lo: 5, hi: 7 },
            Dur::Normal { mean: 0, sd: 1000 },
        );
        let mut seen = [false; 8];
        for _ in 0..1000 {
            seen[narrow.draw(&mut bits) as usize] = true;
            assert!(wide.draw(&mut bits) < 10_000);
        }
        assert_eq!(seen, [false, false, false, false, false, true, true, true]);
        assert_eq!(Dur::Exp { mean: 0 }.draw(|| 0), 0);
        let long = Dur::Exp {
            mean: DURATION_NS_MAX,
        };
        assert_eq!(long.draw(|| 0), DURATION_NS_MAX, "the smallest number");
    }

    #[test]
    fn no_draw_is_longer_than_what_can_be_written() {
        for text in ["exp 500000s", "normal 500000s 500000s", "lognormal 1s 10"] {
            let (dur, mut bits) = (parse_dur(text).unwrap(), bits(3));
            let longest = (0..1000).map(|_| dur.draw(&mut bits)).max();
            assert_eq!(longest, Some(DURATION_NS_MAX), "{text}");
        }
    }
}
