//! Two workloads on one machine: one that is measured, and another beside it.
use super::bench::SESSION;
use super::labels::Labels;
use super::metric::{From, MetricDef};
use super::op::{Op, When};
use super::program::{KERNEL_PROCESS, TaskTemplate, Until, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// What the names of the other's metrics begin with; a second one's with `beside2`.
pub const BESIDE: &str = "beside";

/// By how much the other's numbers are shifted, to come behind those of the first.
#[derive(Clone, Copy, Debug)]
struct Behind {
    program: u32,
    chan: u32,
    inet: u32,
    sem: u32,
    futex: u32,
    timer: u32,
    mutex: u32,
    word: u32,
    budget: u32,
    barrier: u32,
    cpu_lock: u32,
    service: u32,
    mask: u32,
    template: u32,
    process: u32,
    /// Its root is the same; its other groups come behind.
    cgroup: u32,
    mark: u32,
    request: u32,
}

impl Workload {
    /// This workload with `other` beside it, from the start: the run lasts as long as this one, and
    /// its words are this one's. What `other` reports has [`BESIDE`] before its name, with a number
    /// from the second one on. Groups whose path is taken get the next free number: a limit or
    /// weight that one of the two has would else hold for the other, too.
    ///
    /// # Errors
    /// A sentence if both have mutexes, but at other distances from each other.
    pub fn beside(mut self, other: Self) -> Result<Self, String> {
        let by = Behind::of(&self);
        if self.n_mutexes > 0 && other.n_mutexes > 0 && self.mutex_stride != other.mutex_stride {
            return Err(format!(
                "{} and {} lay out their mutexes differently, so one cannot run beside the other",
                self.name, other.name
            ));
        }
        if other.n_mutexes > 0 {
            self.mutex_stride = other.mutex_stride;
        }
        self.beside_from = self.beside_from.min(by.template);
        self.besides += 1;
        let label = match self.besides {
            1 => BESIDE.into(),
            n => format!("{BESIDE}{n}"),
        };
        self.name = format!("{} beside {}", self.name, other.name);
        self.argv.push(BESIDE.into());
        self.argv.extend(other.argv.iter().cloned());
        self.no_idle_states |= other.no_idle_states;
        let renamed = self.groups(&other, by);
        self.notes.extend(renamed_note(&label, &renamed));
        self.things(&other, by);
        for mut program in other.programs {
            program.ops.iter_mut().for_each(|op| *op = by.op(*op));
            self.programs.push(program);
        }
        self.templates
            .extend(other.templates.into_iter().map(|t| by.task(t)));
        let initial = other.initial.iter().map(|t| t + by.template);
        self.initial.extend(initial);
        self.events
            .extend(other.events.into_iter().map(|mut event| {
                event.cgroup = by.cgroup(event.cgroup);
                event
            }));
        self.events.sort_by_key(|event| event.at_ns);
        self.marks.extend(other.marks);
        self.requests.extend(other.requests);
        let ours = (0, by.template);
        let theirs = (by.template, self.templates.len() as u32);
        for metric in &mut self.metrics {
            metric.from = of_tasks(metric.from, ours);
        }
        self.metrics
            .extend(other.metrics.into_iter().map(|m| MetricDef {
                name: format!("{label}.{}", m.name),
                from: of_tasks(by.from(m.from), theirs),
                ..m
            }));
        let notes = other.notes.iter().map(|n| format!("{label}: {n}"));
        self.notes.extend(notes);
        if let (Until::Time(own_ns), Until::Time(other_ns)) = (self.duration, other.duration)
            && other_ns < own_ns
        {
            let ms = other_ns as f64 / 1e6;
            self.notes.push(format!(
                "{label}: alone it ends after {ms} ms; here it goes on for as long as the run"
            ));
        }
        debug_assert_eq!(self.validate(), Ok(()));
        Ok(self)
    }

    /// Takes the other's groups; those below the root whose path is taken, with their new one.
    fn groups(&mut self, other: &Self, by: Behind) -> Vec<(String, String)> {
        let mut taken: BTreeSet<String> = self.cgroups.iter().map(|g| g.path.clone()).collect();
        let mut renamed: BTreeMap<String, String> = BTreeMap::new();
        let mut taken_over = Vec::new();
        for group in &other.cgroups[1..] {
            let mut group = group.clone();
            let above = &other.cgroups[group.parent as usize].path;
            let path = match renamed.get(above) {
                Some(new) => format!("{new}{}", &group.path[above.len()..]),
                None => group.path.clone(),
            };
            let free = next_free(&path, &taken);
            taken.insert(free.clone());
            if free != path {
                taken_over.push((path, free.clone()));
            }
            renamed.insert(std::mem::replace(&mut group.path, free.clone()), free);
            group.parent = by.cgroup(group.parent);
            group.cpuset = group.cpuset.map(|mask| mask + by.mask);
            self.cgroups.push(group);
        }
        let watched = other.watched.iter().map(|g| by.cgroup(*g));
        self.watched.extend(watched);
        let compared = other.compared.iter().map(|g| by.cgroup(*g));
        self.compared.extend(compared);
        taken_over
    }

    fn things(&mut self, other: &Self, by: Behind) {
        self.chans.extend(other.chans.iter().copied());
        self.inets.extend(other.inets.iter().copied());
        self.sems.extend(&other.sems);
        self.n_futexes += other.n_futexes;
        self.n_timers += other.n_timers;
        self.n_mutexes += other.n_mutexes;
        self.n_words += other.n_words;
        self.budgets.extend(&other.budgets);
        self.barriers.extend(&other.barriers);
        self.n_cpu_locks += other.n_cpu_locks;
        self.services.extend(other.services.iter().cloned());
        let services = other.futex_services.iter().map(|s| s + by.service);
        self.futex_services.extend(services);
        self.masks.extend(other.masks.iter().cloned());
        let Labels {
            chans,
            sems,
            futexes,
            mutexes,
            barriers,
        } = &mut self.labels;
        let theirs = &other.labels;
        for (own, other, by) in [
            (chans, &theirs.chans, by.chan),
            (sems, &theirs.sems, by.sem),
            (futexes, &theirs.futexes, by.futex),
            (mutexes, &theirs.mutexes, by.mutex),
            (barriers, &theirs.barriers, by.barrier),
        ] {
            own.extend(other.iter().map(|(i, name)| (i + by, name.clone())));
        }
    }
}

/// Says which groups have another path than was asked for: sessions have numbers anyway.
fn renamed_note(label: &str, renamed: &[(String, String)]) -> Option<String> {
    const FEW: usize = 4;
    let named: Vec<_> = renamed.iter().filter(|(old, _)| old != SESSION).collect();
    let few = named.iter().take(FEW);
    let few: Vec<String> = few
        .map(|(old, new)| format!("`{old}` is `{new}`"))
        .collect();
    let more = match named.len().saturating_sub(FEW) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| {
        format!(
            "{label}: each workload has groups of its own, also of the same path: its {}{more} \
             here",
            few.join(", ")
        )
    })
}

/// `path`, or the same with the number at the end of its first part that makes it new:
/// "/autogroup-2" for "/autogroup-1".
fn next_free(path: &str, taken: &BTreeSet<String>) -> String {
    let (first, rest) = match path[1..].find('/') {
        Some(end) => path.split_at(end + 1),
        None => (path, ""),
    };
    let digits = first.len() - first.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = first.split_at(first.len() - digits);
    let stem = if digits == 0 {
        format!("{stem}-")
    } else {
        stem.into()
    };
    let from = number.parse().unwrap_or(1u64);
    let numbered = (from + 1..).map(|n| format!("{stem}{n}{rest}"));
    let mut all = std::iter::once(path.to_owned()).chain(numbered);
    all.find(|p| !taken.contains(p)).unwrap_or_default()
}

/// What is of all tasks is of those made from templates `first..end` only.
fn of_tasks(from: From, (first, end): (u32, u32)) -> From {
    match from {
        From::CpuS => From::CpuOfS { first, end },
        other => other,
    }
}

impl Behind {
    fn of(w: &Workload) -> Self {
        let processes = w.templates.iter().map(|t| t.process);
        let named = processes.filter(|p| *p != KERNEL_PROCESS).max();
        Self {
            program: w.programs.len() as u32,
            chan: w.chans.len() as u32,
            inet: w.inets.len() as u32,
            sem: w.sems.len() as u32,
            futex: w.n_futexes,
            timer: w.n_timers,
            mutex: w.n_mutexes,
            word: w.n_words,
            budget: w.budgets.len() as u32,
            barrier: w.barriers.len() as u32,
            cpu_lock: w.n_cpu_locks,
            service: w.services.len() as u32,
            mask: w.masks.len() as u32,
            template: w.templates.len() as u32,
            process: named.map_or(0, |p| p + 1),
            cgroup: w.cgroups.len() as u32 - 1,
            mark: w.marks.len() as u32,
            request: w.requests.len() as u32,
        }
    }

    fn cgroup(self, group: u32) -> u32 {
        if group == 0 { 0 } else { group + self.cgroup }
    }

    fn task(self, mut t: TaskTemplate) -> TaskTemplate {
        t.program += self.program;
        t.affinity = t.affinity.map(|mask| mask + self.mask);
        t.cgroup = t.cgroup.map(|group| self.cgroup(group));
        if t.process != KERNEL_PROCESS {
            t.process += self.process;
        }
        t
    }

    /// No wildcard: a new operation has to say what its numbers are.
    fn op(self, mut op: Op) -> Op {
        let (number, by) = match &mut op {
            Op::Touch { first, .. } => (first, self.word),
            Op::Leave { when, .. } => match when {
                When::Empty(budget) => (budget, self.budget),
                When::Over { mark, .. } | When::Passed(mark) => (mark, self.mark),
                When::Woken(_) => return op,
            },
            Op::Write { chan, .. } | Op::Read { chan, .. } | Op::Poll { chan } => (chan, self.chan),
            Op::Send { inet, .. } | Op::Recv { inet, .. } => (inet, self.inet),
            Op::SemWait(k) | Op::SemPost(k) => (k, self.sem),
            Op::FutexWait(k) | Op::FutexWake { futex: k, .. } | Op::CondSignal { cond: k, .. } => {
                (k, self.futex)
            }
            Op::CondWait { cond, mutex } => {
                *mutex += self.mutex;
                (cond, self.futex)
            }
            Op::Timer { timer, .. } => (timer, self.timer),
            Op::LockCpu(k) | Op::UnlockCpu(k) => (k, self.cpu_lock),
            Op::Lock(k) | Op::Unlock(k) | Op::Pick { first: k, .. } => (k, self.mutex),
            Op::CondBarrier { barrier, mutex } => {
                *mutex += self.mutex;
                (barrier, self.barrier)
            }
            Op::Barrier(k) => (k, self.barrier),
            Op::Fork { template } => (template, self.template),
            Op::PinChild { mask } | Op::SetAffinity(mask) => (mask, self.mask),
            Op::SetCgroup(0) => return op,
            Op::SetCgroup(group) => (group, self.cgroup),
            Op::Mark(k) => (k, self.mark),
            Op::ReqStart(k) | Op::ReqStartDue(k) | Op::ReqStartCaller(k) | Op::ReqEnd(k) => {
                (k, self.request)
            }
            Op::Call { service, .. } | Op::Accept(service) | Op::Reply { service, .. } => {
                (service, self.service)
            }
            Op::Run(_)
            | Op::Busy(_)
            | Op::Hog
            | Op::Work { .. }
            | Op::ReadClock
            | Op::Sleep(_)
            | Op::SleepTicks(_)
            | Op::Period(_)
            | Op::Pace(_)
            | Op::SleepUntilTaskTime(_)
            | Op::StartAt(_)
            | Op::SleepUntilRunTime(_)
            | Op::LoopStart { .. }
            | Op::LoopEnd { .. }
            | Op::LockPicked
            | Op::UnlockPicked
            | Op::Yield
            | Op::Join
            | Op::SetNice(_)
            | Op::SetPolicy { .. }
            | Op::SetSlice(_)
            | Op::Exec
            | Op::Exit => return op,
        };
        *number += by;
        op
    }

    fn from(self, mut from: From) -> From {
        match &mut from {
            From::SpanS { start, end }
            | From::SpanUsPer { start, end, .. }
            | From::OpsPerSpanS { start, end, .. } => {
                *start += self.mark;
                *end += self.mark;
            }
            From::RequestsPerSpanS {
                start,
                end,
                request,
            } => {
                *start += self.mark;
                *end += self.mark;
                *request += self.request;
            }
            From::Count(k) | From::CountPerS(k) | From::ScaledPerS { mark: k, .. } => {
                *k += self.mark;
            }
            From::RequestsPerS(k)
            | From::Requests(k)
            | From::RequestMeanUs(k)
            | From::RequestQuantileUs { request: k, .. }
            | From::LatencyQuantileUs { request: k, .. } => *k += self.request,
            From::RequestsStddev { first, end }
            | From::CpuOfS { first, end }
            | From::CpuShare { first, end }
            | From::Cpus { first, end }
            | From::Fairness { first, end } => {
                *first += self.template;
                *end += self.template;
            }
            From::CpuS | From::CpuTime(_) | From::FetchPct | From::ElapsedS => {}
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing;
    use crate::machine_file::Machine;
    use crate::workload::Env;

    fn of(argv: &str) -> Workload {
        let argv: Vec<&str> = argv.split(' ').collect();
        Workload::from_argv(&argv, &Env { cpus: 8 }).unwrap()
    }

    /// Two that are alike measure alike, and each by its own marks.
    #[test]
    fn both_measure_what_they_do() {
        let pipe = "perf bench sched pipe -l 200";
        let both = of(pipe).beside(of("perf bench sched pipe -l 100")).unwrap();
        let paths: Vec<&str> = both.cgroups.iter().map(|g| g.path.as_str()).collect();
        assert_eq!(paths, ["/", "/autogroup-1", "/autogroup-2"]);
        let machine = Machine::builtin("xeon-8cpu-2013").unwrap();
        let name = &both.metrics[0].name;
        let (own, other) = testing::with(&machine, &both, &[], |sim| {
            sim.run().unwrap();
            let value = |name: &str| {
                let metric = both.metrics.iter().find(|m| m.name == name);
                metric.and_then(|m| m.value(&sim.marks)).expect(name)
            };
            (value(name), value(&format!("beside.{name}")))
        });
        assert!((own / other - 1.0).abs() < 0.5, "{own} {other}");
    }

    #[test]
    fn each_of_several_reports_under_a_name_of_its_own() {
        let hogs = || of("hogs --tasks 2");
        let all = of("perf bench sched pipe -l 10").beside(hogs()).unwrap();
        let all = all.beside(hogs()).and_then(|w| w.beside(hogs())).unwrap();
        let cpu = |n: &str| {
            let metric = all
                .metrics
                .iter()
                .find(|m| m.name == format!("{n}.hogs.cpu_s"));
            metric.map(|m| m.from)
        };
        let of = |first| {
            Some(From::CpuOfS {
                first,
                end: first + 2,
            })
        };
        assert_eq!(
            ["beside", "beside2", "beside3"].map(cpu),
            [of(2), of(4), of(6)]
        );
    }

    /// Who names one group for both has two, and is told.
    #[test]
    fn a_group_whose_path_is_taken_is_renamed_and_told() {
        let of_a = || of("hogs --cgroup /a --cpu-max 2ms/10ms");
        let both = of_a().beside(of_a()).unwrap();
        let paths: Vec<&str> = both.cgroups.iter().map(|g| g.path.as_str()).collect();
        assert_eq!(paths, ["/", "/a", "/a-2"]);
        let told: Vec<_> = both.notes.iter().filter(|n| n.contains("/a")).collect();
        let note = "beside: each workload has groups of its own, also of the same path: its `/a` \
                    is `/a-2` here";
        assert_eq!(told, [note]);
        for other in ["hogs", "hogs --cgroup /b"] {
            let both = of("hogs").beside(of(other)).unwrap();
            let told = both.notes.iter().any(|n| n.contains("same path"));
            assert!(!told, "{other}: {:?}", both.notes);
        }
    }

    /// The first ends the run, although the other never does.
    #[test]
    fn the_run_is_as_long_as_the_first() {
        let both = of("perf bench sched pipe -l 10")
            .beside(of("hogs --tasks 2"))
            .unwrap();
        assert_eq!((both.beside_from, both.templates.len()), (2, 4));
        assert!(
            both.metrics
                .iter()
                .any(|m| m.from == From::CpuOfS { first: 2, end: 4 })
        );
        let machine = Machine::builtin("xeon-8cpu-2013").unwrap();
        let end = testing::with(&machine, &both, &[], |sim| sim.run().unwrap());
        assert!(end < 10_000_000 * crate::cache::NS, "{end}");
    }

    #[test]
    fn a_path_that_is_taken_gets_the_next_number() {
        let taken = ["/autogroup-1", "/autogroup-2", "/web", "/web/a"].map(String::from);
        let taken = BTreeSet::from(taken);
        assert_eq!(next_free("/autogroup-1", &taken), "/autogroup-3");
        assert_eq!(next_free("/web", &taken), "/web-2");
        assert_eq!(next_free("/web/a", &taken), "/web-2/a");
        assert_eq!(next_free("/db", &taken), "/db");
    }
}
