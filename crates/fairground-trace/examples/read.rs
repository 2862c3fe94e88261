//! Reads a trace and says what is in it: `cargo run --release --example read -- FILE`.
use std::time::Instant;

fn main() {
    for path in std::env::args().skip(1) {
        let start = Instant::now();
        match fairground_trace::open(path.as_ref(), &mut |_| {}) {
            Ok(r) => {
                let s = start.elapsed().as_secs_f64();
                let n = r.events.len();
                let rate = n as f64 / s / 1e6;
                println!(
                    "{path}: {} {n} events {} CPUs {rate:.2} M/s",
                    r.format, r.cpus
                );
                print!("{}", r.left_out.text());
            }
            Err(error) => println!("{path}: {error}"),
        }
    }
}
