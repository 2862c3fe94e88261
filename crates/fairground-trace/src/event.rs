//! One form for the scheduler's tracepoints, whatever file they come from.
//!
//! Times are nanoseconds on the recording's clock. Thread ids are the kernel's; 0 is the idle task
//! of whichever CPU.

use crate::act::Act;
pub use crate::names::{COMM, Names};

/// One tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, ns.
    pub at_ns: u64,
    /// The CPU that executed it.
    pub cpu: u32,
    /// The thread that was current there.
    pub tid: u32,
    /// What that CPU was doing.
    pub context: Context,
    /// What happened.
    pub kind: Kind,
}

/// On whose behalf a tracepoint was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The current thread itself.
    Task,
    /// An interrupt, soft or hard, that merely met the current thread.
    Interrupt,
    /// The recording does not say.
    Unknown,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `sched_switch`.
    Switch {
        /// Who stops running.
        prev: u32,
        /// Its priority as the kernel prints it: 120 is nice 0, below 100 real time.
        prev_prio: i16,
        /// How it leaves.
        state: State,
        /// Who starts.
        next: u32,
        /// Its priority.
        next_prio: i16,
    },
    /// `sched_waking`: a wake-up was asked for.
    Waking {
        /// Of whom.
        tid: u32,
        /// Its priority.
        prio: i16,
        /// Where it was last.
        cpu: u32,
    },
    /// `sched_wakeup`: the thread is runnable.
    Wakeup {
        /// Who.
        tid: u32,
        /// Its priority.
        prio: i16,
        /// On which CPU.
        cpu: u32,
    },
    /// `sched_wakeup_new`: a new thread is runnable.
    WakeupNew {
        /// Who.
        tid: u32,
        /// Its priority.
        prio: i16,
        /// On which CPU.
        cpu: u32,
    },
    /// `sched_migrate_task`.
    Migrate {
        /// Who.
        tid: u32,
        /// From where.
        from: u32,
        /// To where.
        to: u32,
    },
    /// `sched_process_fork`.
    Fork {
        /// Who creates.
        parent: u32,
        /// Who is created.
        child: u32,
    },
    /// `sched_process_exit`.
    Exit {
        /// Who.
        tid: u32,
    },
    /// No tracepoint: the current thread has run since then, by `sched_stat_runtime`, and the
    /// switch to it is missing.
    On,
    /// What the current thread does in between; of simulated runs only.
    Told(Told),
}

/// What a thread does between the scheduler's tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// `context_tracking:user_enter`: it goes on in user space.
    UserEnter,
    /// `context_tracking:user_exit`: it leaves user space, by a call or for an interrupt.
    UserExit,
    /// `instructions:u`, counted from `user_enter` on: where the time does not say it.
    Worked {
        /// One a nanosecond on a core of its own.
        instructions: u64,
    },
    /// A probe in its program: what it begins to do with others.
    Act(Act),
    /// `raw_syscalls:sys_enter`: it calls the kernel.
    Call {
        /// Number of the system call.
        nr: u32,
    },
    /// `timer:hrtimer_start`: it sets a timer for its own wake-up.
    Timer(Timer),
}

/// A timer as a thread asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// From when on it may fire, ns.
    pub soft_ns: u64,
    /// How much later it may, ns.
    pub slack_ns: u32,
    /// It asked for a time from now on.
    pub relative: bool,
}

/// How a thread leaves its CPU (`prev_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Still runnable: `R` or `R+`.
    Runnable,
    /// Asleep in any way; the letter that the kernel prints.
    Blocked(u8),
    /// Dead: `X` or `Z`.
    Dead,
}

impl State {
    /// From the kernel's letters ("S", "R+", "D|W").
    #[must_use]
    pub fn from_letters(letters: &[u8]) -> Self {
        match letters.first() {
            None | Some(b'R') => Self::Runnable,
            Some(b'X' | b'Z' | b'x') => Self::Dead,
            Some(letter) => Self::Blocked(*letter),
        }
    }

    /// From the number in the raw event. `letters` has the letter of each bit, zero where the
    /// kernel prints none; the bit above all states only says that the thread was preempted.
    #[must_use]
    pub fn from_bits(bits: u64, letters: &[u8; 16]) -> Self {
        let set = (0..16).filter(|bit| bits & (1 << bit) != 0);
        let mut known = set.map(|bit| letters[bit]).filter(|l| *l != 0);
        match known.next() {
            None => Self::Runnable,
            Some(letter) => Self::from_letters(&[letter]),
        }
    }

    /// The letter that the kernel prints.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Runnable => 'R',
            Self::Blocked(letter) => char::from(letter),
            Self::Dead => 'X',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_from_letters_and_bits() {
        assert_eq!(State::from_letters(b"R+"), State::Runnable);
        assert_eq!(State::from_letters(b"S"), State::Blocked(b'S'));
        assert_eq!(State::from_letters(b"Z"), State::Dead);
        let letters = b"SDTtXZPI\0\0\0\0\0\0\0\0";
        assert_eq!(State::from_bits(0x100, letters), State::Runnable);
        assert_eq!(State::from_bits(2, letters), State::Blocked(b'D'));
        assert_eq!(State::from_bits(0x10, letters), State::Dead);
        assert_eq!(State::from_bits(0x80, letters), State::Blocked(b'I'));
    }
}
