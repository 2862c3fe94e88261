//! Why a task runs where and when it does: the run, made again, stopped where it is decided, and
//! looked at. Nothing is kept while it runs, so a run that nobody asks about costs nothing more.
//!
//! ```text
//!   first run    every event about the task -> episodes: from being runnable to leaving the CPU
//!   second run   stopped before the choice of a CPU; the choice, made by a host that writes down
//!   third run    stopped before the switch; the queues. Up to there: locks and lines waited for
//! ```
//!
//! Units: nanoseconds.

mod choice;
mod episode;
mod parts;
mod pick;
mod timer;

pub use choice::{Choice, Examined, Route};
pub use episode::{Episode, Move, Start};
pub(crate) use pick::eligible;
pub use pick::{Entity, Level};
pub use timer::TimerWait;

use fairground::value::{TaskId, TgId};

use crate::cache::NS;
use crate::exact::Exact;
use crate::host::TraceLine;
use crate::machine::{Setup, Sim, Stuck};
use crate::outcome::RunError;
use crate::workload::program::{Born, RealTime};

/// Whom and when.
pub struct Question<'a> {
    /// Tasks that may be meant, from what each task began with, by number.
    pub who: &'a dyn Fn(&[Born]) -> Vec<TaskId>,
    /// Time from the start of the simulation.
    pub at_ns: u64,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The task.
    pub task: TaskId,
    /// From being runnable to leaving the CPU.
    pub episode: Episode,
    /// It is of the real-time class, to which fair tasks give way.
    pub real_time: Option<RealTime>,
    /// Which CPUs were looked at; `None`: nothing was chosen (a preemption; a sleeper that was
    /// still on its queue), or by other rules than the fair class has.
    pub choice: Option<Choice>,
    /// It was still being switched out (`p->on_cpu`), so the wake-up was left to that CPU.
    pub was_leaving: bool,
    /// The queues of the CPU just before the switch, root first; empty if there was none.
    pub levels: Vec<Level>,
    /// They pick by deadline (EEVDF), not by virtual run time (CFS).
    pub by_deadline: bool,
    /// Real-time tasks were there that had had their part of the second.
    pub real_time_over: bool,
    /// It had to leave its CPU because this group had used its quota.
    pub out_of_quota: Option<TgId>,
    /// Where the time between went.
    pub parts: Parts,
    /// What came before, if a timer of its own woke it.
    pub timer: Option<TimerWait>,
    /// What each task began with, by number.
    pub born: Vec<Born>,
    /// When the run was over.
    pub ended_ns: u64,
}

/// What the time from being runnable to running is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// From the wake-up's begin to the choice of a CPU; zero if none was chosen.
    pub choosing_ns: u64,
    /// From there to the queue: locks, and with a message to another CPU its interrupt and that
    /// CPU's way out of idle.
    pub sending_ns: u64,
    /// On the queue.
    pub queued_ns: u64,
    /// Of that, while it waited for its turn: who ran on the CPU, and how long; `None` is the idle
    /// task.
    pub others: Vec<(Option<TaskId>, u64)>,
    /// The rest of it, while it waited for quota: the nearest group of the task's that was
    /// throttled there, and how long.
    pub throttled: Vec<(TgId, u64)>,
    /// Waiting of all CPUs for locks of the scheduler in steps of that time that were about this
    /// task's CPU or its waker's.
    pub lock_ns: u64,
    /// Waiting of all CPUs for cache lines in these steps, ns.
    pub line_ns: u64,
}

/// Answers a question about a run.
///
/// # Errors
/// As a run; `Ok(None)` if there is no such task, or it never became runnable.
pub fn explain(
    setup: &Setup<'_>,
    exact: &Exact,
    question: &Question<'_>,
) -> Result<Option<Explained>, RunError> {
    let mut first = sim(setup, exact)?;
    let mut lines: Vec<(u64, TraceLine)> = Vec::new();
    let mut seen = 0;
    while !first.has_ended() {
        let number = first.events;
        first.one_event()?;
        let trace = first.host.counters.trace.as_deref().unwrap_or(&[]);
        lines.extend(trace[seen..].iter().map(|line| (number, *line)));
        seen = trace.len();
    }
    let (born, ended_ns) = (first.born().to_vec(), first.now / NS);
    let meant = (question.who)(&born);
    let Some((task, episode)) = episode::find(&lines, &meant, question.at_ns) else {
        return Ok(None);
    };
    let real_time = born.get(task.idx()).and_then(|b| b.real_time);
    let (choice, was_leaving) = match episode.start {
        _ if real_time.is_some() => (None, false),
        Start::Woken { event, cpu, .. } => choice_at(setup, exact, task, cpu, event)?,
        // Its tracepoint comes with the queue; the choice was a step before.
        Start::New { event, cpu, .. } => match before(setup, exact, task, cpu, event)? {
            Some(number) => choice_at(setup, exact, task, cpu, number)?,
            None => (None, false),
        },
        Start::Preempted { .. } | Start::Pushed { .. } => (None, false),
    };
    let asleep_ns = episode::left_before(&lines, task, episode.start_event);
    let picked = pick_at(setup, exact, task, &episode, asleep_ns)?;
    let quota = parts::Quota {
        groups: &ancestors(setup, picked.group),
        per_task: setup.features.throttle.is_per_task(),
    };
    let out_of_quota = quota.took_it_off(&episode);
    let mut parts = parts::parts(&lines, &episode, &quota, ended_ns);
    (parts.lock_ns, parts.line_ns) = picked.waited_ns;
    if let (Some(at), Start::Woken { .. }, Some(_)) = (picked.chosen_ns, episode.start, &choice) {
        parts.choosing_ns = at.saturating_sub(episode.start_ns).min(parts.sending_ns);
        parts.sending_ns -= parts.choosing_ns;
    }
    Ok(Some(Explained {
        task,
        episode,
        real_time,
        choice,
        was_leaving,
        levels: picked.levels,
        by_deadline: setup.features.pick.by_deadline(),
        real_time_over: picked.real_time_over,
        out_of_quota,
        parts,
        timer: picked.timer,
        born,
        ended_ns,
    }))
}

fn sim<'a>(setup: &Setup<'a>, exact: &Exact) -> Result<Sim<'a>, RunError> {
    let setup = Setup {
        trace: true,
        ..setup.clone()
    };
    let mut sim = Sim::new(&setup)?;
    exact.apply(&mut sim)?;
    Ok(sim)
}

/// A group and those above it.
fn ancestors(setup: &Setup<'_>, group: u32) -> Vec<TgId> {
    let groups = &setup.workload.cgroups;
    let mut all = vec![TgId(group)];
    let mut at = group;
    while let Some(parent) = groups
        .get(at as usize)
        .map(|g| g.parent)
        .filter(|p| *p < at)
    {
        all.push(TgId(parent));
        at = parent;
    }
    all
}

/// The run before its event `number`; `step` makes each one before that.
fn sim_at<'a>(
    setup: &Setup<'a>,
    exact: &Exact,
    number: u64,
    mut step: impl FnMut(&mut Sim<'a>) -> Result<(), Stuck>,
) -> Result<Sim<'a>, RunError> {
    let mut sim = sim(setup, exact)?;
    while sim.events < number && !sim.has_ended() {
        step(&mut sim)?;
    }
    Ok(sim)
}

/// The choice in event `number`, or that it made none because the task was still being switched
/// out.
fn choice_at(
    setup: &Setup<'_>,
    exact: &Exact,
    task: TaskId,
    cpu: u32,
    number: u64,
) -> Result<(Option<Choice>, bool), RunError> {
    let mut sim = sim_at(setup, exact, number, |sim| sim.one_event())?;
    if choice::may_be_leaving(&sim, task) {
        sim.one_event()?;
        if choice::is_left_to_its_cpu(&sim, task) {
            return Ok((None, true));
        }
        sim = sim_at(setup, exact, number, |sim| sim.one_event())?;
    }
    Ok((choice::probe(&mut sim, cpu, task), false))
}

/// The number of the last event before `end` that found the wake-up of `task` next on `cpu`.
fn before(
    setup: &Setup<'_>,
    exact: &Exact,
    task: TaskId,
    cpu: u32,
    end: u64,
) -> Result<Option<u64>, RunError> {
    let mut found = None;
    sim_at(setup, exact, end, |sim| {
        if choice::is_next(sim, cpu, task) {
            found = Some(sim.events);
        }
        sim.one_event()
    })?;
    Ok(found)
}

/// What is seen before the switch, and on the way to it.
struct Picked {
    levels: Vec<Level>,
    /// Fair tasks had the CPU only because real-time ones had used up their part of the second.
    real_time_over: bool,
    /// The task's group: it may have left the one it was born in, but no more since it waits.
    group: u32,
    /// For locks and for lines.
    waited_ns: (u64, u64),
    /// When the step was over in which the task was woken: its last deed is the choice of a CPU,
    /// if there is one to make.
    chosen_ns: Option<u64>,
    timer: Option<TimerWait>,
}

/// `asleep_ns`: when it had left its CPU before.
fn pick_at(
    setup: &Setup<'_>,
    exact: &Exact,
    task: TaskId,
    episode: &Episode,
    asleep_ns: u64,
) -> Result<Picked, RunError> {
    let (start, waker) = (episode.start_event, episode.start.cpu());
    let on = episode.switched_in.map(|(_, _, cpu)| cpu);
    let end = episode.switched_in.map_or(start + 1, |(number, ..)| number);
    let mut chosen_ns = None;
    let mut waited = (0, 0);
    let (mut watching, mut timer) = (timer::Watching::new(task, episode.start), None);
    let sim = sim_at(setup, exact, end, |sim| {
        let (number, measures) = (sim.events, sim.measures());
        let before = if number >= start { waits(sim) } else { (0, 0) };
        if number <= start {
            watching.look(sim);
        }
        if number == start {
            timer = watching.found(sim, asleep_ns, episode.start_ns);
        }
        sim.one_event()?;
        if number == start {
            chosen_ns = Some(sim.now_ns());
        }
        // A step is of one CPU, so what it has added is that CPU's.
        let counts = on == Some(sim.host.cpu) || waker == Some(sim.host.cpu);
        if number >= start && on.is_some() && counts {
            let after = waits(sim);
            // The counters begin anew just before the first step that is measured.
            let before = if measures == sim.measures() {
                before
            } else {
                (0, 0)
            };
            waited.0 += after.0 - before.0;
            waited.1 += after.1 - before.1;
        }
        Ok(())
    })?;
    // Who goes to sleep is on the queue up to the choice, and not in it.
    let leaver = episode.instead_of.filter(|_| !episode.preempts);
    Ok(Picked {
        levels: on.map_or(Vec::new(), |cpu| pick::levels(&sim, cpu, leaver)),
        real_time_over: on.is_some_and(|cpu| sim.real_time_is_over(cpu)),
        group: sim.tasks.get(task.idx()).map_or(0, |task| task.cgroup),
        waited_ns: (waited.0 / NS, waited.1 / NS),
        chosen_ns,
        timer,
    })
}

/// All waiting so far, for locks and for lines, ps.
fn waits(sim: &Sim<'_>) -> (u64, u64) {
    let lines = sim.host.places.traffic(&sim.host.cache);
    (
        sim.host.lock_wait(),
        lines.iter().map(|(_, _, stats)| stats.wait).sum(),
    )
}
