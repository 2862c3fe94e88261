//! From the engine's names of places to cache lines, by the layout table.

use std::collections::BTreeMap;

use fairground::place::{Fields, Kind, Layout, Lock, Object, field_names, rq, tg};
use rustc_hash::FxHashMap;

use crate::cache::{Cache, Family, LineStats, Pattern, StructureId};
use crate::machine_file::Machine;

/// How the lines of a set of fields are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Each line is loaded.
    Load,
    /// Each line is stored to.
    Store,
    /// Each line is loaded, then stored to.
    Update,
    /// Each line is loaded; those of the fields in the upper half of the set are then stored to.
    Mixed,
    /// Each line sees an atomic update.
    Atomic,
}

/// A kind of structure, a set of its fields and how they are touched; what every place in the
/// engine that reports a touch knows when it is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Site {
    /// How, fields and kind, times an odd number: no two sites have the same, and the upper bits
    /// say where in the table to look.
    key: u64,
}

/// Odd, so that a product with it can be undone; and what undoes it. Its lowest bits are those of
/// 1, so that those of a product are still the kind.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c11;
const GATHER: u64 = inverse(SPREAD);

/// The number of which the product with `odd` is 1: each step doubles the bits that are right.
const fn inverse(odd: u64) -> u64 {
    let (mut x, mut right) = (odd, 3);
    while right < u64::BITS {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        right *= 2;
    }
    x
}

/// Bits for the fields of a site: a set, and of those that are stored to besides being loaded a
/// second one. No structure has more fields.
const SET: u32 = 28;
/// Where these begin, above the kind.
const FIELDS: u32 = KINDS.trailing_zeros();
const HOW: u32 = FIELDS + 2 * SET;

impl Site {
    #[inline(always)]
    pub fn new(kind: Kind, fields: u64, how: How) -> Self {
        // An empty set would be taken for a free place of the table.
        debug_assert!((fields as u32) << (u32::BITS - SET) != 0, "no fields");
        let plain = (how as u64) << HOW | fields << FIELDS | kind as u64;
        Self {
            key: plain.wrapping_mul(SPREAD),
        }
    }

    /// `updates` are stored to besides being loaded.
    #[inline(always)]
    pub fn mixed(kind: Kind, reads: Fields, updates: Fields) -> Self {
        Self::new(kind, reads.union(updates).0 | updates.0 << SET, How::Mixed)
    }

    #[inline(always)]
    pub fn kind(self) -> usize {
        self.key as usize % KINDS
    }

    /// How the fields are touched, as a number; the fields; those of the second set.
    fn parts(self) -> (u64, u64, u64) {
        let plain = self.key.wrapping_mul(GATHER);
        let mask = (1 << SET) - 1;
        let fields = plain >> FIELDS;
        (plain >> HOW, fields & mask, fields >> SET & mask)
    }

    /// Where in the table to look.
    #[inline(always)]
    fn slot(self) -> usize {
        (self.key >> (u64::BITS - SITES.trailing_zeros())) as usize
    }

    /// What the table has there for this site, if its pattern is 0. The bits of the key that the
    /// place stands for make room for the pattern.
    #[inline(always)]
    fn entry(self) -> u64 {
        self.key << SITES.trailing_zeros()
    }
}

/// Room for the kinds of structures; a power of two.
const KINDS: usize = 16;
const _: () = assert!(Kind::ALL.len() <= KINDS && SPREAD % KINDS as u64 == 1);
const _: () = assert!(HOW + (How::Atomic as u32 + 1).ilog2() < u64::BITS);

/// Most lines of one structure that a set of fields is on.
const LINES: usize = 19;
/// Places of the table of sites, and bound of the patterns in it; a power of two, many more than
/// there are sites in the engine.
const SITES: usize = 4096;

/// The structures of one kind.
#[derive(Debug, Default)]
struct Made {
    /// By `b * stride + a` of the object's ids; 0 = not made.
    ids: Vec<StructureId>,
    /// The number of CPUs for what each CPU has several of, else 0: such an object's second id
    /// says nothing.
    stride: usize,
}

impl Made {
    #[inline(always)]
    fn index(&self, a: u32, b: u32) -> usize {
        b as usize * self.stride + a as usize
    }
}

/// Where each structure is.
#[derive(Debug)]
pub struct Places {
    layout: &'static Layout,
    line_bytes: u32,
    size: [u32; Kind::ALL.len()],
    nodes: Vec<u32>,
    kinds: [Made; KINDS],
    /// What touching a site comes to, by [`Site::slot`]: [`Site::entry`] with the pattern in the
    /// lower bits; of those that fall on one place, the one that was seen first. 0 = nobody's.
    seen: Box<[u64; SITES]>,
    /// Patterns of all sites, also of those that found their slot taken.
    patterns: FxHashMap<Site, Pattern>,
    /// Everything that was made, in order of lines.
    made: Vec<(StructureId, Object)>,
    /// Node on which objects without a CPU of their own are made.
    pub alloc_node: u32,
}

impl Places {
    /// Nothing is placed yet; structures are made when first touched, those of a CPU on its node.
    pub fn new(machine: &Machine, layout: &'static Layout) -> Self {
        let line_bytes = machine.line_bytes();
        let cpus = machine.topology.nr_cpus();
        let mut kinds: [Made; KINDS] = std::array::from_fn(|_| Made::default());
        for kind in [Kind::CfsRq, Kind::GroupSe, Kind::Sd, Kind::TgArrays] {
            kinds[kind as usize].stride = cpus;
        }
        Self {
            layout,
            line_bytes,
            size: Kind::ALL.map(|k| layout.lines(k, line_bytes)),
            nodes: machine.topology.cpus.iter().map(|c| c.numa_node).collect(),
            kinds,
            seen: Box::new([0; SITES]),
            patterns: FxHashMap::default(),
            made: Vec::new(),
            alloc_node: 0,
        }
    }

    /// What a structure is.
    pub(super) fn object(&self, id: StructureId) -> Option<Object> {
        let at = self.made.binary_search_by_key(&id, |made| made.0).ok()?;
        Some(self.made[at].1)
    }

    /// [`Places::find`] where all is known already and the pattern is one of the first `most`; else
    /// an answer that nothing is known about.
    #[inline(always)]
    pub(super) fn known(
        &self,
        site: Site,
        a: u32,
        b: u32,
        most: usize,
    ) -> Option<(StructureId, Pattern)> {
        let made = &self.kinds[site.kind()];
        let id = *made.ids.get(made.index(a, b))?;
        let pattern = self.seen[site.slot()] ^ site.entry();
        (pattern < most as u64).then_some((id, pattern as Pattern))
    }

    /// The structure with ids `a` and `b`, and how `site` touches it.
    #[inline]
    pub(super) fn find(
        &mut self,
        site: Site,
        a: u32,
        b: u32,
        cache: &mut Cache,
    ) -> (StructureId, Pattern) {
        if let Some((id, pattern)) = self.known(site, a, b, SITES)
            && id != 0
        {
            return (id, pattern);
        }
        self.find_new(site, a, b, cache)
    }

    /// [`Places::find`] where something is new, or not where it is looked for first.
    #[inline(never)]
    fn find_new(
        &mut self,
        site: Site,
        a: u32,
        b: u32,
        cache: &mut Cache,
    ) -> (StructureId, Pattern) {
        let kind = site.kind();
        let made = &self.kinds[kind];
        let index = made.index(a, b);
        let id = match made.ids.get(index) {
            Some(id) if *id != 0 => *id,
            _ => {
                let kind = Kind::ALL[kind];
                self.make(Object { kind, a, b }, index, cache)
            }
        };
        (id, self.probe(site, cache))
    }

    /// How `site` touches a structure.
    fn probe(&mut self, site: Site, cache: &mut Cache) -> Pattern {
        match self.patterns.get(&site) {
            Some(pattern) => *pattern,
            None => self.enter_site(site, cache),
        }
    }

    /// Traffic by structure: kind, instance, the fields of one line, and its counters. Lines
    /// without traffic are left out.
    pub fn traffic(&self, cache: &Cache) -> Vec<(Object, Fields, LineStats)> {
        let mut out = Vec::new();
        for (id, object) in &self.made {
            let first = cache.first_line(*id);
            for offset in 0..self.size[object.kind as usize] {
                let stats = cache.line_stats(first + offset);
                if stats.touches() != 0 {
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

    #[cold]
    fn make(&mut self, object: Object, index: usize, cache: &mut Cache) -> StructureId {
        let node = match object.kind {
            Kind::Rq | Kind::CfsRq | Kind::GroupSe | Kind::Sd | Kind::IdleTask => {
                self.nodes.get(object.a as usize).copied().unwrap_or(0)
            }
            _ => self.alloc_node,
        };
        let kind = object.kind as usize;
        let id = cache.alloc_structure(kind as Family, self.size[kind].max(1), node);
        let table = &mut self.kinds[kind].ids;
        if table.len() <= index {
            table.resize(index + 1, 0);
        }
        table[index] = id;
        self.made.push((id, object));
        id
    }

    /// Notes a site that was not seen before.
    #[cold]
    fn enter_site(&mut self, site: Site, cache: &mut Cache) -> Pattern {
        let (how, fields, more) = site.parts();
        let is = |other: How| how == other as u64;
        let words = self.words(site.kind(), fields);
        let stored = match () {
            () if is(How::Load) => [0; LINES],
            () if is(How::Mixed) => self.words(site.kind(), more),
            () => words,
        };
        let lines = (0..LINES).filter(|line| words[*line] != 0);
        let run = lines.map(|line| (line as u8, words[line], stored[line]));
        // A field that this layout does not have is on no line.
        let parts = cache.parts(run, is(How::Store));
        let pattern = cache.pattern(site.kind() as Family, parts);
        self.patterns.insert(site, pattern);
        let seen = &mut self.seen[site.slot()];
        if *seen == 0 && pattern < SITES as Pattern {
            *seen = site.entry() | u64::from(pattern);
        }
        pattern
    }

    /// The words of each line of a structure that a set of fields is on.
    fn words(&self, kind: usize, fields: u64) -> [u8; LINES] {
        let mut words = [0u8; LINES];
        let unit = self.line_bytes / 8;
        let mut left = fields;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some((offset, len)) = self.layout.of(Kind::ALL[kind]).fields.get(bit) else {
                continue;
            };
            let mut byte = *offset;
            while byte < offset + len.max(&1) {
                let (line, word) = (byte / self.line_bytes, byte % self.line_bytes / unit);
                words[(line as usize).min(LINES - 1)] |= 1 << word;
                byte = (byte / unit + 1) * unit;
            }
        }
        words
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_can_be_undone_and_no_structure_has_too_many_fields() {
        assert_eq!(SPREAD.wrapping_mul(GATHER), 1);
        for kind in Kind::ALL {
            let all = field_names(kind).len() as u32;
            assert!(all <= SET, "{}", kind.name());
            let (reads, updates) = (Fields((1 << all) - 1), Fields::bit(all - 1));
            let mixed = Site::mixed(kind, reads, updates);
            assert_eq!(mixed.parts(), (How::Mixed as u64, reads.0, updates.0));
            assert_eq!(mixed.kind(), kind as usize);
            assert_ne!(mixed.entry(), 0);
        }
    }

    #[test]
    fn two_sites_at_one_place_keep_their_patterns() {
        let machine = Machine::builtin("xeon-8cpu-2013").unwrap();
        let mut cache = Cache::new(&machine, 1);
        let mut places = Places::new(&machine, &fairground::place::LINUX_6_15);
        let one = Site::new(Kind::Rq, rq::LOCK.0, How::Load);
        let at_its_place = |fields: &u64| {
            let other = Site::new(Kind::CfsRq, *fields, How::Update);
            other.slot() == one.slot()
        };
        let fields = (1..1 << 20).find(at_its_place).expect("many sets");
        let other = Site::new(Kind::CfsRq, fields, How::Update);
        let first = places.find(one, 3, 0, &mut cache);
        let second = places.find(other, 3, 0, &mut cache);
        assert_ne!(first.0, second.0, "two structures");
        assert_eq!(places.known(one, 3, 0, SITES), Some(first));
        assert_eq!(places.known(one, 3, 0, first.1 as usize), None);
        assert_eq!(places.known(other, 3, 0, SITES), None);
        assert_eq!(places.find(other, 3, 0, &mut cache), second);
    }
}
