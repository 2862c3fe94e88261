//! Names of lines that are no structures of the scheduler's, as pipes and locks of programs: their
//! traffic is reported by object and field, whatever number of objects there are.

use super::{Cache, LineId, LineStats};

/// An object, as the kernel calls its structure, and fields of it. What is a program's own is in
/// brackets.
pub type Name = (&'static str, &'static str);

/// Lines in a row with one name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    name: Name,
    first: LineId,
    lines: u32,
}

impl Cache {
    /// [`Cache::alloc_lines`], all of one name.
    pub fn alloc_named(&mut self, name: Name, lines: u32, home_node: u32) -> LineId {
        let first = self.alloc_lines(lines, home_node);
        if lines > 0 {
            self.named.push(Named { name, first, lines });
        }
        first
    }

    /// The lines of an object: one for each of `fields`.
    pub fn alloc_object(
        &mut self,
        object: &'static str,
        fields: &[&'static str],
        home_node: u32,
    ) -> LineId {
        let first = self.lines.len() as LineId;
        for field in fields {
            self.alloc_named((object, field), 1, home_node);
        }
        first
    }

    /// The name of a line, if it has one.
    pub fn name_of(&self, line: LineId) -> Option<Name> {
        let next = self.named.partition_point(|named| named.first <= line);
        let named = self.named[..next].last()?;
        (line < named.first + named.lines).then_some(named.name)
    }

    /// Counters of each line with a name that was touched.
    pub fn named_traffic(&self) -> impl Iterator<Item = (Name, LineStats)> {
        let lines = self.named.iter().flat_map(|named| {
            let all = named.first..named.first + named.lines;
            all.map(|line| (named.name, line))
        });
        lines
            .map(|(name, line)| (name, self.line_stats(line)))
            .filter(|(_, stats)| stats.touches() > 0)
    }
}

#[cfg(test)]
mod tests {
    use crate::cache::{Access, Cache};
    use crate::machine_file::Machine;

    #[test]
    fn traffic_goes_by_the_field_that_was_touched() {
        let mut cache = Cache::new(&Machine::builtin("xeon-8cpu-2013").unwrap(), 1);
        let pipe = cache.alloc_object("pipe", &["mutex", "head"], 0);
        let data = cache.alloc_named(("page", "data"), 2, 0);
        assert_eq!(cache.alloc_named(("inode", "times"), 0, 0), data + 2);
        let nameless = cache.alloc_lines(1, 0);
        let names = [pipe, pipe + 1, data + 1, nameless].map(|line| cache.name_of(line));
        let pipe_fields = ["mutex", "head"].map(|field| Some(("pipe", field)));
        let [mutex, head] = pipe_fields;
        assert_eq!(names, [mutex, head, Some(("page", "data")), None]);
        for (line, access) in [
            (pipe + 1, Access::Load),
            (data, Access::Store),
            (data + 1, Access::Rmw),
        ] {
            cache.touch(0, line, 1, access, 0);
        }
        let traffic: Vec<_> = cache
            .named_traffic()
            .map(|(name, s)| (name, [s.reads, s.writes, s.rmws]))
            .collect();
        let expected = [
            (("pipe", "head"), [1, 0, 0]),
            (("page", "data"), [0, 1, 0]),
            (("page", "data"), [0, 0, 1]),
        ];
        assert_eq!(traffic, expected);
    }
}
