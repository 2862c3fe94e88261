//! Messages through sockets without anybody who sleeps: one task sends a batch, later another
//! receives it, on the same CPU or on another. What such a batch costs was measured on the guest
//! (docs/calibration.md); here is what the lines of messages add to the instructions.

use fairground::policy::{Features, find_profile};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome;
use fairground_sim::workload::program::{Chan, ChanKind, Dur, FOREVER, Program};
use fairground_sim::workload::{Better, From, Inet, MetricDef, Op, TaskTemplate, Until, Workload};

#[derive(Clone, Copy)]
enum Socket {
    Unix,
    Inet(Inet),
}

const TCP: Socket = Socket::Inet(Inet::REQUEST);
const UDP: Socket = Socket::Inet(Inet::UDP);

/// A batch: so many messages of so many bytes through so many sockets, received on this CPU (sent
/// on CPU 0).
struct Batch(Socket, u32, u32, u32, u32);

impl Batch {
    fn program(&self, sends: bool) -> Program {
        let Self(socket, messages, sockets, bytes, _) = *self;
        let step = |i| match (socket, sends) {
            (Socket::Unix, true) => Op::Write { chan: i, bytes },
            (Socket::Unix, false) => Op::Read { chan: i, bytes },
            (Socket::Inet(_), true) => Op::Send { inet: i, bytes },
            (Socket::Inet(_), false) => Op::Recv { inet: i, bytes },
        };
        let kind = u32::from(!sends);
        let mut ops = vec![Op::LoopStart { count: FOREVER }];
        ops.push(Op::Period(Dur::Const(self.period_ns())));
        ops.extend([
            Op::ReqStart(kind),
            Op::LoopStart {
                count: messages.into(),
            },
        ]);
        ops.extend((0..sockets).map(step));
        ops.extend([
            Op::LoopEnd { start: 3 },
            Op::ReqEnd(kind),
            Op::LoopEnd { start: 0 },
        ]);
        let name = if sends { "sender" } else { "receiver" }.to_owned();
        Program { name, ops }
    }

    fn period_ns(&self) -> u64 {
        let Self(_, messages, sockets, ..) = *self;
        1_000_000 + u64::from(messages * sockets) * 12_000
    }

    /// Send and receive, ns a message.
    fn run(&self) -> [f64; 2] {
        let Self(socket, messages, sockets, _, receiver) = *self;
        let mut w = Workload::new("batch", Vec::new());
        match socket {
            Socket::Unix => {
                w.chans = vec![
                    Chan {
                        kind: ChanKind::SOCKET
                    };
                    sockets as usize
                ]
            }
            Socket::Inet(kind) => w.inets = vec![kind; sockets as usize],
        }
        w.requests = vec!["send".into(), "receive".into()];
        w.masks = vec![vec![0], vec![receiver]];
        w.programs = vec![self.program(true), self.program(false)];
        for i in 0..2 {
            // One thread that does both has its table of files for itself.
            let process = if receiver == 0 { i } else { 0 };
            let mut task = TaskTemplate::new("batch", i, process);
            task.start_ns = u64::from(i) * self.period_ns() / 2;
            task.thread = process != i;
            task.affinity = Some(i);
            w.templates.push(task);
        }
        w.initial = vec![0, 1];
        w.warmup_ns = 5 * self.period_ns();
        w.duration = Until::Time(8 * self.period_ns());
        let median = |name: &str, request| {
            let from = From::RequestQuantileUs {
                request,
                permille: 500,
            };
            MetricDef::new(name, "us", Better::Lower, from)
        };
        w.metrics = vec![median("send", 0), median("receive", 1)];
        let machine = Machine::builtin("spr-guest-2cpu").unwrap();
        let features = Features::of_profile(find_profile("linux-6.18").unwrap());
        let setup = Setup {
            machine: &machine,
            features,
            workload: &w,
            seed: 1,
            trace: false,
        };
        let out = outcome::run_within(&setup, 20_000_000).unwrap_or_else(|e| panic!("{e}"));
        ["send", "receive"].map(|name| {
            let found = out.metrics.iter().find(|(n, _)| n == name);
            let us = found
                .and_then(|m| m.1)
                .unwrap_or_else(|| panic!("no {name}"));
            us * 1000.0 / f64::from(messages * sockets)
        })
    }

    fn total(&self) -> f64 {
        self.run().iter().sum()
    }
}

fn print(what: &str, batch: &Batch) -> f64 {
    let [send, receive] = batch.run();
    println!(
        "{what}: send {send:.0} receive {receive:.0} sum {:.0}",
        send + receive
    );
    send + receive
}

#[test]
fn one_thread_takes_what_was_measured() {
    let near = |what: &str, batch: Batch, measured: f64| {
        let sum = print(what, &batch);
        assert!(
            (sum / measured - 1.0).abs() < 0.03,
            "{what}: {sum:.0} ns for {measured:.0}"
        );
    };
    near("unix", Batch(Socket::Unix, 16, 1, 1, 0), 766.0);
    near("UDP", Batch(UDP, 16, 1, 1, 0), 1371.0);
    near("TCP", Batch(TCP, 16, 1, 1, 0), 1840.0);
}

#[test]
fn messages_that_go_to_another_cpu_take_twice_as_long() {
    for (n, at_least) in [(1, 2.2), (16, 1.6), (64, 1.6), (256, 1.6)] {
        let one = print("one CPU", &Batch(Socket::Unix, n, 1, 100, 0));
        let two = print("two CPUs", &Batch(Socket::Unix, n, 1, 100, 1));
        assert!(
            two > one * at_least && two < one * 3.0,
            "{n} messages: {two:.0} for {one:.0}"
        );
    }
    for (kind, n) in [(UDP, 1), (UDP, 16), (TCP, 1), (TCP, 16)] {
        let one = print("one CPU", &Batch(kind, n, 1, 1, 0));
        let two = print("two CPUs", &Batch(kind, n, 1, 1, 1));
        assert!(two > one * 1.2 && two < one * 1.8, "{two:.0} for {one:.0}");
    }
}

#[test]
fn long_queues_leave_the_caches() {
    let hot = Batch(Socket::Unix, 16, 1, 100, 0).total();
    // Freed by the slab's own list instead of the CPU's.
    let queue = print("256 messages", &Batch(Socket::Unix, 256, 1, 100, 0));
    assert!(queue > hot + 20.0, "{queue:.0} for {hot:.0}");
    // 4 MiB of messages go round: more than the second-level cache holds.
    let queues = print("20 sockets", &Batch(Socket::Unix, 256, 20, 100, 0));
    assert!(queues > hot + 120.0, "{queues:.0} for {hot:.0}");
}

#[test]
fn a_long_message_costs_its_copy() {
    let whole = Batch(Socket::Unix, 4, 1, 20_000, 0).total();
    assert!(whole > Batch(Socket::Unix, 4, 1, 100, 0).total() + 500.0);
}
