//! From the engine's names of places to cache lines, by the layout table.

use std::collections::BTreeMap;

use fairground::place::{Fields, Kind, Layout, Lock, Object, field_names, rq, tg};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::cache::{Cache, LineId, LineStats};
use crate::machine_file::Machine;

/// Lines of one structure that a set of fields is on: offset from the first line, and the 8-byte
/// words of that line that are used.
type Lines = SmallVec<[(u8, u8); 8]>;

const NONE: u32 = u32::MAX;
const MEMO: usize = 1024;

/// Where each structure is.
#[derive(Debug)]
pub struct Places {
    layout: &'static Layout,
    line_bytes: u32,
    size: [u32; Kind::ALL.len()],
    nodes: Vec<u32>,
    /// First line by kind and the object's first id; for the kinds with two ids `pairs`.
    single: Vec<Vec<u32>>,
    /// By CPU, then by second id.
    cfs_rq: Vec<Vec<u32>>,
    group_se: Vec<Vec<u32>>,
    sd: FxHashMap<(u32, u32), u32>,
    memo: Vec<(Kind, Fields, Lines)>,
    /// First line and object of everything that was made, in order of lines.
    made: Vec<(u32, Object)>,
    /// Node on which objects without a CPU of their own are made.
    pub alloc_node: u32,
}

impl Places {
    /// Nothing is placed yet; structures are made when first touched, those of a CPU on its node.
    pub fn new(machine: &Machine, layout: &'static Layout, cache: &mut Cache) -> Self {
        let _ = cache;
        let line_bytes = machine.line_bytes();
        let cpus = machine.topology.nr_cpus();
        let empty: Lines = SmallVec::new();
        Self {
            layout,
            line_bytes,
            size: Kind::ALL.map(|k| layout.lines(k, line_bytes)),
            nodes: machine.topology.cpus.iter().map(|c| c.numa_node).collect(),
            single: vec![Vec::new(); Kind::ALL.len()],
            cfs_rq: vec![Vec::new(); cpus],
            group_se: vec![Vec::new(); cpus],
            sd: FxHashMap::default(),
            memo: vec![(Kind::Rq, Fields(0), empty); MEMO],
            made: Vec::new(),
            alloc_node: 0,
        }
    }

    /// The first line of `object`, and the lines that `fields` are on.
    #[inline]
    pub fn lines(&mut self, object: Object, fields: Fields, cache: &mut Cache) -> (LineId, &Lines) {
        let first = self.first_line(object, cache);
        let hash = (fields.0 ^ ((object.kind as u64) << 58)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (hash >> 54) as usize;
        if self.memo[slot].0 != object.kind || self.memo[slot].1 != fields {
            self.memo[slot] = (object.kind, fields, self.spread(object.kind, fields));
        }
        (first, &self.memo[slot].2)
    }

    /// Traffic by structure: kind, instance, the fields of one line, and its counters. Lines
    /// without traffic are left out.
    pub fn traffic(&self, cache: &Cache) -> Vec<(Object, Fields, LineStats)> {
        let mut out = Vec::new();
        for (first, object) in &self.made {
            for offset in 0..self.size[object.kind as usize] {
                let stats = cache.line_stats(first + offset);
                if stats.reads + stats.writes + stats.rmws > 0 {
                    let fields = self
                        .layout
                        .fields_on_line(object.kind, offset, self.line_bytes);
                    out.push((*object, fields, stats));
                }
            }
        }
        out
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
    fn first_line(&mut self, object: Object, cache: &mut Cache) -> LineId {
        let a = object.a as usize;
        let b = (object.b & 0x7fff_ffff) as usize;
        let known = match object.kind {
            Kind::CfsRq => self.cfs_rq[a].get(b).copied(),
            Kind::GroupSe => self.group_se[a].get(b).copied(),
            Kind::Sd => self.sd.get(&(object.a, object.b)).copied(),
            // A task's entity is part of its task_struct, but has its own lines.
            kind => self.single[kind as usize].get(a).copied(),
        };
        match known {
            Some(line) if line != NONE => line,
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
        let b = (object.b & 0x7fff_ffff) as usize;
        let (table, index) = match object.kind {
            Kind::CfsRq => (&mut self.cfs_rq[object.a as usize], b),
            Kind::GroupSe => (&mut self.group_se[object.a as usize], b),
            Kind::Sd => {
                self.sd.insert((object.a, object.b), first);
                self.made.push((first, object));
                return first;
            }
            kind => (&mut self.single[kind as usize], object.a as usize),
        };
        if table.len() <= index {
            table.resize(index + 1, NONE);
        }
        table[index] = first;
        self.made.push((first, object));
        first
    }

    fn spread(&self, kind: Kind, fields: Fields) -> Lines {
        let mut words = [0u8; 64];
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
                words[(line as usize).min(63)] |= 1 << word;
                byte = (byte / unit + 1) * unit;
            }
        }
        let used = words.iter().enumerate().filter(|(_, w)| **w != 0);
        used.map(|(line, w)| (line as u8, *w)).collect()
    }
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
