//! The levels of cache of a machine file.

use super::error::Text;
use super::figures::Figures;
use super::raw::RawFile;
use super::{CacheLevel, MachineError};

/// What shares a cache.
const SHARED_BY: [&str; 4] = ["core", "cluster", "die", "socket"];

/// Levels 1 to 3, in order; what they cost goes to `figures`.
///
/// # Errors
/// A level that is missing, or a figure that makes no sense.
pub(super) fn caches(
    t: &Text,
    raw: &RawFile,
    figures: &mut Figures,
) -> Result<Vec<CacheLevel>, MachineError> {
    let mut levels = Vec::new();
    for cache in raw.cache.get_ref() {
        let c = cache.get_ref();
        if c.level == 0 || c.level > 3 || levels.iter().any(|l: &CacheLevel| l.level == c.level) {
            return Err(t.bad(
                cache.span(),
                format!("cache level {}", c.level),
                "1, 2, 3, once each",
            ));
        }
        for (key, n) in [("size_kib", &c.size_kib), ("ways", &c.ways)] {
            if *n.get_ref() == 0 {
                return Err(t.bad(n.span(), format!("{key} is 0"), "at least 1"));
            }
        }
        let line_bytes = *c.line.get_ref();
        if !line_bytes.is_power_of_two() || !(16..=1024).contains(&line_bytes) {
            return Err(t.bad(
                c.line.span(),
                "odd line size",
                "a power of two from 16 to 1024",
            ));
        }
        if !SHARED_BY.contains(&c.shared_by.get_ref().as_str()) {
            let m = format!("a cache shared by '{}'", c.shared_by.get_ref());
            return Err(t.bad(c.shared_by.span(), m, SHARED_BY.join(", ")));
        }
        figures.add(&format!("cache.l{}.latency", c.level), &c.latency)?;
        levels.push(CacheLevel {
            level: c.level,
            size_bytes: u64::from(*c.size_kib.get_ref()) * 1024,
            ways: *c.ways.get_ref(),
            line_bytes,
            shared_by: c.shared_by.get_ref().clone(),
        });
    }
    levels.sort_by_key(|l| l.level);
    if !levels.iter().map(|l| l.level).eq(1..=3) {
        return Err(t.bad(
            raw.cache.span(),
            "a cache level is missing",
            "levels 1, 2 and 3",
        ));
    }
    Ok(levels)
}
