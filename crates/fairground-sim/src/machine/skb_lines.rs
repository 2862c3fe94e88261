//! The lines of a message in a socket: its descriptor (`struct sk_buff`), its data with the
//! `skb_shared_info` behind them, and who fetches which of them.
//!
//! There are as many lines as there are messages on their way, in the memory that the slab
//! allocator reuses, so a long queue leaves the first caches, and what one CPU writes another
//! fetches. Stores are not waited for by themselves; but the atomic update that follows (the count
//! of the sender's bytes, a lock) waits until they have all come, which they do at once.

use super::Sim;
use super::slab::{Kind, Object};
use crate::cache::{Access, LineId};
use crate::costs::KernelOp;

/// Lines of a `struct sk_buff`: links of the queue and the socket; lengths, destructor and the end
/// of the control block; offsets of headers; pointers to the data, and the reference count.
const LINKS: u32 = 0;
const LENGTHS: u32 = 1;
const HEADERS: u32 = 2;
const POINTERS: u32 = 3;
const DESCRIPTOR: u32 = 4;
/// Bytes of a `skb_shared_info`, which ends the data.
const SHARED_INFO: u32 = 320;
/// Where the clone is in an object of two descriptors, and where their count is, in lines. The
/// clone's own lines begin in the middle of one.
const CLONE: u32 = 3;
const CLONES: u32 = 7;
/// All words of a line.
const ALL: u8 = 0xff;

/// A message in a socket.
#[derive(Clone, Copy, Debug)]
pub struct Skb {
    head: Object,
    data: Object,
    /// Bytes not yet read.
    pub left: u32,
}

impl Skb {
    /// First line of the descriptor that the receiver has.
    fn descriptor(&self) -> LineId {
        match self.head.kind {
            Kind::SkbFclone => self.head.line + CLONE,
            _ => self.head.line,
        }
    }

    fn shared_info(&self) -> LineId {
        self.data.line + self.linear() / 64
    }

    /// Bytes of data beside the `skb_shared_info`.
    fn linear(&self) -> u32 {
        self.data.kind.bytes() - SHARED_INFO
    }

    /// Lines of `bytes` of the message.
    fn lines(&self, bytes: u32) -> impl Iterator<Item = LineId> + use<> {
        let first = self.data.line;
        first..first + bytes.min(self.linear()).div_ceil(64).max(1)
    }
}

impl Sim<'_> {
    /// A new message of `bytes`: a descriptor and memory for the data, both written at their ends.
    /// The atomic update of the sender's count waits for that.
    pub(super) fn alloc_skb(
        &mut self,
        op: KernelOp,
        (head, data): (Kind, Kind),
        bytes: u32,
        charged: bool,
    ) -> Skb {
        let head = self.alloc_object(op, head, charged);
        let data = self.alloc_object(op, data, charged);
        let skb = Skb {
            head,
            data,
            left: bytes,
        };
        let mut lines: Vec<LineId> = (head.line..head.line + DESCRIPTOR).collect();
        if head.kind == Kind::SkbFclone {
            lines.extend(head.line + DESCRIPTOR..=head.line + CLONES);
        }
        lines.push(skb.shared_info());
        self.host.copy_lines(op, lines.into_iter(), Access::Store);
        skb
    }

    /// The message's `bytes` and headers are written; the lock of the receiver waits for that.
    pub(super) fn fill_skb(&mut self, op: KernelOp, skb: &Skb, bytes: u32) {
        self.host.copy_lines(op, skb.lines(bytes), Access::Store);
    }

    /// The message goes behind `last` in a queue.
    pub(super) fn link_skb(&mut self, op: KernelOp, last: Option<&Skb>) {
        if let Some(last) = last {
            self.touch(op, last.descriptor() + LINKS, 1, Access::Store);
        }
    }

    /// The receiver looks at the message and copies `bytes` of it.
    pub(super) fn read_skb(&mut self, op: KernelOp, skb: &Skb, bytes: u32, headers: bool) {
        let at = skb.descriptor();
        self.touch(op, at + LENGTHS, ALL, Access::Load);
        if headers {
            self.touch(op, at + HEADERS, ALL, Access::Load);
        }
        self.touch(op, at + POINTERS, ALL, Access::Load);
        if skb.head.kind == Kind::SkbFclone {
            // Its bytes are in a page that the shared information names.
            self.touch(op, skb.shared_info(), ALL, Access::Load);
        }
        self.host.copy_lines(op, skb.lines(bytes), Access::Load);
    }

    /// The message leaves its queue, of which `next` is the first now: links of both are written,
    /// and the release of the queue's lock waits for that.
    pub(super) fn unlink_skb(&mut self, op: KernelOp, skb: &Skb, next: Option<&Skb>) {
        let own = skb.descriptor();
        let next = next.map(|n| n.descriptor() + LINKS);
        let lines = [own + LENGTHS, own + LINKS].into_iter().chain(next);
        self.host.copy_lines(op, lines, Access::Store);
    }

    /// The message's memory goes back.
    pub(super) fn free_skb(&mut self, op: KernelOp, skb: &Skb) {
        self.touch(op, skb.shared_info(), ALL, Access::Load);
        if skb.head.kind == Kind::SkbFclone {
            // Original and clone share the data; each gives up its part, in one place here.
            self.touch(op, skb.shared_info(), 1 << 4, Access::Rmw);
            self.touch(op, skb.head.line + CLONES, 1, Access::Rmw);
        }
        self.free_object(op, skb.data);
        self.free_object(op, skb.head);
    }
}
