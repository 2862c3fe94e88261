//! How long it takes on the recorded machine from a wake-up to the switch, beyond what the model
//! says: by kind of wake-up, from the first half of the recording alone. Units: nanoseconds.

use fairground_sim::tails::{KINDS, Kind as WakeKind, Kinds, Tails};

use rustc_hash::FxHashMap;

use crate::event::{Event, Kind, State};

/// A switch that comes later than this after a wake-up was not caused by it.
const PROMPT_NS: u64 = 100_000;
/// A kind with fewer wake-ups is taken together with those like it.
const FEW: usize = 4;

/// From wake-ups to the switches that they caused, by kind.
#[derive(Clone, Debug)]
pub struct Prompt {
    kinds: [Vec<u64>; KINDS],
    /// Those of each thread, by its id.
    own: FxHashMap<(u32, usize), Vec<u64>>,
}

impl Prompt {
    /// Of the wake-ups from one time on and before another.
    #[must_use]
    pub fn of(events: &[Event], cpus: u32, (from, to): (u64, u64)) -> Self {
        let mut all = Self {
            kinds: std::array::from_fn(|_| Vec::new()),
            own: FxHashMap::default(),
        };
        let mut kinds = Kinds::new(cpus as usize);
        // The last wake-up to each CPU since it switched: whom, when, of what kind; and who runs.
        let mut last: Vec<Option<(u32, u64, WakeKind)>> = vec![None; cpus as usize];
        let mut runs: Vec<Option<u32>> = vec![None; cpus as usize];
        for event in events {
            let (at, cpu) = (event.at_ns, event.cpu);
            let (tid, to_cpu, new) = match event.kind {
                Kind::Wakeup { tid, cpu, .. } => (tid, cpu, false),
                Kind::WakeupNew { tid, cpu, .. } => (tid, cpu, true),
                Kind::Switch {
                    prev, state, next, ..
                } => {
                    kinds.switched(cpu, at, next == 0);
                    let slot = cpu as usize;
                    let woken = last[slot].take().filter(|(tid, ..)| *tid == next);
                    let known = runs[slot].replace(next) == Some(prev);
                    // What a thread still did before it slept is no part of it.
                    let known = known && (prev == 0 || state == State::Runnable);
                    if let Some((_, since, kind)) = woken.filter(|_| known)
                        && (from..to).contains(&since)
                        && at - since <= PROMPT_NS
                    {
                        let kind = kind.index();
                        all.kinds[kind].push(at - since);
                        all.own.entry((next, kind)).or_default().push(at - since);
                    }
                    continue;
                }
                _ => continue,
            };
            let kind = kinds.woke(cpu, to_cpu, new, at);
            if let Some(slot) = last.get_mut(to_cpu as usize) {
                *slot = Some((tid, at, kind));
            }
        }
        all
    }

    /// All wake-ups of the kinds that are wanted.
    fn all(&self, wanted: impl Fn(WakeKind) -> bool) -> Vec<i64> {
        let kinds = WakeKind::all().filter(|kind| wanted(*kind));
        kinds
            .flat_map(|kind| &self.kinds[kind.index()])
            .map(|ns| *ns as i64)
            .collect()
    }
}

/// Sets what is missing in `replayed`, of kinds of which nothing is known yet; and of the threads
/// of the templates, whose ids these are, where there are enough of a kind on both sides.
pub fn adjust(tails: &mut Tails, recorded: &Prompt, replayed: &Prompt, templates: &[u32]) {
    for kind in WakeKind::all() {
        let known = &mut tails.kinds[kind.index()];
        if known.is_empty()
            && let Some((recorded, replayed)) = alike(kind, recorded, replayed)
        {
            let model = median(&replayed);
            *known = recorded.iter().map(|ns| ns - model).collect();
        } else {
            continue;
        }
        for (template, tid) in (0..).zip(templates) {
            let key = (*tid, kind.index());
            let both = recorded.own.get(&key).zip(replayed.own.get(&key));
            if let Some((recorded, replayed)) = both
                && recorded.len().min(replayed.len()) >= FEW
            {
                let signed = |ns: &[u64]| ns.iter().map(|ns| *ns as i64).collect::<Vec<_>>();
                let model = median(&signed(replayed));
                let beyond = recorded.iter().map(|ns| *ns as i64 - model).collect();
                tails.own.insert((template, kind.index()), beyond);
            }
        }
    }
}

/// The wake-ups of this kind on both sides or, if there are few, of those like it.
fn alike(kind: WakeKind, recorded: &Prompt, replayed: &Prompt) -> Option<(Vec<i64>, Vec<i64>)> {
    let mut found: Option<(Vec<i64>, Vec<i64>)> = None;
    for level in 0..4 {
        let wanted = |k: WakeKind| {
            let same_pause = (k.pause > 0) == (kind.pause > 0);
            match level {
                0 => k == kind,
                1 => same_pause && (k.idle, k.remote, k.new) == (kind.idle, kind.remote, kind.new),
                2 => same_pause && k.idle == kind.idle,
                _ => same_pause,
            }
        };
        let sides = (recorded.all(wanted), replayed.all(wanted));
        if sides.0.is_empty() || sides.1.is_empty() {
            continue;
        }
        if sides.0.len() >= FEW {
            return Some(sides);
        }
        found = found.or(Some(sides));
    }
    found
}

/// The median, 0 of nothing.
pub(crate) fn median(sample: &[i64]) -> i64 {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable();
    sorted
        .get(sorted.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Context;

    /// A thread that wakes an idle CPU every millisecond and gets it after `ns`.
    fn wakes(count: u64, ns: u64) -> Prompt {
        let mut events = Vec::new();
        let mut add = |at_ns, tid, kind| {
            events.push(Event {
                at_ns,
                cpu: 0,
                tid,
                context: Context::Unknown,
                kind,
            });
        };
        let switch = |prev, next| Kind::Switch {
            prev,
            prev_prio: 120,
            state: State::Blocked(b'S'),
            next,
            next_prio: 120,
        };
        add(0, 7, switch(7, 0));
        for i in 1..=count {
            let at = i * 1_500_000;
            add(
                at,
                0,
                Kind::Wakeup {
                    tid: 7,
                    prio: 120,
                    cpu: 0,
                },
            );
            add(at + ns, 0, switch(0, 7));
            add(at + 100_000, 7, switch(7, 0));
        }
        Prompt::of(&events, 1, (0, u64::MAX))
    }

    #[test]
    fn what_is_missing_is_added() {
        let mut tails = Tails::default();
        adjust(&mut tails, &wakes(5, 2_000), &wakes(9, 1_600), &[3, 7]);
        let kind = WakeKind {
            idle: true,
            remote: false,
            new: false,
            pause: 2,
        };
        assert_eq!(tails.kinds[kind.index()], [400; 5]);
        assert_eq!(tails.own[&(1, kind.index())], [400; 5]);
        assert_eq!(tails.own.len(), 1);
        adjust(&mut tails, &wakes(5, 2_000), &wakes(9, 2_000), &[3, 7]);
        assert_eq!(tails.kinds[kind.index()], [400; 5]);
        // Of a kind that was not seen, those that are most like it count; none after a short pause.
        let other = WakeKind {
            remote: true,
            ..kind
        };
        assert_eq!(tails.kinds[other.index()], [400; 5]);
        let soon = WakeKind { pause: 0, ..kind };
        assert!(tails.kinds[soon.index()].is_empty());
    }

    #[test]
    fn a_switch_long_after_the_wake_up_says_nothing() {
        assert_eq!(wakes(3, 1_000).all(|_| true), [1_000; 3]);
        assert!(wakes(3, PROMPT_NS + 1).all(|_| true).is_empty());
    }
}
