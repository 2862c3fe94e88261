//! Reading a million events of text: events per second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fairground_trace::export::{self, Format};
use fairground_trace::{Context, Event, Kind, Names, Recording, State, open};

const EVENTS: u32 = 1_000_000;

/// Two threads that take turns on each of 8 CPUs.
fn text() -> Vec<u8> {
    let mut recording = Recording::new("made up");
    let mut names = Names::default();
    for tid in 100..116 {
        names.see(tid, format!("worker/{tid}").as_bytes());
    }
    recording.names = names;
    for n in 0..EVENTS {
        let (cpu, turn) = (n % 8, n / 8);
        let (prev, next) = (100 + cpu * 2 + turn % 2, 100 + cpu * 2 + (turn + 1) % 2);
        let kind = match turn % 3 {
            0 => Kind::Waking {
                tid: next,
                prio: 120,
                cpu,
            },
            1 => Kind::Wakeup {
                tid: next,
                prio: 120,
                cpu,
            },
            _ => Kind::Switch {
                prev,
                prev_prio: 120,
                state: State::Blocked(b'S'),
                next,
                next_prio: 120,
            },
        };
        recording.push(Event {
            at_ns: 1_000_000_000 + u64::from(n) * 731,
            cpu,
            tid: prev,
            context: Context::Unknown,
            kind,
        });
    }
    let mut bytes = Vec::new();
    export::write(&recording, Format::Text, &mut bytes).expect("memory");
    bytes
}

fn read(c: &mut Criterion) {
    let text = text();
    let mut group = c.benchmark_group("read");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(EVENTS.into()));
    group.bench_function("text", |b| {
        b.iter(|| {
            open::read(&text[..], &mut |_| {})
                .expect("a trace")
                .events
                .len()
        });
    });
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
