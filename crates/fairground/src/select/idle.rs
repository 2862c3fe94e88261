//! An idle CPU near a target: the fast path of a wake-up (`select_idle_sibling`).
//!
//! Sources: changelogs of 4.9 (the search), 4.16 (`recent_used_cpu`), 5.12 (one pass for cores
//! and CPUs), 6.0 (`SIS_UTIL`), 6.7 (clusters); titles in `SOURCES.md`.

use super::Wakee;
use super::capacity::{asym_domain, asym_fits_cpu, select_idle_capacity};
use super::idle_core::{set_idle_cores, test_idle_cores};
use super::probe::{available_idle_cpu, runs_at_once, sched_idle_cpu};
use super::touch_domain;
use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, Func, Kind, Object, rq, sd as sd_f};
use crate::policy::{RecentUsedCpu, ScanLimit};
use crate::shared::Relaxed;
use crate::topology::SchedDomain;
use crate::value::{Cpu, CpuMask, TaskId};

/// The best CPU in the cache domain of `target`; `target` itself if none is idle.
pub(super) fn select_idle_sibling<H: Host>(
    cx: &mut Cx<H>,
    wakee: &Wakee,
    prev: Cpu,
    target: Cpu,
) -> Cpu {
    cx.span(Func::SelectIdleSibling, |cx| {
        if runs_at_once(cx, target) && asym_fits_cpu(cx, wakee, target) {
            return target;
        }
        let shares_cache = cx.sys.topology.share_cache(prev, target);
        let mut near_prev = None;
        if prev != target
            && shares_cache
            && runs_at_once(cx, prev)
            && asym_fits_cpu(cx, wakee, prev)
        {
            if share_cluster(cx, prev, target) {
                return prev;
            }
            near_prev = Some(prev);
        }
        // Here a per-CPU kernel thread would let its wakee stack on top of it.
        let rule = cx.features().recent_used_cpu;
        let recent = rule
            .is_on()
            .then(|| recent_used_cpu(cx, rule, wakee, prev, target))
            .flatten();
        if let Some(recent) = recent
            && share_cluster(cx, recent, target)
        {
            return recent;
        }
        if cx.sys.traits.asym_capacity
            && let Some(sd) = asym_domain(&cx.sys.topology, target)
        {
            return select_idle_capacity(cx, wakee, sd, target).unwrap_or(target);
        }
        let Some(sd) = cx.sys.topology.llc_domain(target) else {
            return target;
        };
        if cx.sys.traits.smt && cx.features().scan_budget.wants_whole_cores() {
            return idle_core_or_thread(cx, wakee, sd, target).unwrap_or(target);
        }
        if cx.features().idle_search.has_passes() {
            return core_cpu_or_thread(cx, wakee, sd, target).unwrap_or(target);
        }
        let mut idle_cores = false;
        if cx.sys.traits.smt {
            idle_cores = test_idle_cores(cx, target);
            if !idle_cores
                && shares_cache
                && let Some(cpu) = select_idle_smt(cx, wakee, sd, prev)
            {
                return cpu;
            }
        }
        let found = select_idle_cpu(cx, wakee, sd, idle_cores, target);
        found.or(near_prev).or(recent).unwrap_or(target)
    })
}

/// The CPU that the task remembers, if it could run there at once; what it remembers next is by
/// decision.
fn recent_used_cpu<H: Host>(
    cx: &mut Cx<H>,
    rule: RecentUsedCpu,
    wakee: &Wakee,
    prev: Cpu,
    target: Cpu,
) -> Option<Cpu> {
    let words = &cx.sys.task[wakee.id.idx()];
    let always = rule.remembers_prev(false);
    touch_recent(cx, wakee.id, always);
    let recent = Cpu(words.recent_used_cpu.load(Relaxed));
    let taken = recent != prev
        && recent != target
        && recent.idx() < cx.sys.nr_cpus()
        && cx.sys.topology.share_cache(recent, target)
        && runs_at_once(cx, recent)
        && wakee.allowed.has(recent)
        && asym_fits_cpu(cx, wakee, recent);
    if rule.remembers_prev(taken) {
        words.recent_used_cpu.store(prev.0, Relaxed);
        if !always {
            touch_recent(cx, wakee.id, true);
        }
    }
    taken.then_some(recent)
}

fn touch_recent<H: Host>(cx: &mut Cx<H>, task: TaskId, written: bool) {
    let object = Object {
        kind: Kind::Task,
        a: task.0,
        b: 0,
    };
    let access = if written {
        Access::Update
    } else {
        Access::Read
    };
    cx.touch(object, crate::place::task::CPU, access);
}

/// After a wake-up by way of the caches that may pull the wakee: by decision the waker remembers
/// this CPU. The idle task remembers nothing that anybody asks for.
pub(super) fn remember_waking<H: Host>(cx: &mut Cx<H>, waker: Option<TaskId>) {
    if let Some(waker) = waker.filter(|_| cx.features().recent_used_cpu.remembers_waking()) {
        let words = &cx.sys.task[waker.idx()];
        words.recent_used_cpu.store(cx.cpu.0, Relaxed);
        touch_recent(cx, waker, true);
    }
}

/// Whether an idle CPU near the target is as good as the target: always, but where clusters
/// within the cache domain share something closer.
fn share_cluster<H: Host>(cx: &Cx<H>, cpu: Cpu, target: Cpu) -> bool {
    if !cx.features().idle_search.knows_clusters() {
        return true;
    }
    let topology = &cx.sys.topology;
    let clustered = |cpu: Cpu| topology.cluster_of[cpu.idx()].weight() > 1;
    !cx.sys.traits.clusters
        || topology.cluster_of[target.idx()].has(cpu)
        || !clustered(cpu) && !clustered(target)
}

/// An idle thread of the core of `cpu`, other than `cpu`.
fn select_idle_smt<H: Host>(
    cx: &mut Cx<H>,
    wakee: &Wakee,
    sd: &SchedDomain,
    cpu: Cpu,
) -> Option<Cpu> {
    let siblings = cx.sys.topology.smt_of[cpu.idx()].and(wakee.allowed);
    let mut siblings = siblings.iter().filter(|&c| c != cpu && sd.span.has(c));
    siblings.find(|&c| runs_at_once(cx, c))
}

/// The first CPU of a core that is idle as a whole, or else an idle thread of the target's core:
/// nothing is remembered, and an idle thread beside a busy one elsewhere is not found.
fn idle_core_or_thread<H: Host>(
    cx: &mut Cx<H>,
    wakee: &Wakee,
    sd: &SchedDomain,
    target: Cpu,
) -> Option<Cpu> {
    let outer = cx.host.enter(Func::SelectIdleCpu);
    touch_domain(cx, target, sd);
    let mut seen = CpuMask::empty();
    let mut found = None;
    cx.host.begin_scan();
    for cpu in sd.span.iter_wrap(target) {
        if seen.has(cpu) {
            continue;
        }
        let threads = &cx.sys.topology.smt_of[cpu.idx()];
        threads.iter().for_each(|c| seen.set(c));
        cx.host.next_turn();
        let idle = !threads.has(target) && threads.iter().all(|c| available_idle_cpu(cx, c));
        found = threads.and(wakee.allowed).first().filter(|_| idle);
        if found.is_some() {
            break;
        }
    }
    cx.host.end_scan();
    let found = found.or_else(|| select_idle_smt(cx, wakee, sd, target));
    cx.host.leave(outer);
    found
}

/// Three passes: for an idle core, if there is said to be one; for a CPU among those that the
/// budget allows to look at, from the target on; and for a thread of the target's core.
fn core_cpu_or_thread<H: Host>(
    cx: &mut Cx<H>,
    wakee: &Wakee,
    sd: &SchedDomain,
    target: Cpu,
) -> Option<Cpu> {
    let outer = cx.host.enter(Func::SelectIdleCpu);
    touch_domain(cx, target, sd);
    let cpus = sd.span.and(wakee.allowed);
    let mut found = None;
    if cx.sys.traits.smt && test_idle_cores(cx, target) {
        found = first_idle_core(cx, &cpus, target);
        if found.is_none() {
            set_idle_cores(cx, target, false);
        }
    }
    if found.is_none() && !cpus.is_empty() {
        let scan = Scan {
            cpus,
            left: scan_limit(cx, sd, target, false).unwrap_or(0),
            idle_cores: false,
            spare: None,
        };
        found = scan_domain(cx, scan, target, target);
    }
    if found.is_none() && cx.sys.traits.smt {
        found = select_idle_smt(cx, wakee, sd, target);
    }
    cx.host.leave(outer);
    found
}

/// The first CPU of `cpus`, from `target` on, all threads of whose core are idle.
fn first_idle_core<H: Host>(cx: &mut Cx<H>, cpus: &CpuMask, target: Cpu) -> Option<Cpu> {
    let mut left = *cpus;
    cx.host.begin_scan();
    let found = cpus.iter_wrap(target).find(|&cpu| {
        if !left.has(cpu) {
            return false;
        }
        cx.host.next_turn();
        let threads = &cx.sys.topology.smt_of[cpu.idx()];
        left = left.and_not(threads);
        threads.iter().all(|thread| available_idle_cpu(cx, thread))
    });
    cx.host.end_scan();
    found
}

/// An idle core, if there is said to be one, or an idle CPU among those that the budget allows
/// to look at, from `target + 1` on, the target's cluster first.
fn select_idle_cpu<H: Host>(
    cx: &mut Cx<H>,
    wakee: &Wakee,
    sd: &SchedDomain,
    idle_cores: bool,
    target: Cpu,
) -> Option<Cpu> {
    let outer = cx.host.enter(Func::SelectIdleCpu);
    touch_domain(cx, target, sd);
    let cpus = sd.span.and(wakee.allowed);
    let found = match scan_limit(cx, sd, target, idle_cores) {
        Some(left) if !cpus.is_empty() => {
            let scan = Scan {
                cpus,
                left,
                idle_cores,
                spare: None,
            };
            scan_domain(cx, scan, target, Cpu(target.0 + 1))
        }
        _ => None,
    };
    cx.host.leave(outer);
    found
}

/// How many CPUs may be looked at; `None` = not worth looking.
fn scan_limit<H: Host>(
    cx: &mut Cx<H>,
    sd: &SchedDomain,
    target: Cpu,
    idle_cores: bool,
) -> Option<u32> {
    let budget = cx.features().scan_budget;
    let (mut avg_idle, mut avg_cost) = (0, 0);
    if budget.measures_scans() {
        if idle_cores {
            return Some(u32::MAX);
        }
        let this = cx.cpu;
        cx.read_rq(this, rq::AVG_IDLE);
        avg_idle = cx.sys.cpu[this.idx()].avg_idle.load(Relaxed);
        let own = cx.sys.topology.llc_domain(this);
        avg_cost = own.map_or(0, |sd| sd.state.avg_scan_cost.load(Relaxed));
    }
    match budget.limit(sd.weight, avg_idle, avg_cost) {
        ScanLimit::Cpus(n) => Some(n),
        ScanLimit::OfCache => {
            let llc = cx.sys.topology.llc_of[target.idx()];
            let n = cx.sys.llc[llc.idx()].nr_idle_scan(llc, cx.host);
            (n > 0).then_some(n)
        }
    }
}

/// State of one scan.
struct Scan {
    /// CPUs not yet ruled out.
    cpus: CpuMask,
    /// CPUs that may still be looked at; cores are not counted.
    left: u32,
    /// Look for whole cores.
    idle_cores: bool,
    /// An idle thread of a busy core, in case there is no idle core.
    spare: Option<Cpu>,
}

/// End of a part of a scan.
enum Scanned {
    Found(Cpu),
    OutOfBudget,
    Nothing,
}

fn scan_domain<H: Host>(cx: &mut Cx<H>, mut scan: Scan, target: Cpu, from: Cpu) -> Option<Cpu> {
    let measured = cx.features().scan_budget.measures_scans() && !scan.idle_cores;
    let start = if measured { cx.host.clock() } else { 0 };
    let mut end = Scanned::Nothing;
    cx.host.begin_scan();
    if let Some(cluster) = target_cluster(cx, target) {
        end = scan_cpus(cx, &mut scan, cluster, from);
        scan.cpus = scan.cpus.and_not(cluster);
    }
    if matches!(end, Scanned::Nothing) {
        let all = scan.cpus;
        end = scan_cpus(cx, &mut scan, &all, from);
    }
    cx.host.end_scan();
    // Who has run out of its budget leaves without a look at the clock.
    if measured && !matches!(end, Scanned::OutOfBudget) {
        account_scan(cx, start);
    }
    match end {
        Scanned::Found(cpu) => Some(cpu),
        Scanned::OutOfBudget => None,
        Scanned::Nothing => {
            if scan.idle_cores {
                set_idle_cores(cx, target, false);
            }
            scan.spare
        }
    }
}

/// The target's cluster, where its cache domain consists of clusters.
fn target_cluster<'a, H: Host>(cx: &Cx<'a, H>, target: Cpu) -> Option<&'a CpuMask> {
    let topology = &cx.sys.topology;
    let below = topology.sd_llc[target.idx()]?.checked_sub(1)?;
    let child = &topology.domains[target.idx()][below];
    let scans = cx.features().idle_search.knows_clusters() && cx.sys.traits.clusters;
    (scans && child.flags.cluster).then_some(&child.span)
}

/// Looks at the CPUs of `among` that are left, in ascending order from `from` on.
fn scan_cpus<H: Host>(cx: &mut Cx<H>, scan: &mut Scan, among: &CpuMask, from: Cpu) -> Scanned {
    for cpu in among.iter_wrap(from) {
        // The threads of a core that was looked at are ruled out together.
        if !scan.cpus.has(cpu) {
            continue;
        }
        cx.host.next_turn();
        if scan.idle_cores {
            if select_idle_core(cx, scan, cpu) {
                return Scanned::Found(cpu);
            }
            continue;
        }
        // Ends at the limit itself, without another look: a limit of n means n CPUs.
        if scan.left == 0 {
            return Scanned::OutOfBudget;
        }
        scan.left -= 1;
        if runs_at_once(cx, cpu) {
            return Scanned::Found(cpu);
        }
    }
    Scanned::Nothing
}

/// Whether all threads of the core of `cpu` are idle. If not, remembers the first that could be
/// used, and rules out the others.
fn select_idle_core<H: Host>(cx: &mut Cx<H>, scan: &mut Scan, cpu: Cpu) -> bool {
    let threads = &cx.sys.topology.smt_of[cpu.idx()];
    let mut idle = true;
    for thread in threads.iter() {
        if available_idle_cpu(cx, thread) {
            if scan.spare.is_none() && scan.cpus.has(thread) {
                scan.spare = Some(thread);
            }
            continue;
        }
        idle = false;
        if scan.spare.is_some() {
            break;
        }
        if sched_idle_cpu(cx, thread) && scan.cpus.has(thread) {
            scan.spare = Some(thread);
            break;
        }
    }
    if !idle {
        scan.cpus = scan.cpus.and_not(threads);
    }
    idle
}

/// Follows the time of a scan with an eighth of the difference (`update_avg`).
fn account_scan<H: Host>(cx: &mut Cx<H>, start: u64) {
    let took = cx.host.clock().saturating_sub(start);
    if let Some(sd) = cx.sys.topology.llc_domain(cx.cpu) {
        let cost = &sd.state.avg_scan_cost;
        let old = cost.load(Relaxed);
        let diff = (took as i64).wrapping_sub(old as i64) / 8;
        cost.store(old.wrapping_add_signed(diff), Relaxed);
        let object = Object {
            kind: Kind::Sd,
            a: cx.cpu.0,
            b: sd.level,
        };
        cx.touch(object, sd_f::NEWIDLE, Access::Update);
    }
}
