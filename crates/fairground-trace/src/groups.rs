//! Groups of threads, where a recording has them: `perf record --all-cgroups` writes the path of
//! each group once and the group of the current thread into every sample.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// Groups beyond this number are damage.
const GROUPS_MAX: usize = 1 << 16;

/// Which thread was seen in which group.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    paths: FxHashMap<u64, String>,
    seen: FxHashMap<(u32, u64), u64>,
}

impl Groups {
    /// The group `id` has this path; false if it is none.
    pub fn name(&mut self, id: u64, path: &str) -> bool {
        let plain = path.starts_with('/') && !path.chars().any(char::is_control);
        if !plain || self.paths.len() >= GROUPS_MAX {
            return false;
        }
        let parts = path.split('/').filter(|part| !part.is_empty());
        let path = parts.fold(String::new(), |path, part| path + "/" + part);
        self.paths.insert(id, path);
        true
    }

    /// The thread `tid` was seen in the group `id`.
    pub fn see(&mut self, tid: u32, id: u64) {
        if tid != 0 {
            *self.seen.entry((tid, id)).or_default() += 1;
        }
    }

    /// The path of each thread's group, the root's left out. Of a thread that moved, the one in
    /// which it was seen most often.
    #[must_use]
    pub fn of_threads(&self) -> BTreeMap<u32, &str> {
        let mut most: BTreeMap<u32, (u64, &str)> = BTreeMap::new();
        for ((tid, id), times) in &self.seen {
            let Some(path) = self.paths.get(id) else {
                continue;
            };
            let best = most.entry(*tid).or_insert((*times, path));
            *best = (*best).max((*times, path));
        }
        let below = most.into_iter().map(|(tid, (_, path))| (tid, path));
        below.filter(|(_, path)| !path.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_in_the_group_where_it_was_seen_most() {
        let mut groups = Groups::default();
        assert!(groups.name(1, "/") && groups.name(2, "/web//a/") && groups.name(3, "/db"));
        assert!(!groups.name(4, "web") && !groups.name(5, "/a\nb"));
        for (tid, id) in [(7, 2), (7, 3), (7, 3), (8, 1), (9, 2), (10, 99), (0, 3)] {
            groups.see(tid, id);
        }
        let found: Vec<_> = groups.of_threads().into_iter().collect();
        assert_eq!(found, [(7, "/db"), (9, "/web/a")]);
    }
}
