//! Host time per touch. `cargo bench -p fairground-sim --bench touch`; one iteration is 1000
//! touches, so "ns/iter" / 1000 and the printed throughput are per touch.

use criterion::{Criterion, Throughput};
use fairground_sim::cache::{Access, Cache, NS, Ps};
use fairground_sim::machine_file::Machine;

const BATCH: u64 = 1000;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as u32
    }
}

/// A mix of three loads and one update, at a pace of 20 ns machine-wide.
fn access(r: u32) -> Access {
    if r & 3 == 0 {
        Access::Rmw
    } else {
        Access::Load
    }
}

fn bench(c: &mut Criterion, name: &str, lines: u32, local: bool) {
    let machine = Machine::builtin("spr-8480-2s").expect("built in");
    let mut cache = Cache::new(&machine, 1);
    let first = cache.alloc_lines(lines, 0);
    let (mut rng, mut now): (Rng, Ps) = (Rng(1), 0);
    let mut batch = || {
        let mut sum = 0;
        for _ in 0..BATCH {
            let r = rng.next();
            let cpu = (r >> 8) % 112;
            let line = match local {
                true => cpu * (lines / 112) + (r >> 16) % (lines / 112),
                false => (r >> 4).wrapping_mul(0x9e37_79b1) % lines,
            };
            now += 20 * NS;
            sum += cache
                .touch(cpu, first + line, 1 << (r & 7), access(r), now)
                .done_at;
        }
        sum
    };
    (0..2000).for_each(|_| {
        batch();
    });
    let mut group = c.benchmark_group("touch");
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function(name, |b| b.iter(&mut batch));
    group.finish();
}

fn main() {
    let mut c = Criterion::default().configure_from_args();
    bench(&mut c, "core-local, 112 cores x 32 lines", 112 * 32, true);
    bench(&mut c, "64 lines contended by 112 cores", 64, false);
    bench(&mut c, "65536 lines shared by 112 cores", 65_536, false);
    c.final_summary();
}
