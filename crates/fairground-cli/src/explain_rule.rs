//! The rules by which a task is where it is, in words.

use std::fmt::Write as _;

use fairground_sim::explain::{Choice, Route};
use fairground_sim::workload::program::RealTime;

/// The rule that decided, in words.
pub fn rule(c: &Choice) -> String {
    let at = c.chosen.cpu;
    let found = c.examined.iter().rfind(|x| x.cpu == at && x.idle);
    match c.route {
        Route::Bound => format!("it may use CPU {at} only"),
        Route::Slow => format!(
            "CPU {at}: the idlest of the idlest group, level by level (a new task, or one that \
             execs)"
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
                _ if at == target && c.chosen.idle => "that is idle".to_string(),
                _ if at == target => "no idle CPU was found near it".to_string(),
                Some("select_idle_cpu") => {
                    let looked = c.examined.iter().filter(|x| x.by == "select_idle_cpu");
                    format!(
                        "the scan of its cache found CPU {at} idle, after {} CPUs",
                        looked.count()
                    )
                }
                Some(_) if at == c.prev => {
                    format!("CPU {at}, its previous one, is idle and shares the cache")
                }
                Some(_) => format!("CPU {at} is idle: used recently, or the same core"),
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
        "\nwhy here: a real-time task stays on its CPU, whatever fair task runs there, unless it \
         would\n  wait for one of at least its priority; then it goes where the least urgent task \
         runs\n\nwhy now: {policy}, priority {priority}: fair tasks give way to it at once; where \
         they wait they have\n  50 ms of each second. Of its class the highest priority runs, and \
         of one priority the first in the row"
    );
}
