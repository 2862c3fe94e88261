//! What an event says, in the kernel's own words (`comm=x pid=1 prio=120 target_cpu=000`) or in the
//! short form that the plugins of libtraceevent print (`x:1 [120] CPU:000`).

use super::line::number;
use crate::act::{Act, What};
use crate::event::{Kind, Names, State, Timer, Told};
use crate::raw::ours::RUNTIME;

/// What became of the fields.
pub enum Parsed {
    /// An event.
    Event(Kind),
    /// One of another kind.
    Other,
    /// One of ours without this field.
    Missing(&'static str),
}

/// Reads the fields of the event `name`, executed by `current`.
pub fn parse(name: &[u8], text: &[u8], current: u32, names: &mut Names) -> Parsed {
    let result = match name {
        b"sched_switch" => switch(text, names),
        b"sched_waking" | b"sched_wakeup" | b"sched_wakeup_new" => wake(name, text, names),
        b"sched_migrate_task" => migrate(text),
        b"sched_process_fork" => fork(text, current, names),
        b"sched_process_exit" => about(text).map(|tid| Kind::Exit { tid }),
        _ => return Parsed::Other,
    };
    match result {
        Ok(kind) => Parsed::Event(kind),
        Err(field) => Parsed::Missing(field),
    }
}

/// Who has run for how long, of `sched_stat_runtime`.
pub fn runtime(name: &[u8], text: &[u8]) -> Option<(u32, u64)> {
    if name != RUNTIME.as_bytes() {
        return None;
    }
    Some((
        tid_after(text, b" pid=")?,
        whole(after(text, b" runtime=")?)?,
    ))
}

/// Reads the fields of an event of another part of the kernel, with that part's name before it.
pub fn told(name: &[u8], text: &[u8], period: u64) -> Parsed {
    let told = match name {
        b"context_tracking:user_enter" => Ok(Told::UserEnter),
        b"context_tracking:user_exit" => Ok(Told::UserExit),
        b"instructions:u" => Ok(Told::Worked {
            instructions: period,
        }),
        b"raw_syscalls:sys_enter" => tid(text, b"NR ").map(|nr| Told::Call { nr }),
        b"timer:hrtimer_start" => timer(text).map(Told::Timer),
        _ => match name.strip_prefix(b"sdt_fairground:").and_then(What::named) {
            Some(what) => act(what, text).map(Told::Act),
            None => return Parsed::Other,
        },
    };
    match told {
        Ok(told) => Parsed::Event(Kind::Told(told)),
        Err(field) => Parsed::Missing(field),
    }
}

fn act(what: What, text: &[u8]) -> Field<Act> {
    Ok(Act {
        what,
        object: tid_after(text, b"arg1=").ok_or("arg1")?,
        n: tid_after(text, b"arg2=").ok_or("arg2")?,
    })
}

fn timer(text: &[u8]) -> Field<Timer> {
    let ns = |key| number(after(text, key)?).map(|(ns, _)| ns);
    let hard_ns = ns(b" expires=").ok_or("expires")?;
    let soft_ns = ns(b"softexpires=").ok_or("softexpires")?;
    Ok(Timer {
        soft_ns,
        slack_ns: u32::try_from(hard_ns.saturating_sub(soft_ns)).unwrap_or(u32::MAX),
        relative: after(text, b"mode=").is_some_and(|mode| mode.starts_with(b"REL")),
    })
}

type Field<T> = Result<T, &'static str>;

fn switch(text: &[u8], names: &mut Names) -> Field<Kind> {
    if let Some(kind) = usual_switch(text, names) {
        return Ok(kind);
    }
    // A name may hold an arrow, too.
    let plain = text
        .starts_with(b"prev_comm=")
        .then(|| plain_switch(text, names));
    if let Some(Ok(kind)) = plain {
        return Ok(kind);
    }
    let arrow = memchr::memmem::find(text, b" ==> ").ok_or("==>")?;
    let (from, to) = (&text[..arrow], &text[arrow + 5..]);
    if !from.starts_with(b"prev_comm=") {
        let (comm, prev, prev_prio, rest) = short(from)?;
        names.see(prev, comm);
        let (comm, next, next_prio, _) = short(to)?;
        names.see(next, comm);
        return Ok(Kind::Switch {
            prev,
            prev_prio,
            state: State::from_letters(rest.trim_ascii_start()),
            next,
            next_prio,
        });
    }
    let (comm, from) = comm(from, b"prev_comm=", b" prev_pid=", b" prev_prio=")?;
    let prev = tid_of(from).ok_or("prev_pid")?;
    names.see(prev, comm);
    let (next_comm, to) = self::comm(to, b"next_comm=", b" next_pid=", b" next_prio=")?;
    let next = tid_of(to).ok_or("next_pid")?;
    names.see(next, next_comm);
    let state = after(from, b"prev_state=").map(<[u8]>::trim_ascii);
    let state = state.filter(|letters| !letters.is_empty());
    Ok(Kind::Switch {
        prev,
        prev_prio: prio(from, b"prev_prio="),
        state: State::from_letters(state.ok_or("prev_state")?),
        next,
        next_prio: prio(to, b"next_prio="),
    })
}

/// All fields, in the order in which every kernel has printed them so far.
fn usual_switch(text: &[u8], names: &mut Names) -> Option<Kind> {
    let (prev_comm, rest) = comm(text, b"prev_comm=", b" prev_pid=", b" prev_prio=").ok()?;
    let (prev, rest) = number(rest)?;
    let (prev_prio, rest) = number(rest.strip_prefix(b" prev_prio=")?)?;
    let letters = rest.strip_prefix(b" prev_state=")?;
    // A state that is not there is not that of a runnable thread.
    let end = memchr::memchr(b' ', letters).filter(|end| *end > 0)?;
    let rest = letters[end..].strip_prefix(b" ==> ")?;
    let (next_comm, rest) = comm(rest, b"next_comm=", b" next_pid=", b" next_prio=").ok()?;
    let (next, rest) = number(rest)?;
    let (next_prio, _) = number(rest.strip_prefix(b" next_prio=")?)?;
    let kind = Kind::Switch {
        prev: u32::try_from(prev).ok()?,
        prev_prio: i16::try_from(prev_prio).ok()?,
        state: State::from_letters(&letters[..end]),
        next: u32::try_from(next).ok()?,
        next_prio: i16::try_from(next_prio).ok()?,
    };
    names.see(prev as u32, prev_comm);
    names.see(next as u32, next_comm);
    Some(kind)
}

/// As the fields are in the record, with the state as a number: `trace-cmd report -R`, and ftrace
/// with its option `fields`, which has numbers twice (`prev_pid=0x2cc7 (11463)`).
fn plain_switch(text: &[u8], names: &mut Names) -> Field<Kind> {
    let (prev_comm, from) = comm(text, b"prev_comm=", b" prev_pid=", b" prev_prio=")?;
    let next = memchr::memmem::find(from, b"next_comm=").ok_or("==>")?;
    let (from, to) = from.split_at(next);
    let (next_comm, to) = comm(to, b"next_comm=", b" next_pid=", b" next_prio=")?;
    let (prev, next) = (
        tid_of(from).ok_or("prev_pid")?,
        tid_of(to).ok_or("next_pid")?,
    );
    let state = after(from, b"prev_state=").and_then(whole);
    names.see(prev, prev_comm);
    names.see(next, next_comm);
    Ok(Kind::Switch {
        prev,
        prev_prio: prio(from, b"prev_prio="),
        state: State::from_bits(state.ok_or("prev_state")?, LETTERS),
        next,
        next_prio: prio(to, b"next_prio="),
    })
}

/// What kernels since 4.14 print for the bits of a state.
const LETTERS: &[u8; 16] = b"SDTtXZPI\0\0\0\0\0\0\0\0";

fn wake(name: &[u8], text: &[u8], names: &mut Names) -> Field<Kind> {
    let (comm, tid, prio, cpu) = if text.starts_with(b"comm=") {
        let (comm, rest) = comm(text, b"comm=", b" pid=", b" prio=")?;
        let tid = tid_of(rest).ok_or("pid")?;
        let cpu = tid_after(rest, b"target_cpu=").ok_or("target_cpu")?;
        (comm, tid, self::prio(rest, b"prio="), cpu)
    } else {
        let (comm, tid, prio, rest) = short(text)?;
        (comm, tid, prio, tid_after(rest, b"CPU:").ok_or("CPU")?)
    };
    names.see(tid, comm);
    Ok(match name {
        b"sched_waking" => Kind::Waking { tid, prio, cpu },
        b"sched_wakeup" => Kind::Wakeup { tid, prio, cpu },
        _ => Kind::WakeupNew { tid, prio, cpu },
    })
}

fn migrate(text: &[u8]) -> Field<Kind> {
    Ok(Kind::Migrate {
        tid: about(text)?,
        from: tid_after(text, b"orig_cpu=").ok_or("orig_cpu")?,
        to: tid_after(text, b"dest_cpu=").ok_or("dest_cpu")?,
    })
}

/// Of `comm=a pid=1 prio=120 ...` the id.
fn about(text: &[u8]) -> Field<u32> {
    match comm(text, b"comm=", b" pid=", b" prio=") {
        Ok((_, id)) => tid_of(id).ok_or("pid"),
        Err(_) => tid(text, b"pid="),
    }
}

/// `comm=a pid=1 child_comm=a child_pid=2`.
fn fork(text: &[u8], current: u32, names: &mut Names) -> Field<Kind> {
    let after_parent = match comm(text, b"comm=", b" pid=", b" child_comm=") {
        Ok((_, id)) => id,
        Err(_) => text,
    };
    let parent = tid_of(after_parent).or_else(|| tid_after(text, b" pid="));
    let at = memchr::memmem::find(after_parent, b"child_comm=");
    let about_child = &after_parent[at.unwrap_or(0)..];
    let child = match comm(about_child, b"child_comm=", b" child_pid=", b"") {
        Ok((comm, id)) => {
            let child = tid_of(id).ok_or("pid")?;
            names.see(child, comm);
            child
        }
        Err(_) => tid(text, b"child_pid=")?,
    };
    Ok(Kind::Fork {
        parent: parent.unwrap_or(current),
        child,
    })
}

/// A name between two keys, and what follows the second, an id. A name may hold the key, too, but
/// has no room for a whole id and the field behind it, if there is one.
fn comm<'a>(text: &'a [u8], key: &[u8], next: &[u8], then: &[u8]) -> Field<(&'a [u8], &'a [u8])> {
    let text = text.strip_prefix(key).ok_or("comm")?;
    let mut ends = memchr::memchr_iter(b' ', text).filter(|at| text[*at..].starts_with(next));
    let first = ends.next().ok_or("pid")?;
    let is_id = |at: usize| {
        let id = &text[at + next.len()..];
        let usual = number(id).is_some_and(|(_, rest)| rest.starts_with(then));
        if usual && !then.is_empty() {
            return true;
        }
        let end = match then {
            [] => Some(id.len()),
            _ => memchr::memmem::find(id, then),
        };
        let digit = |b: &u8| b.is_ascii_hexdigit() || b"x() ".contains(b);
        end.is_some_and(|end| end > 0 && id[..end].iter().all(digit))
    };
    let end = match is_id(first) {
        true => first,
        false => ends.find(|at| is_id(*at)).unwrap_or(first),
    };
    Ok((&text[..end], &text[end + next.len()..]))
}

/// `comm:tid [prio] rest`; the name may hold ` [` too.
fn short(text: &[u8]) -> Field<(&[u8], u32, i16, &[u8])> {
    let mut opens = memchr::memmem::rfind_iter(text, b" [");
    opens.find_map(|open| short_at(text, open)).ok_or("pid")
}

fn short_at(text: &[u8], open: usize) -> Option<(&[u8], u32, i16, &[u8])> {
    let (prio, rest) = number(&text[open + 2..])?;
    let rest = rest.strip_prefix(b"]")?;
    let colon = memchr::memrchr(b':', &text[..open])?;
    let (tid, end) = number(&text[colon + 1..open])?;
    let tid = u32::try_from(tid).ok().filter(|_| end.is_empty())?;
    let prio = i16::try_from(prio).unwrap_or(120);
    Some((&text[..colon], tid, prio, rest))
}

fn tid(text: &[u8], key: &[u8]) -> Field<u32> {
    tid_after(text, key).ok_or("pid")
}

fn tid_after(text: &[u8], key: &[u8]) -> Option<u32> {
    tid_of(after(text, key)?)
}

/// What follows `key`, wherever that is. Keys are few bytes and near, which a search that prepares
/// itself for more would take longer to find.
fn after<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let last = *key.last()?;
    let mut ends = memchr::memchr_iter(last, text).map(|at| at + 1);
    let end = ends.find(|end| text[..*end].ends_with(key))?;
    Some(&text[end..])
}

fn tid_of(text: &[u8]) -> Option<u32> {
    u32::try_from(whole(text)?).ok()
}

/// A number, `0x` before hexadecimal digits.
fn whole(text: &[u8]) -> Option<u64> {
    let (n, rest) = number(text)?;
    let Some(digits) = rest.strip_prefix(b"x").filter(|_| n == 0) else {
        return Some(n);
    };
    let end = digits.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    u64::from_str_radix(std::str::from_utf8(&digits[..end]).ok()?, 16).ok()
}

/// A priority; one that is missing or negative (deadline) is as the default.
fn prio(text: &[u8], key: &[u8]) -> i16 {
    let Some(text) = after(text, key) else {
        return 120;
    };
    if text.first() == Some(&b'-') {
        return -1;
    }
    whole(text).map_or(120, |n| i16::try_from(n).unwrap_or(120))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, text: &str) -> (Kind, Names) {
        let mut names = Names::default();
        match parse(name.as_bytes(), text.as_bytes(), 5, &mut names) {
            Parsed::Event(kind) => (kind, names),
            _ => panic!("{text}"),
        }
    }

    #[test]
    fn a_name_may_hold_the_keys_of_what_follows() {
        let odd = "a ==> next_pid=";
        for next in [odd, "x next_pid=5", "y prev_pid=1 "] {
            let (kind, names) = event(
                "sched_switch",
                &format!(
                    "prev_comm=b prev_pid=3 pr prev_pid=7 prev_prio=120 prev_state=S ==> \
                     next_comm={next} next_pid=8 next_prio=98"
                ),
            );
            let Kind::Switch {
                prev,
                next: came,
                next_prio,
                ..
            } = kind
            else {
                panic!("{next}")
            };
            assert_eq!((prev, came, next_prio), (7, 8, 98), "{next}");
            assert_eq!(names.get(7), "b prev_pid=3 pr");
            assert_eq!(names.get(8), next);
        }
        let (kind, names) = event("sched_waking", "comm=x pid=1 pid=7 prio=120 target_cpu=3");
        let waking = Kind::Waking {
            tid: 7,
            prio: 120,
            cpu: 3,
        };
        assert_eq!((kind, names.get(7)), (waking, "x pid=1".into()));
        let (kind, _) = event("sched_process_exit", "comm=x pid=1 pid=7 prio=120");
        assert_eq!(kind, Kind::Exit { tid: 7 });
        let (kind, names) = event(
            "sched_process_fork",
            "comm=x pid=1 pid=7 child_comm=c child_pid=2 child_pid=9",
        );
        let fork = Kind::Fork {
            parent: 7,
            child: 9,
        };
        assert_eq!((kind, names.get(9)), (fork, "c child_pid=2".into()));
    }

    #[test]
    fn a_switch_without_a_state_is_told() {
        let of = |state: &str| {
            let line = format!(
                "a 7 [001] 10.5: sched:sched_switch: prev_comm=a prev_pid=7 prev_prio=120 \
                 prev_state={state} ==> next_comm=c next_pid=8 next_prio=98\n"
            );
            crate::text::read(line.as_bytes(), &mut |_| {}).unwrap()
        };
        assert_eq!((of("S").events.len(), of("").events.len()), (1, 0));
        let first = of("").left_out.first_bad.unwrap();
        assert_eq!(first, "line 1, sched_switch has no prev_state");
    }
}
