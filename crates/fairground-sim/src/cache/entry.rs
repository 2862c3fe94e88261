//! A line that several cores have touched, with all that a touch of it needs, found once.
//!
//! A transaction goes to the line, its record, the copies of two cores and two last-level caches,
//! the ages of what these hold. Each of them is a miss of this computer's caches, so what can be
//! found without the other is found at the beginning.

use super::age::Ages;
use super::block::SHARES;
use super::kinds::Answer;
use super::params::Params;
use super::shared::{Copy, L3Copy, Shared, SharedRecord};
use super::spread::Spread;
use super::store_buffer::StoreBuffers;
use super::tops::Lane;
use super::{Access, Cache, Cost, DomainStats, Line, LineId, MissClass, NONE, Ps, Ready, Req};

pub(super) struct Entry<'a> {
    pub p: &'a Params,
    pub spread: &'a Spread,
    pub ages: &'a mut Ages,
    pub stores: &'a mut StoreBuffers,
    domains: &'a mut [DomainStats],
    load_misses: &'a mut u64,
    /// When the step that is simulated began.
    pub began: Ps,
    pub line: LineId,
    pub l: &'a mut Line,
    pub top: Lane<'a>,
    pub s: &'a mut Shared,
    rows: &'a mut [Vec<Copy>],
    l3: &'a mut [L3Copy],
}

impl Cache {
    /// A line that has a record.
    #[inline(always)]
    pub(super) fn entry(&mut self, line: LineId) -> Entry<'_> {
        let l = &mut self.lines[line as usize];
        debug_assert_ne!(l.link, NONE, "one core only has touched it");
        let SharedRecord { s, rows, l3 } = self.shared.record(l.link);
        Entry {
            p: &self.p,
            spread: &self.spread,
            ages: &mut self.ages,
            stores: &mut self.stores,
            domains: &mut self.domains,
            load_misses: &mut self.load_misses,
            began: self.began,
            line,
            l,
            top: self.tops.lane(line),
            s,
            rows,
            l3,
        }
    }

    /// A second core comes to a line: it has a record from now on.
    #[cold]
    #[inline(never)]
    pub(super) fn share(&mut self, line: LineId) {
        let Some((holder, written)) = self.tops.lane(line).give_up() else {
            debug_assert!(false, "nobody has touched it");
            return;
        };
        let core = usize::from(holder & !SHARES);
        let l = &mut self.lines[line as usize];
        let llc = self.p.cores[core].llc as usize;
        l.link = self.shared.adopt(l, written != 0, holder, llc);
        l.tail = 0;
    }
}

impl Entry<'_> {
    /// A touch that is no hit of the usual kinds.
    #[inline]
    pub fn touch(&mut self, mut r: Req) -> Cost {
        if r.access == Access::Load {
            return self.load(r);
        }
        // Beside what transactions count, so that hits' counters need not be fetched.
        let stats = &mut self.s.stats;
        let n = match r.access {
            Access::Store => &mut stats.writes,
            _ => &mut stats.rmws,
        };
        *n = n.wrapping_add(1);
        if self.s.crowd.is_one() {
            r.now = self.see_crowd(r.core, r.access, r.now);
        }
        match r.access {
            Access::CasLoop => self.cas_loop(r),
            _ => self.coherent(r),
        }
    }

    /// Writes what hits have noted in the line into the record; nobody is noted there then.
    #[inline]
    pub fn give_up(&mut self) {
        let Some((holder, written)) = self.top.give_up() else {
            return;
        };
        if written != 0 {
            self.s.written(written, self.l.tail);
        }
        let copy = Copy {
            version: self.s.version,
            stamp: self.l.stamp,
        };
        self.set_copy(usize::from(holder & !SHARES), copy);
        self.l.tail = 0;
    }

    /// The requester has the line current now, as of `stamp`: noted in the line, for hits, instead
    /// of in the record.
    #[inline]
    pub fn keep(&mut self, core: usize, stamp: u32) {
        debug_assert_eq!(self.top.holder(), super::block::UNTOUCHED);
        self.renew();
        if self.s.crowd.is_one() {
            let version = self.s.version;
            return self.set_copy(core, Copy { version, stamp });
        }
        let exclusive = self.s.exclusive && usize::from(self.s.owner) == core;
        let holder = core as u16 | if exclusive { 0 } else { SHARES };
        self.top.note(holder, stamp);
        (self.l.stamp, self.l.tail) = (stamp, 0);
    }

    /// The version and the row of the record have changed, or whether the line is crowded.
    #[inline]
    pub fn renew(&mut self) {
        (self.l.version, self.l.row) = (self.s.version, self.s.calm_row());
    }

    /// The core's copy, valid or not; version 0 if it never had one.
    #[inline]
    pub fn copy(&self, core: usize) -> Copy {
        if self.s.row != NONE {
            return self.rows[core][self.s.row as usize];
        }
        let at = self.s.inline_place(core);
        at.map_or(Copy::default(), |at| self.s.inline[at])
    }

    /// The core's copy has this stamp from now on.
    #[inline]
    pub fn stamp_copy(&mut self, core: usize, stamp: u32) {
        if self.s.row != NONE {
            self.rows[core][self.s.row as usize].stamp = stamp;
        } else if let Some(at) = self.s.inline_place(core) {
            self.s.inline[at].stamp = stamp;
        }
    }

    #[inline]
    pub fn set_copy(&mut self, core: usize, copy: Copy) {
        if self.s.row != NONE {
            self.rows[core][self.s.row as usize] = copy;
        } else if let Some(at) = self.s.inline_place(core) {
            self.s.inline[at] = copy;
        } else {
            self.s.add_copy(self.rows, core, copy);
        }
    }

    #[inline]
    pub fn l3(&self, llc: usize) -> L3Copy {
        self.l3[llc]
    }

    /// The line is in an L3 domain, from `ready` on.
    #[inline]
    pub fn l3_fill(&mut self, llc: usize, version: u32, ready: Ps) {
        let at = &mut self.l3[llc];
        // A line that was there, even an invalid one, keeps its place in the stack.
        self.ages.l3_touch(llc, at.copy.stamp, at.copy.version == 0);
        let stamp = self.ages.l3_fills(llc);
        *at = L3Copy {
            copy: Copy { version, stamp },
            ready,
        };
    }

    /// What the core pays for a miss that starts at `m.start`.
    #[inline]
    pub fn finish(&mut self, r: Req, m: Ready) -> Cost {
        m.finish(self.p, self.stores, r, self.s.version)
    }

    #[inline]
    pub fn count_llc(&mut self, llc: usize, access: Access, from: Answer) {
        *self.load_misses += self.domains[llc].count(access, from);
    }

    /// A load that hits, in `place` of the core's caches.
    #[inline]
    pub fn load_hit(&mut self, r: Req, place: super::kinds::Place) -> Cost {
        self.top.count(1, 0);
        let mut cost = self.p.hit(r.access, r.now);
        cost.latency += self.p.farther(place);
        cost.done_at += self.p.farther(place);
        cost
    }
}

impl Ready {
    /// What the core pays for it; a store writes `version`.
    #[inline]
    pub(super) fn finish(
        self,
        p: &Params,
        stores: &mut StoreBuffers,
        r: Req,
        version: u32,
    ) -> Cost {
        let wait = self.start - r.now;
        let mut latency = self.latency;
        let hit = Ps::from(p.hit_ps[r.access as usize]);
        let done_at = match r.access {
            Access::Load => r.now + p.load_stall(wait + latency),
            Access::Store => stores.push(&r, version, self.start + latency) + hit,
            Access::Rmw | Access::CasLoop => {
                // A hand-over is measured with the update inside; a fetch from L3 or memory is not.
                if !self.transfer && self.class != MissClass::Upgrade {
                    latency += hit;
                }
                self.start + latency
            }
        };
        Cost {
            done_at,
            wait,
            latency,
            class: self.class,
            transfer: self.transfer,
            llc_miss: self.llc_miss,
            retries: 0,
        }
    }
}
