//! netperf over the loopback interface. See `docs/workloads/netperf.md`; its options are in
//! `netperf_args.rs`.
use super::common::{add_program, repeat};
use super::netperf_args::{Length, Load, TESTS, Test, arguments};
use super::{Env, Error};
use crate::workload::metric::Work;
use crate::workload::metric::{Better, From, MetricDef, PERCENTILES};
use crate::workload::program::{Inet, Ns, Op, TaskTemplate, Until, Workload};
use crate::workload::words::Words;

/// Options that decide what is measured.
pub(super) const FORMS: [&str; 4] = ["-t UDP_RR", "-t TCP_RR", "-t UDP_STREAM", "-t TCP_STREAM"];

/// Two processes of each pair are made one after the other; see `docs/workloads/netperf.md`.
const START_NS: Ns = 60_000;
const SETTLE_NS: Ns = 15_000_000;
const TRANSACTION: u32 = 0;
const RECEIVED: u32 = 1;

pub(super) fn parse(argv: &[String], _env: Env) -> Result<Workload, Error> {
    let tool = "netperf";
    let (args, load) = arguments(argv)?;
    let mut w = Workload::new(tool, argv.to_vec());
    let leaves = args.cgroups.build(tool, &mut w)?;
    w.requests = vec!["transaction".into()];
    w.marks = vec!["transaction".into(), "received".into()];
    for pair in 0..args.pairs {
        let leaf = leaves[pair as usize % leaves.len()];
        add_pair(&mut w, &load, pair, leaf);
    }
    w.initial = (0..2 * args.pairs).collect();
    let created = START_NS * 2 * Ns::from(args.pairs);
    match args.length {
        Length::Time(ns) => {
            w.warmup_ns = args.warmup.unwrap_or(created + SETTLE_NS);
            w.duration = Until::Time(w.warmup_ns + ns);
            w.notes.extend(load.slow_reader(ns));
            w.work = Some(load.work());
        }
        // From the first to the last, with the start.
        Length::Transactions(_) => w.warmup_ns = args.warmup.unwrap_or(0),
    }
    results(&mut w, &load, args.pairs);
    Ok(w)
}

impl Load {
    /// What a window counts.
    fn work(&self) -> Work {
        match self.test {
            Test::UdpRr | Test::TcpRr => Work::new("transaction", From::Count(TRANSACTION)),
            Test::TcpStream => Work::new("send", From::Count(TRANSACTION)),
            Test::UdpStream => Work::new("datagram", From::Count(RECEIVED)),
        }
    }

    /// The bytes that come of a datagram, or of one send to a stream in the end.
    fn received(&self) -> u32 {
        match self.test {
            Test::UdpStream => self.send.min(self.recv),
            _ => self.send,
        }
    }

    /// What to say if the reader of a stream is so slow that the writer, which sleeps until a third
    /// of its buffer is free, is seldom awake in a window of `ns`: only what it sends counts.
    fn slow_reader(&self, ns: Ns) -> Option<String> {
        // No system call is shorter.
        const CALL_NS: u64 = 100;
        const TIMES: u64 = 20;
        let Inet::Tcp { sndbuf, .. } = Inet::STREAM else {
            return None;
        };
        let (recv, third) = (self.recv, u64::from(sndbuf) / 3);
        let slow = ns / CALL_NS * u64::from(recv) < TIMES * third;
        (self.test == Test::TcpStream && slow).then(|| {
            format!(
                "with receives of {recv} bytes the sender, woken when a third of its 4 MiB \
                 is free, sends seldom or never in a window that short; -l makes it longer"
            )
        })
    }
}

fn add_pair(w: &mut Workload, load: &Load, pair: u32, leaf: u32) {
    let there = w.inets.len() as u32;
    let back = there + 1;
    let (client, server) = match load.test {
        Test::UdpRr | Test::TcpRr => {
            w.inets.extend(if load.test == Test::UdpRr {
                [Inet::udp(load.connected), Inet::udp(load.remote_connected)]
            } else {
                [Inet::REQUEST; 2]
            });
            request_response(there, back, load.request, load.response)
        }
        Test::UdpStream | Test::TcpStream => {
            w.inets.push(match load.test {
                Test::UdpStream => Inet::udp(load.connected),
                _ => Inet::STREAM,
            });
            let (inet, bytes) = (there, load.send);
            let send = Op::Send { inet, bytes };
            let bytes = load.recv;
            let recv = Op::Recv { inet, bytes };
            (
                vec![send, Op::Mark(TRANSACTION)],
                vec![recv, Op::Mark(RECEIVED)],
            )
        }
    };
    for (name, body, process) in [
        ("netserver", server, 2 * pair + 1),
        ("netperf", client, 2 * pair + 2),
    ] {
        let mut ops = Vec::new();
        repeat(&mut ops, load.turns, body);
        let program = add_program(w, name, ops);
        let mut task = TaskTemplate::new(name, program, process);
        task.cgroup = Some(leaf);
        w.templates.push(task);
    }
}

fn request_response(there: u32, back: u32, request: u32, response: u32) -> (Vec<Op>, Vec<Op>) {
    let all = |inet, bytes| Op::Recv { inet, bytes };
    let client = vec![
        Op::ReqStart(0),
        Op::Send {
            inet: there,
            bytes: request,
        },
        all(back, response),
        Op::ReqEnd(0),
        Op::Mark(TRANSACTION),
    ];
    let server = vec![
        all(there, request),
        Op::Mark(RECEIVED),
        Op::Send {
            inet: back,
            bytes: response,
        },
    ];
    (client, server)
}

fn results(w: &mut Workload, load: &Load, pairs: u32) {
    let per_client = 1.0 / f64::from(pairs);
    let mbit = |mark, bytes: u32| From::ScaledPerS {
        mark,
        factor: f64::from(bytes) * 8.0 / 1e6 * per_client,
    };
    let higher = |name: &str, unit: &str, from| MetricDef::new(name, unit, Better::Higher, from);
    let lower = |name: &str, from| MetricDef::new(name, "us", Better::Lower, from);
    w.metrics = match load.test {
        Test::UdpRr | Test::TcpRr => {
            let mark = TRANSACTION;
            let rate = From::ScaledPerS {
                mark,
                factor: per_client,
            };
            let rtt = |(name, permille): (&str, u32)| {
                let request = 0;
                let from = From::RequestQuantileUs { request, permille };
                lower(&format!("netperf.rtt_us.{name}"), from)
            };
            let mut all = vec![
                higher("netperf.trans_per_s", "1/s", rate),
                lower("netperf.rtt_us.mean", From::RequestMeanUs(0)),
            ];
            all.extend(PERCENTILES.map(rtt));
            all.push(rtt(("max", 1000)));
            all
        }
        Test::TcpStream => {
            vec![higher(
                "netperf.mbit_per_s",
                "Mbit/s",
                mbit(TRANSACTION, load.send),
            )]
        }
        Test::UdpStream => vec![
            higher(
                "netperf.mbit_per_s",
                "Mbit/s",
                mbit(RECEIVED, load.received()),
            ),
            higher(
                "netperf.sent_mbit_per_s",
                "Mbit/s",
                mbit(TRANSACTION, load.send),
            ),
        ],
    };
    let name = TESTS.iter().find(|t| t.1 == load.test).map_or("", |t| t.0);
    let sizes = match load.test {
        Test::UdpRr | Test::TcpRr => (load.request, load.response),
        _ => (load.send, load.received()),
    };
    w.words = Words::Netperf {
        test: name,
        sizes,
        pairs,
    };
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error, make};
    use super::*;

    #[test]
    fn each_test_is_a_form() {
        assert_eq!(
            FORMS.map(str::to_owned),
            TESTS.map(|t| format!("-t {}", t.0))
        );
    }

    #[test]
    fn each_pair_is_two_processes_of_one_group() {
        let w = make("netperf -t udp_rr --pairs 3 --tree 1:3 -l 20ms -- -r 10,20");
        assert_eq!((w.templates.len(), w.inets.len()), (6, 6));
        assert!(w.inets.iter().all(|i| *i == Inet::UDP));
        for pair in w.templates.chunks(2) {
            assert_eq!(pair[0].cgroup, pair[1].cgroup);
            assert_ne!(pair[0].process, pair[1].process);
        }
        assert_ne!(w.templates[0].cgroup, w.templates[2].cgroup);
        let client = &w.programs[w.templates[1].program as usize].ops;
        assert!(client.contains(&Op::Send { inet: 0, bytes: 10 }));
        assert!(client.contains(&Op::Recv { inet: 1, bytes: 20 }));
        assert_eq!(w.duration, Until::Time(w.warmup_ns + 20_000_000));
        let w = make("netperf -t UDP_RR -- -N");
        assert_eq!(w.inets, [Inet::UDP, Inet::udp(true)]);
        let w = make("netperf -l 2 -m 1000");
        assert_eq!(w.inets, [Inet::STREAM]);
        assert_eq!(w.duration, Until::Time(w.warmup_ns + 2_000_000_000));
    }

    #[test]
    fn rates_are_those_of_the_mean_client() {
        let w = make("netperf -t UDP_RR --pairs 4");
        let mut marks = w.empty_marks();
        (0..1000).for_each(|_| marks.mark(0, w.warmup_ns));
        marks.elapsed_ns = 100_000_000;
        assert_eq!(w.metrics[0].value(&marks), Some(2500.0));
        let words = w.words.print(&marks);
        assert!(
            words.starts_with("MIGRATED UDP REQUEST/RESPONSE TEST"),
            "{words}"
        );
        assert!(words.contains(" : mean of 4 clients\n"), "{words}");
        let w = make("netperf -t TCP_STREAM -m 12500");
        assert_eq!(w.metrics[0].value(&marks), Some(1000.0));
    }

    /// What is printed below the head after 1000 sends and 900 receives in a second.
    fn printed(line: &str) -> String {
        let w = make(line);
        let mut marks = w.empty_marks();
        (0..1000).for_each(|_| marks.mark(TRANSACTION, w.warmup_ns));
        (0..900).for_each(|_| marks.mark(RECEIVED, w.warmup_ns));
        marks.elapsed_ns = 1_000_000_000;
        let words = w.words.print(&marks);
        words.split_once("\n\n").unwrap().1.to_owned()
    }

    /// Columns of outputs of the tool, version 2.7.
    #[test]
    fn the_columns_are_those_of_the_tool() {
        assert_eq!(
            printed("netperf -t TCP_RR"),
            "16384  131072 1        1       1.00     1000.00   \n16384  131072"
        );
        assert_eq!(
            printed("netperf -t UDP_RR -- -r 64,128"),
            "212992 212992 64       128     1.00     1000.00   \n212992 212992"
        );
        assert_eq!(
            printed("netperf -- -m 12500"),
            "131072  16384  12500    1.00      100.00   "
        );
        assert_eq!(
            printed("netperf -t UDP_STREAM -- -m 12500"),
            "212992   12500   1.00         1000      0     100.00\n\
             212992           1.00          900             90.00"
        );
    }

    #[test]
    fn a_receive_cuts_datagrams() {
        let w = make("netperf -t UDP_STREAM -- -m 1000 -M 100");
        let server = &w.programs[w.templates[0].program as usize].ops;
        assert!(server.contains(&Op::Recv {
            inet: 0,
            bytes: 100
        }));
        let mut marks = w.empty_marks();
        (0..1000).for_each(|_| marks.mark(RECEIVED, w.warmup_ns));
        marks.elapsed_ns = 1_000_000_000;
        assert_eq!(w.metrics[0].value(&marks), Some(0.8));
    }

    #[test]
    fn a_negative_length_is_a_number_of_transactions() {
        let w = make("netperf -t TCP_RR -l -1000");
        assert_eq!((w.duration, w.warmup_ns), (Until::AllExit, 0));
        for program in &w.programs {
            assert!(program.ops.contains(&Op::LoopStart { count: 1000 }));
        }
        assert!(error("netperf -l -1000").contains("only one of transactions"));
    }

    #[test]
    fn a_reader_of_single_bytes_is_noted() {
        let notes = |line: &str| make(line).notes.len();
        assert_eq!(notes("netperf -- -M 1"), 1);
        assert_eq!(notes("netperf"), 0);
        assert_eq!(notes("netperf -t UDP_STREAM -- -M 1"), 0);
    }
}
