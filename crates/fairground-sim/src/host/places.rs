//! From the engine's names of places to cache lines, by the layout table.

use std::collections::BTreeMap;

use fairground::place::{Fields, Kind, Layout, Lock, Object, field_names, rq, tg};

use crate::cache::{Cache, LineId, LineStats, Part};
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

impl Seen {
    #[inline(always)]
    fn is(&self, site: Site) -> bool {
        self.fields == site.fields && self.id == site.id
    }
}

/// What touching a site comes to.
#[derive(Debug)]
#[repr(C, align(64))]
struct Seen {
    /// Of the site.
    fields: u64,
    /// Of the site.
    id: u32,
    /// Its parts after the first are `rest[from..from + nr]` of [`Places`].
    from: u16,
    nr: u16,
    /// The first of its parts: nearly always the only one.
    part: Part,
}

/// No place in the table of sites.
const FREE: u16 = u16::MAX;

/// Room for the kinds of structures; a power of two.
const KINDS: usize = 64;
const _: () = assert!(Kind::ALL.len() <= KINDS);

/// Most lines of one structure that a set of fields is on.
const LINES: usize = 19;
const NONE: u32 = u32::MAX;
/// Places of the table of sites; a power of two, many more than there are sites in the engine.
const SITES: usize = 8192;

/// The structures of one kind.
#[derive(Debug, Default)]
struct Made {
    /// First line by `b * stride + a` of the object's ids.
    first: Vec<u32>,
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
    /// Places in `sites`, or `FREE`. Open addressing; nothing is ever removed.
    slots: Box<[u16; SITES]>,
    sites: Vec<Seen>,
    /// Parts of sites after their first.
    rest: Vec<Part>,
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
        let mut kinds: Box<[Made; KINDS]> = Box::new(std::array::from_fn(|_| Made::default()));
        for kind in [Kind::CfsRq, Kind::GroupSe, Kind::Sd] {
            kinds[kind as usize].stride = cpus;
        }
        Self {
            layout,
            line_bytes,
            size: Kind::ALL.map(|k| layout.lines(k, line_bytes)),
            nodes: machine.topology.cpus.iter().map(|c| c.numa_node).collect(),
            kinds,
            slots: Box::new([FREE; SITES]),
            sites: Vec::new(),
            rest: Vec::new(),
            made: Vec::new(),
            alloc_node: 0,
        }
    }

    /// [`Places::find`] where all is known already and the site has one part.
    #[inline(always)]
    pub(super) fn known(&self, site: Site, a: u32, b: u32) -> Option<(LineId, &Part)> {
        let made = &self.kinds[site.kind()];
        let first = *made.first.get(made.index(a, b))?;
        if first == NONE {
            return None;
        }
        let seen = self.sites.get(usize::from(self.slots[site.slot()]))?;
        (seen.is(site) && seen.nr == 0).then_some((first, &seen.part))
    }

    /// The first line of the structure with ids `a` and `b`, and the parts that `site` is on.
    pub(super) fn find<'a>(
        &'a mut self,
        site: Site,
        a: u32,
        b: u32,
        cache: &mut Cache,
    ) -> (LineId, impl Iterator<Item = &'a Part> + use<'a>) {
        let first = self.first_line(site.kind(), a, b, cache);
        let at = self.probe(site, cache);
        let seen = &self.sites[at];
        let from = usize::from(seen.from);
        let rest = self.rest.get(from..from + usize::from(seen.nr));
        (
            first,
            std::iter::once(&seen.part).chain(rest.unwrap_or(&[])),
        )
    }

    /// The place of `site` in the table.
    fn probe(&mut self, site: Site, cache: &Cache) -> usize {
        let mut slot = site.slot();
        loop {
            let at = usize::from(self.slots[slot]);
            match self.sites.get(at) {
                Some(seen) if seen.is(site) => return at,
                Some(_) => slot = (slot + 1) % SITES,
                None => return self.enter_site(slot, site, cache),
            }
        }
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

    fn first_line(&mut self, kind: usize, a: u32, b: u32, cache: &mut Cache) -> LineId {
        let made = &self.kinds[kind];
        let index = made.index(a, b);
        match made.first.get(index) {
            Some(line) if *line != NONE => *line,
            _ => {
                let kind = Kind::ALL[kind];
                self.make(Object { kind, a, b }, index, cache)
            }
        }
    }

    #[cold]
    fn make(&mut self, object: Object, index: usize, cache: &mut Cache) -> LineId {
        let node = match object.kind {
            Kind::Rq | Kind::CfsRq | Kind::GroupSe | Kind::Sd | Kind::IdleTask => {
                self.nodes.get(object.a as usize).copied().unwrap_or(0)
            }
            _ => self.alloc_node,
        };
        let first = cache.alloc_structure(self.size[object.kind as usize].max(1), node);
        let table = &mut self.kinds[object.kind as usize].first;
        if table.len() <= index {
            table.resize(index + 1, NONE);
        }
        table[index] = first;
        self.made.push((first, object));
        first
    }

    /// Puts a site that was not seen before into the table, at the free `slot`.
    #[cold]
    fn enter_site(&mut self, slot: usize, site: Site, cache: &Cache) -> usize {
        debug_assert!(self.sites.len() < SITES / 2, "the table is too small");
        let is = |how: How| site.id & 0xff == how as u32;
        let words = self.words(site.kind(), site.fields & u64::from(u32::MAX));
        let stored = match () {
            () if is(How::Load) => [0; LINES],
            () if is(How::Mixed) => self.words(site.kind(), site.fields >> 32),
            () => words,
        };
        let lines = (0..LINES).filter(|line| words[*line] != 0);
        let run = lines.map(|line| (line as u8, words[line], stored[line]));
        let mut parts = cache.parts(run, is(How::Store)).into_iter();
        let at = self.sites.len();
        let from = self.rest.len();
        // A field that this layout does not have is on no line.
        let part = parts.next().unwrap_or_else(Part::none);
        self.rest.extend(parts);
        self.sites.push(Seen {
            fields: site.fields,
            id: site.id,
            from: from as u16,
            nr: (self.rest.len() - from) as u16,
            part,
        });
        self.slots[slot] = at as u16;
        at
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
