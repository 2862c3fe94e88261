//! The command line of netperf: options before and behind the `--`.
use super::common::{self, Groups};
use super::{Error, bad, options};
use crate::workload::program::{FOREVER, Ns};

/// netperf: pairs of a client and a server process that talk over 127.0.0.1. Options of the test
/// may stand behind `--`, as netperf has them; there -n and -N connect the sockets.
#[derive(clap::Parser, Debug)]
#[command(name = "netperf", disable_version_flag = true)]
pub(super) struct Args {
    /// Test: UDP_RR, TCP_RR, UDP_STREAM or TCP_STREAM.
    #[arg(short, long, value_name = "TEST", default_value = "TCP_STREAM",
          value_parser = test, ignore_case = true)]
    test: Test,
    /// Length of the measurement: seconds, or a duration with its unit; -1000 is a thousand
    /// transactions (_RR). The tool's default is 10 seconds.
    #[arg(short, long, value_name = "SECONDS", default_value = "50ms", value_parser = length,
          allow_negative_numbers = true)]
    pub length: Length,
    /// Host: only this one.
    #[arg(short = 'H', long, value_name = "HOST", default_value = "127.0.0.1",
          value_parser = this_host)]
    host: String,
    /// Clients, each with a server of its own, as if so many netperf were started at once.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Time before the measurement that does not count; by default until all processes are there,
    /// and 15 ms.
    #[arg(long, value_parser = common::length)]
    pub warmup: Option<Ns>,
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    harmless: Harmless,
    #[command(flatten)]
    pub cgroups: Groups,
}

/// Options of a test, which may stand before the `--`, too.
#[derive(clap::Args, Clone, Debug)]
struct Sizes {
    /// Bytes of a request and of an answer (_RR); one alone is that of both.
    #[arg(short, long, value_name = "REQ,RESP", value_parser = pair, allow_hyphen_values = true)]
    request: Option<(u32, u32)>,
    /// Bytes of each send (_STREAM); by default 16384, and 65507 for datagrams.
    #[arg(short = 'm', long = "send-size", value_name = "BYTES", value_parser = send_size)]
    send_size: Option<u32>,
    /// Most bytes of each receive (_STREAM); what is more of a datagram is lost. By default 131072.
    #[arg(short = 'M', long = "recv-size", value_name = "BYTES", value_parser = recv_size)]
    recv_size: Option<u32>,
    /// The client's socket is connected (UDP).
    #[arg(long)]
    connected: bool,
    /// The server's socket is connected (UDP).
    #[arg(long)]
    remote_connected: bool,
}

/// What netperf takes and what changes nothing here: the family of addresses, the banner, the
/// port, measurement of CPU time, the number of CPUs, no control connection, interim results.
#[derive(clap::Args, Clone, Debug)]
struct Harmless {
    #[arg(short = '4', hide = true)]
    ipv4: bool,
    #[arg(short = '6', hide = true)]
    ipv6: bool,
    #[arg(short = 'P', hide = true)]
    print_banner: Option<String>,
    #[arg(short = 'v', hide = true)]
    verbosity: Option<String>,
    #[arg(short = 'p', hide = true)]
    port: Option<String>,
    #[arg(short = 'c', hide = true)]
    local_cpu: bool,
    #[arg(short = 'C', hide = true)]
    remote_cpu: bool,
    #[arg(short = 'n', hide = true)]
    nr_cpus: Option<String>,
    #[arg(short = 'N', hide = true)]
    no_control: bool,
    #[arg(short = 'D', hide = true, num_args = 0..=1)]
    demo: Option<Option<String>>,
}

/// Options behind the `--`.
#[derive(clap::Parser, Debug)]
#[command(name = "netperf ... --", disable_version_flag = true)]
struct TestArgs {
    #[command(flatten)]
    sizes: Sizes,
    /// The client's socket is connected (UDP).
    #[arg(short = 'n')]
    local: bool,
    /// The server's socket is connected (UDP).
    #[arg(short = 'N')]
    remote: bool,
    /// Sets TCP_NODELAY: always so with requests and answers.
    #[arg(short = 'D')]
    nodelay: bool,
    #[arg(short = 'P', hide = true)]
    ports: Option<String>,
    #[arg(short = '4', hide = true)]
    ipv4: bool,
    #[arg(short = '6', hide = true)]
    ipv6: bool,
}

/// How long a measurement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Time(Ns),
    /// Number of transactions of each client.
    Transactions(u64),
}

/// Which test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    UdpRr,
    TcpRr,
    UdpStream,
    TcpStream,
}

pub(super) const TESTS: [(&str, Test); 4] = [
    ("UDP_RR", Test::UdpRr),
    ("TCP_RR", Test::TcpRr),
    ("UDP_STREAM", Test::UdpStream),
    ("TCP_STREAM", Test::TcpStream),
];

fn test(text: &str) -> Result<Test, String> {
    let found = TESTS.iter().find(|t| t.0.eq_ignore_ascii_case(text));
    let names = || TESTS.map(|t| t.0).join(", ");
    found
        .map(|t| t.1)
        .ok_or_else(|| format!("expected one of {}", names()))
}

/// A host, and after a comma a family of addresses.
fn this_host(text: &str) -> Result<String, String> {
    match text.split(',').next() {
        Some("127.0.0.1" | "localhost") => Ok(text.to_owned()),
        _ => Err("expected 127.0.0.1: only the loopback interface is modelled".into()),
    }
}

/// A size as netperf takes it: K, M and G are powers of 1024, k, m and g of 1000.
fn size(text: &str, max: u32) -> Result<u32, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale: u32 = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "k" => 1000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        _ => return Err("expected a number of bytes, with K, M or G".into()),
    };
    let bytes = digits.parse().ok().and_then(|n: u32| n.checked_mul(scale));
    let bytes = bytes.filter(|n| (1..=max).contains(n));
    bytes.ok_or_else(|| format!("expected 1 to {max} bytes"))
}

fn send_size(text: &str) -> Result<u32, String> {
    size(text, 1 << 20)
}

fn recv_size(text: &str) -> Result<u32, String> {
    size(text, 1 << 24)
}

/// Two sizes; one alone is that of both, and one left out before or after the comma is 1.
fn pair(text: &str) -> Result<(u32, u32), String> {
    let one = |part: &str| match part {
        "" => Ok(1),
        part => size(part, UDP_BYTES_MAX),
    };
    match text.split(',').collect::<Vec<_>>().as_slice() {
        [both] => size(both, UDP_BYTES_MAX).map(|n| (n, n)),
        [request, response] => Ok((one(request)?, one(response)?)),
        _ => Err("expected two sizes: REQUEST,RESPONSE".into()),
    }
}

fn length(text: &str) -> Result<Length, String> {
    match text.strip_prefix('-') {
        Some(number) => match number.parse() {
            Ok(n @ 1..=1_000_000_000) => Ok(Length::Transactions(n)),
            _ => Err("expected seconds, or - and a number of transactions".into()),
        },
        None => seconds(text).map(Length::Time),
    }
}

/// A length that is not zero: seconds or with a unit, as everywhere.
pub(super) fn seconds(text: &str) -> Result<Ns, String> {
    match common::seconds(text)? {
        0 => Err("expected more than 0".into()),
        ns => Ok(ns),
    }
}

const UDP_BYTES_MAX: u32 = 65_507;

/// What one client and its server do.
pub(super) struct Load {
    pub test: Test,
    pub request: u32,
    pub response: u32,
    pub send: u32,
    pub recv: u32,
    pub connected: bool,
    pub remote_connected: bool,
    /// Transactions of a client.
    pub turns: u64,
}

/// Options before and behind the `--`.
pub(super) fn arguments(argv: &[String]) -> Result<(Args, Load), Error> {
    let tool = "netperf";
    let (before, behind) = apart(argv);
    let args: Args = options(tool, &before)?;
    let test: TestArgs = options(tool, &behind)?;
    let (first, sizes) = (&args.sizes, &test.sizes);
    let datagrams = args.test == Test::UdpStream;
    let default = if datagrams { UDP_BYTES_MAX } else { 16_384 };
    let (request, response) = sizes.request.or(first.request).unwrap_or((1, 1));
    let load = Load {
        test: args.test,
        request,
        response,
        send: sizes.send_size.or(first.send_size).unwrap_or(default),
        recv: sizes.recv_size.or(first.recv_size).unwrap_or(131_072),
        connected: test.local || sizes.connected || first.connected,
        remote_connected: test.remote || sizes.remote_connected || first.remote_connected,
        turns: match args.length {
            Length::Time(_) => FOREVER,
            Length::Transactions(n) => n,
        },
    };
    if datagrams && load.send > UDP_BYTES_MAX {
        let message = format!(
            "-m {}: a datagram has at most {UDP_BYTES_MAX} bytes",
            load.send
        );
        return Err(bad(tool, message));
    }
    let stream = matches!(args.test, Test::UdpStream | Test::TcpStream);
    if stream && load.turns != FOREVER {
        let message = "-l: a number of bytes is not modelled, only one of transactions (_RR)";
        return Err(bad(tool, message));
    }
    if test.nodelay && args.test == Test::TcpStream {
        return Err(bad(tool, "-D: streams are modelled with Nagle's rule only"));
    }
    Ok((args, load))
}

/// The command line up to `--`, and what is behind it, as a command line of its own. The options
/// that netperf does not have (--pairs, --tree) may stand on either side.
fn apart(argv: &[String]) -> (Vec<String>, Vec<String>) {
    const OF_TEST: [&str; 5] = [
        "--request",
        "--send-size",
        "--recv-size",
        "--connected",
        "--remote-connected",
    ];
    let at = argv.iter().position(|arg| arg == "--");
    let (before, rest) = argv.split_at(at.unwrap_or(argv.len()));
    let (mut before, mut behind) = (before.to_vec(), vec![argv[0].clone()]);
    let mut rest = rest.iter().skip(1).peekable();
    while let Some(arg) = rest.next() {
        let name = arg.split('=').next().unwrap_or_default();
        if arg == "--" {
        } else if !name.starts_with("--") || OF_TEST.contains(&name) {
            behind.push(arg.clone());
        } else {
            before.push(arg.clone());
            if name == arg {
                before.extend(rest.next_if(|value| !value.starts_with('-')).cloned());
            }
        }
    }
    (before, behind)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error, make};
    use super::*;
    use crate::workload::program::{Inet, Op};

    #[test]
    fn a_length_is_seconds_whole_or_not_in_all_tools() {
        let workloads = [
            ["sysbench cpu --time=0.01", "sysbench cpu --time=10ms"],
            ["ebizzy -S 0.01", "ebizzy -S 10ms"],
            [
                "sysbench oltp_read_only --time=0.01",
                "sysbench oltp_read_only --time=10ms",
            ],
            [
                "schbench -r 0.05 -w 0.5 -i 0.1",
                "schbench -r 50ms -w 500ms -i 100ms",
            ],
            ["schbench -r 2 -w 0", "schbench -r 2s -w 0s"],
            ["netperf -t UDP_RR -l 0.02", "netperf -t UDP_RR -l 20ms"],
        ];
        for lines in workloads {
            let [seconds, units] = lines.map(make);
            assert_eq!(seconds.duration, units.duration, "{lines:?}");
            assert_eq!(seconds.warmup_ns, units.warmup_ns, "{lines:?}");
            assert_eq!(seconds.programs, units.programs, "{lines:?}");
        }
        assert!(error("schbench -r 0").contains("expected more than 0"));
    }

    #[test]
    fn options_of_netperf_and_of_its_test() {
        let plain = make("netperf -t UDP_RR -l 1 -- -r 64,1");
        for line in [
            "netperf -4 -P 0 -v 2 -p 1 -H 127.0.0.1,4 -cC -n 8 -N -D 1 -t UDP_RR -l 1 -- -r 64,",
            "netperf -H localhost -t TCP_RR -t UDP_RR -l 9 -l 1 -r 1,1 -- -P ,0 -D -r 64,1",
        ] {
            let w = make(line);
            assert_eq!((&w.programs, &w.inets), (&plain.programs, &plain.inets));
            assert_eq!(w.duration, plain.duration);
        }
        let w = make("netperf -t UDP_RR -- -r ,128 -n --pairs 2 --tree=1:2");
        let client = &w.programs[w.templates[1].program as usize].ops;
        assert!(client.contains(&Op::Send { inet: 0, bytes: 1 }));
        assert!(client.contains(&Op::Recv {
            inet: 1,
            bytes: 128
        }));
        assert_eq!((w.inets[0], w.templates.len()), (Inet::udp(true), 4));
        for (text, bytes) in [("1K", Ok(1024)), ("2k", Ok(2000)), ("7", Ok(7))] {
            assert_eq!(size(text, 5000), bytes);
        }
        assert!(size("8K", 5000).is_err() && size("1X", 5000).is_err());
    }

    #[test]
    fn mistakes_are_named() {
        for (line, expected) in [
            ("netperf -t UDP_RT", "expected one of UDP_RR"),
            ("netperf -l 0", "more than 0"),
            ("netperf -r 1,2,3", "two sizes"),
            ("netperf -H 10.0.0.1", "127.0.0.1"),
            ("netperf -t UDP_STREAM -m 65508", "at most 65507"),
            ("netperf --piars", "did you mean '--pairs'?"),
            ("netperf -- -D", "Nagle's rule"),
        ] {
            let message = error(line);
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
