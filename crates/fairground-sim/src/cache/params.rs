//! The machine's figures, rounded once to integers.

use super::kinds::Place;
use super::{Access, Cost, HwThread, MissClass, Ps};
use crate::machine_file::{CacheLevel, CpuPlace, Distance, Machine};

/// Store misses that a hardware thread can have outstanding before it stalls. An assumption:
/// current cores have 44 to 112 entries, which their two threads divide while both run.
pub const STORE_BUFFER: usize = 50;

/// Switches and free parameters of the model. The defaults are used for every experiment;
/// others are for sensitivity runs and for checks of single mechanisms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Longer service when very many requests queue on one line, where the machine file has
    /// `atomics.ingress_limit`.
    pub knee: bool,
    /// How long a load that another domain or core must answer keeps a line busy, in thousandths
    /// of an update: as long, for both wait for the same answer of the owner, and the directory
    /// lets no other request for the line pass meanwhile. Loads of a copy in the own L3 do not.
    pub load_occupancy_permille: u32,
    /// Part of a load miss that out-of-order execution hides, ns. Measured on one machine.
    pub load_overlap_ns: f64,
    /// Part of a missed atomic update that out-of-order execution hides, ns.
    pub rmw_overlap_ns: f64,
    /// Capacity of private caches in thousandths of their size.
    pub private_capacity_permille: u32,
    /// Capacity of the L3 in thousandths of its size.
    pub l3_capacity_permille: u32,
    /// Charge hits of loads and stores. Code whose instructions are charged by themselves has its
    /// hits there: they are pipelined, and what it waits for is the misses and atomic updates.
    pub hits: bool,
    /// Hand-overs differ from line to line and pair to pair within the range of the machine file.
    pub spread: bool,
    /// Charge updates as LL/SC loops (`atomics.llsc_service`), for aarch64 without LSE.
    pub llsc: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            knee: true,
            load_occupancy_permille: 1000,
            load_overlap_ns: 30.0,
            rmw_overlap_ns: 0.0,
            private_capacity_permille: 1000,
            l3_capacity_permille: 1000,
            hits: true,
            spread: true,
            llsc: false,
        }
    }
}

pub(super) struct Core {
    pub llc: u32,
    node: u32,
}

/// See the accessors of [`Machine`] for the fallback rules.
pub(super) struct Params {
    /// Core and thread of each CPU.
    pub cpu: Vec<HwThread>,
    pub cores: Vec<Core>,
    /// From core to core, row by row.
    distances: Vec<Distance>,
    /// One core of each L3 domain.
    pub llc_core: Vec<usize>,
    pub nr_llcs: usize,
    pub nr_nodes: usize,
    pub line_bytes: u64,
    pub l1: Ps,
    pub l2: Ps,
    pub llc: Ps,
    /// Cost of a hit by `Access`.
    pub hit_ps: [u32; 4],
    /// What a hit would cost beyond that.
    pub free_hits: [Ps; 4],
    /// How long a core has a line at least that has come to it: whoever is next has to ask it, by
    /// the line's home. 0 where that was not measured.
    tenure: Ps,
    /// Added to an atomic update of a line that the sibling thread updated last.
    pub smt_extra: Ps,
    /// By `Distance`.
    pub transfer: [Ps; 5],
    pub load_hit: [Ps; 5],
    pub load_hitm: [Ps; 5],
    pub service: [Ps; 5],
    pub load_service: [Ps; 5],
    /// Extra when the line's home is the reader's node and the writer is on another socket.
    pub home_at_reader: Ps,
    /// Stores of a thread are seen in their order, and an atomic update waits for all before it:
    /// x86 (TSO).
    pub stores_in_order: bool,
    /// Updates execute at the home, with this service time.
    pub far_atomic: Option<Ps>,
    /// Outstanding requests at the knee (0 = none) and slope in thousandths.
    pub knee_limit: u64,
    pub knee_slope_permille: u64,
    pub load_overlap: Ps,
    rmw_overlap: Ps,
    /// A loop is scanned, in which what comes after a load is further turns.
    pub scans: bool,
    dram: Vec<Ps>,
    /// Fills since the last touch below which a line counts as near the top of the LRU stack.
    pub recent: u32,
    pub l1_lines: u32,
    pub l2_lines: u32,
    pub l2_ways: u32,
    pub l3_lines: u32,
    pub l3_ways: u32,
}

fn ps(ns: f64) -> Ps {
    (ns * 1000.0).round() as Ps
}

/// Where each core is: as its first CPU.
fn cores(cpus: &[CpuPlace], n: usize) -> Vec<CpuPlace> {
    let first = |id| {
        cpus.iter()
            .find(|p| p.core == id)
            .copied()
            .unwrap_or_default()
    };
    (0..n as u32).map(first).collect()
}

/// Costs of a hit by [`Access`], ns. A store retires like an L1 hit unless measured.
fn hits(m: &Machine) -> [f64; 4] {
    let l1 = m.cache_latency_ns(1);
    let value = |path: &str, or: f64| m.value(path).unwrap_or(or);
    let rmw = value("atomics.rmw_uncontended", l1);
    let store = value("atomics.store_uncontended", l1);
    [
        l1,
        store,
        rmw,
        value("atomics.cas_loop_uncontended", rmw + l1),
    ]
}

/// From the arrival of a line to the last update that its core can begin before it has to give the
/// line up, ns: of updates in a tight loop so many fit into one ownership.
fn tenure(m: &Machine) -> f64 {
    let burst = m.value("atomics.rmw_burst_tight_loop").unwrap_or(1.0);
    let each = m.value("atomics.rmw_uncontended").unwrap_or(0.0);
    (burst - 1.0).max(0.0) * each
}

/// Which of them a touch is charged.
fn charged(hit: [f64; 4], o: Options) -> [f64; 4] {
    match o.hits {
        true => hit,
        false => [0.0, 0.0, hit[2], hit[3]],
    }
}

fn hw_thread(place: &CpuPlace) -> HwThread {
    HwThread {
        core: place.core as u16,
        thread: place.thread as u8,
    }
}

impl Params {
    pub fn new(m: &Machine, o: Options) -> Self {
        let t = &m.topology;
        let cpu = t.cpus.iter().map(hw_thread).collect();
        let places = cores(&t.cpus, t.nr_cores());
        let core = |place: &CpuPlace| Core {
            llc: place.llc,
            node: place.numa_node,
        };
        let cores: Vec<Core> = places.iter().map(core).collect();
        let row = |a: &CpuPlace| places.iter().map(|b| a.distance(b)).collect::<Vec<_>>();
        let nr_llcs = t.nr_llcs();
        let in_llc = |d| cores.iter().position(|c| c.llc == d).unwrap_or(0);
        let by = |f: &dyn Fn(Distance) -> f64| Distance::ALL.map(|d| ps(f(d)));
        let service = match m.value("atomics.llsc_service") {
            Some(v) if o.llsc => [ps(v); 5],
            _ => by(&|d| m.rmw_service_ns(d)),
        };
        let lines = |level: u8, permille: u32| {
            let lines = m.cache(level).map_or(1, CacheLevel::lines);
            (u64::from(lines) * u64::from(permille) / 1000).max(16) as u32
        };
        let value = |path: &str, or: f64| m.value(path).unwrap_or(or);
        let (hit, charged) = (hits(m), charged(hits(m), o));
        let n = t.nr_nodes();
        let pairs = (0..n * n).map(|i| (i / n, i % n));
        Self {
            cpu,
            llc_core: (0..nr_llcs as u32).map(in_llc).collect(),
            distances: places.iter().flat_map(row).collect(),
            cores,
            nr_llcs,
            nr_nodes: n,
            line_bytes: u64::from(m.line_bytes()),
            l1: ps(m.cache_latency_ns(1)),
            l2: ps(m.cache_latency_ns(2)),
            llc: ps(m.cache_latency_ns(3)),
            hit_ps: charged.map(|v| ps(v) as u32),
            free_hits: [0, 1, 2, 3].map(|i| ps(hit[i] - charged[i])),
            tenure: ps(tenure(m)),
            smt_extra: ps((m.transfer_ns(Distance::Smt) - hit[2]).max(0.0)),
            transfer: by(&|d| m.transfer_ns(d)),
            load_hit: by(&|d| m.load_hit_ns(d)),
            load_hitm: by(&|d| m.load_hitm_ns(d)),
            service,
            load_service: service.map(|s| s * Ps::from(o.load_occupancy_permille) / 1000),
            home_at_reader: ps(value("transfer.home_at_reader_extra", 0.0)),
            stores_in_order: m.arch == "x86_64",
            far_atomic: m.value("atomics.far_atomic_service").map(ps),
            knee_limit: if o.knee {
                value("atomics.ingress_limit", 0.0) as u64
            } else {
                0
            },
            knee_slope_permille: ps(value("atomics.ingress_slope", 0.0)),
            load_overlap: ps(o.load_overlap_ns),
            rmw_overlap: ps(o.rmw_overlap_ns),
            scans: false,
            dram: pairs
                .map(|(a, b)| ps(m.memory_ns(a as u32, b as u32)))
                .collect(),
            recent: lines(1, o.private_capacity_permille) / 4,
            l1_lines: lines(1, o.private_capacity_permille),
            l2_lines: lines(2, o.private_capacity_permille),
            l2_ways: m.cache(2).map_or(8, |c| c.ways),
            l3_lines: lines(3, o.l3_capacity_permille),
            l3_ways: m.cache(3).map_or(16, |c| c.ways),
        }
    }

    /// Most hardware threads that a core has.
    pub fn threads(&self) -> usize {
        let last = self.cpu.iter().map(|who| usize::from(who.thread)).max();
        last.unwrap_or(0) + 1
    }

    #[inline]
    pub fn distance(&self, a: usize, b: usize) -> Distance {
        self.distances[a * self.cores.len() + b]
    }

    #[inline]
    pub fn node(&self, core: usize) -> usize {
        self.cores[core].node as usize
    }

    #[inline]
    pub fn dram(&self, core: usize, home: usize) -> Ps {
        self.dram[self.node(core) * self.nr_nodes + home]
    }

    /// What a load pays of `total`, the queueing included: a miss never less than an L2 hit.
    #[inline]
    pub fn load_stall(&self, total: Ps) -> Ps {
        if self.scans {
            return total;
        }
        total
            .saturating_sub(self.load_overlap)
            .max(total.min(self.l2))
    }

    /// What an update pays of `total`.
    #[inline]
    pub fn rmw_stall(&self, total: Ps) -> Ps {
        let least = Ps::from(self.hit_ps[Access::Rmw as usize]);
        total.saturating_sub(self.rmw_overlap).max(total.min(least))
    }

    #[inline]
    pub fn hit(&self, access: Access, now: Ps) -> Cost {
        let latency = Ps::from(self.hit_ps[access as usize]);
        Cost {
            done_at: now + latency,
            wait: 0,
            latency,
            class: MissClass::Hit,
            transfer: false,
            llc_miss: false,
            retries: 0,
        }
    }

    /// What a hit takes longer there than in the nearest cache.
    #[inline]
    pub fn farther(&self, place: Place) -> Ps {
        match place {
            Place::L2 => self.l2.saturating_sub(self.l1),
            Place::L1 | Place::Gone => 0,
        }
    }

    /// Whether it is known how long a core has a line at least.
    #[inline]
    pub fn has_tenure(&self) -> bool {
        self.tenure > 0
    }

    /// How long after its turn a core still has a line that takes `latency` to come; 0: not known.
    #[inline]
    pub fn holds(&self, latency: Ps) -> Ps {
        match self.tenure {
            0 => 0,
            tenure => latency + tenure,
        }
    }

    /// Whether service grows with the requests that are outstanding.
    #[inline]
    pub fn has_knee(&self) -> bool {
        self.knee_limit != 0 && self.knee_slope_permille != 0
    }

    /// Service time of a request that `wait`s behind others of `mean` each on average: so many are
    /// outstanding. The time of the last one alone would not do: loads are short and updates long,
    /// and what is taken for a long queue makes the next service longer still.
    #[inline]
    pub fn knee(&self, service: Ps, wait: Ps, mean: Ps) -> Ps {
        if !self.has_knee() || mean == 0 {
            return service;
        }
        let over = (wait / mean).saturating_sub(self.knee_limit);
        service + service * over * self.knee_slope_permille / (self.knee_limit * 1000)
    }
}
