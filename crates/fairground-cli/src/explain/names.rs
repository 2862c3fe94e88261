//! Names of tasks and groups, and the clock, of an answer.

use fairground::value::{TaskId, TgId};
use fairground_sim::machine::Setup;
use fairground_trace::simulated::Identity;

/// Names of tasks and groups, and the clock of the run or the recording.
pub struct Names<'a> {
    /// Each task's name and thread id.
    pub who: Vec<Identity>,
    /// Of its groups.
    pub setup: &'a Setup<'a>,
    /// Where the clock begins.
    pub origin_ns: u64,
}

impl Names<'_> {
    /// The name and id of a task.
    pub fn task(&self, task: Option<TaskId>) -> String {
        match task.map(|t| self.who.get(t.idx())) {
            None => "the idle task".into(),
            Some(Some(i)) => format!("{} {}", i.comm, i.tid),
            Some(None) => "?".into(),
        }
    }

    /// The path of a group.
    pub fn group(&self, group: TgId) -> &str {
        let groups = &self.setup.workload.cgroups;
        groups.get(group.idx()).map_or("/", |g| g.path.as_str())
    }

    /// A time as the run's or the recording's clock shows it.
    pub fn at(&self, ns: u64) -> String {
        let ns = ns as i64 - self.origin_ns as i64;
        format!("{:.6} ms", ns as f64 / 1e6)
    }
}
