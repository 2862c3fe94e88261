//! The events of a run, in the layout of `perf script`, and who was queued and running when.

use std::collections::{BTreeMap, BTreeSet};

/// An event that changes who is queued or running.
#[derive(Clone, Copy, Debug)]
enum What {
    Wakeup {
        pid: u32,
        cpu: u32,
    },
    New {
        pid: u32,
        cpu: u32,
    },
    Migrate {
        pid: u32,
        from: u32,
        to: u32,
    },
    Switch {
        prev: u32,
        runnable: bool,
        next: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Line {
    t_ns: i64,
    cpu: u32,
    what: What,
}

/// Who is on a CPU from a time on.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Since T0.
    pub t_ns: i64,
    /// The same, but of a switch that is not reported: until when it may have been.
    pub latest_ns: i64,
    /// Queued or running.
    pub queued: BTreeSet<u32>,
    /// Running; 0 is the idle task.
    pub curr: u32,
    /// Whether it was a switch.
    pub switch: bool,
}

/// What the events say.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// By CPU, in time.
    pub moments: BTreeMap<u32, Vec<Moment>>,
    /// Creations and moves: when and who.
    pub moves: Vec<(i64, u32)>,
    /// Sleeps: when and who.
    pub sleeps: Vec<(i64, u32)>,
    /// Switches of a runnable task to the idle task, which only throttling does: when and who.
    pub throttled: Vec<(i64, u32)>,
    /// Switches away from somebody that are not reported: the CPU, and from when to when.
    pub unseen: Vec<(u32, i64, i64)>,
}

/// Reads the events; times become relative to `t0_ns`.
///
/// # Errors
/// The line, and what was expected there.
pub fn parse(text: &str, t0_ns: i64) -> Result<Script, String> {
    let mut lines = Vec::new();
    for (i, text) in text.lines().enumerate() {
        let line = line(text, t0_ns).map_err(|e| format!("line {}: {e}", i + 1))?;
        lines.extend(line);
    }
    Ok(follow(&lines))
}

fn line(text: &str, t0_ns: i64) -> Result<Option<Line>, String> {
    if text.trim().is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let (head, event) = text
        .split_once(" sched:")
        .ok_or("expected 'sched:' and an event")?;
    let (name, args) = event
        .split_once(':')
        .ok_or("expected ':' after the event")?;
    let mut words = head.split_whitespace().rev();
    let time = words.next().and_then(|w| w.strip_suffix(':'));
    let t_ns = time
        .and_then(nanoseconds)
        .ok_or("expected a time 's.nnnnnnnnn:'")?;
    let cpu = words
        .next()
        .and_then(|w| w.strip_prefix('[')?.strip_suffix(']'));
    let cpu = cpu
        .and_then(|c| c.parse().ok())
        .ok_or("expected a CPU '[nnn]'")?;
    let get = |key: &str| {
        let at = args.find(&format!(" {key}=")).map(|i| i + key.len() + 2);
        let word = at.and_then(|i| args[i..].split_whitespace().next());
        word.ok_or_else(|| format!("{name} without {key}"))
    };
    let number = |key: &str| {
        let word = get(key)?;
        let parsed = word.parse::<u32>();
        parsed.map_err(|_| format!("{key}: '{word}' is not a number"))
    };
    let what = match name {
        "sched_wakeup" => What::Wakeup {
            pid: number("pid")?,
            cpu: number("target_cpu")?,
        },
        "sched_wakeup_new" => What::New {
            pid: number("pid")?,
            cpu: number("target_cpu")?,
        },
        "sched_migrate_task" => What::Migrate {
            pid: number("pid")?,
            from: number("orig_cpu")?,
            to: number("dest_cpu")?,
        },
        "sched_switch" => What::Switch {
            prev: number("prev_pid")?,
            runnable: get("prev_state")?.starts_with('R'),
            next: number("next_pid")?,
        },
        "sched_waking" | "sched_process_fork" | "sched_process_exit" => return Ok(None),
        _ => return Err(format!("the event '{name}' is not in the format")),
    };
    Ok(Some(Line {
        t_ns: t_ns - t0_ns,
        cpu,
        what,
    }))
}

fn nanoseconds(text: &str) -> Option<i64> {
    let (s, ns) = text.split_once('.')?;
    if ns.len() != 9 {
        return None;
    }
    let s: i64 = s.parse().ok()?;
    s.checked_mul(1_000_000_000)?.checked_add(ns.parse().ok()?)
}

/// A switch from the idle task is done this long after the wake-up.
const OUT_OF_IDLE_NS: i64 = 100_000;

/// Who is on each CPU, and what is known of it.
#[derive(Default)]
struct Follow {
    script: Script,
    on: BTreeMap<u32, (BTreeSet<u32>, u32)>,
}

/// Follows the events. The recorded machine does not report some switches (blind spots 1 and 2 of
/// the format: from the idle task of CPU 1, and away from a task of the host's management). They
/// show where a switch has somebody else as its previous task than the one before put there.
fn follow(lines: &[Line]) -> Script {
    let mut follow = Follow::default();
    for (i, line) in lines.iter().enumerate() {
        let mut changed = vec![];
        let mut switch = false;
        match line.what {
            What::Wakeup { pid, cpu } | What::New { pid, cpu } => {
                for (queued, _) in follow.on.values_mut() {
                    queued.remove(&pid);
                }
                follow.on.entry(cpu).or_default().0.insert(pid);
                changed.push(cpu);
                if matches!(line.what, What::New { .. }) {
                    follow.script.moves.push((line.t_ns, pid));
                }
            }
            What::Migrate { pid, from, to } => {
                follow.script.moves.push((line.t_ns, pid));
                if follow.on.entry(from).or_default().0.remove(&pid) {
                    follow.on.entry(to).or_default().0.insert(pid);
                }
                changed.extend([from, to]);
            }
            What::Switch {
                prev,
                runnable,
                next,
            } => {
                let (queued, curr) = follow.on.entry(line.cpu).or_default();
                if runnable && prev != 0 {
                    if next == 0 {
                        follow.script.throttled.push((line.t_ns, prev));
                    }
                    queued.insert(prev);
                } else if prev != 0 {
                    queued.remove(&prev);
                    follow.script.sleeps.push((line.t_ns, prev));
                }
                if next != 0 {
                    queued.insert(next);
                }
                *curr = next;
                changed.push(line.cpu);
                switch = true;
            }
        }
        for cpu in changed {
            follow.moment(cpu, line.t_ns, line.t_ns, switch);
            let next = lines[i + 1..].iter().find_map(|l| match l.what {
                What::Switch { prev, .. } if l.cpu == cpu => Some((prev, l.t_ns)),
                _ => None,
            });
            if let Some((prev, t_ns)) = next {
                follow.unseen(cpu, prev, line.t_ns, t_ns);
            }
        }
    }
    follow.script
}

impl Follow {
    fn moment(&mut self, cpu: u32, t_ns: i64, latest_ns: i64, switch: bool) {
        let (queued, curr) = self.on.entry(cpu).or_default();
        let (queued, curr) = (queued.clone(), *curr);
        let moment = Moment {
            t_ns,
            latest_ns,
            queued,
            curr,
            switch,
        };
        self.script.moments.entry(cpu).or_default().push(moment);
    }

    /// Whoever the next switch, at `next_ns`, has as its previous task has come on before it: on an
    /// idle CPU soon after somebody woke there, else some time after the last switch.
    fn unseen(&mut self, cpu: u32, prev: u32, t_ns: i64, next_ns: i64) {
        let (queued, curr) = self.on.entry(cpu).or_default();
        if *curr == prev || prev == 0 || (*curr == 0 && !queued.contains(&prev)) {
            return;
        }
        let latest_ns = if *curr == 0 {
            next_ns.min(t_ns + OUT_OF_IDLE_NS)
        } else {
            queued.remove(curr);
            queued.insert(prev);
            self.script.unseen.push((cpu, t_ns, next_ns));
            next_ns
        };
        *curr = prev;
        self.moment(cpu, t_ns, latest_ns, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAKE: &str = " a 7 [001]  2.000000100: sched:sched_wakeup: comm=b pid=8 prio=120 \
                        target_cpu=001\n";

    #[test]
    fn a_task_that_wakes_on_an_idle_cpu_runs_although_the_switch_is_not_reported() {
        let away = " b 8 [001] 2.000005000: sched:sched_switch: prev_comm=b prev_pid=8 \
                    prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n";
        let script = parse(&format!("{WAKE}{away}"), 2_000_000_000).expect("a script");
        let moments = &script.moments[&1];
        let of = |m: &Moment| (m.t_ns, m.latest_ns, m.curr);
        let all: Vec<_> = moments.iter().map(of).collect();
        assert_eq!(all, [(100, 100, 0), (100, 5000, 8), (5000, 5000, 0)]);
        assert_eq!(script.sleeps, [(5000, 8)]);
    }

    #[test]
    fn wrong_lines_are_refused_with_their_place() {
        for (from, to, word) in [
            ("2.000000100:", "2.1:", "time"),
            ("[001]", "001", "CPU"),
            ("sched_wakeup", "sched_nap", "sched_nap"),
            ("pid=8", "pid=x", "'x'"),
            ("sched:", "", "sched:"),
        ] {
            let error = parse(&WAKE.replacen(from, to, 1), 0).expect_err(word);
            assert!(
                error.starts_with("line 1") && error.contains(word),
                "{error}"
            );
        }
    }
}
