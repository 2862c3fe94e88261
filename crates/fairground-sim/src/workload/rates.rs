//! The words of the tools whose results are rates over a fixed time.
use super::marks::Marks;
use hdrhistogram::Histogram;

/// Sizes of buffers that netperf finds at new sockets: `net.core.rmem_default`, and the defaults of
/// `net.ipv4.tcp_wmem` and `net.ipv4.tcp_rmem`.
const UDP_BUFFER: u32 = 212_992;
const TCP_SEND_BUFFER: u32 = 16_384;
const TCP_RECV_BUFFER: u32 = 131_072;

/// Results as netperf prints them for one client, here for the mean of all `pairs`.
pub(super) fn netperf(test: &str, sizes: (u32, u32), pairs: u32, marks: &Marks) -> String {
    let elapsed_s = marks.elapsed_ns as f64 / 1e9;
    let Some(mark) = marks.marks.first().filter(|m| m.count > 0) else {
        return String::new();
    };
    let of_one = |count: u64| count as f64 / f64::from(pairs);
    let clients = match pairs {
        1 => String::new(),
        n => format!(" : mean of {n} clients"),
    };
    let title = match test {
        "UDP_RR" => "UDP REQUEST/RESPONSE TEST",
        "TCP_RR" => "TCP REQUEST/RESPONSE TEST",
        "UDP_STREAM" => "UDP STREAM TEST",
        _ => "TCP STREAM TEST",
    };
    let burst = if test.ends_with("_RR") {
        " : first burst 0"
    } else {
        ""
    };
    let head = format!(
        "MIGRATED {title} from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 () port 0 AF_INET\
         {burst}{clients}"
    );
    let (a, b) = sizes;
    let (send, recv) = match test.starts_with("UDP") {
        true => (UDP_BUFFER, UDP_BUFFER),
        false => (TCP_SEND_BUFFER, TCP_RECV_BUFFER),
    };
    let mbit = |count: u64, bytes: u32| of_one(count) / elapsed_s * f64::from(bytes) * 8.0 / 1e6;
    match test {
        "UDP_RR" | "TCP_RR" => format!(
            "{head}\nLocal /Remote\nSocket Size   Request  Resp.   Elapsed  Trans.\n\
             Send   Recv   Size     Size    Time     Rate         \n\
             bytes  Bytes  bytes    bytes   secs.    per sec   \n\n\
             {send:<6} {recv:<6} {a:<6}   {b:<6}  {elapsed_s:<6.2}   {:>7.2}   \n\
             {send:<6} {recv:<6}",
            of_one(mark.count) / elapsed_s
        ),
        "UDP_STREAM" => {
            // Datagrams count where they arrive; none is refused where they are sent.
            let arrived = marks.marks.get(1).map_or(0, |m| m.count);
            format!(
                "{head}\nSocket  Message  Elapsed      Messages                \n\
                 Size    Size     Time         Okay Errors   Throughput\n\
                 bytes   bytes    secs            #      #   10^6bits/sec\n\n\
                 {send:>6}  {a:>6}   {elapsed_s:<7.2}   {:>7.0} {:>6}    {:>7.2}\n\
                 {recv:>6}           {elapsed_s:<7.2}   {:>7.0}           {:>7.2}",
                of_one(mark.count),
                0,
                mbit(mark.count, a),
                of_one(arrived),
                mbit(arrived, b),
            )
        }
        _ => format!(
            "{head}\nRecv   Send    Send                          \n\
             Socket Socket  Message  Elapsed              \n\
             Size   Size    Size     Time     Throughput  \n\
             bytes  bytes   bytes    secs.    10^6bits/sec  \n\n\
             {recv:>6} {send:>6} {a:>6}    {elapsed_s:<6.2}   {:>7.2}   ",
            mbit(mark.count, a)
        ),
    }
}

/// The final report of schbench. It writes requests per second once a second; here is one value.
pub(super) fn schbench(runtime_s: f64, marks: &Marks) -> String {
    let elapsed_s = marks.elapsed_ns as f64 / 1e9;
    let Some(count) = marks.marks.first().map(|m| m.count).filter(|n| *n > 0) else {
        return String::new();
    };
    let ([wakeup, request, ..], [of_wakeup, of_request, ..]) =
        (marks.requests.as_slice(), marks.exact.as_slice())
    else {
        return String::new();
    };
    let report = |label: &str, h: &Histogram<u64>, max_ns: u64| {
        let samples = Samples::of(h);
        let mut text = format!(
            "{label} percentiles (usec) runtime {runtime_s:.0} (s) ({} total samples)",
            samples.count
        );
        let mut below = samples.up_to(20.0).1;
        for (percent, star) in [(50.0, "  "), (90.0, "  "), (99.0, "* "), (99.9, "  ")] {
            let (us, upto) = samples.up_to(percent);
            text += &format!(
                "\n\t{star}{percent:2.1}th: {us:<10} ({} samples)",
                upto - below
            );
            below = upto;
        }
        let min_us = samples.slots.first().map_or(0, |s| s.0);
        text + &format!("\n\t  min={min_us}, max={}", max_ns / 1000)
    };
    format!(
        "{}\n{}\naverage rps: {:.2}",
        report("Wakeup Latencies", wakeup, of_wakeup.max_ns),
        report("Request Latencies", request, of_request.max_ns),
        count as f64 / elapsed_s
    )
}

/// What schbench keeps of latencies: whole microseconds, those of none left out.
struct Samples {
    /// Microseconds, and how many samples there were of so many.
    slots: Vec<(u64, u64)>,
    count: u64,
}

impl Samples {
    fn of(h: &Histogram<u64>) -> Self {
        let mut slots: Vec<(u64, u64)> = Vec::new();
        for v in h.iter_recorded() {
            let (us, n) = (v.value_iterated_to() / 1000, v.count_at_value());
            match slots.last_mut() {
                _ if us == 0 => {}
                Some(last) if last.0 == us => last.1 += n,
                _ => slots.push((us, n)),
            }
        }
        let count = slots.iter().map(|s| s.1).sum();
        Self { slots, count }
    }

    /// The value as printed below which so many per cent are, and how many samples are up to it: up
    /// to the end of its slot. Slots are single microseconds below 512, above 256 in each power of
    /// two, printed as their middle.
    fn up_to(&self, percent: f64) -> (u64, u64) {
        let wanted = percent / 100.0 * self.count as f64;
        let (mut slot, mut upto) = (0, 0);
        for &(us, n) in &self.slots {
            let of = slot_of(us);
            if of != slot && upto as f64 >= wanted {
                break;
            }
            slot = of;
            upto += n;
        }
        (slot, upto)
    }
}

/// The middle of the slot that a latency falls into, us.
fn slot_of(us: u64) -> u64 {
    const EXACT: u64 = 512;
    if us < EXACT {
        return us;
    }
    let width = 1 << (us.ilog2() - 8);
    us / width * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{histogram, record};

    fn samples(us: impl IntoIterator<Item = u64>) -> Samples {
        let mut h = histogram();
        us.into_iter().for_each(|us| record(&mut h, us * 1000));
        Samples::of(&h)
    }

    #[test]
    fn schbench_counts_what_takes_a_microsecond() {
        let samples = samples((0..=100).chain([0, 0]));
        assert_eq!(samples.count, 100);
        assert_eq!(samples.up_to(20.0), (20, 20));
        assert_eq!(samples.up_to(50.0), (50, 50));
        assert_eq!(samples.up_to(99.9), (100, 100));
    }

    #[test]
    fn slots_of_schbench() {
        for (us, printed) in [
            (511, 511),
            (512, 513),
            (513, 513),
            (1687, 1686),
            (4095, 4092),
        ] {
            assert_eq!(slot_of(us), printed, "{us}");
        }
        // 1684 to 1687 are one slot.
        assert_eq!(samples([1684, 1687, 1690]).up_to(20.0), (1686, 2));
    }
}
