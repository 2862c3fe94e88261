//! From what a run was watched for to what reports are made of.

use fairground_report::{
    Delay, DelayedStretch, GROUP_METRICS, GroupStat, IdleWaste, IrqsOff, Quantiles, QuotaWait,
    QuotaWork, Run, StillWaiting, ThrottledBy, VainWait, WaitsOver, have_own_metrics,
};
use fairground_sim::watch::{Watched, Who, idle, quota, quota_work};

/// Adds it to a run whose groups are there: metrics, and what is behind them.
pub fn add(watched: Watched, run: &mut Run, tid: Tid<'_>) {
    let late = watched.still_waiting;
    run.still_waiting = (late.waiting > 0).then_some(StillWaiting {
        waiting: late.waiting,
        wakeups: late.wakeups,
        longest_ns: late.longest_ns,
    });
    let waste = waste(watched.idle, tid);
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
    run.set_metric("idle_waste_pct", percent(waste.cpu_ns, waste.capacity_ns));
    let longest = waste.longest.as_ref().map_or(0, |w| w.ns);
    run.set_metric("idle_waste_us.max", longest as f64 / 1e3);
    run.set_metric("idle_waste_long", waste.waits.ms_1 as f64);
    run.idle_waste = Some(waste);
    let kept_off = watched.kept_off.into_iter();
    run.throttled_by = kept_off
        .map(|kept| ThrottledBy {
            group: kept.path,
            by: kept.by,
            ns: kept.ns,
        })
        .collect();
    let (mut slow, mut uncounted) = (Some(0), 0);
    let mut sum = quota_work::Work::default();
    for wait in watched.quota {
        if let Some(group) = run.groups.iter_mut().find(|g| g.path == wait.path) {
            // Where no stretch ended, nobody knows which of these periods were slow.
            let known = wait.slow_ns().is_some() || wait.waited() == 0;
            slow = slow.filter(|_| known).map(|slow| slow + wait.slow());
            uncounted += wait.uncounted;
            sum.walked += wait.work.walked;
            sum.put_off += wait.work.put_off + wait.work.put_back;
            let longest = |sum: &mut quota_work::IrqsOff, one: &quota_work::IrqsOff| {
                sum.ns[2] = sum.ns[2].max(one.ns[2]);
            };
            longest(&mut sum.timer, &wait.work.timer);
            longest(&mut sum.unthrottle, &wait.work.unthrottle);
            group.wait = Some(quota(&wait, tid));
            group.work = Some(work(&wait.work));
        }
    }
    let limited = run.groups.iter().filter(|g| g.counted).count();
    if have_own_metrics(limited) {
        of_single_groups(run, &|_| true);
    }
    let counted = || run.groups.iter().filter(|g| g.counted);
    let periods: u64 = counted().map(|g| g.stat.nr_periods).sum::<u64>() + uncounted;
    if counted().next().is_some() {
        // No period, none slow.
        let slow_pct = slow.map_or(f64::NAN, |slow| percent(slow, periods.max(1)));
        run.set_metric("slow_periods_pct", slow_pct);
        run.set_metric("quota_walks", sum.walked as f64);
        run.set_metric("quota_moves", sum.put_off as f64);
        // Nothing handed out, no interrupts off.
        run.set_metric("quota_timer_us.max", sum.timer.ns[2] as f64 / 1e3);
        let longest = sum.unthrottle.ns[2] as f64 / 1e3;
        run.set_metric("quota_unthrottle_us.max", longest);
    }
}

/// What groups with a limit have of their own ([`GROUP_METRICS`]): those of `which`.
pub fn of_single_groups(run: &mut Run, which: &dyn Fn(&GroupStat) -> bool) {
    for group in std::mem::take(&mut run.groups) {
        if !group.counted || !which(&group) {
            run.groups.push(group);
            continue;
        }
        let periods = group.stat.nr_periods;
        let uncounted = group.wait.as_ref().map_or(0, |w| w.uncounted);
        let slow = group.wait.as_ref().and_then(|w| {
            // Where no stretch ended, nobody knows which were slow.
            (w.slow_ns.is_some() || w.periods_waited == 0).then_some(w.periods_slow)
        });
        let slow = slow.map_or(f64::NAN, |slow| slow as f64);
        let parts = [
            (group.stat.nr_throttled as f64, periods),
            (slow, periods + uncounted),
        ];
        for (name, (part, whole)) in GROUP_METRICS.into_iter().zip(parts) {
            let name = format!("{}/{name}", group.path);
            run.set_metric(name, 100.0 * part / whole.max(1) as f64);
        }
        run.groups.push(group);
    }
}

fn waste(idle: idle::IdleWaste, tid: Tid<'_>) -> IdleWaste {
    let [us_10, us_100, ms_1, ms_10] = idle.waits;
    IdleWaste {
        capacity_ns: idle.capacity_ns,
        cpu_ns: idle.cpu_ns,
        same_cache_ns: idle.near_ns,
        waits: WaitsOver {
            us_10,
            us_100,
            ms_1,
            ms_10,
        },
        longest: idle.longest.map(|l| {
            let (task, tid) = thread(&l.who, tid);
            VainWait {
                task,
                tid,
                cpu: l.cpu,
                idle_cpu: l.idle_cpu,
                same_cache: l.near,
                from_ns: l.from_ns,
                ns: l.ns,
            }
        }),
    }
}

fn quota(wait: &quota::QuotaWait, tid: Tid<'_>) -> QuotaWait {
    QuotaWait {
        stretches: wait.stretches,
        delayed: wait.delayed,
        usual_ns: (wait.usual_ns > 0).then_some(wait.usual_ns),
        usual_is_unreliable: wait.unreliable && wait.limit_ns.is_none(),
        slow_ns: wait.slow_ns(),
        delay: Delay::of(wait.delayed, wait.delay_ns),
        periods_waited: wait.waited(),
        periods_slow: wait.slow(),
        uncounted: wait.uncounted,
        longest: wait.longest.as_ref().map(|l| {
            let (task, tid) = thread(&l.who, tid);
            DelayedStretch {
                task,
                tid,
                from_ns: l.from_ns,
                took_ns: l.took_ns,
                waited_ns: l.waited_ns,
                held_from_ns: l.held_from_ns,
            }
        }),
    }
}

fn work(work: &quota_work::Work) -> QuotaWork {
    let quantiles = |[p50, p99, max]: [u64; 3]| Quantiles { p50, p99, max };
    let irqs_off = |all: &quota_work::IrqsOff| IrqsOff {
        times: all.times,
        took: Delay::of(all.times, all.ns),
        cpu: all.longest.map(|(cpu, _)| cpu),
        from_ns: all.longest.map(|(_, from)| from),
    };
    QuotaWork {
        throttled: work.throttled,
        unthrottled: work.unthrottled,
        walked: work.walked,
        put_off: work.put_off,
        put_back: work.put_back,
        walked_in_period: quantiles(work.walked_in),
        moved_in_period: quantiles(work.moved_in),
        timer: irqs_off(&work.timer),
        throttle: irqs_off(&work.throttle),
        unthrottle: irqs_off(&work.unthrottle),
    }
}

/// The thread id of a task by its number.
type Tid<'a> = &'a dyn Fn(u32) -> u32;

/// Name with number, and number, as `perf script` and `--explain` know a thread.
fn thread(who: &Who, tid: Tid<'_>) -> (String, u32) {
    let tid = tid(who.task);
    (format!("{}-{tid}", who.name), tid)
}

#[cfg(test)]
mod tests {
    use fairground_report::{CpuStat, GroupStat};

    use super::*;

    fn metrics(counted: bool) -> usize {
        let group = GroupStat {
            path: "/a".into(),
            counted,
            max: "max 100000".into(),
            stat: CpuStat {
                nr_periods: 10,
                ..CpuStat::default()
            },
            ..GroupStat::default()
        };
        let mut run = Run {
            groups: vec![group],
            ..Run::new(1)
        };
        add(Watched::default(), &mut run, &|task| task);
        let of_quota = |name: &&String| name.starts_with("quota_") || *name == "slow_periods_pct";
        run.metrics.keys().filter(of_quota).count()
    }

    #[test]
    fn only_groups_with_a_limit_have_metrics_of_quota() {
        assert_eq!((metrics(true), metrics(false)), (5, 0));
    }
}
