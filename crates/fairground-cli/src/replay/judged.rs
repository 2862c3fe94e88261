//! Which quantities of a what-if have no verdict, and why: the replay of a side was stopped, or
//! held up by what nobody recorded.

use fairground_trace::fidelity::{Fidelity, Item};

use crate::replay::quantity::{Both, Of, WhyNot};

/// Held up for more of its length, per cent, a replay is not judged: a choice. What-ifs are asked
/// for changes of 5 % and more, and what holds them up must be small beside that.
const BEYOND_PCT: f64 = 1.0;

/// What sides of a what-if cannot say.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// Sides that were stopped.
    pub stopped: [bool; 2],
    /// Threads computed on beyond the recording's end, and others with recorded work waited for
    /// that: in the first half, or at all.
    beyond: [bool; 2],
}

impl Judged {
    /// Of two sides; the first one may be a replay, too.
    pub fn of((f, before): Both<'_>) -> Self {
        let any = |part: usize| before.into_iter().chain([f]).any(|f| is_beyond(f, part));
        let stopped = |f: &Fidelity| f.stopped_ms.is_some();
        Self {
            stopped: [before.is_some_and(stopped), stopped(f)],
            beyond: [any(0), any(1)],
        }
    }

    /// Why there is no verdict on such a quantity, if there is none.
    pub fn why_not(&self, item: Item, of: Of, at_least: [bool; 2]) -> Option<WhyNot> {
        // A thread computes what it computed, whoever has done that is no bound, and a first half
        // is long over when a replay is stopped.
        let whole = !matches!(of, Of::Thread(_));
        let (of_length, beyond) = match item {
            Item::CpuTime => (false, false),
            Item::FirstHalf => (false, self.beyond[0]),
            Item::Elapsed | Item::Switches | Item::Busy | Item::Latency | Item::LateLatency => {
                (whole, self.beyond[1])
            }
        };
        if at_least.contains(&true) || (of_length && self.stopped.contains(&true)) {
            return Some(WhyNot::Stopped);
        }
        beyond.then_some(WhyNot::Beyond)
    }
}

/// Whether a replay was held up, in the first half or at all.
fn is_beyond(f: &Fidelity, part: usize) -> bool {
    let length_ms = [f.elapsed_ms.recorded / 2.0, f.elapsed_ms.replayed][part];
    f.beyond_ms[part] * 100.0 > BEYOND_PCT * length_ms
}

/// What to know of a what-if that was held up, or whose replay at home was.
pub fn beyond_note(home: &Fidelity, what_if: &Fidelity) -> Option<String> {
    let held = [("replayed", home), ("what if", what_if)];
    let held = held.into_iter().filter(|(_, f)| is_beyond(f, 1));
    let each = held.map(|(name, f)| {
        let ms = f.beyond_ms[1];
        let pct = 100.0 * ms / f.elapsed_ms.replayed;
        format!(
            "{name}: for {ms:.0} of {:.0} ms ({pct:.0} %)",
            f.elapsed_ms.replayed
        )
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| {
        format!(
            "no verdict on elapsed, switches, busy shares and wake-up latency: threads that the \
             recording's end had cut off computed on, which nobody recorded, and others that still \
             had recorded work waited for them; {}",
            each.join(", ")
        )
    })
}

/// What wake-up latency has of waiting for quota, by the way in which each side throttles: a thread
/// that takes itself off comes to its CPU first.
pub fn quota_note(throttle: &[&str]) -> String {
    let at_return = throttle.iter().filter(|way| **way == "at-user-return");
    match at_return.count() {
        n if n == throttle.len() => {
            "wake-up latency does not contain waiting for quota, for a woken thread gets its CPU \
             before it is throttled: see the table of that"
        }
        0 => "wake-up latency contains waiting for quota (`throttle=whole-queue`)",
        _ => {
            "wake-up latency contains waiting for quota with `throttle=whole-queue`, and not with \
             `at-user-return`: the sides cannot be compared in it"
        }
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_or_held_up_is_not_judged() {
        let why = |stopped: bool, beyond: [bool; 2], item: Item, bound: bool| {
            let judged = Judged {
                stopped: [false, stopped],
                beyond,
            };
            judged.why_not(item, Of::All, [false, bound])
        };
        let none = [false; 2];
        for item in Item::ALL {
            assert_eq!(why(false, none, item, false), None);
            assert_eq!(why(false, none, item, true), Some(WhyNot::Stopped));
        }
        assert_eq!(why(true, none, Item::Latency, false), Some(WhyNot::Stopped));
        assert_eq!(why(true, none, Item::CpuTime, false), None, "it was done");
        let late = [false, true];
        assert_eq!(why(false, late, Item::Elapsed, false), Some(WhyNot::Beyond));
        assert_eq!(why(false, late, Item::FirstHalf, false), None);
        assert_eq!(why(false, late, Item::CpuTime, false), None);
        let both = why(true, [true; 2], Item::Elapsed, true);
        assert_eq!(both, Some(WhyNot::Stopped));
    }
}
