//! Events: what a thread of an rt-app file does.

use std::collections::BTreeSet;

use super::super::error::Error;
use super::super::node::{Fields, Key, Node, Value, unknown_name};
use super::{BYTES_MAX, Build, US_MAX, open, unknown, us};
use crate::workload::program::{Dur, Op, Unit};

/// Events.
pub(super) const EVENTS: &[&str] = &[
    "run", "runtime", "sleep", "mem", "timer", "lock", "unlock", "wait", "signal", "broad", "sync",
    "barrier", "suspend", "resume", "yield", "fork",
];
/// What rt-app writes to a device, which takes as long as the device does.
const NOT_MODELLED: &str = "iorun";
/// Bytes of a line of the unit of work that writes memory.
const LINE: i64 = 64;

/// Whether a key is that event: its name, or that with a number ("run2"), as workgen makes it of a
/// key that is there twice, or something else that is no letter ("run_short").
pub(super) fn is(key: &str, event: &str) -> bool {
    let rest = key.strip_prefix(event);
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
}

/// A thread while its events are read.
pub(super) struct Thread {
    pub(super) name: String,
    pub(super) ops: Vec<Op>,
    /// Mutexes that it holds at this point.
    pub(super) held: BTreeSet<u32>,
    /// Barriers that it names.
    pub(super) barriers: BTreeSet<u32>,
    pub(super) real_time: bool,
    /// Its first timer, if nobody else has it: the series is the task's own grid.
    grid: Option<u32>,
}

impl Thread {
    pub(super) fn new(name: &str, real_time: bool) -> Self {
        Self {
            name: name.to_owned(),
            ops: Vec::new(),
            held: BTreeSet::new(),
            barriers: BTreeSet::new(),
            real_time,
            grid: None,
        }
    }
}

impl Build<'_> {
    pub(super) fn event(
        &mut self,
        key: &Key,
        value: &Node,
        known: &[&str],
        thread: &mut Thread,
    ) -> Result<(), Error> {
        let source = self.source;
        let Some(&event) = EVENTS.iter().find(|event| is(&key.name, event)) else {
            if is(&key.name, NOT_MODELLED) {
                let message = "'iorun' writes to a device, which is not modelled";
                return Err(source.error(key.span.clone(), message));
            }
            let all: Vec<&str> = EVENTS.iter().chain(known).copied().collect();
            return Err(unknown(source, key, "a phase", &all));
        };
        match event {
            "lock" | "unlock" => return self.lock(event, value, thread),
            "wait" | "sync" => return self.wait(event, value, thread),
            "suspend" | "resume" => return self.suspend(event, value, thread),
            _ => {}
        }
        let op = match event {
            "run" => Op::Run(Dur::Const(us(source, value, 0)?)),
            "runtime" => Op::Busy(us(source, value, 0)?),
            "sleep" => Op::Sleep(Dur::Const(us(source, value, 0)?)),
            "mem" => Op::Work {
                unit: Unit::Line {
                    set_bytes: self.global.mem_buffer,
                },
                n: (value.int(source, 1..=BYTES_MAX)? as u64).div_ceil(LINE as u64),
            },
            "timer" => self.timer(value, thread)?,
            "signal" | "broad" => Op::CondSignal {
                cond: self.objects.cond(value.name(source, CONDITION)?),
                all: event == "broad",
            },
            "barrier" => {
                let (barrier, mutex) = self
                    .objects
                    .barrier(value.name(source, "the name of a barrier")?);
                thread.barriers.insert(barrier);
                Op::CondBarrier { barrier, mutex }
            }
            "fork" => self.fork(value)?,
            _ => Op::Yield,
        };
        thread.ops.push(op);
        Ok(())
    }

    fn lock(&mut self, event: &str, value: &Node, thread: &mut Thread) -> Result<(), Error> {
        let name = value.name(self.source, "the name of a mutex")?;
        let k = self.objects.mutex(name);
        let (fits, op) = match event {
            "lock" => (thread.held.insert(k), Op::Lock(k)),
            _ => (thread.held.remove(&k), Op::Unlock(k)),
        };
        if !fits {
            let message = format!("{event} of '{name}', which this task does not allow here");
            let help = Some("a task locks a mutex before it unlocks it, once each");
            return Err(self.source.error(value.span.clone(), message).help(help));
        }
        thread.ops.push(op);
        Ok(())
    }

    /// A wait on a condition variable, for which its mutex is held. `sync` signals it first, and
    /// takes the mutex for both if it is not held: rt-app's tutorial has it so, its examples the
    /// other way.
    fn wait(&mut self, event: &str, value: &Node, thread: &mut Thread) -> Result<(), Error> {
        let source = self.source;
        let fields = open(source, value, &format!("a {event}"), &["ref", "mutex"])?;
        let cond = fields.need("ref", &format!("a {event}"))?;
        let cond = self.objects.cond(cond.name(source, CONDITION)?);
        let node = fields.need("mutex", &format!("a {event}"))?;
        let name = node.name(source, "the name of a mutex")?;
        let mutex = self.objects.mutex(name);
        let held = thread.held.contains(&mutex);
        let wait = Op::CondWait { cond, mutex };
        let signal = Op::CondSignal { cond, all: false };
        match (event, held) {
            ("wait", true) => thread.ops.push(wait),
            ("wait", false) => {
                let message = format!("a wait with '{name}', which this task does not hold");
                let help = Some("a task locks the mutex before it waits, and unlocks it after");
                return Err(source.error(node.span.clone(), message).help(help));
            }
            (_, true) => thread.ops.extend([signal, wait]),
            (_, false) => {
                let (lock, unlock) = (Op::Lock(mutex), Op::Unlock(mutex));
                thread.ops.extend([lock, signal, wait, unlock]);
            }
        }
        Ok(())
    }

    /// Both take the mutex of the condition variable's name for it.
    fn suspend(&mut self, event: &str, value: &Node, thread: &mut Thread) -> Result<(), Error> {
        let source = self.source;
        let own = thread.name.clone();
        let name = match &value.value {
            Value::Nothing if event == "suspend" => own.as_str(),
            Value::Str(name) if event == "suspend" && name.is_empty() => own.as_str(),
            _ => value.name(source, "the name of who is suspended")?,
        };
        let (cond, mutex) = (self.objects.cond(name), self.objects.mutex(name));
        if thread.held.contains(&mutex) {
            let message = format!("{event} takes the mutex '{name}', which this task holds");
            return Err(source.error(value.span.clone(), message));
        }
        let op = match event {
            "suspend" => Op::CondWait { cond, mutex },
            _ => Op::CondSignal { cond, all: true },
        };
        thread.ops.extend([Op::Lock(mutex), op, Op::Unlock(mutex)]);
        Ok(())
    }

    fn fork(&mut self, value: &Node) -> Result<Op, Error> {
        let name = value.name(self.source, "the name of a task")?;
        let Some(of) = self.templates.get(name) else {
            let known = self.templates.keys().map(String::as_str);
            return Err(unknown_name(self.source, &value.span, "task", name, known));
        };
        self.forked
            .entry(name.to_owned())
            .or_insert(value.span.clone());
        Ok(Op::Fork { template: of.first })
    }

    /// A timer whose name begins with "unique" is of one thread, any other of all that name it.
    /// Both begin when their first thread does.
    fn timer(&mut self, node: &Node, thread: &mut Thread) -> Result<Op, Error> {
        let source = self.source;
        let timer: Fields<'_> = open(source, node, "a timer", &["ref", "period", "mode"])?;
        let modes = ["relative", "absolute"];
        let mode = timer.get("mode");
        let stays = mode.map(|node| node.is_second(source, "mode", modes));
        let stays = stays.transpose()?.unwrap_or(false);
        let name = match timer.get("ref") {
            Some(node) => node.name(source, "the name of a timer")?,
            None => "unique",
        };
        let every = timer.need("period", "a timer")?;
        let every = every.int(source, 1..=US_MAX)? as u64 * 1000;
        let shared = !name.starts_with("unique");
        let number = self.objects.timer(name);
        if !shared && *thread.grid.get_or_insert(number) == number {
            let every = Dur::Const(every);
            return Ok(if stays {
                Op::Pace(every)
            } else {
                Op::Period(every)
            });
        }
        Ok(Op::Timer {
            timer: number,
            shared,
            every,
            stays,
        })
    }
}

const CONDITION: &str = "the name of a condition variable";
