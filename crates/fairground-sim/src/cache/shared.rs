//! Lines that two or more cores have touched.
//!
//! A copy is valid iff its version equals the line's, so invalidating all of them is one increment.
//! The first four cores are kept in the record; with the fifth the line gets a row with an
//! entry for each core.

use super::crowd::Crowd;
use super::ring::Ring;
use super::{Line, LineStats, MissClass, Ps};

/// No record, no owner, no row.
pub(super) const NONE: u32 = u32::MAX;
const INLINE: usize = 4;

/// A copy in a core's private caches or in an L3 domain. Version 0: never had one.
#[derive(Clone, Copy, Default)]
pub(super) struct Copy {
    pub version: u32,
    pub stamp: u32,
}

/// A copy in an L3 domain.
#[derive(Clone, Copy, Default)]
pub(super) struct L3Copy {
    pub copy: Copy,
    /// When the transaction that brings it is over; loads of the domain wait for that, not more.
    pub ready: Ps,
}

/// In the order of use: the first host line decides about hits. Host lines are fetched in pairs.
#[repr(C, align(128))]
pub(super) struct Shared {
    pub version: u32,
    pub row: u32,
    /// The core that wrote last, or has it exclusively.
    pub owner: u16,
    pub exclusive: bool,
    pub dirty: bool,
    /// A compare-and-swap loop has gone through it.
    pub swapped: bool,
    /// Farthest distance between the owner and a reader since the last write.
    pub span: u8,
    inline_len: u8,
    /// Thread of the last update.
    pub thread: u16,
    /// Mean service time of the last dozen requests, ps.
    pub mean_service: u32,
    pub crowd: Crowd,
    /// Start of the latest write booked.
    pub last_write: Ps,
    /// Version at the last write of each word.
    pub words: [u32; 8],
    pub ring: Ring,
    inline_cores: [u16; INLINE],
    pub inline: [Copy; INLINE],
    pub stats: LineStats,
}

// Each host line that a transaction goes to is a miss of this computer.
const _: () = assert!(size_of::<Shared>() == 256);

impl Shared {
    /// A request holds the line for `service`.
    #[inline]
    pub fn note_service(&mut self, service: Ps) {
        let mean = i64::from(self.mean_service);
        let service = service.min(Ps::from(u32::MAX)) as i64;
        self.mean_service = match mean {
            0 => service,
            _ => mean + (service - mean) / 16,
        } as u32;
    }

    /// Where in the record the copy of `core` is; `None` if it never had one.
    #[inline]
    pub fn inline_place(&self, core: usize) -> Option<usize> {
        let n = usize::from(self.inline_len);
        let cores = self.inline_cores.iter().take(n);
        cores
            .copied()
            .position(|c| usize::from(c) == core)
            .map(|at| at % INLINE)
    }

    /// A core that never had a copy gets one. With the fifth the line gets a row.
    #[cold]
    #[inline(never)]
    pub fn add_copy(&mut self, rows: &mut [Vec<Copy>], core: usize, copy: Copy) {
        let n = usize::from(self.inline_len);
        if n < INLINE {
            self.inline_cores[n] = core as u16;
            self.inline[n] = copy;
            self.inline_len += 1;
            return;
        }
        let row = rows[0].len();
        self.row = row as u32;
        for column in &mut *rows {
            column.push(Copy::default());
        }
        for (c, old) in self.inline_cores.iter().zip(self.inline) {
            rows[usize::from(*c)][row] = old;
        }
        rows[core][row] = copy;
    }

    /// Its row, if it has one and is not crowded.
    #[inline]
    pub fn calm_row(&self) -> u32 {
        match self.crowd.is_one() {
            true => NONE,
            false => self.row,
        }
    }

    /// Counts a transaction that has waited for `wait`.
    #[inline]
    pub fn account(&mut self, wait: Ps, class: MissClass, transfer: bool) {
        let stats = &mut self.stats;
        stats.wait += wait;
        stats.transfers += u32::from(transfer);
        match class {
            MissClass::Upgrade => stats.upgrades += 1,
            MissClass::TrueSharing => stats.true_sharing += 1,
            MissClass::FalseSharing => stats.false_sharing += 1,
            MissClass::Capacity => stats.capacity += 1,
            MissClass::Hit | MissClass::Cold => {}
        }
    }

    /// The core that has the line exclusively writes `words` at `now`.
    #[inline]
    pub fn written(&mut self, words: u8, now: Ps) {
        self.dirty = true;
        self.last_write = self.last_write.max(now);
        mark(&mut self.words, words, self.version);
    }
}

/// Notes that the words of `mask` were written in `version`.
#[inline]
pub(super) fn mark(words: &mut [u32; 8], mut mask: u8, version: u32) {
    while mask != 0 {
        let last = &mut words[mask.trailing_zeros() as usize & 7];
        *last = (*last).max(version);
        mask &= mask - 1;
    }
}

/// The record of a line, what is kept of its copies by core, and those of the L3 domains.
pub(super) struct SharedRecord<'a> {
    pub s: &'a mut Shared,
    /// By core, then by row.
    pub rows: &'a mut [Vec<Copy>],
    pub l3: &'a mut [L3Copy],
}

pub(super) struct SharedLines {
    lines: Vec<Shared>,
    /// By core, then by row: a core that scans many lines goes through neighbours.
    rows: Vec<Vec<Copy>>,
    l3: Vec<L3Copy>,
    llcs: usize,
}

impl SharedLines {
    pub fn new(cores: usize, llcs: usize) -> Self {
        Self {
            lines: Vec::new(),
            rows: vec![Vec::new(); cores],
            l3: Vec::new(),
            llcs,
        }
    }

    #[inline]
    pub fn line(&self, i: u32) -> &Shared {
        &self.lines[i as usize]
    }

    #[inline]
    pub fn line_mut(&mut self, i: u32) -> &mut Shared {
        &mut self.lines[i as usize]
    }

    /// Takes over a private line of `core`, which has L3 domain `llc`; `dirty` if it was written.
    pub fn adopt(&mut self, l: &Line, dirty: bool, core: u16, llc: usize) -> u32 {
        let i = self.lines.len() as u32;
        let mut inline_cores = [0; INLINE];
        let mut inline = [Copy::default(); INLINE];
        inline_cores[0] = core;
        inline[0] = Copy {
            version: 1,
            stamp: l.stamp,
        };
        self.lines.push(Shared {
            ring: Ring::default(),
            crowd: Crowd::default(),
            words: [0; 8],
            version: 1,
            owner: core,
            exclusive: true,
            dirty,
            swapped: false,
            span: 0,
            inline_len: 1,
            thread: l.thread() as u16,
            inline_cores,
            inline,
            row: NONE,
            mean_service: 0,
            last_write: 0,
            stats: LineStats {
                capacity: l.capacity_misses(),
                ..LineStats::default()
            },
        });
        self.l3.resize(self.l3.len() + self.llcs, L3Copy::default());
        self.l3[i as usize * self.llcs + llc].copy = Copy {
            version: 1,
            stamp: l.l3_stamp(),
        };
        i
    }

    pub fn clear_counters(&mut self) {
        for line in &mut self.lines {
            line.stats = LineStats::default();
        }
    }

    /// What a record consists of.
    #[inline(always)]
    pub fn record(&mut self, i: u32) -> SharedRecord<'_> {
        let first = i as usize * self.llcs;
        SharedRecord {
            s: &mut self.lines[i as usize],
            rows: &mut self.rows,
            l3: &mut self.l3[first..first + self.llcs],
        }
    }

    /// The core's copy, if it ever had one, with the line's version; `None` if it is crowded.
    #[inline]
    pub fn calm_copy(&mut self, i: u32, core: usize) -> Option<(&mut Copy, u32)> {
        let s = self.lines.get_mut(i as usize)?;
        if s.crowd.is_one() {
            return None;
        }
        if s.row != NONE {
            let copy = self.rows.get_mut(core)?.get_mut(s.row as usize)?;
            return Some((copy, s.version));
        }
        let at = s.inline_place(core)?;
        Some((&mut s.inline[at], s.version))
    }

    /// The core's copy of the line with this row.
    #[inline]
    pub fn row_copy(&mut self, row: u32, core: usize) -> Option<&mut Copy> {
        self.rows.get_mut(core)?.get_mut(row as usize)
    }

    pub fn host_bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(Vec::capacity).sum();
        self.lines.capacity() * size_of::<Shared>()
            + rows * size_of::<Copy>()
            + self.l3.capacity() * size_of::<L3Copy>()
    }
}
