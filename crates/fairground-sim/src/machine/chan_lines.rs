//! The lines of a channel, and what one use of it moves between CPUs.
//!
//! A pipe is a `pipe_inode_info` (in the order of its fields: the mutex, both wait queues, the
//! positions of the ring, the counts of its users), an array of `pipe_buffer`s of 40 bytes and the
//! pages of data. A message that joins the last buffer writes that buffer's length and leaves the
//! ring alone. Of a socket, lock and queue are one line, and its buffers are data.

use fairground::value::TaskId;

use super::Sim;
use crate::cache::{Access, Cache, LineId, Ps, Resource};
use crate::costs::KernelOp;
use crate::host::Place;
use crate::workload::program::{Chan, ChanKind};

/// Lines for data; a message takes the next ones, round and round.
const DATA_LINES: u32 = 16;
/// Bytes of a `struct pipe_buffer`.
const BUFFER_BYTES: u32 = 40;

/// Words of the line of the lock: the owner, the tail of the spinners' queue, the lock of the
/// readers' wait queue (that of the writers is on the line, too).
const OWNER: u8 = 1;
const SPINNERS: u8 = 1 << 1;
/// What a swap that fails writes.
const NOTHING: u8 = 0;
const WAIT_QUEUE: u8 = 1 << 4;
/// Word of the second line of a pipe: head and tail.
const RING: u8 = 1 << 2;

/// An end of a channel, with an open file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Read,
    Write,
}

/// Where a channel's words are, and who has its lock.
#[derive(Debug)]
pub struct Lines {
    lock: LineId,
    /// Positions of the ring.
    ring: (LineId, u8),
    /// First line of the buffers and their number; none of a socket.
    buffers: (LineId, u32),
    data: LineId,
    /// The `struct file` of each end.
    files: LineId,
    written: u32,
    fetched: u32,
    /// The pipe's mutex or the socket's lock: whoever finds it taken spins while the owner runs, in
    /// the order in which they came (`osq_lock`). Owners are never preempted inside (no kernel
    /// preemption), so nobody goes to sleep for it.
    mutex: Resource,
    held_since: Ps,
    /// The CPU that released it last.
    released_by: u32,
}

impl Lines {
    /// Of an untouched channel.
    pub fn new(chan: &Chan, cache: &mut Cache) -> Self {
        let (head, slots) = match chan.kind {
            ChanKind::Pipe { slots, .. } => (2, slots),
            ChanKind::Socket { .. } => (1, 0),
        };
        let lock = cache.alloc_lines(head, 0);
        let ring = match head {
            1 => (lock, 0b110),
            _ => (lock + 1, RING),
        };
        Self {
            lock,
            ring,
            buffers: (
                cache.alloc_lines((slots * BUFFER_BYTES).div_ceil(64), 0),
                slots,
            ),
            data: cache.alloc_lines(DATA_LINES, 0),
            files: cache.alloc_lines(2, 0),
            written: 0,
            fetched: 0,
            mutex: Resource::default(),
            held_since: 0,
            released_by: 0,
        }
    }
}

impl Sim<'_> {
    /// Takes or drops the reference that a system call holds on its file, where threads share the
    /// table of files (`fdget`, `fdput`); who has the table for himself needs none.
    pub(super) fn use_file(&mut self, id: TaskId, c: usize, end: End, op: KernelOp) {
        let template = self.tasks[id.idx()].template as usize;
        if self.shares_files[template] {
            let file = self.chans[c].lines.files + end as u32;
            self.touch(op, file, 1 << 7, Access::Rmw);
        }
    }

    /// Looks where head and tail are.
    pub(super) fn read_ring(&mut self, c: usize, op: KernelOp) {
        let (line, words) = self.chans[c].lines.ring;
        self.touch(op, line, words, Access::Load);
    }

    /// Takes the lock of a wait queue (`prepare_to_wait`, `__wake_up`), if anybody waits or not.
    pub(super) fn lock_wait_queue(&mut self, c: usize) {
        let line = self.chans[c].lines.lock;
        self.touch(KernelOp::WaitQueue, line, WAIT_QUEUE, Access::Rmw);
    }

    /// Fills or empties the buffers from position `from` up to `to`; if these are the same, a part
    /// of one.
    pub(super) fn touch_buffers(&mut self, c: usize, op: KernelOp, from: u32, to: u32) {
        let (ring, words) = self.chans[c].lines.ring;
        let (first, slots) = self.chans[c].lines.buffers;
        if slots == 0 || from != to {
            self.touch(op, ring, words, Access::Store);
        }
        if slots == 0 {
            return;
        }
        // A writer joins the buffer before the head, a reader takes from the one at the tail.
        let part = if op == KernelOp::PipeWrite {
            from.wrapping_sub(1)
        } else {
            from
        };
        let (at, nr) = match to.wrapping_sub(from) {
            0 => (part, 1),
            nr => (from, nr),
        };
        for buffer in 0..nr {
            let byte = at.wrapping_add(buffer) % slots * BUFFER_BYTES;
            self.touch(op, first + byte / 64, 1 << (byte % 64 / 8), Access::Store);
        }
    }

    /// Takes the lock. The time from its release to the moment when the first of the spinners sees
    /// it is nobody's: whoever comes by then takes the lock before them, as the fast path does.
    ///
    /// Who finds it taken has tried to swap the owner, which takes the line although it fails, and
    /// queues behind the other spinners by another update of that line. He leaves their queue when
    /// he has the lock, so its line goes to and fro once more while he holds it.
    pub(super) fn lock_chan(&mut self, c: usize, op: KernelOp) {
        let lines = &self.chans[c].lines;
        let (line, mutex) = (lines.lock, &lines.mutex);
        let start = mutex.earliest(self.host.at);
        if start > self.host.at {
            self.host.op(KernelOp::MutexSpin);
            self.touch(KernelOp::MutexSpin, line, NOTHING, Access::Rmw);
            self.touch(KernelOp::MutexSpin, line, SPINNERS, Access::Rmw);
            let start = start.max(self.host.at);
            self.host.wait_until(Place::Op(KernelOp::MutexSpin), start);
            self.see_release(c);
            // Somebody else may have come between.
            let mutex = &self.chans[c].lines.mutex;
            let start = mutex.earliest(self.host.at);
            self.host.wait_until(Place::Op(KernelOp::MutexSpin), start);
            self.chans[c].lines.held_since = self.host.at;
            self.touch(op, line, OWNER, Access::Rmw);
            self.touch(KernelOp::MutexSpin, line, SPINNERS, Access::Rmw);
        } else {
            self.chans[c].lines.held_since = self.host.at;
            self.touch(op, line, OWNER, Access::Rmw);
        }
        self.host.cache.leave_line_to_lock(line);
        self.read_ring(c, op);
    }

    /// Who is first of the spinners reads the owner over and over, so the owner has to fetch the
    /// line to release the lock, and the spinner to see it.
    fn see_release(&mut self, c: usize) {
        let lines = &self.chans[c].lines;
        let (line, owner) = (lines.lock, lines.released_by);
        let cache = &mut self.host.cache;
        let unlock = cache.touch(owner, line, OWNER, Access::Rmw, self.host.at);
        self.host
            .wait_until(Place::Op(KernelOp::MutexSpin), unlock.done_at);
        self.touch(KernelOp::MutexSpin, line, OWNER, Access::Load);
    }

    pub(super) fn unlock_chan(&mut self, cpu: u32, c: usize, op: KernelOp) {
        self.touch(op, self.chans[c].lines.lock, OWNER, Access::Rmw);
        let lines = &mut self.chans[c].lines;
        lines.released_by = cpu;
        lines
            .mutex
            .acquire(lines.held_since, self.host.at - lines.held_since);
    }

    /// Copies `bytes` through the channel's data lines.
    pub(super) fn data(&mut self, c: usize, op: KernelOp, bytes: u32, access: Access) {
        self.host.copy(op, bytes);
        let lines = &mut self.chans[c].lines;
        let at = if access == Access::Load {
            &mut lines.fetched
        } else {
            &mut lines.written
        };
        let from = *at;
        *at = (*at + bytes) % (DATA_LINES * 64);
        let first = lines.data;
        let touched = (from % 64 + bytes).div_ceil(64).min(DATA_LINES);
        let line = |i| first + (from / 64 + i) % DATA_LINES;
        self.host.copy_lines(op, (0..touched).map(line), access);
    }
}
