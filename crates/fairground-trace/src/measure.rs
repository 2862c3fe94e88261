//! What a recording says about CPU time, switches and waiting: the same rules for a recorded and a
//! replayed run, so that they can be compared. Times are in nanoseconds.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::event::{Event, Kind, State};
use crate::fidelity::{CPU_PCT, SMALL_SHARE};
use crate::walk::{Fact, Walk};

/// One thread, or several of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Time on CPUs.
    pub cpu_ns: u64,
    /// The same in the first half.
    pub first_half_ns: u64,
    /// Switches away while asleep.
    pub voluntary: u64,
    /// Switches away while runnable.
    pub involuntary: u64,
    /// Part of the time on CPUs in which it may have left already: that switch is missing.
    pub unknown_ns: u64,
    /// From `sched_wakeup` to the CPU, each.
    pub latency_ns: Vec<u64>,
    /// Those of the first and the second half.
    pub half_latency_ns: [Vec<u64>; 2],
}

impl ThreadTime {
    /// It left its CPU.
    fn left(&mut self, state: State) {
        match state {
            State::Runnable => self.involuntary += 1,
            State::Blocked(_) | State::Dead => self.voluntary += 1,
        }
    }
}

/// A run, measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// By the kernel's id.
    pub threads: BTreeMap<u32, ThreadTime>,
    /// Busy time by CPU.
    pub busy_ns: Vec<u64>,
    /// What the recording has of each CPU.
    pub sights: Vec<Sight>,
    /// Window.
    pub window: (u64, u64),
    /// Where its first half ends.
    pub half: u64,
    /// Switches that were filled in.
    pub inferred: u64,
    /// Those of them to a thread that has run since some time before.
    pub late: u64,
}

/// What a recording has of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// All of its switches.
    #[default]
    All,
    /// None from idle to a thread.
    NotFromIdle,
    /// None: it was not recorded, though threads may be woken to it from another CPU.
    Nothing,
}

/// Measures inside `window`. What a recording with these `sights` does not have is left out.
#[must_use]
pub fn measure(
    events: &[Event],
    cpus: u32,
    window: (u64, u64),
    sights: Option<&[Sight]>,
) -> Measured {
    let half_ns = (window.1 - window.0) / 2;
    measure_until(events, cpus, window, sights, &Until::half(half_ns))
}

/// How far it is measured, on the events' clock.
#[derive(Clone, Debug)]
pub struct Until<'a> {
    /// The first half has this length: of a replay that of the recording's, as whoever takes
    /// longer has otherwise done more in its first half.
    pub half_ns: u64,
    /// Of these threads only what they do until then.
    pub threads: Option<&'a FxHashMap<u32, u64>>,
}

impl Until<'_> {
    /// All that threads do.
    #[must_use]
    pub fn half(half_ns: u64) -> Self {
        Self {
            half_ns,
            threads: None,
        }
    }

    fn end_of(&self, tid: u32, end: u64) -> u64 {
        let own = self.threads.and_then(|threads| threads.get(&tid));
        own.map_or(end, |own| end.min(*own))
    }
}

/// The same up to some time.
#[must_use]
pub fn measure_until(
    events: &[Event],
    cpus: u32,
    window: (u64, u64),
    sights: Option<&[Sight]>,
    until: &Until<'_>,
) -> Measured {
    let end_of = |tid: u32| until.end_of(tid, window.1);
    let half = window.0.saturating_add(until.half_ns);
    let mut m = Measured {
        busy_ns: vec![0; cpus as usize],
        window,
        half,
        ..Measured::default()
    };
    m.sights = sights.map_or_else(|| sights_of(events, cpus), <[Sight]>::to_vec);
    m.sights.resize(cpus as usize, Sight::All);
    // Since when each CPU has nobody.
    let mut free_since = vec![window.0; cpus as usize];
    let walk = Walk::to(events, cpus, window.1, |threads, fact| match fact {
        fact if is_hidden(&fact, &m.sights) => {}
        Fact::Ran {
            thread,
            cpu,
            from,
            to,
        } => {
            let inside = |a: u64, b: u64| to.min(b).saturating_sub(from.max(a));
            let tid = threads[thread].tid;
            let t = m.threads.entry(tid).or_default();
            t.cpu_ns += inside(window.0, end_of(tid));
            t.first_half_ns += inside(window.0, half.min(end_of(tid)));
            m.busy_ns[cpu as usize] += inside(window.0, window.1);
        }
        Fact::Out {
            thread,
            cpu,
            at,
            state,
        } => {
            free_since[cpu as usize] = at;
            let tid = threads[thread].tid;
            if (window.0..=end_of(tid)).contains(&at) {
                m.threads.entry(tid).or_default().left(state);
            }
        }
        Fact::In {
            thread,
            cpu,
            at,
            woken,
            inferred,
        } => {
            let c = cpu as usize;
            let unseen = inferred || (m.sights[c] == Sight::NotFromIdle && at > free_since[c]);
            let end = end_of(threads[thread].tid);
            if let Some(since) = woken.filter(|since| *since >= window.0 && at <= end)
                && !unseen
            {
                let t = m.threads.entry(threads[thread].tid).or_default();
                t.latency_ns.push(at - since);
                t.half_latency_ns[usize::from(since >= half)].push(at - since);
            }
        }
        _ => {}
    });
    let on = events.iter().filter(|e| e.kind == Kind::On).count() as u64;
    m.take_missing(&walk, on);
    m
}

/// A thread that is woken gets its CPU sooner than this, or waits for it, ns.
const SOON_NS: u64 = 1_000_000;

/// Whether it is on a CPU that was not recorded.
fn is_hidden(fact: &Fact, sights: &[Sight]) -> bool {
    match *fact {
        Fact::Ran { cpu, .. } | Fact::Out { cpu, .. } | Fact::In { cpu, .. } => {
            sights[cpu as usize] == Sight::Nothing
        }
        _ => false,
    }
}

/// A CPU that is seen to become idle, and never to stop being so, does not tell of the latter. One
/// that never switches was not recorded if a thread left it, or if one was woken to it that is
/// never seen to run; else it was idle throughout.
pub(crate) fn sights_of(events: &[Event], cpus: u32) -> Vec<Sight> {
    // Switches of each CPU: all, to the idle task, and from it.
    let mut seen = vec![(0_u64, 0_u64, 0_u64); cpus as usize];
    // When each thread last came to a CPU, and on which it last executed anything.
    let mut came: FxHashMap<u32, u64> = FxHashMap::default();
    let mut last_on: FxHashMap<u32, u32> = FxHashMap::default();
    for event in events {
        last_on.insert(event.tid, event.cpu);
        if let Kind::Switch { prev, next, .. } = event.kind {
            let (all, into, from) = &mut seen[event.cpu as usize];
            *all += 1;
            *into += u64::from(next == 0);
            *from += u64::from(prev == 0);
            came.insert(next, event.at_ns);
        }
    }
    let silent = |cpu: u32| seen.get(cpu as usize).is_some_and(|(all, ..)| *all == 0);
    let end = events.last().map_or(0, |e| e.at_ns);
    let mut sights = vec![Sight::All; cpus as usize];
    for event in events {
        if event.tid != 0 && silent(event.cpu) && last_on[&event.tid] != event.cpu {
            sights[event.cpu as usize] = Sight::Nothing;
        }
        let (Kind::Waking { tid, cpu, .. } | Kind::Wakeup { tid, cpu, .. }) = event.kind else {
            continue;
        };
        let never = came.get(&tid).is_none_or(|at| *at < event.at_ns);
        if silent(cpu) && never && event.at_ns + SOON_NS < end {
            sights[cpu as usize] = Sight::Nothing;
        }
    }
    for (sight, (_, into, from)) in sights.iter_mut().zip(seen) {
        if into > 2 && from == 0 {
            *sight = Sight::NotFromIdle;
        }
    }
    sights
}

impl Measured {
    /// Time of all threads.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.threads.values().map(|t| t.cpu_ns).sum()
    }

    /// Switches of all threads: voluntary, involuntary.
    #[must_use]
    pub fn switches(&self) -> (u64, u64) {
        let sum = |f: fn(&ThreadTime) -> u64| self.threads.values().map(f).sum();
        (sum(|t| t.voluntary), sum(|t| t.involuntary))
    }

    /// Whether CPU times are lower bounds: of so many switches it is not known when they were.
    #[must_use]
    pub fn is_at_least(&self) -> bool {
        const ONE_OF: u64 = 20;
        let (voluntary, involuntary) = self.switches();
        self.late * ONE_OF > voluntary + involuntary
    }

    /// Takes in what switches are missing, though it is known of `on` of them when they were.
    fn take_missing(&mut self, walk: &Walk, on: u64) {
        (self.inferred, self.late) = (walk.inferred, walk.late.saturating_sub(on));
        for (thread, ns) in &walk.unknown_ns {
            if let Some(of) = self.threads.get_mut(&walk.threads[*thread].tid) {
                of.unknown_ns += ns;
            }
        }
    }

    /// Whether CPU times are upper bounds: of a thread that has a part that counts, more than its
    /// verdict allows may be time after it had left.
    #[must_use]
    pub fn is_at_most(&self) -> bool {
        let all = self.cpu_ns() as f64;
        self.threads.values().any(|t| {
            let (cpu, unknown) = (t.cpu_ns as f64, t.unknown_ns as f64);
            cpu >= SMALL_SHARE * all && unknown * 100.0 > CPU_PCT * cpu
        })
    }

    /// CPUs whose switches are recorded, if there are others.
    #[must_use]
    pub fn recorded_cpus(&self) -> Option<Vec<u32>> {
        let recorded = |(cpu, sight): (u32, &Sight)| (*sight != Sight::Nothing).then_some(cpu);
        let cpus: Vec<u32> = (0..).zip(&self.sights).filter_map(recorded).collect();
        (cpus.len() < self.sights.len() && !cpus.is_empty()).then_some(cpus)
    }

    /// The first half: of a replay as much time as of the recording, however long it takes.
    #[must_use]
    pub fn first_half(&self) -> (u64, u64) {
        (self.window.0, self.half)
    }

    /// The medians of the wake-up latencies in the first and in the second half, ns.
    #[must_use]
    pub fn half_latencies(&self) -> [Option<u64>; 2] {
        [0, 1].map(|half| {
            let threads = self.threads.values();
            let all = threads.flat_map(|t| &t.half_latency_ns[half]);
            percentile(all.copied().collect(), 50)
        })
    }

    /// Wake-ups whose latency is known, and those of the second half.
    #[must_use]
    pub fn wakeups(&self) -> [usize; 2] {
        let threads = || self.threads.values();
        [
            threads().map(|t| t.latency_ns.len()).sum(),
            threads().map(|t| t.half_latency_ns[1].len()).sum(),
        ]
    }

    /// Between which values the median of all wake-up latencies lies at 95 %, and that of those in
    /// the second half, ns.
    #[must_use]
    pub fn latency_intervals(&self) -> [Option<(u64, u64)>; 2] {
        let all = self.threads.values().flat_map(|t| &t.latency_ns);
        let late = self.threads.values().flat_map(|t| &t.half_latency_ns[1]);
        [all.copied().collect(), late.copied().collect()].map(median_interval)
    }

    /// The wake-up latency that `percent` of all do not exceed, ns.
    #[must_use]
    pub fn latency(&self, percent: usize) -> Option<u64> {
        let all = self.threads.values().flat_map(|t| &t.latency_ns);
        percentile(all.copied().collect(), percent)
    }
}

/// The smallest value that reaches `percent` of the sample.
#[must_use]
pub fn percentile(mut sample: Vec<u64>, percent: usize) -> Option<u64> {
    if sample.is_empty() {
        return None;
    }
    sample.sort_unstable();
    Some(sample[(percent * sample.len()).div_ceil(100).max(1) - 1])
}

/// Between which values the median of what a sample is of lies, at 95 %: by the ranks of the sample
/// alone, each of whose values is above the median by the toss of a coin. `None` of nothing; of
/// fewer than six values all of them are not enough, and the range is what there is.
#[must_use]
pub fn median_interval(mut sample: Vec<u64>) -> Option<(u64, u64)> {
    /// From here on the coins' number is normal enough, and 2 to the minus n not too small.
    const MANY: usize = 1000;
    let n = sample.len();
    if n == 0 {
        return None;
    }
    sample.sort_unstable();
    let below = if n < MANY {
        // The most values that fall on one side with no more than half of 5 %.
        let mut ways = 0.5_f64.powi(n as i32);
        let mut sum = ways;
        let mut below = 0;
        while sum <= 0.025 {
            below += 1;
            ways *= (n - below + 1) as f64 / below as f64;
            sum += ways;
        }
        below
    } else {
        (n as f64 / 2.0 - 0.98 * (n as f64).sqrt()) as usize
    };
    let below = below.saturating_sub(1).min((n - 1) / 2);
    Some((sample[below], sample[n - 1 - below]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Kind};

    #[test]
    fn the_interval_of_a_median_is_that_of_the_tables() {
        // Ranks from tables of the sign test: n, and the lower end's rank from 1 on.
        for (n, rank) in [
            (5, 1),
            (6, 1),
            (8, 1),
            (9, 2),
            (20, 6),
            (100, 40),
            (4000, 1938),
        ] {
            let sample: Vec<u64> = (1..=n).collect();
            assert_eq!(median_interval(sample), Some((rank, n + 1 - rank)), "{n}");
        }
        assert_eq!(median_interval(Vec::new()), None);
    }

    fn event(at_ns: u64, cpu: u32, tid: u32, kind: Kind) -> Event {
        let context = Context::Unknown;
        Event {
            at_ns,
            cpu,
            tid,
            context,
            kind,
        }
    }

    fn switch(at_ns: u64, cpu: u32, prev: u32, state: State, next: u32) -> Event {
        let (prev_prio, next_prio) = (120, 120);
        let kind = Kind::Switch {
            prev,
            prev_prio,
            state,
            next,
            next_prio,
        };
        event(at_ns, cpu, prev, kind)
    }

    fn wakeup(at_ns: u64, cpu: u32, by: u32, tid: u32) -> Event {
        event(
            at_ns,
            cpu,
            by,
            Kind::Wakeup {
                tid,
                prio: 120,
                cpu,
            },
        )
    }

    #[test]
    fn time_switches_and_latencies() {
        let events = [
            switch(0, 0, 0, State::Runnable, 1),
            wakeup(20, 0, 1, 2),
            switch(30, 0, 1, State::Runnable, 2),
            switch(70, 0, 2, State::Blocked(b'S'), 1),
            switch(100, 0, 1, State::Blocked(b'S'), 0),
        ];
        let m = measure(&events, 1, (0, 100), None);
        let (one, two) = (&m.threads[&1], &m.threads[&2]);
        assert_eq!((one.cpu_ns, one.first_half_ns), (60, 30));
        assert_eq!((one.voluntary, one.involuntary), (1, 1));
        assert_eq!((two.cpu_ns, &two.latency_ns[..]), (40, &[10][..]));
        assert_eq!((m.busy_ns[0], m.inferred), (100, 0));
    }

    #[test]
    fn where_the_switch_to_idle_is_missing_cpu_time_is_an_upper_bound() {
        // It runs for 10 of each 100 ns; every second switch to idle is missing.
        let turn = |n: u64| {
            let mut all = vec![
                wakeup(n * 100, 0, 0, 1),
                switch(n * 100 + 1, 0, 0, State::Runnable, 1),
            ];
            if n.is_multiple_of(2) {
                all.push(switch(n * 100 + 11, 0, 1, State::Blocked(b'S'), 0));
            }
            all
        };
        let mut events: Vec<Event> = (0..40).flat_map(turn).collect();
        let m = measure(&events, 1, (0, 3911), None);
        let one = &m.threads[&1];
        assert_eq!(
            (one.cpu_ns, one.unknown_ns),
            (20 * 10 + 19 * 99 + 10, 19 * 99)
        );
        assert!(m.is_at_most() && !m.is_at_least());
        // Where it is seen to the end nothing is unknown.
        events.retain(|e| e.at_ns % 200 < 100);
        let m = measure(&events, 1, (0, 3911), None);
        assert_eq!((m.threads[&1].unknown_ns, m.is_at_most()), (0, false));
    }

    #[test]
    fn what_a_thread_does_after_its_recorded_work_does_not_count() {
        let ms = 1_000_000;
        let events = [
            switch(0, 0, 0, State::Runnable, 1),
            switch(4 * ms, 0, 1, State::Runnable, 2),
            switch(6 * ms, 0, 2, State::Runnable, 1),
        ];
        // It has done it at 7, and runs on beyond the last event.
        let measured = |end: u64| {
            let threads = FxHashMap::from_iter([(1, end)]);
            let until = Until {
                half_ns: 4 * ms,
                threads: Some(&threads),
            };
            measure_until(&events, 1, (0, 9 * ms), None, &until)
        };
        let m = measured(7 * ms);
        assert_eq!(
            (m.threads[&1].cpu_ns, m.threads[&1].involuntary),
            (5 * ms, 1)
        );
        assert_eq!((m.threads[&2].cpu_ns, m.busy_ns[0]), (2 * ms, 9 * ms));
        let halves = [1, 2].map(|tid| m.threads[&tid].first_half_ns);
        assert_eq!(halves, [4 * ms, 0], "of 4 ms, not of half the window");
        assert_eq!(m.first_half(), (0, 4 * ms));
        let m = measured(3 * ms);
        assert_eq!(
            (m.threads[&1].cpu_ns, m.threads[&1].involuntary),
            (3 * ms, 0)
        );
    }

    #[test]
    fn what_happens_on_a_cpu_that_was_not_recorded_does_not_count() {
        let ms = 1_000_000;
        let mut events = vec![
            switch(0, 0, 0, State::Runnable, 1),
            wakeup(20, 0, 1, 2),
            switch(4 * ms, 0, 1, State::Blocked(b'S'), 0),
        ];
        let Kind::Wakeup { cpu, .. } = &mut events[1].kind else {
            panic!("a wake-up");
        };
        *cpu = 1;
        let recorded = measure(&events, 2, (0, 4 * ms), None);
        assert_eq!(recorded.sights, [Sight::All, Sight::Nothing]);
        assert_eq!(recorded.recorded_cpus(), Some(vec![0]));
        events.insert(2, switch(30, 1, 0, State::Runnable, 2));
        let all = measure(&events, 2, (0, 4 * ms), None);
        assert_eq!(all.busy_ns, [4 * ms, 4 * ms - 30]);
        assert_eq!((all.latency(50), all.recorded_cpus()), (Some(10), None));
        let same = measure(&events, 2, (0, 4 * ms), Some(&recorded.sights));
        assert_eq!(same, recorded);
    }

    #[test]
    fn a_cpu_that_stays_idle_is_recorded() {
        let events = [
            switch(0, 0, 0, State::Runnable, 1),
            switch(4_000_000, 0, 1, State::Blocked(b'S'), 0),
        ];
        let m = measure(&events, 2, (0, 4_000_000), None);
        assert_eq!(m.sights, [Sight::All, Sight::All]);
    }

    #[test]
    fn a_switch_from_idle_that_is_missing_is_put_at_the_wake_up() {
        let s = State::Blocked(b'S');
        let mut events = vec![switch(5, 0, 1, s, 0)];
        for round in 1..4 {
            let at = round * 100;
            events.push(wakeup(at, 0, 0, 1));
            events.push(switch(at + 50, 0, 1, s, 0));
        }
        let m = measure(&events, 1, (5, 350), None);
        assert_eq!((m.threads[&1].cpu_ns, m.inferred), (150, 3));
        assert!(!m.is_at_least());
        assert!(m.threads[&1].latency_ns.is_empty());
        assert_eq!(m.sights, [Sight::NotFromIdle]);
        // Without the wake-ups nothing says when it came.
        events.retain(|e| matches!(e.kind, Kind::Switch { .. }));
        let m = measure(&events, 1, (5, 350), None);
        assert_eq!((m.threads[&1].cpu_ns, m.late), (0, 3));
        assert!(m.is_at_least());
    }
}
