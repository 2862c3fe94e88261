//! Machine descriptions: topology, latencies and costs, every figure with its origin.
//!
//! The format is described in `machines/README.md`. The files of that directory are compiled
//! in; a path overrides. Output of `lstopo --of xml` gives a topology, see [`hwloc`].
//! Times are nanoseconds as `f64` here; the cache model rounds them to integers once.

mod caches;
mod error;
mod figure;
mod figures;
pub mod hwloc;
mod idle;
mod known;
mod limits;
mod parse;
mod raw;
mod source;
mod topology;

use std::collections::BTreeMap;

use crate::workload::nearest::nearest;

pub use error::{BadFile, MachineError};
pub use figure::{Conf, Figure};
use idle::IdleKind;
pub use idle::{IdleEntry, IdleState};
pub use topology::{CpuPlace, Distance, FULL_CAPACITY, Topology};

/// The most CPUs that a machine may have.
pub const MAX_CPUS: usize = 512;
/// The largest machine file, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

const BUILTIN: &[(&str, &str)] = &[
    (
        "genoa-9654-2s",
        include_str!("../../../../machines/genoa-9654-2s.toml"),
    ),
    (
        "gnr-6972p-2s",
        include_str!("../../../../machines/gnr-6972p-2s.toml"),
    ),
    (
        "icx-8358-2s",
        include_str!("../../../../machines/icx-8358-2s.toml"),
    ),
    (
        "kunpeng920-6426-2s",
        include_str!("../../../../machines/kunpeng920-6426-2s.toml"),
    ),
    (
        "spr-8480-2s",
        include_str!("../../../../machines/spr-8480-2s.toml"),
    ),
    (
        "spr-guest-2cpu",
        include_str!("../../../../machines/spr-guest-2cpu.toml"),
    ),
    (
        "xeon-8cpu-2013",
        include_str!("../../../../machines/xeon-8cpu-2013.toml"),
    ),
];

/// Size and geometry of one cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheLevel {
    /// 1, 2 or 3.
    pub level: u8,
    /// Size of one instance, bytes.
    pub size_bytes: u64,
    /// Associativity.
    pub ways: u32,
    /// Line size, bytes.
    pub line_bytes: u32,
    /// `core`, `cluster`, `die` or `socket`.
    pub shared_by: String,
}

impl CacheLevel {
    /// Capacity in lines.
    pub fn lines(&self) -> u32 {
        u32::try_from(self.size_bytes / u64::from(self.line_bytes)).unwrap_or(u32::MAX)
    }
}

/// A machine to simulate.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Short name, unique among the built-in machines.
    pub id: String,
    /// Full name.
    pub name: String,
    /// Microarchitecture.
    pub uarch: String,
    /// `x86_64`, `aarch64`.
    pub arch: String,
    /// Where the CPUs sit.
    pub topology: Topology,
    /// Private levels first, last-level cache last.
    pub caches: Vec<CacheLevel>,
    /// Source keys and what they stand for.
    pub sources: BTreeMap<String, String>,
    idle_kinds: Vec<IdleKind>,
    figures: BTreeMap<String, Figure>,
    /// For sensitivity runs.
    cost_scale: CostScale,
    hash: u64,
}

/// Factors on what is assumed outside the machine files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostScale {
    /// On the base costs of scheduler functions and their scans.
    pub scheduler: f64,
    /// On those of the rest of the kernel.
    pub kernel: f64,
    /// On the time for which a load that the owner must answer occupies its line.
    pub load_occupancy: f64,
    /// On the part of a load's miss that other work hides.
    pub load_overlap: f64,
    /// On the way out of idle states, where a driver's table promises one.
    pub idle_exit: f64,
}

impl CostScale {
    /// The tables as they are.
    pub const NONE: Self = Self {
        scheduler: 1.0,
        kernel: 1.0,
        load_occupancy: 1.0,
        load_overlap: 1.0,
        idle_exit: 1.0,
    };
}

impl Machine {
    /// A machine that is compiled in.
    ///
    /// # Errors
    /// [`MachineError::UnknownId`], which names the nearest known id.
    pub fn builtin(id: &str) -> Result<Self, MachineError> {
        match BUILTIN.iter().find(|(known, _)| *known == id) {
            Some((_, text)) => Self::from_toml(&format!("{id}.toml"), text),
            None => Err(source::unknown(id)),
        }
    }

    /// Ids of the machines that are compiled in, in alphabetical order.
    pub fn builtin_ids() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(id, _)| *id)
    }

    /// Parses the text of a machine file; `path` is used in messages only.
    ///
    /// # Errors
    /// [`MachineError::Bad`] with line and what was expected, [`MachineError::Empty`],
    /// [`MachineError::TooLarge`].
    pub fn from_toml(path: &str, text: &str) -> Result<Self, MachineError> {
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(source::too_large(path));
        }
        if text.trim().is_empty() {
            return Err(MachineError::Empty { path: path.into() });
        }
        parse::machine(path, text)
    }

    /// Hash of the file's bytes (64-bit FNV-1a, 16 hex digits). Figures replaced by
    /// [`Machine::with_figure`] and shrinking are folded in.
    pub fn hash(&self) -> String {
        format!("{:016x}", self.hash)
    }

    /// Clock at which cycle counts are converted, GHz.
    pub fn ghz(&self) -> f64 {
        self.value("machine.model_ghz").unwrap_or(1.0)
    }

    /// Every figure by path (`transfer.same_socket`, `cache.l2.latency`, `idle.C6.exit_latency_us`;
    /// members of lists as `memory.snc4_local.0`).
    pub fn figures(&self) -> impl Iterator<Item = (&str, &Figure)> {
        self.figures.iter().map(|(path, f)| (path.as_str(), f))
    }

    /// One figure by path.
    pub fn figure(&self, path: &str) -> Option<&Figure> {
        self.figures.get(path)
    }

    /// Figures that rest on memory or judgement: print them with every result.
    pub fn assumed(&self) -> Vec<(&str, &Figure)> {
        self.figures()
            .filter(|(_, f)| f.conf >= Conf::Recalled)
            .collect()
    }

    /// A copy with one figure replaced, for sensitivity runs.
    ///
    /// # Errors
    /// [`MachineError::Request`] for an unknown path, a negative or a non-finite value.
    pub fn with_figure(&self, path: &str, value: f64) -> Result<Self, MachineError> {
        let mut copy = self.clone();
        let Some(figure) = copy.figures.get_mut(path) else {
            let near = nearest(path, self.figures.keys().map(String::as_str));
            let hint = near.map_or("a path of `figures()`".into(), |n| {
                format!("for example `{n}`")
            });
            return Err(self.refuse(format!("no figure `{path}`"), hint));
        };
        if let Some(expected) = limits::refused(path, &figure.unit, value) {
            return Err(self.refuse(format!("{path} = {value}"), expected));
        }
        figure.v = value;
        copy.hash = fnv1a(copy.hash, format!("{path}={value:?}").as_bytes());
        Ok(copy)
    }

    /// A copy with `scale` times what is assumed outside the machine files, for sensitivity runs.
    #[must_use]
    pub fn with_cost_scale(&self, scale: CostScale) -> Self {
        let mut copy = self.clone();
        copy.cost_scale = scale;
        copy.hash = fnv1a(copy.hash, format!("{scale:?}").as_bytes());
        copy
    }

    /// Factors on what is assumed outside the machine files.
    pub fn cost_scale(&self) -> CostScale {
        self.cost_scale
    }

    /// A copy with `cpus` CPUs in whole cores, on as few sockets as hold them, evenly spread
    /// over these sockets (growth studies). Cache sizes and latencies stay.
    ///
    /// # Errors
    /// [`MachineError::Request`] if it cannot be done evenly.
    pub fn shrunk(&self, cpus: usize) -> Result<Self, MachineError> {
        let t = &self.topology;
        let per_core = t.nr_cpus() / t.nr_cores().max(1);
        let cores = cpus / per_core.max(1);
        let per_socket = t.nr_cores() / t.nr_sockets().max(1);
        let whole = t.nr_sockets().max(1);
        let sockets = cores.div_ceil(per_socket.max(1)).clamp(1, whole);
        let even = cpus.is_multiple_of(per_core) && cores.is_multiple_of(sockets);
        if cpus == 0 || cpus > t.nr_cpus() || !even {
            let e = even_numbers(per_core, per_socket, whole);
            return Err(self.refuse(format!("cannot be shrunk to {cpus} CPUs"), e));
        }
        self.with_cpus_limited(sockets as u32, (cores / sockets) as u32)
    }

    /// A copy with the first `cores_per_socket` cores of the first `sockets` sockets.
    ///
    /// # Errors
    /// [`MachineError::Request`] if the machine has fewer.
    pub fn with_cpus_limited(&self, sockets: u32, cores: u32) -> Result<Self, MachineError> {
        let Some(topology) = self.topology.limited(sockets, cores) else {
            let t = &self.topology;
            let have = format!("at most {} sockets, {} cores", t.nr_sockets(), t.nr_cores());
            return Err(self.refuse(format!("has no {cores} cores on {sockets} sockets"), have));
        };
        let mut copy = self.clone();
        copy.topology = topology;
        copy.hash = fnv1a(copy.hash, format!("limited {sockets} {cores}").as_bytes());
        Ok(copy)
    }

    /// A copy whose CPUs enter no deeper idle state than `name`, as with `max_cstate` on the
    /// kernel's command line or `cpupower idle-set --disable-by-latency`.
    ///
    /// # Errors
    /// [`MachineError::Request`] if the machine has no such state.
    pub fn with_idle_up_to(&self, name: &str) -> Result<Self, MachineError> {
        let names: Vec<&str> = self.idle_kinds.iter().map(|s| s.name.as_str()).collect();
        let same = |state: &&str| state.eq_ignore_ascii_case(name);
        let Some(deepest) = names.iter().position(same) else {
            let known = names.join(", ");
            let expected = match known.as_str() {
                "" => "a machine with idle states: it describes none".into(),
                known => format!("one of {known}"),
            };
            return Err(self.refuse(format!("has no idle state `{name}`"), expected));
        };
        let mut copy = self.clone();
        if deepest + 1 < names.len() {
            copy.idle_kinds.truncate(deepest + 1);
            let deepest = names[deepest];
            copy.hash = fnv1a(copy.hash, format!("idle up to {deepest}").as_bytes());
        }
        Ok(copy)
    }

    /// A copy whose caches have lines of `bytes`, a power of two; their sizes stay.
    #[must_use]
    pub fn with_line_bytes(&self, bytes: u32) -> Self {
        let mut copy = self.clone();
        for cache in &mut copy.caches {
            cache.line_bytes = bytes;
        }
        copy.hash = fnv1a(copy.hash, format!("lines of {bytes}").as_bytes());
        copy
    }

    /// Line size of the private caches, bytes: the unit of coherence.
    pub fn line_bytes(&self) -> u32 {
        self.caches.first().map_or(64, |c| c.line_bytes)
    }

    /// The cache of one level (1, 2), if described.
    pub fn cache(&self, level: u8) -> Option<&CacheLevel> {
        self.caches.iter().find(|c| c.level == level)
    }

    /// The last-level cache: one instance.
    pub fn llc(&self) -> Option<&CacheLevel> {
        self.caches.last()
    }

    /// Load-to-use latency of a cache level, ns.
    pub fn cache_latency_ns(&self, level: u8) -> f64 {
        self.value(&format!("cache.l{level}.latency"))
            .unwrap_or(0.0)
    }

    /// Idle states, shallow first.
    pub fn idle_states(&self) -> Vec<IdleState> {
        let given = |name: &str, key: &str| {
            let us = self.value(&format!("idle.{name}.{key}"))?;
            Some((us * 1000.0).round() as u64)
        };
        let ns = |name: &str, key: &str| given(name, key).unwrap_or(0);
        let state = |kind: &IdleKind| IdleState {
            name: kind.name.clone(),
            entry: kind.entry,
            exit_latency_ns: ns(&kind.name, "exit_latency_us"),
            core_exit_latency_ns: given(&kind.name, "core_exit_latency_us"),
            target_residency_ns: ns(&kind.name, "target_residency_us"),
            flushes_caches: kind.flushes_caches,
        };
        self.idle_kinds.iter().map(state).collect()
    }

    /// Cost of a kernel operation, ns: `syscall`, `switch_to_hw`, `ipi_to_handler`, `ipi_send_cpu`,
    /// `irq_entry_exit`, `tick_handler`, `sched_clock` are always there (a generic estimate
    /// stands in, and shows in [`Machine::assumed`], where a file has none).
    pub fn kernel_op_ns(&self, name: &str) -> Option<f64> {
        self.value(&format!("kernel_ops.{name}"))
    }

    /// Whether its CPUs take turns at one stream of instructions of the host, as in an emulator
    /// with a single thread.
    pub fn shares_one_stream(&self) -> bool {
        self.kernel_op_ns("shared_stream").is_some_and(|v| v > 0.0)
    }

    /// Cycles of a 64-bit division; 0 if the file has none.
    pub fn div64_cycles(&self) -> f64 {
        self.value("alu.div64").unwrap_or(0.0)
    }

    /// Cycles of a pause in a spinning CPU's loop (`cpu_relax()`); 0 if the file has none.
    pub fn pause_cycles(&self) -> f64 {
        self.value("alu.pause").unwrap_or(0.0)
    }

    /// How many cycles the core takes for kernel code of which a Golden Cove, the core of the cost
    /// table, takes one; 1 if the file does not say.
    pub fn core_cycles(&self) -> f64 {
        self.value("alu.core_cycles").unwrap_or(1.0)
    }

    /// Memory latency, ns, from a CPU on node `from` to memory on node `to`.
    pub fn memory_ns(&self, from: u32, to: u32) -> f64 {
        let local = self.value("memory.local").unwrap_or(0.0);
        if from == to {
            return local;
        }
        let socket = |node| self.topology.cpus.iter().find(|p| p.numa_node == node);
        let same = match (socket(from), socket(to)) {
            (Some(a), Some(b)) => a.socket == b.socket,
            _ => false,
        };
        let other_die = self.value("memory.same_socket_other_die");
        let remote = self.value("memory.remote");
        if same {
            other_die.or(Some(local))
        } else {
            remote.or(other_die)
        }
        .unwrap_or(local)
    }

    /// Hand-over of a modified line for an atomic update, ns, by distance.
    pub fn transfer_ns(&self, d: Distance) -> f64 {
        self.by_class("transfer.", d).unwrap_or(0.0)
    }

    /// [`Machine::transfer_ns`] with the range of the same figure: value, least, most. `None` if it
    /// has no range; threads of one core do not take that of the next farther class.
    pub fn transfer_range_ns(&self, d: Distance) -> Option<(f64, f64, f64)> {
        let figure = |d: &Distance| self.figure(&format!("transfer.{}", d.key()));
        let f = match d {
            Distance::Smt => figure(&d)?,
            _ => Distance::ALL.iter().filter(|c| **c >= d).find_map(figure)?,
        };
        Some((f.v, f.lo?, f.hi?))
    }

    /// Plain load of a line that another core has modified, ns. Without a figure for this or a
    /// farther class: the hand-over.
    pub fn load_hitm_ns(&self, d: Distance) -> f64 {
        self.exact_or_transfer("transfer.load_hitm_", d)
    }

    /// Plain load of a line that another core holds clean, ns. Without a figure: as if modified.
    pub fn load_hit_ns(&self, d: Distance) -> f64 {
        self.by_class_within("transfer.load_hit_", d)
            .unwrap_or_else(|| self.load_hitm_ns(d))
    }

    /// How long one update keeps the line busy when others wait, ns. Without a figure for the
    /// class: 0.9 of its hand-over if that is given, as in the files, else the next farther class.
    pub fn rmw_service_ns(&self, d: Distance) -> f64 {
        for class in Distance::ALL.iter().filter(|c| **c >= d) {
            if let Some(v) = self.value(&format!("atomics.rmw_service_{}", class.key())) {
                return v;
            }
            if let Some(v) = self.value(&format!("transfer.{}", class.key())) {
                return 0.9 * v;
            }
        }
        0.9 * self.transfer_ns(d)
    }

    /// The value of a figure.
    pub fn value(&self, path: &str) -> Option<f64> {
        self.figures.get(path).map(|f| f.v)
    }

    /// The class itself or the next farther one; beyond the farthest, the nearest below.
    fn by_class(&self, prefix: &str, d: Distance) -> Option<f64> {
        let get = |c: &Distance| self.value(&format!("{prefix}{}", c.key()));
        let farther = Distance::ALL.iter().filter(|c| **c >= d).find_map(get);
        farther.or_else(|| Distance::ALL.iter().rev().filter(|c| **c < d).find_map(get))
    }

    /// As `by_class`, but a figure across sockets never stands for one inside.
    fn by_class_within(&self, prefix: &str, d: Distance) -> Option<f64> {
        Distance::ALL
            .iter()
            .filter(|c| **c >= d && (**c == Distance::CrossSocket) == (d == Distance::CrossSocket))
            .find_map(|c| self.value(&format!("{prefix}{}", c.key())))
    }

    /// A load figure of this very class; where a nearer hand-over is given but no load figure, the
    /// hand-over is the better evidence.
    fn exact_or_transfer(&self, prefix: &str, d: Distance) -> f64 {
        for c in Distance::ALL.iter().filter(|c| **c >= d) {
            if let Some(v) = self.value(&format!("{prefix}{}", c.key())) {
                return v;
            }
            if let Some(v) = self.value(&format!("transfer.{}", c.key())) {
                return v;
            }
        }
        self.transfer_ns(d)
    }

    fn refuse(&self, message: String, expected: impl Into<String>) -> MachineError {
        MachineError::Request {
            id: self.id.clone(),
            message,
            expected: expected.into(),
        }
    }
}

/// FNV-1a (Fowler, Noll, Vo), continued from `hash`.
pub fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Where [`fnv1a`] begins.
pub const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
/// The numbers of CPUs to which a machine shrinks evenly, whatever was asked for: whole cores, and
/// equally many on each socket that is used.
fn even_numbers(per_core: usize, per_socket: usize, sockets: usize) -> String {
    let socket = per_core * per_socket;
    let steps = (1..=sockets).map(|used| match used {
        1 => format!("a multiple of {per_core}, at most {socket}"),
        _ => format!("of {} up to {}", per_core * used, socket * used),
    });
    steps.collect::<Vec<_>>().join(", or ")
}
