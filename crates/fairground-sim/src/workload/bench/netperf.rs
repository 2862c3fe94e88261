//! netperf over the loopback interface. See `docs/workloads/netperf.md`.
use super::common::{Groups, add_program, positive, repeat};
use super::{Env, Error, bad, options};
use crate::workload::duration::parse_ns;
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::program::{FOREVER, Inet, Ns, Op, TaskTemplate, Until, Workload};
use crate::workload::words::Words;

/// netperf: pairs of a client and a server process that talk over 127.0.0.1.
#[derive(clap::Parser, Debug)]
#[command(name = "netperf", disable_version_flag = true)]
struct Args {
    /// Test: UDP_RR, TCP_RR, UDP_STREAM or TCP_STREAM.
    #[arg(short, long, value_name = "TEST", default_value = "TCP_STREAM",
          value_parser = test, ignore_case = true)]
    test: Test,
    /// Length of the measurement: seconds, or a duration with its unit. The tool's default is 10
    /// seconds.
    #[arg(short, long, value_name = "SECONDS", default_value = "50ms", value_parser = seconds)]
    length: Ns,
    /// Host: only this one.
    #[arg(short = 'H', long, value_name = "HOST", default_value = "127.0.0.1",
          value_parser = this_host)]
    host: String,
    /// Clients, each with a server of its own, as if so many netperf were started at once.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: u32,
    /// Bytes of a request and of an answer (_RR).
    #[arg(short, long, value_name = "REQ,RESP", value_delimiter = ',', num_args = 1,
          default_values_t = [1, 1], value_parser = clap::value_parser!(u32).range(1..=65_507))]
    request: Vec<u32>,
    /// Bytes of each send (_STREAM); by default 16384, and 65507 for datagrams.
    #[arg(short = 'm', long = "send-size", value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    send_size: Option<u32>,
    /// Most bytes of each receive (_STREAM).
    #[arg(short = 'M', long = "recv-size", value_name = "BYTES", default_value_t = 131_072,
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    recv_size: u32,
    /// The client's socket is connected (UDP).
    #[arg(short = 'n', long)]
    connected: bool,
    /// The server's socket is connected (UDP).
    #[arg(short = 'N', long)]
    remote_connected: bool,
    /// Time before the measurement that does not count; by default until all processes are there,
    /// and 15 ms.
    #[arg(long, value_parser = parse_ns)]
    warmup: Option<Ns>,
    #[command(flatten)]
    cgroups: Groups,
}

/// Which test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    UdpRr,
    TcpRr,
    UdpStream,
    TcpStream,
}

const TESTS: [(&str, Test); 4] = [
    ("UDP_RR", Test::UdpRr),
    ("TCP_RR", Test::TcpRr),
    ("UDP_STREAM", Test::UdpStream),
    ("TCP_STREAM", Test::TcpStream),
];

/// Options that decide what is measured.
pub(super) const FORMS: [&str; 4] = ["-t UDP_RR", "-t TCP_RR", "-t UDP_STREAM", "-t TCP_STREAM"];

fn test(text: &str) -> Result<Test, String> {
    let found = TESTS.iter().find(|t| t.0.eq_ignore_ascii_case(text));
    let names = || TESTS.map(|t| t.0).join(", ");
    found
        .map(|t| t.1)
        .ok_or_else(|| format!("expected one of {}", names()))
}

fn this_host(text: &str) -> Result<String, String> {
    match text {
        "127.0.0.1" | "localhost" => Ok(text.to_owned()),
        _ => Err("expected 127.0.0.1: only the loopback interface is modelled".into()),
    }
}

/// A length as netperf takes it, in whole seconds, or with a unit.
pub(super) fn seconds(text: &str) -> Result<Ns, String> {
    match text.parse::<u32>() {
        Ok(s) if s > 0 => Ok(Ns::from(s) * 1_000_000_000),
        Ok(_) => Err("expected more than 0".into()),
        Err(_) => positive(text),
    }
}

/// Two processes of each pair are made one after the other; see `docs/workloads/netperf.md`.
const START_NS: Ns = 60_000;
const SETTLE_NS: Ns = 15_000_000;
const UDP_BYTES_MAX: u32 = 65_507;
const TRANSACTION: u32 = 0;
const RECEIVED: u32 = 1;

pub(super) fn parse(argv: &[String], _env: Env) -> Result<Workload, Error> {
    let tool = "netperf";
    // Options of a test stand behind "--" on netperf's command line.
    let given: Vec<String> = argv.iter().filter(|a| *a != "--").cloned().collect();
    let mut args: Args = options(tool, &given)?;
    if args.request.len() > 2 {
        return Err(bad(tool, "-r takes two sizes: REQUEST,RESPONSE"));
    }
    if args.request.len() == 1 {
        // One size alone is that of both.
        args.request.push(args.request[0]);
    }
    let datagrams = args.test == Test::UdpStream;
    let size = args
        .send_size
        .unwrap_or(if datagrams { UDP_BYTES_MAX } else { 16_384 });
    if datagrams && size > UDP_BYTES_MAX {
        return Err(bad(
            tool,
            format!("-m {size}: a datagram has at most {UDP_BYTES_MAX} bytes"),
        ));
    }
    let mut w = Workload::new(tool, argv.to_vec());
    let leaves = args.cgroups.build(tool, &mut w)?;
    w.requests = vec!["transaction".into()];
    w.marks = vec!["transaction".into(), "received".into()];
    for pair in 0..args.pairs {
        let leaf = leaves[pair as usize % leaves.len()];
        add_pair(&mut w, &args, pair, leaf, size);
    }
    w.initial = (0..2 * args.pairs).collect();
    let created = START_NS * 2 * Ns::from(args.pairs);
    w.warmup_ns = args.warmup.unwrap_or(created + SETTLE_NS);
    w.duration = Until::Time(w.warmup_ns + args.length);
    results(&mut w, &args, size);
    Ok(w)
}

fn add_pair(w: &mut Workload, args: &Args, pair: u32, leaf: u32, size: u32) {
    let there = w.inets.len() as u32;
    let back = there + 1;
    let (client, server) = match args.test {
        Test::UdpRr | Test::TcpRr => {
            w.inets.extend(if args.test == Test::UdpRr {
                [Inet::udp(args.connected), Inet::udp(args.remote_connected)]
            } else {
                [Inet::REQUEST; 2]
            });
            request_response(there, back, args.request[0], args.request[1])
        }
        Test::UdpStream | Test::TcpStream => {
            let udp = args.test == Test::UdpStream;
            w.inets.push(if udp {
                Inet::udp(args.connected)
            } else {
                Inet::STREAM
            });
            let send = Op::Send {
                inet: there,
                bytes: size,
            };
            let bytes = if udp { UDP_BYTES_MAX } else { args.recv_size };
            let recv = Op::Recv { inet: there, bytes };
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
        repeat(&mut ops, FOREVER, body);
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

fn results(w: &mut Workload, args: &Args, size: u32) {
    let per_client = 1.0 / f64::from(args.pairs);
    let mbit = |mark, bytes: u32| From::ScaledPerS {
        mark,
        factor: f64::from(bytes) * 8.0 / 1e6 * per_client,
    };
    let higher = |name: &str, unit: &str, from| MetricDef::new(name, unit, Better::Higher, from);
    let lower = |name: &str, from| MetricDef::new(name, "us", Better::Lower, from);
    w.metrics = match args.test {
        Test::UdpRr | Test::TcpRr => {
            let mark = TRANSACTION;
            let rate = From::ScaledPerS {
                mark,
                factor: per_client,
            };
            let (request, permille) = (0, 990);
            vec![
                higher("netperf.trans_per_s", "1/s", rate),
                lower("netperf.rtt_us.mean", From::RequestMeanUs(0)),
                lower(
                    "netperf.rtt_us.p99",
                    From::RequestQuantileUs { request, permille },
                ),
            ]
        }
        Test::TcpStream => {
            vec![higher(
                "netperf.mbit_per_s",
                "Mbit/s",
                mbit(TRANSACTION, size),
            )]
        }
        Test::UdpStream => vec![
            higher("netperf.mbit_per_s", "Mbit/s", mbit(RECEIVED, size)),
            higher("netperf.sent_mbit_per_s", "Mbit/s", mbit(TRANSACTION, size)),
        ],
    };
    let name = TESTS.iter().find(|t| t.1 == args.test).map_or("", |t| t.0);
    let sizes = match args.test {
        Test::UdpRr | Test::TcpRr => (args.request[0], args.request[1]),
        _ => (size, 0),
    };
    w.words = Words::Netperf {
        test: name,
        sizes,
        pairs: args.pairs,
    };
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error, make};
    use super::*;
    use crate::workload::metric::Marks;

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
        let mut marks = Marks::new(&w);
        (0..1000).for_each(|_| marks.mark(0, w.warmup_ns));
        marks.elapsed_ns = 100_000_000;
        assert_eq!(w.metrics[0].value(&marks), Some(2500.0));
        let words = w.words.print(&marks);
        assert!(
            words.starts_with("MIGRATED UDP REQUEST/RESPONSE TEST"),
            "{words}"
        );
        assert!(
            words.ends_with("1        1       0.10     2500.00"),
            "{words}"
        );
        let w = make("netperf -t TCP_STREAM -m 12500");
        assert_eq!(w.metrics[0].value(&marks), Some(1000.0));
        assert!(w.words.print(&marks).ends_with("0.10     1000.00"));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, expected) in [
            ("netperf -t UDP_RT", "expected one of UDP_RR"),
            ("netperf -l 0", "more than 0"),
            ("netperf -r 1,2,3", "two sizes"),
            ("netperf -H 10.0.0.1", "127.0.0.1"),
            ("netperf -t UDP_STREAM -m 65508", "at most 65507"),
            ("netperf --pair", "did you mean '--pairs'?"),
        ] {
            let message = error(line);
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
