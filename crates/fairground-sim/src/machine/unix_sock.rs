//! Unix stream sockets: who sleeps, who is woken, and which lines of the two sockets move.
//!
//! The rules are those of [`ChanKind::Socket`]; the lines of the messages are in `skb_lines.rs`.

use std::collections::VecDeque;

use fairground::task::WakeKind;
use fairground::value::TaskId;

use super::Sim;
use super::chan_lines::End;
use super::skb_lines::Skb;
use super::slab::Kind;
use super::task::{Stage, Wait};
use crate::cache::{Access, Cache, LineId, Ps, Resource};
use crate::costs::KernelOp;
use crate::host::Place;
use crate::workload::program::ChanKind;

const OP_SEND: KernelOp = KernelOp::SocketSend;
const OP_RECV: KernelOp = KernelOp::SocketRecv;

/// Lines of the two sockets, from the first: of the sender the count of its bytes in flight and its
/// wait queue; of the receiver the queue with its lock, the mutex among readers, the lock of the
/// socket's state, the wait queue.
const IN_FLIGHT: u32 = 0;
const WRITERS: u32 = 1;
const QUEUE: u32 = 2;
const READ_LOCK: u32 = 3;
const STATE: u32 = 4;
const READERS: u32 = 5;
const LINES: u32 = 6;

/// What one direction of a pair is beyond the rules of a channel.
#[derive(Debug)]
pub struct UnixLines {
    first: LineId,
    skbs: VecDeque<Skb>,
    /// The lock of the receiver's state, a spin lock.
    state: Resource,
    held_since: Ps,
}

impl UnixLines {
    /// Of an untouched pair; a pipe has none.
    pub fn new(kind: ChanKind, cache: &mut Cache) -> Option<Box<Self>> {
        let ChanKind::Socket { .. } = kind else {
            return None;
        };
        Some(Box::new(Self {
            first: cache.alloc_lines(LINES, 0),
            skbs: VecDeque::new(),
            state: Resource::default(),
            held_since: 0,
        }))
    }
}

impl Sim<'_> {
    fn unix(&mut self, c: usize) -> &mut UnixLines {
        let unix = self.chans[c].unix.as_mut();
        unix.expect("a socket has the lines of one")
    }

    fn unix_touch(&mut self, c: usize, op: KernelOp, line: u32, access: Access) {
        let line = self.unix(c).first + line;
        self.touch(op, line, 1, access);
    }

    /// `send` of the running task.
    pub(super) fn send_unix(&mut self, cpu: u32, id: TaskId, chan: u32, bytes: u32) {
        let c = chan as usize;
        self.enter_syscall(id, OP_SEND);
        let stage = self.tasks[id.idx()].stage;
        if stage == Stage::Start {
            self.use_file(id, c, End::Write, OP_SEND);
        }
        self.unix_touch(c, OP_SEND, IN_FLIGHT, Access::Load);
        if self.chans[c].is_full() {
            self.unix_touch(c, KernelOp::WaitQueue, WRITERS, Access::Rmw);
            self.chans[c].writers.push_back(id);
            return self.block(cpu, id, Wait::Room(chan), Stage::Again);
        }
        let data = Kind::of_bytes(ChanKind::socket_head(bytes));
        let skb = self.alloc_skb(OP_SEND, (Kind::SkbHead, data), bytes, true);
        self.unix_touch(c, OP_SEND, IN_FLIGHT, Access::Rmw);
        self.fill_skb(OP_SEND, &skb, bytes);
        self.copy_unix(c, OP_SEND, bytes, Access::Store);
        self.lock_state(c, OP_SEND);
        self.unix_touch(c, OP_SEND, QUEUE, Access::Rmw);
        let last = self.unix(c).skbs.back().copied();
        self.link_skb(OP_SEND, last.as_ref());
        self.unix(c).skbs.push_back(skb);
        let was_empty = self.chans[c].is_empty();
        self.chans[c].put(bytes, stage);
        self.unlock_state(c, OP_SEND);
        self.wake_unix_readers(cpu, c, was_empty);
        // Whoever waits for room behind a writer that had to wait may find some.
        if stage == Stage::Again && !self.chans[c].is_full() {
            self.wake_unix_writer(cpu, c);
        }
        self.use_file(id, c, End::Write, OP_SEND);
        self.advance(id);
    }

    /// `recv` of the running task.
    pub(super) fn recv_unix(&mut self, cpu: u32, id: TaskId, chan: u32, bytes: u32) {
        let c = chan as usize;
        self.enter_syscall(id, OP_RECV);
        if self.tasks[id.idx()].stage == Stage::Start {
            self.tasks[id.idx()].left = bytes;
            self.use_file(id, c, End::Read, OP_RECV);
        }
        self.unix_touch(c, OP_RECV, READ_LOCK, Access::Rmw);
        self.lock_state(c, OP_RECV);
        self.unix_touch(c, OP_RECV, QUEUE, Access::Load);
        self.unlock_state(c, OP_RECV);
        let left = self.tasks[id.idx()].left;
        let done = self.chans[c].take(left);
        self.receive(c, done);
        if done > 0 && self.chans[c].is_quarter_full() {
            self.wake_unix_writer(cpu, c);
        }
        self.tasks[id.idx()].left -= done;
        if self.tasks[id.idx()].left > 0 {
            self.unix_touch(c, KernelOp::WaitQueue, READERS, Access::Rmw);
            self.chans[c].readers.push_back(id);
            return self.block(cpu, id, Wait::Data(chan), Stage::Again);
        }
        if !self.chans[c].is_empty()
            && self.tasks[id.idx()].stage == Stage::Again
            && let Some(next) = self.chans[c].readers.pop_front()
        {
            self.queue_wake(cpu, next, WakeKind::Sync);
        }
        self.use_file(id, c, End::Read, OP_RECV);
        self.advance(id);
    }

    /// Copies `bytes` out of the first messages, and frees those that are read.
    fn receive(&mut self, c: usize, bytes: u32) {
        let mut left = bytes;
        while left > 0
            && let Some(first) = self.unix(c).skbs.front_mut()
        {
            let part = first.left.min(left);
            first.left -= part;
            left -= part;
            let skb = *first;
            self.read_skb(OP_RECV, &skb, part, false);
            self.copy_unix(c, OP_RECV, part, Access::Load);
            if skb.left > 0 {
                break;
            }
            self.unix(c).skbs.pop_front();
            let next = self.unix(c).skbs.front().copied();
            self.unix_touch(c, OP_RECV, QUEUE, Access::Rmw);
            self.unlink_skb(OP_RECV, &skb, next.as_ref());
            // The sender's count goes down in two steps, with a look for a writer between them.
            self.unix_touch(c, OP_RECV, IN_FLIGHT, Access::Rmw);
            self.unix_touch(c, OP_RECV, WRITERS, Access::Load);
            self.unix_touch(c, OP_RECV, IN_FLIGHT, Access::Rmw);
            self.free_skb(OP_RECV, &skb);
        }
    }

    /// Copies `bytes`; what is not in a message's own allocation goes through pages.
    fn copy_unix(&mut self, c: usize, op: KernelOp, bytes: u32, access: Access) {
        let paged = ChanKind::socket_paged(bytes);
        self.host.copy(op, bytes - paged);
        if paged > 0 {
            self.data(c, op, paged, access);
        }
    }

    fn lock_state(&mut self, c: usize, op: KernelOp) {
        let at = self.host.at;
        let start = self.unix(c).state.earliest(at);
        self.host.wait_until(Place::Op(op), start);
        self.unix(c).held_since = self.host.at;
        self.unix_touch(c, op, STATE, Access::Rmw);
    }

    fn unlock_state(&mut self, c: usize, op: KernelOp) {
        self.unix_touch(c, op, STATE, Access::Store);
        let at = self.host.at;
        let unix = self.unix(c);
        unix.state.acquire(unix.held_since, at - unix.held_since);
    }

    /// A message has come: a reader is woken, if one sleeps, and pollers if there was none before.
    fn wake_unix_readers(&mut self, cpu: u32, c: usize, was_empty: bool) {
        self.unix_touch(c, OP_SEND, READERS, Access::Load);
        let chan = &self.chans[c];
        if chan.readers.is_empty() && chan.pollers.is_empty() {
            return;
        }
        self.unix_touch(c, KernelOp::WaitQueue, READERS, Access::Rmw);
        if let Some(reader) = self.chans[c].readers.pop_front() {
            self.queue_wake(cpu, reader, WakeKind::Sync);
        }
        if was_empty {
            self.wake_pollers(cpu, c);
        }
    }

    fn wake_unix_writer(&mut self, cpu: u32, c: usize) {
        let Some(writer) = self.chans[c].writers.pop_front() else {
            return;
        };
        self.unix_touch(c, KernelOp::WaitQueue, WRITERS, Access::Rmw);
        self.queue_wake(cpu, writer, WakeKind::Sync);
    }
}
