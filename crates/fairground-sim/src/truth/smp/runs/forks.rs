//! A run of `balance/run_*.json` as a workload: a parent forks the tasks, each of which enters its
//! group, opens its affinity and sets its nice value when it first runs.

use fairground::value::CpuMask;

use super::beside::Beside;
use super::guest;
use super::recorded::{Run, Set, TICK_NS};
use crate::workload::program::{Cgroup, Dur, Ns, Op, Program, TaskTemplate, Until, Workload};

const MS: Ns = 1_000_000;
const FOREVER_NS: Ns = 3_600_000 * MS;

/// Templates of the runner and of the parent, which it forks.
const RUNNER: u32 = 0;
const PARENT: u32 = 1;
/// Template of the first set's tasks.
const CHILD: u32 = 2;

/// A child begins, opens the file of its group and waits there. Where children of groups follow
/// each other the parent pauses for 78 to 82 us for each (four runs of `bal_cg`).
const ENTER_NS: Ns = 65_000;

/// Ticks from the one that follows until who waits for a grace period of RCU goes on, where another
/// is in progress. Each takes two: its thread waits for a jiffy, and timers fire at the tick after.
/// Callbacks are run at the next one.
const GRACE_TICKS: Ns = 5;

/// A parent that is preempted has forked for half a slice.
const HALF_SLICE_NS: Ns = 1_400_000;

/// From the last fork to the beginning of the first window, where the parent is not preempted: 0.12
/// to 0.24 ms with 2 to 8 tasks, 0.26 with 16, 0.29 to 0.32 with 20, 0.43 to 0.45 with 32 and 0.55
/// with 40, so that much and for each task this much. It looks at each.
const SAMPLE_NS: Ns = 90_000;
const SAMPLE_TASK_NS: Ns = 11_000;

/// How long threads that are no tasks of the run are busy at a time.
const OTHER_RUN_NS: Ns = 20_000;

/// A run ready to be simulated.
pub(super) struct Forks {
    pub workload: Workload,
    /// CPUs of each set.
    pub masks: Vec<CpuMask>,
    /// Set of each task, in order of birth.
    pub set_of: Vec<usize>,
    /// The first child; all tasks from here on are children.
    pub child: u32,
}

impl Forks {
    pub(super) fn new(run: &Run, cpus: usize, beside: &Beside) -> Result<Self, String> {
        let mut w = Workload::new("balance", Vec::new());
        let pin = run.start_cpu.or(run.pinned());
        let pin = pin.map(|cpu| add_mask(&mut w, vec![cpu]));
        // Places of the two that come before the children.
        for name in ["runner", "parent"] {
            let number = w.programs.len() as u32;
            w.programs.push(Program {
                name: name.into(),
                ops: Vec::new(),
            });
            let process = number + 1;
            w.templates.push(TaskTemplate::new(name, number, process));
        }
        let (mut masks, mut set_of) = (Vec::new(), Vec::new());
        for (i, set) in run.sets.iter().enumerate() {
            masks.push(set.mask(cpus)?);
            add_set(&mut w, run, set, &masks[i], pin)?;
            set_of.extend(std::iter::repeat_n(i, set.count as usize));
        }
        // The parent is a new process of a runner: a new task has half a slice, and is preempted
        // 1.4 ms after it has begun to fork.
        let sleep = Op::Sleep(Dur::Const(FOREVER_NS));
        let begin = vec![Op::Fork { template: PARENT }, sleep];
        w.programs[RUNNER as usize].ops = begin;
        w.programs[PARENT as usize].ops = parent(run, &set_of);
        w.templates[PARENT as usize].affinity = pin;
        w.initial = vec![RUNNER];
        if let Some(pin) = pin.filter(|_| !w.sems.is_empty()) {
            grace_period(&mut w, run, pin);
        }
        if run.sets.iter().all(|set| set.kind == "hog") {
            for (cpu, times) in &beside.others {
                other(&mut w, run, *cpu, times);
            }
        }
        let last = run.windows.last().map_or(0.0, |w| run.since(w.t1_ns));
        w.duration = Until::Time(run.first_ns() + 2 * TICK_NS + (last * 1e9) as Ns + MS);
        w.validate()?;
        let child = w.initial.len() as u32 + 1;
        Ok(Self {
            workload: w,
            masks,
            set_of,
            child,
        })
    }
}

/// Program and template of a set's tasks.
fn add_set(
    w: &mut Workload,
    run: &Run,
    set: &Set,
    allowed: &CpuMask,
    pin: Option<u32>,
) -> Result<(), String> {
    let mask = add_mask(w, allowed.iter().map(|c| c.0).collect());
    let place = group(w, &set.cgroup, set.shares)?;
    let pinned = pin.is_some() && run.start_cpu.is_none();
    let mut first = Vec::new();
    // Whoever moves to a group waits for a grace period under the mutex of all groups.
    let enters = pin.is_some() && place != 0;
    if enters {
        w.sems = vec![0];
        first = vec![
            Op::Run(Dur::Const(ENTER_NS)),
            Op::SemWait(0),
            Op::SetCgroup(place),
            Op::SemPost(0),
        ];
    }
    // Each opens its own affinity, unless all are released together later, and sets its own nice
    // value: the parent is preempted as late beside children of nice -5 as of nice 0.
    if pinned {
        first.push(Op::SetAffinity(mask));
    }
    if set.nice != 0 {
        first.push(Op::SetNice(set.nice));
    }
    let mut ops = set.ops()?;
    for op in first.into_iter().rev() {
        ops.insert(0, op);
        shift_loops(&mut ops);
    }
    let number = w.programs.len() as u32;
    let name = format!("set{}", number - CHILD);
    let mut template = TaskTemplate::new(&name, number, PARENT);
    template.thread = true;
    template.affinity = Some(pin.unwrap_or(mask));
    template.cgroup = Some(if enters { 0 } else { place });
    w.programs.push(Program { name, ops });
    w.templates.push(template);
    Ok(())
}

/// Forks at the pace of the recording, looks at all, and sleeps.
fn parent(run: &Run, set_of: &[usize]) -> Vec<Op> {
    let mut ops = Vec::new();
    let mut paces = run.fork_pace().into_iter();
    for set in set_of {
        let template = CHILD + *set as u32;
        ops.push(Op::Fork { template });
        let pace = paces.next().unwrap_or(guest::TRACED_FORK_NS);
        ops.push(Op::Run(Dur::Const(pace)));
    }
    let sample = SAMPLE_NS + SAMPLE_TASK_NS * set_of.len() as Ns;
    ops.push(Op::Run(Dur::Const(sample)));
    ops.push(Op::Sleep(Dur::Const(FOREVER_NS)));
    ops
}

/// The end of the grace period for which the first child of a group waits; the others of groups
/// wait for that child, and go on one after the other.
fn grace_period(w: &mut Workload, run: &Run, pin: u32) {
    let tick = (run.first_ns() + HALF_SLICE_NS).next_multiple_of(TICK_NS);
    let ops = vec![Op::StartAt(tick + GRACE_TICKS * TICK_NS), Op::SemPost(0)];
    add_initial(w, "rcu", pin, ops);
}

/// Threads of the guest that are none of the run's tasks.
fn other(w: &mut Workload, run: &Run, cpu: u32, times: &[Ns]) {
    let mut ops = Vec::new();
    for after_ns in times {
        ops.push(Op::StartAt(run.first_ns() + after_ns));
        ops.push(Op::Run(Dur::Const(OTHER_RUN_NS)));
    }
    let mask = add_mask(w, vec![cpu]);
    add_initial(w, "other", mask, ops);
}

/// A task that is there from the beginning, and sleeps when it has done `ops`.
fn add_initial(w: &mut Workload, name: &str, mask: u32, mut ops: Vec<Op>) {
    ops.push(Op::Sleep(Dur::Const(FOREVER_NS)));
    let number = w.programs.len() as u32;
    let mut template = TaskTemplate::new(name, number, 0);
    template.affinity = Some(mask);
    // Timers of the kernel have no slack.
    template.timer_slack_ns = Some(1);
    w.programs.push(Program {
        name: name.into(),
        ops,
    });
    w.initial.push(w.templates.len() as u32);
    w.templates.push(template);
}

pub(super) fn add_mask(w: &mut Workload, cpus: Vec<u32>) -> u32 {
    w.masks.push(cpus);
    w.masks.len() as u32 - 1
}

/// Loops begin one operation later.
pub(super) fn shift_loops(ops: &mut [Op]) {
    for op in ops {
        if let Op::LoopEnd { start } = op {
            *start += 1;
        }
    }
}

/// The group at a path like `pla/plb`, made with its parents where it is not there yet.
pub(super) fn group(w: &mut Workload, path: &str, shares: Option<u64>) -> Result<u32, String> {
    let mut at = 0;
    let mut full = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        full = format!("{full}/{part}");
        let known = w.cgroups.iter().position(|g| g.path == full);
        at = known.unwrap_or_else(|| {
            w.cgroups.push(Cgroup::new(&full, at as u32));
            w.cgroups.len() - 1
        });
    }
    match shares {
        Some(_) if at == 0 => return Err("sets: shares of the root".into()),
        Some(shares) => w.cgroups[at].shares = shares,
        None => {}
    }
    Ok(at as u32)
}
