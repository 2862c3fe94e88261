//! The groups of a domain, in ring order.
//!
//! A group is the domain that one of the CPUs has at the level below. Below NUMA these are
//! disjoint and all CPUs of the domain share them. Between NUMA nodes they overlap wherever a
//! node is near to two others that are far from each other; then each CPU sees its own ring, and
//! only CPUs that have exactly this group below them balance for it.

use alloc::vec::Vec;

use super::SchedGroup;
use super::levels::Raw;
use crate::value::{Cpu, CpuMask, GroupId};

/// Makes rings; equal groups of a level are one.
pub(super) struct Rings<'a> {
    raw: &'a [Vec<Raw>],
    smt_of: Vec<CpuMask>,
    pub(super) groups: Vec<SchedGroup>,
    /// By level and lowest CPU, groups made so far.
    known: Vec<Vec<GroupId>>,
}

impl<'a> Rings<'a> {
    pub(super) fn new(raw: &'a [Vec<Raw>], smt_of: Vec<CpuMask>) -> Self {
        let levels = raw.iter().map(Vec::len).max().unwrap_or(0);
        Self {
            raw,
            smt_of,
            groups: Vec::new(),
            known: alloc::vec![Vec::new(); levels * raw.len()],
        }
    }

    /// The ring of `cpu` at `level`, its own group first.
    pub(super) fn ring(&mut self, cpu: Cpu, level: usize) -> Vec<GroupId> {
        let sd = &self.raw[cpu.idx()][level];
        let overlap = sd.kind.overlaps();
        let mut covered = CpuMask::empty();
        let mut ring = Vec::new();
        for i in sd.span.iter_wrap(cpu) {
            if covered.has(i) {
                continue;
            }
            let Some((from, span, prefer)) = self.member(&sd.span, i, level) else {
                continue;
            };
            covered = covered.or(&span);
            let balance = if overlap {
                self.balance_mask(&span, from)
            } else {
                span
            };
            let smt = !overlap && span.weight() > 1 && self.smt_of[i.idx()] == span;
            ring.push(self.intern(level, span, balance, [smt, prefer]));
        }
        ring
    }

    /// The group that holds `i` in a domain over `span`: the level it is the child of, its CPUs,
    /// and whether it prefers siblings (one CPU has no domain to prefer anything). `None` where
    /// the chain of `i` ends below, because it spans the machine already.
    fn member(&self, span: &CpuMask, i: Cpu, level: usize) -> Option<(usize, CpuMask, bool)> {
        let chain = &self.raw[i.idx()];
        let mut at = level;
        if at >= chain.len() {
            return None;
        }
        if at > 0 && !chain[at - 1].span.is_subset(span) {
            // Far away nodes can reach beyond the domain one level down: go below that, and below
            // levels that will be left out.
            while at > 0 && !chain[at - 1].span.is_subset(span) {
                at -= 1;
            }
            while at > 0 && chain[at - 1].span == chain[at].span {
                at -= 1;
            }
        }
        Some(match at.checked_sub(1) {
            Some(child) => {
                let prefer = chain[child].flags.prefer_sibling;
                let span = chain[child].span;
                (at, span, prefer && span.weight() > 1)
            }
            None if level > 0 => (at, chain[at].span, false),
            None => (at, CpuMask::of(i), false),
        })
    }

    /// The CPUs of a group that have exactly it below level `at`.
    fn balance_mask(&self, span: &CpuMask, at: usize) -> CpuMask {
        let has_it = |cpu: &Cpu| {
            let chain = &self.raw[cpu.idx()];
            let child = at.checked_sub(1).filter(|_| at < chain.len());
            child.is_some_and(|child| chain[child].span == *span)
        };
        let mask: CpuMask = span.iter().filter(has_it).collect();
        if mask.is_empty() { *span } else { mask }
    }

    /// The group, made if it is new; `is` = one core's threads, prefers siblings.
    fn intern(&mut self, level: usize, span: CpuMask, mask: CpuMask, is: [bool; 2]) -> GroupId {
        let first = span.first().unwrap_or_default();
        let slot = level * self.raw.len() + first.idx();
        let same = |id: &&GroupId| {
            let group = &self.groups[id.idx()];
            group.span == span && group.balance_mask == mask
        };
        if let Some(id) = self.known[slot].iter().find(same) {
            return *id;
        }
        let id = GroupId(self.groups.len() as u32);
        self.groups
            .push(SchedGroup::new(span, mask, &self.smt_of, is));
        self.known[slot].push(id);
        id
    }
}
