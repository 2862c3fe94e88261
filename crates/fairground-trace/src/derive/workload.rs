//! A workload of the simulator from the logs of a recording. Times are in nanoseconds.
//!
//! A thread's sleep that another one ended becomes a wait on a semaphore of its own, which that
//! other one posts at the same point of its program; a sleep that a timer ended becomes a timed
//! wait. So causes stay causes when the machine is another one. A semaphore keeps what is posted
//! early, and every wait has its post earlier in the recording: nothing can stand still.

use fairground_sim::workload::program::{Policy, Program, RealTime, TaskTemplate, Until, Workload};

use fairground_sim::exact::Start;
use fairground_sim::tails::Tails;
use rustc_hash::{FxHashMap, FxHashSet};

use super::attributes::{Attributes, PolicyWords, ThreadWords};
use super::cause::{Causes, guessed};
use super::cut;
use super::inherited::{Said, said};
use super::log::{Logs, RT_PRIOS, Step};
use super::pins::is_stopper;
use super::process::Processes;
use super::tick::Tick;
use crate::event::Names;
use crate::recording::{list_of, number_of};
use crate::walk::ThreadId;

/// What a recording gave.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The workload; its time zero is [`Derived::lead_ns`] before the recording's start.
    pub workload: Workload,
    /// When each initial task begins.
    pub starts: Vec<Start>,
    /// The CPU on which each initial task was first heard of.
    pub places: Vec<Option<u32>>,
    /// Thread of each template.
    pub threads: Vec<ThreadId>,
    /// Operations of each thread that enter the kernel.
    pub ops: Vec<u64>,
    /// Wake-ups among them.
    pub wakes: Vec<u64>,
    /// Computing of each thread that is in its program, ns.
    pub demand_ns: Vec<u64>,
    /// From the start of the simulation to that of the recording.
    pub lead_ns: u64,
    /// The mask of who is let go, which is all CPUs of the machine.
    pub free: Option<u32>,
    /// What was left out or stands for something else, for people.
    pub notes: Vec<String>,
}

impl Derived {
    /// When everybody has come to where the recording finds them.
    #[must_use]
    pub fn placed_until_ns(&self) -> u64 {
        self.lead_ns + SETTLED_NS
    }

    /// Fits it to a machine of so many CPUs: affinities lose those that are not there, and who has
    /// none left may run anywhere, as when CPUs are taken offline.
    pub fn fit(&mut self, cpus: u32) {
        if let Some(free) = self.free {
            self.workload.masks[free as usize] = (0..cpus).collect();
        }
        let mut free = Vec::new();
        for (mask, allowed) in (0..).zip(&mut self.workload.masks) {
            allowed.retain(|cpu| *cpu < cpus);
            if allowed.is_empty() {
                allowed.extend(0..cpus);
                free.push(mask);
            }
        }
        let templates = self.workload.templates.iter();
        let freed = templates.filter(|t| t.affinity.is_some_and(|m| free.contains(&m)));
        let freed = freed.count();
        if freed > 0 {
            self.notes.push(format!(
                "{} bound to CPUs that are not there and may run anywhere",
                number_of(freed as u64, "thread was", "threads were")
            ));
        }
    }
}

/// What the simulated kernel costs, to be taken off what was recorded: a program has only what the
/// thread does itself.
#[derive(Clone, Debug, Default)]
pub struct Trim {
    /// CPU time of a wake-up, by thread.
    pub per_wake_ns: Vec<u64>,
    /// CPU time per operation beside that, by thread.
    pub per_op_ns: Vec<u64>,
    /// Parts in a million of its computing, by thread: ticks and interrupts.
    pub per_run_ppm: Vec<u64>,
    /// From a sleep's end by the clock to its wake-up.
    pub sleep_ns: u64,
    /// From a point in time to the wake-up.
    pub time_ns: u64,
    /// What wake-ups take beyond the model.
    pub tails: Tails,
    /// From when a thread that nobody created shall be to when it is, by thread.
    pub birth_ns: Vec<u64>,
}

/// What the derivation is made from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Threads.
    pub logs: &'a Logs,
    /// Names.
    pub names: &'a Names,
    /// What ended sleeps.
    pub causes: &'a [Causes],
    /// Who releases whom without a wake-up.
    pub partners: &'a FxHashSet<(ThreadId, ThreadId)>,
    /// Affinity as far as it shows.
    pub pins: &'a [Option<u32>],
    /// The CPU on which each thread id was first heard of.
    pub places: &'a FxHashMap<u32, u32>,
    /// CPUs of the machine of the recording; the last ones of them may have no event.
    pub cpus: u32,
    /// It is to run by itself, as a scenario: only what was recorded, on clocks of the threads.
    pub saved: bool,
    /// CPUs whose switches are recorded, if there are others.
    pub recorded: Option<&'a [u32]>,
    /// What the trace does not say.
    pub attributes: &'a Attributes,
    /// Length of a tick.
    pub tick_ns: u64,
    /// When ticks fall, if that shows.
    pub tick: Option<Tick>,
}

/// The end of a program: a sleep beyond the end of any run.
pub(super) const NEVER_NS: u64 = 1 << 50;
/// Room before the recording in which threads come to where it finds them, and for each of them.
const LEAD_NS: u64 = 20_000_000;
const LEAD_EACH_NS: u64 = 100_000;
/// From the recording's start on, what was awake then gets its CPU.
const SETTLED_NS: u64 = 20_000;

/// Longest recording: the longest time that a scenario may name.
const SPAN_MAX_NS: u64 = 1_000_000_000_000_000;

pub(super) struct Builder<'a> {
    pub(super) from: Source<'a>,
    pub(super) trim: &'a Trim,
    pub(super) out: Derived,
    pub(super) template: Vec<Option<u32>>,
    processes: Processes,
    /// What is said of each thread.
    said: Vec<Said<'a>>,
    real_time: u64,
}

/// Derives a workload.
///
/// # Errors
/// A sentence that says which attribute makes no sense.
pub fn derive(from: Source<'_>, trim: &Trim) -> Result<Derived, String> {
    let n = from.logs.logs.len();
    let lead = match from.attributes.run {
        // Its trace begins where it began.
        Some(_) => from.logs.span.0,
        None => (LEAD_NS + n as u64 * LEAD_EACH_NS).next_multiple_of(from.tick_ns.max(1)),
    };
    let mut workload = Workload::new("replay", Vec::new());
    let span = from.logs.span.1 - from.logs.span.0;
    fit_clock(span, lead)?;
    workload.duration = until(&from, lead);
    workload.sems = vec![0; n];
    if let Some(run) = &from.attributes.run {
        run.objects.add_to(&mut workload)?;
        (workload.warmup_ns, workload.settle_ns) = (run.warmup_ns, run.settle_ns);
        workload.no_idle_states = run.no_idle_states;
    }
    let mut b = Builder {
        from,
        trim,
        out: Derived {
            workload,
            starts: Vec::new(),
            places: Vec::new(),
            threads: Vec::new(),
            ops: vec![0; n],
            wakes: vec![0; n],
            demand_ns: vec![0; n],
            lead_ns: lead,
            free: None,
            notes: Vec::new(),
        },
        template: vec![None; n],
        processes: Processes::new(from.logs, from.names, from.attributes),
        said: said(from.attributes, from.logs, from.names),
        real_time: 0,
    };
    b.groups()?;
    b.writes()?;
    for thread in 0..n {
        if b.is_used(thread) {
            b.template(thread)?;
        }
    }
    if b.is_whole() {
        let tid = |t: &u32| from.logs.threads[b.out.threads[*t as usize]].tid;
        b.out.workload.initial.sort_by_key(tid);
    }
    if b.out.workload.initial.is_empty() {
        return Err(format!(
            "no thread does anything in it; it lasts {span} ns from the first event to the last"
        ));
    }
    if !from.logs.told {
        b.out.workload.marks = cut::marks(b.out.threads.len());
    }
    for thread in 0..n {
        b.program(thread);
        b.begins(thread);
    }
    b.notes();
    b.out.fit(from.cpus);
    b.out.workload.validate()?;
    Ok(b.out)
}

/// Whether the simulated clock has numbers for a recording that spans so long, from so late on.
fn fit_clock(span_ns: u64, lead_ns: u64) -> Result<(), String> {
    for (what, ns) in [("spans", span_ns), ("begins after", lead_ns)] {
        if ns > SPAN_MAX_NS {
            let [found, most] = [ns, SPAN_MAX_NS].map(|ns| ns / 1_000_000_000);
            return Err(format!(
                "the recording {what} {found} s, expected at most {most}: a clock in it is damaged"
            ));
        }
    }
    Ok(())
}

impl ThreadWords {
    /// How a thread is scheduled, where no event says so.
    fn schedule(&self, t: &mut TaskTemplate) {
        t.policy = match self.policy {
            PolicyWords::Batch => Policy::Batch,
            PolicyWords::Idle => Policy::Idle,
            PolicyWords::Normal | PolicyWords::Fifo | PolicyWords::Rr => Policy::Normal,
        };
        if let Some(rt) = &mut t.real_time {
            rt.takes_turns = self.policy == PolicyWords::Rr;
        }
        // 0 takes a slice of its own away, as in `sched_setattr`.
        let own = self.slice_us.filter(|us| *us > 0);
        t.slice_ns = own.map(|us| us.saturating_mul(1000));
    }

    /// What memory it goes through.
    fn touch(&self, t: &mut TaskTemplate) {
        t.footprint_bytes_per_us = self.footprint_bytes_per_us.unwrap_or(0);
        t.working_set_bytes = self.working_set_bytes.or(t.working_set_bytes);
    }
}

/// Whether a thread with this recorded priority is of the real-time class.
pub(crate) fn is_real_time(prio: i16) -> bool {
    real_time(prio).is_some()
}

/// The real-time priority that is recorded as the kernel's `prio`: 98 is 1 and 0 is 99; that of
/// deadline tasks, -1, is the most urgent, too.
fn real_time(prio: i16) -> Option<RealTime> {
    (prio < 99).then(|| RealTime {
        priority: 99_i16.saturating_sub(prio).clamp(1, 99) as u8,
        takes_turns: false,
    })
}

/// When it ends: as the run did, if it is a simulated one from its beginning.
fn until(from: &Source<'_>, lead_ns: u64) -> Until {
    let whole = from
        .attributes
        .run
        .as_ref()
        .filter(|_| from.logs.is_whole());
    match whole {
        Some(run) if run.ends_ns.is_some() => Until::Time(run.ends_ns.unwrap_or(0)),
        Some(_) if from.logs.all_exit() => Until::AllExit,
        _ => Until::Time(lead_ns.saturating_add(from.logs.longest_ns())),
    }
}

/// How many wake-ups were guessed.
fn guessed_words(met: usize, interrupts: usize) -> String {
    let happened = number_of(
        met as u64,
        "wake-up happened while a thread ran; the trace does not say whether it or an \
         interrupt did it",
        "wake-ups happened while a thread ran; the trace does not say whether it or an \
         interrupt did them",
    );
    let counted = number_of(
        interrupts as u64,
        "is counted as an interrupt's",
        "are counted as interrupts'",
    );
    format!("{happened}: {counted}")
}

impl Builder<'_> {
    /// What stands for something else.
    fn notes(&mut self) {
        let recorded = self.from.attributes.recorded.len();
        if recorded > 0 {
            self.out.notes.push(format!(
                "groups of {} are from the recording, which has no weights and limits",
                number_of(recorded as u64, "thread", "threads")
            ));
        }
        if let Some(recorded) = self.from.recorded {
            let cpus = if recorded.len() == 1 { "CPU" } else { "CPUs" };
            let was = if recorded.len() == 1 { "was" } else { "were" };
            self.out.notes.push(format!(
                "only {cpus} {} {was} recorded: who ran there stays there",
                list_of(recorded)
            ));
        }
        let (met, interrupts) = guessed(self.from.logs, self.from.causes);
        if met > 0 {
            self.out.notes.push(guessed_words(met, interrupts));
        }
        if self.real_time > 0 {
            let are = number_of(self.real_time, "thread is", "threads are");
            let mut note = format!("{are} of the real-time class");
            if !self.from.logs.told {
                note += ", by SCHED_FIFO: SCHED_RR and deadlines are not recorded";
            }
            self.out.notes.push(note);
        }
        let logs = self.from.logs;
        let changes = logs.threads.iter().zip(&logs.logs).filter(|(about, log)| {
            let nice = |step: &Step| matches!(step, Step::Nice(_));
            log.to_real_time || (about.prio < RT_PRIOS && log.steps.iter().any(nice))
        });
        let changes = changes.count();
        if changes > 0 && !logs.told {
            let come = number_of(
                changes as u64,
                "thread comes to a real-time priority meanwhile or loses it, by its policy or as \
                 it holds a lock: in the replay it keeps the policy of its start",
                "threads come to a real-time priority meanwhile or lose it, by their policy or as \
                 they hold a lock: in the replay they keep the policy of their start",
            );
            self.out.notes.push(come);
        }
    }

    /// Stoppers are the machine's own, and a thread that did nothing is not needed.
    /// Whether it is there from the start, as those of any run are.
    pub(super) fn is_initial(&self, thread: ThreadId) -> bool {
        let parent = self.from.logs.logs[thread].parent;
        self.is_whole() && !self.from.saved && !parent.is_some_and(|p| self.is_used(p))
    }

    fn is_used(&self, thread: ThreadId) -> bool {
        let log = &self.from.logs.logs[thread];
        let does = |step: &Step| !matches!(step, Step::Left(_) | Step::Moved | Step::Nice(_));
        let told = self.from.logs.told;
        (told || log.steps.iter().any(does)) && !is_stopper(&self.name(thread))
    }

    /// Whether the threads begin as those of any run do.
    pub(super) fn is_whole(&self) -> bool {
        self.from.attributes.run.is_some() && self.from.logs.is_whole()
    }

    fn name(&self, thread: ThreadId) -> String {
        self.from.names.get(self.from.logs.threads[thread].tid)
    }

    pub(super) fn mask(&mut self, mut cpus: Vec<u32>) -> u32 {
        cpus.sort_unstable();
        cpus.dedup();
        let masks = &mut self.out.workload.masks;
        let known = masks.iter().position(|m| *m == cpus);
        known.unwrap_or_else(|| {
            masks.push(cpus);
            masks.len() - 1
        }) as u32
    }

    fn template(&mut self, thread: ThreadId) -> Result<(), String> {
        let name = self.name(thread);
        let log = &self.from.logs.logs[thread];
        let prio = self.from.logs.threads[thread].prio;
        let index = self.out.workload.templates.len() as u32;
        let mut t = TaskTemplate::new(name.clone(), index, self.processes.of(thread));
        let said = self.said[thread];
        t.thread = match self.from.attributes.run {
            Some(_) => said.words.and_then(|t| t.thread) == Some(true),
            None => !self.processes.is_alone(thread),
        };
        // A recorded sleep is as long as it was; whatever slack it had is in that.
        let slack_ns = log.blocks().find_map(|b| b.timer).map(|t| t.1.slack_ns);
        t.timer_slack_ns = Some(slack_ns.map_or(1, |ns| u64::from(ns.max(1))));
        t.real_time = real_time(prio);
        match t.real_time {
            Some(_) => self.real_time += 1,
            None => t.nice = prio.saturating_sub(120).clamp(-20, 19) as i8,
        }
        t.affinity = self.bound(thread);
        if let Some(words) = said.words {
            words.schedule(&mut t);
            if !said.inherited {
                words.touch(&mut t);
            }
        }
        if let Some(path) = said.path {
            let group = self
                .group(path)
                .map_err(|e| format!("thread `{name}`: {e}"))?;
            t.cgroup = Some(group);
        }
        let kept = log.parent.is_some_and(|p| self.is_used(p));
        if !kept {
            t.cgroup = t.cgroup.or(Some(0));
            self.out.workload.initial.push(index);
            if !self.is_whole() {
                self.out.starts.push(self.start(thread));
                let about = &self.from.logs.threads[thread];
                let place = self.from.places.get(&about.tid).filter(|_| !about.forked);
                self.out.places.push(place.copied());
            }
        }
        self.out.workload.templates.push(t);
        self.out.workload.programs.push(Program {
            name,
            ops: Vec::new(),
        });
        self.out.threads.push(thread);
        self.template[thread] = Some(index);
        Ok(())
    }

    /// The mask that a thread begins with, if it is bound: by what is said, or as it seems.
    fn bound(&mut self, thread: ThreadId) -> Option<u32> {
        let (said, log) = (self.said[thread], &self.from.logs.logs[thread]);
        let cpus = said.words.and_then(|words| words.cpus.as_ref());
        let holds = |cpus: &&Vec<u32>| !said.inherited || log.may_begin_on(cpus);
        if let Some(cpus) = cpus.filter(|cpus| !cpus.is_empty()).filter(holds) {
            return Some(self.mask(cpus.clone()));
        }
        if let Some(cpu) = self.from.pins[thread].filter(|_| !self.says_cpus(thread)) {
            return Some(self.mask(vec![cpu]));
        }
        // What else is on a CPU that was not recorded is not known: who was seen stays away.
        let recorded = self.from.recorded.filter(|_| !log.ran_on.is_empty())?;
        Some(self.mask(recorded.to_vec()))
    }

    /// Whether where a thread waited says nothing about its affinity: a simulated run says what
    /// that is, and a thread whose group has no quota left waits beside idle CPUs.
    fn says_cpus(&self, thread: ThreadId) -> bool {
        let attributes = self.from.attributes;
        let group = self.said[thread].path.unwrap_or("/");
        let above = |path: &str| path == group || group.starts_with(&format!("{path}/"));
        let mut groups = attributes.cgroups.iter().filter(|g| above(&g.path));
        attributes.run.is_some()
            || groups.any(|g| g.limit().is_ok_and(|(quota, _)| quota.is_some()))
    }

    /// How a thread that no other one creates begins.
    fn start(&self, thread: ThreadId) -> Start {
        let (about, start_ns) = (&self.from.logs.threads[thread], self.from.logs.span.0);
        let lead = self.out.lead_ns;
        if self.from.logs.logs[thread].awake_at_start {
            return Start::Asleep { until_ns: lead };
        }
        if !about.forked {
            return Start::Asleep { until_ns: lead / 2 };
        }
        let late = self.trim.birth_ns.get(thread).copied().unwrap_or(0);
        Start::Created {
            at_ns: (lead + about.born_ns - start_ns).saturating_sub(late),
            cpu: about.born_on,
        }
    }

    /// When the thread's own time begins, on the recording's clock.
    pub(super) fn born(&self, thread: ThreadId) -> i128 {
        let log = &self.from.logs.logs[thread];
        if self.from.logs.threads[thread].forked || log.awake_at_start {
            let start = self.from.logs.span.0;
            let born = self.from.logs.threads[thread].born_ns;
            let late = self.trim.birth_ns.get(thread).copied().unwrap_or(0);
            let born = born.saturating_sub(if self.from.logs.told { late } else { 0 });
            return if log.awake_at_start { start } else { born }.into();
        }
        i128::from(self.from.logs.span.0) - i128::from(self.out.lead_ns - self.out.lead_ns / 2)
    }
}
