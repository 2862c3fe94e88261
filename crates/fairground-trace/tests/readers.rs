//! Files of all kinds that a real kernel's recorders wrote.

use fairground_trace::{Context, Event, Kind, Recording, State, open};

fn data(name: &str) -> Recording {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    open::open(path.as_ref(), &mut |_| {}).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn count(r: &Recording, f: impl Fn(&Kind) -> bool) -> usize {
    r.events.iter().filter(|e| f(&e.kind)).count()
}

#[test]
fn versions_and_compressions_of_trace_dat_say_the_same() {
    let v6 = data("sleeper.v6.dat.xz");
    assert_eq!((v6.events.len(), v6.cpus), (368, 2));
    assert_eq!(v6.left_out.text(), "");
    // `trace-cmd report` shows the first two as
    // 3137.884704: sched_waking: comm=kworker/0:1H pid=58 prio=100 target_cpu=000
    // 3137.884707: sched_wakeup: ...
    let first = v6.events[0];
    let kind = Kind::Waking {
        tid: 58,
        prio: 100,
        cpu: 0,
    };
    assert_eq!(first.kind, kind);
    assert_eq!(
        (first.at_ns / 1000, first.cpu, first.tid),
        (3_137_884_703, 0, 27_120)
    );
    assert_ne!(first.context, Context::Unknown);
    assert_eq!(v6.names.get(58), "kworker/0:1H");
    let blocked = |k: &Kind| {
        matches!(
            k,
            Kind::Switch {
                state: State::Blocked(b'D'),
                ..
            }
        )
    };
    assert!(count(&v6, blocked) > 0);
    for other in ["sleeper.v7-plain.dat.xz", "sleeper.v7-zstd.dat.xz"] {
        let other = data(other);
        assert_eq!(other.left_out.text(), "");
        assert_eq!(other.events, v6.events);
        assert_eq!(other.names.get(27_177), "hog");
    }
}

#[test]
fn perf_data_is_read() {
    let r = data("sleeper.perf.data.xz");
    assert_eq!((r.events.len(), r.cpus, r.format), (324, 2, "perf.data"));
    assert_eq!(r.left_out.text(), "");
    // `perf script` shows the first as
    // :2739 2739 [001] 3136.680307: sched_switch: prev_comm=stranger ... ==> swapper/1
    let Event {
        at_ns,
        cpu,
        tid,
        kind,
        ..
    } = r.events[0];
    assert_eq!((at_ns / 1000, cpu, tid), (3_136_680_307, 1, 2739));
    let sleeps = State::Blocked(b'S');
    assert!(matches!(kind, Kind::Switch { prev: 2739, state, next: 0, .. } if state == sleeps));
    assert!(count(&r, |k| matches!(k, Kind::Fork { .. })) > 0);
}

#[test]
fn what_perf_writes_to_a_pipe_is_read_also_where_it_is_cut() {
    let file = data("sleeper.perf.data.xz");
    let piped = data("pipe/sleeper.perf.data.xz");
    assert_eq!(piped.left_out.text(), "");
    assert!(piped.events == file.events && piped.cpus == file.cpus);
    let packed = std::fs::File::open(format!(
        "{}/tests/data/pipe/sleeper.perf.data.xz",
        env!("CARGO_MANIFEST_DIR")
    ));
    let mut plain = Vec::new();
    let mut unpacked = lzma_rust2::XzReader::new(packed.unwrap(), true);
    std::io::Read::read_to_end(&mut unpacked, &mut plain).unwrap();
    let cut = open::read(&plain[..plain.len() * 9 / 10 + 3], &mut |_| {}).unwrap();
    let text = cut.left_out.text();
    assert!(text.contains("cut short"), "{text}");
    assert!(cut.events.iter().all(|e| file.events.contains(e)));
    assert!(cut.events.len() > file.events.len() / 2);
}

#[test]
fn a_file_that_lacks_its_end_is_told() {
    let path = format!(
        "{}/tests/data/sleeper.perf.data.xz",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut plain = Vec::new();
    let mut unpacked = lzma_rust2::XzReader::new(std::fs::File::open(path).unwrap(), true);
    std::io::Read::read_to_end(&mut unpacked, &mut plain).unwrap();
    let error = open::read(&plain[..plain.len() / 2], &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("cut short"), "{error}");
}

#[test]
fn text_is_read() {
    let r = data("sleeper.script.txt.xz");
    assert_eq!((r.events.len(), r.cpus, r.format), (686, 2, "text"));
    assert_eq!(r.left_out.text(), "");
    assert_eq!(r.names.get(32_326), "sleeper");
}

#[test]
fn what_is_no_trace_is_refused_with_what_was_expected() {
    let read = |bytes: &[u8]| open::read(bytes, &mut |_| {}).unwrap_err().to_string();
    assert!(read(b"").contains("it is empty"));
    let error = read(b"\x7fELF and so on");
    assert!(
        error.contains("expected perf.data, trace.dat, or text"),
        "{error}"
    );
    assert!(error.contains("\\x7fELF"), "{error}");
    let error = read(b"x-7 [0] 1.5: irq_handler_entry: irq=1\n");
    assert!(error.contains("no sched_switch"), "{error}");
    assert!(error.contains("irq_handler_entry"), "{error}");
    let error = read(b"\x17\x08\x44tracing5\0\0\x08\0\x10\0\0");
    assert!(
        error.contains("version 5 of trace.dat is not supported"),
        "{error}"
    );
}
