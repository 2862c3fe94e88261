//! Touches of lines that one core only has touched.

use super::block::UNTOUCHED;
use super::kinds::Answer;
use super::kinds::Place;
use super::{Access, Cache, Cost, MissClass, Ready, Req};

impl Cache {
    /// A line that no other core has touched.
    pub(super) fn private(&mut self, r: Req) -> Cost {
        let llc = self.p.cores[r.core].llc as usize;
        let l = &mut self.lines[r.line as usize];
        let cold = self.tops.holder(r.line) == UNTOUCHED;
        let place = match cold {
            true => self.ages.miss(r.core),
            false => self.ages.look(r.core, l.stamp, r.line),
        };
        let other_thread = !cold && r.access >= Access::Rmw && l.thread() != r.thread;
        l.stamp = self.ages.core_fills(r.core);
        let mut top = self.tops.lane(r.line);
        top.note(r.core as u16, l.stamp);
        if r.access != Access::Load {
            top.write(r.words);
        }
        if r.access >= Access::Rmw {
            l.set_thread(r.thread);
        }
        if place != Place::Gone {
            let mut cost = self.p.hit(r.access, r.now);
            let extra = match place {
                Place::L2 => self.p.farther(place),
                _ if other_thread => self.p.smt_extra,
                _ => 0,
            };
            cost.latency += extra;
            cost.done_at += if r.access == Access::Store { 0 } else { extra };
            return cost;
        }
        let in_l3 = !cold && self.ages.l3_has(llc, l.l3_stamp(), r.line);
        self.ages.l3_touch(llc, l.l3_stamp(), cold);
        l.set_l3_stamp(self.ages.l3_fills(llc));
        if !cold {
            l.count_capacity_miss();
        }
        let home = usize::from(l.home);
        let latency = if in_l3 {
            self.p.llc
        } else {
            self.p.dram(r.core, home)
        };
        let class = if cold {
            MissClass::Cold
        } else {
            MissClass::Capacity
        };
        let by = match in_l3 {
            true => Answer::Here,
            false => Answer::Memory,
        };
        self.load_misses += self.domains[llc].count(r.access, by);
        let ready = Ready {
            start: r.now,
            latency,
            class,
            transfer: false,
            llc_miss: !in_l3,
        };
        ready.finish(&self.p, &mut self.stores, r, 1)
    }
}
