//! What a recording leaves open.

use fairground_trace::Recording;
use fairground_trace::derive::Attributes;
use fairground_trace::replay::Replay;

/// What a trace does not say.
#[derive(Clone, Copy, Debug)]
pub struct Doubts {
    /// Switches that it lacks.
    pub inferred: u64,
    /// Recorded CPU times are lower bounds.
    pub at_least: bool,
    /// Recorded CPU times are upper bounds.
    pub at_most: bool,
    /// Nobody says its tick, and it does not show.
    pub hz_assumed: bool,
    /// Its times are whole microseconds.
    pub whole_us: bool,
    /// It is of a simulated run that was ended by its time.
    pub ends_by_time: bool,
    /// Threads keep away from CPUs that were not recorded.
    pub keeps_away: bool,
}

impl Doubts {
    /// Of a recording and what is known besides.
    pub fn of(recording: &Recording, replay: &Replay<'_>, known: &Attributes) -> Self {
        Self {
            inferred: replay.recorded.inferred,
            at_least: replay.recorded.is_at_least(),
            at_most: replay.recorded.is_at_most(),
            hz_assumed: known.hz.is_none() && !replay.shows_tick(),
            whole_us: recording.whole_us,
            ends_by_time: replay.ends_by_time(),
            keeps_away: replay.recorded.recorded_cpus().is_some(),
        }
    }
}
