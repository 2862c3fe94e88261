//! What attributes say of each thread: by an entry of its own, else that of its creator, as the
//! kernel gives a new thread the policy, slice, CPUs and group of the one that made it.

use super::attributes::{Attributes, ThreadWords};
use super::log::{Log, Logs};
use crate::event::Names;

/// The kernel's threads are all made by this one, and are given the defaults whatever it has.
const KTHREADD: &str = "kthreadd";

/// What is said of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said<'a> {
    /// The entry.
    pub words: Option<&'a ThreadWords>,
    /// It is the creator's, or that of its creator.
    pub inherited: bool,
    /// Path of the group.
    pub path: Option<&'a str>,
}

impl Said<'_> {
    /// Whether anything is said of it.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.words.is_some() || self.path.is_some()
    }
}

/// What is said of each thread of a recording. A simulated run says of each what it began with, so
/// there nothing is inherited.
#[must_use]
pub fn said<'a>(attributes: &'a Attributes, logs: &Logs, names: &Names) -> Vec<Said<'a>> {
    let mut all: Vec<Said<'a>> = Vec::with_capacity(logs.threads.len());
    for (about, log) in logs.threads.iter().zip(&logs.logs) {
        let name = names.get(about.tid);
        let words = attributes.of(about.tid, &name);
        let path = attributes.path_of(about.tid, &name);
        // A creator is met before whom it creates.
        let creator = log.parent.filter(|_| attributes.run.is_none());
        let creator =
            creator.and_then(|creator| Some((logs.threads.get(creator)?, all.get(creator)?)));
        let creator = creator.filter(|(who, _)| names.get(who.tid) != KTHREADD);
        let of_creator = creator.map_or_else(Said::default, |(_, said)| *said);
        all.push(Said {
            words: words.or(of_creator.words),
            inherited: words.is_none() && of_creator.words.is_some(),
            path: path.or(of_creator.path.filter(|_| words.is_none())),
        });
    }
    all
}

impl Log {
    /// Whether the recording allows that it began with these CPUs only.
    #[must_use]
    pub fn may_begin_on(&self, cpus: &[u32]) -> bool {
        self.ran_on.first().is_none_or(|cpu| cpus.contains(cpu))
    }

    /// Whether it began on one of these CPUs and was seen on others later.
    #[must_use]
    pub fn leaves(&self, cpus: &[u32]) -> bool {
        let beyond = |cpu: &u32| !cpus.contains(cpu);
        !self.ran_on.first().is_none_or(beyond) && self.ran_on.iter().any(beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open;

    /// Thread 7 makes 8, which makes 9; thread 2, of the kernel, makes 10.
    fn forks() -> String {
        let fork = |us: u32, comm: &str, by: u32, child: u32| {
            format!(
                "{comm} {by} [000] 1.{us:06}: sched:sched_process_fork: comm={comm} pid={by} \
                 child_comm=kid child_pid={child}\n"
            )
        };
        let switch = "a 7 [000] 1.000500: sched:sched_switch: prev_comm=a prev_pid=7 prev_prio=120 \
                      prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";
        [
            fork(100, "a", 7, 8),
            fork(200, "b", 8, 9),
            fork(300, "kthreadd", 2, 10),
            switch.into(),
        ]
        .concat()
    }

    #[test]
    fn who_is_not_named_has_what_its_creator_has() {
        let r = open::read(forks().as_bytes(), &mut |_| {}).unwrap();
        let logs = Logs::of(&r.events, r.cpus);
        let of = |text: &str| {
            let attributes = Attributes::parse(text).unwrap();
            let all = said(&attributes, &logs, &r.names);
            [7, 8, 9, 10].map(|tid| {
                let thread = logs.threads.iter().position(|t| t.tid == tid).unwrap();
                let slice = all[thread].words.and_then(|w| w.slice_us);
                (slice, all[thread].inherited, all[thread].path.is_some())
            })
        };
        let group = "[[cgroup]]\npath = \"/g\"\n";
        let named = "[[thread]]\ntids = [7, 2]\nslice_us = 3000\ncgroup = \"/g\"\n";
        let own = (Some(3000), false, true);
        let inherited = (Some(3000), true, true);
        let nothing = (None, false, false);
        assert_eq!(
            of(&format!("{group}{named}")),
            [own, inherited, inherited, nothing]
        );
        let child = "[[thread]]\ntids = [8]\nslice_us = 9000\n";
        let found = of(&format!("{group}{named}{child}"));
        let again = [
            own,
            (Some(9000), false, false),
            (Some(9000), true, false),
            nothing,
        ];
        assert_eq!(
            found, again,
            "the nearest that is named counts, with all that it does not say"
        );
    }
}
