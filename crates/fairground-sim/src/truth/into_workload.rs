//! From a case to a workload for the simulated machine, with the times at which its tasks start.
//!
//! What the recorder itself does is part of it (`truth/recorder.rs`), and so are the threads of a
//! live system that cut stretches and wake-ups short; they are not tasks of the case.

use std::collections::BTreeMap;

use super::builder::{Builder, Turns};
use super::case::{Case, Flag, Shares, Spawn, Step, Write};
use super::control_files::{Files, attainable, known, quota, shares};
use super::others::Others;
use super::recorded::KIDS;
use super::recorder::{CREATION_NS, FIRST_SAMPLE_US};
use super::spinning::{AT_ONCE, spins, turn_ns};
use crate::machine_file::Machine;
use crate::workload::program::{
    Cgroup, CgroupWrite, Chan, ChanKind, Dur, Event, FOREVER, Inherits, Ns, Op, Program,
    TaskTemplate, Until, Workload,
};

const US: Ns = 1_000;
const MS: Ns = 1_000_000;

/// A case as the machine takes it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The workload; it ends with the window.
    pub workload: Workload,
    /// Start of the window.
    pub t0_ns: Ns,
    /// When each initial task starts.
    pub starts_ns: Vec<Ns>,
    /// Name in the results by template; `None` for the recorder's own threads.
    pub names: Vec<Option<String>>,
    /// By name: what counts the turns of its loops.
    pub turns: BTreeMap<String, Turns>,
    /// Writes that come to nothing, as the kernel refuses them or the run is over: the number of
    /// the event, and why.
    pub refused: Vec<(usize, String)>,
}

/// Turns a step-program case into a workload, beside which others take their share of the CPUs.
///
/// # Errors
/// A sentence that names the task, group or event that makes no sense.
pub fn prepare(case: &Case, others: &Others, machine: &Machine) -> Result<Prepared, String> {
    let duration_us = case.duration_us.ok_or("no duration_us")?;
    let tick_ns = case.machine.tick_ns();
    // All threads are made from the first tick on. The recorder takes `settle_ms` for microseconds,
    // as its traces show: creations up to T0, naps of threads that wait for T0, and load averages
    // of new tasks. It takes the next tick for T0, and only then do threads learn when to start.
    let told_ns = case.tasks.len() as Ns * CREATION_NS;
    let settled_ns = told_ns + case.settle_ms * US + 1;
    let t0_ns = settled_ns.max(4 * MS).next_multiple_of(tick_ns);
    let mut b = Builder {
        case,
        others,
        workload: Workload::new(&case.name, Vec::new()),
        names: Vec::new(),
        pipes: BTreeMap::new(),
        sems: BTreeMap::new(),
        barriers: BTreeMap::new(),
        t0_ns,
        turn_ns: turn_ns(machine),
        told: 0,
        refused: Vec::new(),
    };
    b.told = b.mark("told".into());
    b.workload.duration = Until::Time(t0_ns + duration_us * US);
    b.groups()?;
    b.events()?;
    for (number, parties) in &case.barriers {
        let next = b.barriers.len() as u32;
        b.barriers.insert(*number, next);
        b.workload.barriers.push(*parties);
    }
    let mut creations = Vec::new();
    let mut turns = BTreeMap::new();
    for task in &case.tasks {
        let of_task = Turns {
            one: b.mark(format!("turns of {}", task.name)),
            of_pieces: b.mark(format!("{AT_ONCE} turns of {}", task.name)),
        };
        if turns.insert(task.name.clone(), of_task).is_some() {
            return Err(format!("two tasks are called '{}'", task.name));
        }
        let created = b.task(task, of_task);
        creations.push(created.map_err(|e| format!("task '{}': {e}", task.name))?);
    }
    if case.tasks.is_empty() {
        return Err("no tasks".into());
    }
    b.main(&creations);
    let mut starts_ns = vec![0];
    b.sampler(&mut starts_ns);
    b.strangers(&mut starts_ns);
    b.bursts_after_quotas()?;
    b.workload.validate()?;
    Ok(Prepared {
        workload: b.workload,
        t0_ns,
        starts_ns,
        names: b.names,
        turns,
        refused: b.refused,
    })
}

impl Builder<'_> {
    fn groups(&mut self) -> Result<(), String> {
        for group in &self.case.cgroups {
            let at = |e: String| format!("cgroup '{}': {e}", group.path);
            let parent = match group.path.rsplit_once('/') {
                Some(("", name)) if !name.is_empty() => 0,
                Some((above, name)) if !name.is_empty() => {
                    self.group(above).map_err(|_| at("no parent".into()))?
                }
                _ => return Err(at("not a path".into())),
            };
            if self.group(&group.path).is_ok() {
                return Err(at("is there twice".into()));
            }
            let mut to = Cgroup::new(&group.path, parent);
            match &group.shares {
                None => {}
                Some(Shares::Number(n)) => to.shares = shares(*n),
                Some(Shares::Idle(_)) => to.idle = true,
            }
            to.idle |= group.idle.is_some_and(Flag::is_set);
            to.quota_ns = quota(group.quota_us.unwrap_or(-1));
            to.period_ns = group.period_us.map_or(100 * MS, |us| us * US);
            to.burst_ns = group.burst_us.unwrap_or(0) * US;
            self.workload.cgroups.push(to);
            let limits: Vec<_> = self.workload.cgroups.iter().map(Files::from).collect();
            self.attainable(&limits).map_err(at)?;
        }
        Ok(())
    }

    /// With cgroup v1 the kernel refuses a limit above that of a group above.
    fn attainable(&self, limits: &[Files]) -> Result<(), String> {
        if self.case.machine.cgroup.contains("v2") {
            return Ok(());
        }
        attainable(limits, &self.workload.cgroups)
    }

    pub(super) fn group(&self, path: &str) -> Result<u32, String> {
        let place = self.workload.cgroups.iter().position(|g| g.path == path);
        place
            .map(|i| i as u32)
            .ok_or_else(|| format!("no group '{path}'"))
    }

    fn events(&mut self) -> Result<(), String> {
        let mut writes: Vec<(usize, &Write)> = self.case.events.iter().enumerate().collect();
        writes.sort_by_key(|(_, w)| w.at_us);
        // Period and quota are two files of cgroup v1 but one write here.
        let mut files: Vec<Files> = self.workload.cgroups.iter().map(Files::from).collect();
        for (number, w) in writes {
            let at = |e: String| format!("event at {} us, {}/{}: {e}", w.at_us, w.cgroup, w.file);
            let cgroup = self.group(&w.cgroup).map_err(at)?;
            if cgroup == 0 {
                return Err(at("the root has no such file".into()));
            }
            known(&w.file).map_err(at)?;
            if let Some(end) = self.case.duration_us.filter(|end| w.at_us > *end) {
                let late = format!("after the end of the window ({end} us): nothing is written");
                self.refused.push((number, at(late)));
                continue;
            }
            let before = files[cgroup as usize];
            let write = files[cgroup as usize].write(&w.file, &w.value.text());
            let taken = write.and_then(|write| self.attainable(&files).map(|()| write));
            let write = match taken {
                Ok(write) => write,
                Err(why) => {
                    // The recorder says so and goes on; the file holds what it held.
                    files[cgroup as usize] = before;
                    let why = format!("{why}; the recorder goes on, and so does the simulated one");
                    self.refused.push((number, at(why)));
                    continue;
                }
            };
            self.workload.events.push(Event {
                at_ns: self.t0_ns + self.written_us(w.at_us) * US,
                cgroup,
                write,
            });
        }
        Ok(())
    }

    /// The recorder writes a burst after the quota, and each write fills the pool once more.
    fn bursts_after_quotas(&mut self) -> Result<(), String> {
        self.workload.validate()?;
        let mut writes = Vec::new();
        for (cgroup, group) in (0..).zip(&mut self.workload.cgroups) {
            let burst = std::mem::take(&mut group.burst_ns);
            if burst > 0 {
                let write = CgroupWrite::Burst(burst);
                writes.push(Event {
                    at_ns: 1,
                    cgroup,
                    write,
                });
            }
        }
        self.workload.events.splice(0..0, writes);
        Ok(())
    }

    /// When an event is written: by the recorder's main thread at its time, in a case with a
    /// sampler by that one when it has woken next.
    fn written_us(&self, at_us: u64) -> u64 {
        let Some(sampler) = self.case.sampler else {
            return at_us;
        };
        let turns = at_us.saturating_sub(FIRST_SAMPLE_US);
        FIRST_SAMPLE_US + turns.next_multiple_of(sampler.every_us.max(1))
    }

    pub(super) fn mask(&mut self, cpus: &[u32]) -> u32 {
        let mut mask = cpus.to_vec();
        mask.sort_unstable();
        mask.dedup();
        let masks = &mut self.workload.masks;
        let known = masks.iter().position(|m| *m == mask);
        known.unwrap_or_else(|| {
            masks.push(mask);
            masks.len() - 1
        }) as u32
    }

    pub(super) fn mark(&mut self, name: String) -> u32 {
        self.workload.marks.push(name);
        self.workload.marks.len() as u32 - 1
    }

    /// A template with an empty program.
    pub(super) fn template(&mut self, name: &str, cpu: Option<u32>, shown: Option<String>) -> u32 {
        let program = self.workload.programs.len() as u32;
        self.workload.programs.push(Program {
            name: name.to_string(),
            ops: Vec::new(),
        });
        let mut template = TaskTemplate::new(name, program, 1);
        template.thread = true;
        template.timer_slack_ns = Some(1);
        template.affinity = cpu.map(|cpu| self.mask(&[cpu]));
        self.workload.templates.push(template);
        self.names.push(shown);
        self.workload.templates.len() as u32 - 1
    }

    pub(super) fn steps(
        &mut self,
        steps: &[Step],
        ops: &mut Vec<Op>,
        turns: Turns,
    ) -> Result<(), String> {
        for step in steps {
            let op = match step {
                Step::Loop(count, body) => {
                    self.turns(*count, body, ops, turns)?;
                    continue;
                }
                Step::Hog => Op::Hog,
                Step::Run(us) => Op::Run(computing(*us)?),
                // No time is a system call and a timer too, which expires at once.
                Step::Sleep(us) => Op::Sleep(Dur::Const((us * US).max(1))),
                // The grid moves to where the thread is; a point of it is never so near.
                Step::Period(us) => Op::Period(Dur::Const((us * US).max(1))),
                Step::Until(us) => Op::SleepUntilTaskTime(us * US),
                Step::Write(p) => Op::Write {
                    chan: self.pipe(*p),
                    bytes: 1,
                },
                Step::Read(p) => Op::Read {
                    chan: self.pipe(*p),
                    bytes: 1,
                },
                Step::Wait(s) => Op::SemWait(self.sem(*s)),
                Step::Post(s) => Op::SemPost(self.sem(*s)),
                Step::Barrier(b) => Op::Barrier(
                    *self
                        .barriers
                        .get(b)
                        .ok_or_else(|| format!("no barrier {b} in 'barriers'"))?,
                ),
                Step::Yield => Op::Yield,
                Step::Exit => Op::Exit,
                Step::SetNice(nice) => Op::SetNice(*nice),
                Step::SetAffinity(cpus) if cpus.is_empty() => {
                    return Err("set_affinity without a CPU".into());
                }
                Step::SetAffinity(cpus) => Op::SetAffinity(self.mask(cpus)),
                Step::SetCgroup(path) => Op::SetCgroup(self.group(path)?),
                Step::Spawn(spawn) => self.spawn(spawn)?,
            };
            ops.push(op);
        }
        Ok(())
    }

    /// A loop.
    fn turns(
        &mut self,
        count: i64,
        body: &[Step],
        ops: &mut Vec<Op>,
        turns: Turns,
    ) -> Result<(), String> {
        if count == 0 {
            return Ok(());
        }
        if let Some(spins) = spins(count, body) {
            self.steps(body, ops, turns)?;
            ops.push(Op::Mark(turns.one));
            self.spin(spins, ops, turns);
            return Ok(());
        }
        let start = ops.len() as u32;
        let count = u64::try_from(count).unwrap_or(FOREVER);
        ops.push(Op::LoopStart { count });
        self.steps(body, ops, turns)?;
        ops.push(Op::Mark(turns.one));
        ops.push(Op::LoopEnd { start });
        Ok(())
    }

    /// A new thread has its creator's nice value, policy, slice and CPUs.
    fn spawn(&mut self, spawn: &Spawn) -> Result<Op, String> {
        let template = self.template("kid", None, Some(KIDS.to_string()));
        self.workload.templates[template as usize].inherits = Inherits::ALL;
        let program = self.workload.templates[template as usize].program;
        let ops = &mut self.workload.programs[program as usize].ops;
        if spawn.run_us != 0.0 {
            ops.push(Op::Run(computing(spawn.run_us)?));
        }
        if spawn.sleep_us > 0 {
            ops.push(Op::Sleep(Dur::Const(spawn.sleep_us * US)));
        }
        Ok(Op::Fork { template })
    }

    fn pipe(&mut self, number: u32) -> u32 {
        let next = self.workload.chans.len() as u32;
        let at = *self.pipes.entry(number).or_insert(next);
        if at == next {
            let kind = ChanKind::PIPE;
            self.workload.chans.push(Chan { kind });
        }
        at
    }

    fn sem(&mut self, number: u32) -> u32 {
        let next = self.workload.sems.len() as u32;
        let at = *self.sems.entry(number).or_insert(next);
        if at == next {
            self.workload.sems.push(0);
        }
        at
    }
}

fn computing(us: f64) -> Result<Dur, String> {
    if !(0.0..1e12).contains(&us) {
        return Err(format!("run_us {us}"));
    }
    Ok(Dur::Const((us * US as f64).round() as Ns))
}
