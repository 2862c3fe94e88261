//! Loads that do not depend on each other: of the lines of one structure, whose places are known
//! when the first is asked for, and of the turns of a loop over many structures.
//!
//! A core executes out of order: while a load waits for its line, what comes after it is executed,
//! until the buffer that keeps the order (ROB) is full. In straight code this hides a part of the
//! wait, [`Options::load_overlap_ns`](super::Options); here the code that comes after is further
//! turns, whose loads are then on their way at once. So the same figure says how many turns these
//! are: as much work as is done behind a load that waits. No more lines are under way than the
//! first-level cache has fill buffers.

use super::{Cache, Ps, StructureId};

/// Turns that a core works on at once, at most.
const TURNS: usize = 32;

/// Cache lines that a core can have on their way to it: the fill buffers of its first-level cache.
/// 12 since Ice Lake, 16 since Golden Cove (Intel's optimization manual); the smaller for all.
pub const LINES_IN_FLIGHT: usize = 12;

/// The scan of the step that is simulated.
pub(super) struct Scan {
    /// Turns that may have begun when the first of them is not done.
    abreast: usize,
    /// Turns begun.
    turns: usize,
    /// When each of the last turns and all before it were done, and which line was last.
    done: [(Ps, StructureId); TURNS],
    /// When each of the last lines came.
    came: [Ps; LINES_IN_FLIGHT],
    asked: usize,
}

impl Scan {
    pub fn new() -> Self {
        Self {
            abreast: 1,
            turns: 0,
            done: [(0, 0); TURNS],
            came: [0; LINES_IN_FLIGHT],
            asked: 0,
        }
    }

    /// The earliest time when one more line can be asked for.
    fn ask(&self, now: Ps) -> Ps {
        now.max(self.came[self.asked % LINES_IN_FLIGHT])
    }

    /// The line of a structure that was asked for comes at `then`.
    fn comes(&mut self, then: Ps, id: StructureId) {
        self.came[self.asked % LINES_IN_FLIGHT] = then;
        self.asked += 1;
        let turn = &mut self.done[self.turns % TURNS];
        *turn = (*turn).max((then, id));
    }
}

impl Cache {
    /// A scan begins whose turns are `work` apart.
    pub fn begin_scan(&mut self, now: Ps, work: Ps) {
        let abreast = self.p.load_overlap.div_ceil(work.max(1)) as usize;
        self.scan.abreast = abreast.clamp(1, TURNS - 1);
        (self.scan.turns, self.scan.asked) = (0, 0);
        self.scan.done[0] = (now, 0);
        self.scan.came = [now; LINES_IN_FLIGHT];
        self.p.scans = true;
    }

    /// The next turn begins: when, and for which structure it had to wait.
    pub fn next_turn(&mut self, now: Ps) -> (Ps, StructureId) {
        let scan = &mut self.scan;
        let before = scan.done[scan.turns % TURNS];
        scan.turns += 1;
        scan.done[scan.turns % TURNS] = before;
        let first = scan.turns.saturating_sub(scan.abreast);
        let (done, id) = scan.done[first % TURNS];
        (now.max(done), id)
    }

    /// The scan is over: when the core goes on, and for which structure it had to wait. As behind
    /// any load, some of what comes next is executed before the last line is there.
    pub fn end_scan(&mut self, now: Ps) -> (Ps, StructureId) {
        self.p.scans = false;
        let (done, id) = self.scan.done[self.scan.turns % TURNS];
        (now.max(done.saturating_sub(self.p.load_overlap)), id)
    }

    /// A touch of a structure begins. Outside of scans it has the fill buffers for itself.
    #[inline]
    pub(super) fn begin_touch(&mut self, now: Ps) {
        if !self.p.scans {
            self.scan.came = [now; LINES_IN_FLIGHT];
        }
    }

    /// A line of `id` is loaded by `load`, which is told when it may begin and says when the line
    /// is there; so does this.
    #[inline]
    pub(super) fn abreast(
        &mut self,
        id: StructureId,
        now: Ps,
        load: impl FnOnce(&mut Self, Ps) -> Ps,
    ) -> Ps {
        let asked = self.scan.ask(now);
        let then = load(self, asked);
        if then > asked {
            self.scan.comes(then, id);
        }
        then
    }

    /// The only line of a touch is loaded by `load`: when the core goes on.
    #[inline]
    pub(super) fn load_in_turn(
        &mut self,
        id: StructureId,
        now: Ps,
        load: impl FnOnce(&mut Self, Ps) -> Ps,
    ) -> Ps {
        if !self.p.scans {
            return load(self, now);
        }
        self.abreast(id, now, load);
        now
    }

    /// When the core goes on that has asked for lines at `now`, the last of which is there at
    /// `done`: in a scan at once, with the next turn.
    #[inline]
    pub(super) fn goes_on(&self, now: Ps, done: Ps) -> Ps {
        if self.p.scans { now } else { now.max(done) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Access, HwThread, NS};
    use super::*;
    use crate::machine_file::Machine;

    /// Lines that a core of the other socket has written, and one that reads them.
    fn written(n: u32) -> (Cache, StructureId, u32) {
        let machine = Machine::builtin("spr-8480-2s").unwrap();
        let mut cache = Cache::new(&machine, 1);
        let far = (0..224).find(|&c| machine.topology.cpus[c as usize].socket == 1);
        let first = cache.alloc_lines(n, 0);
        for line in first..first + n {
            cache.touch(far.unwrap(), line, 1, Access::Store, 0);
        }
        (cache, 1, first)
    }

    /// When the reader is done with `n` lines, a turn each, that are `work` apart.
    fn scan(n: u32, work: Ps) -> Ps {
        let (mut cache, id, first) = written(n);
        let begin = 1_000_000 * NS;
        let mut now = begin;
        cache.begin_scan(now, work);
        for line in first..first + n {
            now = cache.next_turn(now + work).0;
            cache.abreast(id, now, |cache, now| {
                cache.load(HwThread::default(), line, 1, now)
            });
        }
        cache.end_scan(now).0 - begin
    }

    /// The time of `n` loads that do not overlap, with `work` between them.
    fn one_by_one(n: u32, work: Ps) -> Ps {
        let (mut cache, _, first) = written(n);
        let begin = 1_000_000 * NS;
        let lines = first..first + n;
        lines.fold(begin, |now, line| {
            cache.load(HwThread::default(), line, 1, now + work)
        }) - begin
    }

    #[test]
    fn one_turn_is_straight_code() {
        assert_eq!(scan(1, 2 * NS), one_by_one(1, 2 * NS));
        assert_eq!(scan(0, 2 * NS), 0);
    }

    /// Short turns: twelve lines are on their way at once.
    #[test]
    fn fill_buffers_bound_what_is_under_way() {
        let (all, straight) = (scan(240, NS), one_by_one(240, NS));
        let ratio = straight as f64 / all as f64;
        // The straight code hides 30 ns of each wait, and a line's way differs from the next.
        assert!((8.0..12.5).contains(&ratio), "{straight} {all} {ratio}");
    }

    /// Turns of as much work as is done behind a load that waits: no more than two overlap.
    #[test]
    fn long_turns_wait_for_the_one_before() {
        let (all, straight) = (scan(240, 30 * NS), one_by_one(240, 30 * NS));
        assert!((all..2 * all).contains(&straight), "{straight} {all}");
    }

    /// A slow twin: any buffer whose line has come takes the next; each load is known by itself.
    fn twin(n: u32, work: Ps) -> Ps {
        let overlap = 30 * NS;
        let ways: Vec<Ps> = (0..n).map(|k| way(n, k)).collect();
        let (mut now, mut done) = (0, vec![0]);
        let mut under_way: Vec<Ps> = Vec::new();
        for (turn, way) in ways.iter().enumerate() {
            now += work;
            // All turns that lie a window's work behind must be done.
            let behind = (overlap.div_ceil(work) as usize).max(1);
            now = now.max(done[(turn + 1).saturating_sub(behind)]);
            let mut asked = now;
            if under_way.len() == LINES_IN_FLIGHT {
                let first = (0..under_way.len()).min_by_key(|&i| under_way[i]).unwrap();
                asked = asked.max(under_way.swap_remove(first));
            }
            under_way.push(asked + way);
            done.push(done[turn].max(asked + way));
        }
        now.max(done[n as usize].saturating_sub(overlap))
    }

    /// How long line `k` of `n` is on its way.
    fn way(n: u32, k: u32) -> Ps {
        let (mut cache, _, first) = written(n);
        cache.p.scans = true;
        let begin = 1_000_000 * NS;
        cache.load(HwThread::default(), first + k, 1, begin) - begin
    }

    #[test]
    fn scans_take_as_long_as_those_of_the_twin() {
        for work in [NS, 2 * NS, 5 * NS, 12 * NS, 31 * NS] {
            let (n, model) = (100, scan(100, work));
            let twin = twin(n, work);
            let off = model as f64 / twin as f64 - 1.0;
            assert!((-0.001..0.06).contains(&off), "{work}: {model} {twin}");
        }
    }

    /// Lines of one structure are as long on their way as the farthest of them.
    #[test]
    fn lines_of_one_touch_do_not_wait_for_each_other() {
        let (mut cache, _, first) = written(8);
        let parts = cache.parts((0..8).map(|line| (line, 1, 0)), false);
        let begin = 1_000_000 * NS;
        let (hit, done) = {
            cache.begin_touch(begin);
            cache.pass_part(HwThread::default(), (1, first), &parts[0], begin)
        };
        let farthest = (0..8).map(|k| way(8, k)).max().unwrap();
        assert!(!hit);
        assert_eq!(done - begin, farthest - 30 * NS);
    }

    /// No scan ends before its last line is nearly there; none takes longer than straight code.
    #[test]
    fn a_scan_lies_between_its_longest_load_and_straight_code() {
        for work in [NS / 10, NS, 3 * NS, 10 * NS, 40 * NS] {
            for n in 1..60 {
                let (all, straight) = (scan(n, work), one_by_one(n, work));
                assert!(all <= straight, "{n} {work}: {all} {straight}");
                assert!(
                    all >= u64::from(n) * work + one_by_one(1, 0).min(40 * NS),
                    "{n} {work}"
                );
            }
        }
    }
}
