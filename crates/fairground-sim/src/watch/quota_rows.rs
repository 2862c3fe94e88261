//! The periods of one group: when each begins and ends, also where `cpu.max` is written during the
//! run, and which of them the scheduler does not count.
//!
//! Spans of time are entered late (`watch`), so what was written before must stay known: a write
//! that changes the periods begins a new [`Grid`], and the rows of earlier ones stay as they are.

use std::collections::BTreeSet;

use hdrhistogram::Histogram;

use super::quota_work::Counts;
use crate::cache::{NS, Ps};
use crate::histogram::{histogram, record};

/// One period of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// Its begin, ns since the start of the run.
    pub from_ns: u64,
    /// Its end: less than the length after its begin if a write of `max` cut it off, or started the
    /// timer within it.
    pub to_ns: u64,
    /// How long the group's periods were, ns.
    pub length_ns: u64,
    /// How long its tasks ran, ns.
    pub ran_ns: u64,
    /// How long its tasks waited for quota, ns, all together.
    pub waited_ns: u64,
    /// How many waits for quota began in it, or lasted through it. One that ends soon after its
    /// begin is of the period before: handing out the new quota takes a moment.
    pub waits: u32,
    /// The longest of the stretches of these waits, ns.
    pub slowest_ns: u64,
    /// What throttling made CPUs do in it.
    pub work: Counts,
}

/// A group's period timer after `cpu.max` was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeriodTimer {
    /// Length of its periods.
    pub length: Ps,
    /// When it fires next, or would if it did not rest.
    pub expires: Ps,
    /// Whether it runs.
    pub active: bool,
    /// Whether there is a limit.
    pub limited: bool,
}

/// Periods of one length, which end at `phase` and whole periods after it.
#[derive(Clone, Copy, Debug)]
struct Grid {
    from: Ps,
    length: Ps,
    phase: Ps,
    /// Which of all rows is its first.
    first: usize,
}

impl Grid {
    fn new(from: Ps, timer: PeriodTimer, first: usize) -> Self {
        let (length, phase) = (timer.length, timer.expires % timer.length);
        Self {
            from,
            length,
            phase,
            first,
        }
    }

    /// Whole periods up to the end of the one at `at`.
    fn number(&self, at: Ps) -> u64 {
        // Number 0 ends at the phase.
        (at + self.length - self.phase) / self.length
    }

    fn row(&self, at: Ps) -> usize {
        self.first + (self.number(at) - self.number(self.from)) as usize
    }

    /// When a row of it ends.
    fn end(&self, row: usize) -> Ps {
        (self.number(self.from) + (row - self.first) as u64) * self.length + self.phase
    }
}

/// All periods of a group, from the start of the run.
#[derive(Debug)]
pub(super) struct Rows {
    /// In order of time, at least one.
    grids: Vec<Grid>,
    rows: Vec<Period>,
    /// Those at whose end the limit was gone, so that the scheduler does not count them.
    cut: Vec<usize>,
}

impl Rows {
    pub fn new(timer: PeriodTimer) -> Self {
        Self {
            grids: vec![Grid::new(0, timer, 0)],
            rows: Vec::new(),
            cut: Vec::new(),
        }
    }

    /// `cpu.max` was written at `at`.
    pub fn write(&mut self, at: Ps, timer: PeriodTimer) {
        // A timer that runs keeps its time, so the period that is open ends when it was to end.
        let (grid, open) = (self.grid_at(at), self.row(at));
        let ends = grid.end(open);
        let from = if ends == timer.expires { ends } else { at };
        let last = self.grids[self.grids.len() - 1];
        let new = Grid::new(from, timer, 0);
        if (last.length, last.phase) != (new.length, new.phase) {
            while self.grids.len() > 1 && self.grids[self.grids.len() - 1].from >= from {
                self.grids.pop();
            }
            let first = self.row(from.max(1) - 1) + 1;
            self.grids.push(Grid { first, ..new });
        }
        // The timer counts what has ended since it last fired, if there is a limit by then.
        let uncounted = self.row(timer.expires.max(1) - 1).min(self.row(at));
        self.cut.retain(|row| *row < uncounted);
        if !timer.limited {
            self.cut.extend(uncounted..=self.row(at));
        }
    }

    /// Adds a span to the periods that it falls into; the first and the last of them.
    pub fn add(&mut self, from: Ps, to: Ps, what: impl Fn(&mut Period, u64)) -> (usize, usize) {
        let (first, last) = (self.row(from), self.row(to.max(from + 1) - 1));
        if self.rows.len() <= last {
            self.rows.resize(last + 1, Period::default());
        }
        for row in first..=last {
            let (begins, ends) = self.span(row);
            let common = to.min(ends).saturating_sub(from.max(begins));
            what(&mut self.rows[row], common / NS);
        }
        (first, last)
    }

    /// The rows, to be written to.
    pub fn all(&mut self) -> &mut [Period] {
        &mut self.rows
    }

    /// The periods that ended after `from` and up to `end`, and how many of those in which a task
    /// waited the scheduler has not counted.
    pub fn end(self, from: Ps, end: Ps, timer: PeriodTimer) -> (Vec<Period>, u64) {
        let mut kept = Vec::new();
        let mut uncounted = 0;
        for (n, row) in self.rows.iter().enumerate() {
            let (begins, ends) = self.span(n);
            // One that ends with the run has ended if the timer has fired.
            let open = timer.active && ends >= timer.expires;
            if ends <= from || ends > end || open {
                continue;
            }
            uncounted += u64::from(row.waits > 0 && self.cut.contains(&n));
            kept.push(Period {
                from_ns: begins / NS,
                to_ns: ends / NS,
                length_ns: self.grid_of(n).length / NS,
                ..*row
            });
        }
        (kept, uncounted)
    }

    /// Begin and end of a row.
    fn span(&self, row: usize) -> (Ps, Ps) {
        let grid = self.grid_of(row);
        let ends = grid.end(row);
        let begins = ends.saturating_sub(grid.length);
        let next = self.grids.iter().find(|g| g.first > row);
        let ends = next.map_or(ends, |next| ends.min(next.from));
        // The first of the run, and of a grid whose timer started within it, lack their begin.
        match grid.first {
            0 => (begins, ends),
            _ => (begins.max(grid.from), ends),
        }
    }

    /// Which row a time falls into.
    pub fn row(&self, at: Ps) -> usize {
        self.grid_at(at).row(at)
    }

    fn grid_at(&self, at: Ps) -> Grid {
        let grid = self.grids.iter().rev().find(|g| g.from <= at);
        *grid.unwrap_or(&self.grids[0])
    }

    fn grid_of(&self, row: usize) -> Grid {
        let grid = self.grids.iter().rev().find(|g| g.first <= row);
        *grid.unwrap_or(&self.grids[0])
    }
}

/// Stretches that touch no period in which a task of the group waited for quota. Whether a period
/// is one is known at its end, and until then they are kept.
#[derive(Debug)]
pub(super) struct Untouched {
    /// How many tasks wait.
    held: usize,
    /// The row that is open.
    open: usize,
    touched: BTreeSet<usize>,
    /// Row of the begin, and length in ns, of those that ended in the open row.
    kept: Vec<(usize, u64)>,
    lengths: Histogram<u64>,
}

impl Untouched {
    pub fn new() -> Self {
        Self {
            held: 0,
            open: 0,
            touched: BTreeSet::new(),
            kept: Vec::new(),
            lengths: histogram(),
        }
    }

    /// A task begins to wait in a row.
    pub fn hold(&mut self, row: usize) {
        self.advance(row);
        self.touched.insert(row);
        self.held += 1;
    }

    /// A task does not wait any more. Handing out the new quota takes a moment: a row is not
    /// touched by the end of a wait that began before it.
    pub fn release(&mut self, row: usize) {
        self.advance(row);
        self.held -= 1;
    }

    /// A stretch without waiting, from a row to another, has ended.
    pub fn add(&mut self, (first, last): (usize, usize), ns: u64) {
        self.advance(last);
        self.kept.push((first, ns));
    }

    /// The lengths.
    pub fn end(mut self) -> Histogram<u64> {
        self.advance(self.open + 1);
        self.lengths
    }

    fn advance(&mut self, row: usize) {
        if row <= self.open {
            return;
        }
        if self.held > 0 {
            self.touched.extend(self.open..row);
        }
        for (first, ns) in self.kept.drain(..) {
            if self.touched.range(first..=self.open).next().is_none() {
                record(&mut self.lengths, ns);
            }
        }
        self.open = row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ps = 1_000_000 * NS;

    fn timer(length: Ps, expires: Ps) -> PeriodTimer {
        PeriodTimer {
            length: length * MS,
            expires: expires * MS,
            active: true,
            limited: true,
        }
    }

    fn waits(rows: &mut Rows, from: Ps, to: Ps) {
        let add = |row: &mut Period, ns| {
            row.waits += 1;
            row.waited_ns += ns;
        };
        rows.add(from * MS, to * MS, add);
    }

    /// Begin and length of each period, and waiting in it, ms.
    fn shown(rows: Rows, end: Ps, timer: PeriodTimer) -> (Vec<[u64; 3]>, u64) {
        let (kept, cut) = rows.end(0, end * MS, timer);
        let ms = |p: &Period| [p.from_ns, p.length_ns, p.waited_ns].map(|ns| ns / 1_000_000);
        (kept.iter().map(ms).collect(), cut)
    }

    #[test]
    fn the_open_period_ends_as_it_was_to_when_the_length_changes() {
        let mut rows = Rows::new(timer(10, 10));
        waits(&mut rows, 2, 4);
        rows.write(13 * MS, timer(50, 20));
        // Entered late.
        waits(&mut rows, 8, 12);
        waits(&mut rows, 15, 30);
        let (kept, cut) = shown(rows, 100, timer(50, 120));
        let first = [[0, 10, 4], [10, 10, 7], [20, 50, 10]];
        assert_eq!((&kept[..3], cut), (&first[..], 0));
    }

    #[test]
    fn a_timer_that_rested_begins_its_period_with_the_write() {
        let mut rows = Rows::new(timer(10, 10));
        waits(&mut rows, 2, 4);
        rows.write(33 * MS, timer(20, 50));
        waits(&mut rows, 35, 55);
        let (kept, _) = shown(rows, 100, timer(20, 110));
        assert_eq!(kept[..2], [[0, 10, 2], [10, 10, 0]]);
        assert_eq!(kept[4..], [[33, 20, 15], [50, 20, 5]]);
    }

    #[test]
    fn a_period_ends_where_the_next_begins() {
        let mut rows = Rows::new(timer(10, 10));
        rows.write(33 * MS, timer(20, 50));
        waits(&mut rows, 35, 55);
        let (kept, _) = rows.end(0, 100 * MS, timer(20, 110));
        let spans = kept
            .iter()
            .map(|p| [p.from_ns, p.to_ns].map(|ns| ns / 1_000_000));
        let spans: Vec<_> = spans.collect();
        assert_eq!(spans[2..], [[20, 30], [30, 33], [33, 50], [50, 70]]);
    }

    #[test]
    fn a_period_without_a_limit_at_its_end_is_not_counted_by_the_scheduler() {
        let unlimited = PeriodTimer {
            limited: false,
            ..timer(10, 20)
        };
        let mut rows = Rows::new(timer(10, 10));
        waits(&mut rows, 2, 14);
        rows.write(14 * MS, unlimited);
        let rests = PeriodTimer {
            active: false,
            ..unlimited
        };
        assert_eq!(shown(rows, 30, rests).1, 1);
        // Back before the timer fires: it counts.
        let mut rows = Rows::new(timer(10, 10));
        waits(&mut rows, 2, 14);
        rows.write(14 * MS, unlimited);
        rows.write(15 * MS, timer(10, 20));
        assert_eq!(shown(rows, 30, timer(10, 30)).1, 0);
    }

    #[test]
    fn stretches_beside_one_that_waited_are_touched() {
        let mut stretches = Untouched::new();
        stretches.add((0, 0), 1);
        // From the second row to the begin of the fourth.
        stretches.add((1, 1), 20);
        stretches.hold(1);
        stretches.add((0, 2), 300);
        stretches.release(3);
        stretches.add((3, 3), 4);
        stretches.add((2, 4), 5000);
        let lengths = stretches.end();
        assert_eq!((lengths.len(), lengths.max()), (2, 4));
    }

    #[test]
    fn what_the_timer_has_not_ended_is_open() {
        let mut rows = Rows::new(timer(10, 10));
        waits(&mut rows, 2, 20);
        assert_eq!(shown(rows, 20, timer(10, 20)).0, [[0, 10, 8]]);
    }
}
