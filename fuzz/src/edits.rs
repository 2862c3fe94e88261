//! Changes of good files: what a fuzzer draws, and the lines in which its finds are kept.

/// What is done to a seed: which change, where, and with what.
type Edit = (u8, u32, u32);

/// Bytes of an [`Edit`], and of the number of a seed before them.
const EDIT: usize = 9;
const SEED: usize = 2;
/// Longest list: more leave little of a good file.
const EDITS_MAX: usize = 16;

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

/// Kinds of changes.
const KINDS: u8 = 14;

/// Longest input after the changes.
const LONGEST: usize = 1 << 20;

/// A seed and what is done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edits {
    seed: usize,
    edits: Vec<Edit>,
}

impl Edits {
    /// Longest input of [`Edits::of_bytes`].
    pub const BYTES_MAX: usize = SEED + EDITS_MAX * EDIT;

    /// From a fuzzer's bytes: which of so many seeds, and changes; what is left over is left out.
    pub fn of_bytes(bytes: &[u8], seeds: usize) -> Self {
        let (head, rest) = bytes.split_at(SEED.min(bytes.len()));
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b));
        let edits = rest.chunks_exact(EDIT).take(EDITS_MAX);
        Self {
            seed: number(head) as usize % seeds.max(1),
            edits: edits
                .map(|e| (e[0] % KINDS, number(&e[1..5]), number(&e[5..9])))
                .collect(),
        }
    }

    /// As a line of `edits.txt`: the name of the seed, then each change, apart by tabs.
    pub fn line(&self, seeds: &[(String, Vec<u8>)]) -> String {
        let mut line = seeds[self.seed].0.clone();
        for (what, at, with) in &self.edits {
            line += &format!("\t{what} {at} {with}");
        }
        line
    }

    /// From such a line; `None` if there is no such seed (any more), or it is no such line.
    pub fn of_line(line: &str, seeds: &[(String, Vec<u8>)]) -> Option<Self> {
        let mut parts = line.split('\t');
        let name = parts.next()?;
        let seed = seeds.iter().position(|(seed, _)| seed == name)?;
        let edit = |part: &str| {
            let mut words = part.split(' ');
            let (what, at) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some((what, at, words.next()?.parse().ok()?))
        };
        let edits: Option<Vec<Edit>> = parts.map(edit).collect();
        Some(Self {
            seed,
            edits: edits?,
        })
    }

    /// The input.
    pub fn apply(&self, seeds: &[(String, Vec<u8>)]) -> Vec<u8> {
        edited(&seeds[self.seed].1, &self.edits)
    }
}

/// `seed` with `edits` made to it.
fn edited(seed: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut data = seed.to_vec();
    for &(what, at, with) in edits {
        if data.is_empty() {
            break;
        }
        let at = at as usize % data.len();
        let length = 1 + with as usize % 64;
        let end = (at + length).min(data.len());
        match what % KINDS {
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
            10 => put(&mut data, at, u64::from(with), 4),
            11 => {
                data.splice(at..at, with.to_string().bytes());
            }
            12 => replace_number(&mut data, at, WORDS[with as usize % WORDS.len()]),
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
        assert_eq!(text(&[(12, 0, 0)]), "a = -1, b");
        assert_eq!(text(&[(13, 3, 4)]), "a = 256, b");
        assert_eq!(edited(b"", &[(0, 1, 2)]), b"");
        assert_eq!(edited(b"ab", &[(2, 1, 7)]), [b'a', 0xff]);
    }

    #[test]
    fn bytes_and_lines_say_the_same() {
        let seeds = vec![
            ("a".into(), b"x = 1".to_vec()),
            ("b c".into(), b"y".to_vec()),
        ];
        let mut bytes = vec![3, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0];
        let edits = Edits::of_bytes(&bytes, seeds.len());
        assert_eq!(edits.line(&seeds), "b c\t12 0 0");
        bytes[0] = 0;
        bytes.extend([5, 4, 0]);
        let edits = Edits::of_bytes(&bytes, seeds.len());
        assert_eq!(edits.apply(&seeds), b"x = -1");
        assert_eq!(Edits::of_line(&edits.line(&seeds), &seeds), Some(edits));
        assert_eq!(Edits::of_line("b", &seeds), None);
        assert_eq!(Edits::of_line("a\t1 2", &seeds), None);
        assert_eq!(Edits::of_bytes(&[], 0).edits, []);
    }
}
