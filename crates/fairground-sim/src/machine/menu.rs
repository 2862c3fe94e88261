//! The `menu` governor: how long a CPU will idle, and in which state.
//!
//! Two guesses are made, and the shorter one is believed. One is the time to the next timer, times
//! how much of such a time stays have lasted before. The other is the typical length of the last
//! eight stays: their mean, if they differ by little, else the mean without the longest, down to
//! three quarters of them. The deepest state follows whose target residency fits. Lengths are
//! whole microseconds, so stays that are equally long are left out together.
//!
//! By decision (`menu`) the stay farthest from the mean is left out, be it the longest or the
//! shortest; the longest of what is left is believed where nothing is typical; and a typical stay
//! of 15 us or less is believed without a look at the timers.
//!
//! A length is what the kernel measures: from the way into the state to the end of the way out,
//! less the exit latency that the table of the driver promises, or half of it if it is shorter
//! than twice that.

use fairground::policy::Menu as Rule;

use crate::machine_file::IdleState;

/// One, for correction factors: 1024 times the weight of the past, as in the governor.
const UNITY: u32 = 1024 * DECAY;
/// Weight of the past in a correction factor.
const DECAY: u32 = 8;
/// Stays of this length and more say that nothing but the timer came.
const MAX_INTERESTING_NS: u64 = 50_000_000;
/// Standard deviation, us, below which stays are alike, whatever their length.
const ALIKE_US: u64 = 20;
/// Up to this typical length, ns, timers need not be looked at (`RESIDENCY_THRESHOLD_NS`).
const SHORT_NS: u64 = 15_000;
/// A timer that nobody has looked at.
const UNSEEN_NS: u64 = u64::MAX;
/// No pattern.
const NONE_US: u64 = u32::MAX as u64;

/// What one CPU's governor remembers.
#[derive(Clone, Debug)]
pub struct Menu {
    /// Lengths of the last stays, us; 0 = there was none yet.
    last_us: [u32; 8],
    next: u8,
    /// How much of the time to the next timer stays have lasted, by its order of magnitude.
    correction: [u32; 6],
}

impl Default for Menu {
    fn default() -> Self {
        Self {
            last_us: [0; 8],
            next: 0,
            correction: [UNITY; 6],
        }
    }
}

/// What a CPU knows when it goes idle.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// Time to the next timer, the tick left out, ns.
    pub timer_ns: u64,
    /// Time to the next tick, if it has not been stopped, ns.
    pub tick_ns: Option<u64>,
    /// Between two ticks, ns.
    pub period_ns: u64,
    /// Whether the tick is the governor's to stop, and nothing but it would end a stay that was
    /// guessed too short.
    pub asks_for_tick: bool,
}

/// A stay that is over.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    /// Time to the next timer at its beginning, ns; 0 = a run has begun in it.
    pub timer_ns: u64,
    /// From the way in to the end of the way out, ns.
    pub length_ns: u64,
    /// The exit latency of its state by the table, ns.
    pub exit_ns: u64,
    /// The tick has ended it, which had been left on because something earlier was expected.
    pub by_tick: bool,
    /// Between two ticks, ns.
    pub period_ns: u64,
}

/// What the governor says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Index of the state.
    pub state: u8,
    /// Whether the tick should be stopped.
    pub stop_tick: bool,
    /// The time to the next timer as the governor knows it, ns.
    pub timer_ns: u64,
}

/// The order of magnitude of a time to the next timer: below 10 us, 100 us, ... 100 ms, more.
fn bucket(timer_ns: u64) -> usize {
    (timer_ns.max(1000).ilog10() as usize - 3).min(5)
}

impl Menu {
    /// The state for a stay that begins, and whether it is worth stopping the tick.
    pub fn choose(&self, rule: Rule, states: &[IdleState], ahead: Ahead) -> Choice {
        let mut predicted = self.typical_us(rule) * 1000;
        let (mut timer_ns, mut tick_ns) = (ahead.timer_ns, ahead.tick_ns);
        if rule.looks_at_timers(predicted <= SHORT_NS, tick_ns.is_none()) {
            predicted = predicted.min(self.corrected_ns(timer_ns));
        } else {
            // As if nothing came but a tick, half of the time.
            timer_ns = UNSEEN_NS;
            tick_ns = tick_ns.map(|_| ahead.period_ns / 2);
        }
        if timer_ns < states[1].target_residency_ns {
            // Polling is for timers that are as good as due, never for a mere guess.
            return Choice {
                state: 0,
                stop_tick: !states[0].polls(),
                timer_ns,
            };
        }
        let Some(tick_ns) = tick_ns else {
            // Nothing would correct a guess that is too short any more.
            if ahead.asks_for_tick && predicted < ahead.period_ns {
                predicted = timer_ns;
            }
            return Choice {
                state: without_tick(states, predicted, timer_ns, ahead.period_ns),
                stop_tick: true,
                timer_ns,
            };
        };
        let state = usize::from(deepest(states, predicted));
        if predicted >= ahead.period_ns && state + 1 < states.len() {
            // A deeper state would have been for a longer stay. If this one is for less than a
            // tick, a tick more does no harm, and the governor is asked again.
            predicted = states[state].target_residency_ns;
        }
        let stop_tick = predicted >= ahead.period_ns;
        if !stop_tick {
            // The tick that stays on is a timer, too.
            predicted = predicted.min(tick_ns.min(timer_ns));
        }
        Choice {
            state: deepest(states, predicted),
            stop_tick,
            timer_ns,
        }
    }

    /// How long a stay will last by what such times to the next timer have come to, ns.
    fn corrected_ns(&self, timer_ns: u64) -> u64 {
        let factor = u64::from(self.correction[bucket(timer_ns)]);
        let scale = u64::from(UNITY) * 1000;
        (timer_ns.saturating_mul(factor).saturating_add(scale / 2)) / scale * 1000
    }

    /// The typical length of the last stays, us.
    fn typical_us(&self, rule: Rule) -> u64 {
        if self.last_us.contains(&0) {
            return NONE_US;
        }
        let (mut least, mut limit) = (0, u32::MAX);
        loop {
            let kept = self.last_us.iter().filter(|v| (least..=limit).contains(*v));
            let (n, sum) = kept
                .clone()
                .fold((0, 0), |(n, sum), v| (n + 1, sum + u64::from(*v)));
            if n == 0 {
                return NONE_US;
            }
            let mean = sum / n;
            let square = |v: &u32| u128::from(u64::from(*v).abs_diff(mean)).pow(2);
            let mean_of = |all: u128| all / u128::from(n);
            let variance = if rule.spread_is_of_squares() {
                let squares = kept.clone().map(|v| u128::from(*v).pow(2)).sum();
                mean_of(squares) - u128::from(mean).pow(2)
            } else {
                mean_of(kept.clone().map(square).sum())
            };
            let close = u128::from(mean).pow(2) > 36 * variance && n >= 6;
            if close || variance <= u128::from(ALIKE_US * ALIKE_US) {
                return mean;
            }
            let shortest = kept.clone().min().map_or(0, |v| *v);
            let longest = kept.max().map_or(0, |v| *v);
            if n <= 6 {
                let believed = rule.believes_longest() && n >= 4;
                return if believed { longest.into() } else { NONE_US };
            }
            let below = mean - u64::from(shortest);
            if rule.trims_both_ends() && below > u64::from(longest) - mean {
                least = shortest + 1;
            } else {
                limit = longest - 1;
            }
        }
    }

    /// Learns from a stay, if a state was chosen for it.
    pub fn learn(&mut self, stay: Stay) {
        let timer_ns = stay.timer_ns;
        if timer_ns == 0 {
            return;
        }
        let measured = if stay.by_tick && timer_ns > stay.period_ns {
            // It would have lasted longer, nobody knows how much.
            MAX_INTERESTING_NS / 10 * 9
        } else if stay.length_ns > 2 * stay.exit_ns {
            stay.length_ns - stay.exit_ns
        } else {
            stay.length_ns / 2
        };
        let measured = measured.min(timer_ns);
        let share = if measured < MAX_INTERESTING_NS {
            u64::from(UNITY / DECAY) * measured / timer_ns
        } else {
            u64::from(UNITY / DECAY)
        };
        let factor = &mut self.correction[bucket(timer_ns)];
        *factor = (*factor - *factor / DECAY + share as u32).max(1);
        // A stay shorter than the clock's unit is no missing one.
        let us = (measured / 1000).clamp(1, NONE_US - 1);
        self.last_us[usize::from(self.next)] = us as u32;
        self.next = (self.next + 1) % 8;
    }
}

/// The deepest state but polling that is worth a stay of `ns`, or the shallowest.
fn deepest(states: &[IdleState], ns: u64) -> u8 {
    let fits = |s: &IdleState| s.target_residency_ns <= ns;
    let shallowest = usize::from(states[0].polls());
    states
        .iter()
        .rposition(fits)
        .map_or(shallowest, |s| s.max(shallowest)) as u8
}

/// [`deepest`], where the tick is stopped: the next deeper state if that one is for less than a
/// tick and the timer is far enough away, as nothing would end a long stay in it.
fn without_tick(states: &[IdleState], ns: u64, timer_ns: u64, period_ns: u64) -> u8 {
    let state = deepest(states, ns);
    let shallow = states[usize::from(state)].target_residency_ns < period_ns;
    let deeper = states.get(usize::from(state) + 1);
    let fits = deeper.is_some_and(|s| s.target_residency_ns <= timer_ns);
    state + u8::from(ns >= period_ns && shallow && fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_file::Machine;

    impl Menu {
        /// The length of the last stay as remembered, us.
        pub fn last_us(&self) -> u32 {
            self.last_us[usize::from((self.next + 7) % 8)]
        }
    }

    const US: u64 = 1000;
    const MS: u64 = 1000 * US;

    fn states() -> Vec<IdleState> {
        Machine::builtin("icx-8358-2s").unwrap().idle_states()
    }

    /// A governor that has seen stays of these lengths, us, in C1, a second before any timer.
    fn after(stays_us: &[u64]) -> Menu {
        let mut menu = Menu::default();
        for us in stays_us {
            menu.learn(Stay {
                timer_ns: 1000 * MS,
                length_ns: us * US,
                exit_ns: 0,
                by_tick: false,
                period_ns: MS,
            });
        }
        menu
    }

    fn choice(menu: &Menu, timer_ns: u64, tick_ns: Option<u64>) -> (u8, bool) {
        let ahead = Ahead {
            timer_ns,
            tick_ns,
            period_ns: MS,
            asks_for_tick: true,
        };
        let choice = menu.choose(Rule::Longest, &states(), ahead);
        assert_eq!(choice.timer_ns, timer_ns, "always looked at");
        (choice.state, choice.stop_tick)
    }

    #[test]
    fn alike_stays_are_believed_and_the_tick_stays_on() {
        let menu = after(&[5; 8]);
        assert_eq!(choice(&menu, 1000 * MS, Some(500 * US)), (2, false));
        assert_eq!(choice(&menu, 3 * US, Some(500 * US)), (1, false));
        let few = after(&[5; 7]);
        assert_eq!(
            few.typical_us(Rule::Longest),
            NONE_US,
            "eight have to be seen"
        );
    }

    #[test]
    fn a_timer_that_is_as_good_as_due_is_polled_for_and_nothing_else() {
        let menu = after(&[1; 8]);
        assert_eq!(choice(&menu, 900, Some(MS)), (0, false));
        assert_eq!(choice(&menu, 1000 * MS, Some(MS)), (1, false));
    }

    #[test]
    fn the_longest_are_left_out_and_equal_ones_together() {
        let typical = |stays: &[u64]| after(stays).typical_us(Rule::Longest);
        assert_eq!(typical(&[5, 5, 5, 5, 5, 5, 900, 400]), 5);
        assert_eq!(typical(&[5, 5, 5, 5, 5, 900, 400, 300]), NONE_US);
        assert_eq!(typical(&[5, 5, 5, 118, 118, 118, 118, 118]), 5);
        assert_eq!(typical(&[5, 5, 5, 118, 119, 160, 220, 270]), NONE_US);
    }

    #[test]
    fn the_shortest_may_be_left_out_too() {
        let stays = [300, 5, 300, 300, 5, 300, 300, 300];
        assert_eq!(after(&stays).typical_us(Rule::Longest), 5);
        assert_eq!(after(&stays).typical_us(Rule::BothEnds), 300);
        let long = [5, 5, 5, 5, 5, 5, 900, 400];
        assert_eq!(after(&long).typical_us(Rule::BothEnds), 5);
    }

    /// What is cut off the mean counts as spread since 6.15.
    #[test]
    fn stays_at_the_edge_of_being_alike_are_so_by_the_older_rule() {
        let stays = [118, 83, 118, 83, 118, 83, 118, 86];
        assert_eq!(after(&stays).typical_us(Rule::Longest), 100);
        assert_eq!(after(&stays).typical_us(Rule::BothEnds), 83);
    }

    #[test]
    fn the_longest_of_half_of_the_stays_may_be_believed() {
        let stays = [100, 200, 300, 400, 500, 600, 700, 5000];
        assert_eq!(after(&stays).typical_us(Rule::BothEnds), NONE_US);
        assert_eq!(after(&stays).typical_us(Rule::KeepsLongest), 600);
        let equal = [10, 10, 10, 10, 10, 10, 900, 2000];
        assert_eq!(after(&equal).typical_us(Rule::KeepsLongest), 10, "typical");
        let few = [10, 10, 10, 400, 900, 1500, 1500, 1500];
        assert_eq!(after(&few).typical_us(Rule::KeepsLongest), 900);
    }

    #[test]
    fn short_stays_are_believed_without_a_look_at_timers() {
        let menu = after(&[5; 8]);
        let choose = |rule, tick_ns| {
            let ahead = Ahead {
                timer_ns: 900,
                tick_ns,
                period_ns: MS,
                asks_for_tick: true,
            };
            let choice = menu.choose(rule, &states(), ahead);
            (choice.state, choice.timer_ns)
        };
        assert_eq!(choose(Rule::Longest, Some(MS)), (0, 900));
        assert_eq!(choose(Rule::SkipTimers, Some(MS)), (2, UNSEEN_NS));
        assert_eq!(choose(Rule::BothEnds, Some(MS)), (2, UNSEEN_NS));
        assert_eq!(choose(Rule::KeepsLongest, Some(MS)), (2, UNSEEN_NS));
        assert_eq!(choose(Rule::SkipTimers, None), (3, UNSEEN_NS));
        assert_eq!(choose(Rule::BothEnds, None), (0, 900));
    }

    #[test]
    fn a_tick_that_stays_on_is_a_timer() {
        // Predicted are 700 us, C6 takes 600.
        let menu = after(&[700; 8]);
        assert_eq!(choice(&menu, 1000 * MS, Some(900 * US)), (3, false));
        assert_eq!(choice(&menu, 1000 * MS, Some(300 * US)), (2, false));
    }

    #[test]
    fn without_a_tick_a_short_guess_is_not_believed() {
        let menu = after(&[5; 8]);
        assert_eq!(choice(&menu, 1000 * MS, None), (3, true));
        assert_eq!(choice(&menu, 2 * US, None), (1, true));
    }

    /// As of a client: C6, then a state for longer than a tick.
    #[test]
    fn the_tick_stays_where_a_shallow_state_would_outlast_it() {
        let mut states = states();
        let deepest = states.last().unwrap().clone();
        states.push(IdleState {
            name: "C10".into(),
            target_residency_ns: 5 * MS,
            ..deepest
        });
        let choose = |stay_us, timer_ns, tick_ns| {
            let ahead = Ahead {
                timer_ns,
                tick_ns,
                period_ns: MS,
                asks_for_tick: true,
            };
            let choice = after(&[stay_us; 8]).choose(Rule::Longest, &states, ahead);
            (choice.state, choice.stop_tick)
        };
        let second = 1000 * MS;
        assert_eq!(choose(2500, second, Some(900 * US)), (3, false));
        assert_eq!(choose(5500, second, Some(900 * US)), (4, true));
        // Without a tick nothing would end a long stay in C6.
        assert_eq!(choose(2500, 6 * MS, None), (4, true));
        assert_eq!(choose(2500, 4 * MS, None), (3, true));
    }

    #[test]
    fn a_first_state_that_does_not_poll_is_one_as_any_other() {
        let mut states = states();
        states.remove(0);
        states[0].name = "WFI".into();
        let ahead = Ahead {
            timer_ns: 1000 * MS,
            tick_ns: Some(MS),
            period_ns: MS,
            asks_for_tick: true,
        };
        let choose = |ahead| {
            let choice = after(&[1; 8]).choose(Rule::Longest, &states, ahead);
            (choice.state, choice.stop_tick)
        };
        assert_eq!(choose(ahead), (0, false));
        let timer_ns = 900;
        assert_eq!(choose(Ahead { timer_ns, ..ahead }), (0, true));
    }

    #[test]
    fn a_guess_is_believed_where_the_tick_is_none_of_its_business() {
        let ahead = Ahead {
            timer_ns: 1000 * MS,
            tick_ns: None,
            period_ns: MS,
            asks_for_tick: false,
        };
        let choice = after(&[5; 8]).choose(Rule::Longest, &states(), ahead);
        assert_eq!((choice.state, choice.stop_tick), (2, true));
    }

    #[test]
    fn the_way_out_does_not_count_and_a_tick_says_that_it_was_long() {
        let learn = |length_us: u64, timer_ns, by_tick| {
            let mut menu = Menu::default();
            menu.learn(Stay {
                timer_ns,
                length_ns: length_us * US,
                exit_ns: 170 * US,
                by_tick,
                period_ns: MS,
            });
            menu.last_us()
        };
        assert_eq!(learn(1000, 100 * MS, false), 830);
        assert_eq!(learn(300, 100 * MS, false), 150);
        assert_eq!(learn(1000, 100 * MS, true), 45_000);
        assert_eq!(
            learn(900, 900 * US, true),
            730,
            "a timer as near as the tick"
        );
    }

    #[test]
    fn the_correction_does_not_fall_below_seven() {
        let menu = after(&[5; 200]);
        assert_eq!(menu.correction[5], 7, "an eighth of it is less than one");
        assert_eq!(menu.correction[0], UNITY);
    }
}
