//! Cache lines: what a touch of a shared word costs, and why.
//!
//! Read `docs/cache-model.md` first; it has the model, its sources and its known misses. This
//! module knows nothing of schedulers: lines are dense numbers that the caller allocates, CPUs are
//! those of the machine's topology, and SMT siblings share their core's private caches.
//!
//! Times are integer picoseconds ([`Ps`]): the figures have tenths of nanoseconds, and a `u64`
//! lasts 213 days. Floating point is used while the model is built, never by a touch. The dice of
//! capacity misses are a seeded hash, so equal calls give equal answers on every platform.
//!
//! Calls may come out of time order by up to a handler's length: each line remembers its last
//! busy intervals, and a request takes the first gap that fits.

mod age;
mod block;
mod cas;
mod coherence;
mod crowd;
mod entry;
mod kinds;
mod named;
mod noted;
mod params;
mod private;
mod reuse;
mod ring;
mod run;
mod sample;
mod scan;
mod shared;
mod spread;
mod store_buffer;
mod structures;
mod tops;

use std::rc::Rc;

use age::Ages;
pub use block::{ABREAST, StructureId};
use block::{SHARES, Top, UNTOUCHED};
pub use kinds::{Access, Cost, DomainStats, LineStats, MissClass};
pub use named::Name;
use named::Named;
use params::Params;
pub use params::{Options, STORE_BUFFER};
pub use ring::Resource;
pub use run::Part;
pub use scan::LINES_IN_FLIGHT;
use scan::Scan;
use shared::{NONE, Shared, SharedLines};
use spread::Spread;
use store_buffer::StoreBuffers;
use structures::OneLine;
pub use structures::{Family, Pattern, REMEMBERED};
use tops::Tops;

use crate::machine_file::Machine;

/// Picoseconds.
pub type Ps = u64;
/// A cache line; dense, from [`Cache::alloc_lines`].
pub type LineId = u32;
/// One nanosecond.
pub const NS: Ps = 1000;

/// A thread of a core: what executes a touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HwThread {
    /// The core, which has the private caches; dense over the machine.
    pub core: u16,
    /// Which of the core's threads.
    pub thread: u8,
}

/// All lines and private caches of a machine.
pub struct Cache {
    p: Params,
    spread: Spread,
    /// What hits need to know of each line, and of whole structures.
    tops: Tops,
    /// Ways to touch structures, by family.
    patterns: Vec<Vec<Rc<[Part]>>>,
    /// Of each pattern that goes to one line, which.
    ones: Vec<Vec<OneLine>>,
    /// The rest.
    lines: Vec<Line>,
    named: Vec<Named>,
    shared: SharedLines,
    ages: Ages,
    stores: StoreBuffers,
    domains: Vec<DomainStats>,
    /// Misses by [`MissClass`].
    classes: [u64; 6],
    /// Loads that missed the last-level cache, on all domains.
    pub(crate) load_misses: u64,
    /// When the step that is simulated began.
    began: Ps,
    scan: Scan,
}

/// What only misses need of a line that one core only has touched; moves to `SharedLines` with the
/// second core. Most lines never get there.
#[derive(Clone, Copy)]
struct Line {
    /// Index into `SharedLines`, or `NONE`.
    link: u32,
    /// Fill counter of the core at the last touch; of a linked line, that of its holder (newer
    /// than in the record). Up to `recent` behind, for hits near the top do not note it.
    stamp: u32,
    /// Atomic updates.
    rmws: u32,
    /// Of a linked line, row and version of its record, for loads by others than its holder;
    /// `NONE` if there is none, or if more is to be asked of the record.
    row: u32,
    version: u32,
    home: u8,
    /// Of a linked line, the start of the latest write that is not yet in the record. Else, from
    /// the lowest bit: fill counter of the core's L3 domain at the last private miss (32 bits),
    /// thread of the last atomic update (12), capacity misses (20).
    tail: u64,
}

const _: () = assert!(size_of::<Line>() == 32);

impl Line {
    /// A store of `words` at `now` to a line that its core has for itself. Its top has it in
    /// `lane`, and `shared` is its record.
    #[inline(always)]
    fn store_hit(
        &mut self,
        top: &mut Top,
        lane: usize,
        shared: Option<&mut Shared>,
        words: u8,
        now: Ps,
    ) {
        match shared {
            // A compare-and-swap loop asks when it was last written, so hits must not pass by here.
            Some(shared) if shared.swapped => return shared.written(words, now),
            Some(_) => self.tail = self.tail.max(now),
            None => {}
        }
        top.written |= u64::from(words) << (lane * 8);
    }
    fn thread(&self) -> u32 {
        (self.tail >> 32) as u32 & 0xfff
    }
    fn set_thread(&mut self, thread: u32) {
        self.tail = self.tail & !(0xfff << 32) | u64::from(thread) << 32;
    }
    fn l3_stamp(&self) -> u32 {
        self.tail as u32
    }
    fn set_l3_stamp(&mut self, stamp: u32) {
        self.tail = self.tail >> 32 << 32 | u64::from(stamp);
    }
    fn capacity_misses(&self) -> u32 {
        (self.tail >> 44) as u32
    }
    fn clear_capacity_misses(&mut self) {
        self.tail &= (1 << 44) - 1;
    }
    fn count_capacity_miss(&mut self) {
        // Saturates at the top 20 bits; the others are not the counter's.
        self.tail = self.tail.checked_add(1 << 44).unwrap_or(self.tail);
    }
}

/// One request, unpacked once.
#[derive(Clone, Copy)]
struct Req {
    core: usize,
    thread: u32,
    line: LineId,
    words: u8,
    access: Access,
    now: Ps,
}

impl Cache {
    /// A machine with cold caches. `seed` feeds the dice of capacity misses, and says where lines
    /// have their homes.
    pub fn new(machine: &Machine, seed: u64) -> Self {
        Self::with_options(machine, seed, Options::default())
    }

    /// As [`Cache::new`], with the model's switches.
    pub fn with_options(machine: &Machine, seed: u64, options: Options) -> Self {
        let p = Params::new(machine, options);
        Self {
            ages: Ages::new(&p, seed),
            spread: Spread::new(machine, seed, options.spread),
            stores: StoreBuffers::new(p.cores.len(), p.threads()),
            shared: SharedLines::new(p.cores.len(), p.nr_llcs),
            domains: vec![DomainStats::default(); p.nr_llcs],
            lines: Vec::new(),
            named: Vec::new(),
            tops: Tops::new(p.recent),
            patterns: Vec::new(),
            ones: Vec::new(),
            classes: [0; 6],
            load_misses: 0,
            began: 0,
            scan: Scan::new(),
            p,
        }
    }

    /// Makes `n` untouched lines with memory on `home_node`; returns the first.
    pub fn alloc_lines(&mut self, n: u32, home_node: u32) -> LineId {
        let first = self.lines.len() as u32;
        let line = Line {
            link: NONE,
            home: home_node.min(self.p.nr_nodes as u32 - 1) as u8,
            stamp: 0,
            rmws: 0,
            row: NONE,
            version: 0,
            tail: 0,
        };
        self.lines.resize(self.lines.len() + n as usize, line);
        self.tops.resize(self.lines.len());
        first
    }

    /// [`Cache::alloc_lines`] for a structure of `family`: its first line is the first of those
    /// that lie abreast.
    pub fn alloc_structure(&mut self, family: Family, n: u32, home_node: u32) -> StructureId {
        let over = self.lines.len() % ABREAST;
        if over != 0 {
            self.alloc_lines((ABREAST - over) as u32, home_node);
        }
        let first = self.alloc_lines(n, home_node);
        self.tops.add_structure(first, family)
    }

    /// `cpu` touches the 8-byte `words` (bit 0 the first) of `line` at `now`.
    ///
    /// On lines of 128 bytes, bit `i` stands for words `2i` and `2i + 1`.
    #[inline]
    pub fn touch(&mut self, cpu: u32, line: LineId, words: u8, access: Access, now: Ps) -> Cost {
        let who = self.p.cpu[cpu as usize];
        let begin = self.begins(who, access, now);
        let mut cost = if self.quick(who, line, words, access, begin) {
            self.p.hit(access, begin)
        } else {
            self.slow(Req::new(who, line, words, access, begin))
        };
        cost.wait += begin - now;
        cost
    }

    /// When an access that comes at `now` begins: an atomic update of x86 waits until all earlier
    /// stores of its thread are done (Intel SDM volume 3, "Store Buffer"; AMD APM volume 2, 7.1.2).
    #[inline]
    fn begins(&self, who: HwThread, access: Access, now: Ps) -> Ps {
        if access >= Access::Rmw && self.p.stores_in_order {
            now.max(self.stores.drained(who))
        } else {
            now
        }
    }

    /// When others see a store that the thread makes at `now`, and to which nothing is to be
    /// fetched, such as the one that releases a lock: on x86 after all its earlier ones.
    #[inline]
    pub fn seen(&self, who: HwThread, now: Ps) -> Ps {
        self.begins(who, Access::Rmw, now)
    }

    /// [`Cache::touch`], for callers that want to know only when the core goes on.
    #[inline]
    pub fn pass(&mut self, cpu: u32, line: LineId, words: u8, access: Access, now: Ps) -> Ps {
        self.pass_from(self.p.cpu[cpu as usize], line, words, access, now)
    }

    /// [`Cache::pass`] of a core's thread.
    #[inline]
    pub fn pass_from(
        &mut self,
        who: HwThread,
        line: LineId,
        words: u8,
        access: Access,
        now: Ps,
    ) -> Ps {
        let now = self.begins(who, access, now);
        if self.quick(who, line, words, access, now) {
            return now + Ps::from(self.p.hit_ps[access as usize]);
        }
        self.slow(Req::new(who, line, words, access, now)).done_at
    }

    /// What a hit of a load or store takes that no other figure contains; see [`Options::hits`].
    pub fn user_hit(&self, access: Access) -> Ps {
        self.p.free_hits[access as usize]
    }

    /// A hit near the top of the stack, on a line that this core has for itself: true if it was.
    #[inline]
    fn quick(&mut self, who: HwThread, line: LineId, words: u8, access: Access, now: Ps) -> bool {
        let HwThread { core, thread } = who;
        let fills = self.ages.core_fills(usize::from(core));
        let (block, lane) = (line as usize / ABREAST, line as usize % ABREAST);
        let (top, l) = (
            self.tops.block_mut(block),
            self.lines.get_mut(line as usize),
        );
        let Some((top, l)) = top.zip(l) else {
            return false;
        };
        let holder = top.tags[lane] as u16;
        let own = holder == core || access == Access::Load && holder == core | SHARES;
        if !own || fills.wrapping_sub(l.stamp) > self.p.recent {
            return false;
        }
        if access == Access::Load {
            l.stamp = fills;
            let mut top = self.tops.lane(line);
            top.count(1, 0);
            top.note_again(fills);
            return true;
        }
        let shared = match l.link {
            NONE => None,
            i => Some(self.shared.line_mut(i)),
        };
        if access >= Access::Rmw {
            let last = shared.as_ref().map_or(l.thread(), |s| u32::from(s.thread));
            if last != u32::from(thread) {
                return false;
            }
            l.rmws = l.rmws.saturating_add(1);
        }
        l.store_hit(top, lane, shared, words, now);
        l.stamp = fills;
        let mut top = self.tops.lane(line);
        top.count(0, u32::from(access == Access::Store));
        top.note_again(fills);
        true
    }

    #[inline]
    fn count(&mut self, line: LineId, access: Access) {
        match access {
            Access::Load => self.tops.count(line, 1, 0),
            Access::Store => self.tops.count(line, 0, 1),
            Access::Rmw | Access::CasLoop => {
                let l = &mut self.lines[line as usize];
                l.rmws = l.rmws.saturating_add(1);
            }
        }
    }

    /// `cpu` ran code that went through `bytes` of other memory: its cached lines age.
    pub fn advance_footprint(&mut self, cpu: u32, bytes: u64) {
        let core = usize::from(self.p.cpu[cpu as usize].core);
        // More than any cache holds is all of it.
        let lines = (bytes / self.p.line_bytes).min(1 << 28) as u32;
        self.ages
            .advance(core, self.p.cores[core].llc as usize, lines);
    }

    /// The CPUs that are threads of the core of `cpu`.
    pub fn threads(&self, cpu: u32) -> impl Iterator<Item = u32> {
        let core = self.p.cpu[cpu as usize].core;
        (0u32..)
            .zip(&self.p.cpu)
            .filter(move |(_, who)| who.core == core)
            .map(|(c, _)| c)
    }

    /// The core of `cpu` has lost what its private caches held; it is in the L3 still.
    pub fn flush(&mut self, cpu: u32) {
        self.ages.flush(usize::from(self.p.cpu[cpu as usize].core));
    }

    /// Counters of a line.
    pub fn line_stats(&self, line: LineId) -> LineStats {
        let l = &self.lines[line as usize];
        let mut s = match l.link {
            NONE => LineStats {
                capacity: l.capacity_misses(),
                ..LineStats::default()
            },
            i => self.shared.line(i).stats,
        };
        (s.reads, s.writes) = self.counts(line);
        s.rmws = s.rmws.saturating_add(l.rmws);
        s
    }

    /// Loads and stores of a line.
    fn counts(&self, line: LineId) -> (u32, u32) {
        let (reads, writes) = self.tops.counts(line);
        let structure = self.tops.structure(line);
        let patterns = self.patterns.get(structure.family());
        let (more_reads, more_writes) = structure.counts(patterns.map_or(&[], |p| &p[..]), line);
        let stats = match self.lines[line as usize].link {
            NONE => LineStats::default(),
            i => self.shared.line(i).stats,
        };
        (
            (reads.wrapping_add(more_reads)).wrapping_add(stats.reads),
            (writes.wrapping_add(more_writes)).wrapping_add(stats.writes),
        )
    }

    /// All counters start again at zero; what the caches hold stays.
    pub fn clear_counters(&mut self) {
        self.tops.clear_counters();
        for line in &mut self.lines {
            line.rmws = 0;
            if line.link == NONE {
                line.clear_capacity_misses();
            }
        }
        self.shared.clear_counters();
        self.domains.fill(DomainStats::default());
        self.classes = [0; 6];
    }

    /// Counters of an L3 domain.
    pub fn domain_stats(&self, llc: u32) -> DomainStats {
        self.domains[llc as usize]
    }

    /// Touches of one class so far.
    pub fn touches(&self, class: MissClass) -> u64 {
        if class != MissClass::Hit {
            return self.classes[class as usize];
        }
        // Hits are not counted one by one: they are what was no miss.
        let touches = |line| {
            let s = self.line_stats(line);
            u64::from(s.reads) + u64::from(s.writes) + u64::from(s.rmws)
        };
        let all: u64 = (0..self.lines.len() as LineId).map(touches).sum();
        all - self.classes[1..].iter().sum::<u64>()
    }

    /// Host memory in use, bytes, to compare with a budget.
    pub fn host_bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
            + self.tops.host_bytes()
            + self.shared.host_bytes()
    }

    /// Everything but a [`Cache::quick`] hit.
    #[inline(never)]
    fn slow(&mut self, r: Req) -> Cost {
        let link = self.lines[r.line as usize].link;
        let cost = if link == NONE && self.is_private(r) {
            self.count(r.line, r.access);
            self.private(r)
        } else {
            if link == NONE {
                self.share(r.line);
            }
            self.entry(r.line).touch(r)
        };
        self.classes[cost.class as usize] += 1;
        cost
    }

    /// Whether no other core has touched the line, which has no record.
    #[inline]
    fn is_private(&self, r: Req) -> bool {
        let holder = self.tops.holder(r.line);
        holder == UNTOUCHED || usize::from(holder) == r.core
    }
}

impl Req {
    #[inline]
    fn new(who: HwThread, line: LineId, words: u8, access: Access, now: Ps) -> Self {
        Self {
            core: usize::from(who.core),
            thread: u32::from(who.thread),
            line,
            words,
            access,
            now,
        }
    }
}

/// A miss whose place in the queue and latency are known.
#[derive(Clone, Copy)]
struct Ready {
    start: Ps,
    latency: Ps,
    class: MissClass,
    transfer: bool,
    llc_miss: bool,
}
