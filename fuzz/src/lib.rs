//! Hostile input for every reader: an answer, never a panic, and in good time.
//!
//! A target is a [`Reader`] and seeds, which are the good files of this repository. The fuzzer
//! draws a seed and a list of [`Edit`]s; [`edited`] applies them. So a random input is nearly a
//! good file, and gets past the first check of its reader. Inputs that once were findings lie in
//! `corpus/READER/` as they are.
#![forbid(unsafe_code)]

mod readers;
mod seeds;

pub use readers::{READERS, Reader};
pub use seeds::{plain, seeds};

/// What is done to a seed: which change, where, and with what.
pub type Edit = (u8, u32, u32);

/// Numbers at which arithmetic ends.
const EDGES: [u64; 12] = [
    0,
    1,
    7,
    0x7f,
    0x100,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Words that text formats know.
const WORDS: [&str; 20] = [
    "-1",
    "0",
    "1e308",
    "1e-308",
    "99999999999999999999",
    "18446744073709551615",
    "nan",
    "inf",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "=",
    ",",
    "\n",
    "\u{0}",
    "\u{fffd}",
    "<",
    "0-511",
];

/// Longest input.
const LONGEST: usize = 1 << 20;

/// `seed` with `edits` made to it.
pub fn edited(seed: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut data = seed.to_vec();
    for &(what, at, with) in edits {
        if data.is_empty() {
            break;
        }
        let at = at as usize % data.len();
        let length = 1 + with as usize % 64;
        let end = (at + length).min(data.len());
        match what % 12 {
            0 => data[at] = with as u8,
            1 => data[at] ^= 1 << (with % 8),
            2 => put(&mut data, at, EDGES[with as usize % EDGES.len()], 4),
            3 => put(&mut data, at, EDGES[with as usize % EDGES.len()], 8),
            4 => put(&mut data, at, u64::from(with), 2),
            5 => data.truncate(at),
            6 => drop(data.drain(at..end)),
            7 => {
                let copy = data[at..end].to_vec();
                data.splice(at..at, copy);
            }
            8 => {
                let from = with as usize % data.len();
                let copy = data[from..(from + length).min(data.len())].to_vec();
                data.splice(at..end, copy);
            }
            9 => {
                let word = WORDS[with as usize % WORDS.len()];
                data.splice(at..at, word.bytes());
            }
            10 => replace_number(&mut data, at, WORDS[with as usize % WORDS.len()]),
            _ => replace_number(
                &mut data,
                at,
                &EDGES[with as usize % EDGES.len()].to_string(),
            ),
        }
    }
    data.truncate(LONGEST);
    data
}

/// Overwrites `bytes` bytes with the low ones of `value`.
fn put(data: &mut [u8], at: usize, value: u64, bytes: usize) {
    for (to, from) in data[at..].iter_mut().zip(&value.to_le_bytes()[..bytes]) {
        *to = *from;
    }
}

/// Replaces the next number in a text.
fn replace_number(data: &mut Vec<u8>, at: usize, word: &str) {
    let Some(start) = data[at..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let start = at + start;
    let rest = data[start..].iter().position(|b| !b.is_ascii_digit());
    let end = rest.map_or(data.len(), |rest| start + rest);
    data.splice(start..end, word.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_do_what_they_say() {
        let text =
            |edits: &[Edit]| String::from_utf8_lossy(&edited(b"a = 12, b", edits)).into_owned();
        assert_eq!(text(&[(0, 0, b'x'.into())]), "x = 12, b");
        assert_eq!(text(&[(5, 4, 0)]), "a = ");
        assert_eq!(text(&[(6, 1, 2)]), "a12, b");
        assert_eq!(text(&[(10, 0, 0)]), "a = -1, b");
        assert_eq!(text(&[(11, 3, 4)]), "a = 256, b");
        assert_eq!(edited(b"", &[(0, 1, 2)]), b"");
        assert_eq!(edited(b"ab", &[(2, 1, 7)]), [b'a', 0xff]);
    }

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
