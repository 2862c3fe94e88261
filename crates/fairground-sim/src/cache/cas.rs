//! Compare-and-swap loops: a load, a swap, and the swap again while others were quicker.
//!
//! Nothing here is fitted: the cost follows from two transactions per attempt and from the writes
//! that are already booked between them. A failed `cmpxchg` brings the new value, so the next
//! attempt needs no load; but it failed because others are at the line, and whoever waits gets
//! it first: the next attempt is a transaction again. That the thief writes once more in
//! between is not seen, so the cost under heavy contention is a lower bound.

use super::{Access, Cache, Cost, Req};

/// Attempts after which a loop is taken to succeed; bounds the host's work, not reached in tests.
const ATTEMPTS: u8 = 16;

impl Cache {
    pub(super) fn cas_loop(&mut self, r: Req) -> Cost {
        self.give_up_line(r.line);
        let i = self.lines[r.line as usize].link;
        self.shared.line_mut(i).swapped = true;
        let s = self.shared.line(i);
        let owned = s.exclusive && usize::from(s.owner) == r.core;
        if owned && self.shared.copy(i, r.core).version == s.version {
            return self.coherent(r);
        }
        let mut total = self.coherent(Req {
            access: Access::Load,
            ..r
        });
        // The swap needs the loaded value, so nothing of the load is hidden.
        let mut now = r.now + total.wait + total.latency;
        let mut sampled = r.now + total.wait;
        loop {
            let loser = self.shared.line(i).owner;
            let quicker = self.shared.line(i).last_write;
            let mut swap = Req {
                access: Access::Rmw,
                now,
                ..r
            };
            let start = self.swap_start(&swap, i);
            let fails = (sampled..start).contains(&quicker) && total.retries < ATTEMPTS;
            if fails {
                swap.words = 0;
            }
            let cost = self.coherent(swap);
            total.wait += cost.wait;
            total.latency += cost.latency;
            total.transfer |= cost.transfer;
            total.llc_miss |= cost.llc_miss;
            if total.class == super::MissClass::Hit {
                total.class = cost.class;
            }
            if !fails {
                total.done_at = cost.done_at;
                return total;
            }
            total.retries += 1;
            self.shared.line_mut(i).stats.cas_failures += 1;
            self.lose_again(r, i, loser);
            sampled = start;
            now = cost.done_at;
        }
    }

    /// After a failed swap the line goes back to where it came from.
    fn lose_again(&mut self, r: Req, i: u32, owner: u16) {
        if usize::from(owner) != r.core {
            self.give_up_line(r.line);
            let s = self.shared.line_mut(i);
            s.version += 1;
            super::shared::mark(&mut s.words, r.words, s.version);
            s.owner = owner;
            self.renew_line(r.line);
        }
    }

    /// When the swap would get the line.
    fn swap_start(&self, r: &Req, i: u32) -> super::Ps {
        let s = self.shared.line(i);
        if s.exclusive && usize::from(s.owner) == r.core {
            return r.now;
        }
        s.ring.idle_at(r.now)
    }
}
