//! Sizes of memory as people type them.

/// Bytes: a number with K, M, G or T (powers of 1024), with or without a B or iB.
///
/// # Errors
/// What was expected.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let expected =
        || format!("'{text}' is no size; expected a number with K, M, G or T, like 256KiB");
    let lower = text.trim().to_ascii_lowercase();
    let unit = lower.strip_suffix('b').unwrap_or(&lower);
    let unit = match unit.strip_suffix('i') {
        Some(power) if unit.len() < lower.len() && power.ends_with(['k', 'm', 'g', 't']) => power,
        _ => unit,
    };
    let (number, shift) = match unit.char_indices().last() {
        Some((at, 'k')) => (&unit[..at], 10),
        Some((at, 'm')) => (&unit[..at], 20),
        Some((at, 'g')) => (&unit[..at], 30),
        Some((at, 't')) => (&unit[..at], 40),
        _ => (unit, 0),
    };
    let value: u64 = number.trim().parse().map_err(|_| expected())?;
    match value.checked_mul(1 << shift) {
        Some(bytes) if bytes > 0 && bytes <= 1 << 50 => Ok(bytes),
        _ => Err(format!("{text}: expected 1 byte to 1024T")),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, bytes) in [
            ("1", 1),
            ("7B", 7),
            ("1k", 1024),
            ("2 KB", 2048),
            ("256KiB", 256 << 10),
            ("3m", 3 << 20),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "KiB", "1i", "1ib", "-1", "1.5M", "0", "2000T", "k1"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
