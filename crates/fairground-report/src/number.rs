//! A number that may be missing, and how numbers are written: in tables, in notes, on pages.

/// A number, or `None` (`null` in JSON) where there is none that is finite.
pub type Number = Option<f64>;

/// Four significant digits, `k`, `M`, `G` from 100 000 on; `-` where there is no number.
pub fn number(value: Option<f64>) -> String {
    let Some(value) = value.filter(|v| v.is_finite()) else {
        return "-".into();
    };
    let size = value.abs();
    let (scaled, suffix) = match size {
        s if s >= 1e14 => return format!("{value:.3e}"),
        s if s >= 1e11 => (value / 1e9, "G"),
        s if s >= 1e8 => (value / 1e6, "M"),
        s if s >= 1e5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let decimals = match scaled.abs() {
        0.0 => return "0".into(), // not -0
        s if s < 1e-3 => return format!("{value:.3e}"),
        s if s < 0.01 => 6,
        s if s < 0.1 => 5,
        s if s < 1.0 => 4,
        s if s < 10.0 => 3,
        s if s < 100.0 => 2,
        s if s < 1000.0 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$}{suffix}")
}

/// A mean of counts: whole where [`number`] would add decimals.
pub fn count(value: f64) -> String {
    if value < 1e5 {
        format!("{value:.0}")
    } else {
        number(Some(value))
    }
}

/// A mean of few: with a decimal where it is no whole number.
pub(crate) fn few(mean: f64) -> String {
    if mean < 1e4 && mean.fract() != 0.0 {
        format!("{mean:.1}")
    } else {
        count(mean)
    }
}

/// A change in percent with its sign; `-` where there is none.
pub fn change(pct: Option<f64>) -> String {
    match pct.filter(|v| v.is_finite()) {
        Some(pct) => bare_change(pct) + "%",
        None => "-".into(),
    }
}

/// A change in percent with its sign, without the unit.
pub fn bare_change(pct: f64) -> String {
    match pct.abs() {
        size if size >= 1e5 => format!("{pct:+.1e}"),
        size if size >= 1000.0 => format!("{pct:+.0}"),
        size if size >= 100.0 => format!("{pct:+.1}"),
        // No "-0.00".
        size if size < 0.005 => "+0.00".into(),
        _ => format!("{pct:+.2}"),
    }
}

/// An interval in percent. An end that is shown as 0 keeps its sign if the other end is not: it
/// decides whether the interval has 0 in it.
pub fn interval(ends: [Option<f64>; 2]) -> Option<String> {
    let (lo, hi) = ends[0].zip(ends[1])?;
    let end = |pct: f64, other: f64| match pct < 0.0 && pct.abs() < 0.005 {
        true if other.abs() >= 0.005 => "-0.00".into(),
        _ => bare_change(pct),
    };
    Some(format!("[{}, {}]", end(lo, hi), end(hi, lo)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_shows_on_which_side_of_zero_its_ends_are() {
        let shown = |lo, hi| interval([Some(lo), Some(hi)]).unwrap();
        assert_eq!(shown(-0.004, 0.03), "[-0.00, +0.03]");
        assert_eq!(shown(0.004, 0.03), "[+0.00, +0.03]");
        assert_eq!(shown(-0.03, -0.004), "[-0.03, -0.00]");
        assert_eq!(shown(-0.001, 0.001), "[+0.00, +0.00]");
        assert_eq!(shown(-5.0, 12.5), "[-5.00, +12.50]");
        assert_eq!(interval([None, Some(1.0)]), None);
    }

    #[test]
    fn numbers_keep_four_digits() {
        let cases = [
            (0.0, "0"),
            (0.00001234, "1.234e-5"),
            (0.001_234_4, "0.001234"),
            (0.012_344, "0.01234"),
            (0.1234, "0.1234"),
            (1.2345, "1.234"),
            (99.994, "99.99"),
            (123.44, "123.4"),
            (99_999.0, "99999"),
            (123_456.0, "123.5k"),
            (12_345_678.0, "12346k"),
            (-2.5e9, "-2500M"),
            (3e15, "3.000e15"),
        ];
        for (value, text) in cases {
            assert_eq!(number(Some(value)), text);
        }
        assert_eq!(number(None), "-");
        assert_eq!(number(Some(f64::NAN)), "-");
        assert_eq!(number(Some(-0.0)), "0");
    }

    #[test]
    fn changes_have_a_sign() {
        assert_eq!(change(Some(-12.345)), "-12.35%");
        assert_eq!(change(Some(-0.001)), "+0.00%");
        assert_eq!(change(Some(-123.46)), "-123.5%");
        assert_eq!(change(Some(123_456.0)), "+1.2e5%");
        assert_eq!(change(None), "-");
    }
}
