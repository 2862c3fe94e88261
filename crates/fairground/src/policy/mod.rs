//! Decision points: what differs between kernels, each in its own file with the one method that
//! mechanism calls.
//!
//! [`Features`] holds one value of each. A profile (a kernel version) is a row of [`PROFILES`], a
//! patch one of [`CATALOGUE`]: they set values. Nothing outside this module asks which one is on.

mod balancing;
mod catalogue;
mod cfs;
mod decisions;
mod delay_dequeue;
mod h_load;
mod hrtick;
mod idle_preemption;
mod idle_search;
mod idle_switch;
mod idle_tick;
mod idlest;
mod ilb;
mod init_util;
mod lag_limit;
mod layout;
mod lb_counts;
mod lb_rules;
mod lb_serialize;
mod load_rules;
mod menu;
mod mm;
mod newidle;
mod no_part;
mod numa;
mod open_files;
mod other_classes;
mod pick;
mod place_entity;
mod preemption;
mod profiles;
mod protect;
mod quota_expiry;
mod reweight;
mod rows;
mod select;
mod table;
mod tg_load_avg;
mod throttle;
mod wakeup;
mod wakeup_delayed;
mod yielding;

pub use balancing::{DomainLimit, DomainLimits, LoadBalance};
pub use catalogue::{CATALOGUE, Patch, Profile, find_patch, find_profile};
pub use cfs::{CfsSlice, CfsTunables, TunableScaling};
pub use decisions::{Decision, SetError, decisions};
pub use delay_dequeue::DelayDequeue;
pub use h_load::HLoad;
pub use hrtick::Hrtick;
pub use idle_preemption::IdlePreemption;
pub use idle_search::IdleSearch;
pub use idle_switch::IdleSwitch;
pub use idle_tick::IdleTick;
pub use idlest::{IdlestStats, IdlestTie};
pub use ilb::{IlbCsd, IlbKick, IlbPick};
pub use init_util::InitUtil;
pub use lag_limit::LagLimit;
pub use layout::LayoutId;
pub use lb_counts::LbCounts;
pub use lb_rules::{BigTask, LbActive, LbOrder, LbSmt};
pub use lb_serialize::LbSerialize;
pub use load_rules::{LoadRules, RunnableSum, UtilEstUpdate};
pub use menu::Menu;
pub use mm::MmCpumask;
pub use newidle::{Newidle, NewidleGate};
pub use numa::NumaImbalance;
pub use open_files::{EpollWake, FileRef, FileRefLine, OpenFiles, PipeTimes, PipeWakeWriter};
pub use other_classes::OtherClasses;
pub use pick::{Pick, VruntimeBase};
pub use place_entity::{PlaceEntity, PlaceNew};
pub use preemption::Preemption;
pub use profiles::PROFILES;
pub use protect::RunToParity;
pub use quota_expiry::{Expiry, QuotaExpiry};
pub use reweight::Reweight;
pub use select::{RecentUsedCpu, ScanBudget, ScanLimit, WakeAffine};
pub use tg_load_avg::TgLoadAvg;
pub use throttle::{PeriodPhase, Throttle, ThrottledClock};
pub use wakeup::{BuddyRules, NextBuddy, TtwuOnCpu, TtwuQueue, WakeupPreemption};
pub use wakeup_delayed::WakeupDelayed;
pub use yielding::Yielding;

/// One value of every decision point: a complete behaviour. `Default` is Linux 6.18.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Features {
    /// Whom to pick: EEVDF or CFS.
    pub pick: Pick,
    /// What a queue's virtual times are relative to.
    pub vruntime_base: VruntimeBase,
    /// Where an entity is placed in virtual time.
    pub place: PlaceEntity,
    /// How long a picked entity is protected.
    pub run_to_parity: RunToParity,
    /// Whether a timer ends a turn, or the next tick.
    pub hrtick: Hrtick,
    /// How much lag an entity keeps.
    pub lag_limit: LagLimit,
    /// Where an entity is after a change of its weight.
    pub reweight: Reweight,
    /// What a task gives up that yields.
    pub yielding: Yielding,
    /// What happens to an entity that sleeps with negative lag.
    pub delay_dequeue: DelayDequeue,
    /// Whether and how a wake-up preempts.
    pub wakeup_preemption: WakeupPreemption,
    /// What a wake-up does to a running task of the idle policy.
    pub idle_preemption: IdlePreemption,
    /// What becomes of a delayed sleeper in the way of a wake-up's preemption.
    pub wakeup_delayed: WakeupDelayed,
    /// Whether a woken or yielded-to entity is remembered.
    pub next_buddy: NextBuddy,
    /// What buddies and forks are to a wake-up.
    pub buddy_rules: BuddyRules,
    /// Slices and granularities.
    pub tunables: CfsTunables,
    /// When a queue's load is published to the group (patch `tg-load-avg-ratelimit`).
    pub tg_load_avg: TgLoadAvg,
    /// When the hierarchical load is computed (patch `lazy-h-load`).
    pub h_load: HLoad,
    /// Whether redundant idle-balancer flags are written (patch `ilb-skip-redundant`).
    pub ilb_kick: IlbKick,
    /// What ends the work of an asked CPU.
    pub ilb_csd: IlbCsd,
    /// Which idle CPU balances for the others.
    pub ilb_pick: IlbPick,
    /// What an idle CPU does that is asked to reschedule and has nothing queued.
    pub idle_switch: IdleSwitch,
    /// When the tick of an idle CPU stops: before a state is chosen, or where there is no choice.
    pub idle_tick: IdleTick,
    /// Whether an idle CPU is sent an interrupt also while it watches its flags (up to 3.15, before
    /// "sched/idle: Optimize try-to-wake-up IPI", Peter Zijlstra, 2014); the engine does not ask.
    pub polling_ipi: bool,
    /// Whether timers that any CPU may serve, such as those of TCP, are no reason for an idle CPU
    /// to expect an early end while another is awake ("timers: Implement the hierarchical pull
    /// model", Anna-Maria Behnsen, 6.9); the engine does not ask.
    pub timer_pull: bool,
    /// What the governor of idle states makes of the last stays; the engine does not ask.
    pub menu: Menu,
    /// What system calls do to open files and pipes; the engine does not ask.
    pub files: OpenFiles,
    /// What a switch does to masks of address spaces; the engine does not ask.
    pub mm_cpumask: MmCpumask,
    /// How the slow path breaks ties between groups (patch `idlest-util-tiebreak`).
    pub idlest_tie: IdlestTie,
    /// Which CPUs of a group the slow path looks at.
    pub idlest_stats: IdlestStats,
    /// How uneven nodes may be.
    pub numa_imbalance: NumaImbalance,
    /// How a queue out of quota is kept from running.
    pub throttle: Throttle,
    /// When the period timers of groups fire.
    pub period_phase: PeriodPhase,
    /// When the throttled time of a queue begins.
    pub throttled_clock: ThrottledClock,
    /// Whether runtime that a queue has drawn ends with the period.
    pub quota_expiry: QuotaExpiry,
    /// Wake-ups across caches through a remote list.
    pub ttwu_queue: TtwuQueue,
    /// Wake-ups of a task that is being switched out.
    pub ttwu_on_cpu: TtwuOnCpu,
    /// Where the wake-affine choice comes from.
    pub wake_affine: WakeAffine,
    /// Whether a CPU that runs only tasks of the idle policy is chosen, and balances, like an idle
    /// one ("sched/fair: Fall back to sched-idle CPU if idle CPU isn't found", Viresh Kumar, 2019,
    /// for 5.4; "sched/fair: Load balance aggressively for SCHED_IDLE CPUs", the same, 2020, for
    /// 5.7).
    pub sched_idle_cpu: bool,
    /// How many CPUs a wake-up looks at.
    pub scan_budget: ScanBudget,
    /// In which order a wake-up looks for an idle CPU.
    pub idle_search: IdleSearch,
    /// Which CPU a wake-up tries besides target and previous one.
    pub recent_used_cpu: RecentUsedCpu,
    /// Newly-idle balancing's limits.
    pub newidle: Newidle,
    /// Details of load balancing that changed.
    pub load_balance: LoadBalance,
    /// First utilisation of a new task.
    pub init_util: InitUtil,
    /// `UTIL_EST`.
    pub util_est: bool,
    /// What has changed in load tracking.
    pub load: LoadRules,
    /// How the time of other classes and interrupts is averaged.
    pub other_classes: OtherClasses,
    /// Where kernel code, and a task in user mode, give up the CPU.
    pub preempt: Preemption,
    /// Whether clusters of cores are a level of sched domains (`CONFIG_SCHED_CLUSTER`, since 5.16).
    pub sched_cluster: bool,
    /// Field order of the hot structures (patch `cfs-rq-reorder`).
    pub layout: LayoutId,
    /// Ticks a second: 100, 250, 300 or 1000.
    pub hz: u32,
}

impl Features {
    /// Length of a tick, ns.
    #[inline]
    #[must_use]
    pub const fn tick_ns(&self) -> u64 {
        1_000_000_000 / self.hz as u64
    }

    /// The cluster of a core as the domains see it: without clusters each core is its own.
    ///
    /// Source: "topology: Represent clusters of CPUs within a die" and "sched: Add cluster
    /// scheduler level for x86", Barry Song, Jonathan Cameron and Tim Chen, 2021, for 5.16.
    #[inline]
    #[must_use]
    pub const fn cluster_of(&self, cluster: u32, core: u32) -> u32 {
        if self.sched_cluster { cluster } else { core }
    }

    /// Whether an ineligible sleeper stays queued. It needs lag, which CFS does not keep.
    #[inline]
    #[must_use]
    pub const fn delays_dequeue(&self) -> bool {
        self.pick.by_deadline() && self.delay_dequeue.delays()
    }

    /// Jiffies at `now`.
    #[inline]
    #[must_use]
    pub const fn jiffies(&self, now: u64) -> u64 {
        now / self.tick_ns()
    }
}

impl Default for Features {
    fn default() -> Self {
        catalogue::linux_6_18()
    }
}
