//! Recordings of one command (`perf record -- COMMAND`, without `-a`): none is at hand, so one of
//! all CPUs is marked as one, as `perf_event_open(2)` describes it.

use std::io::Read as _;

use fairground_trace::open;

/// Bit 12 of the attribute's flags, and where these are in a `perf_event_attr`.
const ENABLE_ON_EXEC: u64 = 1 << 12;
const FLAGS: usize = 40;
/// The feature that describes events.
const EVENT_DESC: u64 = 12;

fn number(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(b[at..at + 8].try_into().unwrap())
}

fn small(b: &[u8], at: usize) -> usize {
    u32::from_le_bytes(b[at..at + 4].try_into().unwrap()) as usize
}

fn recorded() -> Vec<u8> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/sleeper.perf.data.xz"
    );
    let mut data = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    lzma_rust2::XzReader::new(file, true)
        .read_to_end(&mut data)
        .unwrap();
    data
}

/// Marks the attributes of all events, in both places that have them.
fn of_command(mut file: Vec<u8>) -> Vec<u8> {
    let mark = |file: &mut Vec<u8>, attr: usize| {
        let flags = number(file, attr + FLAGS) | ENABLE_ON_EXEC;
        file[attr + FLAGS..attr + FLAGS + 8].copy_from_slice(&flags.to_le_bytes());
    };
    let (first, bytes) = (number(&file, 24) as usize, number(&file, 32) as usize);
    for attr in (first..first + bytes).step_by(number(&file, 16) as usize) {
        mark(&mut file, attr);
    }
    let table = (number(&file, 40) + number(&file, 48)) as usize;
    let place = (number(&file, 72) & ((1 << EVENT_DESC) - 1)).count_ones() as usize;
    let mut at = number(&file, table + 16 * place) as usize;
    let (events, attr_size) = (small(&file, at), small(&file, at + 4));
    at += 8;
    for _ in 0..events {
        mark(&mut file, at);
        let (ids, name) = (
            small(&file, at + attr_size),
            small(&file, at + attr_size + 4),
        );
        at += attr_size + 8 + name + 8 * ids;
    }
    file
}

#[test]
fn a_recording_of_one_command_is_known_by_its_header() {
    let read = |data: &[u8]| open::read(data, &mut |_| {}).unwrap().left_out.text();
    let words = "only some processes were recorded";
    assert!(!read(&recorded()).contains(words));
    let told = read(&of_command(recorded()));
    assert!(
        told.contains(words) && told.contains("perf record -a"),
        "{told}"
    );
}
