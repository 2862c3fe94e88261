//! What lay between the time for which a task had set its timer and its wake-up.

use fairground::value::TaskId;

use super::Start;
use crate::machine::Sim;

/// A sleep that ended by its timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerWait {
    /// When the timer might fire.
    pub due_ns: u64,
    /// The task's slack: by then it must.
    pub slack_ns: u64,
    /// Of the time up to the wake-up, what was spent in the slack: no interrupt came.
    pub in_slack_ns: u64,
    /// The rest: the interrupt, and the CPU's way out of idle.
    pub interrupt_ns: u64,
    /// The idle state that the CPU left for it.
    pub left: Option<String>,
}

/// Follows a CPU up to the wake-up.
pub(super) struct Watching {
    task: TaskId,
    cpu: Option<u32>,
    /// The idle state that it is in.
    state: Option<u8>,
    /// The one that it left last, and when, ns.
    left: Option<(u8, u64)>,
}

impl Watching {
    /// Before a run, up to a wake-up of `task`.
    pub fn new(task: TaskId, start: Start) -> Self {
        let cpu = match start {
            Start::Woken { cpu, .. } => Some(cpu),
            _ => None,
        };
        Self {
            task,
            cpu,
            state: None,
            left: None,
        }
    }

    /// Before each event up to the one that wakes the task.
    pub fn look(&mut self, sim: &Sim<'_>) {
        let Some(cpu) = self.cpu else { return };
        let state = sim.idle_state(cpu);
        if let (Some(before), None) = (self.state, state) {
            self.left = Some((before, sim.now_ns()));
        }
        self.state = state;
    }

    /// After the last look: what preceded a wake-up at `woken_ns`, if the task's own timer did it.
    /// Since `asleep_ns` it was off its CPU.
    pub fn found(&self, sim: &Sim<'_>, asleep_ns: u64, woken_ns: u64) -> Option<TimerWait> {
        self.cpu?;
        let (due_ns, slack_ns) = sim.timed_wait(self.task)?;
        // Whoever was woken otherwise, or by a timer of a wait that has no time of its own.
        if due_ns < asleep_ns || woken_ns < due_ns {
            return None;
        }
        let late_ns = woken_ns - due_ns;
        // What it left before the timer could fire was left for something else. An idle CPU leaves
        // its state when the interrupt comes; how long a busy one takes to get there is not known.
        let left = self.left.filter(|(_, at)| *at >= due_ns);
        let came_ns = left.map_or(late_ns, |(_, at)| at - due_ns);
        let in_slack_ns = came_ns.min(slack_ns);
        Some(TimerWait {
            due_ns,
            slack_ns,
            in_slack_ns,
            interrupt_ns: late_ns - in_slack_ns,
            left: left.and_then(|(state, _)| sim.idle_state_name(state).map(String::from)),
        })
    }
}

impl Sim<'_> {
    /// When the timer of a task's sleep might fire, and its slack; ns.
    fn timed_wait(&self, task: TaskId) -> Option<(u64, u64)> {
        let task = self.tasks.get(task.idx())?;
        Some((task.due_ns, task.timer_slack_ns))
    }
}
