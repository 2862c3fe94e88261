//! The rules by which a task is where it is, in words.

use std::fmt::Write as _;

use fairground::event::Migration;
use fairground_sim::explain::{Choice, Examined, Route};
use fairground_sim::workload::program::RealTime;

/// The rule that decided, in words.
pub fn rule(c: &Choice) -> String {
    let at = c.chosen.cpu;
    let found = c.examined.iter().rfind(|x| x.cpu == at && is_free(x));
    let free = match c.chosen.idle {
        false if c.chosen.idle_policy => "without a task but of the idle policy",
        _ => "idle",
    };
    match c.route {
        Route::Bound => format!("it may use CPU {at} only"),
        Route::Slow if at == c.this => format!(
            "CPU {at}, which makes the choice (a new task, or one that execs): at no level is \
             another\n  group enough idler to leave its own for; where both have room that takes \
             more idle CPUs,\n  where neither has, less load by a margin"
        ),
        Route::Slow => format!(
            "CPU {at}: level by level the group of the CPU that chooses or, if it is enough idler, \
             the\n  idlest other one, there the idlest CPU (a new task, or one that execs)"
        ),
        Route::Fast(target) => {
            let near = if target == c.this && target == c.prev {
                format!("CPU {target}, where waker and task were")
            } else if target == c.this {
                format!("CPU {target}, the waker's (it was last on {})", c.prev)
            } else {
                format!(
                    "CPU {target}, where it was last (the waker is on {})",
                    c.this
                )
            };
            let how = match found.map(|x| x.by) {
                _ if at == target && is_free(&c.chosen) => format!("that is {free}"),
                _ if at == target && c.examined.iter().any(is_free) => {
                    "an idle CPU was seen near it, but not one to take: not allowed, or not all of \
                     its\n  core is idle"
                        .to_string()
                }
                _ if at == target => "no idle CPU was found near it".to_string(),
                Some("select_idle_cpu") => {
                    let looked = c.examined.iter().filter(|x| x.by == "select_idle_cpu");
                    format!(
                        "the scan of its cache found CPU {at} {free}, after {} CPUs",
                        looked.count()
                    )
                }
                Some(_) if at == c.prev => {
                    format!("CPU {at}, its previous one, is {free} and shares the cache")
                }
                Some(_) => format!("CPU {at} is {free}: used recently, or the same core"),
                None => format!("CPU {at}, though not idle"),
            };
            let sync = if c.sync {
                "; the waker said that it will sleep"
            } else {
                ""
            };
            format!("around {near}: {how}{sync}")
        }
    }
}

/// Whether a search takes such a CPU.
fn is_free(x: &Examined) -> bool {
    x.idle || x.idle_policy
}

/// How a task that waited came to another CPU. Load balancing is of fair tasks only.
pub fn moved(why: Migration, is_real_time: bool) -> &'static str {
    match why {
        Migration::Placement => "placed",
        Migration::Balance if is_real_time => "pushed or pulled to where it is the most urgent",
        Migration::Balance => "pulled by load balancing",
        Migration::Active => "pushed by active balancing",
        Migration::Affinity => "moved by a change of its affinity",
    }
}

/// Why a task goes on elsewhere than where it ran.
pub fn pushed(from: u32, why: Migration) -> String {
    match why {
        Migration::Affinity => format!("it may not use CPU {from} any more; no CPU was chosen"),
        Migration::Placement => "exec chose this CPU, as it does for a new task".into(),
        Migration::Active | Migration::Balance => format!(
            "balancing wanted load off CPU {from} and found none that waits, so the stopper took \
             the one\n  that ran (active balancing); no CPU was chosen"
        ),
    }
}

/// Why a real-time task runs where and when it does: there is little to weigh.
pub fn real_time(rt: RealTime, t: &mut String) {
    let (policy, priority) = (
        if rt.takes_turns {
            "SCHED_RR"
        } else {
            "SCHED_FIFO"
        },
        rt.priority,
    );
    let _ = writeln!(
        t,
        "\nwhy here: a real-time task stays on its CPU, if it may be there, whatever fair task \
         runs\n  there, unless it would wait for one of at least its priority; then it goes where \
         the least\n  urgent task runs"
    );
    let _ = writeln!(
        t,
        "\nwhy now: {policy}, priority {priority}: fair tasks give way to it at once; where they \
         wait they have\n  50 ms of each second. Of its class the highest priority runs, and of \
         one priority the first in the row"
    );
}

#[cfg(test)]
mod tests {
    use fairground_sim::explain::Examined;

    use super::*;

    #[test]
    fn load_balancing_moves_no_real_time_task() {
        assert!(moved(Migration::Balance, false).contains("load balancing"));
        assert!(moved(Migration::Balance, true).starts_with("pushed or pulled"));
    }

    /// Two CPUs with room and without an idle one: what is less loaded does not count.
    #[test]
    fn the_slow_path_does_not_claim_the_idlest_where_it_stays() {
        let on = |cpu, nr_running| Examined {
            cpu,
            by: "sched_balance_find_dst_cpu",
            idle: false,
            idle_policy: false,
            nr_running,
            load_avg: 1024,
            util_avg: 512,
        };
        let choice = |cpu: u32| Choice {
            this: 0,
            prev: 0,
            sync: false,
            allowed: 2,
            route: Route::Slow,
            examined: vec![on(0, 2), on(1, 1)],
            chosen: on(cpu, 1),
            functions: Vec::new(),
        };
        let stays = rule(&choice(0));
        assert!(stays.contains("at no level is another"), "{stays}");
        assert!(!stays.contains("idlest"), "{stays}");
        let goes = rule(&choice(1));
        assert!(goes.contains("if it is enough idler"), "{goes}");
    }

    /// CPU 1, where the task was, beside CPU 2.
    #[test]
    fn a_cpu_with_tasks_of_the_idle_policy_is_not_called_busy_nor_an_idle_one_overlooked() {
        let on = |cpu, idle, idle_policy| Examined {
            cpu,
            by: "select_idle_sibling",
            idle,
            idle_policy,
            nr_running: 1,
            load_avg: 3,
            util_avg: 900,
        };
        let said = |chosen: Examined, beside: Examined| {
            rule(&Choice {
                this: 1,
                prev: 1,
                sync: false,
                allowed: 2,
                route: Route::Fast(1),
                examined: vec![chosen.clone(), beside],
                chosen,
                functions: Vec::new(),
            })
        };
        let busy = || on(1, false, false);
        let free = said(on(1, false, true), on(2, false, false));
        assert!(
            free.contains("without a task but of the idle policy"),
            "{free}"
        );
        let seen = said(busy(), on(2, true, false));
        assert!(seen.contains("an idle CPU was seen"), "{seen}");
        let none = said(busy(), on(2, false, false));
        assert!(none.contains("no idle CPU was found"), "{none}");
    }
}
