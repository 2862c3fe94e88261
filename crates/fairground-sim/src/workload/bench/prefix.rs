//! `taskset`, `nice` and `chrt` in front of a benchmark, as in a shell: where its tasks may run,
//! and how they are scheduled.
//!
//! Source: the manual pages of util-linux 2.41 (taskset, chrt) and of coreutils 9 (nice).

use clap::Parser;

use super::common::length;
use super::{Error, bad, options};
use crate::spec::cpu_list;
use crate::workload::program::{Ns, Policy, RealTime, TaskTemplate, Workload};

/// What stands in front. The tools run from the outermost to the innermost, so of two that set the
/// same the inner one holds; nice values are added.
#[derive(Debug, Default)]
pub(super) struct Prefix {
    words: Vec<String>,
    cpus: Option<Vec<u32>>,
    nice: i32,
    class: Option<Class>,
}

#[derive(Clone, Copy, Debug)]
enum Class {
    Fair(Policy, Option<Ns>),
    RealTime(RealTime),
}

/// taskset: runs a benchmark on some CPUs.
#[derive(Parser)]
struct Taskset {
    /// The CPUs are a list like 0-3,8, not a mask in hexadecimal
    #[arg(short, long)]
    cpu_list: bool,
    /// Mask or list of CPUs
    cpus: String,
    /// The benchmark
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

/// nice: runs a benchmark with another nice value.
#[derive(Parser)]
struct Nice {
    /// Added to the nice value
    #[arg(short = 'n', long, default_value_t = 10, allow_negative_numbers = true)]
    adjustment: i32,
    /// The benchmark
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

/// chrt: runs a benchmark with another policy.
#[derive(Parser)]
struct Chrt {
    /// SCHED_BATCH
    #[arg(short, long, group = "policy")]
    batch: bool,
    /// SCHED_FIFO
    #[arg(short, long, group = "policy")]
    fifo: bool,
    /// SCHED_IDLE
    #[arg(short, long, group = "policy")]
    idle: bool,
    /// SCHED_OTHER
    #[arg(short, long, group = "policy")]
    other: bool,
    /// SCHED_RR, the default
    #[arg(short, long, group = "policy")]
    rr: bool,
    /// Slice of a fair task (SCHED_OTHER, SCHED_BATCH)
    #[arg(short = 'T', long, value_name = "NS")]
    sched_runtime: Option<String>,
    /// 1 to 99 with SCHED_FIFO and SCHED_RR, else 0
    priority: u8,
    /// The benchmark
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

/// The benchmark's own words of a command line, without those of a prefix.
///
/// # Errors
/// [`Error::Options`] of the tool in front; [`Error::Help`].
pub(super) fn split(argv: &[String]) -> Result<(Prefix, Vec<String>), Error> {
    let (mut prefix, mut rest) = (Prefix::default(), argv.to_vec());
    loop {
        let command = match rest.first().map(String::as_str) {
            Some("taskset") => {
                let (cpus, command) = taskset(&rest)?;
                prefix.cpus = Some(cpus);
                command
            }
            Some("nice") => {
                let args: Nice = options("nice", &adjustment_named(&rest))?;
                prefix.nice = prefix.nice.saturating_add(args.adjustment);
                args.command
            }
            Some("chrt") => {
                let (class, command) = chrt(&rest)?;
                prefix.class = Some(class);
                command
            }
            _ => return Ok((prefix, rest)),
        };
        let own = rest.len() - command.len();
        prefix.words.extend(rest.drain(..own));
    }
}

/// `nice -5` is an old way to write `nice -n 5`, and `nice --5` that of `nice -n -5`.
fn adjustment_named(argv: &[String]) -> Vec<String> {
    let mut words = argv.to_vec();
    let bare = argv.get(1).and_then(|word| word.strip_prefix('-'));
    if let Some(adjustment) = bare.filter(|n| n.parse::<i32>().is_ok()) {
        words[1] = format!("--adjustment={adjustment}");
    }
    words
}

fn taskset(argv: &[String]) -> Result<(Vec<u32>, Vec<String>), Error> {
    let args: Taskset = options("taskset", argv)?;
    let cpus = match args.cpu_list {
        true => cpu_list(&args.cpus).map_err(|e| bad("taskset", e))?,
        false => mask(&args.cpus)?,
    };
    Ok((cpus, args.command))
}

/// CPUs of a mask in hexadecimal, in groups of eight digits as the kernel writes it or in one.
fn mask(text: &str) -> Result<Vec<u32>, Error> {
    let digits = text.strip_prefix("0x").unwrap_or(text).replace(',', "");
    let nibbles: Option<Vec<u32>> = digits.chars().map(|c| c.to_digit(16)).collect();
    let bits = |(place, nibble): (u32, u32)| {
        let set = move |bit: &u32| nibble >> bit & 1 == 1;
        (0..4).filter(set).map(move |bit| 4 * place + bit)
    };
    let of = |nibbles: Vec<u32>| {
        (0..)
            .zip(nibbles.into_iter().rev())
            .flat_map(bits)
            .collect()
    };
    let cpus: Vec<u32> = nibbles.map(of).unwrap_or_default();
    if cpus.is_empty() {
        let expected = "expected a mask in hexadecimal like f0, or with -c a list like 4-7";
        return Err(bad(
            "taskset",
            format!("'{text}' is no set of CPUs; {expected}"),
        ));
    }
    Ok(cpus)
}

fn chrt(argv: &[String]) -> Result<(Class, Vec<String>), Error> {
    let args: Chrt = options("chrt", argv)?;
    let fair = match (args.batch, args.idle, args.other) {
        (true, ..) => Some(Policy::Batch),
        (_, true, _) => Some(Policy::Idle),
        (.., true) => Some(Policy::Normal),
        _ => None,
    };
    let (least, most) = if fair.is_some() { (0, 0) } else { (1, 99) };
    if !(least..=most).contains(&args.priority) {
        let message = match fair {
            Some(_) => "of this policy the priority is 0".into(),
            None => format!("priority {}; expected 1 to 99", args.priority),
        };
        return Err(bad("chrt", message));
    }
    let slice = args.sched_runtime.as_deref().map(nanoseconds).transpose()?;
    let class = match (fair, slice) {
        (Some(Policy::Idle) | None, Some(_)) => {
            return Err(bad("chrt", "-T is for SCHED_OTHER and SCHED_BATCH"));
        }
        (Some(policy), slice) => Class::Fair(policy, slice.filter(|ns| *ns > 0)),
        (None, None) => Class::RealTime(RealTime {
            priority: args.priority,
            takes_turns: !args.fifo,
        }),
    };
    Ok((class, args.command))
}

/// Nanoseconds as the tool takes them, or a time with a unit.
fn nanoseconds(text: &str) -> Result<Ns, Error> {
    let bare = text.parse::<Ns>().ok();
    bare.map_or_else(|| length(text).map_err(|e| bad("chrt", e)), Ok)
}

impl Prefix {
    /// Gives it to the tasks of a benchmark whose server, if it has one, was started elsewhere.
    ///
    /// # Errors
    /// No CPU of the machine, which has `cpus`.
    pub(super) fn apply(self, w: &mut Workload, server: &str, cpus: u32) -> Result<(), Error> {
        w.argv.splice(0..0, self.words);
        let mask = self.cpus.map(|list| add_mask(w, &list, cpus)).transpose()?;
        for task in w.templates.iter_mut().filter(|task| task.name != server) {
            // What the benchmark sets itself, last of all, holds.
            task.affinity = task.affinity.or(mask);
            let nice = self.nice.saturating_add(task.nice.into());
            task.nice = nice.clamp(-20, 19) as i8;
            if let Some(class) = self.class {
                class.give(task);
            }
        }
        Ok(())
    }
}

fn add_mask(w: &mut Workload, list: &[u32], cpus: u32) -> Result<u32, Error> {
    let set: Vec<u32> = list.iter().copied().filter(|&cpu| cpu < cpus).collect();
    if set.is_empty() {
        let last = cpus.saturating_sub(1);
        let message = format!("no CPU of the machine, which has CPUs 0-{last}");
        return Err(bad("taskset", message));
    }
    w.masks.push(set);
    Ok(w.masks.len() as u32 - 1)
}

impl Class {
    fn give(self, task: &mut TaskTemplate) {
        if task.real_time.is_some() || task.policy != Policy::Normal {
            return;
        }
        match self {
            Self::RealTime(rt) => {
                task.real_time = Some(rt);
                (task.slice_ns, task.timer_slack_ns) = (None, None);
            }
            Self::Fair(policy, slice) => {
                task.policy = policy;
                task.slice_ns = task.slice_ns.or(slice);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Env;

    fn made(line: &str) -> Result<Workload, String> {
        let argv: Vec<&str> = line.split(' ').collect();
        Workload::from_argv(&argv, &Env { cpus: 8 }).map_err(|e| e.to_string())
    }

    #[test]
    fn what_stands_in_front_is_given_to_all_tasks() {
        let line = "taskset -c 0-1,6 nice -n -5 chrt -b -T 3000000 0 hackbench -g 1 -f 2";
        let w = made(line).unwrap();
        assert_eq!(w.argv.join(" "), line);
        for task in &w.templates {
            let mask = task.affinity.map(|mask| w.masks[mask as usize].clone());
            assert_eq!(mask, Some(vec![0, 1, 6]), "{}", task.name);
            let (policy, slice) = (task.policy, task.slice_ns);
            assert_eq!(
                (task.nice, policy, slice),
                (-5, Policy::Batch, Some(3_000_000))
            );
        }
        let turns = made("chrt 7 hogs --tasks 1").unwrap().templates[0].real_time;
        let rt = turns.unwrap();
        assert_eq!(
            (rt.priority, rt.takes_turns),
            (7, true),
            "SCHED_RR if nothing is said"
        );
    }

    #[test]
    fn the_inner_of_two_holds() {
        let w = made("taskset 1 chrt -f 9 nice -n 3 taskset 2 chrt -o 0 nice hogs").unwrap();
        let task = &w.templates[0];
        let mask = task.affinity.map(|mask| &w.masks[mask as usize]);
        assert_eq!(
            (mask, task.nice, task.real_time),
            (Some(&vec![1]), 13, None)
        );
    }

    #[test]
    fn nice_values_are_also_read_as_they_once_were_written() {
        let nice = |line: &str| made(line).map(|w| w.templates[0].nice);
        assert_eq!(nice("nice -5 hogs"), Ok(5));
        assert_eq!(nice("nice --5 nice -n 2 hogs"), Ok(-3));
    }

    #[test]
    fn a_mask_is_hexadecimal_and_has_a_cpu_of_the_machine() {
        let cpus = |text: &str| made(&format!("taskset {text} hogs")).map(|w| w.masks);
        assert_eq!(cpus("0xf0"), Ok(vec![vec![4, 5, 6, 7]]));
        assert_eq!(cpus("1,00000081"), Ok(vec![vec![0, 7]]));
        for (text, why) in [
            ("0", "'0' is no set of CPUs"),
            ("x", "'x' is no set of CPUs"),
            ("100", "no CPU of the machine, which has CPUs 0-7"),
            ("-c 9", "no CPU of the machine"),
            ("-c 3-", "'3-' is no range of CPUs"),
        ] {
            let error = cpus(text).unwrap_err();
            assert!(
                error.starts_with("taskset: ") && error.contains(why),
                "{error}"
            );
        }
    }

    #[test]
    fn what_a_benchmark_sets_itself_and_its_server_stay() {
        let w = made("nice taskset 1 cyclictest -t 2 -p 80").unwrap();
        assert!(
            w.templates
                .iter()
                .any(|t| t.real_time.is_some_and(|rt| rt.priority == 80))
        );
        let w = made("taskset 1 netperf -t UDP_RR --pairs 2").unwrap();
        let free = w.templates.iter().filter(|t| t.affinity.is_none());
        assert!(free.map(|t| &*t.name).eq(["netserver", "netserver"]));
    }

    #[test]
    fn mistakes_are_those_of_the_tool_in_front() {
        for (line, why) in [
            ("chrt -f 0 hogs", "chrt: priority 0; expected 1 to 99"),
            ("chrt -i 3 hogs", "chrt: of this policy the priority is 0"),
            (
                "chrt -i -T 1ms 0 hogs",
                "chrt: -T is for SCHED_OTHER and SCHED_BATCH",
            ),
            (
                "chrt -f -T 1ms 3 hogs",
                "chrt: -T is for SCHED_OTHER and SCHED_BATCH",
            ),
            ("taskset", "taskset: "),
            ("nice -n 3", "nice: "),
            ("nice -n 3 hgos", "unknown workload 'hgos'"),
        ] {
            let error = made(line).unwrap_err();
            assert!(error.starts_with(why), "{line}: {error}");
        }
    }
}
