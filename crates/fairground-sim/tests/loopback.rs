//! UDP and TCP over the loopback interface: who is woken, when a writer sleeps, what is dropped.

use fairground::policy::{Features, find_profile};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::{Distance, Machine};
use fairground_sim::outcome::{self, Outcome};
use fairground_sim::workload::inet::Reader;
use fairground_sim::workload::program::Program;
use fairground_sim::workload::{
    Better, Env, From, Inet, MetricDef, Op, TaskTemplate, Until, Workload,
};

fn run(machine: &Machine, workload: &Workload) -> Outcome {
    let features = Features::of_profile(find_profile("linux-6.18").unwrap());
    let setup = Setup {
        machine,
        features,
        workload,
        seed: 1,
        trace: false,
    };
    outcome::run_within(&setup, 20_000_000).unwrap_or_else(|e| panic!("{e}"))
}

fn metric(out: &Outcome, name: &str) -> f64 {
    let found = out.metrics.iter().find(|(n, _)| n == name);
    found
        .and_then(|m| m.1)
        .unwrap_or_else(|| panic!("no {name}"))
}

fn guest() -> Machine {
    Machine::builtin("spr-guest-2cpu").unwrap()
}

fn netperf(line: &str, machine: &Machine) -> Outcome {
    let argv: Vec<&str> = line.split(' ').collect();
    let env = Env {
        cpus: machine.topology.nr_cpus() as u32,
    };
    run(machine, &Workload::from_argv(&argv, &env).unwrap())
}

#[test]
fn a_transaction_is_two_wake_ups() {
    // With CPUs to spare, so that no partner preempts the other as it sends.
    let machine = Machine::builtin("xeon-8cpu-2013").unwrap();
    for test in ["UDP_RR", "TCP_RR"] {
        let out = netperf(&format!("netperf -t {test} -l 20ms"), &machine);
        let transactions = metric(&out, "netperf.trans_per_s") * 0.02;
        let wakeups = metric(&out, "wakeups");
        assert!(
            (wakeups - 2.0 * transactions).abs() <= 4.0,
            "{test}: {wakeups} wake-ups in {transactions} transactions"
        );
    }
}

#[test]
fn the_softirq_runs_on_the_senders_cpu() {
    let out = netperf("netperf -t UDP_RR -l 20ms", &guest());
    let calls = |name: &str| out.functions.iter().find(|f| f.0 == name).unwrap().2;
    // Each message goes through it once, and no interrupt brings it.
    let sends = calls("udp_sendmsg");
    assert!(sends.abs_diff(calls("udp_queue_rcv_one_skb")) <= 1);
    assert!(sends > 1000);
}

/// Datagrams that as many tasks, each on a core of its own, send in a millisecond. Nobody reads.
fn datagrams(machine: &Machine, senders: u32, connected: bool) -> f64 {
    let mut w = Workload::new("datagrams", Vec::new());
    w.marks = vec!["sent".into()];
    w.duration = Until::Time(2_000_000);
    w.warmup_ns = 1_000_000;
    for i in 0..senders {
        w.inets.push(Inet::udp(connected));
        w.masks.push(vec![i]);
        let count = fairground_sim::workload::program::FOREVER;
        let send = Op::Send { inet: i, bytes: 1 };
        w.programs.push(Program {
            name: "sender".into(),
            ops: vec![
                Op::LoopStart { count },
                send,
                Op::Mark(0),
                Op::LoopEnd { start: 0 },
            ],
        });
        let mut task = TaskTemplate::new("sender", i, i);
        task.affinity = Some(i);
        w.templates.push(task);
    }
    w.initial = (0..senders).collect();
    w.metrics = vec![MetricDef::new("sent", "1", Better::Higher, From::Count(0))];
    metric(&run(machine, &w), "sent")
}

#[test]
fn unconnected_sockets_of_the_whole_machine_share_a_counter() {
    let machine = Machine::builtin("spr-8480-2s").unwrap();
    let sent = [1, 40].map(|n| [false, true].map(|c| datagrams(&machine, n, c)));
    // One sender alone has the line to itself.
    let [one, many] = sent;
    assert!((one[1] / one[0] - 1.0).abs() < 0.05, "{one:?}");
    // Many cannot have it more often than it can be handed over; sockets that are connected can
    // send as often as their CPUs can.
    let most = 1e6 / machine.rmw_service_ns(Distance::SameSocket);
    assert!(many[0] < 1.05 * most, "{many:?}, {most}");
    assert!(many[0] > 0.8 * most, "{many:?}, {most}");
    assert!(many[1] > 25.0 * one[1], "{many:?}, {one:?}");
}

/// A sender of `messages` messages, and a reader that begins to read after `wait_ns`.
fn stream(kind: Inet, messages: u64, bytes: u32, wait_ns: u64) -> Workload {
    let mut w = Workload::new("stream", Vec::new());
    w.inets = vec![kind];
    w.marks = vec!["sent".into(), "received".into()];
    let (inet, forever) = (0, fairground_sim::workload::program::FOREVER);
    let send = vec![
        Op::LoopStart { count: messages },
        Op::Send { inet, bytes },
        Op::Mark(0),
        Op::LoopEnd { start: 0 },
    ];
    let receive = vec![
        Op::LoopStart { count: forever },
        Op::Recv { inet, bytes },
        Op::Mark(1),
        Op::LoopEnd { start: 0 },
    ];
    for (i, (name, ops)) in [("sender", send), ("reader", receive)]
        .into_iter()
        .enumerate()
    {
        let name = name.to_owned();
        w.programs.push(Program { name, ops });
        let mut task = TaskTemplate::new("stream", i as u32, i as u32);
        task.start_ns = i as u64 * wait_ns;
        w.templates.push(task);
    }
    w.initial = vec![0, 1];
    w.duration = Until::Time(20_000_000);
    let count = |name: &str, mark| MetricDef::new(name, "1", Better::Neither, From::Count(mark));
    w.metrics = vec![count("sent", 0), count("received", 1)];
    w
}

fn tcp(sndbuf: u32, window: u32) -> Inet {
    Inet::Tcp {
        sndbuf,
        window,
        piggyback: false,
        reader: Reader::Recv,
    }
}

#[test]
fn a_writer_sleeps_when_the_send_buffer_is_full_and_goes_on_when_it_is_read() {
    let kind = tcp(16 * 16_384, 1 << 20);
    let never = run(&guest(), &stream(kind, 1000, 16_384, 1_000_000_000));
    assert_eq!(metric(&never, "sent"), 16.0);
    let later = run(&guest(), &stream(kind, 1000, 16_384, 2_000_000));
    assert_eq!(metric(&later, "sent"), 1000.0);
}

#[test]
fn a_small_window_holds_a_stream_back() {
    // The send buffer takes 64 messages, the window two segments; what is acknowledged is sent on.
    let kind = tcp(64 * 16_384, 2 * Inet::MSS);
    let out = run(&guest(), &stream(kind, 500, 16_384, 2_000_000));
    assert_eq!(metric(&out, "sent"), 500.0);
    // 500 messages of 16384 bytes in reads of at most as many.
    assert!(metric(&out, "received") >= 500.0);
}

#[test]
fn a_full_receive_buffer_drops_datagrams() {
    // 768 bytes are charged for a small datagram, so 278 fit.
    let out = run(&guest(), &stream(Inet::UDP, 1000, 1, 10_000_000));
    assert_eq!(metric(&out, "sent"), 1000.0);
    assert_eq!(metric(&out, "received"), 278.0);
}

#[test]
fn wrong_sockets_are_refused() {
    let mut w = stream(Inet::UDP, 1, 1, 0);
    w.inets.clear();
    assert!(w.validate().unwrap_err().contains("socket 0 of 0"));
    w.inets = vec![tcp(0, 1 << 20)];
    assert!(w.validate().unwrap_err().contains("no capacity"));
}
