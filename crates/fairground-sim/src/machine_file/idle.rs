//! Idle states as a machine file has them.

use serde::Deserialize;

use super::figures::{Figures, check_value};
use super::known;
use super::raw::{RawFile, RawIdle};
use super::{Conf, Figure, MachineError};

/// How a CPU goes to an idle state, which says what it takes to wake it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdleEntry {
    /// It watches its flags (monitor/mwait, or a loop): a write to them wakes it.
    Mwait,
    /// It reads a port of the chipset (ACPI `SYSTEMIO`), and waits for an interrupt.
    IoPort,
    /// It halts (`hlt`, `wfi`) until an interrupt.
    Halt,
}

impl IdleEntry {
    /// That of a state of which the file says nothing.
    pub(super) fn of(arch: &str, state: &str) -> Self {
        let halts = state.starts_with("HLT") || state.starts_with("WFI");
        match arch == "x86_64" && !halts {
            true => Self::Mwait,
            false => Self::Halt,
        }
    }
}

/// What of an idle state is no figure.
#[derive(Clone, Debug)]
pub(super) struct IdleKind {
    pub name: String,
    pub entry: IdleEntry,
    pub flushes_caches: bool,
}

impl IdleKind {
    /// Whether a state of which the file does not say it flushes the core's caches. Those of Intel
    /// from C3 on do (SDM, volume 3, "MWAIT extensions for power management"; datasheets, "Core
    /// C-states"), and AMD's CC6, which firmware gives as a port to be read.
    pub fn flushes(arch: &str, state: &str, entry: IdleEntry) -> bool {
        let number = state.trim_start_matches('C');
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        let deep = number[..digits].parse().is_ok_and(|n: u32| n >= 3);
        arch == "x86_64" && (entry == IdleEntry::IoPort || state.starts_with('C') && deep)
    }
}

/// A CPU idle state, as the governor knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct IdleState {
    /// `POLL`, `C1`, `C6`, `WFI`, ...
    pub name: String,
    /// How a CPU goes there.
    pub entry: IdleEntry,
    /// Worst-case exit latency that the governor believes, ns.
    pub exit_latency_ns: u64,
    /// That of the core, where the former is of the whole package, ns.
    pub core_exit_latency_ns: Option<u64>,
    /// Shortest stay that pays, ns.
    pub target_residency_ns: u64,
    /// Whether a core whose threads are all in it, or in another such state, has lost what was in
    /// its L1 and L2.
    pub flushes_caches: bool,
}

impl IdleState {
    /// Whether the CPU goes on running in it, in a loop that watches its flags: the state that the
    /// kernel adds for this and names so (`cpuidle_poll_state_init`).
    pub fn polls(&self) -> bool {
        self.name == "POLL"
    }
}

/// Takes the idle states in; what of them is no figure, shallowest first.
///
/// # Errors
/// A name that does not tell it, a source that is not there, or a figure that no machine has.
pub(super) fn states(
    raw: &RawFile,
    figures: &mut Figures<'_>,
) -> Result<Vec<IdleKind>, MachineError> {
    let mut kinds: Vec<IdleKind> = Vec::new();
    let arch = raw.machine.arch.get_ref();
    for state in &raw.idle {
        let s = state.get_ref();
        let name = name(s, &kinds, figures)?;
        if !s.src.is_empty() {
            let path = format!("idle.{name}");
            known::check_source(figures.t, &state.span(), &path, &s.src, figures.sources)?;
        }
        for (key, v) in [
            ("exit_latency_us", Some(s.exit_latency_us)),
            ("core_exit_latency_us", s.core_exit_latency_us),
            ("target_residency_us", Some(s.target_residency_us)),
        ] {
            let Some(v) = v else { continue };
            let path = format!("idle.{name}.{key}");
            check_value(figures.t, &state.span(), &path, v, "us")?;
            let conf = if s.src == "estimate" {
                Conf::Estimate
            } else {
                Conf::Vendor
            };
            let figure = Figure {
                src: s.src.clone(),
                ..Figure::made(v, "us", conf, "")
            };
            figures.map.insert(path, figure);
        }
        let entry = s.entry.unwrap_or_else(|| IdleEntry::of(arch, name));
        kinds.push(IdleKind {
            name: name.to_owned(),
            entry,
            flushes_caches: s
                .flushes_caches
                .unwrap_or_else(|| IdleKind::flushes(arch, name, entry)),
        });
    }
    Ok(kinds)
}

/// That of a state, which is part of the path of its figures, and by which `--max-idle` knows it
/// in letters of either case.
fn name<'a>(
    state: &'a RawIdle,
    before: &[IdleKind],
    figures: &Figures<'_>,
) -> Result<&'a str, MachineError> {
    const EXPECTED: &str = "a name of its own, without dots: POLL, C1, WFI, ...";
    let (t, name) = (figures.t, &state.name);
    t.name(name, "name", EXPECTED)?;
    let (at, name) = (name.span(), name.get_ref());
    if name.contains('.') {
        return Err(t.bad(at, format!("idle state `{name}`"), EXPECTED));
    }
    if before
        .iter()
        .any(|kind| kind.name.eq_ignore_ascii_case(name))
    {
        return Err(t.bad(at, format!("a second idle state `{name}`"), EXPECTED));
    }
    Ok(name)
}
