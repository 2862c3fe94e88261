//! A recorded state in the engine's published words, with a host that only knows the time.

use fairground::cx::Cx;
use fairground::system::System;
use fairground::value::Cpu;

use super::machine::Guest;
pub(super) use crate::host::Quiet;

/// The machine of a recording with its kernel, some decisions changed, all CPUs at full capacity.
pub(super) fn system(guest: &Guest, changes: &[(&str, &str)]) -> System {
    System::new(super::features(changes), guest.topology())
}

/// Calls `f` on behalf of `cpu`.
pub(super) fn on<T>(
    sys: &System,
    cpu: Cpu,
    now: u64,
    f: impl FnOnce(&mut Cx<'_, Quiet>) -> T,
) -> T {
    let mut host = Quiet { now };
    let mut moving = Vec::new();
    let mut cx = Cx::new(sys, &mut host, cpu, &mut moving);
    f(&mut cx)
}
