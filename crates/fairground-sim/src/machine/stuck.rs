//! A run that cannot go on: mostly nothing can happen any more, but tasks still wait. Who waits for
//! what.

use super::Sim;
use super::task::{Life, Wait};
use crate::cache::NS;
use crate::workload::program::Labels;

/// A run that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Stuck {
    /// Nothing can happen any more.
    #[error("{}", deadlock(*at_ns, waiting))]
    Deadlock {
        /// When nothing more became due, ns.
        at_ns: u64,
        /// One sentence for each kind of waiting task, with how many there are.
        waiting: Vec<String>,
    },
    /// Time ends here.
    #[error(
        "the run was not at its end after {most_s} s of simulated time, the most on {cpus} CPUs"
    )]
    TooLong {
        /// How long it may be, s.
        most_s: u64,
        /// CPUs of the machine.
        cpus: usize,
    },
}

fn deadlock(at_ns: u64, waiting: &[String]) -> String {
    let ms = at_ns as f64 / 1e6;
    let mut text = format!("deadlock: after {ms:.3} ms nothing can happen any more, but");
    for line in waiting {
        text += "\n  ";
        text += line;
    }
    text
}

impl Sim<'_> {
    /// At an end that was set by time: all living tasks wait for something that only one of them
    /// could do.
    pub(crate) fn stuck_at_end(&self) -> Option<Vec<String>> {
        let mut living = self.tasks.iter().filter(|t| t.life != Life::Exited);
        let waits = |t: &super::task::SimTask| {
            t.life == Life::Blocked && !matches!(t.wait, Wait::None | Wait::Time | Wait::Migration)
        };
        let first = living.next()?;
        (waits(first) && living.all(waits)).then(|| self.who_waits())
    }

    pub(super) fn stuck(&self) -> Stuck {
        Stuck::Deadlock {
            at_ns: self.now / NS,
            waiting: self.who_waits(),
        }
    }

    /// One sentence for each kind of waiting task.
    fn who_waits(&self) -> Vec<String> {
        let mut counts: Vec<([String; 2], u32)> = Vec::new();
        for task in self.tasks.iter().filter(|t| t.life != Life::Exited) {
            let name = &self.workload.templates[task.template as usize].name;
            let program = &self.workload.programs[task.program as usize].name;
            let who = format!("`{name}` at step {} of `{program}`", task.pc + 1);
            let kind = [who, self.wait_words(task.wait)];
            match counts.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, n)) => *n += 1,
                None => counts.push((kind, 1)),
            }
        }
        let more = counts.len().saturating_sub(20);
        let sentence = |([who, what], n): &([String; 2], u32)| match n {
            1 => format!("task {who} waits for {what}"),
            n => format!("{n} tasks {who} wait for {what}"),
        };
        let mut waiting: Vec<String> = counts.iter().take(20).map(sentence).collect();
        if more > 0 {
            waiting.push(format!("and {more} more kinds of waiting tasks"));
        }
        waiting
    }

    fn wait_words(&self, wait: Wait) -> String {
        let labels = &self.workload.labels;
        let chan = |c| Labels::of(&labels.chans, c);
        match wait {
            Wait::None => "nothing (it is runnable: a defect of the simulator)".into(),
            Wait::Time => "a time that never comes (a defect of the simulator)".into(),
            Wait::Data(c) => format!("data in channel {}, which nobody writes any more", chan(c)),
            Wait::Room(c) => format!("room in channel {}, which nobody reads any more", chan(c)),
            Wait::Poll(c) => format!(
                "data in channel {} (poll), which nobody writes any more",
                chan(c)
            ),
            Wait::Received(s) => format!("data in socket {s}, to which nobody sends any more"),
            Wait::Sendable(s) => format!("room in socket {s}, which nobody reads any more"),
            Wait::Sem(s) => {
                let sem = Labels::of(&labels.sems, s);
                format!("semaphore {sem}, which nobody posts any more")
            }
            Wait::Futex(x) => {
                let futex = Labels::of(&labels.futexes, x);
                format!("futex {futex}, which nobody wakes any more")
            }
            Wait::Mutex(m) => {
                let mutex = Labels::of(&labels.mutexes, m);
                format!("mutex {mutex}, whose holder does not unlock it")
            }
            Wait::PipeMutex(c) => format!(
                "the mutex of channel {} (a defect of the simulator)",
                chan(c)
            ),
            Wait::Barrier(b) => {
                let barrier = Labels::of(&labels.barriers, b);
                let parties = self.workload.barriers[b as usize];
                format!("barrier {barrier}, which {parties} tasks have to reach")
            }
            Wait::Migration => "the stopper that moves it".into(),
            Wait::Children => "children that do not exit".into(),
            Wait::Request(s) => {
                format!(
                    "requests to `{}`, which nobody calls any more",
                    self.workload.services[s as usize]
                )
            }
            Wait::Answer(s) => {
                format!(
                    "an answer of `{}`, which nobody gives",
                    self.workload.services[s as usize]
                )
            }
        }
    }
}
