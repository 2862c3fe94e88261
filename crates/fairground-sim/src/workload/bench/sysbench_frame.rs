//! The frame of every test of sysbench: threads, start barrier, events, limits, results. See
//! `docs/workloads/sysbench.md`.
use super::common::{Groups, TASKS_MAX, add_program, repeat, seconds};
use super::{Error, bad};
use crate::workload::marks::{MARK_END, MARK_START};
use crate::workload::metric::Work;
use crate::workload::metric::{Better, From, MetricDef};
use crate::workload::program::{FOREVER, Ns, Op, TaskTemplate, Touch, When, Workload};
use crate::workload::sysbench_words::{Speed, SysbenchWords, Workers};
use crate::workload::words::Words;

/// Options that all tests have.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct General {
    /// Worker threads.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub threads: u32,
    /// Limit for the number of events of all threads, 0 for none.
    #[arg(long, default_value_t = 0)]
    pub events: u64,
    /// Limit for the time: seconds, or with a unit ("50ms"); 0 for none.
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub time: Ns,
    /// Percentile of the latency that is printed, 0 for none.
    #[arg(long, default_value_t = 95, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub percentile: u32,
    /// Command.
    #[arg(value_parser = ["run"])]
    pub command: Option<String>,
    #[command(flatten)]
    pub cgroups: Groups,
}

/// A test: what the common frame needs to know of it.
pub(super) struct Test {
    pub tool: &'static str,
    /// What the tool prints about it.
    pub mode: String,
    pub speed: Speed,
    /// Events that each thread does at most.
    pub per_thread: u64,
    /// Whether it is judged by the time of a fixed amount of work, not by its events.
    pub timed: bool,
    /// Mutexes of one instance of the tool, those of the test.
    pub mutexes: u32,
    /// `--events` counts.
    pub counts: bool,
}

/// Slots of the latency histogram; an event adds to one that is drawn.
const HISTOGRAM_SLOTS: u32 = 128;
/// [`Op::Touch`].
pub(super) fn touch(first: u32, of: u32, how: Touch) -> Op {
    Op::Touch { first, of, how }
}

/// What every event is wrapped in: the clock is read before and after it.
pub(super) fn event(ops: &mut Vec<Op>, body: impl FnOnce(&mut Vec<Op>)) {
    ops.extend([Op::ReadClock, Op::ReqStart(0)]);
    body(ops);
    ops.extend([Op::ReadClock, Op::ReqEnd(0)]);
}

impl Test {
    /// The frame of every test, once for each leaf of the tree of cgroups. `events` appends the
    /// operations of one turn of a worker's loop and is given the first mutex of the test.
    pub fn build(
        &self,
        argv: &[String],
        general: &General,
        mutex_stride: u32,
        mut events: impl FnMut(&mut Workload, &mut Vec<Op>, u32),
    ) -> Result<Workload, Error> {
        let mut w = Workload::new("sysbench", argv.to_vec());
        let leaves = general.cgroups.build(self.tool, &mut w)?;
        self.check(general, leaves.len() as u64)?;
        w.marks = vec!["start".into(), "end".into()];
        w.requests = vec!["event".into()];
        w.mutex_stride = mutex_stride;
        let instances = match general.cgroups.tree {
            None => 1,
            Some(_) => leaves.len() as u32,
        };
        for instance in 0..instances {
            let leaf = leaves[instance as usize];
            let ops = self.worker(&mut w, general, instances > 1, &mut events);
            let program = add_program(&mut w, "worker", ops);
            let mut worker = TaskTemplate::new("sysbench", program, instance);
            worker.thread = true;
            worker.cgroup = Some(leaf);
            w.templates.push(worker);
        }
        for instance in 0..instances {
            self.add_main(&mut w, general, instance, instances);
        }
        self.results(&mut w, general, instances);
        Ok(w)
    }

    fn check(&self, general: &General, instances: u64) -> Result<(), Error> {
        if self.per_thread == FOREVER && general.time == 0 && general.events == 0 {
            return Err(bad(
                self.tool,
                "--time=0 without --events: the test never ends",
            ));
        }
        let tasks = instances * (u64::from(general.threads) + 1);
        let mutexes = instances * u64::from(self.mutexes);
        for (n, what) in [(tasks, "tasks"), (mutexes, "mutexes")] {
            if n > TASKS_MAX {
                return Err(bad(
                    self.tool,
                    format!("{n} {what} are more than {TASKS_MAX}"),
                ));
            }
        }
        Ok(())
    }

    /// A worker: waits at the barrier, then one event after the other until a limit is reached.
    fn worker(
        &self,
        w: &mut Workload,
        general: &General,
        own_mark: bool,
        events: &mut impl FnMut(&mut Workload, &mut Vec<Op>, u32),
    ) -> Vec<Op> {
        // The barrier's mutex is on a line of its own.
        let gate = w.n_mutexes;
        let first_mutex = gate + 8;
        w.n_mutexes = first_mutex + self.mutexes;
        let barrier = w.barriers.len() as u32;
        w.barriers.push(general.threads + 1);
        let started = if own_mark {
            w.marks.push(format!("start of {barrier}"));
            w.marks.len() as u32 - 1
        } else {
            MARK_START
        };
        let histogram = w.n_words;
        w.n_words += HISTOGRAM_SLOTS;

        let mut ops = gate_ops(gate, barrier, started);
        let start = ops.len() as u32;
        let count = self.per_thread;
        ops.push(Op::LoopStart { count });
        let mut leave = |when| ops.push(Op::Leave { end: 0, when });
        if general.time > 0 {
            let (mark, ns) = (started, general.time);
            leave(When::Over { mark, ns });
        }
        if general.events > 0 && self.counts {
            w.budgets.push(general.events);
            leave(When::Empty(w.budgets.len() as u32 - 1));
        }
        events(w, &mut ops, first_mutex);
        if general.percentile > 0 {
            ops.push(touch(histogram, HISTOGRAM_SLOTS, Touch::Rmw));
        }
        let end = ops.len() as u32;
        for op in &mut ops[start as usize..] {
            if let Op::Leave { end: to, .. } = op {
                *to = end;
            }
        }
        ops.push(Op::LoopEnd { start });
        ops
    }

    /// The first thread: makes the workers, waits at the barrier, then for their end.
    fn add_main(&self, w: &mut Workload, general: &General, instance: u32, instances: u32) {
        let worker = &w.templates[instance as usize];
        let leaf = worker.cgroup;
        let gate = instance * (8 + self.mutexes);
        let started = if instances > 1 {
            2 + instance
        } else {
            MARK_START
        };
        let mut ops = Vec::new();
        let fork = Op::Fork { template: instance };
        repeat(&mut ops, u64::from(general.threads), [fork]);
        ops.extend(gate_ops(gate, instance, started));
        ops.extend([Op::Join, Op::ReadClock, Op::Mark(MARK_END)]);
        let program = add_program(w, "main", ops);
        let mut main = TaskTemplate::new("sysbench", program, instance);
        main.cgroup = leaf;
        w.initial.push(w.templates.len() as u32);
        w.templates.push(main);
    }

    fn results(&self, w: &mut Workload, general: &General, instances: u32) {
        let threads = general.threads;
        w.words = Words::Sysbench(SysbenchWords {
            head: head(threads, &self.mode),
            speed: self.speed,
            workers: Workers {
                end: instances,
                every: 1,
            },
            percentile: general.percentile,
        });
        let (start, end, request) = (MARK_START, MARK_END, 0);
        let per_s = From::RequestsPerSpanS {
            start,
            end,
            request,
        };
        let time = match self.timed {
            true => Better::Lower,
            false => Better::Neither,
        };
        let quantile = |permille| From::RequestQuantileUs { request, permille };
        let stddev = From::RequestsStddev {
            first: 0,
            end: instances,
        };
        let metric = |name: &str, unit, better, from| {
            MetricDef::new(format!("sysbench.{name}"), unit, better, from)
        };
        if general.time > 0 {
            w.work = Some(Work::new("event", From::Requests(request)));
        }
        w.metrics = vec![
            metric("events_per_s", "1/s", Better::Higher, per_s),
            metric("total_time_s", "s", time, From::SpanS { start, end }),
            metric("events", "1", Better::Neither, From::Requests(request)),
            metric(
                "latency_us.avg",
                "us",
                Better::Lower,
                From::RequestMeanUs(request),
            ),
            metric("latency_us.p95", "us", Better::Lower, quantile(950)),
            metric("latency_us.max", "us", Better::Lower, quantile(1000)),
            metric("events_stddev", "1", Better::Neither, stddev),
        ];
    }
}

/// The lines before the statistics; `mode` says what the test does.
pub(super) fn head(threads: u32, mode: &str) -> String {
    format!(
        "Running the test with following options:\nNumber of threads: {threads}\n\n{mode}\
         Initializing worker threads...\n\nThreads started!\n"
    )
}

/// The start barrier: a mutex and a condition variable. Who comes last starts the timer before it
/// unlocks.
fn gate_ops(mutex: u32, barrier: u32, started: u32) -> Vec<Op> {
    let mut ops = vec![
        Op::Lock(mutex),
        Op::CondBarrier { barrier, mutex },
        Op::Mark(MARK_START),
    ];
    if started != MARK_START {
        ops.push(Op::Mark(started));
    }
    ops.push(Op::Unlock(mutex));
    ops
}
