//! Touches of several lines of one structure.

use super::tops::{ABREAST, SHARES};
use super::{Access, Cache, LineId, NONE, Ps};

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

    /// Of no line.
    pub fn none() -> Self {
        Self::new(0)
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

    /// The core of a CPU.
    pub fn core_of(&self, cpu: u32) -> u16 {
        self.p.cpu[cpu as usize].0
    }

    /// `core` touches the lines of `part` of the structure whose first line is `first`, if all are
    /// hits: how long it takes; nothing is done if not.
    #[inline(always)]
    pub fn hit_part(&mut self, core: u16, first: LineId, part: &Part) -> Option<Ps> {
        let tag = self.ages.tag(core)?;
        let block = first as usize / ABREAST + usize::from(part.block);
        let top = self.tops.block_mut(block)?;
        let mut others = 0;
        for (i, lane) in part.lanes.iter().enumerate() {
            others |= (top.tags[i] ^ tag) & lane;
        }
        // A word that its holder has not yet written must be noted.
        if others != 0 || part.stored & !top.written != 0 {
            return None;
        }
        count(&mut top.reads, &part.loads);
        if part.stored != 0 {
            count(&mut top.writes, &part.stores);
        }
        Some(Ps::from(part.cost))
    }

    /// `cpu` touches the lines of `part`, one after another, of the structure whose first line is
    /// `first`; says when the core goes on.
    pub fn pass_part(&mut self, cpu: u32, first: LineId, part: &Part, now: Ps) -> Ps {
        match self.hit_part(self.core_of(cpu), first, part) {
            Some(cost) => now + cost,
            None => self.pass_lines(cpu, first, part, now),
        }
    }

    /// [`Cache::pass_part`], line by line.
    fn pass_lines(&mut self, cpu: u32, first: LineId, part: &Part, mut now: Ps) -> Ps {
        let at = self.p.cpu[cpu as usize];
        let block = first as usize / ABREAST + usize::from(part.block);
        let prices = [self.p.hit_ps[0], self.p.hit_ps[1]].map(Ps::from);
        for lane in bits(part.lines) {
            let line = (block * ABREAST + lane) as LineId;
            let of_line = |mask: u64| (mask >> (lane * 8)) as u8;
            let (words, stored) = (of_line(part.words), of_line(part.stored));
            let (loads, stores) = (part.loads[lane] & 1, part.stores[lane] & 1);
            let holder = self.tops.holder(line);
            let own = holder == at.0 || stores == 0 && holder == at.0 | SHARES;
            let fills = self.ages.core_fills(usize::from(at.0));
            let l = &mut self.lines[line as usize];
            if own && fills.wrapping_sub(l.stamp) <= self.p.recent {
                l.stamp = fills;
                self.tops.note(line, holder, fills);
                self.tops.count(line, loads, stores);
                now += Ps::from(loads) * prices[0];
                if stores != 0 {
                    self.store_hit(line, stored, now);
                }
                now += Ps::from(stores) * prices[1];
            } else {
                if loads != 0 {
                    now = self.slow(at, line, words, Access::Load, now).done_at;
                }
                if stores != 0 {
                    now = self.pass(cpu, line, stored, Access::Store, now);
                }
            }
        }
        now
    }

    /// A store at `now` to a line that its core has for itself.
    pub(super) fn store_hit(&mut self, line: LineId, words: u8, now: Ps) {
        let l = &mut self.lines[line as usize];
        if l.link == NONE {
            self.tops.write(line, words);
        } else if self.shared.line(l.link).swapped {
            // A compare-and-swap loop asks when it was last written, so hits must not pass by here.
            self.shared.line_mut(l.link).written(words, now);
        } else {
            l.tail = l.tail.max(now);
            self.tops.write(line, words);
        }
    }
}
