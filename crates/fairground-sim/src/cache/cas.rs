//! Compare-and-swap loops: a load, a swap, and the swap again while others were quicker.
//!
//! Where it is known how long a core has a line at least, load and swap of a line that it does not
//! have are one transaction: the swap's address is known while the load waits, so the core has
//! asked for the line as its own when it comes, and swaps before it has to give it up. Measured on
//! two CPUs of Sapphire Rapids (`cas_add_extra_ns` and `atomic_add_extra_ns` of
//! `machines/calibration/contended-ops.toml`): with work in between, another's updates make a loop
//! as much longer as an update. Such a loop never fails here, though in a tight one some do.
//!
//! Elsewhere they are two, and the cost follows from two transactions per attempt and from the
//! writes that are already booked between them. A failed `cmpxchg` brings the new value, so the
//! next attempt needs no load; but it failed because others are at the line, and whoever waits gets
//! it first: the next attempt is a transaction again. That the thief writes once more in between is
//! not seen, so the cost under heavy contention is a lower bound.

use super::entry::Entry;
use super::shared::mark;
use super::{Access, Cost, MissClass, Ps, Req};

/// Attempts after which a loop is taken to succeed; bounds the host's work, not reached in tests.
const ATTEMPTS: u8 = 16;

impl Entry<'_> {
    pub fn cas_loop(&mut self, r: Req) -> Cost {
        self.give_up();
        self.s.swapped = true;
        let owned = self.s.exclusive && usize::from(self.s.owner) == r.core;
        if owned && self.copy(r.core).version == self.s.version {
            return self.coherent(r);
        }
        if self.p.has_tenure() && self.copy(r.core).version != self.s.version {
            return self.coherent(Req {
                access: Access::Rmw,
                ..r
            });
        }
        let mut total = self.coherent(Req {
            access: Access::Load,
            ..r
        });
        // The swap needs the loaded value, so nothing of the load is hidden.
        let mut now = r.now + total.wait + total.latency;
        let mut sampled = r.now + total.wait;
        loop {
            let (loser, quicker) = (self.s.owner, self.s.last_write);
            let mut swap = Req {
                access: Access::Rmw,
                now,
                ..r
            };
            let start = self.swap_start(&swap);
            let fails = (sampled..start).contains(&quicker) && total.retries < ATTEMPTS;
            if fails {
                swap.words = 0;
            }
            let cost = self.coherent(swap);
            total.wait += cost.wait;
            total.latency += cost.latency;
            total.transfer |= cost.transfer;
            total.llc_miss |= cost.llc_miss;
            if total.class == MissClass::Hit {
                total.class = cost.class;
            }
            if !fails {
                total.done_at = cost.done_at;
                return total;
            }
            total.retries += 1;
            self.s.stats.cas_failures += 1;
            self.lose_again(r, loser);
            sampled = start;
            now = cost.done_at;
        }
    }

    /// After a failed swap the line goes back to where it came from.
    fn lose_again(&mut self, r: Req, owner: u16) {
        if usize::from(owner) != r.core {
            self.give_up();
            let s = &mut *self.s;
            s.version += 1;
            mark(&mut s.words, r.words, s.version);
            s.owner = owner;
            self.renew();
        }
    }

    /// When the swap would get the line.
    fn swap_start(&self, r: &Req) -> Ps {
        if self.s.exclusive && usize::from(self.s.owner) == r.core {
            return r.now;
        }
        self.s.ring.idle_at(r.now)
    }
}
