//! A hash of text, the same on every platform: 64-bit FNV-1a (Fowler, Noll, Vo).

use std::fmt;

use fairground_sim::machine_file::{FNV_START, fnv1a};

/// A hash that is written to.
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(FNV_START)
    }
}

impl fmt::Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = fnv1a(self.0, text.as_bytes());
        Ok(())
    }
}

impl Hash {
    /// As 16 digits.
    pub fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// The hash of a text.
pub fn of(text: &str) -> String {
    Hash(fnv1a(FNV_START, text.as_bytes())).hex()
}
