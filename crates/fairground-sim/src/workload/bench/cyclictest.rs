//! How late timers are served. See `docs/workloads/cyclictest.md`.
use super::common::{Groups, add_program, repeat, seconds};
use super::{Env, Error, bad, options};
use crate::workload::metric::Work;
use crate::workload::metric::{Better, From, MetricDef, PERCENTILES};
use crate::workload::program::{Dur, FOREVER, Ns, Op, RealTime, TaskTemplate, Until, Workload};
use crate::workload::words::{CyclicThread, Words};

const TOOL: &str = "cyclictest";
/// How long it runs where nobody says: the tool goes on until it is stopped.
const ENDLESS_NS: Ns = 1_000_000_000;
/// Most threads.
const THREADS_MAX: i64 = 1024;

/// cyclictest: threads that sleep until a point in time, and how much later they run.
#[derive(clap::Parser, Debug)]
#[command(
    name = "cyclictest",
    disable_version_flag = true,
    disable_help_flag = true
)]
struct Args {
    /// Threads; without a number one per CPU.
    #[arg(short, long, value_name = "NUM", num_args = 0..=1, default_missing_value = "0",
          value_parser = clap::value_parser!(i64).range(0..=THREADS_MAX))]
    threads: Option<i64>,
    /// Real-time priority of the threads; 0 is the fair class, if --policy names no other.
    #[arg(short, long, value_name = "PRIO", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=99))]
    priority: u8,
    /// Each further thread has one less priority.
    #[arg(long)]
    priospread: bool,
    /// Class of the threads: fifo, rr, or without priority other, as which batch and idle run too.
    #[arg(long, value_name = "NAME",
          value_parser = ["other", "normal", "batch", "idle", "fifo", "rr"])]
    policy: Option<String>,
    /// Interval of the first thread, us.
    #[arg(short, long, value_name = "INTV", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    interval: u64,
    /// How much longer the interval of each further thread is, us.
    #[arg(short, long, value_name = "DIST",
          default_value_t = 500, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    distance: u64,
    /// Number of loops of the first thread; 0 is endless.
    #[arg(short, long, value_name = "LOOPS", default_value_t = 0)]
    loops: u64,
    /// Length of the run: seconds, or with m, h or d.
    #[arg(short = 'D', long, value_name = "TIME", value_parser = seconds)]
    duration: Option<Ns>,
    /// Each thread on a CPU of its own, in turn of those given (`0-3,8`), or of all.
    #[arg(short, long, value_name = "PROC-SET", num_args = 0..=1, default_missing_value = "all")]
    affinity: Option<String>,
    /// As -t and -a.
    #[arg(short = 'S', long)]
    smp: bool,
    /// CPUs may sleep deeply: the tool does not ask for short ways out of idle.
    #[arg(long)]
    laptop: bool,
    /// Has no meaning here: pages do not fault.
    #[arg(short, long)]
    mlockall: bool,
    /// Has no meaning here: there is one clock.
    #[arg(short, long)]
    nanosleep: bool,
    /// Prints no line with the policy.
    #[arg(short, long)]
    quiet: bool,
    /// Print help; -h is another option of the tool.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// Histograms are not modelled.
    #[arg(short = 'h', long, value_name = "US", num_args = 0..=1, hide = true)]
    histogram: Option<Option<String>>,
    /// Histograms are not modelled.
    #[arg(short = 'H', long, value_name = "US", num_args = 0..=1, hide = true)]
    histofall: Option<Option<String>>,
    #[command(flatten)]
    cgroups: Groups,
}

pub(super) fn parse(argv: &[String], env: Env) -> Result<Workload, Error> {
    let args: Args = options(TOOL, argv)?;
    if args.histogram.is_some() || args.histofall.is_some() {
        let wrong = "-h: histograms are not modelled; --help explains the options";
        return Err(bad(TOOL, wrong));
    }
    let mut w = Workload::new(TOOL, argv.to_vec());
    let leaves = args.cgroups.build(TOOL, &mut w)?;
    let cpus = cpus(&args, env)?;
    let threads = match args.threads {
        Some(n @ 1..) if !args.smp => n as u32,
        None if !args.smp => 1,
        _ => cpus.as_ref().map_or(env.cpus, |set| set.len() as u32),
    };
    let class = Class::of(&args, threads)?;
    w.requests.push("latency".into());
    let mut told = Vec::new();
    for i in 0..threads {
        let interval_us = args.interval + u64::from(i) * args.distance;
        let kind = w.requests.len() as u32;
        w.requests.push(format!("thread {i}"));
        // The run ends with the loops of the first.
        let loops = if args.loops > 0 && i == 0 {
            args.loops
        } else {
            FOREVER
        };
        let ops = program(interval_us, kind, loops);
        let program = add_program(&mut w, "cyclictest", ops);
        let mut task = TaskTemplate::new("cyclictest", program, 0);
        task.thread = true;
        task.cgroup = Some(leaves[i as usize % leaves.len()]);
        task.real_time = class.of_thread(i);
        if let Some(cpus) = &cpus {
            task.affinity = Some(w.masks.len() as u32);
            w.masks.push(vec![cpus[i as usize % cpus.len()]]);
        }
        told.push(CyclicThread {
            priority: task.real_time.map_or(0, |rt| rt.priority),
            interval_us,
        });
        w.templates.push(task);
    }
    w.initial = (0..threads).collect();
    w.no_idle_states = !args.laptop;
    ends(&args, &mut w);
    w.metrics = metrics();
    w.words = Words::Cyclictest {
        policy: (!args.quiet).then(|| class.name(threads)),
        threads: told,
    };
    Ok(w)
}

/// What thread number `kind` - 1 does.
fn program(interval_us: u64, kind: u32, loops: u64) -> Vec<Op> {
    let turn = [
        Op::Period(Dur::Const(interval_us * 1000)),
        Op::ReadClock,
        Op::ReqStartDue(0),
        Op::ReqEnd(0),
        Op::ReqStartDue(kind),
        Op::ReqEnd(kind),
    ];
    let mut ops = Vec::new();
    repeat(&mut ops, loops, turn);
    ops
}

/// The CPUs that the threads are dealt over, if they are bound.
fn cpus(args: &Args, env: Env) -> Result<Option<Vec<u32>>, Error> {
    match args.affinity.as_deref() {
        // With -S the tool goes by the CPUs it may run on.
        _ if args.smp => Ok(Some((0..env.cpus).collect())),
        None => Ok(None),
        Some("a" | "all") => Ok(Some((0..env.cpus).collect())),
        Some(set) => {
            let cpus = crate::spec::cpu_list(set).map_err(|e| bad(TOOL, format!("-a: {e}")))?;
            match cpus.iter().find(|cpu| **cpu >= env.cpus) {
                Some(cpu) => {
                    let wrong = format!("-a: there is no CPU {cpu}, the last is {}", env.cpus - 1);
                    Err(bad(TOOL, wrong))
                }
                None => Ok(Some(cpus)),
            }
        }
    }
}

/// Class of the threads, from what `-p`, `--policy` and `--priospread` say together.
struct Class<'a> {
    policy: &'a str,
    /// Of the first thread; 0 is the fair class.
    priority: u8,
    spread: bool,
}

impl<'a> Class<'a> {
    fn of(args: &'a Args, threads: u32) -> Result<Self, Error> {
        let named = args.policy.as_deref().unwrap_or("other");
        let real_time = matches!(named, "fifo" | "rr");
        // Nobody said which: the tool leaves each thread one of its own, should they be spread.
        let priority = match args.priority {
            0 if real_time || args.priospread => threads + 1,
            given => u32::from(given),
        };
        let least = if args.priospread { threads - 1 } else { 0 };
        if priority > 99 || priority < least {
            let wrong = format!("-p: expected a priority of {least} to 99 for {threads} threads");
            return Err(bad(TOOL, wrong));
        }
        Ok(Self {
            policy: match priority > 0 && !real_time {
                true => "fifo",
                false => named,
            },
            priority: priority as u8,
            spread: args.priospread,
        })
    }

    fn of_thread(&self, thread: u32) -> Option<RealTime> {
        let below = if self.spread { thread as u8 } else { 0 };
        let priority = self.priority - below;
        (priority > 0).then_some(RealTime {
            priority,
            takes_turns: self.policy == "rr",
        })
    }

    /// As the tool prints it, if it has `threads`: those without priority are of class other,
    /// whatever was named.
    fn name(&self, threads: u32) -> String {
        match self.of_thread(threads - 1) {
            Some(_) => self.policy.to_owned(),
            None => format!("{}/other", self.policy),
        }
    }
}

/// When the run is over.
fn ends(args: &Args, w: &mut Workload) {
    // As with -l, 0 is no limit.
    match (args.duration.filter(|ns| *ns > 0), args.loops) {
        (Some(ns), _) => w.duration = Until::Time(ns),
        (None, 0) => {
            w.duration = Until::Time(ENDLESS_NS);
            w.notes
                .push("without -D or -l the tool goes on until it is stopped; here for 1 s".into());
        }
        // The others are stopped by the first.
        (None, _) => w.beside_from = 1,
    }
    if w.duration != Until::AllExit {
        w.work = Some(Work::new("cycle", From::Requests(0)));
    }
}

fn metrics() -> Vec<MetricDef> {
    let quantile = |permille| From::RequestQuantileUs {
        request: 0,
        permille,
    };
    let latency = |name: &str, from| {
        let name = format!("cyclictest.latency_us.{name}");
        MetricDef::new(name, "us", Better::Lower, from)
    };
    let mut all = vec![latency("mean", From::RequestMeanUs(0))];
    all.extend(PERCENTILES.map(|(name, permille)| latency(name, quantile(permille))));
    all.extend([
        latency("max", quantile(1000)),
        MetricDef::new("cyclictest.cycles", "1", Better::Neither, From::Requests(0)),
    ]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing;
    use crate::machine_file::Machine;

    const ENV: Env = Env { cpus: 8 };

    fn of(argv: &str) -> Result<Workload, Error> {
        let argv: Vec<&str> = argv.split(' ').collect();
        Workload::from_argv(&argv, &ENV)
    }

    /// Priority and interval of each thread.
    fn threads(argv: &str) -> Vec<(u8, u64)> {
        match of(argv).unwrap().words {
            Words::Cyclictest { threads, .. } => threads
                .iter()
                .map(|t| (t.priority, t.interval_us))
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn further_threads_have_longer_intervals_and_if_asked_for_less_priority() {
        assert_eq!(threads("cyclictest"), [(0, 1000)]);
        let three = threads("cyclictest -t3 -p 2 -i 200");
        assert_eq!(three, [(2, 200), (2, 700), (2, 1200)]);
        let three = threads("cyclictest -t3 -p 2 -d 0 --priospread");
        assert_eq!(three, [(2, 1000), (1, 1000), (0, 1000)]);
        assert_eq!(threads("cyclictest -t -p 80").len(), 8);
        let smp = threads("cyclictest -S -p 80");
        assert_eq!((smp[0], smp[7]), ((80, 1000), (80, 4500)));
        assert!(of("cyclictest -p 100").is_err());
        assert!(of("cyclictest -t 3 -p 1 --priospread").is_err());
    }

    #[test]
    fn a_priority_makes_it_fifo_and_none_is_one_more_than_the_threads() {
        let policy = |argv: &str| match of(argv).unwrap().words {
            Words::Cyclictest { policy, .. } => policy,
            other => panic!("{other:?}"),
        };
        assert_eq!(threads("cyclictest -t 2 --policy rr -d 0"), [(3, 1000); 2]);
        assert_eq!(threads("cyclictest --policy batch -p 5"), [(5, 1000)]);
        let said = |argv| policy(argv).expect("it says it");
        assert_eq!(said("cyclictest --policy batch -p 5"), "fifo");
        assert_eq!(said("cyclictest --policy rr -p 5"), "rr");
        assert_eq!(said("cyclictest --policy batch"), "batch/other");
        assert_eq!(said("cyclictest"), "other/other");
        assert_eq!(policy("cyclictest -q"), None);
        let batch = of("cyclictest --policy batch").unwrap();
        let class = batch.templates[0].policy;
        assert_eq!(class, crate::workload::Policy::Normal);
        assert!(of("cyclictest -t 99 --policy fifo").is_err());
    }

    #[test]
    fn a_histogram_is_refused_and_is_no_question_for_help() {
        let lines = ["-h 100", "-h100", "-h", "-H 100", "--histogram=100"];
        for line in lines.map(|options| format!("cyclictest -t {options}")) {
            let error = of(&line).expect_err(&line);
            let said = error.to_string();
            assert!(
                said.contains("histograms are not modelled"),
                "{line}: {said}"
            );
        }
        let help = of("cyclictest --help");
        assert!(matches!(help, Err(Error::Help(text)) if text.contains("--priospread")));
    }

    #[test]
    fn a_run_may_last_minutes_and_hours() {
        let minutes = |text: &str| match of(&format!("cyclictest -D {text}")).unwrap().duration {
            Until::Time(ns) => ns / 60_000_000_000,
            other => panic!("{other:?}"),
        };
        assert_eq!(["60", "1m", "1.5h", "2d"].map(minutes), [1, 1, 90, 2880]);
        let endless = of("cyclictest -D 0").unwrap().duration;
        assert_eq!(endless, of("cyclictest").unwrap().duration);
        assert!(of("cyclictest -D 1w").is_err() && of("cyclictest -D m").is_err());
        let hogs = of("hogs --duration 1m --warmup 0.5m").unwrap();
        assert_eq!(hogs.duration, Until::Time(90_000_000_000));
    }

    #[test]
    fn threads_are_dealt_over_a_set_of_cpus() {
        let masks = |argv: &str| of(argv).unwrap().masks;
        let dealt = masks("cyclictest -a 3-5,0 -t 5");
        assert_eq!(dealt, [[0], [3], [4], [5], [0]]);
        assert_eq!(masks("cyclictest -a 1,2 -t").len(), 2);
        assert_eq!(masks("cyclictest -a -t 9").last(), Some(&vec![0]));
        assert!(masks("cyclictest -t").is_empty());
        assert!(of("cyclictest -a 7-8").is_err());
        assert!(of("cyclictest -a fast").is_err());
    }

    /// Mean latency in us, and what the tool prints.
    fn measured(argv: &str) -> (f64, String) {
        let workload = of(argv).unwrap();
        let machine = Machine::builtin("xeon-8cpu-2013").unwrap();
        testing::with(&machine, &workload, &[], |sim| {
            sim.run().unwrap();
            let mean = workload.metrics[0].value(&sim.marks).unwrap();
            (mean, workload.words.print(&sim.marks))
        })
    }

    /// Fair tasks have timers with 50 us of slack, and CPUs that may sleep take time to wake up.
    #[test]
    fn real_time_threads_wake_up_earlier_and_from_polling_at_once() {
        let (fifo, words) = measured("cyclictest -p 80 -l 20");
        let (fair, _) = measured("cyclictest -l 20");
        let (laptop, _) = measured("cyclictest -p 80 -l 20 --laptop -i 20000");
        assert!(fifo < 3.0 && (50.0..55.0).contains(&fair), "{fifo} {fair}");
        assert!(laptop > fifo + 20.0, "{laptop}");
        let line =
            "T: 0 ( 1000) P:80 I:1000 C:     20 Min:      1 Act:    1 Avg:    1 Max:       1";
        assert_eq!(words, format!("policy: fifo\n\n{line}"));
    }
}
