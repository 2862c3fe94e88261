//! UDP and TCP over the loopback interface.
//!
//! The rules are those of [`Inet`]. `send` does everything on the sender's CPU: the transmit path,
//! and the receive softirq that runs when it enables softirqs again, up to the receiver's queue
//! and the wake-up. Each socket has a line for its queue, for its accounting, for its wait queue
//! and for the sender's side; the lines of the packets are in `skb_lines.rs`.

use std::collections::VecDeque;

use fairground::policy::EpollWake;
use fairground::task::WakeKind;
use fairground::value::TaskId;

use super::Sim;
use super::skb_lines::Skb;
use super::slab::Kind;
use super::task::{Stage, Wait};
use crate::cache::{Access, Cache, LINES_IN_FLIGHT, LineId, NS, Ps};
use crate::costs::KernelOp;
use crate::host::Place;
use crate::workload::inet::Reader;
use crate::workload::program::{ChanKind, Inet};

/// Lines of a socket, from its first.
const QUEUE: u32 = 0;
const ACCOUNTS: u32 = 1;
const WAIT_QUEUE: u32 = 2;
const SENDER: u32 = 3;
const LINES: [&str; 4] = [
    "sk_receive_queue",
    "sk_rmem_alloc,sk_forward_alloc",
    "wq",
    "sk_wmem_alloc",
];

/// Headers before the data of a packet: link, IP, and UDP or TCP without options.
const HEADERS: u32 = 56;

/// Beyond this many bytes a message is copied as a stream of lines, not line by line.
const BULK_BYTES: u32 = 1000;

/// Least time to a retransmission (`net.ipv4.tcp_rto_min_us`).
const RTO: Ps = 200_000_000 * NS;
/// Least time for which an acknowledgement waits for an answer that can carry it.
const DELAYED_ACK: Ps = 40_000_000 * NS;

/// One socket.
#[derive(Debug)]
pub struct InetState {
    kind: Inet,
    /// UDP: bytes of each datagram that was not yet received.
    datagrams: VecDeque<u32>,
    /// UDP: their truesize.
    charged: u32,
    /// TCP: bytes in the receive queue, in the send queue, sent without an acknowledgement, and
    /// read since the last one.
    unread: u32,
    unsent: u32,
    in_flight: u32,
    /// Of those, up to the end of the last segment that was not full.
    small_in_flight: u32,
    read_since_ack: u32,
    readers: VecDeque<TaskId>,
    writers: VecDeque<TaskId>,
    line: LineId,
    /// Packets in the receive queue.
    skbs: VecDeque<Skb>,
    /// Where bulk data was last written and read.
    writer_cpu: u32,
    reader_cpu: u32,
}

impl InetState {
    /// Whether a reader waits in `recv` itself, not in `poll` or `epoll_wait` before it.
    pub fn reader_sleeps_in_recv(&self) -> bool {
        match self.kind {
            Inet::Udp { .. } => true,
            Inet::Tcp { reader, .. } => reader == Reader::Recv,
        }
    }

    /// A socket with nothing in it.
    pub fn new(kind: Inet, cache: &mut Cache) -> Self {
        Self {
            kind,
            datagrams: VecDeque::new(),
            charged: 0,
            unread: 0,
            unsent: 0,
            in_flight: 0,
            small_in_flight: 0,
            read_since_ack: 0,
            readers: VecDeque::new(),
            writers: VecDeque::new(),
            line: cache.alloc_object("inet_sock", &LINES, 0),
            skbs: VecDeque::new(),
            writer_cpu: 0,
            reader_cpu: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.datagrams.is_empty() && self.unread == 0
    }

    /// Bytes in the send buffer.
    fn queued(&self) -> u32 {
        self.unsent + self.in_flight
    }
}

impl Sim<'_> {
    /// `send` of the running task.
    pub(super) fn send_inet(&mut self, cpu: u32, id: TaskId, inet: u32, bytes: u32) {
        match self.inets[inet as usize].kind {
            Inet::Udp { rcvbuf, connected } => {
                self.enter_syscall(id, KernelOp::UdpSend);
                let s = inet as usize;
                let skb = self.new_packet(s, KernelOp::UdpSend, bytes);
                self.number_packet(KernelOp::UdpSend, connected);
                self.copy_message(s, KernelOp::UdpSend, bytes, Access::Store);
                self.host.op(KernelOp::UdpRcv);
                self.inet_touch(s, KernelOp::UdpRcv, ACCOUNTS, Access::Rmw);
                let size = ChanKind::socket_truesize(bytes);
                if self.inets[s].charged < rcvbuf {
                    self.inets[s].charged += size;
                    self.inets[s].datagrams.push_back(bytes);
                    self.received(cpu, s, KernelOp::UdpRcv, skb, WakeKind::Sync);
                } else {
                    self.free_skb(KernelOp::UdpRcv, &skb);
                }
                self.advance(id);
            }
            Inet::Tcp { sndbuf, .. } => self.send_tcp(cpu, id, inet, bytes, sndbuf),
        }
    }

    fn send_tcp(&mut self, cpu: u32, id: TaskId, inet: u32, bytes: u32, sndbuf: u32) {
        let s = inet as usize;
        self.enter_syscall(id, KernelOp::TcpSend);
        if self.tasks[id.idx()].stage == Stage::Start {
            self.tasks[id.idx()].left = bytes;
        }
        self.inet_touch(s, KernelOp::TcpSend, SENDER, Access::Load);
        let room = sndbuf.saturating_sub(self.inets[s].queued());
        let part = self.tasks[id.idx()].left.min(room);
        if part > 0 {
            self.copy_message(s, KernelOp::TcpSend, part, Access::Store);
            self.inets[s].unsent += part;
            self.tasks[id.idx()].left -= part;
            self.transmit(cpu, s);
        }
        if self.tasks[id.idx()].left > 0 {
            self.inets[s].writers.push_back(id);
            return self.block(cpu, id, Wait::Sendable(inet), Stage::Again);
        }
        self.advance(id);
    }

    /// `recv` of the running task.
    pub(super) fn recv_inet(&mut self, cpu: u32, id: TaskId, inet: u32, bytes: u32) {
        let s = inet as usize;
        let op = match self.inets[s].kind {
            Inet::Udp { .. } => KernelOp::UdpRecv,
            Inet::Tcp { .. } => KernelOp::TcpRecv,
        };
        self.enter_syscall(id, op);
        self.inet_touch(s, op, QUEUE, Access::Rmw);
        self.other_calls(id, s);
        if self.inets[s].is_empty() {
            self.inet_touch(s, op, WAIT_QUEUE, Access::Rmw);
            self.inets[s].readers.push_back(id);
            return self.block(cpu, id, Wait::Received(inet), Stage::Again);
        }
        match self.inets[s].kind {
            Inet::Udp { .. } => {
                let datagram = self.inets[s].datagrams.pop_front().unwrap_or(0);
                self.inets[s].charged -= ChanKind::socket_truesize(datagram);
                self.copy_message(s, op, datagram.min(bytes), Access::Load);
                self.drain_packets(s, op, datagram);
            }
            Inet::Tcp { piggyback, .. } => {
                let part = self.inets[s].unread.min(bytes);
                self.copy_message(s, op, part, Access::Load);
                self.drain_packets(s, op, part);
                let sock = &mut self.inets[s];
                sock.unread -= part;
                sock.read_since_ack += part;
                if piggyback {
                    sock.in_flight -= sock.read_since_ack;
                    sock.read_since_ack = 0;
                } else if sock.read_since_ack >= Inet::MSS || sock.unread == 0 {
                    self.acknowledge(cpu, s);
                }
            }
        }
        self.advance(id);
    }

    /// The calls beside the one `recv` of a reader that has to wait: `poll` or `epoll_wait` before
    /// it sleeps, and after `epoll_wait` the second `recv`, the first having found nothing.
    fn other_calls(&mut self, id: TaskId, s: usize) {
        let Inet::Tcp { reader, .. } = self.inets[s].kind else {
            return;
        };
        let waits = self.inets[s].is_empty();
        let op = match (reader, self.tasks[id.idx()].stage) {
            (Reader::Poll, Stage::Start) => KernelOp::Poll,
            (Reader::Epoll, Stage::Start) if waits => KernelOp::Poll,
            (Reader::Epoll, Stage::Again) if !waits => KernelOp::TcpRecv,
            _ => return,
        };
        self.system_call(op);
    }

    /// Sends what the window and Nagle's rule allow, each segment with its receive softirq.
    fn transmit(&mut self, cpu: u32, s: usize) {
        let Inet::Tcp {
            window,
            reader,
            piggyback,
            ..
        } = self.inets[s].kind
        else {
            return;
        };
        let kind = match reader {
            Reader::Epoll if self.sys.features.files.epoll_wake == EpollWake::Plain => {
                WakeKind::Wake
            }
            _ => WakeKind::Sync,
        };
        loop {
            let sock = &self.inets[s];
            let segment = sock.unsent.min(Inet::MSS);
            let waits = !piggyback && segment < Inet::MSS && sock.small_in_flight > 0;
            if segment == 0 || waits || sock.unread + segment > window {
                return;
            }
            self.host.op(KernelOp::TcpXmit);
            let skb = self.new_packet(s, KernelOp::TcpXmit, segment);
            self.host.op(KernelOp::TcpRcv);
            let sock = &mut self.inets[s];
            sock.unsent -= segment;
            sock.in_flight += segment;
            if segment < Inet::MSS {
                sock.small_in_flight = sock.in_flight;
            }
            sock.unread += segment;
            // Both timers are on this CPU. What they were set for comes sooner, but that only says
            // that they need not do anything: they stay set, and the next segment moves them on.
            let timer = if piggyback { DELAYED_ACK } else { RTO };
            self.cpus[cpu as usize].tcp_timer = self.host.at + timer;
            self.inet_touch(s, KernelOp::TcpRcv, ACCOUNTS, Access::Rmw);
            self.received(cpu, s, KernelOp::TcpRcv, skb, kind);
        }
    }

    /// The reader's acknowledgement, with the softirq on the reader's CPU that frees the sender's
    /// buffers, sends what waited, and wakes a writer once a third of its buffer is free.
    fn acknowledge(&mut self, cpu: u32, s: usize) {
        self.host.op(KernelOp::TcpAck);
        self.inet_touch(s, KernelOp::TcpAck, SENDER, Access::Rmw);
        let sock = &mut self.inets[s];
        sock.in_flight -= sock.read_since_ack;
        sock.small_in_flight = sock.small_in_flight.saturating_sub(sock.read_since_ack);
        sock.small_in_flight = sock.small_in_flight.saturating_sub(sock.read_since_ack);
        sock.read_since_ack = 0;
        self.transmit(cpu, s);
        let sock = &mut self.inets[s];
        let Inet::Tcp { sndbuf, .. } = sock.kind else {
            return;
        };
        if sock.queued() <= sndbuf / 3 * 2
            && let Some(writer) = sock.writers.pop_front()
        {
            self.queue_wake(cpu, writer, WakeKind::Wake);
        }
    }

    /// A packet has come to the receiver's queue: its reader is woken, if it sleeps.
    fn received(&mut self, cpu: u32, s: usize, op: KernelOp, skb: Skb, kind: WakeKind) {
        self.inet_touch(s, op, QUEUE, Access::Rmw);
        let last = self.inets[s].skbs.back().copied();
        self.link_skb(op, last.as_ref());
        self.inets[s].skbs.push_back(skb);
        if self.inets[s].readers.is_empty() {
            self.inet_touch(s, op, WAIT_QUEUE, Access::Load);
        } else {
            self.inet_touch(s, op, WAIT_QUEUE, Access::Rmw);
        }
        if let Some(reader) = self.inets[s].readers.pop_front() {
            self.queue_wake(cpu, reader, kind);
        }
    }

    fn inet_touch(&mut self, s: usize, op: KernelOp, line: u32, access: Access) {
        let line = self.inets[s].line + line;
        self.touch(op, line, 1, access);
    }

    /// A packet for `bytes`, written and charged to the sender. TCP keeps the original until it is
    /// acknowledged and sends a clone; what is in pages is not written here.
    fn new_packet(&mut self, s: usize, op: KernelOp, bytes: u32) -> Skb {
        let head = match self.inets[s].kind {
            Inet::Udp { .. } => Kind::SkbHead,
            Inet::Tcp { .. } => Kind::SkbFclone,
        };
        let linear = HEADERS + if bytes > BULK_BYTES { 0 } else { bytes };
        let data = match head {
            Kind::SkbHead => Kind::for_packet(linear),
            _ => Kind::SmallHead,
        };
        let skb = self.alloc_skb(op, (head, data), bytes, false);
        self.inet_touch(s, op, SENDER, Access::Rmw);
        self.fill_skb(op, &skb, linear);
        skb
    }

    /// `bytes` of the first packets have been copied to the caller: the packets that are empty go.
    fn drain_packets(&mut self, s: usize, op: KernelOp, bytes: u32) {
        let mut left = bytes;
        while left > 0
            && let Some(first) = self.inets[s].skbs.front_mut()
        {
            let part = first.left.min(left);
            first.left -= part;
            left -= part;
            let skb = *first;
            let linear = HEADERS + if part > BULK_BYTES { 0 } else { part };
            self.read_skb(op, &skb, linear, true);
            if skb.left > 0 {
                break;
            }
            self.inets[s].skbs.pop_front();
            let next = self.inets[s].skbs.front().copied();
            self.unlink_skb(op, &skb, next.as_ref());
            self.inet_touch(s, op, ACCOUNTS, Access::Rmw);
            self.free_skb(op, &skb);
        }
    }

    /// Copies between the caller and the packets. The lines of a small message are those of its
    /// packet. Those of a bulk transfer come as fast as the core can have them on their way, from
    /// where the other side left them: pages go round between the two, so the writer fetches what
    /// the reader had as the reader fetches what the writer had.
    fn copy_message(&mut self, s: usize, op: KernelOp, bytes: u32, access: Access) {
        let cpu = self.host.cpu;
        let sock = &mut self.inets[s];
        let far = if access == Access::Store {
            sock.writer_cpu = cpu;
            sock.reader_cpu
        } else {
            sock.reader_cpu = cpu;
            sock.writer_cpu
        };
        self.host.copy(op, bytes);
        let places = &self.distance.cpus;
        let (here, there) = (&places[cpu as usize], &places[far as usize]);
        if bytes <= BULK_BYTES || there.core == here.core {
            return;
        }
        let class = there.distance(here) as usize;
        let ps = u64::from(bytes.div_ceil(64)) * self.transfer[class] / LINES_IN_FLIGHT as Ps;
        let until = self.host.at + ps;
        self.host.wait_until(Place::Op(op), until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing::{on, server};
    use crate::machine::todo::Todo;

    /// Nagle's rule, as Minshall changed it.
    #[test]
    fn a_part_of_a_segment_waits_for_another_part_only() {
        let line = "netperf -t TCP_STREAM -l 1ms";
        on(&server(8), line, &[], |sim| {
            let is_stream = |sock: &InetState| match sock.kind {
                Inet::Tcp { piggyback, .. } => !piggyback,
                Inet::Udp { .. } => false,
            };
            let s = sim.inets.iter().position(is_stream).unwrap();
            sim.host.begin(0, 1_000_000);
            let mut left_of = |bytes| {
                sim.inets[s].unsent = bytes;
                sim.transmit(0, s);
                sim.inets[s].unsent
            };
            assert_eq!(left_of(Inet::MSS), 0);
            assert_eq!(left_of(100), 0, "a full one is on its way");
            assert_eq!(left_of(100), 100, "a part is");
            assert_eq!(left_of(Inet::MSS), 0);
        });
    }

    #[test]
    fn who_waits_in_epoll_is_woken_as_its_decision_says() {
        let how = |value| {
            let line = "sysbench oltp_read_only --threads=2 --time=5ms";
            on(&server(8), line, &[("epoll_wake", value)], |sim| {
                let waits = |sock: &InetState| {
                    let epoll = matches!(
                        sock.kind,
                        Inet::Tcp {
                            reader: Reader::Epoll,
                            ..
                        }
                    );
                    epoll && !sock.readers.is_empty()
                };
                let mut ms = 0;
                let s = loop {
                    ms += 1;
                    sim.run_to(ms * 1_000_000).unwrap();
                    if let Some(s) = sim.inets.iter().position(waits) {
                        break s;
                    }
                };
                sim.host.begin(0, sim.host.at);
                sim.inets[s].unsent = 100;
                sim.transmit(0, s);
                match sim.cpus[0].todo.back() {
                    Some(Todo::Wake { kind, .. }) => *kind,
                    other => panic!("{other:?}"),
                }
            })
        };
        assert_eq!(how("plain"), WakeKind::Wake);
        assert_eq!(how("sync"), WakeKind::Sync);
    }
}
