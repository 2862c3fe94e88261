//! From the engine's names of places to cache lines, by the layout table.

use std::collections::BTreeMap;

use fairground::place::{Fields, Kind, Layout, Lock, Object, field_names, rq, tg};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    fields: u64,
    /// From the lowest bit: how (8), kind (8), where in the table to look first (16).
    id: u32,
}

impl Site {
    #[inline(always)]
    pub fn new(kind: Kind, fields: u64, how: How) -> Self {
        let id = (kind as u32) << 8 | how as u32;
        let hash = (fields ^ u64::from(id) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (hash >> (64 - SITES.trailing_zeros())) as u32;
        Self {
            fields,
            id: slot << 16 | id,
        }
    }

    /// `updates` are stored to besides being loaded.
    #[inline(always)]
    pub fn mixed(kind: Kind, reads: Fields, updates: Fields) -> Self {
        // No structure has 32 fields, so the sets have room beside each other.
        Self::new(kind, reads.and(updates).0 | updates.0 << 32, How::Mixed)
    }

    #[inline(always)]
    pub fn kind(self) -> usize {
        (self.id >> 8) as usize % KINDS
    }

    /// Where in the table to look first.
    #[inline(always)]
    fn slot(self) -> usize {
        (self.id >> 16) as usize % SITES
    }
}

/// A site that was seen, and what touching it comes to.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Seen {
    /// Of the site.
    fields: u64,
    /// Of the site; [`FREE`] where there is none.
    id: u32,
    pattern: Pattern,
}

/// No site has this number.
const FREE: u32 = u32::MAX;

impl Seen {
    #[inline(always)]
    fn is(&self, site: Site) -> bool {
        self.fields == site.fields && self.id == site.id
    }
}

/// Room for the kinds of structures; a power of two.
const KINDS: usize = 64;
const _: () = assert!(Kind::ALL.len() <= KINDS);

/// Most lines of one structure that a set of fields is on.
const LINES: usize = 19;
/// Places of the table of sites; a power of two, many more than there are sites in the engine.
const SITES: usize = 8192;

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
        (b & 0x7fff_ffff) as usize * self.stride + a as usize
    }
}

/// Where each structure is.
#[derive(Debug)]
pub struct Places {
    layout: &'static Layout,
    line_bytes: u32,
    size: [u32; Kind::ALL.len()],
    nodes: Vec<u32>,
    kinds: Box<[Made; KINDS]>,
    /// Open addressing; nothing is ever removed.
    sites: Box<[Seen; SITES]>,
    nr_sites: usize,
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
        let mut kinds: Box<[Made; KINDS]> = Box::new(std::array::from_fn(|_| Made::default()));
        for kind in [Kind::CfsRq, Kind::GroupSe, Kind::Sd, Kind::TgArrays] {
            kinds[kind as usize].stride = cpus;
        }
        let free = Seen {
            fields: 0,
            id: FREE,
            pattern: 0,
        };
        Self {
            layout,
            line_bytes,
            size: Kind::ALL.map(|k| layout.lines(k, line_bytes)),
            nodes: machine.topology.cpus.iter().map(|c| c.numa_node).collect(),
            kinds,
            sites: Box::new([free; SITES]),
            nr_sites: 0,
            made: Vec::new(),
            alloc_node: 0,
        }
    }

    /// What a structure is.
    pub(super) fn object(&self, id: StructureId) -> Option<Object> {
        let at = self.made.binary_search_by_key(&id, |made| made.0).ok()?;
        Some(self.made[at].1)
    }

    /// [`Places::find`] where all is known already; else an answer that nothing is known about.
    #[inline(always)]
    pub(super) fn known(&self, site: Site, a: u32, b: u32) -> Option<(StructureId, Pattern)> {
        let made = &self.kinds[site.kind()];
        let id = *made.ids.get(made.index(a, b))?;
        let seen = &self.sites[site.slot()];
        seen.is(site).then_some((id, seen.pattern))
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
        if let Some((id, pattern)) = self.known(site, a, b)
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
        let mut slot = site.slot();
        loop {
            match &self.sites[slot] {
                seen if seen.is(site) => return seen.pattern,
                seen if seen.id == FREE => return self.enter_site(slot, site, cache),
                _ => slot = (slot + 1) % SITES,
            }
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

    /// Puts a site that was not seen before into the table, at the free `slot`.
    #[cold]
    fn enter_site(&mut self, slot: usize, site: Site, cache: &mut Cache) -> Pattern {
        self.nr_sites += 1;
        debug_assert!(self.nr_sites < SITES / 2, "the table is too small");
        let is = |how: How| site.id & 0xff == how as u32;
        let words = self.words(site.kind(), site.fields & u64::from(u32::MAX));
        let stored = match () {
            () if is(How::Load) => [0; LINES],
            () if is(How::Mixed) => self.words(site.kind(), site.fields >> 32),
            () => words,
        };
        let lines = (0..LINES).filter(|line| words[*line] != 0);
        let run = lines.map(|line| (line as u8, words[line], stored[line]));
        // A field that this layout does not have is on no line.
        let parts = cache.parts(run, is(How::Store));
        let pattern = cache.pattern(site.kind() as Family, parts);
        self.sites[slot] = Seen {
            fields: site.fields,
            id: site.id,
            pattern,
        };
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
