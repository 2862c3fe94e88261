//! hackbench of rt-tests, and the same load as built into perf. See `docs/workloads/hackbench.md`.
use super::common::{Groups, TASKS_MAX, add_program, repeat};
use super::{Env, Error, bad, options};
use crate::workload::marks::{MARK_END, MARK_START};
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::program::{Chan, ChanKind, Op, TaskTemplate, Workload};
use crate::workload::words::Words;

/// hackbench: groups of senders and receivers; every sender writes to every receiver of its group.
#[derive(clap::Parser, Debug)]
#[command(name = "hackbench", disable_version_flag = true)]
struct Args {
    /// Sends over pipes instead of unix sockets.
    #[arg(short, long)]
    pipe: bool,
    /// Bytes of each message.
    #[arg(short = 's', long, default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    datasize: u32,
    /// Messages that each sender sends to each receiver.
    #[arg(short, long, default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    loops: u64,
    /// Groups.
    #[arg(short, long, default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    groups: u32,
    /// Senders, and as many receivers, in a group.
    #[arg(short, long, default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    fds: u32,
    /// Threads of one process.
    #[arg(short = 'T', long, overrides_with = "process")]
    threads: bool,
    /// A process each (the default).
    #[arg(short = 'P', long, alias = "processes", overrides_with = "threads")]
    process: bool,
    #[command(flatten)]
    cgroups: Groups,
}

/// The load, whichever tool makes it.
pub(super) struct Messaging {
    pub tool: &'static str,
    /// Name of metrics, tasks and the workload.
    pub name: &'static str,
    pub groups: u32,
    pub fds: u32,
    pub loops: u64,
    pub bytes: u32,
    pub pipe: bool,
    pub threads: bool,
}

pub(super) fn parse(argv: &[String], _env: Env) -> Result<Workload, Error> {
    let args: Args = options("hackbench", argv)?;
    let load = Messaging {
        tool: "hackbench",
        name: "hackbench",
        groups: args.groups,
        fds: args.fds,
        loops: args.loops,
        bytes: args.datasize,
        pipe: args.pipe,
        threads: args.threads,
    };
    let mut workload = load.build(argv, &args.cgroups)?;
    let (fds, tasks) = (2 * args.fds, 2 * args.fds * args.groups);
    let mode = if args.threads { "threaded" } else { "process" };
    let (groups, loops, bytes) = (args.groups, args.loops, args.datasize);
    workload.words = Words::Hackbench {
        head: format!(
            "Running in {mode} mode with {groups} groups using {fds} file descriptors each \
             (== {tasks} tasks)\nEach sender will pass {loops} messages of {bytes} bytes"
        ),
    };
    workload.metrics.insert(0, time_metric("hackbench.time_s"));
    Ok(workload)
}

/// The time that the tool measures itself, between its two marks.
pub(super) fn time_metric(name: &str) -> MetricDef {
    let from = From::SpanS {
        start: MARK_START,
        end: MARK_END,
    };
    MetricDef::new(name, "s", Better::Lower, from)
}

/// What holds everybody back until all are there, of the same kind as what the messages go through:
/// ready is written by each child once and read by the parent, wake is written once and polled by
/// all children.
const READY: u32 = 0;
const WAKE: u32 = 1;
const HANDSHAKE_BYTES: u32 = 1;

impl Messaging {
    /// Builds tasks, channels and the messages-per-second metric. Group g of senders and
    /// receivers lives in leaf g modulo the number of leaves, the parent in the first.
    pub(super) fn build(&self, argv: &[String], cgroups: &Groups) -> Result<Workload, Error> {
        let tasks = 2 * u64::from(self.groups) * u64::from(self.fds);
        if tasks > TASKS_MAX {
            return Err(bad(
                self.tool,
                format!("{tasks} tasks are more than {TASKS_MAX}"),
            ));
        }
        let mut w = Workload::new(self.name, argv.to_vec());
        w.marks = vec!["start".into(), "end".into()];
        let leaves = cgroups.build(self.tool, &mut w)?;
        w.chans = vec![Chan { kind: self.kind() }; 2];
        let mut children = Vec::with_capacity(tasks as usize);
        for g in 0..self.groups {
            let leaf = leaves[g as usize % leaves.len()];
            self.add_group(&mut w, leaf, &mut children);
        }
        self.add_parent(&mut w, leaves[0], &children);
        let messages = u64::from(self.groups) * u64::from(self.fds).pow(2) * self.loops;
        let from = From::OpsPerSpanS {
            start: MARK_START,
            end: MARK_END,
            ops: messages as f64,
        };
        let name = format!("{}.messages_per_s", self.name);
        w.metrics
            .push(MetricDef::new(name, "1/s", Better::Higher, from));
        Ok(w)
    }

    fn kind(&self) -> ChanKind {
        if self.pipe {
            ChanKind::PIPE
        } else {
            ChanKind::SOCKET
        }
    }

    fn add_group(&self, w: &mut Workload, leaf: u32, children: &mut Vec<u32>) {
        let first = w.chans.len() as u32;
        let kind = self.kind();
        w.chans.extend((0..self.fds).map(|_| Chan { kind }));
        let ready = [
            Op::Write {
                chan: READY,
                bytes: HANDSHAKE_BYTES,
            },
            Op::Poll { chan: WAKE },
        ];
        for chan in first..first + self.fds {
            let mut ops = ready.to_vec();
            let read = Op::Read {
                chan,
                bytes: self.bytes,
            };
            repeat(&mut ops, self.loops * u64::from(self.fds), [read]);
            let program = add_program(w, "receiver", ops);
            self.add_child(w, program, leaf, children);
        }
        let mut ops = ready.to_vec();
        let writes = (first..first + self.fds).map(|chan| Op::Write {
            chan,
            bytes: self.bytes,
        });
        repeat(&mut ops, self.loops, writes);
        let program = add_program(w, "sender", ops);
        for _ in 0..self.fds {
            self.add_child(w, program, leaf, children);
        }
    }

    fn add_child(&self, w: &mut Workload, program: u32, leaf: u32, children: &mut Vec<u32>) {
        let index = w.templates.len() as u32;
        // The parent, process 0, is the last template.
        let process = if self.threads { 0 } else { index + 1 };
        let mut task = TaskTemplate::new(self.name, program, process);
        task.thread = self.threads;
        task.cgroup = Some(leaf);
        w.templates.push(task);
        children.push(index);
    }

    fn add_parent(&self, w: &mut Workload, leaf: u32, children: &[u32]) {
        let mut ops: Vec<Op> = children
            .iter()
            .map(|&template| Op::Fork { template })
            .collect();
        let read = Op::Read {
            chan: READY,
            bytes: HANDSHAKE_BYTES,
        };
        repeat(&mut ops, children.len() as u64, [read]);
        ops.extend([
            Op::Mark(MARK_START),
            Op::Write {
                chan: WAKE,
                bytes: HANDSHAKE_BYTES,
            },
            Op::Join,
            Op::Mark(MARK_END),
        ]);
        let program = add_program(w, "parent", ops);
        let mut task = TaskTemplate::new(self.name, program, 0);
        task.cgroup = Some(leaf);
        w.initial = vec![w.templates.len() as u32];
        w.templates.push(task);
    }
}
