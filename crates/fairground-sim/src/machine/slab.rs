//! The slab allocator (SLUB): which memory a message's buffers get, and what getting it and giving
//! it back moves between CPUs.
//!
//! A slab is a few pages with objects of one size. Each CPU has a slab of its own, whose free
//! objects it takes and gives back last in, first out, without a locked operation. Any other free
//! goes to the object's slab: a compare-and-swap on the slab's descriptor. A slab that was full
//! until then goes to the freeing CPU's list of partial slabs; when that is long enough, the whole
//! of it goes to the list of its NUMA node, under a lock. A CPU whose own slab is empty takes what
//! was freed to it meanwhile, then a slab of its list, then half a list from the node, then pages.

use std::collections::VecDeque;

use super::Sim;
use crate::cache::{Access, Cache, LineId, Name};
use crate::costs::KernelOp;

/// Slabs that a node keeps although nothing in them is used.
const MIN_PARTIAL: usize = 5;

/// Words of a slab's descriptor: the first free object and the counts, and the list.
const FREE_LIST: u8 = 0b11_0000;
/// Words of a node: its lock and its list.
const NODE_LIST: u8 = 0b1111;

/// What is allocated, as `/sys/kernel/slab` of Linux 6.18 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// `skbuff_head_cache`: a `struct sk_buff`.
    SkbHead,
    /// `skbuff_fclone_cache`: two of them, the second for a clone, and a count.
    SkbFclone,
    /// `skbuff_small_head`: data of up to 256 bytes and the `skb_shared_info`.
    SmallHead,
    /// `kmalloc-512` and larger ones.
    Bytes512,
    Bytes1024,
    Bytes2048,
    Bytes4096,
}

/// Bytes of an object, objects of a slab, line of the object with the pointer to the next free one,
/// slabs in the list of a CPU.
const SHAPES: [(u32, u32, u32, usize); 7] = [
    (256, 16, 2, 7),
    (512, 16, 4, 7),
    (576, 14, 4, 8),
    (512, 16, 4, 7),
    (1024, 16, 8, 3),
    (2048, 16, 16, 3),
    (4096, 8, 32, 2),
];

impl Kind {
    /// Bytes of an object.
    pub const fn bytes(self) -> u32 {
        SHAPES[self as usize].0
    }

    /// What its lines are.
    const fn name(self) -> Name {
        match self {
            Self::SkbHead | Self::SkbFclone => ("sk_buff", "next,prev,len,head,users"),
            _ => ("[message]", "data,skb_shared_info"),
        }
    }

    /// For the first `bytes` of a packet, headers included, with their `skb_shared_info`.
    pub const fn for_packet(bytes: u32) -> Self {
        match bytes {
            0..=256 => Self::SmallHead,
            more => Self::of_bytes(more + 320),
        }
    }

    /// For `bytes` of kernel memory, at most a page.
    pub const fn of_bytes(bytes: u32) -> Self {
        match bytes {
            0..=512 => Self::Bytes512,
            513..=1024 => Self::Bytes1024,
            1025..=2048 => Self::Bytes2048,
            _ => Self::Bytes4096,
        }
    }
}

/// One allocated object.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    pub kind: Kind,
    slab: u32,
    index: u32,
    /// Its first line.
    pub line: LineId,
    /// Line and word of its entry in the slab's table of memory cgroups, if it is charged to one.
    charge: Option<(LineId, u8)>,
}

/// On which list a slab is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// On none: everything in it is allocated.
    Full,
    /// It belongs to a CPU, or is on its list.
    Cpu,
    Node,
}

#[derive(Debug)]
struct Slab {
    first: LineId,
    descriptor: LineId,
    charges: LineId,
    node: u32,
    at: At,
    /// Free objects that no CPU has taken for itself.
    free: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct PerCpu {
    slab: Option<u32>,
    free: Vec<u32>,
    partial: Vec<u32>,
}

#[derive(Debug)]
struct Node {
    line: LineId,
    partial: VecDeque<u32>,
    /// Slabs whose pages went back to the page allocator.
    pages: Vec<u32>,
}

/// Objects of one kind.
#[derive(Debug)]
struct Pool {
    kind: Kind,
    slabs: Vec<Slab>,
    cpus: Vec<PerCpu>,
    nodes: Vec<Node>,
}

/// All pools of the machine, each made when it is first used.
#[derive(Debug, Default)]
pub struct Slabs([Option<Box<Pool>>; SHAPES.len()]);

impl Pool {
    fn new(kind: Kind, cpus: usize, nodes: u32, cache: &mut Cache) -> Self {
        let node = |n| Node {
            line: cache.alloc_named(("kmem_cache_node", "list_lock,partial"), 1, n),
            partial: VecDeque::new(),
            pages: Vec::new(),
        };
        Self {
            kind,
            slabs: Vec::new(),
            cpus: vec![PerCpu::default(); cpus],
            nodes: (0..nodes).map(node).collect(),
        }
    }

    fn link(&self, slab: u32, index: u32) -> LineId {
        let (bytes, _, link, _) = SHAPES[self.kind as usize];
        self.slabs[slab as usize].first + index * bytes / 64 + link
    }

    /// Pages from the page allocator, all objects free.
    fn new_slab(&mut self, node: u32, cache: &mut Cache) -> u32 {
        let (bytes, objects, ..) = SHAPES[self.kind as usize];
        let slab = self.nodes[node as usize].pages.pop().unwrap_or_else(|| {
            self.slabs.push(Slab {
                first: cache.alloc_named(self.kind.name(), bytes * objects / 64, node),
                descriptor: cache.alloc_named(("slab", "freelist,counters"), 1, node),
                charges: cache.alloc_named(("slab", "obj_exts"), objects.div_ceil(8), node),
                node,
                at: At::Cpu,
                free: Vec::new(),
            });
            self.slabs.len() as u32 - 1
        });
        let s = &mut self.slabs[slab as usize];
        s.at = At::Cpu;
        s.free = (0..objects).rev().collect();
        slab
    }

    fn object(&self, slab: u32, index: u32, charged: bool) -> Object {
        let s = &self.slabs[slab as usize];
        Object {
            kind: self.kind,
            slab,
            index,
            line: s.first + index * self.kind.bytes() / 64,
            charge: charged.then_some((s.charges + index / 8, 1 << (index % 8))),
        }
    }
}

impl Sim<'_> {
    fn pool(&mut self, kind: Kind) -> &mut Pool {
        let nodes = self.distance.nr_nodes() as u32;
        let cpus = self.cpus.len();
        let pool = &mut self.slabs.0[kind as usize];
        pool.get_or_insert_with(|| Box::new(Pool::new(kind, cpus, nodes, &mut self.host.cache)))
    }

    /// Takes an object in the course of `op`; `charged` to the cgroup's memory or not.
    pub(super) fn alloc_object(&mut self, op: KernelOp, kind: Kind, charged: bool) -> Object {
        let cpu = self.host.cpu as usize;
        if self.pool(kind).cpus[cpu].free.is_empty() {
            self.refill(op, kind);
        }
        let pool = self.pool(kind);
        let own = &mut pool.cpus[cpu];
        debug_assert!(own.slab.is_some() && !own.free.is_empty(), "refilled");
        let (slab, index) = (own.slab.unwrap_or(0), own.free.pop().unwrap_or(0));
        let next = own.free.last().copied();
        let object = pool.object(slab, index, charged);
        if let Some(next) = next {
            // The next object's pointer is fetched ahead of time (`prefetch_freepointer`).
            let line = pool.link(slab, next);
            let (cpu, at) = (self.host.cpu, self.host.at);
            self.host.touch_aside(op, cpu, (line, 0), Access::Store, at);
        }
        if let Some((line, word)) = object.charge {
            self.touch(op, line, word, Access::Store);
        }
        object
    }

    /// The executing CPU has no free object of its own any more.
    fn refill(&mut self, op: KernelOp, kind: Kind) {
        let cpu = self.host.cpu as usize;
        let pool = self.pool(kind);
        let taken = match pool.cpus[cpu].slab {
            // What others have freed to it since.
            Some(slab) if !pool.slabs[slab as usize].free.is_empty() => Some(slab),
            Some(slab) => {
                pool.slabs[slab as usize].at = At::Full;
                let line = pool.slabs[slab as usize].descriptor;
                self.touch(op, line, FREE_LIST, Access::Rmw);
                None
            }
            None => None,
        };
        let taken = taken.or_else(|| self.pool(kind).cpus[cpu].partial.pop());
        let slab = match taken.or_else(|| self.partial_of_node(op, kind)) {
            Some(slab) => slab,
            None => self.fresh_slab(op, kind),
        };
        let pool = self.pool(kind);
        let free = std::mem::take(&mut pool.slabs[slab as usize].free);
        pool.cpus[cpu].slab = Some(slab);
        pool.cpus[cpu].free = free;
        let line = pool.slabs[slab as usize].descriptor;
        self.touch(op, line, FREE_LIST, Access::Rmw);
    }

    /// A slab of the node's list; more of them go to the CPU's list, up to half its length.
    fn partial_of_node(&mut self, op: KernelOp, kind: Kind) -> Option<u32> {
        let cpu = self.host.cpu as usize;
        let node = self.distance.cpus[cpu].numa_node as usize;
        let n = &self.pool(kind).nodes[node];
        let (line, empty) = (n.line, n.partial.is_empty());
        if empty {
            self.touch(op, line, NODE_LIST, Access::Load);
            return None;
        }
        self.touch(op, line, NODE_LIST, Access::Rmw);
        let (.., listed) = SHAPES[kind as usize];
        let more = listed / 2 + 1;
        let pool = self.pool(kind);
        let first = pool.nodes[node].partial.pop_front()?;
        pool.slabs[first as usize].at = At::Cpu;
        for _ in 0..more {
            let pool = self.pool(kind);
            let Some(slab) = pool.nodes[node].partial.pop_front() else {
                break;
            };
            pool.slabs[slab as usize].at = At::Cpu;
            pool.cpus[cpu].partial.push(slab);
            let line = pool.slabs[slab as usize].descriptor;
            self.touch(op, line, FREE_LIST, Access::Rmw);
        }
        Some(first)
    }

    /// New pages, whose objects are put on a list.
    fn fresh_slab(&mut self, op: KernelOp, kind: Kind) -> u32 {
        let node = self.distance.cpus[self.host.cpu as usize].numa_node;
        self.pool(kind);
        let cache = &mut self.host.cache;
        let Some(pool) = &mut self.slabs.0[kind as usize] else {
            return 0;
        };
        let slab = pool.new_slab(node, cache);
        let (_, objects, ..) = SHAPES[kind as usize];
        let links: Vec<LineId> = (0..objects).map(|i| pool.link(slab, i)).collect();
        self.host.copy_lines(op, links.into_iter(), Access::Store);
        slab
    }

    /// Gives an object back in the course of `op`.
    pub(super) fn free_object(&mut self, op: KernelOp, object: Object) {
        let (cpu, kind, slab) = (self.host.cpu as usize, object.kind, object.slab);
        if let Some((line, word)) = object.charge {
            self.touch(op, line, word, Access::Load);
            self.touch(op, line, word, Access::Store);
        }
        let pool = self.pool(kind);
        let link = pool.link(slab, object.index);
        if pool.cpus[cpu].slab == Some(slab) {
            pool.cpus[cpu].free.push(object.index);
            return self.touch(op, link, 1, Access::Store);
        }
        let descriptor = pool.slabs[slab as usize].descriptor;
        self.host
            .copy_lines(op, std::iter::once(link), Access::Store);
        self.touch(op, descriptor, FREE_LIST, Access::Rmw);
        let pool = self.pool(kind);
        let s = &mut pool.slabs[slab as usize];
        s.free.push(object.index);
        let (_, objects, _, listed) = SHAPES[kind as usize];
        match s.at {
            At::Full => {
                s.at = At::Cpu;
                if pool.cpus[cpu].partial.len() >= listed {
                    self.give_to_nodes(op, kind);
                }
                self.pool(kind).cpus[cpu].partial.push(slab);
            }
            At::Node if s.free.len() as u32 == objects => {
                let n = &mut pool.nodes[s.node as usize];
                if n.partial.len() >= MIN_PARTIAL {
                    n.partial.retain(|p| *p != slab);
                    n.pages.push(slab);
                    let line = n.line;
                    self.touch(op, line, NODE_LIST, Access::Rmw);
                }
            }
            At::Node | At::Cpu => {}
        }
    }

    /// The CPU's list is full: all of it goes to the nodes' lists.
    fn give_to_nodes(&mut self, op: KernelOp, kind: Kind) {
        let cpu = self.host.cpu as usize;
        let (_, objects, ..) = SHAPES[kind as usize];
        let mut locked = None;
        for slab in std::mem::take(&mut self.pool(kind).cpus[cpu].partial) {
            let pool = self.pool(kind);
            let s = &mut pool.slabs[slab as usize];
            let n = &mut pool.nodes[s.node as usize];
            let (node, line, descriptor) = (s.node, n.line, s.descriptor);
            if s.free.len() as u32 == objects && n.partial.len() >= MIN_PARTIAL {
                n.pages.push(slab);
            } else {
                s.at = At::Node;
                n.partial.push_back(slab);
            }
            if locked != Some(node) {
                locked = Some(node);
                self.touch(op, line, NODE_LIST, Access::Rmw);
            }
            self.touch(op, descriptor, FREE_LIST, Access::Rmw);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing::on_guest;

    const OP: KernelOp = KernelOp::SocketSend;

    fn alloc(sim: &mut Sim<'_>, n: usize) -> Vec<Object> {
        let one = |_| sim.alloc_object(OP, Kind::SkbHead, true);
        (0..n).map(one).collect()
    }

    fn go_to(sim: &mut Sim<'_>, cpu: u32) {
        let at = sim.host.at;
        sim.host.begin(cpu, at);
    }

    /// Free objects on all lists.
    fn free(sim: &mut Sim<'_>) -> usize {
        let pool = sim.pool(Kind::SkbHead);
        let slabs = pool.slabs.iter().map(|s| s.free.len()).sum::<usize>();
        slabs + pool.cpus.iter().map(|c| c.free.len()).sum::<usize>()
    }

    #[test]
    fn what_was_freed_last_is_taken_first() {
        on_guest(|sim| {
            let objects = alloc(sim, 3);
            for object in &objects {
                sim.free_object(OP, *object);
            }
            let again = alloc(sim, 3);
            let lines = |objects: &[Object]| objects.iter().map(|o| o.line).collect::<Vec<_>>();
            let mut expected = lines(&objects);
            expected.reverse();
            assert_eq!(lines(&again), expected);
        });
    }

    #[test]
    fn memory_that_another_cpu_frees_comes_back_by_the_lists() {
        on_guest(|sim| {
            for _ in 0..50 {
                go_to(sim, 0);
                let objects = alloc(sim, 300);
                let mut lines: Vec<LineId> = objects.iter().map(|o| o.line).collect();
                lines.sort_unstable();
                lines.dedup();
                assert_eq!(lines.len(), 300, "nobody else has them");
                go_to(sim, 1);
                for object in objects {
                    sim.free_object(OP, object);
                }
            }
            let slabs = sim.pool(Kind::SkbHead).slabs.len();
            // 300 objects are 19 slabs; a list of CPU 1 keeps 7 or 8 back.
            assert!((19..40).contains(&slabs), "{slabs} slabs");
            assert_eq!(free(sim), slabs * 16, "none is lost");
        });
    }

    #[test]
    fn a_free_elsewhere_takes_the_slab_and_one_at_home_takes_nothing() {
        on_guest(|sim| {
            let objects = alloc(sim, 16);
            let before = sim.host.at;
            sim.free_object(OP, objects[0]);
            let home = sim.host.at - before;
            go_to(sim, 1);
            let before = sim.host.at;
            sim.free_object(OP, objects[1]);
            let elsewhere = sim.host.at - before;
            // The next object's pointer, the table of charges and the slab's counts.
            assert!(
                home == 0 && elsewhere > 100_000,
                "{home} and {elsewhere} ps"
            );
        });
    }
}
