//! Waiting for quota in a run, and the work of throttling.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::require_keys;

/// Waiting for quota of the tasks of a group. A stretch is from a wake-up to the next sleep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaWait {
    /// Stretches.
    pub stretches: u64,
    /// Those that waited for quota.
    pub delayed: u64,
    /// What is usual: 99 % of the stretches took no longer that touched no period with waiting for
    /// quota (or, where these are few, would not have, had none waited), on the side whose
    /// stretches waited least; `null` where none has ended (0 in results of older builds).
    pub usual_ns: Option<u64>,
    /// Too many waited for quota there to tell what is usual. Not where `--slow` says what is slow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usual_is_unreliable: bool,
    /// Longer than that is slow: a tenth more, or what was asked for; `null` where no stretch has
    /// ended, so that nothing is usual.
    pub slow_ns: Option<u64>,
    /// How long stretches waited for quota, of those that did.
    pub delay: Delay,
    /// Periods in which a task waited for quota.
    pub periods_waited: u64,
    /// Those of them in which that made a stretch slow.
    pub periods_slow: u64,
    /// Those in which a task waited that `nr_periods` lacks: a write of `max` cut them off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u64,
    /// The stretch that waited longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<DelayedStretch>,
}

/// What throttling the queues of a group made CPUs do. A queue is that of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaWork {
    /// Queues that were throttled.
    pub throttled: u64,
    /// Queues that were unthrottled.
    pub unthrottled: u64,
    /// Groups visited by both (`tg_throttle_down`, `tg_unthrottle_up`).
    pub walked: u64,
    /// Tasks that were taken off the queues.
    pub put_off: u64,
    /// Tasks that were put back.
    pub put_back: u64,
    /// Groups visited in a period in which a queue was throttled or unthrottled.
    pub walked_in_period: Quantiles,
    /// Tasks taken off and put back in such a period.
    pub moved_in_period: Quantiles,
    /// The period timer's handler, where it handed out quota.
    pub timer: IrqsOff,
    /// Throttling one queue.
    pub throttle: IrqsOff,
    /// Unthrottling one queue, in the timer's handler or an interrupt.
    pub unthrottle: IrqsOff,
}

/// Quantiles of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Most.
    pub max: u64,
}

/// Stretches of a CPU with its interrupts off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IrqsOff {
    /// How many.
    pub times: u64,
    /// How long.
    #[serde(flatten)]
    pub took: Delay,
    /// On which CPU the longest was; `null` if there was none.
    pub cpu: Option<u32>,
    /// When it began, counted from the start of the run, warm-up included.
    pub from_ns: Option<u64>,
}

/// Quantiles of a delay; `null` where there was none (0 in results of older builds).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = require_keys)]
pub struct Delay {
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// Longest.
    pub max_ns: Option<u64>,
}

impl Delay {
    /// Median, 99th percentile and longest, ns, of so many.
    #[must_use]
    pub fn of(number: u64, ns: [u64; 3]) -> Self {
        let [p50_ns, p99_ns, max_ns] = ns.map(|ns| (number > 0).then_some(ns));
        Self {
            p50_ns,
            p99_ns,
            max_ns,
        }
    }
}

/// A stretch that waited for quota.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DelayedStretch {
    /// Name and thread id.
    pub task: String,
    /// Thread id, as `--explain` takes it.
    pub tid: u32,
    /// Its wake-up, counted from the start of the run, warm-up included.
    pub from_ns: u64,
    /// Until it slept again.
    pub took_ns: u64,
    /// How much of that it waited for quota.
    pub waited_ns: u64,
    /// When the longest of these waits began, counted as `from_ns`: the time for `--explain`.
    #[serde(default)]
    pub held_from_ns: u64,
}

/// For how long the quota of one group kept the tasks of a group off the CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThrottledBy {
    /// Path of the group whose tasks waited: its own, and those of groups below.
    pub group: String,
    /// Path of the group whose quota was used up: the same, or one above. Of several that were
    /// throttled at once on the task's CPU, the nearest.
    pub by: String,
    /// How long in the measured time, summed over tasks, waits that were open at its end included.
    pub ns: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
