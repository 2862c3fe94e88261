//! Names of threads may have line breaks in them, which recorders print as they are: the line of an
//! event breaks off within a name, and goes on in the next one.
//!
//! A line is held back if it may be the beginning of such a one: the beginning of a name, padded as
//! recorders pad names (`            a`), or an event that ends within a name (`... prev_comm=a`).
//! If it is an event together with what follows, it is read as one, with `?` for the line break;
//! else each is taken as it is.

use super::{LINE_MAX, Reader, Taken, line, take};

/// Most lines of one event: each has at most three names, of 15 bytes.
const LINES_MAX: usize = 8;
/// Names in the first column are padded up to here, and ftrace has a blank before them.
const PADDED: std::ops::RangeInclusive<usize> = 16..=17;

/// Lines that wait for the next one.
#[derive(Default)]
pub struct Held {
    lines: Vec<(u64, Vec<u8>)>,
}

impl Held {
    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// All of them as one line, with the next one.
    fn with(&self, next: &[u8]) -> Vec<u8> {
        let mut all = Vec::with_capacity(LINE_MAX);
        for (_, part) in &self.lines {
            all.extend_from_slice(part);
            all.push(b'?');
        }
        all.extend_from_slice(next);
        all
    }
}

/// Whether a line without an event may be the beginning of a name in the first column: padded, and
/// as short.
pub fn may_be_name(text: &[u8]) -> bool {
    text.len() < *PADDED.end() && text[0] == b' '
}

/// Takes in a line behind those that are held back; false if no more events can be kept.
pub fn go_on(text: &[u8], number: u64, reader: &mut Reader) -> bool {
    let all = reader.held.with(text);
    if reader.held.lines.len() < LINES_MAX && all.len() <= LINE_MAX && belongs(&all, text) {
        let first = reader.held.lines[0].0;
        match take(&all, first, reader, false) {
            Taken::All(more) => {
                reader.held.lines.clear();
                return more;
            }
            Taken::Part => {
                reader.held.lines.push((number, text.to_vec()));
                return true;
            }
            Taken::Nothing => {}
        }
    }
    flush(reader) && start(text, number, reader)
}

/// Takes in a line, with none held back before it.
pub fn start(text: &[u8], number: u64, reader: &mut Reader) -> bool {
    match take(text, number, reader, false) {
        Taken::All(more) => more,
        Taken::Part => {
            reader.held.lines.push((number, text.to_vec()));
            true
        }
        Taken::Nothing => true,
    }
}

/// No more lines belong to those that are held back.
pub fn flush(reader: &mut Reader) -> bool {
    let lines = std::mem::take(&mut reader.held.lines);
    lines.into_iter().all(|(number, text)| {
        let taken = take(&text, number, reader, true);
        matches!(taken, Taken::All(true) | Taken::Nothing)
    })
}

/// Whether `text` may be the rest of what makes up `all` with it: it is no event of its own, or has
/// the rest of a padded name before its thread's id.
fn belongs(all: &[u8], text: &[u8]) -> bool {
    let Some(own) = line::parse(text) else {
        return true;
    };
    let before = &all[..all.len() - text.len()];
    let Some(joined) = line::parse(all).filter(|_| line::parse(before).is_none()) else {
        return false;
    };
    let padding = all.iter().take_while(|b| **b == b' ').count();
    let width = padding + joined.comm.len();
    own.at_ns == joined.at_ns && own.tid == joined.tid && PADDED.contains(&width)
}

#[cfg(test)]
mod tests {
    use crate::recording::Recording;

    fn read_all(text: &str) -> Recording {
        crate::text::read(text.as_bytes(), &mut |_| {}).unwrap()
    }

    #[test]
    fn a_line_that_breaks_within_a_name_goes_on_in_the_next_one() {
        let usual = |comm: &str, other: &str| {
            format!(
                "{comm:>16}     7 [001]    10.000002500: sched:sched_switch: prev_comm={comm} \
                 prev_pid=7 prev_prio=120 prev_state=S ==> next_comm={other} next_pid=8 \
                 next_prio=120\n"
            )
        };
        let text = usual("a\nb", "x\ny\nz") + &usual("a", "x") + &usual("q", "p\nq");
        let r = read_all(&text);
        assert_eq!((r.events.len(), r.left_out.text()), (3, String::new()));
        assert!(r.events.iter().all(|e| e.tid == 7));
        assert_eq!((r.names.get(7), r.names.get(8)), ("q".into(), "p?q".into()));
        let r = read_all(&usual("a\nb", "x\ny\nz"));
        assert_eq!(
            (r.names.get(7), r.names.get(8)),
            ("a?b".into(), "x?y?z".into())
        );
        // What belongs to nothing is told for itself, and what follows it is used.
        let text = format!("   junk\n{}{}", usual("a", "x"), "nonsense\n");
        let r = read_all(&text);
        assert_eq!((r.events.len(), r.left_out.bad), (1, 2));
        assert_eq!(
            r.left_out.first_bad.unwrap(),
            "line 1, no event in `   junk`"
        );
        let cut = usual("a", "x").replace(" next_pid=8 next_prio=120", "");
        let r = read_all(&format!("{cut}{}", usual("a", "x")));
        assert_eq!((r.events.len(), r.left_out.bad), (1, 1));
        assert!(
            r.left_out
                .first_bad
                .unwrap()
                .starts_with("line 1, sched_switch has no")
        );
    }
}
