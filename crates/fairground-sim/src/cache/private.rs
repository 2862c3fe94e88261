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

#[cfg(test)]
mod tests {
    use super::super::NS;
    use super::*;
    use crate::machine_file::Machine;

    #[test]
    fn a_flushed_core_fetches_from_the_l3_what_it_had_and_once() {
        let machine = Machine::builtin("spr-8480-2s").unwrap();
        let mut cache = Cache::new(&machine, 1);
        let (own, shared) = (cache.alloc_lines(1, 0), cache.alloc_lines(1, 0));
        let mut now = 0;
        let mut load = |cache: &mut Cache, cpu: u32, line: u32| {
            now += 10_000 * NS;
            cache.touch(cpu, line, 1, Access::Load, now)
        };
        cache.touch(1, shared, 1, Access::Store, 0);
        for line in [own, shared] {
            load(&mut cache, 0, line);
            assert_eq!(load(&mut cache, 0, line).class, MissClass::Hit);
        }
        cache.flush(0);
        let llc = (machine.cache_latency_ns(3) * NS as f64) as u64;
        for line in [own, shared] {
            let cost = load(&mut cache, 0, line);
            assert_eq!((cost.class, cost.llc_miss), (MissClass::Capacity, false));
            assert_eq!(cost.latency, llc);
            assert_eq!(load(&mut cache, 0, line).class, MissClass::Hit);
        }
        assert_eq!(load(&mut cache, 1, shared).class, MissClass::Hit);
    }

    /// What a core has written and flushed is answered by its L3.
    #[test]
    fn a_flushed_owner_answers_nobody() {
        let machine = Machine::builtin("spr-8480-2s").unwrap();
        for flushed in [false, true] {
            let mut cache = Cache::new(&machine, 1);
            let line = cache.alloc_lines(1, 0);
            cache.touch(1, line, 1, Access::Load, 0);
            cache.touch(0, line, 1, Access::Store, 1000 * NS);
            if flushed {
                cache.flush(0);
            }
            let cost = cache.touch(1, line, 1, Access::Load, 2000 * NS);
            assert_eq!((cost.transfer, cost.llc_miss), (!flushed, false));
        }
    }
}
