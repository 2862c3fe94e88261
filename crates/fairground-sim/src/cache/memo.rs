//! Touches that were all hits a moment ago.
//!
//! Nearly all touches of a scheduler are of a few sets of words on structures of the own CPU, and
//! nearly all of them are hits. What such a set comes to, its lines and their price, is remembered
//! for each core; while the core still holds every one of these lines and has not filled its
//! caches much since, the answer is the same. A hit then costs the host one comparison for up to
//! eight lines, and is counted in one place; [`Memo::take`] gives the counts to the lines.
//!
//! What is remembered is exact but for the time of the latest store to each line, so it is not
//! used for stores to lines on which a compare-and-swap loop can ask for that.

/// Lines that one entry can speak of: from the first on.
pub(super) const WINDOW: usize = 8;
/// Entries of a core; a power of two, a few times as many as it uses between two switches.
const ENTRIES: usize = 1024;

/// Lane of a line that is stored to: its holder must be the core, for itself.
pub(super) const STORED: u16 = u16::MAX;
/// Lane of a line that is only loaded: the core may share it, as the top bit of its holder says.
const LOADED: u16 = u16::MAX >> 1;

/// What is touched, in two words that the caller makes unique: the structure and its fields.
pub type Key = (u64, u64);

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Entry {
    key: Key,
    /// First line of the window.
    first: u32,
    /// Fill counter of the core when the lines were last looked at.
    base: u32,
    /// Price of all of them, ps.
    cost: u32,
    /// Uses that the lines have not been told of.
    count: u32,
    /// Bit 0: loads, bit 1: stores. 0: a free entry.
    how: u8,
    /// For each line of the window, which bits of its holder must be those of the core.
    lanes: [u16; WINDOW],
}

const FREE: Entry = Entry {
    key: (0, 0),
    first: 0,
    base: 0,
    cost: 0,
    count: 0,
    how: 0,
    lanes: [0; WINDOW],
};

/// What a touch of `key` comes to while the core holds all of its lines.
pub(super) struct Known {
    pub key: Key,
    pub how: u8,
    pub first: u32,
    pub cost: u32,
    pub lanes: [u16; WINDOW],
}

impl Known {
    /// A run of lines, given as offset from `first` and words, at `price` each; `None` if it is
    /// longer than the window.
    pub fn new<const LOAD: bool, const STORE: bool>(
        key: Key,
        first: u32,
        run: &[(u8, u8)],
        price: u32,
    ) -> Option<Self> {
        let lane = if STORE { STORED } else { LOADED };
        let from = run.first()?.0;
        let mut lanes = [0; WINDOW];
        for (offset, _) in run {
            *lanes.get_mut(usize::from(offset.wrapping_sub(from)))? = lane;
        }
        Some(Self {
            key,
            how: u8::from(LOAD) | u8::from(STORE) << 1,
            first: first + u32::from(from),
            cost: price * run.len() as u32,
            lanes,
        })
    }

    /// The same of a mixed touch: lines with words that are loaded, and words that are stored to;
    /// `prices` of a line without and with such. Counts as a load and a store.
    pub fn mixed(key: Key, first: u32, run: &[(u8, u8, u8)], prices: [u32; 2]) -> Option<Self> {
        let from = run.first()?.0;
        let (mut lanes, mut cost) = ([0; WINDOW], 0);
        for (offset, _, stored) in run {
            let stores = *stored != 0;
            let lane = if stores { STORED } else { LOADED };
            *lanes.get_mut(usize::from(offset.wrapping_sub(from)))? = lane;
            cost += prices[usize::from(stores)];
        }
        Some(Self {
            key,
            how: 3,
            first: first + u32::from(from),
            cost,
            lanes,
        })
    }
}

/// Uses of the lines of one entry.
pub(super) struct Uses {
    pub first: u32,
    pub lanes: [u16; WINDOW],
    pub loads: u32,
    pub stores: u32,
}

impl Entry {
    fn take(&mut self) -> Uses {
        let count = std::mem::take(&mut self.count);
        Uses {
            first: self.first,
            lanes: self.lanes,
            loads: if self.how & 1 != 0 { count } else { 0 },
            stores: if self.how & 2 != 0 { count } else { 0 },
        }
    }
}

pub(super) struct Memo {
    cores: Vec<Box<[Entry; ENTRIES]>>,
    /// Fills for which an entry is good.
    lasts: u32,
}

impl Memo {
    /// For `cores` cores, whose lines count as near the top of the stack for `recent` fills. Half
    /// of it, so that a line in steady use is looked at again before it seems to have aged.
    pub fn new(cores: usize, recent: u32) -> Self {
        Self {
            cores: vec![Box::new([FREE; ENTRIES]); cores],
            lasts: recent / 2,
        }
    }

    /// An entry is at this place or at its neighbour.
    #[inline]
    fn slot(key: Key) -> usize {
        let mix = key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key.1;
        let mix = mix.wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mix >> (64 - ENTRIES.trailing_zeros())) as usize
    }

    /// The price of touching what `key` names, if all of it is still held by `core`.
    #[inline(always)]
    pub fn known<const LOAD: bool, const STORE: bool>(
        &mut self,
        core: u16,
        key: Key,
        holders: &[u16],
        fills: u32,
    ) -> Option<u32> {
        let how = u8::from(LOAD) | u8::from(STORE) << 1;
        let entries = self.cores.get_mut(usize::from(core))?;
        let mut slot = Self::slot(key);
        let is = |e: &Entry| e.key.1 == key.1 && e.key.0 == key.0 && e.how == how;
        if !is(&entries[slot]) {
            slot ^= 1;
            if !is(&entries[slot]) {
                return None;
            }
        }
        let e = &mut entries[slot];
        if fills.wrapping_sub(e.base) > self.lasts {
            return None;
        }
        let window: &[u16; WINDOW] = holders.get(e.first as usize..)?.first_chunk()?;
        let mut others = 0;
        for (i, holder) in window.iter().enumerate() {
            others |= (holder ^ core) & e.lanes[i];
        }
        if others != 0 {
            return None;
        }
        e.count = e.count.saturating_add(1);
        Some(e.cost)
    }

    /// Remembers that `core` holds all lines of `key`: those from `first` on that have a lane.
    /// Gives back the uses of what had its place.
    pub fn learn(&mut self, core: u16, new: &Known, fills: u32) -> Option<Uses> {
        let entries = &mut self.cores[usize::from(core)];
        let slot = Self::slot(new.key);
        let same = |i: usize| entries[i].key == new.key && entries[i].how == new.how;
        let age = |i: usize| fills.wrapping_sub(entries[i].base);
        let slot = match () {
            () if same(slot) => slot,
            () if same(slot ^ 1) || age(slot ^ 1) > age(slot) => slot ^ 1,
            () => slot,
        };
        let e = &mut entries[slot];
        let uses = (e.count > 0).then(|| e.take());
        *e = Entry {
            key: new.key,
            first: new.first,
            base: fills,
            cost: new.cost,
            count: 0,
            how: new.how,
            lanes: new.lanes,
        };
        uses
    }

    /// All uses that the lines have not been told of.
    pub fn take(&mut self) -> impl Iterator<Item = Uses> + '_ {
        let entries = self.cores.iter_mut().flat_map(|core| core.iter_mut());
        entries.filter(|e| e.count > 0).map(Entry::take)
    }
}
