//! Unix stream sockets: who sleeps, who is woken, and which lines of the two sockets move.
//!
//! The rules are those of [`ChanKind::Socket`]; the lines of the messages are in `skb_lines.rs`.

use std::collections::VecDeque;

use fairground::task::{Prev, WakeKind};
use fairground::value::TaskId;

use super::Sim;
use super::skb_lines::Skb;
use super::slab::Kind;
use super::task::{Stage, Wait};
use super::todo::{End, Todo};
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
const LINES: [&str; 6] = [
    "sk_wmem_alloc(sender)",
    "wq(sender)",
    "sk_receive_queue",
    "iolock",
    "lock",
    "wq",
];

/// What one direction of a pair is beyond the rules of a channel.
#[derive(Debug)]
pub struct UnixLines {
    first: LineId,
    skbs: VecDeque<Skb>,
    /// The lock of the receiver's state, a spin lock.
    state: Resource,
    /// Since when nobody else can take it.
    held_since: Ps,
}

impl UnixLines {
    /// Of an untouched pair; a pipe has none.
    pub fn new(kind: ChanKind, cache: &mut Cache) -> Option<Box<Self>> {
        let ChanKind::Socket { .. } = kind else {
            return None;
        };
        Some(Box::new(Self {
            first: cache.alloc_object("unix_sock", &LINES, 0),
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
        self.enter_syscall(id, OP_SEND);
        if self.tasks[id.idx()].stage == Stage::Start {
            self.tasks[id.idx()].left = bytes;
            self.take_file(id, chan as usize, End::Write, OP_SEND);
        }
        self.send_piece(cpu, id, chan);
    }

    /// The next message of a `send` that takes several, on the CPU that has sent those before.
    ///
    /// Memory for it is allocated where the task may sleep, so a kernel that looks there gives up
    /// the CPU to whom the messages have woken; one that does not goes on to the end of the call.
    pub(super) fn send_more(&mut self, cpu: u32, chan: u32) {
        let Some(id) = self.cpus[cpu as usize].curr else {
            debug_assert!(false, "a send of nobody");
            return;
        };
        if self.sys.features.preempt.gives_up_in_kernel() && self.rqs[cpu as usize].need_resched {
            self.tasks[id.idx()].stage = Stage::Again;
            let todo = &mut self.cpus[cpu as usize].todo;
            return todo.push_back(Todo::Schedule(Prev::Runnable));
        }
        self.send_piece(cpu, id, chan);
    }

    /// One message of the running task's `send`, or its sleep for room. The others are steps of
    /// their own: who reads elsewhere comes between them.
    fn send_piece(&mut self, cpu: u32, id: TaskId, chan: u32) {
        let c = chan as usize;
        let stage = self.tasks[id.idx()].stage;
        self.unix_touch(c, OP_SEND, IN_FLIGHT, Access::Load);
        if self.chans[c].is_full() {
            self.unix_touch(c, KernelOp::WaitQueue, WRITERS, Access::Rmw);
            self.chans[c].writers.push_back(id);
            return self.block(cpu, id, Wait::Room(chan), Stage::Again);
        }
        let bytes = self.chans[c].message_bytes(self.tasks[id.idx()].left);
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
        self.tasks[id.idx()].left -= bytes;
        if self.tasks[id.idx()].left > 0 {
            let todo = &mut self.cpus[cpu as usize].todo;
            return todo.push_back(Todo::SendMore { chan });
        }
        self.drop_file(id, c, End::Write, OP_SEND);
        self.advance(id);
    }

    /// `recv` of the running task.
    pub(super) fn recv_unix(&mut self, cpu: u32, id: TaskId, chan: u32, bytes: u32) {
        let c = chan as usize;
        self.enter_syscall(id, OP_RECV);
        if self.tasks[id.idx()].stage == Stage::Start {
            self.tasks[id.idx()].left = bytes;
            self.take_file(id, c, End::Read, OP_RECV);
        }
        self.unix_touch(c, OP_RECV, READ_LOCK, Access::Rmw);
        self.lock_state(c, OP_RECV);
        self.unix_touch(c, OP_RECV, QUEUE, Access::Load);
        self.unlock_state(c, OP_RECV);
        let left = self.tasks[id.idx()].left;
        let done = self.chans[c].take(left);
        self.receive(c, done);
        if done > 0 && self.chans[c].is_quarter_full() {
            self.wake_unix_writers(cpu, c);
        }
        self.tasks[id.idx()].left -= done;
        if self.tasks[id.idx()].left > 0 {
            if done > 0 && self.chans[c].message_bytes(bytes) < bytes {
                // What was sent as several messages is read by as many calls as find some of it.
                self.system_call(OP_RECV);
            }
            self.unix_touch(c, KernelOp::WaitQueue, READERS, Access::Rmw);
            self.chans[c].readers.push_back(id);
            return self.block(cpu, id, Wait::Data(chan), Stage::Again);
        }
        self.drop_file(id, c, End::Read, OP_RECV);
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
        let free = self.unix(c).state.earliest(at);
        self.host.spin_until(Place::Op(op), free);
        self.unix(c).held_since = free;
        self.unix_touch(c, op, STATE, Access::Rmw);
    }

    fn unlock_state(&mut self, c: usize, op: KernelOp) {
        self.unix_touch(c, op, STATE, Access::Store);
        let at = self.host.at;
        let unix = self.unix(c);
        unix.state.acquire(unix.held_since, at - unix.held_since);
    }

    /// A message has come: all readers are woken, who do not wait exclusively
    /// (`unix_stream_data_wait`), and pollers if there was none before.
    fn wake_unix_readers(&mut self, cpu: u32, c: usize, was_empty: bool) {
        self.unix_touch(c, OP_SEND, READERS, Access::Load);
        let chan = &self.chans[c];
        if chan.readers.is_empty() && chan.pollers.is_empty() {
            return;
        }
        self.unix_touch(c, KernelOp::WaitQueue, READERS, Access::Rmw);
        while let Some(reader) = self.chans[c].readers.pop_back() {
            self.queue_wake(cpu, reader, WakeKind::Sync);
        }
        if was_empty {
            self.wake_pollers(cpu, c);
        }
    }

    /// There is room: all writers are woken, who do not wait exclusively (`sock_wait_for_wmem`),
    /// the last first. Who finds none any more goes back to sleep.
    fn wake_unix_writers(&mut self, cpu: u32, c: usize) {
        if self.chans[c].writers.is_empty() {
            return;
        }
        self.unix_touch(c, KernelOp::WaitQueue, WRITERS, Access::Rmw);
        while let Some(writer) = self.chans[c].writers.pop_back() {
            self.queue_wake(cpu, writer, WakeKind::Sync);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing::{server, with};
    use crate::workload::program::{Chan, Op, Program};
    use crate::workload::{TaskTemplate, Until, Workload};

    const MIB: u32 = 1 << 20;

    /// One task for each call; all on one CPU.
    fn calls(ops: impl IntoIterator<Item = Op>) -> Workload {
        let mut w = Workload::new("socket", Vec::new());
        w.chans = vec![Chan {
            kind: ChanKind::SOCKET,
        }];
        for (i, op) in (0..).zip(ops) {
            w.programs.push(Program {
                name: format!("task {i}"),
                ops: vec![op],
            });
            let mut task = TaskTemplate::new("task", i, i);
            task.affinity = Some(0);
            w.templates.push(task);
            w.initial.push(i);
        }
        w.masks = vec![vec![0]];
        w.duration = Until::Time(20_000_000);
        w
    }

    /// One task that writes `bytes`, and one for each of `reads`.
    fn socket(bytes: u32, reads: &[u32]) -> Workload {
        let read = |&bytes: &u32| Op::Read { chan: 0, bytes };
        calls(std::iter::once(Op::Write { chan: 0, bytes }).chain(reads.iter().map(read)))
    }

    #[test]
    fn as_much_of_a_long_message_fits_as_was_measured() {
        // send(2) of 1 MiB that does not block, Linux 6.18.
        with(&server(2), &socket(MIB, &[]), &[], |sim| {
            sim.run_to(10_000_000).unwrap();
            assert_eq!(sim.tasks[0].left, MIB - 219_264);
            assert_eq!(sim.unix(0).skbs.len(), 6);
            assert_eq!(sim.tasks[0].wait, Wait::Room(0));
        });
    }

    #[test]
    fn a_writer_of_a_long_message_sleeps_for_room_and_a_reader_gets_all() {
        for how in ["none", "voluntary", "lazy"] {
            let set = [("preempt", how)];
            with(&server(2), &socket(MIB, &[1000, MIB - 1000]), &set, |sim| {
                sim.run_to(10_000_000).unwrap();
                assert!(sim.tasks.iter().all(|t| t.left == 0), "{how}");
                assert!(sim.chans[0].is_empty() && sim.unix(0).skbs.is_empty());
            });
        }
    }

    /// Nobody waits exclusively: one message that is freed wakes all writers, the last first, and
    /// one that comes all readers.
    #[test]
    fn room_wakes_all_writers_and_data_all_readers() {
        let woken = |sim: &Sim<'_>| -> Vec<TaskId> {
            let todo = sim.cpus[0].todo.iter();
            let wakes = todo.filter_map(|t| match t {
                Todo::Wake { task, .. } => Some(*task),
                _ => None,
            });
            wakes.collect()
        };
        let bytes = MIB;
        let writers = calls(vec![Op::Write { chan: 0, bytes }; 3]);
        with(&server(2), &writers, &[], |sim| {
            sim.run_to(10_000_000).unwrap();
            let last_first: Vec<_> = sim.chans[0].writers.iter().rev().copied().collect();
            assert_eq!(last_first.len(), 3);
            sim.host.begin(0, sim.host.at);
            sim.wake_unix_writers(0, 0);
            assert_eq!(woken(sim), last_first);
            assert!(sim.chans[0].writers.is_empty());
        });
        let readers = calls(vec![Op::Read { chan: 0, bytes }; 3]);
        with(&server(2), &readers, &[], |sim| {
            sim.run_to(10_000_000).unwrap();
            assert_eq!(sim.chans[0].readers.len(), 3);
            sim.host.begin(0, sim.host.at);
            sim.wake_unix_readers(0, 0, true);
            assert_eq!(woken(sim).len(), 3);
        });
    }

    /// A spinner's next look is after the release. Who comes between the two finds the lock taken.
    #[test]
    fn nobody_takes_a_lock_between_its_release_and_the_next_look_of_a_spinner() {
        with(&server(4), &socket(1, &[]), &[], |sim| {
            let hold = |sim: &mut Sim<'_>, cpu, at, more| {
                sim.host.begin(cpu, at);
                sim.lock_state(0, OP_SEND);
                let taken = sim.host.at;
                sim.host.at += more;
                sim.unlock_state(0, OP_SEND);
                (taken, sim.host.at)
            };
            // Short ones, as gaps below the mean are not taken.
            for i in 0..200 {
                hold(sim, 0, 1_000_000 * i, 0);
            }
            let (_, free) = hold(sim, 0, 200_000_000, 1_000_000);
            let pause = sim.host.rounds().0;
            assert!(pause > 30_000, "{pause} ps");
            let (taken, released) = hold(sim, 1, free - pause - 1, 0);
            assert!(taken >= free + pause - 1, "{taken}: free at {free}");
            let (next, _) = hold(sim, 2, free + 1, 0);
            assert!(next >= released, "{next} ps, released at {released}");
        });
    }
}
