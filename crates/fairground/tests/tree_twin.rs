//! The tree against `BTreeMap`, the pick against a full scan.

use std::collections::BTreeMap;

use fairground::tree::{Key, Nodes, Tree};
use proptest::prelude::*;

const IDS: u32 = 192;

#[derive(Clone, Debug)]
enum Op {
    Insert {
        id: u32,
        tree: usize,
        order: i64,
        vruntime: i64,
        slice: u64,
    },
    Remove(u32),
    RemoveFirst(usize),
    Pick {
        tree: usize,
        limit: i64,
    },
}

/// `inserts` against 4 removals and 2 picks.
fn op(spread: i64, inserts: u32) -> impl Strategy<Value = Op> {
    let v = -spread..spread;
    prop_oneof![
        inserts => (0..IDS, 0usize..2, v.clone(), v.clone(), 1u64..20).prop_map(
            |(id, tree, order, vruntime, slice)| Op::Insert { id, tree, order, vruntime, slice }
        ),
        2 => (0..IDS).prop_map(Op::Remove),
        2 => (0usize..2).prop_map(Op::RemoveFirst),
        2 => (0usize..2, v).prop_map(|(tree, limit)| Op::Pick { tree, limit }),
    ]
}

/// Phases that grow, shrink and hold, so that trees pass the sizes at which they change form.
fn ops(spread: i64) -> impl Strategy<Value = Vec<Op>> {
    let phase = prop_oneof![Just(24u32), Just(1), Just(4)]
        .prop_flat_map(move |inserts| prop::collection::vec(op(spread, inserts), 1..400));
    prop::collection::vec(phase, 1..8).prop_map(|phases| phases.concat())
}

/// One queue, slow and obvious: sorted by order, then by arrival.
type Plain = BTreeMap<(i64, u64), (u32, Key)>;

struct Pair {
    base: u64,
    nodes: Nodes,
    trees: [Tree; 2],
    plain: [Plain; 2],
    place: BTreeMap<u32, (usize, (i64, u64))>,
    arrivals: u64,
}

impl Pair {
    fn new(base: u64) -> Self {
        let mut nodes = Nodes::new();
        nodes.ensure(IDS - 1);
        Self {
            base,
            nodes,
            trees: [Tree::default(); 2],
            plain: [Plain::new(), Plain::new()],
            place: BTreeMap::new(),
            arrivals: 0,
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Insert {
                id,
                tree,
                order,
                vruntime,
                slice,
            } => {
                self.remove(id);
                let at = |v: i64| self.base.wrapping_add(v as u64);
                let key = Key {
                    order: at(order),
                    vruntime: at(vruntime),
                    slice,
                };
                self.nodes.insert(&mut self.trees[tree], id, key);
                self.plain[tree].insert((order, self.arrivals), (id, key));
                self.place.insert(id, (tree, (order, self.arrivals)));
                self.arrivals += 1;
            }
            Op::Remove(id) => self.remove(id),
            Op::RemoveFirst(tree) => {
                if let Some(id) = self.nodes.first(&self.trees[tree]) {
                    self.remove(id);
                }
            }
            Op::Pick { tree, limit } => self.check_pick(tree, limit),
        }
    }

    fn remove(&mut self, id: u32) {
        assert_eq!(self.nodes.contains(id), self.place.contains_key(&id));
        if let Some((tree, at)) = self.place.remove(&id) {
            self.plain[tree].remove(&at);
            self.nodes.remove(&mut self.trees[tree], id);
        }
    }

    fn offset(&self, v: u64) -> i64 {
        v.wrapping_sub(self.base) as i64
    }

    fn check_pick(&self, tree: usize, limit: i64) {
        let eligible = |v: u64| self.offset(v) <= limit;
        let scan = self.plain[tree]
            .values()
            .find(|(_, key)| eligible(key.vruntime));
        let picked = self
            .nodes
            .pick_earliest_eligible(&self.trees[tree], eligible);
        assert_eq!(picked, scan.map(|&(id, _)| id));
    }

    fn check(&self) {
        for (tree, plain) in self.trees.iter().zip(&self.plain) {
            self.nodes.check(tree).unwrap();
            let sorted: Vec<u32> = plain.values().map(|&(id, _)| id).collect();
            assert!(self.nodes.iter(tree).eq(sorted.iter().copied()));
            assert_eq!(tree.len() as usize, sorted.len());
            assert_eq!(tree.is_empty(), sorted.is_empty());
            assert_eq!(self.nodes.first(tree), sorted.first().copied());
            assert_eq!(self.nodes.last(tree), sorted.last().copied());
            for pair in sorted.windows(2) {
                assert_eq!(self.nodes.next(pair[0]), Some(pair[1]));
                assert_eq!(self.nodes.prev(pair[1]), Some(pair[0]));
            }
            let least = plain.values().map(|(_, k)| self.offset(k.vruntime)).min();
            assert_eq!(self.nodes.min_vruntime(tree).map(|v| self.offset(v)), least);
            let slice = plain.values().map(|(_, k)| k.slice).min();
            assert_eq!(self.nodes.min_slice(tree), slice);
            for (id, key) in plain.values() {
                assert_eq!(self.nodes.key(*id), key);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A small spread makes many equal orders; a base near the end of the ring makes it wrap.
    #[test]
    fn does_what_a_btreemap_does(
        base in prop_oneof![any::<u64>(), Just(u64::MAX - 3), Just(0)],
        ops in prop_oneof![ops(8), ops(1 << 40)],
    ) {
        let mut pair = Pair::new(base);
        for op in &ops {
            pair.apply(op);
            pair.check();
        }
    }
}

/// The sizes go up and down so often that both changes of form happen at every phase.
#[test]
fn breathing_tree() {
    let mut pair = Pair::new(u64::MAX - 50);
    for round in 0..20 {
        for id in 0..IDS {
            let (order, vruntime) = (i64::from(id * 37 % 101), i64::from(id * 53 % 97) + round);
            let slice = u64::from(id * 7 % 13);
            pair.apply(&Op::Insert {
                id,
                tree: 0,
                order,
                vruntime,
                slice,
            });
            pair.check();
            pair.check_pick(0, round * 5);
        }
        for step in 0..IDS - round as u32 % 18 {
            pair.apply(&Op::Remove((step * 71 + round as u32) % IDS));
            pair.check();
            pair.check_pick(0, round * 5);
        }
    }
}

/// Every order of inserting and removing five entities, with two of equal order.
#[test]
fn small_trees_completely() {
    let permutations = permutations(5);
    for insert in &permutations {
        for remove in &permutations {
            let mut pair = Pair::new(0);
            for &id in insert {
                let order = i64::from(id.min(3));
                let vruntime = i64::from(id * 3 % 5);
                pair.apply(&Op::Insert {
                    id,
                    tree: 0,
                    order,
                    vruntime,
                    slice: u64::from(id),
                });
                pair.check();
                (-1..6).for_each(|limit| pair.check_pick(0, limit));
            }
            for &id in remove {
                pair.apply(&Op::Remove(id));
                pair.check();
            }
        }
    }
}

fn permutations(n: u32) -> Vec<Vec<u32>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in permutations(n - 1) {
        for at in 0..=shorter.len() {
            let mut longer = shorter.clone();
            longer.insert(at, n - 1);
            all.push(longer);
        }
    }
    all
}
