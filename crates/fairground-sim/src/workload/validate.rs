//! Proves a workload sound before the machine interprets it: every index in range, loops closed
//! and able to move the clock, tables usable. The way in is [`Workload::validate`].
//!
//! What is wrong with a scenario file is found earlier, with the line (`spec`); an error from
//! here is about a workload that was built by code.
use super::program::{
    CgroupWrite, Chan, ChanKind, Inet, LOOP_DEPTH_MAX, Op, Program, TaskTemplate, When, Workload,
};

/// Shortest quota and period that the kernel takes, in nanoseconds.
pub const QUOTA_NS_MIN: u64 = 1_000_000;
/// Longest period that the kernel takes, in nanoseconds.
pub const PERIOD_NS_MAX: u64 = 1_000_000_000;
/// What is said of a period that the kernel does not take.
pub const PERIOD_EXPECTED: &str = "expected a period from 1ms to 1s";
/// What is said of a quota that the kernel does not take.
pub const QUOTA_EXPECTED: &str = "expected a quota of at least 1ms";
/// Latest time and longest wait of a program: what is later than any run (a recording's end that
/// never comes, `1 << 50`) has room below. Picoseconds of it, from the end of the longest run on,
/// still fit 64 bits.
pub const TIME_NS_MAX: u64 = 1 << 51;
/// Range of `cpu.shares`.
pub const SHARES: core::ops::RangeInclusive<u64> = 2..=262_144;

impl Workload {
    /// Checks everything that an interpreter relies on.
    ///
    /// # Errors
    /// A sentence that names the first thing that is wrong.
    pub fn validate(&self) -> Result<(), String> {
        self.check_tables()?;
        for (i, group) in self.cgroups.iter().enumerate() {
            let is_root = i == 0 && group.parent == 0 && group.path == "/";
            if !is_root && group.parent as usize >= i {
                return Err(format!("cgroup '{}' stands before its parent", group.path));
            }
            check_bandwidth(group.quota_ns, group.period_ns, group.burst_ns)
                .and_then(|()| check_shares(group.shares))
                .map_err(|e| format!("cgroup '{}': {e}", group.path))?;
            self.index("mask", group.cpuset.unwrap_or(0), self.masks.len().max(1))?;
        }
        for &group in self.watched.iter().chain(&self.compared) {
            self.index("cgroup", group, self.cgroups.len())?;
        }
        for program in &self.programs {
            check_loops(program).map_err(|e| format!("program '{}': {e}", program.name))?;
            for op in &program.ops {
                self.check_op(*op)
                    .map_err(|e| format!("program '{}': {e}", program.name))?;
            }
        }
        for template in &self.templates {
            self.check_template(template)
                .map_err(|e| format!("task '{}': {e}", template.name))?;
        }
        self.initial
            .iter()
            .try_for_each(|&t| self.index("template", t, self.templates.len()))?;
        self.check_events()
    }

    fn check_tables(&self) -> Result<(), String> {
        if self.cgroups.first().is_none_or(|g| g.path != "/") {
            return Err("cgroup 0 is not the root".into());
        }
        if self.initial.is_empty() {
            return Err("there is no task to start".into());
        }
        check_time("warm-up", self.warmup_ns)?;
        if self.masks.iter().any(|m| m.is_empty() || !m.is_sorted()) {
            return Err("a CPU mask is empty or not sorted".into());
        }
        if self.barriers.contains(&0) {
            return Err("a barrier has no parties".into());
        }
        if !(8..=64).contains(&self.mutex_stride) || !self.mutex_stride.is_multiple_of(8) {
            return Err(format!("mutexes {} bytes apart", self.mutex_stride));
        }
        let usable = |c: &Chan| match c.kind {
            ChanKind::Pipe { slots, page_bytes } => slots > 0 && page_bytes > 0,
            ChanKind::Socket { sndbuf } => sndbuf > 0,
        };
        if !self.chans.iter().all(usable) {
            return Err("a channel has no capacity".into());
        }
        let usable = |s: &Inet| match *s {
            Inet::Udp { rcvbuf, .. } => rcvbuf > 0,
            Inet::Tcp { sndbuf, window, .. } => sndbuf > 0 && window >= Inet::MSS,
        };
        if self.inets.iter().all(usable) {
            Ok(())
        } else {
            Err("a socket has no capacity".into())
        }
    }

    fn check_template(&self, template: &TaskTemplate) -> Result<(), String> {
        self.index("program", template.program, self.programs.len())?;
        check_time("start", template.start_ns)?;
        check_time("timer slack", template.timer_slack_ns.unwrap_or(0))?;
        self.index("cgroup", template.cgroup.unwrap_or(0), self.cgroups.len())?;
        if let Some(mask) = template.affinity {
            self.index("mask", mask, self.masks.len())?;
        }
        check_nice(template.nice)
    }

    fn check_op(&self, op: Op) -> Result<(), String> {
        match op {
            Op::Run(d) | Op::Sleep(d) | Op::SleepTicks(d) => check_time("duration", d.longest()),
            Op::SleepUntilTaskTime(ns)
            | Op::StartAt(ns)
            | Op::SleepUntilRunTime(ns)
            | Op::Busy(ns) => check_time("time", ns),
            Op::Write { chan, .. } | Op::Read { chan, .. } | Op::Poll { chan } => {
                self.index("channel", chan, self.chans.len())
            }
            Op::Send { inet, .. } | Op::Recv { inet, .. } => {
                self.index("socket", inet, self.inets.len())
            }
            Op::SemWait(k) | Op::SemPost(k) => self.index("semaphore", k, self.sems.len()),
            Op::FutexWait(k) | Op::FutexWake { futex: k, .. } | Op::CondSignal { cond: k, .. } => {
                self.index("futex", k, self.n_futexes as usize)
            }
            Op::CondWait { cond, mutex } => self
                .index("futex", cond, self.n_futexes as usize)
                .and_then(|()| self.index("mutex", mutex, self.n_mutexes as usize)),
            Op::LockCpu(k) | Op::UnlockCpu(k) => {
                self.index("set of locks", k, self.n_cpu_locks as usize)
            }
            Op::Lock(k) | Op::Unlock(k) => self.index("mutex", k, self.n_mutexes as usize),
            Op::Pick { first, of, .. } => self.range("mutex", first, of, self.n_mutexes as usize),
            Op::Touch { first, of, .. } => self.range("word", first, of, self.n_words as usize),
            Op::CondBarrier { barrier, mutex } => self
                .index("barrier", barrier, self.barriers.len())
                .and_then(|()| self.index("mutex", mutex, self.n_mutexes as usize)),
            Op::Leave { when, .. } => match when {
                When::Empty(k) => self.index("budget", k, self.budgets.len()),
                When::Over { mark, .. } | When::Passed(mark) => {
                    self.index("mark", mark, self.marks.len())
                }
                When::Woken(_) => Ok(()),
            },
            Op::PinChild { mask } => self.index("mask", mask, self.masks.len()),
            Op::LockPicked | Op::UnlockPicked => self.index("mutex", 0, self.n_mutexes as usize),
            Op::Barrier(k) => self.index("barrier", k, self.barriers.len()),
            Op::Fork { template } => self.index("template", template, self.templates.len()),
            Op::SetNice(nice) | Op::SetPolicy { nice, .. } => check_nice(nice),
            Op::SetAffinity(k) => self.index("mask", k, self.masks.len()),
            Op::SetCgroup(k) => self.index("cgroup", k, self.cgroups.len()),
            Op::Mark(k) => self.index("mark", k, self.marks.len()),
            Op::ReqStart(k) | Op::ReqStartDue(k) | Op::ReqStartCaller(k) | Op::ReqEnd(k) => {
                self.index("request", k, self.requests.len())
            }
            Op::Call { service, .. } | Op::Accept(service) | Op::Reply { service, .. } => {
                self.index("service", service, self.services.len())
            }
            Op::Timer { timer, every, .. } => self
                .index("timer", timer, self.n_timers as usize)
                .and_then(|()| check_time("period", every)),
            Op::Period(d) | Op::Pace(d) if d.is_zero() => Err("a period of 0".into()),
            Op::Period(d) | Op::Pace(d) => check_time("period", d.longest()),
            _ => Ok(()),
        }
    }

    fn check_events(&self) -> Result<(), String> {
        if !self.events.is_sorted_by_key(|e| e.at_ns) {
            return Err("events are not in order of time".into());
        }
        check_time("event", self.events.last().map_or(0, |e| e.at_ns))?;
        for event in &self.events {
            self.index("cgroup", event.cgroup, self.cgroups.len())?;
            match event.write {
                CgroupWrite::Max {
                    quota_ns,
                    period_ns,
                } => check_bandwidth(quota_ns, period_ns, 0),
                CgroupWrite::Shares(shares) => check_shares(shares),
                CgroupWrite::Burst(_) | CgroupWrite::Idle(_) => Ok(()),
            }?;
        }
        Ok(())
    }

    fn range(&self, what: &str, first: u32, of: u32, len: usize) -> Result<(), String> {
        match first.checked_add(of) {
            Some(end) if of > 0 && end as usize <= len => Ok(()),
            _ => Err(format!("{what} {first} and {of} from there, of {len}")),
        }
    }

    fn index(&self, what: &str, k: u32, len: usize) -> Result<(), String> {
        if (k as usize) < len {
            Ok(())
        } else {
            Err(format!("{what} {k} of {len} does not exist"))
        }
    }
}

fn check_time(what: &str, ns: u64) -> Result<(), String> {
    if ns <= TIME_NS_MAX {
        Ok(())
    } else {
        Err(format!(
            "a {what} of {ns} ns; expected at most {TIME_NS_MAX}"
        ))
    }
}

fn check_nice(nice: i8) -> Result<(), String> {
    if (-20..=19).contains(&nice) {
        Ok(())
    } else {
        Err(format!("nice {nice}"))
    }
}

fn check_shares(shares: u64) -> Result<(), String> {
    if SHARES.contains(&shares) {
        Ok(())
    } else {
        Err(format!("{shares} shares"))
    }
}

fn check_bandwidth(quota_ns: Option<u64>, period_ns: u64, burst_ns: u64) -> Result<(), String> {
    if !(QUOTA_NS_MIN..=PERIOD_NS_MAX).contains(&period_ns) {
        return Err(format!("{} us: {PERIOD_EXPECTED}", period_ns / 1000));
    }
    match quota_ns {
        Some(quota) if quota < QUOTA_NS_MIN => {
            Err(format!("{} us: {QUOTA_EXPECTED}", quota / 1000))
        }
        Some(quota) if burst_ns > quota => Err(burst_refused(burst_ns, quota)),
        _ => Ok(()),
    }
}

/// What is said of a burst above the quota.
#[must_use]
pub fn burst_refused(burst_ns: u64, quota_ns: u64) -> String {
    let [burst, quota] = [burst_ns, quota_ns].map(|ns| ns / 1000);
    format!("the kernel refuses a burst of {burst} us above the quota of {quota} us")
}

/// So many turns may take no time, as those of `until_us` when its time is over.
const TIMELESS_TURNS_MAX: u64 = 1000;

/// An open loop.
struct Open {
    /// Index of its `LoopStart`.
    start: usize,
    count: u64,
    /// Whether a turn moves the clock.
    moves: bool,
    /// Turns of loops within one turn, none of which does.
    within: u64,
}

/// Loops are properly nested, not too deep, make at least one turn, and move the clock, unless they
/// have few turns.
fn check_loops(program: &Program) -> Result<(), String> {
    let mut open: Vec<Open> = Vec::new();
    let took_time = |open: &mut Vec<Open>| open.iter_mut().for_each(|l| l.moves = true);
    for (at, op) in program.ops.iter().enumerate() {
        match *op {
            Op::LoopStart { count: 0 } => return Err("a loop of 0 turns".into()),
            Op::LoopStart { .. } if open.len() == LOOP_DEPTH_MAX => {
                return Err(format!("loops nest deeper than {LOOP_DEPTH_MAX}"));
            }
            Op::LoopStart { count } => open.push(Open {
                start: at,
                count,
                moves: false,
                within: 0,
            }),
            Op::Leave { end, .. } => {
                let leaves = open.last().is_some_and(|opened| {
                    let start = opened.start as u32;
                    program.ops.get(end as usize) == Some(&Op::LoopEnd { start })
                });
                if !leaves {
                    return Err("leaves a loop that is not the innermost".into());
                }
                if op.takes_time() {
                    took_time(&mut open);
                }
            }
            Op::LoopEnd { start } => match open.pop() {
                Some(closed) if closed.start == start as usize => {
                    let turns = closed.count.saturating_mul(closed.within.max(1));
                    if closed.moves {
                        took_time(&mut open);
                    } else if turns > TIMELESS_TURNS_MAX {
                        return Err("a loop whose steps take no time".into());
                    } else if let Some(outer) = open.last_mut() {
                        outer.within += turns;
                    }
                }
                _ => return Err("the end of a loop that was not opened".into()),
            },
            op if op.takes_time() => took_time(&mut open),
            _ => {}
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err("a loop without an end".into())
    }
}
