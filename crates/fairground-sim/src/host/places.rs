//! From the engine's names of places to cache lines, by the layout table.

use std::collections::BTreeMap;

use fairground::place::{Fields, Kind, Layout, Lock, Object, field_names, rq, tg};

use crate::cache::{Cache, LineId, LineStats};
use crate::machine_file::Machine;

/// Lines of one structure that a set of fields is on.
#[derive(Clone, Copy, Debug)]
struct Spread {
    fields: Fields,
    kind: Kind,
    /// 0 = this place of the table is free.
    nr: u8,
    /// Offset from the first line, and the 8-byte words of that line that are used.
    lines: [(u8, u8); LINES],
}

/// Most lines of one structure that a set of fields is on.
const LINES: usize = 19;
const NONE: u32 = u32::MAX;
/// Places of the table of sets; a power of two, many more than there are sets in the engine.
const SPREADS: usize = 4096;

/// Where each structure is.
#[derive(Debug)]
pub struct Places {
    layout: &'static Layout,
    line_bytes: u32,
    size: [u32; Kind::ALL.len()],
    nodes: Vec<u32>,
    /// First line by kind, and by `b * stride + a` of the object's ids. The stride is the number
    /// of CPUs for what each CPU has several of, else 0: such an object's second id says nothing.
    first: [Vec<u32>; Kind::ALL.len()],
    stride: [usize; Kind::ALL.len()],
    /// Open addressing; nothing is ever removed.
    spreads: Box<[Spread; SPREADS]>,
    nr_spreads: usize,
    /// First line and object of everything that was made, in order of lines.
    made: Vec<(u32, Object)>,
    /// Node on which objects without a CPU of their own are made.
    pub alloc_node: u32,
}

impl Places {
    /// Nothing is placed yet; structures are made when first touched, those of a CPU on its node.
    pub fn new(machine: &Machine, layout: &'static Layout) -> Self {
        let line_bytes = machine.line_bytes();
        let cpus = machine.topology.nr_cpus();
        let free = Spread {
            fields: Fields(0),
            kind: Kind::Rq,
            nr: 0,
            lines: [(0, 0); LINES],
        };
        let of_cpu = |kind| matches!(kind, Kind::CfsRq | Kind::GroupSe | Kind::Sd);
        Self {
            layout,
            line_bytes,
            size: Kind::ALL.map(|k| layout.lines(k, line_bytes)),
            nodes: machine.topology.cpus.iter().map(|c| c.numa_node).collect(),
            first: Default::default(),
            stride: Kind::ALL.map(|k| if of_cpu(k) { cpus } else { 0 }),
            spreads: Box::new([free; SPREADS]),
            nr_spreads: 0,
            made: Vec::new(),
            alloc_node: 0,
        }
    }

    /// The first line of `object`, and the lines that `fields` are on: offset from the first, and
    /// words used.
    #[inline]
    pub fn lines(
        &mut self,
        object: Object,
        fields: Fields,
        cache: &mut Cache,
    ) -> (LineId, &[(u8, u8)]) {
        let first = self.first_line(object, cache);
        let hash = (fields.0 ^ ((object.kind as u64) << 58)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (hash >> 52) as usize % SPREADS;
        loop {
            let seen = &self.spreads[at];
            if seen.fields == fields && seen.kind == object.kind && seen.nr > 0 {
                break;
            }
            if seen.nr == 0 {
                self.enter_spread(at, object.kind, fields);
                break;
            }
            at = (at + 1) % SPREADS;
        }
        let spread = &self.spreads[at];
        (first, &spread.lines[..usize::from(spread.nr).min(LINES)])
    }

    /// Traffic by structure: kind, instance, the fields of one line, and its counters. Lines
    /// without traffic are left out.
    pub fn traffic(&self, cache: &Cache) -> Vec<(Object, Fields, LineStats)> {
        let mut out = Vec::new();
        for (first, object) in &self.made {
            for offset in 0..self.size[object.kind as usize] {
                let stats = cache.line_stats(first + offset);
                if stats.reads | stats.writes | stats.rmws != 0 {
                    let fields = self
                        .layout
                        .fields_on_line(object.kind, offset, self.line_bytes);
                    out.push((*object, fields, stats));
                }
            }
        }
        out
    }

    /// Size of a cache line.
    #[must_use]
    pub fn line_bytes(&self) -> u32 {
        self.line_bytes
    }

    /// Names of the fields of a set, joined.
    #[must_use]
    pub fn names(kind: Kind, fields: Fields) -> String {
        let names = field_names(kind);
        let on = |i: &usize| fields.0 >> i & 1 == 1;
        (0..names.len())
            .filter(on)
            .map(|i| names[i].name)
            .collect::<Vec<_>>()
            .join(",")
    }

    /// Number of structures by kind.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut out = BTreeMap::new();
        for (_, object) in &self.made {
            *out.entry(object.kind.name()).or_default() += 1;
        }
        out
    }

    #[inline]
    fn index(&self, object: Object) -> usize {
        (object.b & 0x7fff_ffff) as usize * self.stride[object.kind as usize] + object.a as usize
    }

    #[inline]
    fn first_line(&mut self, object: Object, cache: &mut Cache) -> LineId {
        match self.first[object.kind as usize].get(self.index(object)) {
            Some(line) if *line != NONE => *line,
            _ => self.make(object, cache),
        }
    }

    #[cold]
    fn make(&mut self, object: Object, cache: &mut Cache) -> LineId {
        let node = match object.kind {
            Kind::Rq | Kind::CfsRq | Kind::GroupSe | Kind::Sd => {
                self.nodes.get(object.a as usize).copied().unwrap_or(0)
            }
            _ => self.alloc_node,
        };
        let first = cache.alloc_lines(self.size[object.kind as usize].max(1), node);
        let index = self.index(object);
        let table = &mut self.first[object.kind as usize];
        if table.len() <= index {
            table.resize(index + 1, NONE);
        }
        table[index] = first;
        self.made.push((first, object));
        first
    }

    /// Puts a set of fields that was not seen before into the table, at the free place `at`.
    #[cold]
    fn enter_spread(&mut self, at: usize, kind: Kind, fields: Fields) {
        debug_assert!(self.nr_spreads < SPREADS / 2, "the table is too small");
        let mut words = [0u8; LINES];
        let unit = self.line_bytes / 8;
        let mut left = fields.0;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some((offset, len)) = self.layout.of(kind).fields.get(bit) else {
                continue;
            };
            let mut byte = *offset;
            while byte < offset + len.max(&1) {
                let (line, word) = (byte / self.line_bytes, byte % self.line_bytes / unit);
                words[(line as usize).min(LINES - 1)] |= 1 << word;
                byte = (byte / unit + 1) * unit;
            }
        }
        let used = words.iter().enumerate().filter(|(_, w)| **w != 0);
        let spread = &mut self.spreads[at];
        (spread.fields, spread.kind) = (fields, kind);
        for (line, w) in used.take(LINES) {
            spread.lines[usize::from(spread.nr)] = (line as u8, *w);
            spread.nr += 1;
        }
        self.nr_spreads += usize::from(spread.nr > 0);
    }
}

/// The lines of a mixed touch: offset from the first line of the structure, the words used, and
/// those of them that are stored to.
#[derive(Default)]
pub(super) struct MixedRun {
    lines: [(u8, u8, u8); LINES],
    nr: usize,
}

impl MixedRun {
    pub(super) fn push(&mut self, offset: u8, words: u8) {
        if let Some(line) = self.lines.get_mut(self.nr) {
            *line = (offset, words, 0);
            self.nr += 1;
        }
    }

    /// `words` of a line that was pushed are stored to.
    pub(super) fn store(&mut self, offset: u8, words: u8) {
        for line in &mut self.lines[..self.nr] {
            if line.0 == offset {
                line.2 = words;
            }
        }
    }

    pub(super) fn lines(&self) -> &[(u8, u8, u8)] {
        &self.lines[..self.nr]
    }
}

/// A number for each object. That of two tasks of which one is the 2^28th after the other would be
/// the same.
#[inline]
pub fn key(kind: Kind, a: u32, b: u32) -> u64 {
    u64::from(b) << 33 | (kind as u64) << 28 | u64::from(a)
}

/// The word of a lock.
pub fn lock_word(lock: Lock) -> (Object, Fields) {
    match lock {
        Lock::Rq(cpu) => (
            Object {
                kind: Kind::Rq,
                a: cpu.0,
                b: 0,
            },
            rq::LOCK,
        ),
        Lock::Bandwidth(id) => (
            Object {
                kind: Kind::Tg,
                a: id.0,
                b: 0,
            },
            tg::BW_LOCK,
        ),
    }
}
