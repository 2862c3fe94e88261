//! Replays traces: `cargo run --release --example replay -- FILE...`.
use fairground::policy::{Features, find_profile};
use fairground_sim::machine_file::Machine;
use fairground_trace::derive::Attributes;
use fairground_trace::replay::{Place, Replay};

fn main() {
    for path in std::env::args().skip(1) {
        let recording = fairground_trace::open(path.as_ref(), &mut |_| {}).expect("a trace");
        let mut features = Features::of_profile(find_profile("linux-6.18").expect("known"));
        features.hz = 250;
        let home = Place {
            machine: Machine::from_path_or_id("spr-guest-2cpu").expect("known"),
            features,
            tracer_ns: 130,
        };
        let case = std::path::Path::new(&path).with_file_name("case.json");
        let attributes = match std::fs::read_to_string(case) {
            Ok(text) if std::env::var_os("ALONE").is_none() => {
                let case = fairground_sim::truth::Case::parse(&text).expect("a case");
                fairground_trace::derive::truth::of_case(&case)
            }
            _ => Attributes::default(),
        };
        let replay = Replay::new(&recording, &attributes, &home).expect("a replay");
        let run = replay.run(&home, 1).expect("a run");
        println!(
            "{path} {} -> {}",
            recording.span().1 - recording.span().0,
            run.elapsed_ns
        );
        for (tid, a) in &replay.recorded.threads {
            let Some(b) = run.measured.threads.get(tid) else {
                continue;
            };
            if a.cpu_ns * 500 < replay.recorded.cpu_ns() {
                continue;
            }
            println!(
                "  {tid} {:12} cpu {} {} half {} {} vol {} {} inv {} {} ",
                recording.names.get(*tid),
                a.cpu_ns,
                b.cpu_ns,
                a.first_half_ns,
                b.first_half_ns,
                a.voluntary,
                b.voluntary,
                a.involuntary,
                b.involuntary
            );
        }
        let (a, b) = (&replay.recorded, &run.measured);
        println!(
            "  switches {:?} {:?} lat p50 {:?} {:?} p99 {:?} {:?} busy {:?} {:?} unfinished {}",
            a.switches(),
            b.switches(),
            a.latency(50),
            b.latency(50),
            a.latency(99),
            b.latency(99),
            a.busy_ns,
            b.busy_ns,
            run.unfinished
        );
    }
}
