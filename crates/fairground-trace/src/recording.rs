//! A recording, read: its events in order of time, and what could not be used.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::clock::{self, Order};
use crate::error::TraceError;
use crate::event::{Event, Kind, Names, Told};
use crate::groups::Groups;

/// Most events that are kept; a longer recording is used up to there.
pub const EVENTS_MAX: usize = 50_000_000;

/// CPUs beyond this number are refused as damage.
pub const CPU_MAX: u32 = 8191;

/// A recording.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// In order of time.
    pub events: Vec<Event>,
    /// Names of threads.
    pub names: Names,
    /// Groups of threads, if the file has them.
    pub groups: Groups,
    /// Number of CPUs: the file's own, or the highest that is seen.
    pub cpus: u32,
    /// That of the file's own, 0 if it says none.
    pub stated_cpus: u32,
    /// The release of the kernel, as `uname -r` has it, if the file says it.
    pub kernel: Option<String>,
    /// Text whose times are whole microseconds.
    pub whole_us: bool,
    /// What could not be used.
    pub left_out: LeftOut,
    /// Kind of file, for people.
    pub format: &'static str,
    /// It has no `sched_wakeup`, as of `perf sched record`: wake-ups count from `sched_waking` on.
    pub from_waking: bool,
    /// Not every event was recorded, as a note says.
    pub sampled: bool,
    /// The recorder was told to record one command and what that creates, nothing else.
    pub of_processes: bool,
    /// Of each CPU, events that its recorder says were lost and that are counted: what its pages
    /// say are some of these.
    pub overrun: BTreeMap<u32, u64>,
    /// CPUs of which events were read, page by page.
    pub begun: BTreeSet<u32>,
    /// CPUs whose buffer has overwritten what was before its first event.
    pub overwritten: BTreeMap<u32, Overwritten>,
    /// How long threads had run, for switches that are missing.
    pub ran: Ran,
    /// What events do not say, as TOML of [`crate::derive::Attributes`]: of a simulated run.
    pub said: String,
}

/// How it is known that a buffer has overwritten events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overwritten {
    /// Some buffers have, and this one begins later than another one.
    Perhaps,
    /// Its own pages say so.
    Surely,
}

/// When and where an event was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// When, ns.
    pub at_ns: u64,
    /// On which CPU.
    pub cpu: u32,
}

/// How long current threads had run.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// Where and when, who, and for how long, ns.
    pub(crate) all: Vec<(Place, u32, u64)>,
}

impl Ran {
    /// One more: who, and for how long.
    pub fn see(&mut self, at: Place, tid: u32, ns: u64) {
        if tid != 0 && self.all.len() < EVENTS_MAX {
            self.all.push((at, tid, ns));
        }
    }

    /// Forgets what was before.
    pub fn begin(&mut self, from_ns: u64) {
        self.all.retain(|(at, ..)| at.at_ns >= from_ns);
    }
}

/// What was not used, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Events of other kinds, by name.
    pub other_events: BTreeMap<String, u64>,
    /// Events that the recorder reported as lost.
    pub lost: u64,
    /// CPUs on which the recorder lost events, it does not know how many.
    pub lost_on: BTreeSet<u32>,
    /// Lines or records that make no sense.
    pub bad: u64,
    /// The first of these, for people.
    pub first_bad: Option<String>,
    /// Events that are older than one before on the same CPU.
    pub backwards: u64,
    /// Events whose time is far from those around them.
    pub damaged: u64,
    /// Why reading ended before the end of the file.
    pub cut: Option<String>,
    /// What else people should know.
    pub notes: Vec<String>,
}

impl Recording {
    /// Nothing read yet.
    #[must_use]
    pub fn new(format: &'static str) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// Takes in one event; false if no more can be kept.
    #[inline]
    pub fn push(&mut self, event: Event) -> bool {
        if event.cpu > CPU_MAX || event.at_ns > i64::MAX as u64 {
            self.left_out.bad(|| match event.cpu {
                cpu if cpu > CPU_MAX => no_cpu(cpu),
                cpu => format!("CPU {cpu} at {} ns", event.at_ns),
            });
            return true;
        }
        if self.events.len() >= EVENTS_MAX {
            self.left_out.cut = Some(format!("only the first {EVENTS_MAX} events are used"));
            return false;
        }
        self.cpus = self.cpus.max(event.cpu + 1);
        if let Kind::Migrate { to, .. } = event.kind
            && to <= CPU_MAX
        {
            self.cpus = self.cpus.max(to + 1);
        }
        self.events.push(event);
        true
    }

    /// The file says that there are so many CPUs, of which some may have no events.
    pub(crate) fn states_cpus(&mut self, cpus: u64) {
        if let Some(cpus) = u32::try_from(cpus).ok().filter(|n| *n <= CPU_MAX + 1) {
            self.stated_cpus = self.stated_cpus.max(cpus);
            self.cpus = self.cpus.max(cpus);
        }
    }

    /// The file says which kernel it was recorded on: the first word counts.
    pub(crate) fn states_kernel(&mut self, release: &[u8]) {
        const LONGEST: usize = 64;
        let end = release.iter().position(|b| !b.is_ascii_graphic());
        let release = &release[..end.unwrap_or(release.len())];
        if !release.is_empty() && release.len() <= LONGEST {
            self.kernel = Some(String::from_utf8_lossy(release).into_owned());
        }
    }

    /// Puts the events in order of time; those of one time stay in the order of the file.
    pub fn sort(&mut self) {
        let order = Order::of(&self.events, self.cpus);
        self.left_out.backwards += order.backwards;
        if !order.sorted {
            self.events.sort_by_key(|e| e.at_ns);
        }
    }

    /// The same of what a recorder wrote: without events whose time is damaged.
    ///
    /// # Errors
    /// Times do not count on.
    pub fn sort_recorded(&mut self) -> Result<(), TraceError> {
        let order = Order::of(&self.events, self.cpus);
        if order.runs_back(self.events.len()) {
            return Err(TraceError::Unsupported {
                what: format!(
                    "a recording in which {} of {} events are older than the one before on their \
                     CPU",
                    order.descents,
                    self.events.len()
                ),
                help: "expected times that count on: `perf script` without --deltatime, one clock",
            });
        }
        if order.far {
            self.left_out.damaged += clock::leave_out_damaged(&mut self.events, self.cpus);
        }
        self.sort();
        // The last event of a simulated run may stand alone.
        if self.said.is_empty() {
            self.left_out.damaged += clock::leave_out_alone(&mut self.events);
        }
        Ok(())
    }

    /// Where the recorder left out `sched_wakeup`, as `perf sched record` does, each `sched_waking`
    /// stands for it, on the CPU on which the thread is queued: the one where it was, unless the
    /// waker moves it next. A note says so, and says it where neither was recorded.
    pub fn count_from_waking(&mut self) {
        let has = |f: fn(&Kind) -> bool| self.events.iter().any(|e| f(&e.kind));
        if has(|k| matches!(k, Kind::Wakeup { .. })) {
            return;
        }
        if !has(|k| matches!(k, Kind::Waking { .. })) {
            let known = match has(|k| matches!(k, Kind::WakeupNew { .. })) {
                true => "known of new threads only",
                false => "not known",
            };
            self.left_out.notes.push(format!(
                "it has no sched_wakeup and no sched_waking: who wakes whom, and how long a thread \
                 waits, is {known}; record sched:*"
            ));
            return;
        }
        self.from_waking = true;
        let note = "it has no sched_wakeup: wake-ups count from sched_waking on";
        self.left_out.notes.push(note.into());
        let mut next: Vec<Option<Kind>> = vec![None; self.cpus as usize];
        for event in self.events.iter_mut().rev() {
            let slot = &mut next[event.cpu as usize];
            if let Kind::Waking { tid, prio, cpu } = event.kind {
                let cpu = match *slot {
                    Some(Kind::Migrate { tid: moved, to, .. }) if moved == tid => to,
                    _ => cpu,
                };
                event.kind = Kind::Wakeup { tid, prio, cpu };
            }
            *slot = Some(event.kind);
        }
    }

    /// Counts events of a CPU that its recorder says were lost.
    pub(crate) fn overrun(&mut self, cpu: u32, lost: u64) {
        let known = self.overrun.entry(cpu).or_default();
        self.left_out.lose(lost.saturating_sub(*known));
        *known = lost.max(*known);
    }

    /// Counts events that are missing before a page of a CPU.
    pub(crate) fn missed(&mut self, cpu: u32, events: u64) {
        if !self.begun.contains(&cpu) {
            self.overwritten.insert(cpu, Overwritten::Surely);
        }
        let known = self.overrun.entry(cpu).or_default();
        self.left_out.lose(events.saturating_sub(*known));
        *known = known.saturating_sub(events);
    }

    /// The same as if `sched_wakeup` had not been recorded.
    pub fn without_wakeups(&mut self) {
        self.events
            .retain(|e| !matches!(e.kind, Kind::Wakeup { .. }));
        self.count_from_waking();
    }

    /// The same without what threads say that they did with others: pipes, locks and the like,
    /// `None` if they say nothing.
    #[must_use]
    pub fn without_acts(&self) -> Option<Self> {
        let act = |e: &Event| matches!(e.kind, Kind::Told(Told::Act(_)));
        self.events.iter().any(act).then(|| {
            let mut plain = self.clone();
            plain.events.retain(|e| !act(e));
            plain
        })
    }

    /// Cuts out long times without any event. The threads of a simulated run may all sleep so long.
    pub(crate) fn cut_gaps(&mut self) {
        if !self.said.is_empty() {
            return;
        }
        let (gaps, cut_ns) = clock::cut_gaps(&mut self.events);
        if gaps > 0 {
            self.names.forget_times();
            let times = if gaps == 1 { "once" } else { "several times" };
            self.left_out.notes.push(format!(
                "nothing happens on any CPU for more than 30 s, {times}: {} s in all were cut \
                 out, and later times are as much earlier. Were several recordings joined, or has \
                 the end a damaged time?",
                cut_ns / 1_000_000_000
            ));
        }
    }

    /// Leaves out what was before `from_ns` and makes all times later by `by_ns`.
    pub fn shift(&mut self, from_ns: u64, by_ns: i64) {
        self.events.retain(|e| e.at_ns >= from_ns);
        for event in &mut self.events {
            event.at_ns = event.at_ns.saturating_add_signed(by_ns);
        }
    }

    /// CPUs without any event: idle throughout, or not recorded. Who is moved to one is no event of
    /// it, and a simulated run tells of all.
    #[must_use]
    pub fn silent_cpus(&self) -> Vec<u32> {
        let seen: BTreeSet<u32> = self.events.iter().map(|e| e.cpu).collect();
        let all = 0..if self.said.is_empty() { self.cpus } else { 0 };
        all.filter(|cpu| !seen.contains(cpu)).collect()
    }

    /// The fewest CPUs that a machine must have for its events; the file may state more.
    #[must_use]
    pub fn cpus_needed(&self) -> u32 {
        let named = |e: &Event| match e.kind {
            Kind::Migrate { to, .. } if to <= CPU_MAX => e.cpu.max(to) + 1,
            _ => e.cpu + 1,
        };
        self.events.iter().map(named).max().unwrap_or(0)
    }

    /// Leaves out CPUs from this number on, which have no events; a note says so.
    pub fn without_cpus_from(&mut self, cpus: u32) {
        if cpus >= self.cpus || cpus < self.cpus_needed() {
            return;
        }
        self.left_out.notes.push(format!(
            "the file states {} CPUs; those from {cpus} on have no event, and the replay is \
             without them (`--recorded-on`)",
            self.cpus
        ));
        self.cpus = cpus;
    }

    /// How many tracepoints it has.
    #[must_use]
    pub fn tracepoints(&self) -> usize {
        let all = self.events.iter();
        all.filter(|e| e.kind != Kind::On).count()
    }

    /// First and last time, ns.
    #[must_use]
    pub fn span(&self) -> (u64, u64) {
        let at = |e: Option<&Event>| e.map_or(0, |e| e.at_ns);
        (at(self.events.first()), at(self.events.last()))
    }
}

impl LeftOut {
    /// Counts an event that is not one of the scheduler's.
    pub fn other(&mut self, name: &str) {
        const NAMES_MAX: usize = 64;
        if let Some(count) = self.other_events.get_mut(name) {
            *count += 1;
            return;
        }
        let full = self.other_events.len() >= NAMES_MAX;
        let name = if full { "(others)" } else { name };
        *self.other_events.entry(name.to_string()).or_default() += 1;
    }

    /// Counts events that were lost; what a file says may be any number.
    pub fn lose(&mut self, events: u64) {
        self.lost = self.lost.saturating_add(events);
    }

    /// Counts a line or record that makes no sense; `what` is asked for the first one only.
    pub fn bad(&mut self, what: impl FnOnce() -> String) {
        self.bad += 1;
        if self.first_bad.is_none() {
            self.first_bad = Some(what());
        }
    }

    /// What people should know, one sentence a line; empty if all was used.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        if let Some(cut) = &self.cut {
            let _ = writeln!(
                text,
                "the file is cut short: {cut}; what came before is used"
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        if self.lost > 0 {
            let events = number_of(self.lost, "event", "events");
            let _ = writeln!(text, "the recorder lost {events}");
        }
        if !self.lost_on.is_empty() {
            let cpus: Vec<u32> = self.lost_on.iter().copied().collect();
            let cpu = if cpus.len() == 1 { "CPU" } else { "CPUs" };
            let _ = writeln!(
                text,
                "the recorder lost an unknown number of events on {cpu} {}",
                list_of(&cpus)
            );
        }
        if let Some(first) = &self.first_bad {
            let bad = number_of(
                self.bad,
                "record makes no sense:",
                "records make no sense, first:",
            );
            let _ = writeln!(text, "{bad} {first}");
        }
        if self.damaged > 0 {
            let left_out = number_of(
                self.damaged,
                "event has a damaged time, far from those around it, and was",
                "events have a damaged time, far from those around them, and were",
            );
            let _ = writeln!(text, "{left_out} left out");
        }
        if self.backwards > 0 {
            let older = number_of(
                self.backwards,
                "event is older than the one before on its CPU and was",
                "events are older than the one before on their CPU and were",
            );
            let _ = writeln!(text, "{older} put in order");
        }
        if !self.other_events.is_empty() {
            let all: u64 = self.other_events.values().sum();
            let names: Vec<&str> = self.other_events.keys().map(String::as_str).collect();
            let shown = &names[..names.len().min(5)];
            let more = if names.len() > 5 { ", ..." } else { "" };
            let names = shown.join(", ");
            let skipped = number_of(
                all,
                "event of another kind was",
                "events of other kinds were",
            );
            let _ = writeln!(text, "{skipped} skipped: {names}{more}");
        }
        text
    }
}

/// So many of something, with what is said of a single one or of several.
#[must_use]
pub fn number_of(n: u64, one: &str, more: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {more}"),
    }
}

/// Numbers in order as the kernel writes lists of CPUs: `0-3,8`.
#[must_use]
pub fn list_of(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for n in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *n => *last = *n,
            _ => runs.push((*n, *n)),
        }
    }
    let words = runs.iter().map(|(a, b)| match a == b {
        true => a.to_string(),
        false => format!("{a}-{b}"),
    });
    words.collect::<Vec<_>>().join(",")
}

/// Why an event of that CPU is not used.
pub(crate) fn no_cpu(cpu: u32) -> String {
    format!("CPU {cpu}, but the highest that can be read is {CPU_MAX}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Context;

    fn at(at_ns: u64, cpu: u32) -> Event {
        let kind = Kind::Exit { tid: at_ns as u32 };
        Event {
            at_ns,
            cpu,
            tid: 1,
            context: Context::Unknown,
            kind,
        }
    }

    #[test]
    fn cpus_without_events_are_known_and_can_be_left_out() {
        let mut r = Recording::new("test");
        r.states_cpus(8);
        for (ns, cpu) in [(10, 0), (20, 2)] {
            assert!(r.push(at(ns, cpu)));
        }
        let to = |to| Event {
            kind: Kind::Migrate {
                tid: 7,
                from: 0,
                to,
            },
            ..at(30, 0)
        };
        assert!(r.push(to(4)));
        assert_eq!(r.silent_cpus(), [1, 3, 4, 5, 6, 7]);
        assert_eq!(r.cpus_needed(), 5);
        r.without_cpus_from(4);
        assert_eq!(
            (r.cpus, r.left_out.notes.len()),
            (8, 0),
            "a thread goes there"
        );
        r.without_cpus_from(6);
        assert_eq!((r.cpus, r.left_out.notes.len()), (6, 1));
        r.said = "hz = 250".into();
        assert!(r.silent_cpus().is_empty());
    }

    #[test]
    fn a_waking_stands_for_the_wake_up_that_was_not_recorded() {
        let mut r = Recording::new("test");
        let (tid, prio, cpu) = (7, 120, 0);
        let waking = Kind::Waking { tid, prio, cpu };
        let migrate = Kind::Migrate {
            tid,
            from: 0,
            to: 1,
        };
        let switch = Kind::Exit { tid: 9 };
        for (at_ns, kind) in [(1, waking), (2, migrate), (3, waking), (4, switch)] {
            assert!(r.push(Event {
                kind,
                ..at(at_ns, 2)
            }));
        }
        let mut full = r.clone();
        r.count_from_waking();
        let wakeup = |cpu| Kind::Wakeup { tid, prio, cpu };
        let kinds = |r: &Recording| r.events.iter().map(|e| e.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&r), [wakeup(1), migrate, wakeup(0), switch]);
        assert!(r.from_waking);
        full.push(Event {
            kind: wakeup(1),
            ..at(5, 2)
        });
        let before = full.clone();
        full.count_from_waking();
        assert_eq!((kinds(&full), full.from_waking), (kinds(&before), false));
        full.without_wakeups();
        assert_eq!(kinds(&full), kinds(&r));
        let mut neither = Recording::new("test");
        neither.push(Event {
            kind: switch,
            ..at(1, 0)
        });
        neither.count_from_waking();
        assert!(!neither.from_waking);
        assert!(
            neither
                .left_out
                .text()
                .contains("no sched_wakeup and no sched_waking")
        );
    }

    #[test]
    fn what_pages_lack_is_part_of_what_the_recorder_says_was_lost() {
        let mut r = Recording::new("test");
        r.overrun(0, 1000);
        for (cpu, missed) in [(0, 600), (0, 400), (1, 5)] {
            r.missed(cpu, missed);
        }
        assert_eq!(r.left_out.lost, 1005);
        r.missed(0, 7);
        assert_eq!(r.left_out.lost, 1012);
    }

    #[test]
    fn a_day_between_two_recordings_is_cut_out_and_told() {
        let mut r = Recording::new("test");
        for n in [1, 2, 86_400_000_000_001, 86_400_000_000_002] {
            assert!(r.push(at(n, 0)));
        }
        let mut simulated = r.clone();
        r.cut_gaps();
        assert_eq!(r.span(), (1, 100_000_002), "{}", r.left_out.text());
        assert!(r.left_out.text().contains("86399 s in all were cut out"));
        simulated.said = "[run]".into();
        simulated.cut_gaps();
        assert_eq!(simulated.span().1, 86_400_000_000_002);
    }

    #[test]
    fn events_are_put_in_order_and_those_that_ran_back_are_counted() {
        let mut r = Recording::new("test");
        for event in [at(5, 0), at(3, 1), at(4, 0), at(9, CPU_MAX + 1)] {
            assert!(r.push(event));
        }
        r.sort();
        let times: Vec<u64> = r.events.iter().map(|e| e.at_ns).collect();
        assert_eq!(times, [3, 4, 5]);
        assert_eq!((r.left_out.backwards, r.left_out.bad, r.cpus), (1, 1, 2));
        assert!(r.left_out.text().contains("1 event is older"));
    }
}
