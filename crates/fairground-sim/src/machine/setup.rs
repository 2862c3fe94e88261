//! From a workload to groups, tasks and first events.

use std::sync::atomic::Ordering::Relaxed;

use fairground::balance::interval::start_intervals;
use fairground::math::weight::group_shares;
use fairground::policy::Features;
use fairground::rq::Rq;
use fairground::sched;
use fairground::system::System;
use fairground::topology::{CpuPlace, Machine, Topology, TopologyError};
use fairground::value::{Cpu, CpuMask, TgId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::chan::ChanState;
use super::cpu::CpuState;
use super::due::Due;
use super::idle::IdleTable;
use super::inet::InetState;
use super::ip_id::IpIdents;
use super::irq::Limit;
use super::osq::OsqNodes;
use super::queue::Queue;
use super::spin::CpuLocks;
use super::sync::Sync;
use super::turns::Turns;
use super::{Setup, Sim, time_limit};
use crate::cache::{NS, Ps};
use crate::host::{BOOT_NS, Jiffies, Mms, SimHost};
use crate::machine_file::{self, Distance};
use crate::rng::{Purpose, generator};
use crate::workload::program::PERIOD_NS_DEFAULT;
use crate::workload::program::{Cgroup, Chan, ChanKind, Inet, KERNEL_PROCESS, Until, Workload};

/// Why a workload cannot run on a machine.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetupError {
    /// The machine has no domains.
    #[error("topology: {0}")]
    Topology(#[from] TopologyError),
    /// The workload contradicts itself.
    #[error("{0}")]
    Workload(String),
    /// A mask names no CPU of the machine.
    #[error("CPU mask {mask:?} has no CPU of {machine}, which has CPUs 0-{last}")]
    NoCpu {
        /// The mask.
        mask: Vec<u32>,
        /// The machine.
        machine: String,
        /// Its last CPU.
        last: usize,
    },
    /// It would end too late.
    #[error(
        "the run would take {ends_s} s of simulated time; expected at most {most_s} s on {cpus} \
         CPUs"
    )]
    TooLong {
        /// When it would end, s.
        ends_s: u64,
        /// How long it may be, s.
        most_s: u64,
        /// CPUs of the machine.
        cpus: usize,
    },
}

/// `cpu.max` of a new group.
const NO_LIMIT: Limit = Limit {
    quota_ns: None,
    period_ns: PERIOD_NS_DEFAULT,
    burst_ns: 0,
};

/// By template, whether its process has threads (`CLONE_FILES`).
fn shares_files(workload: &Workload) -> Vec<bool> {
    let templates = &workload.templates;
    let threads = templates.iter().filter(|t| t.thread);
    let threaded: FxHashSet<u32> = threads.map(|t| t.process).collect();
    let shares = templates.iter().map(|t| threaded.contains(&t.process));
    shares.collect()
}

/// The first address space that no template names.
fn first_free_mm(workload: &Workload) -> u32 {
    let named = workload.templates.iter().map(|t| t.process);
    let named = named.filter(|process| *process != KERNEL_PROCESS);
    named.max().map_or(1, |last| last + 1)
}

fn empty_queues(sys: &System) -> Vec<Rq> {
    let queue = |cpu| Rq::new(sys, cpu, BOOT_NS);
    sys.cpus().iter().map(queue).collect()
}

fn new_host(setup: &Setup<'_>) -> SimHost {
    let layout = setup.features.layout.layout();
    let mut host = SimHost::new(setup.machine, layout, setup.seed);
    let (cpus, arch) = (setup.machine.topology.nr_cpus(), &setup.machine.arch);
    host.mms = Mms::new(cpus, arch, setup.features.mm_cpumask);
    host.counters.from_ns = setup.workload.warmup_ns;
    host.counters.trace = setup.trace.then(Vec::new);
    host
}

/// How its CPUs take turns, if they share one stream of instructions.
fn take_turns(machine: &machine_file::Machine) -> Option<Turns> {
    let cpus = machine.topology.nr_cpus();
    machine.shares_one_stream().then(|| Turns::new(cpus))
}

impl<'a> Sim<'a> {
    /// The machine with the workload's groups, and its first tasks about to be created.
    ///
    /// # Errors
    /// When the workload does not fit the machine.
    pub fn new(setup: &Setup<'a>) -> Result<Self, SetupError> {
        let (machine, workload) = (setup.machine, setup.workload);
        check(machine, workload)?;
        let host = new_host(setup);
        let topology = Topology::build(&topology_seen(machine, &setup.features))?;
        let sys = System::new(setup.features.clone(), topology);
        let cpus = machine.topology.nr_cpus();
        let mut start_rng = generator(setup.seed, Purpose::Start);
        let tick = sys.features.tick_ns() * NS;
        let mut sim = Self {
            rqs: empty_queues(&sys),
            sys,
            host,
            workload,
            marks: workload.empty_marks(),
            tasks: Vec::new(),
            born: Vec::new(),
            cpus: (0..cpus).map(|_| CpuState::new()).collect(),
            queue: Queue::new(cpus),
            now: 0,
            moving: Vec::with_capacity(64),
            timers: FxHashMap::default(),
            chans: Vec::new(),
            shares_files: shares_files(workload),
            inets: Vec::new(),
            ip_idents: IpIdents::default(),
            osq_nodes: OsqNodes::default(),
            slabs: super::slab::Slabs::default(),
            cpu_locks: Vec::new(),
            sync: Sync::new(workload),
            user: super::user::Shared::new(workload, machine),
            idle: IdleTable::new(machine),
            distance: machine.topology.clone(),
            ipi: Distance::ALL.map(|d| ipi_latency(machine, d)),
            transfer: Distance::ALL.map(|d| (machine.transfer_ns(d) * NS as f64) as Ps),
            tick,
            warmup: workload.warmup_ns * NS,
            turns: take_turns(machine),
            tick_phase: start_rng.below(tick),
            do_timer: None,
            jiffies: 0,
            groups: vec![TgId::ROOT],
            limits: vec![NO_LIMIT],
            cpuset: vec![CpuMask::first_n(cpus)],
            start_rng,
            living: 0,
            next_mm: first_free_mm(workload),
            warm: workload.warmup_ns == 0,
            milestone: 0,
            warm_stats: Vec::new(),
            has_real_time: workload.has_real_time(),
            rt_spread: 0,
            settled_at: 0,
            ends_at: None,
            seed: setup.seed,
            fetched: 0,
            ended: false,
            watch: None,
            events: 0,
        };
        sim.idle_since_boot(machine);
        if sim.make_groups() {
            sim.host = new_host(setup).continuing(sim.host);
        }
        sim.make_channels();
        sim.first_events();
        sim.host.clear_counters();
        sim.milestone = sim.next_milestone();
        Ok(sim)
    }

    /// All CPUs alike.
    fn idle_since_boot(&mut self, machine: &machine_file::Machine) {
        self.settle_from_start();
        let mut lengths = generator(self.seed, Purpose::HostGaps);
        for cpu in &mut self.cpus {
            cpu.gaps = super::gaps::Gaps::new(machine, &mut self.start_rng, &mut lengths);
        }
        for rq in &mut self.rqs {
            rq.idle_stamp = 1;
            rq.publish(&self.sys);
        }
    }

    fn make_channels(&mut self) {
        let (cache, features) = (&mut self.host.cache, &self.sys.features);
        let chans = self.workload.chans.iter();
        self.chans = chans.map(|c| ChanState::new(c, cache, features)).collect();
        let pipe = |c: &Chan| matches!(c.kind, ChanKind::Pipe { .. });
        let pipes = self.workload.chans.iter().any(pipe);
        self.osq_nodes = OsqNodes::new(pipes, self.cpus.len(), cache);
        let numbered = |i: &Inet| matches!(i, Inet::Udp { connected, .. } if !connected);
        self.ip_idents = IpIdents::new(self.workload.inets.iter().any(numbered), cache);
        let inets = self.workload.inets.iter();
        self.inets = inets.map(|kind| InetState::new(*kind, cache)).collect();
        let sets = 0..self.workload.n_cpu_locks;
        self.cpu_locks = sets.map(|_| CpuLocks::default()).collect();
    }

    /// The workload's groups, made and limited long before its first task; whether a limit was
    /// written. Each write goes through all queues, which takes time that is not of the run: a
    /// thousand limits would hold the queues' locks for its first 100 ms.
    fn make_groups(&mut self) -> bool {
        for (i, group) in self.workload.cgroups.iter().enumerate().skip(1) {
            let parent = self.groups[group.parent as usize];
            let tg = self.sys.add_group(parent);
            self.groups.push(tg);
            let mask = self.allowed_in(group);
            self.cpuset.push(mask);
            debug_assert_eq!(self.groups.len(), i + 1);
            self.sys.tg[tg.idx()]
                .shares
                .store(group_shares(group.shares), Relaxed);
            if group.idle {
                self.sys.tg[tg.idx()].set_idle(true);
            }
            let limit = Limit {
                quota_ns: group.quota_ns,
                period_ns: group.period_ns,
                burst_ns: group.burst_ns,
            };
            self.limits.push(limit);
            if group.quota_ns.is_some() {
                self.host.begin(0, 0);
                let done = self.set_limit(i as u32);
                debug_assert!(done.is_ok(), "validated: {done:?}");
                let group = &self.sys.tg[tg.idx()];
                group.with_pool(&mut self.host, |pool| {
                    // The burst is a file of its own, and each write fills the pool once more.
                    if let Some(quota) = limit.quota_ns.filter(|_| limit.burst_ns > 0) {
                        pool.configure(quota, limit.period_ns, limit.burst_ns);
                    }
                    // Two periods without a task, and the timer rests. The first task to draw
                    // starts it, where it runs.
                    pool.rearm_period(true);
                });
            }
        }
        self.host.requests.clear();
        self.limits.iter().any(|limit| limit.quota_ns.is_some())
    }

    fn allowed_in(&self, group: &Cgroup) -> CpuMask {
        let above = self.cpuset[group.parent as usize];
        let Some(mask) = group.cpuset else {
            return above;
        };
        let own: CpuMask = self.workload.masks[mask as usize]
            .iter()
            .map(|c| Cpu(*c))
            .collect();
        // A cpuset without a CPU of its parent falls back to the parent's, as cgroup v2 does.
        let both = own.and(&above);
        if both.is_empty() { above } else { both }
    }

    /// All CPUs idle for long, without a tick, the initial tasks forked by an init that is not
    /// modelled, one after the other on a CPU chosen at random, and the events of the workload.
    fn first_events(&mut self) {
        let cpus = self.cpus.len() as u64;
        self.host.jiffies = Jiffies::from_phase(self.tick_phase);
        self.host.begin(0, 0);
        let now = self.jiffies_now();
        let mut phases = generator(self.seed, Purpose::BalancePhase);
        start_intervals(&self.sys, now, &mut self.host, |n| phases.below(n));
        for cpu in 0..self.cpus.len() as u32 {
            self.host.begin(cpu, 0);
            self.has_been_idle(cpu);
            self.cpus[cpu as usize].nohz = true;
            self.engine(sched::nohz_enter_idle);
        }
        self.host.requests.clear();
        let first = self.start_rng.below(cpus) as u32;
        for template in self.workload.initial.clone() {
            self.create_initial(template, first);
        }
        for (i, event) in self.workload.events.iter().enumerate() {
            self.queue
                .push(event.at_ns * NS, Due::Write { event: i as u32 });
        }
        if let Until::Time(ns) = self.workload.duration {
            self.queue.push(ns * NS, Due::End);
        }
    }
}

/// Whether the workload fits the machine.
fn check(machine: &machine_file::Machine, workload: &Workload) -> Result<(), SetupError> {
    workload.validate().map_err(SetupError::Workload)?;
    check_masks(machine, workload)?;
    time_limit::check(workload.duration, machine.topology.nr_cpus())
}

fn check_masks(machine: &machine_file::Machine, workload: &Workload) -> Result<(), SetupError> {
    let cpus = machine.topology.nr_cpus();
    let bad = workload
        .masks
        .iter()
        .find(|m| m.iter().all(|c| *c as usize >= cpus));
    match bad {
        None => Ok(()),
        Some(mask) => Err(SetupError::NoCpu {
            mask: mask.clone(),
            machine: machine.id.clone(),
            last: cpus - 1,
        }),
    }
}

/// The scheduler's view of a machine file.
pub fn topology_of(machine: &machine_file::Machine) -> Machine {
    let place = |p: &machine_file::CpuPlace| CpuPlace {
        core: p.core,
        cluster: p.cluster,
        llc: p.llc,
        package: p.socket,
        node: p.numa_node,
        capacity: p.capacity,
    };
    Machine {
        cpus: machine.topology.cpus.iter().map(place).collect(),
        distance: machine.topology.slit.clone(),
        // The kernel raises the limit on AMD EPYC, whose sockets are 32 apart.
        reclaim_distance: if machine.uarch.starts_with("Zen") {
            32
        } else {
            30
        },
    }
}

/// The places of the CPUs as a kernel with these features sees them.
fn topology_seen(machine: &machine_file::Machine, features: &Features) -> Machine {
    let mut seen = topology_of(machine);
    for place in &mut seen.cpus {
        place.cluster = features.cluster_of(place.cluster, place.core);
    }
    seen
}

/// From sending an interrupt to its handler. The one public figure mixes distances; its note gives
/// 600 to 800 ns inside a socket and 1000 to 1500 across as plausible, so 700 to the mean is the
/// share that is taken within a socket.
fn ipi_latency(machine: &machine_file::Machine, distance: Distance) -> Ps {
    let mixed = machine.kernel_op_ns("ipi_to_handler").unwrap_or(1243.0);
    let near = machine.topology.nr_sockets() > 1 && distance != Distance::CrossSocket;
    let ns = if near { mixed * 700.0 / 1243.0 } else { mixed };
    (ns * NS as f64).round() as Ps
}
