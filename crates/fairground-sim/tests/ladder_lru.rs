//! Step 8 of the validation ladder: miss counts against a real LRU.
//!
//! The model keeps no cache content, so it is compared with a real set-associative LRU cache of
//! the same sets and ways whose lines are placed by a hash, which is what it stands for.
//! Tolerance: 3 % of all touches. Reasons: stack distances are expectations from a histogram of
//! reuse times with eight buckets to a power of two; the survival table has steps of 1/32.

use fairground_sim::cache::{Access, Cache, MissClass, NS};
use fairground_sim::machine_file::Machine;

struct Lru {
    sets: Vec<Vec<u32>>,
    ways: usize,
    misses: u64,
}

impl Lru {
    fn touch(&mut self, line: u32) {
        // A hash without structure (SplitMix finalizer): a multiplicative one would spread a
        // cycle evenly over the sets, better than pages at random places do.
        let mut hash = (u64::from(line) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32;
        let n = self.sets.len() as u64;
        let set = &mut self.sets[(hash % n) as usize];
        if let Some(at) = set.iter().position(|l| *l == line) {
            set.remove(at);
        } else {
            self.misses += 1;
            if set.len() == self.ways {
                set.remove(0);
            }
        }
        set.push(line);
    }
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    fn unit(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 31) as f64
    }
}

/// Share of touches that leave the private caches: model and real LRU, after a warm-up.
fn shares(lines: u32, touches: u32, mut walk: impl FnMut(u32) -> u32) -> (f64, f64) {
    let m = Machine::builtin("xeon-8cpu-2013").unwrap();
    let l2 = m.cache(2).unwrap();
    let ways = l2.ways as usize;
    let mut lru = Lru {
        sets: vec![Vec::new(); l2.lines() as usize / ways],
        ways,
        misses: 0,
    };
    let mut cache = Cache::new(&m, 7);
    let first = cache.alloc_lines(lines, 0);
    let mut counted = 0;
    for i in 0..touches * 2 {
        if i == touches {
            lru.misses = 0;
            counted = cache.touches(MissClass::Capacity) + cache.touches(MissClass::Cold);
        }
        let line = walk(i);
        lru.touch(line);
        cache.touch(0, first + line, 1, Access::Load, u64::from(i) * 100 * NS);
    }
    let model = cache.touches(MissClass::Capacity) + cache.touches(MissClass::Cold) - counted;
    (
        model as f64 / f64::from(touches),
        lru.misses as f64 / f64::from(touches),
    )
}

fn check(name: &str, (model, real): (f64, f64), tolerance: f64) {
    println!(
        "{name}: model {:.1} %, LRU {:.1} %",
        model * 100.0,
        real * 100.0
    );
    assert!(
        (model - real).abs() < tolerance,
        "{name}: {model} vs {real}"
    );
}

// The L2 of that machine has 4096 lines.

#[test]
fn random_walks() {
    for lines in [1000, 3000, 4096, 6000, 12_000, 40_000] {
        let mut rng = Rng(lines);
        let s = shares(lines as u32, 200_000, |_| (rng.next() % lines) as u32);
        check(&format!("random over {lines}"), s, 0.03);
    }
}

#[test]
fn cyclic_walks() {
    for lines in [1000, 3000, 4096, 5000, 6000, 12_000] {
        let s = shares(lines, 200_000, |i| i % lines);
        check(&format!("cycle over {lines}"), s, 0.03);
    }
}

#[test]
fn zipf_walks() {
    for (lines, s) in [
        (20_000u32, 0.8),
        (20_000, 1.0),
        (20_000, 1.2),
        (100_000, 0.9),
    ] {
        let mut sums = Vec::new();
        let mut sum = 0.0;
        for k in 1..=lines {
            sum += f64::from(k).powf(-s);
            sums.push(sum);
        }
        let mut rng = Rng(u64::from(lines));
        let got = shares(lines, 300_000, |_| {
            let u = rng.unit() * sum;
            sums.partition_point(|c| *c < u).min(sums.len() - 1) as u32
        });
        check(&format!("zipf {s} over {lines}"), got, 0.03);
    }
}

/// Running tasks age the lines of an idle group between its visits.
#[test]
fn footprint_ages_lines() {
    let m = Machine::builtin("spr-8480-2s").unwrap();
    let visit = |bytes: u64| {
        let mut cache = Cache::new(&m, 3);
        let first = cache.alloc_lines(1000, 0);
        for l in 0..1000 {
            cache.touch(0, first + l, 1, Access::Load, 0);
        }
        cache.advance_footprint(0, bytes);
        for l in 0..1000 {
            cache.touch(0, first + l, 1, Access::Load, NS);
        }
        (
            cache.touches(MissClass::Capacity),
            cache.domain_stats(0).llc_load_misses,
        )
    };
    assert_eq!(visit(0), (0, 1000));
    let (l2, l3) = visit(8 << 20);
    assert!(
        l2 > 990 && l3 == 1000,
        "8 MiB: out of the 2 MiB L2, still in the L3: {l2} {l3}"
    );
    let (l2, l3) = visit(400 << 20);
    assert!(
        l2 > 990 && l3 > 1990,
        "400 MiB: out of the L3 too: {l2} {l3}"
    );
}
