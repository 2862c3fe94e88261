//! Pipes and stream sockets: who sleeps, who is woken, and which lines move.
//!
//! The rules are those of [`ChanKind`]; the lines are in `chan_lines.rs`.

use std::collections::VecDeque;

use fairground::policy::{Features, PipeWakeWriter};
use fairground::task::WakeKind;
use fairground::value::TaskId;

use super::Sim;
use super::chan_lines::Lines;
use super::task::{Stage, Wait};
use super::todo::{Attempt, End, Todo};
use super::unix_sock::UnixLines;
use crate::cache::{Access, Cache};
use crate::costs::KernelOp;
use crate::workload::program::{Chan, ChanKind};

/// A pipe buffer or a message.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Bytes ever put in: where the next would go.
    end: u32,
    /// Bytes not yet read.
    left: u32,
}

/// One channel.
#[derive(Debug)]
pub struct ChanState {
    kind: ChanKind,
    /// Pipe buffers or messages, oldest first.
    parts: VecDeque<Part>,
    /// Socket: truesize charged for each message, and their sum.
    charges: VecDeque<u32>,
    charged: u32,
    pub(super) readers: VecDeque<TaskId>,
    pub(super) writers: VecDeque<TaskId>,
    pub(super) pollers: Vec<TaskId>,
    /// Buffers ever filled and ever emptied: the ring's positions.
    head: u32,
    tail: u32,
    pub(super) lines: Lines,
    /// Of a socket, what a pipe has not.
    pub(super) unix: Option<Box<UnixLines>>,
}

impl ChanState {
    /// An empty channel.
    pub fn new(chan: &Chan, cache: &mut Cache, features: &Features) -> Self {
        Self {
            kind: chan.kind,
            parts: VecDeque::new(),
            charges: VecDeque::new(),
            charged: 0,
            readers: VecDeque::new(),
            writers: VecDeque::new(),
            pollers: Vec::new(),
            head: 0,
            tail: 0,
            lines: Lines::new(chan, cache, features),
            unix: UnixLines::new(chan.kind, cache),
        }
    }

    /// Whether a write of `bytes` can put something in now. Only a write that has not waited yet
    /// may merge into the last buffer.
    fn has_room(&self, bytes: u32, stage: Stage) -> bool {
        !self.is_full() || stage == Stage::Start && self.merges(bytes)
    }

    /// Whether the part of a write beyond whole pages fits behind the data of the last buffer.
    fn merges(&self, bytes: u32) -> bool {
        let ChanKind::Pipe { page_bytes, .. } = self.kind else {
            return false;
        };
        let rest = bytes % page_bytes;
        rest > 0
            && self
                .parts
                .back()
                .is_some_and(|last| last.end + rest <= page_bytes)
    }

    /// Puts in as much of `bytes` as there is room for; the number of bytes.
    pub(super) fn put(&mut self, bytes: u32, stage: Stage) -> u32 {
        match self.kind {
            ChanKind::Pipe { slots, page_bytes } => {
                let mut done = 0;
                if stage == Stage::Start && self.merges(bytes) {
                    done = bytes % page_bytes;
                    if let Some(last) = self.parts.back_mut() {
                        last.end += done;
                        last.left += done;
                    }
                }
                while done < bytes && (self.parts.len() as u32) < slots {
                    let part = (bytes - done).min(page_bytes);
                    self.parts.push_back(Part {
                        end: part,
                        left: part,
                    });
                    self.head = self.head.wrapping_add(1);
                    done += part;
                }
                done
            }
            ChanKind::Socket { .. } => {
                let charge = ChanKind::socket_truesize(bytes);
                self.parts.push_back(Part {
                    end: bytes,
                    left: bytes,
                });
                self.charges.push_back(charge);
                self.charged += charge;
                bytes
            }
        }
    }

    /// Takes up to `bytes` out; the number of bytes.
    pub(super) fn take(&mut self, bytes: u32) -> u32 {
        let mut done = 0;
        while done < bytes {
            let Some(first) = self.parts.front_mut() else {
                break;
            };
            let part = first.left.min(bytes - done);
            first.left -= part;
            done += part;
            if first.left == 0 {
                self.parts.pop_front();
                self.tail = self.tail.wrapping_add(1);
                self.charged -= self.charges.pop_front().unwrap_or(0);
            }
        }
        done
    }

    /// How much of `left` bytes goes into the next message of a socket.
    pub(super) fn message_bytes(&self, left: u32) -> u32 {
        match self.kind {
            ChanKind::Pipe { .. } => left,
            ChanKind::Socket { sndbuf } => left.min(ChanKind::socket_message_max(sndbuf)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        match self.kind {
            ChanKind::Pipe { slots, .. } => self.parts.len() as u32 >= slots,
            ChanKind::Socket { sndbuf } => self.charged >= sndbuf,
        }
    }

    /// Of a socket: a blocked writer may go on.
    pub(super) fn is_quarter_full(&self) -> bool {
        matches!(self.kind, ChanKind::Socket { sndbuf } if self.charged <= sndbuf / 4)
    }
}

impl Sim<'_> {
    pub(super) fn write(&mut self, cpu: u32, id: TaskId, chan: u32, bytes: u32) {
        let c = chan as usize;
        if self.chans[c].unix.is_some() {
            return self.send_unix(cpu, id, chan, bytes);
        }
        let op = KernelOp::PipeWrite;
        self.enter_syscall(id, op);
        if self.tasks[id.idx()].stage == Stage::Start {
            self.tasks[id.idx()].left = bytes;
            self.take_file(id, c, End::Write, op);
        } else if !self.waited_enough(c, End::Write) {
            return self.wait_for(cpu, id, chan, End::Write);
        }
        self.try_again(cpu, chan, End::Write, Attempt::Spin);
    }

    /// The part of a write for which the mutex is held, and what follows.
    pub(super) fn write_locked(&mut self, cpu: u32, id: TaskId, chan: u32) {
        let (c, op) = (chan as usize, KernelOp::PipeWrite);
        let stage = self.tasks[id.idx()].stage;
        let left = self.tasks[id.idx()].left;
        if !self.chans[c].has_room(left, stage) {
            self.unlock_pipe(cpu, c, op);
            return self.look_again(cpu, id, chan, End::Write);
        }
        let was_empty = self.chans[c].parts.is_empty();
        let before = self.chans[c].head;
        let done = self.chans[c].put(left, stage);
        self.touch_buffers(c, op, before, self.chans[c].head);
        self.data(c, op, done, Access::Store);
        self.unlock_pipe(cpu, c, op);
        if was_empty {
            self.wake_readers(cpu, c);
        }
        self.tasks[id.idx()].left -= done;
        if self.tasks[id.idx()].left > 0 {
            self.look_for_fasync(c, End::Write);
            return self.look_again(cpu, id, chan, End::Write);
        }
        // Whoever waits for room behind a writer that had to wait may find some.
        if stage == Stage::Again && !self.chans[c].is_full() {
            self.wake_writer(cpu, c);
        }
        self.end_call(cpu, id, chan, End::Write);
    }

    pub(super) fn read(&mut self, cpu: u32, id: TaskId, chan: u32, bytes: u32) {
        let c = chan as usize;
        if self.chans[c].unix.is_some() {
            return self.recv_unix(cpu, id, chan, bytes);
        }
        let op = KernelOp::PipeRead;
        self.enter_syscall(id, op);
        if self.tasks[id.idx()].stage == Stage::Start {
            self.tasks[id.idx()].left = bytes;
            self.take_file(id, c, End::Read, op);
        } else if !self.waited_enough(c, End::Read) {
            return self.wait_for(cpu, id, chan, End::Read);
        }
        self.try_again(cpu, chan, End::Read, Attempt::Spin);
    }

    /// The part of a read for which the mutex is held, and what follows.
    pub(super) fn read_locked(&mut self, cpu: u32, id: TaskId, chan: u32) {
        let (c, op) = (chan as usize, KernelOp::PipeRead);
        let was_full = self.chans[c].is_full();
        let left = self.tasks[id.idx()].left;
        let before = self.chans[c].tail;
        let done = self.chans[c].take(left);
        if done > 0 {
            self.touch_buffers(c, op, before, self.chans[c].tail);
            self.data(c, op, done, Access::Load);
        }
        self.unlock_pipe(cpu, c, op);
        if done > 0 {
            self.room_made(cpu, c, was_full);
        }
        self.tasks[id.idx()].left -= done;
        if self.tasks[id.idx()].left > 0 {
            return self.look_again(cpu, id, chan, End::Read);
        }
        if !self.chans[c].parts.is_empty()
            && self.tasks[id.idx()].stage == Stage::Again
            && let Some(next) = self.chans[c].readers.pop_front()
        {
            self.queue_wake(cpu, next, WakeKind::Sync);
        }
        self.end_call(cpu, id, chan, End::Read);
    }

    /// What a call does at its end comes after the wake-ups that it makes.
    fn end_call(&mut self, cpu: u32, id: TaskId, chan: u32, end: End) {
        self.advance(id);
        let todo = &mut self.cpus[cpu as usize].todo;
        if todo.is_empty() {
            return self.end_pipe_call(cpu, chan, end);
        }
        todo.push_back(Todo::EndPipeCall { chan, end });
    }

    /// The end of a read or write of the running task, which nobody waits for.
    pub(super) fn end_pipe_call(&mut self, cpu: u32, chan: u32, end: End) {
        let Some(id) = self.cpus[cpu as usize].curr else {
            debug_assert!(false, "nobody to end a call");
            return;
        };
        let c = chan as usize;
        self.look_for_fasync(c, end);
        self.keep_times(c, end);
        self.drop_file(id, c, end, end.op());
    }

    /// The call goes on to wait when others have had the time to change that.
    fn look_again(&mut self, cpu: u32, id: TaskId, chan: u32, end: End) {
        self.tasks[id.idx()].stage = Stage::Again;
        let todo = &mut self.cpus[cpu as usize].todo;
        todo.push_back(Todo::WaitInPipe { chan, end });
    }

    /// The running task looks whether it has to wait, goes to the wait queue and looks again
    /// (`wait_event_interruptible_exclusive`).
    pub(super) fn wait_in_pipe(&mut self, cpu: u32, chan: u32, end: End) {
        let Some(id) = self.cpus[cpu as usize].curr else {
            debug_assert!(false, "nobody to wait");
            return;
        };
        let c = chan as usize;
        self.read_ring(c, end.op());
        if self.is_ready(c, end) || self.waited_enough(c, end) {
            return self.try_again(cpu, chan, end, Attempt::Spin);
        }
        self.wait_for(cpu, id, chan, end);
    }

    /// Whether there is something to read, or room to write to.
    fn is_ready(&self, c: usize, end: End) -> bool {
        match end {
            End::Read => !self.chans[c].is_empty(),
            End::Write => !self.chans[c].is_full(),
        }
    }

    /// A task that was woken at a pipe goes back to the end of the wait queue, and looks there,
    /// without the mutex, whether it has to wait on; if not, it leaves the queue (`___wait_event`).
    fn waited_enough(&mut self, c: usize, end: End) -> bool {
        self.lock_wait_queue(c);
        self.read_ring(c, end.op());
        let enough = self.is_ready(c, end);
        if enough {
            self.lock_wait_queue(c);
        }
        enough
    }

    /// The last of those who wait at an end of a pipe.
    fn wait_for(&mut self, cpu: u32, id: TaskId, chan: u32, end: End) {
        let state = &mut self.chans[chan as usize];
        let (queue, wait) = match end {
            End::Read => (&mut state.readers, Wait::Data(chan)),
            End::Write => (&mut state.writers, Wait::Room(chan)),
        };
        queue.push_back(id);
        self.block(cpu, id, wait, Stage::Again);
    }

    pub(super) fn poll(&mut self, cpu: u32, id: TaskId, chan: u32) {
        let c = chan as usize;
        self.enter_syscall(id, KernelOp::Poll);
        self.read_ring(c, KernelOp::Poll);
        if self.chans[c].parts.is_empty() {
            self.lock_wait_queue(c);
            self.chans[c].pollers.push(id);
            return self.block(cpu, id, Wait::Poll(chan), Stage::Again);
        }
        self.advance(id);
    }

    /// Data has come into a pipe that was empty: the pollers are woken, and one of the readers, who
    /// wait exclusively and so behind them.
    fn wake_readers(&mut self, cpu: u32, c: usize) {
        self.lock_wait_queue(c);
        self.wake_pollers(cpu, c);
        if let Some(reader) = self.chans[c].readers.pop_front() {
            self.queue_wake(cpu, reader, WakeKind::Sync);
        }
    }

    pub(super) fn wake_pollers(&mut self, cpu: u32, c: usize) {
        // Those that came last stand first in the wait queue.
        while let Some(poller) = self.chans[c].pollers.pop() {
            self.queue_wake(cpu, poller, WakeKind::Sync);
        }
    }

    /// Room has come by a buffer freed of a full pipe. By an older rule a read of one is enough.
    fn room_made(&mut self, cpu: u32, c: usize, was_full: bool) {
        let freed = self.sys.features.files.pipe_wake_writer == PipeWakeWriter::Freed;
        if was_full && !(freed && self.chans[c].is_full()) {
            self.wake_writer(cpu, c);
        }
    }

    fn wake_writer(&mut self, cpu: u32, c: usize) {
        self.lock_wait_queue(c);
        if let Some(writer) = self.chans[c].writers.pop_front() {
            self.queue_wake(cpu, writer, WakeKind::Sync);
        }
    }
}
