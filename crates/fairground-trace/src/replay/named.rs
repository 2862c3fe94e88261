//! How much of a recording a file of attributes is about.

use std::collections::BTreeSet;

use fairground_sim::glob::fits;

use super::Replay;
use crate::derive::attributes::{PolicyWords, ThreadWords};
use crate::derive::inherited::said;
use crate::derive::workload::is_real_time;
use crate::derive::{Attributes, Log};
use crate::recording::number_of;

/// Entries that a note names.
const SHOWN: usize = 4;

impl Replay<'_> {
    /// What to know if the attributes say little, or what has no effect: sentences.
    #[must_use]
    pub fn named(&self) -> Vec<String> {
        let all = [
            self.few(),
            self.nobody(),
            self.not_real_time(),
            self.elsewhere(),
            self.never_there(),
        ];
        all.into_iter().flatten().collect()
    }

    /// That entries name no thread.
    fn nobody(&self) -> Option<String> {
        let threads = self.logs.threads.iter();
        let comms: BTreeSet<String> = threads.map(|t| self.recording.names.get(t.tid)).collect();
        let is_nobody = |words: &&ThreadWords| {
            words.tids.is_empty() && !comms.iter().any(|comm| fits(&words.comm, comm))
        };
        let names = listed(self.attributes.threads.iter().filter(is_nobody))?;
        Some(format!(
            "no thread of the recording fits {names} of the attributes, which says nothing then: \
             only `*` (any text) and `?` (any character) are patterns"
        ))
    }

    /// That a thread is recorded as a fair one, whatever is said of its policy.
    fn not_real_time(&self) -> Option<String> {
        let fair = self.logs.threads.iter().filter(|t| !is_real_time(t.prio));
        let said = fair.filter_map(|t| {
            let comm = self.recording.names.get(t.tid);
            self.attributes.of(t.tid, &comm)
        });
        let asked =
            |words: &&ThreadWords| matches!(words.policy, PolicyWords::Fifo | PolicyWords::Rr);
        let asked: Vec<&ThreadWords> = said.filter(asked).collect();
        let threads = self.attributes.threads.iter();
        let entries = threads.filter(|words| asked.iter().any(|a| std::ptr::eq(*a, *words)));
        let names = listed(entries)?;
        let threads = match asked.len() {
            1 => "a thread that was".to_string(),
            n => format!("{n} threads that were"),
        };
        Some(format!(
            "`policy` of {names} has no effect on {threads} recorded with the priority of a fair \
             one: which threads are real-time ones is recorded"
        ))
    }

    /// That threads are seen on other CPUs than the attributes say, and are let go there.
    fn elsewhere(&self) -> Option<String> {
        let (names, threads) = self.contradicted(|log, cpus, _| log.leaves(cpus))?;
        let were = match threads {
            1 => "a thread that was recorded on another CPU later: from there on it".to_string(),
            n => format!("{n} threads that were recorded on other CPUs later: from there on each"),
        };
        Some(format!(
            "`cpus` of {names}, or of whom it creates, does not hold for {were} may run anywhere"
        ))
    }

    /// That threads are never seen where the attributes bind them, or not at first.
    fn never_there(&self) -> Option<String> {
        let (names, threads) =
            self.contradicted(|log, cpus, own| own && !log.may_begin_on(cpus))?;
        let were = number_of(threads, "thread was", "threads were");
        Some(format!(
            "`cpus` of {names} is not where {were} recorded: the replay keeps to it all the same"
        ))
    }

    /// Entries whose CPUs the recording contradicts, and for how many threads: by what each did,
    /// the CPUs, and whether the entry is its own.
    fn contradicted(&self, is: impl Fn(&Log, &[u32], bool) -> bool) -> Option<(String, u64)> {
        // A simulated run says when a thread sets its own CPUs.
        if self.attributes.run.is_some() {
            return None;
        }
        let said = said(self.attributes, &self.logs, &self.recording.names);
        let wrong = self.logs.logs.iter().zip(&said).filter_map(|(log, said)| {
            let words = said.words?;
            let cpus = words.cpus.as_ref().filter(|cpus| !cpus.is_empty())?;
            is(log, cpus, !said.inherited).then_some(words)
        });
        let wrong: Vec<&ThreadWords> = wrong.collect();
        let entries = self.attributes.threads.iter();
        let entries = entries.filter(|words| wrong.iter().any(|w| std::ptr::eq(*w, *words)));
        Some((listed(entries)?, wrong.len() as u64))
    }

    fn few(&self) -> Option<String> {
        if *self.attributes == Attributes::default() {
            return Some(
                "the attributes say nothing: all threads compete as individuals, on any CPU".into(),
            );
        }
        if self.attributes.threads.is_empty() {
            return None;
        }
        let said = said(self.attributes, &self.logs, &self.recording.names);
        let known = self.logs.threads.iter().zip(&said);
        let known: BTreeSet<u32> = known
            .filter(|(_, said)| said.is_known())
            .map(|(about, _)| about.tid)
            .collect();
        let (mut threads, mut named) = ((0_usize, 0), (0_usize, 0));
        for (tid, thread) in &self.recorded.threads {
            for (of, counts) in [(&mut threads, true), (&mut named, known.contains(tid))] {
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

/// Entries by their names; `None` of none.
fn listed<'a>(entries: impl Iterator<Item = &'a ThreadWords>) -> Option<String> {
    let names: Vec<String> = entries.map(ThreadWords::who).collect();
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>();
    (!names.is_empty()).then(|| shown.join(", ") + &more)
}
