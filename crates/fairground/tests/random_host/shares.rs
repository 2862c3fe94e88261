//! Hogs in a tree of groups get shares of their CPUs by weight.
//!
//! ```text
//! root -- group 1 -- group 3        every group and the root has one or two hogs of its own on
//!      -- group 2 -- group 4        each CPU; they stay there
//! ```
//!
//! Where a group's load is the same everywhere, so are its shares. In general what a group weighs
//! on a CPU is its weight in proportion to its load there, and that load is what its own tasks
//! weigh plus what the group below weighs there. The engine goes by loads that it has measured, so
//! the shares differ a little from those.

use fairground::sched;
use fairground::value::{Cpu, CpuMask, TgId};

use crate::kernel::{Kernel, MS};

/// Group above each group.
const ABOVE: [u32; 5] = [0, 0, 0, 1, 2];
/// How long shares are measured, after loads have settled.
const SETTLES_NS: u64 = 2_000 * MS;
const WINDOW_NS: u64 = 60_000 * MS;

struct Hog {
    cpu: u32,
    group: u32,
    nice: i8,
}

/// What is to be expected, in units of a task of nice 0.
struct Tree {
    cpus: u32,
    /// `cpu.weight` of each group.
    weights: Vec<u64>,
    hogs: Vec<Hog>,
}

/// A task of one nice value less gets a quarter more.
fn weight_of(nice: i8) -> f64 {
    1.25_f64.powi(-i32::from(nice))
}

impl Tree {
    /// Of the tasks of a group itself.
    fn own(&self, group: u32, cpu: u32) -> f64 {
        let here = |hog: &&Hog| (hog.group, hog.cpu) == (group, cpu);
        let hogs = self.hogs.iter().filter(here);
        hogs.map(|hog| weight_of(hog.nice)).sum()
    }

    /// Of all that is queued in a group.
    fn inside(&self, group: u32, cpu: u32) -> f64 {
        let below = (1..).zip(&ABOVE[1..]).filter(|(_, above)| **above == group);
        let below: f64 = below.map(|(child, _)| self.weighs(child, cpu)).sum();
        self.own(group, cpu) + below
    }

    /// Of a group's entity on a CPU.
    fn weighs(&self, group: u32, cpu: u32) -> f64 {
        let everywhere: f64 = (0..self.cpus).map(|cpu| self.inside(group, cpu)).sum();
        let weight = self.weights[group as usize] as f64 / 100.0;
        weight * self.inside(group, cpu) / everywhere
    }

    /// The part of the CPU that is a hog's.
    fn share(&self, hog: &Hog) -> f64 {
        let mut share = weight_of(hog.nice) / self.inside(hog.group, hog.cpu);
        let mut group = hog.group;
        while group != 0 {
            let above = ABOVE[group as usize];
            share *= self.weighs(group, hog.cpu) / self.inside(above, hog.cpu);
            group = above;
        }
        share
    }
}

fn hogs(kernel: &mut Kernel, cpus: u32) -> Vec<Hog> {
    let mut hogs = Vec::new();
    for cpu in 0..cpus {
        for group in 0..ABOVE.len() as u32 {
            for _ in 0..1 + kernel.chance.below(2) {
                let nice = kernel.chance.below(10) as i8 - 5;
                hogs.push(Hog { cpu, group, nice });
            }
        }
    }
    hogs
}

/// 1 to 3 CPUs.
fn tree(seed: u64) -> (Kernel, Tree) {
    let cpus = 1 + (seed % 3) as u32;
    let mut kernel = Kernel::of_cores(seed, cpus);
    let mut weights = vec![100];
    for above in &ABOVE[1..] {
        let tg = kernel.sys.add_group(TgId(*above));
        kernel.groups.push(tg);
        let weight = kernel.chance.of(&[20, 50, 100, 200, 700]);
        weights.push(weight);
        let set = kernel.call(0, |cx, rqs| sched::set_cpu_weight(cx, rqs, tg, weight));
        assert_eq!(set, Ok(()));
    }
    let hogs = hogs(&mut kernel, cpus);
    for hog in &hogs {
        let cpu = Cpu(hog.cpu);
        kernel.start(cpu.idx(), TgId(hog.group), CpuMask::of(cpu), hog.nice);
    }
    let tree = Tree {
        cpus,
        weights,
        hogs,
    };
    (kernel, tree)
}

pub fn check(seed: u64) {
    let (mut kernel, tree) = tree(seed);
    kernel.advance(SETTLES_NS);
    let ran = |kernel: &Kernel| -> Vec<u64> {
        let tasks = kernel.tasks.iter();
        tasks.map(|t| kernel.ran_until_now(t.id)).collect()
    };
    let before = ran(&kernel);
    kernel.advance(WINDOW_NS);
    let after = ran(&kernel);
    for (at, hog) in tree.hogs.iter().enumerate() {
        let got = (after[at] - before[at]) as f64 / WINDOW_NS as f64;
        let share = tree.share(hog);
        let near = (got / share - 1.0).abs() <= 0.05 || (got - share).abs() <= 0.004;
        assert!(near, "hog {at}: {got:.4} of {share:.4}, seed {seed}");
    }
}
