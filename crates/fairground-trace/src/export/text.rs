//! The layout of `perf script --ns`, which `perf sched` scripts and this crate read. Where the
//! process of a thread is known it stands before the thread, as with `perf script -F +pid`. Where
//! it is known whether an interrupt did what is told, ftrace's flags stand behind the CPU, as far
//! as they say that: perf does not show it, and who woke a thread would be lost.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::shown::Shown;
use crate::event::{Context, Event, Kind, Told};
use crate::recording::Recording;
use crate::text::SAID;

/// So much is put together before it is written.
const BUFFER: usize = 1 << 16;

pub fn write(recording: &Recording, out: &mut impl Write) -> io::Result<()> {
    for line in recording.said.lines() {
        writeln!(out, "{SAID}{line}")?;
    }
    let shown = Shown::new(recording);
    let mut lines = Line {
        bytes: Vec::with_capacity(2 * BUFFER),
        // Of a simulated run it shows by calls.
        flags: recording.said.is_empty(),
        ..Line::default()
    };
    let events = recording.events.iter();
    for event in events.filter(|e| e.kind != Kind::On) {
        lines.event(event, &shown);
        if lines.bytes.len() >= BUFFER {
            out.write_all(&lines.bytes)?;
            lines.bytes.clear();
        }
    }
    out.write_all(&lines.bytes)
}

/// Text, put together without the machinery of `format!`, which takes longer than all else here.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// Whether contexts are told.
    flags: bool,
    /// Of each thread, as it was told last.
    prio: FxHashMap<u32, i16>,
}

impl Line {
    fn event(&mut self, event: &Event, shown: &Shown) {
        let who = shown.thread(event.tid);
        self.right(who.comm_at(event.at_ns).as_bytes(), 16);
        self.text(" ");
        if let Some(process) = who.process {
            self.number(process.into(), 5, b' ');
            self.text("/");
            let before = self.bytes.len();
            self.number(who.tid.into(), 0, b' ');
            let digits = self.bytes.len() - before;
            self.bytes.resize(before + digits.max(5), b' ');
        } else {
            self.number(who.tid.into(), 5, b' ');
        }
        self.text(" [");
        self.number(event.cpu.into(), 3, b'0');
        self.text("] ");
        match event.context {
            Context::Interrupt if self.flags => self.text("..h.. "),
            Context::Task if self.flags => self.text("..... "),
            _ => {}
        }
        self.number(event.at_ns / 1_000_000_000, 5, b' ');
        self.text(".");
        self.number(event.at_ns % 1_000_000_000, 9, b'0');
        self.text(": ");
        if let Kind::Told(Told::Worked { instructions }) = event.kind {
            self.number(instructions, 10, b' ');
            self.text(" ");
        }
        let name = name(event.kind);
        self.bytes
            .resize(self.bytes.len() + 18_usize.saturating_sub(name.len()), b' ');
        self.text(system(event.kind));
        self.text(name);
        self.text(": ");
        self.fields(event, shown);
        self.text("\n");
    }

    /// The priority that a thread was last switched in or woken with; 120 before that.
    fn last_prio(&mut self, tid: u32) {
        let prio = self.prio.get(&tid).copied().unwrap_or(120);
        self.prio(" prio=", prio);
    }

    fn fields(&mut self, event: &Event, shown: &Shown) {
        let then = |tid: u32| shown.then(tid, event);
        match event.kind {
            Kind::Switch {
                prev,
                prev_prio,
                state,
                next,
                next_prio,
            } => {
                self.thread("prev_comm=", " prev_pid=", then(prev));
                self.prio(" prev_prio=", prev_prio);
                self.text(" prev_state=");
                self.bytes.push(state.letter() as u8);
                self.thread(" ==> next_comm=", " next_pid=", then(next));
                self.prio(" next_prio=", next_prio);
                self.prio.insert(next, next_prio);
            }
            Kind::Waking { tid, prio, cpu }
            | Kind::Wakeup { tid, prio, cpu }
            | Kind::WakeupNew { tid, prio, cpu } => {
                self.thread("comm=", " pid=", then(tid));
                self.prio(" prio=", prio);
                self.prio.insert(tid, prio);
                self.text(" target_cpu=");
                self.number(cpu.into(), 3, b'0');
            }
            Kind::Migrate { tid, from, to } => {
                self.thread("comm=", " pid=", then(tid));
                self.last_prio(tid);
                self.text(" orig_cpu=");
                self.number(from.into(), 0, b' ');
                self.text(" dest_cpu=");
                self.number(to.into(), 0, b' ');
            }
            Kind::Fork { parent, child } => {
                self.thread("comm=", " pid=", then(parent));
                self.thread(" child_comm=", " child_pid=", then(child));
            }
            Kind::Exit { tid } => {
                self.thread("comm=", " pid=", then(tid));
                self.last_prio(tid);
            }
            Kind::On => {}
            Kind::Told(told) => self.told(told, event.tid),
        }
    }

    /// Timers are told apart by address; here each thread has one.
    fn told(&mut self, told: Told, tid: u32) {
        match told {
            Told::UserEnter | Told::UserExit | Told::Worked { .. } => {}
            Told::Act(act) => {
                self.text("(0) arg1=");
                self.number(act.object.into(), 0, b' ');
                self.text(" arg2=");
                self.number(act.n.into(), 0, b' ');
            }
            Told::Call { nr } => {
                self.text("NR ");
                self.number(nr.into(), 0, b' ');
                self.text(" (0, 0, 0, 0, 0, 0)");
            }
            Told::Timer(timer) => {
                self.text("hrtimer=0x");
                self.number(tid.into(), 16, b'0');
                self.text(" function=hrtimer_wakeup expires=");
                let hard_ns = timer.soft_ns.saturating_add(timer.slack_ns.into());
                self.number(hard_ns, 0, b' ');
                self.text(" softexpires=");
                self.number(timer.soft_ns, 0, b' ');
                self.text(if timer.relative {
                    " mode=REL"
                } else {
                    " mode=ABS"
                });
            }
        }
    }

    fn thread(&mut self, comm_key: &str, key: &str, (comm, tid): (&str, u32)) {
        self.text(comm_key);
        self.text(comm);
        self.text(key);
        self.number(tid.into(), 0, b' ');
    }

    fn prio(&mut self, key: &str, prio: i16) {
        self.text(key);
        if prio < 0 {
            self.text("-");
        }
        self.number(prio.unsigned_abs().into(), 0, b' ');
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn right(&mut self, text: &[u8], width: usize) {
        let blanks = width.saturating_sub(text.len());
        self.bytes.resize(self.bytes.len() + blanks, b' ');
        self.bytes.extend_from_slice(text);
    }

    /// With `fill` before it up to `width`.
    fn number(&mut self, mut value: u64, width: usize, fill: u8) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        let digits = &digits[at..];
        let before = width.saturating_sub(digits.len());
        self.bytes.resize(self.bytes.len() + before, fill);
        self.bytes.extend_from_slice(digits);
    }
}

/// The tracepoint's name.
pub fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Switch { .. } => "sched_switch",
        Kind::Waking { .. } => "sched_waking",
        Kind::Wakeup { .. } => "sched_wakeup",
        Kind::WakeupNew { .. } => "sched_wakeup_new",
        Kind::Migrate { .. } => "sched_migrate_task",
        Kind::Fork { .. } => "sched_process_fork",
        Kind::Exit { .. } => "sched_process_exit",
        Kind::On => "",
        Kind::Told(Told::UserEnter) => "user_enter",
        Kind::Told(Told::UserExit) => "user_exit",
        Kind::Told(Told::Worked { .. }) => "instructions:u",
        Kind::Told(Told::Act(act)) => act.what.name(),
        Kind::Told(Told::Call { .. }) => "sys_enter",
        Kind::Told(Told::Timer(_)) => "hrtimer_start",
    }
}

/// The tracepoint's system, as perf writes it.
fn system(kind: Kind) -> &'static str {
    match kind {
        Kind::Told(Told::UserEnter | Told::UserExit) => "context_tracking:",
        Kind::Told(Told::Act(_)) => "sdt_fairground:",
        Kind::Told(Told::Call { .. }) => "raw_syscalls:",
        Kind::Told(Told::Timer(_)) => "timer:",
        Kind::Told(Told::Worked { .. }) => "",
        _ => "sched:",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::State;
    use crate::open;

    #[test]
    fn lines_are_those_of_perf_script() {
        let mut r = Recording::new("test");
        r.names.see(7, b"a");
        r.names.see_process(7, 5);
        let switch = Kind::Switch {
            prev: 7,
            prev_prio: 120,
            state: State::Blocked(b'S'),
            next: 0,
            next_prio: -1,
        };
        let wakeup = Kind::WakeupNew {
            tid: 7,
            prio: 120,
            cpu: 2,
        };
        for (tid, kind) in [(7, switch), (0, wakeup)] {
            r.push(Event {
                at_ns: 2_000_000_450,
                cpu: 12,
                tid,
                context: Context::Unknown,
                kind,
            });
        }
        let mut out = Vec::new();
        write(&r, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "               a     5/7     [012]     2.000000450:       sched:sched_switch: \
             prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/12 \
             next_pid=0 next_prio=-1\n         \
             swapper     0 [012]     2.000000450:   sched:sched_wakeup_new: \
             comm=a pid=7 prio=120 target_cpu=002\n"
        );
    }

    /// What an interrupt did is that in what is read again, too.
    #[test]
    fn what_an_interrupt_did_is_told() {
        let contexts = [Context::Interrupt, Context::Task, Context::Unknown];
        let mut r = Recording::new("test");
        for tid in [7, 8] {
            r.names.see(tid, b"a");
        }
        for (at_ns, context) in (1_000..).zip(contexts) {
            let kind = Kind::Switch {
                prev: 8,
                prev_prio: 120,
                state: State::Blocked(b'S'),
                next: 7,
                next_prio: 120,
            };
            assert!(r.push(Event {
                at_ns,
                cpu: 0,
                tid: 8,
                context,
                kind,
            }));
        }
        let again = |r: &Recording| {
            let mut out = Vec::new();
            write(r, &mut out).unwrap();
            let read = open::read(&*out, &mut |_| {}).unwrap();
            let found: Vec<Context> = read.events.iter().map(|e| e.context).collect();
            (String::from_utf8(out).unwrap(), found)
        };
        let (text, found) = again(&r);
        assert_eq!(found, contexts, "{text}");
        assert!(
            text.contains(" a     8 [000] ..h..     0.000001000: "),
            "{text}"
        );
        // Of a simulated run as before: there calls say it.
        r.said = "hz = 1000\n".into();
        assert!(!again(&r).0.contains(".."));
    }
}
