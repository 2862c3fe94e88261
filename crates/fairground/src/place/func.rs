//! Names of scheduler functions, for the profile.
//!
//! Time is given to the innermost function that was entered, as `perf top` without children does.

/// A scheduler function that a profile can name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Func {
    /// `__schedule`
    Schedule,
    /// `pick_next_task_fair`
    PickNextTask,
    /// `enqueue_task_fair`
    EnqueueTask,
    /// `dequeue_task_fair`
    DequeueTask,
    /// `update_curr`
    UpdateCurr,
    /// `place_entity`
    PlaceEntity,
    /// `pick_eevdf`
    PickEevdf,
    /// `set_next_entity`
    SetNextEntity,
    /// `put_prev_entity`
    PutPrevEntity,
    /// `check_preempt_wakeup_fair`
    WakeupPreempt,
    /// `task_tick_fair`
    TaskTick,
    /// `sched_tick`
    SchedTick,
    /// `update_load_avg`
    UpdateLoadAvg,
    /// `update_cfs_group`
    UpdateCfsGroup,
    /// `reweight_entity`
    ReweightEntity,
    /// `sched_balance_update_blocked_averages`
    UpdateBlockedAverages,
    /// `update_cfs_rq_h_load`
    UpdateCfsRqHLoad,
    /// `tg_load_down`
    TgLoadDown,
    /// `try_to_wake_up`
    TryToWakeUp,
    /// `select_task_rq_fair`
    SelectTaskRq,
    /// `wake_affine`
    WakeAffine,
    /// `select_idle_sibling`
    SelectIdleSibling,
    /// `select_idle_cpu`
    SelectIdleCpu,
    /// `sched_balance_find_dst_cpu`
    FindIdlestCpu,
    /// `ttwu_queue_wakelist`
    TtwuQueue,
    /// `sched_ttwu_pending`
    TtwuPending,
    /// `ttwu_do_activate`
    TtwuDoActivate,
    /// `sched_balance_trigger`
    BalanceTrigger,
    /// `kick_ilb`
    KickIlb,
    /// `idle_cpu`, where it is called and not inlined
    IdleCpu,
    /// `nohz_idle_balance`
    NohzIdleBalance,
    /// `sched_balance_domains`
    BalanceDomains,
    /// `sched_balance_rq`
    BalanceRq,
    /// `update_sd_lb_stats`
    UpdateSdLbStats,
    /// `detach_tasks`
    DetachTasks,
    /// `attach_tasks`
    AttachTasks,
    /// `sched_balance_newidle`
    Newidle,
    /// `active_load_balance_cpu_stop`
    ActiveBalance,
    /// `account_cfs_rq_runtime`
    AccountRuntime,
    /// `throttle_cfs_rq`
    ThrottleCfsRq,
    /// `unthrottle_cfs_rq`
    UnthrottleCfsRq,
    /// `tg_throttle_down`
    TgThrottleDown,
    /// `tg_unthrottle_up`
    TgUnthrottleUp,
    /// `sched_cfs_period_timer`
    PeriodTimer,
    /// `sched_cfs_slack_timer`
    SlackTimer,
    /// `throttle_cfs_rq_work`
    ThrottleWork,
    /// `yield_task_fair`
    YieldTask,
    /// `sched_fork`
    Fork,
    /// `wake_up_new_task`
    WakeUpNewTask,
    /// `set_cpus_allowed_ptr`
    SetAffinity,
    /// `sched_move_task`
    MoveGroup,
    /// `sched_group_set_shares`
    SetShares,
    /// `_raw_spin_lock`
    SpinLock,
    /// `sched_exec`
    SchedExec,
    /// `migration_cpu_stop`
    MigrationStop,
    /// `nohz_balance_enter_idle`
    NohzEnterIdle,
    /// `nohz_run_idle_balance`
    NohzRunIdle,
    /// `nohz_csd_func`
    NohzCsd,
    /// `sched_balance_softirq`
    BalanceSoftirq,
    /// `set_user_nice`
    SetNice,
    /// `__sched_setscheduler`
    SetScheduler,
    /// `__cfsb_csd_unthrottle`
    CsdUnthrottle,
    /// `task_dead_fair`
    TaskDead,
    /// `accumulate_sum`, and the averages again: once in a period of 1024 us
    AccumulateSum,
    /// `walk_tg_tree_from`
    WalkTgTree,
}

impl Func {
    /// Number of functions.
    pub const COUNT: usize = 65;

    /// All functions in order.
    pub const ALL: [Func; Self::COUNT] = [
        Func::Schedule,
        Func::PickNextTask,
        Func::EnqueueTask,
        Func::DequeueTask,
        Func::UpdateCurr,
        Func::PlaceEntity,
        Func::PickEevdf,
        Func::SetNextEntity,
        Func::PutPrevEntity,
        Func::WakeupPreempt,
        Func::TaskTick,
        Func::SchedTick,
        Func::UpdateLoadAvg,
        Func::UpdateCfsGroup,
        Func::ReweightEntity,
        Func::UpdateBlockedAverages,
        Func::UpdateCfsRqHLoad,
        Func::TgLoadDown,
        Func::TryToWakeUp,
        Func::SelectTaskRq,
        Func::WakeAffine,
        Func::SelectIdleSibling,
        Func::SelectIdleCpu,
        Func::FindIdlestCpu,
        Func::TtwuQueue,
        Func::TtwuPending,
        Func::TtwuDoActivate,
        Func::BalanceTrigger,
        Func::KickIlb,
        Func::IdleCpu,
        Func::NohzIdleBalance,
        Func::BalanceDomains,
        Func::BalanceRq,
        Func::UpdateSdLbStats,
        Func::DetachTasks,
        Func::AttachTasks,
        Func::Newidle,
        Func::ActiveBalance,
        Func::AccountRuntime,
        Func::ThrottleCfsRq,
        Func::UnthrottleCfsRq,
        Func::TgThrottleDown,
        Func::TgUnthrottleUp,
        Func::PeriodTimer,
        Func::SlackTimer,
        Func::ThrottleWork,
        Func::YieldTask,
        Func::Fork,
        Func::WakeUpNewTask,
        Func::SetAffinity,
        Func::MoveGroup,
        Func::SetShares,
        Func::SpinLock,
        Func::SchedExec,
        Func::MigrationStop,
        Func::NohzEnterIdle,
        Func::NohzRunIdle,
        Func::NohzCsd,
        Func::BalanceSoftirq,
        Func::SetNice,
        Func::SetScheduler,
        Func::CsdUnthrottle,
        Func::TaskDead,
        Func::AccumulateSum,
        Func::WalkTgTree,
    ];

    /// The kernel's name of the function.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Func::Schedule => "__schedule",
            Func::PickNextTask => "pick_next_task_fair",
            Func::EnqueueTask => "enqueue_task_fair",
            Func::DequeueTask => "dequeue_task_fair",
            Func::UpdateCurr => "update_curr",
            Func::PlaceEntity => "place_entity",
            Func::PickEevdf => "pick_eevdf",
            Func::SetNextEntity => "set_next_entity",
            Func::PutPrevEntity => "put_prev_entity",
            Func::WakeupPreempt => "check_preempt_wakeup_fair",
            Func::TaskTick => "task_tick_fair",
            Func::SchedTick => "sched_tick",
            Func::UpdateLoadAvg => "update_load_avg",
            Func::UpdateCfsGroup => "update_cfs_group",
            Func::ReweightEntity => "reweight_entity",
            Func::UpdateBlockedAverages => "sched_balance_update_blocked_averages",
            Func::UpdateCfsRqHLoad => "update_cfs_rq_h_load",
            Func::TgLoadDown => "tg_load_down",
            Func::TryToWakeUp => "try_to_wake_up",
            Func::SelectTaskRq => "select_task_rq_fair",
            Func::WakeAffine => "wake_affine",
            Func::SelectIdleSibling => "select_idle_sibling",
            Func::SelectIdleCpu => "select_idle_cpu",
            Func::FindIdlestCpu => "sched_balance_find_dst_cpu",
            Func::TtwuQueue => "ttwu_queue_wakelist",
            Func::TtwuPending => "sched_ttwu_pending",
            Func::TtwuDoActivate => "ttwu_do_activate",
            Func::BalanceTrigger => "sched_balance_trigger",
            Func::KickIlb => "kick_ilb",
            Func::IdleCpu => "idle_cpu",
            Func::NohzIdleBalance => "nohz_idle_balance",
            Func::BalanceDomains => "sched_balance_domains",
            Func::BalanceRq => "sched_balance_rq",
            Func::UpdateSdLbStats => "update_sd_lb_stats",
            Func::DetachTasks => "detach_tasks",
            Func::AttachTasks => "attach_tasks",
            Func::Newidle => "sched_balance_newidle",
            Func::ActiveBalance => "active_load_balance_cpu_stop",
            Func::AccountRuntime => "account_cfs_rq_runtime",
            Func::ThrottleCfsRq => "throttle_cfs_rq",
            Func::UnthrottleCfsRq => "unthrottle_cfs_rq",
            Func::TgThrottleDown => "tg_throttle_down",
            Func::TgUnthrottleUp => "tg_unthrottle_up",
            Func::PeriodTimer => "sched_cfs_period_timer",
            Func::SlackTimer => "sched_cfs_slack_timer",
            Func::ThrottleWork => "throttle_cfs_rq_work",
            Func::YieldTask => "yield_task_fair",
            Func::Fork => "sched_fork",
            Func::WakeUpNewTask => "wake_up_new_task",
            Func::SetAffinity => "set_cpus_allowed_ptr",
            Func::MoveGroup => "sched_move_task",
            Func::SetShares => "sched_group_set_shares",
            Func::SpinLock => "_raw_spin_lock",
            Func::SchedExec => "sched_exec",
            Func::MigrationStop => "migration_cpu_stop",
            Func::NohzEnterIdle => "nohz_balance_enter_idle",
            Func::NohzRunIdle => "nohz_run_idle_balance",
            Func::NohzCsd => "nohz_csd_func",
            Func::BalanceSoftirq => "sched_balance_softirq",
            Func::SetNice => "set_user_nice",
            Func::SetScheduler => "__sched_setscheduler",
            Func::CsdUnthrottle => "__cfsb_csd_unthrottle",
            Func::TaskDead => "task_dead_fair",
            Func::AccumulateSum => "accumulate_sum",
            Func::WalkTgTree => "walk_tg_tree_from",
        }
    }
}
