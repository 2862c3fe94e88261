//! The file as written: serde structs that keep positions, so that complaints can point.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::IdleEntry;
use super::figure::Conf;

pub(super) type RawTable = BTreeMap<String, Spanned<RawFigure>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub schema: Spanned<i64>,
    pub machine: RawMachine,
    pub topology: Spanned<RawTopology>,
    pub cache: Spanned<Vec<Spanned<RawCache>>>,
    pub memory: Spanned<RawTable>,
    pub transfer: Spanned<RawTable>,
    #[serde(default)]
    pub transfer_2s: RawTable,
    pub atomics: Spanned<RawTable>,
    #[serde(default)]
    pub alu: RawTable,
    #[serde(default)]
    pub kernel_ops: RawTable,
    #[serde(default)]
    pub idle: Vec<Spanned<RawIdle>>,
    #[serde(default)]
    pub idle_note: RawTable,
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMachine {
    pub id: Spanned<String>,
    pub name: Spanned<String>,
    pub uarch: Option<Spanned<String>>,
    pub arch: Spanned<String>,
    // Read by people.
    #[serde(default)]
    #[allow(dead_code)]
    pub year: u32,
    #[serde(default)]
    #[allow(dead_code)]
    pub used_by: String,
    pub model_ghz: Spanned<RawFigure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTopology {
    pub sockets: Spanned<u32>,
    pub dies_per_socket: Spanned<u32>,
    pub cores_per_die: Spanned<u32>,
    pub threads_per_core: Spanned<u32>,
    pub cpus: Spanned<u32>,
    pub llc_domains_per_socket: Spanned<u32>,
    pub numa_nodes_per_socket: Spanned<u32>,
    #[serde(default)]
    pub cluster_cpus: Option<Spanned<u32>>,
    #[serde(default)]
    #[allow(dead_code)]
    pub note: String,
    pub slit: Spanned<Vec<Vec<u32>>>,
    pub cpu_numbering: Spanned<String>,
    /// By CPU, for machines whose CPUs differ.
    pub cpu_capacity: Option<Spanned<Vec<u32>>>,
    // Alternative matrices and origins: read by people.
    #[serde(default)]
    #[allow(dead_code)]
    pub slit_snc3: Vec<Vec<u32>>,
    #[serde(default)]
    #[allow(dead_code)]
    pub slit_snc3_src: String,
    #[serde(default)]
    #[allow(dead_code)]
    pub slit_src: String,
    #[serde(default)]
    #[allow(dead_code)]
    pub topology_src: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCache {
    pub level: u8,
    pub size_kib: Spanned<u32>,
    pub ways: Spanned<u32>,
    pub line: Spanned<u32>,
    pub shared_by: Spanned<String>,
    pub latency: Spanned<RawFigure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawIdle {
    pub name: Spanned<String>,
    pub exit_latency_us: f64,
    pub core_exit_latency_us: Option<f64>,
    pub entry: Option<IdleEntry>,
    pub target_residency_us: f64,
    pub flushes_caches: Option<bool>,
    #[serde(default)]
    pub src: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFigure {
    pub v: RawValue,
    pub lo: Option<f64>,
    pub hi: Option<f64>,
    pub unit: String,
    pub conf: Conf,
    pub src: String,
    #[serde(default)]
    pub note: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawValue {
    One(f64),
    Many(Vec<f64>),
    Words(String),
}
