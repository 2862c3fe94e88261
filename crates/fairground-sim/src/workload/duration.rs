//! Durations as people write them: "20us", "1.5ms", "exp 1ms", "uniform 1ms 3ms",
//! "normal 1ms 200us" (mean, standard deviation), "lognormal 1ms 0.5" (median, sigma).
use super::program::{Dur, Ns};

/// Longest duration that is taken: about 11.5 days. Sums of a few stay far from overflow.
pub const DURATION_NS_MAX: Ns = 1_000_000_000_000_000;

const EXPECTED: &str = "expected a number with a unit (ns, us, ms, s), like \"20us\" or \"1.5ms\"";

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
    let scale = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "" if number == "0" => 1.0,
        "" => return Err(format!("'{text}' has no unit; {EXPECTED}")),
        _ => return Err(format!("'{text}' is no duration; {EXPECTED}")),
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
                "'{text}' is no duration; {hint}expected \"20us\", \"exp MEAN\", \"uniform LO HI\", \
                 \"normal MEAN SD\" or \"lognormal MEDIAN SIGMA\""
            ))
        }
        _ => parse_ns(text).map(Dur::Const),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
