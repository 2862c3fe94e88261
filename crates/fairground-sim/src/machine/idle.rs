//! Idle states: how long the way out takes, and whether the tick stops.
//!
//! Which state is the governor's choice (`menu`). Exit latencies of drivers' tables are what the
//! governor believes, worst cases by measurement (`wult`). The real way out is taken to be 40 % of
//! that, an assumption, but no shorter than that of C1, about 1 us (`docs/calibration.md`). Where
//! no driver of x86 chooses a state, the figure is the way out itself. Where the driver has two
//! figures for a state, of the core and of the whole package, the table has the latter; a package
//! sleeps only if all of its CPUs do, so else the way out is that of the core.
//!
//! The tick stops for stays that are predicted to last longer. Where there is nothing to choose, as
//! in a guest that halts, the kernel's own rule holds (`IdleTick`).

use std::sync::atomic::Ordering::Relaxed;

use fairground::place::Access;
use fairground::sched;

use super::Sim;
use super::cpu::IdleStay;
use super::menu::{Ahead, Choice, Stay};
use crate::cache::{NS, Ps};
use crate::host::Place;
use crate::machine_file::{IdleEntry, IdleState, Machine};

/// A CPU without a timer of a task still has that of the lockup detector, ns: two fifths of
/// `watchdog_thresh`, which is 10 s (Documentation/admin-guide/lockup-watchdogs.rst).
const WATCHDOG_NS: u64 = 4_000_000_000;

/// The way out of C1, ns: the clock of the core is gated, its source keeps running.
const SHALLOW_NS: u64 = 1000;

/// The real way out of an idle state, in percent of the worst case that a driver's table has. An
/// assumption; see above.
const EXIT_PERCENT: u64 = 40;

/// What CPUs were in an idle state for (`cpuidle/stateN/usage` and `time` of sysfs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stays {
    /// Stays that ended in the measured time, and those that last at its end.
    pub usage: u64,
    /// Their time within it, the way out left aside.
    pub time: Ps,
}

impl Stays {
    /// A stay of which what lies between `from` and `to` counts.
    fn count(&mut self, from: Ps, to: Ps) {
        self.usage += 1;
        self.time += to.saturating_sub(from);
    }
}

/// The idle states of a machine.
#[derive(Debug)]
pub struct IdleTable {
    states: Vec<IdleState>,
    /// By state: what all CPUs have been in it for since the warm-up.
    stays: Vec<Stays>,
    /// Whether a driver chooses between states, not the hypervisor or nobody.
    has_driver: bool,
    /// Factor on the way out where it is assumed, for sensitivity runs.
    exit_scale: f64,
}

/// What wakes an idle CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WokenBy {
    /// Its own tick, which the governor had left on because it expected something earlier.
    Tick,
    /// Anything else.
    Other,
}

/// What an idle state has switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asleep {
    /// The core alone: others of its package are not in this state.
    Core,
    /// The whole package.
    Package,
}

impl IdleTable {
    /// From the machine file.
    pub fn new(machine: &Machine) -> Self {
        let states = machine.idle_states();
        let halts = |s: &IdleState| s.entry == IdleEntry::Halt;
        Self {
            has_driver: machine.arch == "x86_64" && !states.iter().any(halts),
            stays: vec![Stays::default(); states.len()],
            states,
            exit_scale: machine.cost_scale().idle_exit,
        }
    }

    /// Whether a CPU in a state watches its flags, so that a store wakes it and no interrupt is
    /// needed. Where nothing is said of states, those of x86 do.
    pub fn polls(&self, state: u8) -> bool {
        let described = self.states.get(usize::from(state));
        described.map_or(self.has_driver, |s| s.entry == IdleEntry::Mwait)
    }

    /// Time from the wake-up to the first instruction, for a state in which `asleep` is off.
    fn exit(&self, state: u8, asleep: Asleep) -> Ps {
        let worst = self.states.get(state as usize).map_or(0, |s| match asleep {
            Asleep::Core => s.core_exit_latency_ns.unwrap_or(s.exit_latency_ns),
            Asleep::Package => s.exit_latency_ns,
        });
        if !self.has_driver {
            return worst * NS;
        }
        let usual = worst * EXIT_PERCENT / 100;
        let real = usual.max(worst.min(SHALLOW_NS)) as f64 * self.exit_scale;
        real.round() as Ps * NS
    }

    /// What placement sees of a state: 0 without an idle driver (a guest that halts), else the
    /// table's exit latency plus one, ns.
    fn shown_latency(&self, state: u8) -> u64 {
        if self.has_driver {
            self.states
                .get(state as usize)
                .map_or(0, |s| s.exit_latency_ns + 1)
        } else {
            0
        }
    }
}

impl Sim<'_> {
    /// The executing CPU found nothing to run and goes idle.
    #[inline(never)]
    pub(super) fn enter_idle(&mut self, cpu: u32) {
        self.host.op(crate::costs::KernelOp::IdleLoop);
        let before = self.sys.features.idle_tick.is_before_choice();
        if before {
            self.stop_tick(cpu);
        }
        let at = self.host.at;
        let timer_ns = self.next_timer_ns(cpu);
        let c = &self.cpus[cpu as usize];
        let ahead = Ahead {
            timer_ns,
            tick_ns: c.tick_on.then(|| c.tick_at.saturating_sub(at) / NS),
            period_ns: self.tick / NS,
            asks_for_tick: !before,
        };
        let features = &self.sys.features;
        let unasked = |stop_tick| Choice {
            state: 0,
            stop_tick,
            timer_ns,
        };
        let Choice {
            state,
            stop_tick,
            timer_ns,
        } = match self.idle.states.len() {
            // Nothing to choose from (`cpuidle_idle_call`).
            0 | 1 => unasked(features.idle_tick.stops(c.got_tick, !c.tick_on)),
            // The governor is asked for no latency at all: polling, with the tick on.
            _ if self.workload.no_idle_states => unasked(false),
            _ => c.menu.choose(features.menu, &self.idle.states, ahead),
        };
        if stop_tick {
            self.stop_tick(cpu);
        }
        self.touch_idle_flags(cpu);
        let c = &mut self.cpus[cpu as usize];
        c.idle = Some(IdleStay {
            state,
            since: self.host.at,
            timer_ns,
        });
        let shown = self.idle.shown_latency(state);
        self.sys.cpu[cpu as usize]
            .idle_exit_latency
            .store(shown, Relaxed);
        c.work_stamp = c.work_stamp.wrapping_add(1);
        self.flush_if_core_sleeps(cpu);
    }

    /// `cpu` has gone idle: its core sleeps with its last thread, and in a deep state loses what
    /// its caches hold.
    fn flush_if_core_sleeps(&mut self, cpu: u32) {
        if self.loses_caches(cpu) && self.host.cache.threads(cpu).all(|c| self.loses_caches(c)) {
            self.host.cache.flush(cpu);
        }
    }

    /// Whether `cpu` is in a state in which its core would lose what its caches hold.
    fn loses_caches(&self, cpu: u32) -> bool {
        let state = self.idle_state(cpu).map(usize::from);
        let state = state.and_then(|s| self.idle.states.get(s));
        state.is_some_and(|s| s.flushes_caches)
    }

    /// A run begins with `cpu` idle for long, so in the deepest state that it may be in.
    pub(super) fn has_been_idle(&mut self, cpu: u32) {
        let deepest = match self.workload.no_idle_states {
            true => 0,
            false => self.idle.states.len().saturating_sub(1) as u8,
        };
        self.cpus[cpu as usize].idle = Some(IdleStay {
            state: deepest,
            since: 0,
            timer_ns: 0,
        });
        let shown = self.idle.shown_latency(deepest);
        self.sys.cpu[cpu as usize]
            .idle_exit_latency
            .store(shown, Relaxed);
    }

    /// Time to the next timer of a CPU but the tick, ns: of a task, of TCP, or of its lockup
    /// detector. The detectors of the CPUs are spread evenly.
    fn next_timer_ns(&self, cpu: u32) -> u64 {
        let now = self.host.at / NS;
        let phase = u64::from(cpu) * WATCHDOG_NS / self.cpus.len() as u64;
        let watchdog = WATCHDOG_NS - (now + phase) % WATCHDOG_NS;
        let tcp = self.cpus[cpu as usize].tcp_timer;
        let pull = self.sys.features.timer_pull;
        let mine = tcp > self.host.at && !(pull && self.others_are_awake(cpu));
        let tcp = if mine { tcp } else { Ps::MAX };
        let next = self.next_hrtimer(cpu).min(tcp);
        (next.saturating_sub(self.host.at) / NS).clamp(1, watchdog)
    }

    /// Whether a CPU but `cpu` has its tick, and so serves timers that are nobody's.
    fn others_are_awake(&self, cpu: u32) -> bool {
        let mut all = (0u32..).zip(&self.cpus);
        all.any(|(other, c)| other != cpu && !c.nohz)
    }

    /// Whether some CPU of the package of `cpu` is not in its state.
    fn package_is_awake(&self, cpu: u32, state: u8) -> bool {
        let places = &self.distance.cpus;
        let socket = places[cpu as usize].socket;
        let others = self.cpus.iter().zip(places).enumerate();
        let mut package = others.filter(|(i, (_, p))| *i != cpu as usize && p.socket == socket);
        package.any(|(_, (c, _))| c.idle.is_none_or(|stay| stay.state != state))
    }

    /// The tick stops, unless it has (`tick_nohz_stop_tick`): the hardware is set to the next timer
    /// instead, and the duty to count jiffies is free.
    fn stop_tick(&mut self, cpu: u32) {
        let c = &mut self.cpus[cpu as usize];
        if std::mem::take(&mut c.tick_on) {
            self.program_timer();
        }
        if self.do_timer == Some(cpu) {
            self.do_timer = None;
        }
        if !self.cpus[cpu as usize].nohz {
            self.cpus[cpu as usize].nohz = true;
            self.engine(sched::nohz_enter_idle);
        }
    }

    /// `by` wakes an idle CPU at the host's time: pays the way out.
    #[inline(never)]
    pub(super) fn leave_idle(&mut self, cpu: u32, by: WokenBy) {
        let Some(stay) = self.cpus[cpu as usize].idle.take() else {
            return;
        };
        let at = self.host.at;
        if let Some(stays) = self.idle.stays.get_mut(usize::from(stay.state))
            && at >= self.warmup
            && stay.is_chosen()
        {
            stays.count(stay.since.max(self.warmup), at);
        }
        let c = &mut self.cpus[cpu as usize];
        c.got_tick = by == WokenBy::Tick;
        c.counted_to = c.counted_to.max(at);
        c.gaps.wakes(at);
        self.sys.cpu[cpu as usize]
            .idle_exit_latency
            .store(0, Relaxed);
        let asleep = match self.package_is_awake(cpu, stay.state) {
            true => Asleep::Core,
            false => Asleep::Package,
        };
        self.host
            .stall(Place::IdleExit, self.idle.exit(stay.state, asleep));
        let states = &self.idle.states;
        self.cpus[cpu as usize].menu.learn(Stay {
            timer_ns: stay.timer_ns,
            length_ns: self.host.at.saturating_sub(stay.since) / NS,
            exit_ns: states
                .get(stay.state as usize)
                .map_or(0, |s| s.exit_latency_ns),
            by_tick: by == WokenBy::Tick,
            period_ns: self.tick / NS,
        });
        self.touch_idle_flags(cpu);
        // Nobody may have counted while this CPU slept (`tick_nohz_update_jiffies`).
        if !self.cpus[cpu as usize].tick_on {
            self.count_jiffies();
        }
    }

    /// Something wakes an idle CPU at `at`: the way out of its state is a step of its own, so that
    /// others act before this CPU does what it was woken for.
    pub(super) fn come_out(&mut self, cpu: u32, at: Ps, by: WokenBy) {
        self.host.begin(cpu, at);
        self.leave_idle(cpu, by);
        self.cpus[cpu as usize].came_out = true;
        self.step_done(cpu);
        self.push_work(cpu, self.cpus[cpu as usize].busy_until);
    }

    /// The first step after an idle state calls what was queued while others saw its CPU watch its
    /// flags. Whether it is that step.
    pub(super) fn end_idle_state(&mut self, cpu: u32) -> bool {
        let came_out = std::mem::take(&mut self.cpus[cpu as usize].came_out);
        if came_out {
            self.see_polled(cpu);
        }
        came_out
    }

    /// The idle state that `cpu` is in; `None`: it is not idle.
    pub fn idle_state(&self, cpu: u32) -> Option<u8> {
        self.cpus[cpu as usize].idle.map(|stay| stay.state)
    }

    /// What the machine file calls an idle state.
    pub fn idle_state_name(&self, state: u8) -> Option<&str> {
        let state = self.idle.states.get(usize::from(state));
        state.map(|s| s.name.as_str())
    }

    /// By name, each idle state of the machine and what CPUs were in it for, up to `end`.
    pub fn idle_stays(&self, end: Ps) -> Vec<(String, Stays)> {
        let mut stays = self.idle.stays.clone();
        let chosen = self.cpus.iter().filter_map(|c| c.idle);
        for stay in chosen.filter(|stay| stay.is_chosen()) {
            if let Some(stays) = stays.get_mut(usize::from(stay.state)) {
                stays.count(stay.since.max(self.warmup), end);
            }
        }
        let names = self.idle.states.iter().map(|s| s.name.clone());
        names.zip(stays).collect()
    }

    /// The idle loop looks at `TIF_NEED_RESCHED` and sets or clears `TIF_POLLING_NRFLAG`, once for
    /// the loop and once for the state, on the way in and on the way out. Whoever woke this CPU has
    /// the line; it comes back with the first look on the way out.
    fn touch_idle_flags(&mut self, cpu: u32) {
        let place = Place::Op(crate::costs::KernelOp::IdleLoop);
        self.host.touch_idle_flags(place, cpu, Access::Read);
        self.host.touch_idle_flags(place, cpu, Access::Rmw);
        self.host.touch_idle_flags(place, cpu, Access::Rmw);
    }

    /// The tick goes on when a CPU has a task again.
    pub(super) fn restart_tick(&mut self, cpu: u32) {
        self.cpus[cpu as usize].got_tick = false;
        self.cpus[cpu as usize].nohz = false;
        if !self.cpus[cpu as usize].tick_on {
            self.program_tick(cpu, self.host.at);
            if self.cpus[cpu as usize].tick_at < self.next_hrtimer(cpu) {
                self.program_timer();
            }
            self.cpus[cpu as usize].tick_on = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use fairground::value::TaskId;

    use super::*;
    use crate::cache::{Access::Load, MissClass};
    use crate::machine::testing::{at_5ms, on, on_guest, server};

    #[test]
    fn no_state_is_left_faster_than_a_shallower_one_nor_slower_than_its_table_says() {
        for id in ["xeon-8cpu-2013", "icx-8358-2s", "genoa-9654-2s"] {
            let idle = IdleTable::new(&Machine::builtin(id).unwrap());
            let exits: Vec<_> = (0..idle.states.len() as u8)
                .map(|state| idle.exit(state, Asleep::Package))
                .collect();
            assert!(exits.is_sorted(), "{id}: {exits:?}");
            assert_eq!(exits[..2], [0, SHALLOW_NS * NS], "{id}");
            let tabled = idle.states.iter().map(|s| s.exit_latency_ns * NS);
            assert!(exits.iter().zip(tabled).all(|(exit, worst)| *exit <= worst));
        }
        let guest = IdleTable::new(&Machine::from_path_or_id("spr-guest-2cpu").unwrap());
        assert_eq!(guest.exit(0, Asleep::Package), 1140 * NS, "as measured");
    }

    #[test]
    fn a_run_begins_in_the_deepest_state_and_placement_knows() {
        let begins = |argv: &str, wanted: fn(usize) -> usize| {
            on(&server(4), argv, &[], |sim| {
                let wanted = wanted(sim.idle.states.len() - 1);
                let latency_ns = sim.idle.states[wanted].exit_latency_ns;
                for cpu in 0..4 {
                    assert_eq!(sim.idle_state(cpu), Some(wanted as u8), "{argv}");
                    let shown = &sim.sys.cpu[cpu as usize].idle_exit_latency;
                    assert_eq!(shown.load(Relaxed), latency_ns + 1, "{argv}");
                }
            });
        };
        begins("hogs --tasks 1 --duration 10ms", |deepest| deepest);
        // Who holds /dev/cpu_dma_latency at 0 had it before the run.
        begins("cyclictest -t 1 -i 2000 -D 0.01", |_| 0);
    }

    /// A core has C6 when both of its threads have asked for it.
    #[test]
    fn a_core_loses_its_caches_when_its_last_thread_goes_to_c6() {
        let machine = Machine::builtin("icx-8358-2s").unwrap();
        on(&machine, "hogs --tasks 1 --duration 10ms", &[], |sim| {
            let threads: Vec<u32> = sim.host.cache.threads(0).collect();
            let [first, last] = threads[..] else {
                panic!("{threads:?}")
            };
            let line = sim.host.cache.alloc_lines(1, 0);
            let hits = |sim: &mut Sim<'_>| {
                let at = sim.host.at;
                let touch = |sim: &mut Sim<'_>| sim.host.cache.touch(first, line, 1, Load, at);
                let class = touch(sim).class;
                touch(sim);
                class == MissClass::Hit
            };
            let deepest = sim.idle.states.len() as u8 - 1;
            assert!(sim.idle.states[usize::from(deepest)].flushes_caches);
            assert!(!sim.idle.states[usize::from(deepest) - 1].flushes_caches);
            let in_state = |state: Option<u8>| {
                state.map(|state| IdleStay {
                    state,
                    since: 0,
                    timer_ns: 0,
                })
            };
            hits(sim);
            for (beside, stays) in [
                (None, true),
                (Some(deepest - 1), true),
                (Some(deepest), false),
            ] {
                sim.cpus[first as usize].idle = in_state(beside);
                sim.cpus[last as usize].idle = in_state(Some(deepest));
                sim.flush_if_core_sleeps(last);
                assert_eq!(hits(sim), stays, "{beside:?}");
            }
        });
    }

    #[test]
    fn stays_count_from_the_warm_up_to_the_end() {
        at_5ms(&server(2), "hogs --tasks 1 --duration 10ms", &[], |sim| {
            let cpu = u32::from(sim.cpus[0].idle.is_none());
            sim.leave_idle(cpu, WokenBy::Other);
            sim.warmup = 2_000_000 * NS;
            sim.idle.stays.fill(Stays::default());
            sim.enter_idle(cpu);
            let state = usize::from(sim.idle_state(cpu).unwrap());
            sim.cpus[cpu as usize].idle.as_mut().unwrap().since = 0;
            let at = |sim: &Sim<'_>, end: Ps| sim.idle_stays(end * NS)[state].1;
            let stay = |usage, ms: Ps| Stays {
                usage,
                time: ms * 1_000_000 * NS,
            };
            assert_eq!(at(sim, 6_000_000), stay(1, 4), "it lasts");
            sim.host.at = 5_000_000 * NS;
            sim.leave_idle(cpu, WokenBy::Other);
            assert_eq!(at(sim, 6_000_000), stay(1, 3), "it has ended");
        });
    }

    /// Since 6.9 a CPU that is awake serves timers that are nobody's.
    #[test]
    fn a_timer_of_tcp_is_no_idle_cpus_while_another_is_awake() {
        for (value, counts) in [("off", true), ("on", false)] {
            let set = [("timer_pull", value)];
            at_5ms(&server(2), "hogs --tasks 1 --duration 10ms", &set, |sim| {
                let (idle, busy) = match sim.cpus[0].idle {
                    Some(_) => (0, 1),
                    None => (1, 0),
                };
                assert!(sim.cpus[idle].nohz && !sim.cpus[busy].nohz);
                sim.cpus[idle].tcp_timer = sim.host.at + 40_000_000 * NS;
                let next = |sim: &Sim<'_>| sim.next_timer_ns(idle as u32) <= 40_000_000;
                assert_eq!(next(sim), counts, "{value}");
                sim.cpus[busy].nohz = true;
                assert!(next(sim), "it is the last");
            });
        }
    }

    #[test]
    fn stopping_and_restarting_the_tick_sets_the_hardware_once_each() {
        on_guest(|sim| {
            let price = sim.host.prices.timer_program;
            assert!(price > 0 && sim.cpus[0].tick_on);
            let programs = |sim: &mut Sim<'_>, act: fn(&mut Sim<'_>)| {
                let before = sim.host.profile.self_ps_of(Place::Irq);
                act(sim);
                (sim.host.profile.self_ps_of(Place::Irq) - before) / price
            };
            assert_eq!(programs(sim, |sim| sim.stop_tick(0)), 1);
            assert_eq!(programs(sim, |sim| sim.stop_tick(0)), 0);
            assert_eq!(programs(sim, |sim| sim.restart_tick(0)), 1);
            assert_eq!(programs(sim, |sim| sim.restart_tick(0)), 0);
            // An earlier timer is what the hardware stays set to.
            sim.stop_tick(0);
            let soon = sim.host.at + 1;
            sim.set_wait(0, TaskId(0), soon, soon);
            assert_eq!(programs(sim, |sim| sim.restart_tick(0)), 0);
        });
    }

    #[test]
    fn the_governor_sees_every_timer_and_a_stay_that_the_tick_ends_as_a_long_one() {
        on_guest(|sim| {
            let at = sim.host.at;
            for (task, us) in [(0, 900), (1, 300), (0, 100)] {
                let when = at + us * 1000 * NS;
                sim.set_wait(0, TaskId(task), when, when);
            }
            let next = |sim: &Sim<'_>| (sim.next_hrtimer(0) - at) / (1000 * NS);
            assert_eq!(next(sim), 100);
            sim.host.at = at + 100 * 1000 * NS;
            sim.expire(0);
            assert_eq!(next(sim), 300, "the others are still there");
            let mut stay = |timer_ns, by| {
                sim.cpus[0].idle = Some(IdleStay {
                    state: 0,
                    since: sim.host.at - 1_000_000 * NS,
                    timer_ns,
                });
                sim.leave_idle(0, by);
                sim.cpus[0].menu.last_us()
            };
            assert_eq!(stay(100_000_000, WokenBy::Other), 1000);
            assert_eq!(stay(100_000_000, WokenBy::Tick), 45_000);
            assert_eq!(
                stay(3_000_000, WokenBy::Tick),
                3000,
                "not beyond the next timer"
            );
        });
    }

    #[test]
    fn without_a_choice_the_tick_goes_on_until_it_has_come_in_vain() {
        on_guest(|sim| {
            let idle = |sim: &mut Sim<'_>, by| {
                if let Some(by) = by {
                    sim.leave_idle(0, by);
                }
                sim.enter_idle(0);
                sim.cpus[0].tick_on
            };
            assert!(idle(sim, None));
            assert!(
                idle(sim, Some(WokenBy::Other)),
                "something else has woken it"
            );
            assert!(!idle(sim, Some(WokenBy::Tick)));
            assert!(!idle(sim, Some(WokenBy::Other)), "it stays off");
            sim.leave_idle(0, WokenBy::Tick);
            sim.restart_tick(0);
            assert!(idle(sim, None), "a task has run since");
        });
    }

    #[test]
    fn before_4_17_the_tick_stopped_whatever_the_governor_expected() {
        for (value, ticks) in [("stop", true), ("before-choice", false)] {
            let set = [("idle_tick", value)];
            at_5ms(&server(2), "hogs --tasks 1 --duration 10ms", &set, |sim| {
                let cpu = u32::from(sim.cpus[0].idle.is_none());
                sim.leave_idle(cpu, WokenBy::Other);
                sim.restart_tick(cpu);
                for _ in 0..8 {
                    sim.cpus[cpu as usize].menu.learn(Stay {
                        timer_ns: 1_000_000_000,
                        length_ns: 5000,
                        exit_ns: 0,
                        by_tick: false,
                        period_ns: 1_000_000,
                    });
                }
                sim.enter_idle(cpu);
                assert_eq!(sim.cpus[cpu as usize].tick_on, ticks, "{value}");
            });
        }
    }
}
