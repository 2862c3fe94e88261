//! Pipes, locks and other things that threads of a simulated run share, in the words of its text:
//! how many of each kind, and what kind of pipe or socket.

use fairground_sim::workload::Workload;
use fairground_sim::workload::inet::{Inet, Reader};
use fairground_sim::workload::program::{Chan, ChanKind};
use serde::{Deserialize, Serialize};

use crate::recording::CPU_MAX;

/// Most of one kind: each has lines of cache in the simulated machine, pipes some thirty.
const MANY: usize = 1 << 16;
/// Most buffers of all pipes together, and most CPUs of all sets.
const PARTS: usize = 1 << 20;

/// All of a workload. A list has equal neighbours as one entry with their number before it:
/// `40 pipe 16 4096`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Objects {
    /// Pipes (buffers, bytes of one) and local sockets (send buffer).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chans: Vec<String>,
    /// Sockets of the loopback interface.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inets: Vec<String>,
    /// Semaphores, with their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sems: Vec<String>,
    /// Barriers, with their parties.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub barriers: Vec<String>,
    /// Services: `futex` or `socket`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// Sets of CPUs: numbers with blanks between them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masks: Vec<String>,
    /// Futexes.
    #[serde(skip_serializing_if = "is_none")]
    pub futexes: u32,
    /// Mutexes.
    #[serde(skip_serializing_if = "is_none")]
    pub mutexes: u32,
    /// Bytes from one mutex to the next.
    #[serde(skip_serializing_if = "is_none")]
    pub mutex_stride: u32,
    /// Shared words.
    #[serde(skip_serializing_if = "is_none")]
    pub words: u32,
    /// Counters that threads take from.
    #[serde(skip_serializing_if = "is_none")]
    pub budgets: u32,
    /// Sets of a lock for each CPU.
    #[serde(skip_serializing_if = "is_none")]
    pub cpu_locks: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_none(n: &u32) -> bool {
    *n == 0
}

impl Objects {
    /// Of a workload.
    #[must_use]
    pub fn of(w: &Workload) -> Self {
        let futex = |k: usize| w.futex_services.contains(&(k as u32));
        let service = |k: usize| if futex(k) { "futex" } else { "socket" };
        Self {
            chans: counted(w.chans.iter().map(chan)),
            inets: counted(w.inets.iter().map(inet)),
            sems: counted(w.sems.iter().map(u32::to_string)),
            barriers: counted(w.barriers.iter().map(u32::to_string)),
            services: counted((0..w.services.len()).map(|k| service(k).to_string())),
            masks: counted(w.masks.iter().map(|mask| cpus(mask))),
            futexes: w.n_futexes,
            mutexes: w.n_mutexes,
            mutex_stride: if w.n_mutexes > 0 { w.mutex_stride } else { 0 },
            words: w.n_words,
            budgets: w.budgets.len() as u32,
            cpu_locks: w.n_cpu_locks,
        }
    }

    /// Puts them into a workload, semaphores behind those that it has, and budgets as semaphores
    /// behind these.
    ///
    /// # Errors
    /// An entry that makes no sense.
    pub fn add_to(&self, w: &mut Workload) -> Result<(), String> {
        let slots = |chan: &Chan| match chan.kind {
            ChanKind::Pipe { slots, .. } => slots as usize,
            ChanKind::Socket { .. } => 0,
        };
        w.chans = each(&self.chans, read_chan, slots)?;
        w.inets = each(&self.inets, read_inet, |_| 0)?;
        w.sems
            .extend(each(&self.sems, |word| word.parse::<u32>().ok(), |_| 0)?);
        w.barriers = each(&self.barriers, |word| word.parse().ok(), |_| 0)?;
        w.masks = each(&self.masks, read_cpus, Vec::len)?;
        let service = |word: &str| match word {
            "futex" => Some(true),
            "socket" => Some(false),
            _ => None,
        };
        let futex = each(&self.services, service, |_| 0)?;
        w.services = (0..futex.len()).map(|k| format!("service {k}")).collect();
        let futex = (0..).zip(futex).filter(|(_, futex)| *futex);
        w.futex_services = futex.map(|(k, _)| k).collect();
        for (what, n) in [
            ("futexes", self.futexes),
            ("mutexes", self.mutexes),
            ("words", self.words),
            ("budgets", self.budgets),
            ("cpu_locks", self.cpu_locks),
        ] {
            if n as usize > MANY {
                return Err(format!("{what} = {n}: expected at most {MANY}"));
            }
        }
        w.sems.resize(w.sems.len() + self.budgets as usize, 0);
        (w.n_futexes, w.n_mutexes) = (self.futexes, self.mutexes);
        (w.n_words, w.n_cpu_locks) = (self.words, self.cpu_locks);
        if self.mutex_stride > 0 {
            w.mutex_stride = self.mutex_stride;
        }
        Ok(())
    }
}

/// Equal neighbours as one entry.
fn counted(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut runs: Vec<(usize, String)> = Vec::new();
    for word in all {
        match runs.last_mut() {
            Some((n, last)) if *last == word => *n += 1,
            _ => runs.push((1, word)),
        }
    }
    let runs = runs.into_iter();
    runs.map(|(n, word)| format!("{n} {word}")).collect()
}

/// The other way. A file of a few bytes may ask for any number of things, and each for any number
/// of `parts`: what all of them would take is limited before it is taken.
fn each<T: Clone>(
    entries: &[String],
    read: impl Fn(&str) -> Option<T>,
    parts: impl Fn(&T) -> usize,
) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    let mut left = PARTS;
    for entry in entries {
        let bad = || format!("`{entry}`: expected a number and a thing, as in `2 pipe 16 4096`");
        let (n, word) = entry.split_once(' ').ok_or_else(bad)?;
        let n: usize = n.parse().map_err(|_| bad())?;
        let one = read(word).ok_or_else(bad)?;
        if n > MANY - all.len() {
            return Err(format!("`{entry}`: expected at most {MANY} in all"));
        }
        left = match n.checked_mul(parts(&one)).and_then(|n| left.checked_sub(n)) {
            Some(left) => left,
            None => {
                let what = "buffers of pipes, or CPUs of sets, in all";
                return Err(format!("`{entry}`: expected at most {PARTS} {what}"));
            }
        };
        all.resize(all.len() + n, one);
    }
    Ok(all)
}

fn cpus(mask: &[u32]) -> String {
    let cpus: Vec<String> = mask.iter().map(u32::to_string).collect();
    cpus.join(" ")
}

fn read_cpus(word: &str) -> Option<Vec<u32>> {
    let cpu = |word: &str| word.parse().ok().filter(|cpu| *cpu <= CPU_MAX);
    let mut cpus: Vec<u32> = word.split(' ').map(cpu).collect::<Option<_>>()?;
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

fn chan(chan: &Chan) -> String {
    match chan.kind {
        ChanKind::Pipe { slots, page_bytes } => format!("pipe {slots} {page_bytes}"),
        ChanKind::Socket { sndbuf } => format!("socket {sndbuf}"),
    }
}

fn read_chan(word: &str) -> Option<Chan> {
    let words: Vec<&str> = word.split(' ').collect();
    let kind = match words[..] {
        ["pipe", slots, page] => ChanKind::Pipe {
            slots: slots.parse().ok().filter(|n| *n as usize <= MANY)?,
            page_bytes: page.parse().ok()?,
        },
        ["socket", sndbuf] => ChanKind::Socket {
            sndbuf: sndbuf.parse().ok()?,
        },
        _ => return None,
    };
    Some(Chan { kind })
}

fn inet(inet: &Inet) -> String {
    match *inet {
        Inet::Udp { rcvbuf, connected } => format!("udp {rcvbuf} {connected}"),
        Inet::Tcp {
            sndbuf,
            window,
            piggyback,
            reader,
        } => {
            let reader = match reader {
                Reader::Recv => "recv",
                Reader::Poll => "poll",
                Reader::Epoll => "epoll",
            };
            format!("tcp {sndbuf} {window} {piggyback} {reader}")
        }
    }
}

fn read_inet(word: &str) -> Option<Inet> {
    let words: Vec<&str> = word.split(' ').collect();
    Some(match words[..] {
        ["udp", rcvbuf, connected] => Inet::Udp {
            rcvbuf: rcvbuf.parse().ok()?,
            connected: connected.parse().ok()?,
        },
        ["tcp", sndbuf, window, piggyback, reader] => Inet::Tcp {
            sndbuf: sndbuf.parse().ok()?,
            window: window.parse().ok()?,
            piggyback: piggyback.parse().ok()?,
            reader: match reader {
                "recv" => Reader::Recv,
                "poll" => Reader::Poll,
                "epoll" => Reader::Epoll,
                _ => return None,
            },
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_back_from_their_words() {
        let mut w = Workload::new("test", Vec::new());
        w.chans = vec![
            Chan {
                kind: ChanKind::PIPE
            };
            3
        ];
        w.chans.push(Chan {
            kind: ChanKind::SOCKET,
        });
        w.inets = vec![Inet::UDP, Inet::udp(true), Inet::STREAM, Inet::REQUEST];
        w.sems = vec![0, 0, 4];
        w.barriers = vec![9];
        w.masks = vec![vec![0], vec![0, 2, 5]];
        w.services = vec!["a".into(), "b".into()];
        w.futex_services = vec![1];
        (w.n_futexes, w.n_mutexes, w.mutex_stride) = (1, 2, 16);
        (w.n_words, w.n_cpu_locks) = (3, 4);
        let objects = Objects::of(&w);
        assert_eq!(objects.chans, ["3 pipe 16 4096", "1 socket 212992"]);
        let mut again = Workload::new("test", Vec::new());
        objects.add_to(&mut again).unwrap();
        assert_eq!(Objects::of(&again), objects);
        assert_eq!(again.masks, w.masks);
        assert_eq!((again.chans, again.inets), (w.chans, w.inets));
        assert_eq!((again.sems, again.futex_services), (w.sems, vec![1]));
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let mut w = Workload::new("test", Vec::new());
        for chans in [
            "2 pipe 4294967295 4096",
            "pipe 16 4096",
            "2 pipe 16",
            "2000000 socket 1",
            "1 fifo",
            "1000000 pipe 1024 4096",
            "40000 pipe 1024 4096",
            "1 pipe 1048576 4096",
        ] {
            let objects = Objects {
                chans: vec![chans.into()],
                ..Objects::default()
            };
            let error = objects.add_to(&mut w).unwrap_err();
            assert!(
                error.contains(chans) && error.contains("expected"),
                "{error}"
            );
        }
        let mutexes = Objects {
            mutexes: 1_000_000,
            ..Objects::default()
        };
        assert!(mutexes.add_to(&mut w).unwrap_err().contains("mutexes"));
        let all: Vec<String> = (0..8192).map(|cpu: u32| cpu.to_string()).collect();
        let masks = Objects {
            masks: vec![format!("60000 {}", all.join(" "))],
            ..Objects::default()
        };
        assert!(masks.add_to(&mut w).unwrap_err().contains("CPUs of sets"));
    }
}
