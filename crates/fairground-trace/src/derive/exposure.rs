//! Whom interrupts meet: how long each thread ran on each CPU, and on which a sleeper is woken.

use super::log::{Log, Logs};
use crate::walk::{ThreadId, Waker};

/// Who has which share of the time of the CPUs on which a thread is woken, each as often as it is.
#[derive(Clone, Copy, Debug)]
pub struct Exposure<'a> {
    logs: &'a Logs,
    woken_on: &'a [(u32, u64)],
    all: f64,
    span_ns: f64,
}

impl Exposure<'_> {
    fn mean(&self, share: impl Fn(u32) -> f64) -> f64 {
        let parts = self.woken_on.iter().map(|(cpu, n)| *n as f64 * share(*cpu));
        parts.sum::<f64>() / self.all
    }

    /// That of a thread.
    #[must_use]
    pub fn share(&self, thread: ThreadId) -> f64 {
        let log = &self.logs.logs[thread];
        self.mean(|cpu| {
            let at = log.ran_on.iter().position(|on| *on == cpu);
            let ran = at.and_then(|at| log.ran_ns.get(at)).copied().unwrap_or(0);
            ran as f64 / self.span_ns
        })
    }

    /// For which share they are idle.
    #[must_use]
    pub fn idle(&self) -> f64 {
        self.mean(|cpu| match self.logs.seen.get(cpu as usize) {
            Some(true) => 1.0 - self.logs.busy_ns[cpu as usize] as f64 / self.span_ns,
            _ => 0.0,
        })
    }
}

impl Logs {
    /// Whom an interrupt that wakes `thread` would meet.
    #[must_use]
    pub fn exposure(&self, thread: ThreadId) -> Exposure<'_> {
        let woken_on = &self.logs[thread].woken_on;
        let all: u64 = woken_on.iter().map(|(_, n)| n).sum();
        Exposure {
            logs: self,
            woken_on,
            all: all.max(1) as f64,
            span_ns: (self.span.1 - self.span.0).max(1) as f64,
        }
    }

    pub(super) fn ran(&mut self, thread: ThreadId, cpu: u32, ns: u64) {
        self.busy_ns[cpu as usize] += ns;
        let log = &mut self.logs[thread];
        log.cpu_ns += ns;
        let on = log.ran_on.iter().position(|on| *on == cpu);
        let at = on.unwrap_or(log.ran_on.len());
        if log.ran_ns.len() <= at {
            log.ran_ns.resize(at + 1, 0);
        }
        log.ran_ns[at] += ns;
    }
}

impl Log {
    /// It was woken on `cpu`, perhaps by an interrupt.
    pub(super) fn count_woken(&mut self, by: Waker, cpu: u32) {
        if matches!(by, Waker::Thread(_) | Waker::Unseen) {
            return;
        }
        match self.woken_on.iter_mut().find(|(on, _)| *on == cpu) {
            Some((_, n)) => *n += 1,
            None => self.woken_on.push((cpu, 1)),
        }
    }
}
