//! How much of a recording a file of attributes is about.

use super::Replay;
use crate::derive::Attributes;

impl Replay<'_> {
    /// What to know if the attributes say little: a sentence.
    #[must_use]
    pub fn named(&self) -> Option<String> {
        if *self.attributes == Attributes::default() {
            return Some(
                "the attributes say nothing: all threads compete as individuals, on any CPU".into(),
            );
        }
        if self.attributes.threads.is_empty() {
            return None;
        }
        let (mut threads, mut named) = ((0_usize, 0), (0_usize, 0));
        for (tid, thread) in &self.recorded.threads {
            let comm = self.recording.names.get(*tid);
            let known = self.attributes.of(*tid, &comm).is_some()
                || self.attributes.path_of(*tid, &comm).is_some();
            for (of, counts) in [(&mut threads, true), (&mut named, known)] {
                of.0 += usize::from(counts);
                of.1 += u64::from(counts) * thread.cpu_ns;
            }
        }
        let few = named.1 * 2 < threads.1;
        few.then(|| {
            format!(
                "the attributes are about {} of {} threads, with {:.0} % of the CPU time: the \
                 others compete as individuals, on any CPU (were they written by another boot, or \
                 long before?)",
                named.0,
                threads.0,
                100.0 * named.1 as f64 / threads.1 as f64
            )
        })
    }
}
