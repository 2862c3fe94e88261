//! From a wake-up to the switch, on a recorded machine: what it takes there beyond the model.
//!
//! The model has one price for each function. On a real machine the same code takes several times
//! as long when other code has run on the CPU since, and the ends of interrupts are in no table.
//! A recording shows how long it takes: from `sched_wakeup` to the `sched_switch` that it
//! causes, by kind of wake-up. A run beside a recording may be held to that ([`Tails`]); nothing
//! else is. Units: nanoseconds.

use fairground::event::Event;
use rustc_hash::FxHashMap;

use crate::cache::{NS, Ps};

/// Bounds of the time since the CPU last switched or woke somebody.
const PAUSES_NS: [u64; 3] = [10_000, 1_000_000, 10_000_000];

/// Kinds of wake-ups.
pub const KINDS: usize = 2 * 2 * 2 * (PAUSES_NS.len() + 1);

/// What kind of wake-up it is, as far as tracepoints tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The CPU that the task goes to was idle.
    pub idle: bool,
    /// Another CPU enqueued it.
    pub remote: bool,
    /// The task is new.
    pub new: bool,
    /// How long the enqueuing CPU had not switched or woken: 0 = shorter than 10 us, 1 ms, 10 ms.
    pub pause: u8,
}

impl Kind {
    /// Its place in a table of all.
    #[must_use]
    pub fn index(self) -> usize {
        let flags = usize::from(self.idle) * 4 + usize::from(self.remote) * 2;
        (flags + usize::from(self.new)) * (PAUSES_NS.len() + 1) + usize::from(self.pause)
    }

    /// All of them, in the order of [`Kind::index`].
    pub fn all() -> impl Iterator<Item = Self> {
        let pauses = PAUSES_NS.len() + 1;
        (0..KINDS).map(move |i| Self {
            idle: (i / pauses) & 4 != 0,
            remote: (i / pauses) & 2 != 0,
            new: (i / pauses) & 1 != 0,
            pause: (i % pauses) as u8,
        })
    }
}

/// Follows tracepoints and tells of what kind each wake-up is.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    cpus: Vec<Seen>,
}

/// What was last seen of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    idle: bool,
    last_ns: u64,
}

impl Kinds {
    /// Nothing was seen of `cpus` CPUs.
    #[must_use]
    pub fn new(cpus: usize) -> Self {
        let unknown = Seen::default();
        Self {
            cpus: vec![unknown; cpus],
        }
    }

    /// `cpu` switched at `at_ns`, to the idle task or another one.
    pub fn switched(&mut self, cpu: u32, at_ns: u64, idle: bool) {
        if let Some(seen) = self.cpus.get_mut(cpu as usize) {
            *seen = Seen {
                idle,
                last_ns: at_ns,
            };
        }
    }

    /// `cpu` enqueued a task at `at_ns` to the CPU `to`.
    pub fn woke(&mut self, cpu: u32, to: u32, new: bool, at_ns: u64) -> Kind {
        let idle = self.cpus.get(to as usize).is_some_and(|seen| seen.idle);
        let mut pause = 0;
        if let Some(seen) = self.cpus.get_mut(cpu as usize) {
            let ns = at_ns.saturating_sub(seen.last_ns);
            pause = PAUSES_NS.partition_point(|bound| *bound <= ns) as u8;
            seen.last_ns = at_ns;
        }
        let remote = cpu != to;
        Kind {
            idle,
            remote,
            new,
            pause,
        }
    }
}

/// What wake-ups of each kind take beyond the model, ns: one after the other, and again from the
/// first. Less than zero: what setting the timer is to cost less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tails {
    /// By [`Kind::index`].
    pub kinds: Vec<Vec<i64>>,
    /// Those of the tasks of one template, by that and [`Kind::index`], where they are known by
    /// themselves: what has left the caches hangs on who slept, and on who else runs then.
    pub own: FxHashMap<(u32, usize), Vec<i64>>,
}

impl Default for Tails {
    fn default() -> Self {
        Self {
            kinds: vec![Vec::new(); KINDS],
            own: FxHashMap::default(),
        }
    }
}

/// A run that is held to it.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    tails: Tails,
    /// How many of each were used.
    used: [usize; KINDS],
    own_used: FxHashMap<(u32, usize), usize>,
    /// Template of each task.
    templates: Vec<u32>,
    kinds: Kinds,
    /// What the next switch of each CPU has to take, ps.
    due: Vec<i64>,
}

impl Held {
    pub fn new(tails: Tails, cpus: usize, templates: Vec<u32>) -> Self {
        Self {
            tails,
            used: [0; KINDS],
            own_used: FxHashMap::default(),
            templates,
            kinds: Kinds::new(cpus),
            due: vec![0; cpus],
        }
    }

    /// A task of this template is made.
    pub fn made(&mut self, template: u32) {
        self.templates.push(template);
    }

    /// A tracepoint of `cpu` at `at`.
    pub fn see(&mut self, at: Ps, cpu: u32, event: Event) {
        let (task, to, new) = match event {
            Event::Wakeup { cpu, task } => (task, cpu, false),
            Event::WakeupNew { cpu, task } => (task, cpu, true),
            Event::Switch { cpu, next, .. } => {
                self.kinds.switched(cpu.0, at / NS, next.is_none());
                self.due[cpu.idx()] = 0;
                return;
            }
            _ => return,
        };
        let kind = self.kinds.woke(cpu, to.0, new, at / NS).index();
        let template = self.templates.get(task.idx()).copied();
        let key = (template.unwrap_or(u32::MAX), kind);
        let (tails, used) = match self.tails.own.get(&key) {
            Some(own) => (own, self.own_used.entry(key).or_default()),
            None => (&self.tails.kinds[kind], &mut self.used[kind]),
        };
        let n = tails.len().max(1);
        let tail = tails.get(*used % n).copied().unwrap_or(0);
        *used += 1;
        self.due[to.idx()] = tail * NS as i64;
    }

    /// Setting the timer of `cpu` at this price: what is left of the price.
    pub fn cheaper(&mut self, cpu: u32, price: Ps) -> Ps {
        let due = &mut self.due[cpu as usize];
        let off = due.min(&mut 0).unsigned_abs().min(price);
        *due += off as i64;
        price - off
    }

    /// What the switch that now follows on `cpu` has to take.
    pub fn take(&mut self, cpu: u32) -> Ps {
        std::mem::take(&mut self.due[cpu as usize]).max(0) as Ps
    }
}

#[cfg(test)]
mod tests {
    use fairground::value::{Cpu, TaskId};

    use super::*;

    #[test]
    fn kinds_have_places_of_their_own() {
        for (i, kind) in Kind::all().enumerate() {
            assert_eq!(kind.index(), i);
        }
    }

    #[test]
    fn a_wake_up_is_told_by_its_target_and_the_pause_before_it() {
        let mut kinds = Kinds::new(2);
        kinds.switched(0, 1_000, true);
        kinds.switched(1, 1_000, false);
        let soon = kinds.woke(1, 0, false, 5_000);
        assert!(soon.idle && soon.remote && soon.pause == 0);
        let late = kinds.woke(1, 1, true, 4_000_000);
        assert!(!late.idle && !late.remote && late.new && late.pause == 2);
        assert_eq!(kinds.woke(0, 0, false, 40_000_000).pause, 3);
    }

    #[test]
    fn a_tail_is_due_until_the_switch() {
        let mut tails = Tails::default();
        let mut kinds = Kinds::new(1);
        tails.kinds[kinds.woke(0, 0, false, 20_000).index()] = vec![700, 900];
        let mut held = Held::new(tails, 1, Vec::new());
        let (task, cpu) = (TaskId(0), Cpu(0));
        held.see(20_000 * NS, 0, Event::Wakeup { task, cpu });
        assert_eq!(held.cheaper(0, 1300 * NS), 1300 * NS);
        assert_eq!((held.take(0), held.take(0)), (700 * NS, 0));
        for expected in [900, 700] {
            held.see(40_000 * NS, 0, Event::Wakeup { task, cpu });
            held.kinds = Kinds::new(1);
            assert_eq!(held.take(0), expected * NS);
        }
        held.tails.kinds = vec![vec![-500]; KINDS];
        held.see(90_000 * NS, 0, Event::Wakeup { task, cpu });
        assert_eq!(held.cheaper(0, 300 * NS), 0);
        assert_eq!(held.cheaper(0, 300 * NS), 100 * NS);
        assert_eq!((held.cheaper(0, 300 * NS), held.take(0)), (300 * NS, 0));
    }

    #[test]
    fn tasks_of_a_template_have_their_own_where_these_are_known() {
        let kind = Kinds::new(1).woke(0, 0, false, 20_000).index();
        let mut tails = Tails::default();
        tails.kinds[kind] = vec![700];
        tails.own.insert((5, kind), vec![100, 200]);
        let mut held = Held::new(tails, 1, vec![4]);
        held.made(5);
        let cpu = Cpu(0);
        let mut tail = |task| {
            held.kinds = Kinds::new(1);
            let task = TaskId(task);
            held.see(20_000 * NS, 0, Event::Wakeup { task, cpu });
            held.take(0) / NS
        };
        assert_eq!([0, 1, 0, 1, 1].map(&mut tail), [700, 100, 700, 200, 100]);
    }
}
