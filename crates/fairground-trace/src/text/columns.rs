//! Who executed events, where the columns in front of them do not say it: perf writes -1 for
//! threads that have exited, and `-F pid` names the process.

use super::line::UNKNOWN;
use crate::event::Kind;
use crate::recording::Recording;

/// The columns are not to be believed if they name another thread than the switches do, in more
/// than one of so many.
const ONE_OF: usize = 100;

/// Takes threads from the switches of their CPU where it must.
pub fn mend(recording: &mut Recording) {
    let (mut switches, mut others, mut unknown) = (0, 0, 0);
    for event in &recording.events {
        unknown += usize::from(event.tid == UNKNOWN);
        if let Kind::Switch { prev, .. } = event.kind {
            switches += 1;
            others += usize::from(event.tid != prev && event.tid != UNKNOWN);
        }
    }
    let all = others * ONE_OF > switches;
    if !all && unknown == 0 {
        return;
    }
    // Before a switch ran whom it takes from the CPU; after the last one, whom that gave it to.
    let mut current: Vec<Option<u32>> = vec![None; recording.cpus as usize];
    let mut left: Vec<Option<u32>> = vec![None; recording.cpus as usize];
    for event in &recording.events {
        if let Kind::Switch { next, .. } = event.kind {
            left[event.cpu as usize] = Some(next);
        }
    }
    for event in recording.events.iter_mut().rev() {
        let cpu = event.cpu as usize;
        if let Kind::Switch { prev, .. } = event.kind {
            current[cpu] = Some(prev);
        }
        if all || event.tid == UNKNOWN {
            event.tid = current[cpu].or(left[cpu]).unwrap_or(0);
        }
    }
    if all {
        recording.left_out.notes.push(format!(
            "its first columns name another thread than {others} of {switches} sched_switch do, \
             as with `perf script -F pid`: who ran is taken from these; add tid"
        ));
    }
}
