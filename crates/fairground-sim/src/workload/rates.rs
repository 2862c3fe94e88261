//! The words of the tools whose results are rates over a fixed time.
use super::metric::Marks;
use hdrhistogram::Histogram;

/// Results as netperf prints them for one client, here for the mean of all `pairs`.
pub(super) fn netperf(test: &str, sizes: (u32, u32), pairs: u32, marks: &Marks) -> String {
    let elapsed_s = marks.elapsed_ns as f64 / 1e9;
    let Some(mark) = marks.marks.first().filter(|m| m.count > 0) else {
        return String::new();
    };
    let each_s = mark.count as f64 / elapsed_s / f64::from(pairs);
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
    let head = format!("MIGRATED {title} from 0.0.0.0 to 127.0.0.1 () port 0 AF_INET{clients}");
    let (a, b) = sizes;
    if test.ends_with("_RR") {
        return format!(
            "{head}\nRequest  Resp.   Elapsed  Trans.\nSize     Size    Time     Rate\n\
             bytes    bytes   secs.    per sec\n\n{a:<8} {b:<7} {elapsed_s:<8.2} {each_s:.2}"
        );
    }
    // Datagrams count where they arrive.
    let arrived = if test == "UDP_STREAM" {
        marks.marks.get(1)
    } else {
        Some(mark)
    };
    let count = arrived.map_or(0, |m| m.count);
    let mbit = count as f64 / elapsed_s / f64::from(pairs) * f64::from(a) * 8.0 / 1e6;
    format!(
        "{head}\nSend\nMessage  Elapsed\nSize     Time     Throughput\nbytes    secs.    \
         10^6bits/sec\n\n{a:<8} {elapsed_s:<8.2} {mbit:.2}"
    )
}

/// What sysbench 1.0 prints after an OLTP test, without the lines on fairness of threads.
pub(super) fn sysbench_oltp(threads: u32, reads: u32, other: u32, marks: &Marks) -> String {
    let elapsed_s = marks.elapsed_ns as f64 / 1e9;
    let (Some(mark), Some(latency)) = (marks.marks.first(), marks.requests.first()) else {
        return String::new();
    };
    if mark.count == 0 || latency.is_empty() {
        return String::new();
    }
    let transactions = mark.count;
    let (read, rest) = (
        u64::from(reads) * transactions,
        u64::from(other) * transactions,
    );
    let total = read + rest;
    let per_s = |n: u64| n as f64 / elapsed_s;
    let ms = |ns: f64| ns / 1e6;
    let quantile = latency.value_at_quantile(0.95) as f64;
    format!(
        "Number of threads: {threads}\n\nSQL statistics:\n    queries performed:\n        \
         read:                            {read}\n        \
         write:                           0\n        \
         other:                           {rest}\n        \
         total:                           {total}\n    \
         transactions:                        {transactions} ({:.2} per sec.)\n    \
         queries:                             {total} ({:.2} per sec.)\n\n\
         General statistics:\n    \
         total time:                          {elapsed_s:.4}s\n    \
         total number of events:              {transactions}\n\n\
         Latency (ms):\n         \
         min: {:>38.2}\n         avg: {:>38.2}\n         max: {:>38.2}\n         \
         95th percentile: {quantile:>26.2}",
        per_s(transactions),
        per_s(total),
        ms(latency.min() as f64),
        ms(latency.mean()),
        ms(latency.max() as f64),
        quantile = ms(quantile),
    )
}

/// The final report of schbench. It writes requests per second once a second; here is one value.
pub(super) fn schbench(runtime_s: f64, marks: &Marks) -> String {
    let elapsed_s = marks.elapsed_ns as f64 / 1e9;
    let Some(count) = marks.marks.first().map(|m| m.count).filter(|n| *n > 0) else {
        return String::new();
    };
    let latencies = |label: &str, h: &Histogram<u64>| {
        let mut text = format!(
            "{label} percentiles (usec) runtime {runtime_s:.0} (s) ({} total samples)",
            h.len()
        );
        let mut below = 0;
        for (percent, star) in [(50.0, "  "), (90.0, "  "), (99.0, "* "), (99.9, "  ")] {
            let value = h.value_at_quantile(percent / 100.0);
            let upto = h.count_between(0, value);
            let us = value / 1000;
            text += &format!(
                "\n\t{star}{percent:2.1}th: {us:<10} ({} samples)",
                upto - below
            );
            below = upto;
        }
        text + &format!("\n\t  min={}, max={}", h.min() / 1000, h.max() / 1000)
    };
    let [wakeup, request, ..] = marks.requests.as_slice() else {
        return String::new();
    };
    format!(
        "{}\n{}\naverage rps: {:.2}",
        latencies("Wakeup Latencies", wakeup),
        latencies("Request Latencies", request),
        count as f64 / elapsed_s
    )
}
