//! Touches of lines that several cores share: one function per step of a transaction.

use super::age::Place;
use super::shared::{Copy, L3Copy, NO_OWNER, mark};
use super::{Access, Cache, Cost, MissClass, Ps, Ready, Req};
use crate::machine_file::Distance;

/// Who answers a miss.
#[derive(Clone, Copy)]
struct Supplier {
    latency: Ps,
    distance: Distance,
    transfer: bool,
    llc_miss: bool,
    /// The core whose copy it is, or that has to give it up.
    other: usize,
}

/// The state of the requester's own copy.
pub(super) enum Own {
    /// Current; writes need no transaction if it is also exclusive.
    Valid(Place),
    Miss(MissClass),
}

impl Cache {
    /// One load, store or update of a shared line.
    pub(super) fn coherent(&mut self, r: Req) -> Cost {
        self.give_up_line(r.line);
        let own = self.own_copy(r, self.lines[r.line as usize].link);
        self.coherent_from(r, own)
    }

    /// [`Cache::coherent`], when nobody is noted in the line and the own copy is known.
    pub(super) fn coherent_from(&mut self, r: Req, own: Own) -> Cost {
        let i = self.lines[r.line as usize].link;
        let s = self.shared.line(i);
        let owned = s.exclusive && usize::from(s.owner) == r.core;
        match own {
            Own::Valid(place) if r.access == Access::Load || owned => self.shared_hit(r, i, place),
            Own::Valid(_) if self.far(r) => self.far_atomic(r, i, MissClass::Upgrade),
            Own::Valid(_) if self.joins_pending_store(r, i) => self.p.hit(r.access, r.now),
            Own::Valid(_) => {
                let distance = self.farthest(r.core, i);
                let latency = self.p.transfer[distance as usize];
                let supplier = Supplier {
                    latency,
                    distance,
                    transfer: false,
                    llc_miss: false,
                    other: r.core,
                };
                self.transact(r, i, supplier, MissClass::Upgrade)
            }
            Own::Miss(class) if self.far(r) => self.far_atomic(r, i, class),
            Own::Miss(_) if self.joins_pending_store(r, i) => self.p.hit(r.access, r.now),
            Own::Miss(class) => {
                let mut supplier = self.supplier(r, i);
                if r.access != Access::Load && !self.shared.line(i).exclusive {
                    let far = self.farthest(r.core, i).max(supplier.distance);
                    supplier.latency = supplier.latency.max(self.p.transfer[far as usize]);
                    supplier.distance = far;
                }
                let here = !supplier.transfer && !supplier.llc_miss;
                match r.access == Access::Load && here {
                    true => self.load_from_l3(r, i, supplier, class),
                    false => self.transact(r, i, supplier, class),
                }
            }
        }
    }

    fn own_copy(&mut self, r: Req, i: u32) -> Own {
        let copy = self.shared.copy(i, r.core);
        if copy.version == 0 {
            self.ages.miss(r.core);
            return Own::Miss(MissClass::Cold);
        }
        let s = self.shared.line(i);
        if copy.version == s.version {
            return match self.ages.look(r.core, copy.stamp, r.line) {
                Place::Gone => Own::Miss(MissClass::Capacity),
                place => Own::Valid(place),
            };
        }
        self.ages.refill(r.core, copy.stamp);
        let written = |w: &usize| r.words >> w & 1 == 1 && s.words[*w] > copy.version;
        let used = (0..8).any(|w| written(&w));
        Own::Miss(if used {
            MissClass::TrueSharing
        } else {
            MissClass::FalseSharing
        })
    }

    fn shared_hit(&mut self, r: Req, i: u32, place: Place) -> Cost {
        let mut cost = self.p.hit(r.access, r.now);
        let stamp = self.ages.core_fills(r.core);
        let s = self.shared.line_mut(i);
        let mut extra = self.p.farther(place);
        if r.access != Access::Load {
            s.written(r.words, r.now);
            if r.access == Access::Store {
                extra = 0;
            } else {
                if u32::from(s.thread) != r.thread {
                    extra = extra.max(self.p.smt_extra);
                }
                s.thread = r.thread as u16;
            }
        }
        cost.latency += extra;
        cost.done_at += extra;
        self.keep_line(r.core, r.line, stamp);
        cost
    }

    /// Stores behind an own store that still waits for the line are written together with it.
    fn joins_pending_store(&mut self, r: Req, i: u32) -> bool {
        if r.access != Access::Store {
            return false;
        }
        let Some(version) = self.stores.pending(&r) else {
            return false;
        };
        mark(&mut self.shared.line_mut(i).words, r.words, version);
        true
    }

    /// Distance to the farthest core that may hold a copy.
    fn farthest(&self, core: usize, i: u32) -> Distance {
        let s = self.shared.line(i);
        let span = Distance::ALL[usize::from(s.span)];
        match s.owner {
            NO_OWNER => span.max(Distance::SameDie),
            owner => span.max(self.p.distance(core, usize::from(owner))),
        }
    }

    fn supplier(&mut self, r: Req, i: u32) -> Supplier {
        let llc = self.p.cores[r.core].llc as usize;
        let s = self.shared.line(i);
        let (version, owner, dirty, exclusive) = (s.version, s.owner, s.dirty, s.exclusive);
        let home = usize::from(self.lines[r.line as usize].home);
        let here = Supplier {
            latency: self.p.llc,
            distance: Distance::SameDie,
            transfer: false,
            llc_miss: false,
            other: r.core,
        };
        if owner != NO_OWNER && usize::from(owner) != r.core && exclusive {
            let copy = self.shared.copy(i, usize::from(owner));
            if self.ages.core_has(usize::from(owner), copy.stamp, r.line) {
                return self.supplied_by(r, usize::from(owner), dirty, home);
            }
        }
        let in_l3 = |llc: usize| {
            let c = self.shared.l3(i, llc).copy;
            c.version == version && self.ages.l3_has(llc, c.stamp, r.line)
        };
        if in_l3(llc) {
            return here;
        }
        let owner_llc = match owner {
            NO_OWNER => 0,
            owner => self.p.cores[usize::from(owner)].llc as usize,
        };
        let others = std::iter::once(owner_llc).chain(0..self.p.nr_llcs);
        if let Some(other) = others.into_iter().find(|d| *d != llc && in_l3(*d)) {
            return self.supplied_by(r, self.p.llc_core[other], dirty, home);
        }
        if owner != NO_OWNER && usize::from(owner) != r.core {
            let copy = self.shared.copy(i, usize::from(owner));
            let has = self.ages.core_has(usize::from(owner), copy.stamp, r.line);
            if copy.version == version && has {
                return self.supplied_by(r, usize::from(owner), dirty, home);
            }
        }
        Supplier {
            latency: self.p.dram(r.core, home),
            llc_miss: true,
            ..here
        }
    }

    /// Another core's caches, or the L3 slice beside it.
    fn supplied_by(&self, r: Req, other: usize, dirty: bool, home: usize) -> Supplier {
        let distance = self.p.distance(r.core, other);
        let d = distance as usize;
        let mut latency = match r.access {
            Access::Load if dirty => self.p.load_hitm[d],
            Access::Load => self.p.load_hit[d],
            _ => self.p.transfer[d],
        };
        if distance == Distance::CrossSocket && self.p.node(r.core) == home {
            latency += self.p.home_at_reader;
        }
        let llc_miss = self.p.cores[r.core].llc != self.p.cores[other].llc;
        Supplier {
            latency,
            distance,
            transfer: true,
            llc_miss,
            other,
        }
    }

    /// A load of a line that the own L3 domain has since its last write: the slice answers, and the
    /// line's owner and other domains see nothing of it. If the copy is still on its way, the load
    /// waits for it, unless it comes so much earlier that it is itself the domain's first.
    fn load_from_l3(&mut self, r: Req, i: u32, from: Supplier, class: MissClass) -> Cost {
        let llc = self.p.cores[r.core].llc as usize;
        let ready = self.shared.l3(i, llc).ready;
        if r.now < ready {
            let service = self.p.load_service[from.distance as usize];
            let gap = self.shared.line(i).ring.idle_at(r.now);
            if gap + service < ready {
                return self.transact(r, i, from, class);
            }
        }
        let start = r.now.max(ready);
        let s = self.shared.line_mut(i);
        s.crowd.read();
        s.account(start - r.now, class, false);
        self.count_llc(llc, Access::Load, false);
        self.take_copy(r, i, ready);
        let version = self.shared.line(i).version;
        let ready = Ready {
            start,
            latency: from.latency,
            class,
            transfer: false,
            llc_miss: false,
        };
        self.finish(r, ready, version)
    }

    /// Queues for the line, moves it, and counts.
    fn transact(&mut self, r: Req, i: u32, from: Supplier, class: MissClass) -> Cost {
        let began = self.began;
        let load = r.access == Access::Load;
        match load {
            true => self.shared.line_mut(i).crowd.read(),
            false if r.access >= Access::Rmw => self.join_crowd(r, i),
            false => {}
        }
        let table = if load {
            &self.p.load_service
        } else {
            &self.p.service
        };
        let between_cores = from.transfer || class == MissClass::Upgrade;
        let way = match between_cores {
            true => (self.spread).of(from.latency, from.distance, (r.core, from.other), r.line),
            false => from.latency,
        };
        // Who waits for the line waits for its way: a longer one keeps it busy for longer.
        let service = in_proportion(table[from.distance as usize], way, from.latency);
        let s = self.shared.line_mut(i);
        let mut slowed = service;
        if self.p.has_knee() {
            let wait = s.ring.idle_at(r.now) - r.now;
            slowed = self.p.knee(service, wait, Ps::from(s.mean_service));
            s.note_service(slowed);
        }
        let start = s.ring.work(r.now, slowed, began);
        s.crowd.takes_turn(r.core, start);
        let latency = way + (slowed - service);
        s.account(start - r.now, class, from.transfer);
        let remote = from.transfer && from.distance == Distance::CrossSocket;
        s.stats.remote += u32::from(remote);
        if class != MissClass::Upgrade {
            let llc = self.p.cores[r.core].llc as usize;
            self.count_llc(llc, r.access, from.llc_miss);
        }
        if load {
            self.take_copy(r, i, start + slowed);
        } else {
            self.take_ownership(r, i, start, start + slowed);
        }
        let version = self.shared.line(i).version;
        let (transfer, llc_miss) = (from.transfer, from.llc_miss);
        let mut cost = self.finish(
            r,
            Ready {
                start,
                latency,
                class,
                transfer,
                llc_miss,
            },
            version,
        );
        if r.access >= Access::Rmw {
            cost.done_at = r.now + self.p.rmw_stall(cost.done_at - r.now);
        }
        cost
    }

    /// The requester and its L3 domain have the line from `ready` on.
    fn take_copy(&mut self, r: Req, i: u32, ready: Ps) {
        let llc = self.p.cores[r.core].llc as usize;
        let stamp = self.ages.core_fills(r.core);
        let s = self.shared.line_mut(i);
        let version = s.version;
        let owner = s.owner;
        if owner == NO_OWNER || usize::from(owner) != r.core {
            // A modified line is written back to the owner's L3 as it is handed out.
            if s.exclusive && owner != NO_OWNER {
                s.exclusive = false;
                let d = self.p.cores[usize::from(owner)].llc as usize;
                self.l3_fill(i, d, version, ready);
            }
            let s = self.shared.line_mut(i);
            if owner != NO_OWNER {
                let d = self.p.distance(r.core, usize::from(owner)) as u8;
                s.span = s.span.max(d);
            }
        }
        self.l3_fill(i, llc, version, ready);
        self.keep_line(r.core, r.line, stamp);
    }

    fn take_ownership(&mut self, r: Req, i: u32, start: Ps, ready: Ps) {
        let llc = self.p.cores[r.core].llc as usize;
        let stamp = self.ages.core_fills(r.core);
        let s = self.shared.line_mut(i);
        s.version += 1;
        let version = s.version;
        mark(&mut s.words, r.words, version);
        s.owner = r.core as u16;
        s.exclusive = true;
        s.dirty = true;
        s.span = 0;
        s.thread = r.thread as u16;
        // A failed swap takes the line but writes nothing.
        if r.words != 0 {
            s.last_write = s.last_write.max(start);
        }
        self.l3_fill(i, llc, version, ready);
        self.keep_line(r.core, r.line, stamp);
    }

    pub(super) fn l3_fill(&mut self, i: u32, llc: usize, version: u32, ready: Ps) {
        let old = self.shared.l3(i, llc).copy;
        // A line that was there, even an invalid one, keeps its place in the stack.
        self.ages.l3_touch(llc, old.stamp, old.version == 0);
        let stamp = self.ages.l3_fills(llc);
        let copy = Copy { version, stamp };
        self.shared.l3_set(i, llc, L3Copy { copy, ready });
    }

    fn far(&self, r: Req) -> bool {
        r.access >= Access::Rmw && self.p.far_atomic.is_some()
    }

    /// The update executes at the line's home; nobody owns the line afterwards.
    fn far_atomic(&mut self, r: Req, i: u32, class: MissClass) -> Cost {
        let service = self.p.far_atomic.unwrap_or(0);
        let home = usize::from(self.lines[r.line as usize].home);
        let near_home = |core: &usize| self.p.node(*core) == home;
        let core = (0..self.p.cores.len()).find(near_home).unwrap_or(0);
        let llc = self.p.cores[core].llc as usize;
        let began = self.began;
        let s = self.shared.line_mut(i);
        let start = s.ring.work(r.now, service, began);
        s.crowd.takes_turn(r.core, start);
        s.version += 1;
        let version = s.version;
        mark(&mut s.words, r.words, version);
        s.owner = NO_OWNER;
        s.exclusive = false;
        s.dirty = true;
        s.span = 0;
        if r.words != 0 {
            s.last_write = s.last_write.max(start);
        }
        self.renew_line(r.line);
        self.l3_fill(i, llc, version, start + service);
        self.shared.line_mut(i).account(start - r.now, class, false);
        Cost {
            done_at: start + service,
            wait: start - r.now,
            latency: service,
            class,
            transfer: false,
            llc_miss: false,
            retries: 0,
        }
    }
}

/// `time` of something that takes `mean` on average, where it takes `is`.
#[inline]
fn in_proportion(time: Ps, is: Ps, mean: Ps) -> Ps {
    match is == mean || mean == 0 {
        true => time,
        false => time * is / mean,
    }
}
