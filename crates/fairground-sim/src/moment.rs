//! A run at one moment, in the words of the kernel's own files: `/proc/schedstat` and
//! `/sys/kernel/debug/sched/debug`. Times in the latter are in milliseconds, as there.
use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use fairground::place::Func;
use fairground::rq::{CfsRq, Rq};
use fairground::task::SchedEntity;
use fairground::value::{CfsId, Cpu, SeId, TaskId, TgId};

use crate::cache::NS;
use crate::exact::Exact;
use crate::host::{BOOT_NS, Place};
use crate::machine::{Setup, Sim};
use crate::outcome::RunError;
use crate::schedstat::SchedStats;

/// The files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// `/proc/schedstat`, version 17.
    pub schedstat: String,
    /// `/sys/kernel/debug/sched/debug`.
    pub debug: String,
}

/// Runs `setup` up to `at_ns` (its end if that is earlier). `name` has a name and a number for
/// each task, from its template.
///
/// # Errors
/// As a run.
pub fn at(
    setup: &Setup<'_>,
    exact: &Exact,
    at_ns: u64,
    name: &dyn Fn(TaskId, u32) -> (String, u32),
) -> Result<Moment, RunError> {
    let mut sim = Sim::new(&Setup {
        trace: true,
        ..setup.clone()
    })?;
    exact.apply(&mut sim)?;
    let mut stats = SchedStats::new(&sim);
    let calls = |sim: &Sim<'_>| {
        let calls = |f: Func| sim.host.profile.calls(Place::Func(f));
        (calls(Func::YieldTask), calls(Func::Schedule))
    };
    while !sim.has_ended() && sim.is_due_before(at_ns) {
        let before = calls(&sim);
        sim.one_event()?;
        let after = calls(&sim);
        // An event is of one CPU. (The end of a warm-up sets the counters back.)
        let row = &mut stats.cpus[sim.host.cpu as usize];
        row.yields += after.0.saturating_sub(before.0);
        row.schedules += after.1.saturating_sub(before.1);
    }
    let at_ns = at_ns.min(sim.now / NS);
    stats.count(&sim);
    let templates = sim.templates();
    let who = |task: TaskId| name(task, templates.get(task.idx()).copied().unwrap_or(0));
    Ok(Moment {
        schedstat: stats.text(&sim, at_ns),
        debug: debug(&sim, &who, at_ns),
    })
}

fn ms(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}

/// The sign is that of the milliseconds, as in the kernel's file: a queue without a task shows its
/// -1 as `0.000001`.
fn signed_ms(ns: i64) -> String {
    let sign = if ns <= -1_000_000 { "-" } else { "" };
    format!("{sign}{}", ms(ns.unsigned_abs()))
}

fn field(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "  .{name:<30}: {value}");
}

fn debug(sim: &Sim<'_>, who: &dyn Fn(TaskId) -> (String, u32), at_ns: u64) -> String {
    let features = &sim.sys.features;
    let clock = at_ns + BOOT_NS;
    let mut text = String::from("Sched Debug Version: v0.11, fairground\n");
    for (name, value) in [
        ("ktime", ms(clock)),
        ("sched_clk", ms(clock)),
        ("cpu_clk", ms(clock)),
        ("jiffies", features.jiffies(clock).to_string()),
    ] {
        let _ = writeln!(text, "{name:<40}: {value}");
    }
    for rq in &sim.rqs {
        text.push('\n');
        cpu(sim, rq, who, &mut text);
    }
    text
}

fn cpu(sim: &Sim<'_>, rq: &Rq, who: &dyn Fn(TaskId) -> (String, u32), text: &mut String) {
    let n = rq.cpu.0;
    let curr = sim.cpus[rq.cpu.idx()].curr.map_or(0, |task| who(task).1);
    let _ = writeln!(text, "cpu#{n}");
    field(text, "nr_running", rq.nr_running);
    field(text, "nr_switches", rq.nr_switches);
    field(text, "curr->pid", curr);
    field(text, "clock", ms(rq.clock.clock));
    field(text, "avg_idle", rq.avg_idle);
    for (id, queue) in (0..).map(CfsId).zip(&rq.cfs) {
        if queue.nr_queued > 0 || id.0 == 0 || queue.on_list {
            text.push('\n');
            cfs_rq(sim, rq, queue, id, text);
        }
    }
    let _ = writeln!(
        text,
        "\nrunnable tasks:\n S            task   PID       vruntime   eligible    deadline      \
         slice          sum-exec  prio   group-path\n{}",
        "-".repeat(103)
    );
    for slot in 0..rq.se.len() {
        let se = &rq.se[slot];
        if !se.on_rq || se.my_q.is_some() {
            continue;
        }
        let id = SeId(slot as u32);
        let nice = rq.body[slot].as_ref().map_or(0, |body| body.nice);
        let row = TaskRow {
            runs: rq.curr == Some(id),
            who: who(rq.task_id(id)),
            se,
            eligible: eligible(rq, id),
            sum_exec_ns: se.sum_exec_runtime,
            prio: 120 + i32::from(nice),
            tg: rq.cfs[se.cfs_rq.idx()].tg,
        };
        row.write(sim, text);
    }
    real_time_tasks(sim, rq.cpu, who, text);
}

/// Those of the real-time class, which the engine's queues do not have: who runs, then who waits.
fn real_time_tasks(
    sim: &Sim<'_>,
    cpu: Cpu,
    who: &dyn Fn(TaskId) -> (String, u32),
    text: &mut String,
) {
    let here = &sim.cpus[cpu.idx()];
    for task in here.curr.into_iter().chain(here.rt.waiting()) {
        let parked = sim.host.parked[task.idx()].as_ref();
        let (Some(rt), Some(body)) = (sim.real_time(task), parked) else {
            continue;
        };
        let row = TaskRow {
            runs: here.curr == Some(task),
            who: who(task),
            se: &body.se,
            // By a vruntime that never grows.
            eligible: true,
            sum_exec_ns: body.se.sum_exec_runtime + sim.uncharged_ns(task, sim.now),
            prio: 99 - i32::from(rt.priority),
            tg: body.body.tg,
        };
        row.write(sim, text);
    }
}

/// A row of "runnable tasks".
struct TaskRow<'a> {
    runs: bool,
    who: (String, u32),
    se: &'a SchedEntity,
    eligible: bool,
    sum_exec_ns: u64,
    /// As in the kernel: 0 to 98 of real-time tasks, the most urgent first, 120 of nice 0.
    prio: i32,
    tg: TgId,
}

impl TaskRow<'_> {
    fn write(&self, sim: &Sim<'_>, text: &mut String) {
        let (name, tid) = &self.who;
        let _ = writeln!(
            text,
            "{}{name:>15} {tid:>5} {:>14} {:>10} {:>11} {:>10} {:>17} {:>5}   {}",
            if self.runs { ">R" } else { " R" },
            signed_ms(self.se.vruntime as i64),
            if self.eligible { 'E' } else { 'N' },
            signed_ms(self.se.deadline as i64),
            ms(self.se.slice_ns),
            ms(self.sum_exec_ns),
            self.prio,
            sim.group_path(self.tg),
        );
    }
}

fn eligible(rq: &Rq, id: SeId) -> bool {
    crate::explain::eligible(rq, id)
}

fn cfs_rq(sim: &Sim<'_>, rq: &Rq, q: &CfsRq, id: CfsId, text: &mut String) {
    // Those of the tree: who runs is not in it.
    let curr = q.curr.map(|se| se.idx());
    let queued = rq
        .se
        .iter()
        .enumerate()
        .filter(|(i, s)| s.on_rq && s.cfs_rq == id && Some(*i) != curr);
    let keys: Vec<i64> = queued.map(|(_, s)| s.vruntime as i64).collect();
    let (left, right) = (keys.iter().min(), keys.iter().max());
    let _ = writeln!(text, "cfs_rq[{}]:{}", rq.cpu.0, sim.group_path(q.tg));
    field(text, "left_vruntime", signed_ms(*left.unwrap_or(&-1)));
    field(text, "zero_vruntime", signed_ms(q.zero_vruntime as i64));
    field(text, "right_vruntime", signed_ms(*right.unwrap_or(&-1)));
    let spread = right.zip(left).map_or(0, |(r, l)| r - l);
    field(text, "spread", signed_ms(spread));
    field(text, "nr_queued", q.nr_queued);
    field(text, "h_nr_runnable", q.h_nr_runnable);
    field(text, "h_nr_queued", q.h_nr_queued);
    field(text, "h_nr_idle", q.h_nr_idle);
    field(text, "load", q.load.weight);
    field(text, "load_avg", q.avg.load_avg);
    field(text, "runnable_avg", q.avg.runnable_avg);
    field(text, "util_avg", q.avg.util_avg);
    if id.0 == 0 {
        field(
            text,
            "util_est",
            sim.sys.cpu[rq.cpu.idx()].util_est.load(Relaxed),
        );
    }
    field(text, "tg_load_avg_contrib", q.tg_load_avg_contrib);
    field(
        text,
        "tg_load_avg",
        sim.sys.tg[TgId::idx(q.tg)].peek_load_avg(),
    );
    field(text, "throttled", u32::from(q.throttled));
    field(text, "throttle_count", q.throttle_count);
    if let Some(se) = q.se.map(|se| &rq.se[se.idx()]) {
        field(text, "se->exec_start", ms(se.exec_start));
        field(text, "se->vruntime", signed_ms(se.vruntime as i64));
        field(text, "se->sum_exec_runtime", ms(se.sum_exec_runtime));
        field(text, "se->load.weight", se.load.weight);
        field(text, "se->avg.load_avg", se.avg.load_avg);
        field(text, "se->avg.util_avg", se.avg.util_avg);
        field(text, "se->avg.runnable_avg", se.avg.runnable_avg);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_is_that_of_the_milliseconds() {
        assert_eq!(signed_ms(-1), "0.000001");
        assert_eq!(signed_ms(-1_500_000), "-1.500000");
        assert_eq!(signed_ms(2_000_001), "2.000001");
    }
}
