//! From a raw tracepoint record to an event.

use rustc_hash::FxHashMap;

use super::format::{Field, Format};
use super::headers::Headers;
use super::ours::{OURS, RUNTIME, Which};
use crate::bytes::{u16_of, u32_of, u64_of};
use crate::event::{Context, Event, Kind, State};
use crate::recording::{Place, Recording};

/// Bits of `common_flags` for a hard and a soft interrupt, and an NMI.
const IN_INTERRUPT: u64 = 0x08 | 0x10 | 0x40;

/// Reads records of one file.
#[derive(Debug)]
pub struct Decoder {
    by_type: FxHashMap<u32, Layout>,
    others: FxHashMap<u32, String>,
    big: bool,
}

/// Which event, and where its fields are.
#[derive(Clone, Debug)]
struct Layout {
    which: Which,
    flags: Option<Field>,
    pid: Field,
    f: [Field; 7],
    letters: [u8; 16],
}

impl Decoder {
    /// For the records of a file with these formats; a format without a field that is needed is
    /// told in `recording` and its records are left out.
    pub fn new(headers: &Headers, big: bool, recording: &mut Recording) -> Self {
        let mut by_type = FxHashMap::default();
        let mut others: FxHashMap<u32, String> = headers.others.iter().cloned().collect();
        for format in &headers.formats {
            match Layout::new(format) {
                Ok(layout) => drop(by_type.insert(format.id, layout)),
                Err(field) => {
                    let note = format!(
                        "{} has no field {field}: these events are left out",
                        format.name
                    );
                    recording.left_out.notes.push(note);
                    others.insert(format.id, format.name.clone());
                }
            }
        }
        Self {
            by_type,
            others,
            big,
        }
    }

    /// Whether records of this type are the scheduler's events, which must all be there.
    pub fn reads(&self, id: u64) -> bool {
        let layout = u32::try_from(id).ok().and_then(|id| self.by_type.get(&id));
        layout.is_some_and(|layout| layout.which != Which::Runtime)
    }

    /// Takes in a record; false if no more can be kept.
    #[inline]
    pub fn record(&self, data: &[u8], cpu: u32, at_ns: u64, recording: &mut Recording) -> bool {
        if data.len() < 2 {
            recording
                .left_out
                .bad(|| format!("a record of {} bytes", data.len()));
            return true;
        }
        let number = u32::from(u16_of(data, self.big));
        let Some(layout) = self.by_type.get(&number) else {
            match self.others.get(&number) {
                Some(name) => recording.left_out.other(name),
                None => recording.left_out.other("(no format)"),
            }
            return true;
        };
        if layout.which == Which::Runtime {
            recording.left_out.other(RUNTIME);
            if let Some((tid, ns)) = layout.runtime(data, self.big) {
                let at = Place { at_ns, cpu };
                recording.ran.see(at, tid, ns);
            }
            return true;
        }
        recording.names.at(Some(at_ns));
        match layout.event(data, self.big, recording) {
            Some((tid, context, kind)) => recording.push(Event {
                at_ns,
                cpu,
                tid,
                context,
                kind,
            }),
            None => {
                recording
                    .left_out
                    .bad(|| format!("a {:?} of {} bytes", layout.which, data.len()));
                true
            }
        }
    }
}

impl Layout {
    fn new(format: &Format) -> Result<Self, &'static str> {
        let (_, which, names) = OURS
            .iter()
            .find(|(n, ..)| *n == format.name)
            .ok_or("of ours")?;
        let mut f = [Field::default(); 7];
        for (place, name) in f.iter_mut().zip(*names) {
            *place = format.field(name).ok_or(*name)?;
        }
        Ok(Self {
            which: *which,
            flags: format.field("common_flags"),
            pid: format.field("common_pid").ok_or("common_pid")?,
            f,
            letters: format.state_letters,
        })
    }

    fn event(&self, data: &[u8], big: bool, r: &mut Recording) -> Option<(u32, Context, Kind)> {
        let number = |field: Field| number(data, field, big);
        let tid = |field: Field| number(field).map(|n| n as u32);
        let prio = |field: Field| number(field).map(|n| n as i32 as i16);
        let current = tid(self.pid)?;
        let context = match self.flags.and_then(number) {
            Some(flags) if flags & IN_INTERRUPT != 0 => Context::Interrupt,
            Some(_) => Context::Task,
            None => Context::Unknown,
        };
        let [a, b, c, d, e, f, g] = self.f;
        let kind = match self.which {
            Which::Switch => {
                let (prev, next) = (tid(b)?, tid(f)?);
                r.names.see(prev, text(data, a, big));
                r.names.see(next, text(data, e, big));
                Kind::Switch {
                    prev,
                    prev_prio: prio(c)?,
                    state: State::from_bits(number(d)?, &self.letters),
                    next,
                    next_prio: prio(g)?,
                }
            }
            Which::Waking | Which::Wakeup | Which::WakeupNew => {
                let (tid, prio, cpu) = (tid(b)?, prio(c)?, tid(d)?);
                r.names.see(tid, text(data, a, big));
                match self.which {
                    Which::Waking => Kind::Waking { tid, prio, cpu },
                    Which::Wakeup => Kind::Wakeup { tid, prio, cpu },
                    _ => Kind::WakeupNew { tid, prio, cpu },
                }
            }
            Which::Migrate => Kind::Migrate {
                tid: tid(b)?,
                from: tid(c)?,
                to: tid(d)?,
            },
            Which::Fork => {
                r.names.see(tid(c)?, text(data, b, big));
                Kind::Fork {
                    parent: tid(a)?,
                    child: tid(c)?,
                }
            }
            Which::Exit => Kind::Exit { tid: tid(b)? },
            Which::Runtime => return None,
        };
        Some((current, context, kind))
    }

    /// Who has run how long, if it is the current thread.
    fn runtime(&self, data: &[u8], big: bool) -> Option<(u32, u64)> {
        let [pid, ns, ..] = self.f;
        let tid = number(data, pid, big)?;
        let current = number(data, self.pid, big)?;
        Some((tid as u32, number(data, ns, big)?)).filter(|_| tid == current)
    }
}

fn number(data: &[u8], field: Field, big: bool) -> Option<u64> {
    let part = data.get(field.offset..field.offset + field.size)?;
    Some(match field.size {
        1 => part[0].into(),
        2 => u16_of(part, big).into(),
        4 => u32_of(part, big).into(),
        8 => u64_of(part, big),
        _ => return None,
    })
}

/// A name, up to its zero; empty if it is not where it should be.
fn text(data: &[u8], field: Field, big: bool) -> &[u8] {
    let (offset, size) = if field.located {
        let Some(at) = number(data, field, big) else {
            return &[];
        };
        ((at & 0xffff) as usize, (at >> 16) as usize & 0xffff)
    } else {
        (field.offset, field.size)
    };
    let part = data.get(offset..offset + size).unwrap_or(&[]);
    &part[..memchr::memchr(0, part).unwrap_or(part.len())]
}
