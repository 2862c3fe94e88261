//! Where a recording begins: a buffer that overwrites its oldest events keeps as much time as fits,
//! on a busy CPU less than on others. Before its first event nothing is known of that CPU, not even
//! whether it was idle, so what others did then is left out. A late first event is no proof of
//! that, as an idle CPU has no events: only what the recorder says counts. Units: nanoseconds.

use std::collections::BTreeMap;

use crate::recording::{Overwritten, Recording};

/// Buffers have one size: one with less than this part of the events of the fullest was not full.
const FULL: u64 = 4;

/// Leaves out what was before the latest beginning of a buffer.
pub fn begin(recording: &mut Recording) {
    let mut seen: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for event in &recording.events {
        seen.entry(event.cpu).or_insert((event.at_ns, 0)).1 += 1;
    }
    let most = seen.values().map(|(_, events)| *events).max().unwrap_or(0);
    let late = recording.overwritten.iter().filter_map(|(cpu, how)| {
        let (first, events) = seen.get(cpu)?;
        let full = *how == Overwritten::Surely || events * FULL >= most;
        full.then_some((*first, *cpu))
    });
    let Some((from, cpu)) = late.max() else {
        return;
    };
    let before = recording.events.partition_point(|e| e.at_ns < from);
    if before == 0 {
        return;
    }
    let start = recording.span().0;
    recording.events.drain(..before);
    recording.ran.begin(from);
    recording.left_out.notes.push(format!(
        "CPU {cpu} is recorded from {:.1} ms on, as its buffer has overwritten what was before: \
         the replay begins there, without {before} earlier events of other CPUs",
        (from - start) as f64 / 1e6
    ));
}

#[cfg(test)]
mod tests {
    use crate::open;
    use crate::recording::Recording;

    fn read(text: &str) -> Recording {
        open::read(text.as_bytes(), &mut |_| {}).unwrap()
    }

    fn switch(ms: u32, cpu: u32) -> String {
        format!(
            "a-{0} [{cpu:03}] d..2. 5.{ms:03}000: sched_switch: prev_comm=a prev_pid={0} \
             prev_prio=120 prev_state=R ==> next_comm=a next_pid={0} next_prio=120\n",
            7 + cpu
        )
    }

    const STARTED: &str = "##### CPU 0 buffer started ####\n";

    #[test]
    fn what_was_before_a_buffer_begins_is_left_out_and_told() {
        let early: String = (0..4).map(|ms| switch(ms, 1)).collect();
        let late: String = (4..8).map(|ms| switch(ms, 1) + &switch(ms, 0)).collect();
        let r = read(&[&early, STARTED, &late].concat());
        assert_eq!((r.events.len(), r.span().0), (8, 5_004_000_000));
        let told = r.left_out.text();
        assert!(
            told.contains("CPU 0 is recorded from 4.0 ms on")
                && told.contains("without 4 earlier events"),
            "{told}"
        );
        // An idle CPU has no events, too.
        let r = read(&(early + &late));
        assert_eq!(r.events.len(), 12);
    }

    #[test]
    fn a_buffer_that_was_never_full_begins_with_the_others() {
        let early: String = (0..40).map(|ms| switch(ms, 1)).collect();
        let r = read(&[&early, STARTED, &switch(40, 0)].concat());
        assert_eq!(r.events.len(), 41);
    }

    #[test]
    fn a_first_page_after_lost_ones_is_where_its_cpu_begins() {
        let mut r = read(&(0..8).map(|ms| switch(ms, ms / 7)).collect::<String>());
        r.missed(1, 5);
        super::begin(&mut r);
        assert_eq!((r.events.len(), r.left_out.lost), (1, 5));
        let mut r = read(&(0..8).map(|ms| switch(ms, ms / 7)).collect::<String>());
        r.begun.insert(1);
        r.missed(1, 5);
        super::begin(&mut r);
        assert_eq!(r.events.len(), 8);
    }
}
