//! Hostile input for every reader: an answer, never a panic, and in good time.
//!
//! A target is a [`Reader`] and seeds, which are the good files of this repository. The fuzzer
//! draws bytes: a seed and a list of changes ([`Edits::of_bytes`]), which are applied to it. So a
//! random input is nearly a good file, and gets past the first check of its reader. Inputs that
//! once were findings lie in `corpus/READER/` as they are; what a fuzzer kept because it reached
//! something new lies there as `edits.txt`, one input a line.
#![forbid(unsafe_code)]

mod edits;
mod readers;
mod seeds;

pub use edits::Edits;
pub use readers::{READERS, Reader};
pub use seeds::{plain, seeds};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_has_seeds_that_it_accepts() {
        for reader in READERS {
            let seeds = seeds(reader.name);
            assert!(!seeds.is_empty(), "{}", reader.name);
            for (name, seed) in seeds {
                assert!((reader.read)(&seed), "{}: {name}", reader.name);
            }
        }
    }
}
