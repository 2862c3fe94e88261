//! Where a recording ends: who computes then does not end with it.
//!
//! A thread that the end cut off goes on, for as long as it had computed since its last sleep: how
//! much longer a stretch will be is not known, but those that have been long mostly go on for long.
//! Without this, one of several alike threads that gets more of the CPUs in the replay is done
//! before the others, which then have the CPUs for themselves, as nobody had in the recording. What
//! it does from there on is not measured.

use super::log::{Log, Step};

/// The mark that each thread passes when it has done what was recorded.
pub const ALL_DONE: u32 = 0;

/// The mark that only the thread of this template passes then.
#[must_use]
pub fn done_mark(template: u32) -> u32 {
    template + 1
}

/// Names of the marks of so many templates.
pub(super) fn marks(templates: usize) -> Vec<String> {
    let own = (0..templates).map(|template| format!("done {template}"));
    std::iter::once("done".to_string()).chain(own).collect()
}

/// For how long it goes on; `None`: it slept when the recording ended, or had ended, or had just
/// been woken.
#[must_use]
pub fn cut_ns(log: &Log) -> Option<u64> {
    let steps = log.steps.iter().rev();
    let since = steps.take_while(|step| !matches!(step, Step::Block(_)));
    let run = since.map(|step| match step {
        Step::Run(ns) => *ns,
        _ => 0,
    });
    Some(run.sum()).filter(|ns| log.awake_at_end && *ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::log::Block;

    #[test]
    fn it_goes_on_for_as_long_as_it_has_computed_since_its_last_sleep() {
        let sleep = Step::Block(Block {
            from: 0,
            woken: None,
            timer: None,
            in_act: false,
        });
        let mut log = Log::default();
        log.steps = vec![Step::Run(900), sleep];
        log.steps
            .extend([Step::Run(50), Step::Left(7), Step::Run(20)]);
        log.awake_at_end = true;
        assert_eq!(cut_ns(&log), Some(70));
        log.steps.truncate(2);
        assert_eq!(cut_ns(&log), None, "it was woken, and that is all");
        log.awake_at_end = false;
        log.steps.truncate(1);
        assert_eq!(cut_ns(&log), None);
    }
}
