//! The steps of a task become operations of the intermediate form. A step is a table with one verb
//! and its options, or one of a few words. What a program takes and gives back is in `holding`.
use super::error::{Error, Source};
use super::groups::{self, Groups};
use super::holding::Held;
use super::names::{Names, find, mask};
use super::node::{Fields, Key, Node, Value, unknown_name};
use crate::workload::nearest::nearest;
use crate::workload::program::{FOREVER, Op, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// How deep loops of a scenario may nest: deeper is a mistake.
const NESTED_MAX: usize = 8;

/// Steps that are a word or a verb with the value `true`.
pub const WORDS: &[&str] = &["hog", "yield", "join", "exec", "exit"];
/// Verbs and their options.
pub const VERBS: &[(&str, &[&str])] = &[
    ("run", &[]),
    ("busy", &[]),
    ("hog", &[]),
    ("sleep", &[]),
    ("period", &["late"]),
    ("timer", &["late"]),
    ("until", &[]),
    ("loop", &["steps"]),
    ("read", &["bytes"]),
    ("write", &["bytes"]),
    ("poll", &[]),
    ("wait", &[]),
    ("post", &[]),
    ("futex_wait", &[]),
    ("futex_wake", &["n"]),
    ("cond_wait", &["mutex"]),
    ("cond_signal", &[]),
    ("cond_broadcast", &[]),
    ("lock", &[]),
    ("unlock", &[]),
    ("barrier", &[]),
    ("yield", &[]),
    ("fork", &["n"]),
    ("join", &[]),
    ("exec", &[]),
    ("exit", &[]),
    ("nice", &[]),
    ("affinity", &[]),
    ("cgroup", &[]),
    ("slice", &[]),
    ("mark", &[]),
    ("begin", &["from"]),
    ("end", &[]),
    ("request", &["bytes"]),
    ("serve", &[]),
    ("reply", &["bytes"]),
];

/// Most operations of one program.
const OPS_MAX: usize = 1_000_000;

/// Turns the steps of one task into operations.
pub struct Lower<'a> {
    /// For errors.
    pub source: &'a Source,
    /// Size of the machine, if known.
    pub cpus: Option<u32>,
    /// Declared things.
    pub names: &'a Names,
    /// Declared cgroups.
    pub groups: &'a Groups,
    /// The template of each task that can be forked, by name.
    pub tasks: &'a BTreeMap<String, u32>,
    /// The workload that grows.
    pub w: &'a mut Workload,
    /// The task is of the real-time class, by its own policy.
    pub real_time: bool,
    pub(super) ops: Vec<Op>,
    pub(super) held: BTreeSet<Held>,
    depth: usize,
}

impl<'a> Lower<'a> {
    /// Ready for one program.
    pub fn new(
        source: &'a Source,
        cpus: Option<u32>,
        names: &'a Names,
        groups: &'a Groups,
        tasks: &'a BTreeMap<String, u32>,
        w: &'a mut Workload,
    ) -> Self {
        let (ops, held) = (Vec::new(), BTreeSet::new());
        Self {
            source,
            cpus,
            names,
            groups,
            tasks,
            w,
            ops,
            held,
            depth: 0,
            real_time: false,
        }
    }

    /// The operations of `node`, a list of steps.
    pub fn program(mut self, node: &Node) -> Result<Vec<Op>, Error> {
        self.steps(node)?;
        Ok(self.ops)
    }

    fn steps(&mut self, node: &Node) -> Result<(), Error> {
        let steps = node.array(self.source, "a list of steps")?;
        if steps.is_empty() {
            return Err(self
                .source
                .error(node.span.clone(), "no steps; expected at least one"));
        }
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, node: &Node) -> Result<(), Error> {
        if self.ops.len() >= OPS_MAX {
            let message = format!("a program of more than {OPS_MAX} steps");
            return Err(self.source.error(node.span.clone(), message));
        }
        if let Value::Str(word) = &node.value {
            if WORDS.contains(&word.as_str()) {
                self.ops.push(word_op(word));
                return Ok(());
            }
            return Err(unknown_name(
                self.source,
                &node.span,
                "step",
                word,
                WORDS.iter().copied(),
            ));
        }
        let entries = node.table(self.source, "a step like { run = \"20us\" }")?;
        let verb_of = |(k, _): &(Key, Node)| VERBS.iter().find(|(v, _)| *v == k.name);
        let mut verbs = entries.iter().filter_map(verb_of);
        let Some(&(verb, options)) = verbs.next() else {
            return Err(self.no_verb(node, entries));
        };
        let mut known = vec![verb];
        known.extend(options);
        if let Some((second, _)) = verbs.find(|(v, _)| !known.contains(v)) {
            let message = format!("a step with two verbs, '{verb}' and '{second}'; expected one");
            return Err(self.source.error(node.span.clone(), message));
        }
        let fields = Fields::open(self.source, node, &format!("the step '{verb}'"), &known)?;
        let value = fields.need(verb, "a step")?;
        if self.real_time && matches!(verb, "nice" | "slice") {
            let message = format!("a real-time task has no {verb}; expected other steps");
            return Err(self.source.error(node.span.clone(), message));
        }
        match verb {
            "loop" => self.lower_loop(&fields, value),
            "fork" => self.lower_fork(&fields, value),
            "begin" | "end" | "request" | "serve" | "reply" => {
                self.lower_request(verb, &fields, value)
            }
            "lock" | "unlock" => self.lower_lock(verb, value),
            "cond_wait" => self.lower_cond_wait(&fields, value),
            "run" | "busy" | "sleep" | "until" | "slice" => self.lower_time(verb, value),
            "period" | "timer" => self.lower_period(&fields, value),
            _ if WORDS.contains(&verb) => self.lower_word(verb, value),
            _ => self.lower_other(verb, &fields, value),
        }
    }

    fn no_verb(&self, node: &Node, entries: &[(Key, Node)]) -> Error {
        let Some((key, _)) = entries.first() else {
            return self.source.error(node.span.clone(), "an empty step");
        };
        let verbs = VERBS.iter().map(|(v, _)| *v);
        let help = nearest(&key.name, verbs.clone()).map(|n| format!("did you mean '{n}'?"));
        let all: Vec<&str> = verbs.collect();
        let message = format!(
            "unknown step '{}'; expected one of {}",
            key.name,
            all.join(", ")
        );
        self.source.error(key.span.clone(), message).help(help)
    }

    fn lower_word(&mut self, verb: &str, value: &Node) -> Result<(), Error> {
        if !value.bool(self.source)? {
            return Err(self.source.error(value.span.clone(), "expected true"));
        }
        self.ops.push(word_op(verb));
        Ok(())
    }

    fn lower_time(&mut self, verb: &str, value: &Node) -> Result<(), Error> {
        self.ops.push(match verb {
            "run" => Op::Run(value.dur(self.source)?),
            "busy" => Op::Busy(value.ns(self.source)?),
            "sleep" => Op::Sleep(value.dur(self.source)?),
            "until" => Op::SleepUntilTaskTime(value.ns(self.source)?),
            _ => Op::SetSlice(value.ns(self.source)?),
        });
        Ok(())
    }

    fn lower_period(&mut self, fields: &Fields<'_>, value: &Node) -> Result<(), Error> {
        let every = value.positive_dur(self.source)?;
        let ways = ["shift", "catch-up"];
        self.ops.push(match fields.get("late") {
            Some(late) if late.is_second(self.source, "way to be late", ways)? => Op::Pace(every),
            _ => Op::Period(every),
        });
        Ok(())
    }

    fn lower_loop(&mut self, fields: &Fields<'_>, value: &Node) -> Result<(), Error> {
        let count = match &value.value {
            Value::Str(s) if s == "forever" => FOREVER,
            Value::Int(-1) => FOREVER,
            Value::Str(_) => {
                let message = "expected a number of turns or \"forever\"";
                return Err(self.source.error(value.span.clone(), message));
            }
            _ => value.int(self.source, 1..=i64::MAX)? as u64,
        };
        let steps = fields.need("steps", "a loop")?;
        if self.depth == NESTED_MAX {
            let message = format!("loops nest deeper than {NESTED_MAX}");
            return Err(self.source.error(value.span.clone(), message));
        }
        let start = self.ops.len();
        let before = self.held.clone();
        self.ops.push(Op::LoopStart { count });
        self.depth += 1;
        self.steps(steps)?;
        self.depth -= 1;
        if self.held != before {
            let message =
                "a turn of the loop ends with other mutexes or requests held than it began with";
            return Err(self.source.error(value.span.clone(), message));
        }
        if !self.ops[start..].iter().any(|op| op.takes_time()) {
            let message = "a loop whose steps take no time; expected a run, a sleep or a wait";
            return Err(self.source.error(value.span.clone(), message));
        }
        self.ops.push(Op::LoopEnd {
            start: start as u32,
        });
        Ok(())
    }

    fn lower_fork(&mut self, fields: &Fields<'_>, value: &Node) -> Result<(), Error> {
        let name = value.str(self.source, "the name of a task")?;
        let known = self.tasks.keys().map(String::as_str);
        let template = *self
            .tasks
            .get(name)
            .ok_or_else(|| unknown_name(self.source, &value.span, "task template", name, known))?;
        let n = fields
            .get("n")
            .map_or(Ok(1), |n| n.int(self.source, 1..=100_000))?;
        self.ops.extend((0..n).map(|_| Op::Fork { template }));
        Ok(())
    }

    fn lower_other(&mut self, verb: &str, f: &Fields<'_>, value: &Node) -> Result<(), Error> {
        let (source, names) = (self.source, self.names);
        let op = match verb {
            "read" | "write" | "poll" => {
                let chan = find(source, value, "pipe", &names.chans)?;
                match verb {
                    "read" => Op::Read {
                        chan,
                        bytes: self.bytes(f, 1)?,
                    },
                    "write" => Op::Write {
                        chan,
                        bytes: self.bytes(f, 1)?,
                    },
                    _ => Op::Poll { chan },
                }
            }
            "wait" => Op::SemWait(find(source, value, "semaphore", &names.semaphores)?),
            "post" => Op::SemPost(find(source, value, "semaphore", &names.semaphores)?),
            "futex_wait" => Op::FutexWait(find(source, value, "futex", &names.futexes)?),
            "futex_wake" => {
                let n = f
                    .get("n")
                    .map_or(Ok(1), |n| n.int(source, 1..=i64::from(i32::MAX)))?;
                Op::FutexWake {
                    futex: find(source, value, "futex", &names.futexes)?,
                    n: n as u32,
                }
            }
            "cond_signal" | "cond_broadcast" => Op::CondSignal {
                cond: find(source, value, "condition variable", &names.conds)?,
                all: verb == "cond_broadcast",
            },
            "barrier" => Op::Barrier(find(source, value, "barrier", &names.barriers)?),
            "nice" => Op::SetNice(value.int(source, -20..=19)? as i8),
            "affinity" => Op::SetAffinity(mask(source, value, self.cpus, self.w)?),
            "cgroup" => Op::SetCgroup(groups::find(source, value, self.groups)?.start),
            "mark" => Op::Mark(self.mark(value, value.str(source, "the name of a mark")?)?),
            _ => return Err(source.error(value.span.clone(), format!("unknown step '{verb}'"))),
        };
        self.ops.push(op);
        Ok(())
    }

    pub(super) fn bytes(&self, fields: &Fields<'_>, default: u32) -> Result<u32, Error> {
        let bytes = fields
            .get("bytes")
            .map(|n| n.int(self.source, 1..=1 << 30))
            .transpose()?;
        Ok(bytes.map_or(default, |b| b as u32))
    }

    pub(super) fn kind_of_request(&mut self, node: &Node, name: &str) -> Result<u32, Error> {
        index_of(&mut self.w.requests, name)
            .ok_or_else(|| self.source.error(node.span.clone(), TOO_MANY_NAMES))
    }

    fn mark(&mut self, node: &Node, name: &str) -> Result<u32, Error> {
        index_of(&mut self.w.marks, name)
            .ok_or_else(|| self.source.error(node.span.clone(), TOO_MANY_NAMES))
    }
}

/// Marks and requests are searched one by one, and each becomes columns of a report.
pub const NAMES_MAX: usize = 1000;
const TOO_MANY_NAMES: &str = "more than 1000 different marks or requests";

/// The place of a name, which is added if it is new; `None` if there are too many.
fn index_of(names: &mut Vec<String>, name: &str) -> Option<u32> {
    let known = names.iter().position(|n| n == name);
    if known.is_none() {
        if names.len() == NAMES_MAX {
            return None;
        }
        names.push(name.to_owned());
    }
    Some(known.unwrap_or(names.len() - 1) as u32)
}

fn word_op(word: &str) -> Op {
    match word {
        "hog" => Op::Hog,
        "yield" => Op::Yield,
        "join" => Op::Join,
        "exec" => Op::Exec,
        _ => Op::Exit,
    }
}
