//! Touches of several lines of one structure.

use super::block::{ABREAST, SHARES};
use super::{Access, Cache, HwThread, LineId, NONE, Ps, StructureId};

/// Lines abreast that one touch of a structure goes to, all of them loaded, stored to, or loaded
/// and then in part stored to.
///
/// What decides whether all are hits comes first, for the host's cache.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Part {
    /// Which bits of each line's tag must be those of the core and its epoch; 0 for others' lines.
    lanes: [u32; ABREAST],
    /// Words stored to, a byte each line.
    stored: u64,
    /// Price if all are hits, ps.
    cost: u32,
    /// Blocks from the structure's first on.
    block: u16,
    /// The lines touched, a bit each.
    lines: u8,
    /// All ones for the lines that are loaded.
    loads: [u32; ABREAST],
    /// All ones for the lines that are stored to.
    stores: [u32; ABREAST],
    /// Words touched, a byte each line.
    words: u64,
}

/// The numbers of the bits of `mask`.
#[inline]
fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lowest < ABREAST).then_some(lowest)
    })
}

impl Part {
    fn new(block: u16) -> Self {
        Self {
            lanes: [0; ABREAST],
            loads: [0; ABREAST],
            stores: [0; ABREAST],
            words: 0,
            stored: 0,
            cost: 0,
            block,
            lines: 0,
        }
    }

    /// Its block, for a structure whose first line is `first`.
    pub(super) fn block(&self, first: LineId) -> usize {
        first as usize / ABREAST + usize::from(self.block)
    }

    /// How long a touch takes that hits.
    pub(super) fn price(&self) -> Ps {
        self.cost.into()
    }

    /// Loads and stores of the line in `lane`.
    pub(super) fn counts(&self, lane: usize) -> (u32, u32) {
        (self.loads[lane] & 1, self.stores[lane] & 1)
    }

    /// The line and its words, if only one is touched.
    #[inline]
    pub(super) fn only_line(&self, first: LineId) -> Option<(LineId, u8)> {
        let lane = self.lines.trailing_zeros() as usize;
        let one = self.lines & self.lines.wrapping_sub(1) == 0;
        let line = (self.block(first) * ABREAST + lane) as LineId;
        (one && lane < ABREAST).then(|| (line, (self.words >> (lane * 8)) as u8))
    }

    /// Whether anything is stored to.
    pub(super) fn stores(&self) -> bool {
        self.stored != 0
    }

    /// The lines, of the structure whose first line is `first`, and the words touched.
    pub fn lines(&self, first: LineId) -> impl Iterator<Item = (LineId, u8)> + '_ {
        let from = first + u32::from(self.block) * ABREAST as u32;
        bits(self.lines).map(move |lane| (from + lane as u32, (self.words >> (lane * 8)) as u8))
    }
}

/// Adds one to the counters whose mask is all ones.
#[inline(always)]
fn count(counters: &mut [u32; ABREAST], masks: &[u32; ABREAST]) {
    // Copies, so that the compiler may add them abreast.
    let (mut new, masks) = (*counters, *masks);
    for (n, mask) in new.iter_mut().zip(&masks) {
        *n = n.wrapping_sub(*mask);
    }
    *counters = new;
}

impl Cache {
    /// The parts of a touch of lines given as offset from a structure's first, words touched, and
    /// words of them that are stored to; all lines are also loaded, unless `store_only`.
    pub fn parts(&self, run: impl Iterator<Item = (u8, u8, u8)>, store_only: bool) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (offset, words, stored) in run {
            let block = u16::from(offset) / ABREAST as u16;
            if parts.last().is_none_or(|p| p.block != block) {
                parts.push(Part::new(block));
            }
            let Some(part) = parts.last_mut() else {
                continue;
            };
            let lane = usize::from(offset) % ABREAST;
            part.lines |= 1 << lane;
            part.words |= u64::from(words) << (lane * 8);
            part.stored |= u64::from(stored) << (lane * 8);
            part.lanes[lane] = !u32::from(SHARES);
            if !store_only {
                part.loads[lane] = u32::MAX;
                part.cost += self.p.hit_ps[0];
            }
            if stored != 0 {
                (part.lanes[lane], part.stores[lane]) = (u32::MAX, u32::MAX);
                part.cost += self.p.hit_ps[1];
            }
        }
        parts
    }

    /// The core of a CPU, and which of its threads it is.
    pub fn thread_of(&self, cpu: u32) -> HwThread {
        self.p.cpu[cpu as usize]
    }

    /// Whether all that a touch of `part` of the structure whose first line is `first` goes to are
    /// hits for `core`.
    #[inline(always)]
    pub(super) fn all_hit(&self, core: u16, first: LineId, part: &Part) -> bool {
        let Some((tag, top)) = self.ages.tag(core).zip(self.tops.block(part.block(first))) else {
            return false;
        };
        let mut others = 0;
        for (i, lane) in part.lanes.iter().enumerate() {
            others |= (top.tags[i] ^ tag) & lane;
        }
        // A word that its holder has not yet written must be noted.
        others == 0 && part.stored & !top.written == 0
    }

    /// A core's thread touches the lines of `part` of the structure whose first line is `first`,
    /// from `now` on. Whether all were known hits, and when the core goes on.
    #[inline]
    pub(super) fn pass_part(
        &mut self,
        who: HwThread,
        (id, first): (StructureId, LineId),
        part: &Part,
        now: Ps,
    ) -> (bool, Ps) {
        if !self.all_hit(who.core, first, part) {
            return (false, self.pass_lines(who, (id, first), part, now));
        }
        if let Some(top) = self.tops.block_mut(part.block(first)) {
            count(&mut top.reads, &part.loads);
            if part.stored != 0 {
                count(&mut top.writes, &part.stores);
            }
        }
        (true, now + part.price())
    }

    /// [`Cache::pass_part`] of lines that are not all hits; says when the core goes on. Where the
    /// lines are is known before any of them is there, so no load waits for another.
    fn pass_lines(
        &mut self,
        who: HwThread,
        (id, first): (StructureId, LineId),
        part: &Part,
        mut now: Ps,
    ) -> Ps {
        let block = part.block(first);
        let prices = [self.p.hit_ps[0], self.p.hit_ps[1]].map(Ps::from);
        let (mut left, mut done) = (part.lines, now);
        while left != 0 {
            let lane = left.trailing_zeros() as usize % ABREAST;
            left &= left - 1;
            let line = (block * ABREAST + lane) as LineId;
            let of_line = |mask: u64| (mask >> (lane * 8)) as u8;
            let (words, stored) = (of_line(part.words), of_line(part.stored));
            let (loads, stores) = part.counts(lane);
            if stores == 0 {
                let then = self.abreast(id, now, |cache, now| cache.load(who, line, words, now));
                done = done.max(then);
                continue;
            }
            let top = self.tops.block_mut(block);
            if let Some(top) = top.filter(|top| top.tags[lane] as u16 == who.core) {
                let fills = self.ages.core_fills(usize::from(who.core));
                let l = &mut self.lines[line as usize];
                if fills.wrapping_sub(l.stamp) <= self.p.recent {
                    l.stamp = fills;
                    now += Ps::from(loads) * prices[0];
                    let shared = match l.link {
                        NONE => None,
                        i => Some(self.shared.line_mut(i)),
                    };
                    l.store_hit(top, lane, shared, stored, now);
                    now += Ps::from(stores) * prices[1];
                    let mut top = self.tops.lane(line);
                    top.count(loads, stores);
                    top.note_again(fills);
                    continue;
                }
            }
            let then = match loads {
                0 => now,
                _ => self.abreast(id, now, |cache, now| cache.load_rare(who, line, words, now)),
            };
            let goes_on = self.pass_from(who, line, stored, Access::Store, then);
            if self.p.scans {
                // A full store buffer holds up the turns of a scan, too.
                now += goes_on - then;
            }
            done = done.max(goes_on);
        }
        self.goes_on(now, done)
    }
}
