//! The identification of IP packets.
//!
//! A packet of a connected socket is numbered by a word of that socket. All others are numbered by
//! a counter that the kernel finds by a hash of both addresses and the protocol, so those of all
//! unconnected UDP sockets of 127.0.0.1 share one word: an atomic update of one line for each
//! packet of the whole machine. Once a tick the first sender also notes the time, by which the
//! counter jumps on; the others read it.
//!
//! Sources: "From IP ID to Device ID and KASLR Bypass" (Klein, Pinkas; USENIX Security 2019),
//! section on Linux; changelogs of "inetpeer: get rid of ip_id_count" (3.16) and "ip: make IP
//! identifiers less predictable" (3.16). Seen on Linux 6.18: datagrams that two unconnected sockets
//! send in turn are numbered in one row, those of a connected one in a row of its own.

use super::Sim;
use crate::cache::{Access, Cache, LineId};
use crate::costs::KernelOp;

/// Lines of the counter of 127.0.0.1 to 127.0.0.1 by UDP.
#[derive(Debug, Default)]
pub struct IpIdents {
    lines: Option<Lines>,
}

#[derive(Debug)]
struct Lines {
    /// The counter.
    ident: LineId,
    /// When it was last made to jump.
    stamp: LineId,
    /// When it last jumped, in ticks.
    jiffies: u64,
}

impl IpIdents {
    /// The counter, where there are unconnected sockets that use it.
    pub fn new(used: bool, cache: &mut Cache) -> Self {
        let lines = used.then(|| Lines {
            ident: cache.alloc_named(("ip_idents", "counter"), 1, 0),
            stamp: cache.alloc_named(("ip_tstamps", "jiffies"), 1, 0),
            jiffies: 0,
        });
        Self { lines }
    }
}

impl Sim<'_> {
    /// Numbers a packet of a UDP socket. The counter of a connected socket is on the line of its
    /// sender's side, which is charged with the packet.
    pub(super) fn number_packet(&mut self, op: KernelOp, connected: bool) {
        let jiffies = self.jiffies;
        let Some(lines) = self.ip_idents.lines.as_mut().filter(|_| !connected) else {
            return;
        };
        let (ident, stamp) = (lines.ident, lines.stamp);
        let passed = std::mem::replace(&mut lines.jiffies, jiffies) != jiffies;
        self.touch(op, stamp, 1, Access::Load);
        if passed {
            self.touch(op, stamp, 1, Access::Rmw);
        }
        self.touch(op, ident, 1, Access::Rmw);
    }
}
