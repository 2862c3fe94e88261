//! Touches of lines that several cores share: one function per step of a transaction.

use super::block::NO_OWNER;
use super::entry::Entry;
use super::kinds::Answer;
use super::kinds::Place;
use super::shared::{Copy, mark};
use super::{Access, Cost, MissClass, Ps, Ready, Req};
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

impl Entry<'_> {
    /// One load, store or update.
    #[inline(never)]
    pub fn coherent(&mut self, r: Req) -> Cost {
        self.give_up();
        let copy = self.copy(r.core);
        let own = match copy.version == self.s.version {
            false => Own::Miss(self.not_current(r, copy)),
            true => match self.ages.look(r.core, copy.stamp, r.line) {
                Place::Gone => Own::Miss(MissClass::Capacity),
                place => Own::Valid(place),
            },
        };
        self.coherent_from(r, own)
    }

    /// [`Entry::coherent`], when nobody is noted in the line and the own copy is known.
    #[inline]
    pub fn coherent_from(&mut self, r: Req, own: Own) -> Cost {
        let owned = self.s.exclusive && usize::from(self.s.owner) == r.core;
        match own {
            Own::Valid(place) if r.access == Access::Load || owned => self.shared_hit(r, place),
            Own::Valid(_) if self.far(r) => self.far_atomic(r, MissClass::Upgrade),
            Own::Miss(class) if self.far(r) => self.far_atomic(r, class),
            _ if self.joins_pending_store(r) => self.p.hit(r.access, r.now),
            Own::Valid(_) => {
                let distance = self.farthest(r.core);
                let latency = self.p.transfer[distance as usize];
                let supplier = Supplier {
                    latency,
                    distance,
                    transfer: false,
                    llc_miss: false,
                    other: r.core,
                };
                self.transact(r, supplier, MissClass::Upgrade)
            }
            Own::Miss(class) if r.access == Access::Load => self.fetch(r, class),
            Own::Miss(class) => {
                let mut supplier = self.supplier(r);
                if !self.s.exclusive {
                    let far = self.farthest(r.core).max(supplier.distance);
                    supplier.latency = supplier.latency.max(self.p.transfer[far as usize]);
                    supplier.distance = far;
                }
                self.transact(r, supplier, class)
            }
        }
    }

    /// A load of a line of which nobody is noted, and that the core does not have.
    #[inline(always)]
    pub fn fetch(&mut self, r: Req, class: MissClass) -> Cost {
        let supplier = self.supplier(r);
        match supplier.transfer || supplier.llc_miss {
            true => self.transact(r, supplier, class),
            false => self.load_from_l3(r, supplier, class),
        }
    }

    /// Why the requester's `copy`, which is not current, is none.
    #[inline]
    pub fn not_current(&mut self, r: Req, copy: Copy) -> MissClass {
        if copy.version == 0 {
            self.ages.miss(r.core);
            return MissClass::Cold;
        }
        self.ages.refill(r.core, copy.stamp);
        let mut words = r.words;
        while words != 0 {
            if self.s.words[words.trailing_zeros() as usize & 7] > copy.version {
                return MissClass::TrueSharing;
            }
            words &= words - 1;
        }
        MissClass::FalseSharing
    }

    fn shared_hit(&mut self, r: Req, place: Place) -> Cost {
        let mut cost = self.p.hit(r.access, r.now);
        let stamp = self.ages.core_fills(r.core);
        let mut extra = self.p.farther(place);
        if r.access != Access::Load {
            self.s.written(r.words, r.now);
            if r.access == Access::Store {
                extra = 0;
            } else {
                if u32::from(self.s.thread) != r.thread {
                    extra = extra.max(self.p.smt_extra);
                }
                self.s.thread = r.thread as u16;
            }
        }
        cost.latency += extra;
        cost.done_at += extra;
        self.keep(r.core, stamp);
        cost
    }

    /// Stores behind an own store that still waits for the line are written together with it.
    #[inline]
    fn joins_pending_store(&mut self, r: Req) -> bool {
        if r.access != Access::Store {
            return false;
        }
        let Some(version) = self.stores.pending(&r) else {
            return false;
        };
        mark(&mut self.s.words, r.words, version);
        true
    }

    /// Distance to the farthest core that may hold a copy.
    #[inline]
    fn farthest(&self, core: usize) -> Distance {
        let span = Distance::ALL[usize::from(self.s.span)];
        match self.s.owner {
            NO_OWNER => span.max(Distance::SameDie),
            owner => span.max(self.p.distance(core, usize::from(owner))),
        }
    }

    #[inline]
    fn supplier(&mut self, r: Req) -> Supplier {
        let llc = self.p.cores[r.core].llc as usize;
        let (version, owner) = (self.s.version, self.s.owner);
        let others = owner != NO_OWNER && usize::from(owner) != r.core;
        if others && self.s.exclusive {
            let copy = self.copy(usize::from(owner));
            if self.ages.core_has(usize::from(owner), copy.stamp, r.line) {
                return self.supplied_by(r, usize::from(owner));
            }
        }
        let in_l3 = |entry: &Self, llc: usize| {
            let c = entry.l3(llc).copy;
            c.version == version && entry.ages.l3_has(llc, c.stamp, r.line)
        };
        let here = Supplier {
            latency: self.p.llc,
            distance: Distance::SameDie,
            transfer: false,
            llc_miss: false,
            other: r.core,
        };
        if in_l3(self, llc) {
            return here;
        }
        let owner_llc = match owner {
            NO_OWNER => 0,
            owner => self.p.cores[usize::from(owner)].llc as usize,
        };
        let mut llcs = std::iter::once(owner_llc).chain(0..self.p.nr_llcs);
        if let Some(other) = llcs.find(|d| *d != llc && in_l3(self, *d)) {
            return self.supplied_by(r, self.p.llc_core[other]);
        }
        if others {
            let copy = self.copy(usize::from(owner));
            let has = self.ages.core_has(usize::from(owner), copy.stamp, r.line);
            if copy.version == version && has {
                return self.supplied_by(r, usize::from(owner));
            }
        }
        Supplier {
            latency: self.p.dram(r.core, usize::from(self.l.home)),
            llc_miss: true,
            ..here
        }
    }

    /// Another core's caches, or the L3 slice beside it.
    #[inline]
    fn supplied_by(&self, r: Req, other: usize) -> Supplier {
        let distance = self.p.distance(r.core, other);
        let d = distance as usize;
        let mut latency = match r.access {
            Access::Load if self.s.dirty => self.p.load_hitm[d],
            Access::Load => self.p.load_hit[d],
            _ => self.p.transfer[d],
        };
        let home = usize::from(self.l.home);
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
    #[inline]
    fn load_from_l3(&mut self, r: Req, from: Supplier, class: MissClass) -> Cost {
        let llc = self.p.cores[r.core].llc as usize;
        let ready = self.l3(llc).ready;
        if r.now < ready {
            let service = self.p.load_service[from.distance as usize];
            if self.s.ring.idle_at(r.now) + service < ready {
                return self.transact(r, from, class);
            }
        }
        let start = r.now.max(ready);
        self.s.crowd.read();
        self.s.account(start - r.now, class, false);
        self.count_llc(llc, Access::Load, Answer::Here);
        self.take_copy(r, ready);
        let ready = Ready {
            start,
            latency: from.latency,
            class,
            transfer: false,
            llc_miss: false,
        };
        self.finish(r, ready)
    }

    /// Queues for the line, moves it, and counts.
    #[inline(never)]
    fn transact(&mut self, r: Req, from: Supplier, class: MissClass) -> Cost {
        let load = r.access == Access::Load;
        match load {
            true => self.s.crowd.read(),
            false if r.access >= Access::Rmw => self.s.crowd.ask(r.core, r.words, self.began),
            false => {}
        }
        let table = match load {
            true => &self.p.load_service,
            false => &self.p.service,
        };
        let between_cores = from.transfer || class == MissClass::Upgrade;
        let way = match between_cores {
            true => (self.spread).of(from.latency, from.distance, (r.core, from.other), r.line),
            false => from.latency,
        };
        let service = table[from.distance as usize];
        let s = &mut *self.s;
        let mut slowed = service;
        if self.p.has_knee() {
            let wait = s.ring.idle_at(r.now) - r.now;
            slowed = self.p.knee(service, wait, Ps::from(s.mean_service));
            s.note_service(slowed);
        }
        let start = s.ring.work(r.now, slowed, self.began);
        s.crowd
            .takes_turn(r.core, start, self.p.holds(way + slowed - service));
        s.account(start - r.now, class, from.transfer);
        let remote = from.transfer && from.distance == Distance::CrossSocket;
        s.stats.remote += u32::from(remote);
        if class != MissClass::Upgrade {
            let llc = self.p.cores[r.core].llc as usize;
            let by = match (from.llc_miss, from.transfer) {
                (false, _) => Answer::Here,
                (true, true) => Answer::OtherCaches,
                (true, false) => Answer::Memory,
            };
            self.count_llc(llc, r.access, by);
        }
        if load {
            self.take_copy(r, start + slowed);
        } else {
            self.take_ownership(r, start, start + slowed);
        }
        let ready = Ready {
            start,
            latency: way + (slowed - service),
            class,
            transfer: from.transfer,
            llc_miss: from.llc_miss,
        };
        let mut cost = self.finish(r, ready);
        if r.access >= Access::Rmw {
            cost.done_at = r.now + self.p.rmw_stall(cost.done_at - r.now);
        }
        cost
    }

    /// The requester and its L3 domain have the line from `ready` on.
    #[inline]
    fn take_copy(&mut self, r: Req, ready: Ps) {
        let llc = self.p.cores[r.core].llc as usize;
        let stamp = self.ages.core_fills(r.core);
        let (version, owner) = (self.s.version, self.s.owner);
        if owner != NO_OWNER && usize::from(owner) != r.core {
            // A modified line is written back to the owner's L3 as it is handed out.
            if self.s.exclusive {
                self.s.exclusive = false;
                let d = self.p.cores[usize::from(owner)].llc as usize;
                self.l3_fill(d, version, ready);
            }
            let d = self.p.distance(r.core, usize::from(owner)) as u8;
            self.s.span = self.s.span.max(d);
        }
        self.l3_fill(llc, version, ready);
        self.keep(r.core, stamp);
    }

    #[inline]
    fn take_ownership(&mut self, r: Req, start: Ps, ready: Ps) {
        let llc = self.p.cores[r.core].llc as usize;
        let stamp = self.ages.core_fills(r.core);
        let s = &mut *self.s;
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
        self.l3_fill(llc, version, ready);
        self.keep(r.core, stamp);
    }

    #[inline]
    fn far(&self, r: Req) -> bool {
        r.access >= Access::Rmw && self.p.far_atomic.is_some()
    }

    /// The update executes at the line's home; nobody owns the line afterwards.
    #[inline(never)]
    fn far_atomic(&mut self, r: Req, class: MissClass) -> Cost {
        let service = self.p.far_atomic.unwrap_or(0);
        let home = usize::from(self.l.home);
        let near_home = |core: &usize| self.p.node(*core) == home;
        let core = (0..self.p.cores.len()).find(near_home).unwrap_or(0);
        let llc = self.p.cores[core].llc as usize;
        let s = &mut *self.s;
        let start = s.ring.work(r.now, service, self.began);
        s.crowd.takes_turn(r.core, start, 0);
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
        self.renew();
        self.l3_fill(llc, version, start + service);
        self.s.account(start - r.now, class, false);
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
