//! Touches of several lines of one structure.

use super::memo::{Key, Known, STORED, Uses};
use super::{Access, Cache, Line, LineId, NONE, Ps, SHARES};

impl Cache {
    /// The price of a touch that the core has made before and that is all hits still; see
    /// [`Cache::pass_run`], which has to be called with the same `key` where this gives `None`.
    #[inline(always)]
    pub fn known<const LOAD: bool, const STORE: bool>(&mut self, cpu: u32, key: Key) -> Option<Ps> {
        let core = self.p.cpu[cpu as usize].0;
        let fills = self.ages.core_fills(usize::from(core));
        let cost = self
            .memo
            .known::<LOAD, STORE>(core, key, &self.holders, fills)?;
        Some(Ps::from(cost))
    }

    /// [`Cache::pass`] of several lines one after another, given as offset from a first line and
    /// words: loads, stores, or of each line a load and then a store. `key` stands for just this
    /// first line and run, on every call.
    pub fn pass_run<const LOAD: bool, const STORE: bool>(
        &mut self,
        cpu: u32,
        key: Key,
        (first, run): (LineId, &[(u8, u8)]),
        mut now: Ps,
    ) -> Ps {
        let at = self.p.cpu[cpu as usize];
        let load = if LOAD { Ps::from(self.p.hit_ps[0]) } else { 0 };
        let store = if STORE { Ps::from(self.p.hit_ps[1]) } else { 0 };
        let mut fills = self.ages.core_fills(usize::from(at.0));
        let mut all_hits = true;
        for (offset, words) in run {
            let line = first + u32::from(*offset);
            let holder = self.holders[line as usize];
            let l = &mut self.lines[line as usize];
            let own = match STORE {
                true => holder == at.0,
                false => holder & !SHARES == at.0,
            };
            if own && fills.wrapping_sub(l.stamp) <= self.p.recent {
                l.ops[0] = l.ops[0].saturating_add(u32::from(LOAD));
                l.ops[1] = l.ops[1].saturating_add(u32::from(STORE));
                l.stamp = fills;
                if STORE {
                    l.written |= words;
                    if l.link != NONE {
                        l.tail = l.tail.max(now + load);
                        all_hits &= !self.shared.line(l.link).swapped;
                    }
                }
                now += load + store;
            } else {
                all_hits = false;
                if LOAD {
                    now = self.slow(at, line, *words, Access::Load, now).done_at;
                }
                if STORE {
                    now = self.pass(cpu, line, *words, Access::Store, now);
                }
                fills = self.ages.core_fills(usize::from(at.0));
            }
        }
        if all_hits
            && let Some(known) = Known::new::<LOAD, STORE>(key, first, run, (load + store) as u32)
            && let Some(uses) = self.memo.learn(at.0, &known, fills)
        {
            count_uses(&mut self.lines, &uses);
        }
        now
    }

    /// [`Cache::pass_run`] of lines that are all loaded, and of which some words, the last of each
    /// triple, are stored to.
    pub fn pass_mixed(
        &mut self,
        cpu: u32,
        key: Key,
        first: LineId,
        run: &[(u8, u8, u8)],
        mut now: Ps,
    ) -> Ps {
        let at = self.p.cpu[cpu as usize];
        let prices = [self.p.hit_ps[0], self.p.hit_ps[0] + self.p.hit_ps[1]];
        let load = Ps::from(self.p.hit_ps[0]);
        let mut fills = self.ages.core_fills(usize::from(at.0));
        let mut all_hits = true;
        for (offset, words, stored) in run {
            let line = first + u32::from(*offset);
            let holder = self.holders[line as usize];
            let l = &mut self.lines[line as usize];
            let stores = *stored != 0;
            let own = holder == at.0 || !stores && holder == at.0 | SHARES;
            if own && fills.wrapping_sub(l.stamp) <= self.p.recent {
                l.ops[0] = l.ops[0].saturating_add(1);
                l.ops[1] = l.ops[1].saturating_add(u32::from(stores));
                l.stamp = fills;
                l.written |= stored;
                if stores && l.link != NONE {
                    l.tail = l.tail.max(now + load);
                    all_hits &= !self.shared.line(l.link).swapped;
                }
                now += Ps::from(prices[usize::from(stores)]);
            } else {
                all_hits = false;
                now = self.slow(at, line, *words, Access::Load, now).done_at;
                if stores {
                    now = self.pass(cpu, line, *stored, Access::Store, now);
                }
                fills = self.ages.core_fills(usize::from(at.0));
            }
        }
        if all_hits
            && let Some(known) = Known::mixed(key, first, run, prices)
            && let Some(uses) = self.memo.learn(at.0, &known, fills)
        {
            count_uses(&mut self.lines, &uses);
        }
        now
    }

    /// Brings the counters of all lines up to date; call it before they are read.
    pub fn settle(&mut self) {
        for uses in self.memo.take() {
            count_uses(&mut self.lines, &uses);
        }
    }
}

fn count_uses(lines: &mut [Line], uses: &Uses) {
    for (i, lane) in uses.lanes.iter().enumerate() {
        if *lane != 0
            && let Some(l) = lines.get_mut(uses.first as usize + i)
        {
            l.ops[0] = l.ops[0].saturating_add(uses.loads);
            if *lane == STORED {
                l.ops[1] = l.ops[1].saturating_add(uses.stores);
            }
        }
    }
}
