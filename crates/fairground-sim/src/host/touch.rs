//! Touches of structures: how long the executing CPU waits for their lines.

use super::places::Site;
use super::{SimHost, Waited};
use crate::cache::{self, Pattern, Ps, StructureId};

impl SimHost {
    /// The executing CPU has waited since `from`.
    #[cold]
    pub(super) fn waited(&mut self, from: Ps, what: Waited) {
        if let Some(waits) = &mut self.waits {
            waits.note(self.cpu, from, self.at, what);
        }
    }

    /// The executing CPU has touched lines of a structure since `from`.
    #[inline]
    pub(super) fn waited_for_line(&mut self, from: Ps, id: StructureId) {
        if self.waits.is_some()
            && let Some(object) = self.places.object(id)
        {
            self.waited(from, Waited::Line(object));
        }
    }

    /// The executing CPU goes on at `at`: a line of a structure came no earlier.
    #[inline]
    pub(super) fn stalled_until(&mut self, at: Ps, id: StructureId) {
        let from = self.at;
        if at > from {
            self.at = at;
            self.stalled += at - from;
            self.waited_for_line(from, id);
        }
    }

    /// The structure with ids `a` and `b` is touched as `site` says.
    #[inline(never)]
    pub(super) fn touch_site(&mut self, site: Site, a: u32, b: u32) {
        match self.places.known(site, a, b, cache::REMEMBERED) {
            Some((id, pattern)) if self.cache.hits_known(id, pattern) => {}
            Some((id, pattern)) if id != 0 => self.touch_slowly(id, pattern),
            _ => self.touch_new(site, a, b),
        }
    }

    /// [`SimHost::touch_site`] where something is new, or structures do not remember such a touch.
    #[inline(never)]
    fn touch_new(&mut self, site: Site, a: u32, b: u32) {
        let (id, pattern) = self.places.find(site, a, b, &mut self.cache);
        self.touch_slowly(id, pattern);
    }

    /// A structure is touched by `pattern`, and not all is known to hit.
    #[inline(never)]
    fn touch_slowly(&mut self, id: StructureId, pattern: Pattern) {
        let before = self.cache.load_misses;
        let from = self.at;
        self.at = self.cache.pass_structure(self.thread, id, pattern, from);
        self.stalled += self.at - from;
        self.waited_for_line(from, id);
        if self.cache.load_misses != before {
            self.profile.missed(self.cache.load_misses - before);
        }
    }

    #[inline(never)]
    pub(super) fn touch_atomic(&mut self, site: Site, a: u32, b: u32, how: cache::Access) {
        let (from, before) = (self.at, self.cache.load_misses);
        let (id, pattern) = self.places.find(site, a, b, &mut self.cache);
        self.at = self.cache.pass_atomic(self.thread, id, pattern, how, from);
        self.stalled += self.at - from;
        self.waited_for_line(from, id);
        self.profile.missed(self.cache.load_misses - before);
    }
}
