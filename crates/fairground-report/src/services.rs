//! Which of a workload's metrics are looked at first.
//!
//! Where there are services, that is what clients see: how long requests take, in the median and at
//! the 99th percentile, then how many are answered. A rate alone says nothing of a service whose
//! requests come whether or not it keeps up. The simulator lists services that clients ask before
//! those behind them, so the first one is what clients see.

use crate::catalogue::{Better, MetricInfo, is_own};

/// Of requests that clients wait for, in this order.
const OF_A_SERVICE: [&str; 3] = ["latency_us.p50", "latency_us.p99", "per_s"];

/// The services, and kinds of request between a `begin` and an `end`, in their order.
pub(crate) fn services(info: &[MetricInfo]) -> Vec<&str> {
    let own = info.iter().filter(|m| is_own(&m.name));
    let names = own.filter_map(|m| m.name.strip_suffix(".latency_us.p50"));
    names
        .filter(|name| of_service(info, name).len() == OF_A_SERVICE.len())
        .collect()
}

/// What one looks at of a service first: median, 99th percentile and throughput.
pub(crate) fn of_service<'a>(info: &'a [MetricInfo], service: &str) -> Vec<&'a MetricInfo> {
    let find = |what: &str| {
        let rest = |m: &'a MetricInfo| m.name.strip_prefix(service)?.strip_prefix('.');
        info.iter().find(|m| rest(m) == Some(what))
    };
    OF_A_SERVICE.into_iter().filter_map(find).collect()
}

/// What one looks at first: the service that clients see; else the workload's own throughput, else
/// the first of its own that has a direction, else the tail of the wake-up latency.
pub(crate) fn first_looked_at(info: &[MetricInfo]) -> Vec<&MetricInfo> {
    if let Some(service) = services(info).first() {
        return of_service(info, service);
    }
    let own = |m: &&MetricInfo| is_own(&m.name);
    let first = |fits: &dyn Fn(&MetricInfo) -> bool| info.iter().filter(own).find(|m| fits(m));
    let tail = || info.iter().find(|m| m.name == "wakeup_latency_us.p99");
    let one = first(&|m| m.better == Some(Better::Higher))
        .or_else(|| first(&|m| m.better.is_some()))
        .or_else(tail);
    one.into_iter().collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The metrics of a scenario with these services.
    pub(crate) fn of_services(names: &[&str]) -> Vec<MetricInfo> {
        let info = |(name, better): (String, Option<Better>)| MetricInfo {
            name,
            unit: "us".into(),
            better,
            description: String::new(),
        };
        let of = |name: &&str| {
            let lower = ["mean", "p50", "p99", "max"]
                .map(|what| (format!("{name}.latency_us.{what}"), Some(Better::Lower)));
            let rate = (format!("{name}.per_s"), Some(Better::Higher));
            lower.into_iter().chain([rate]).collect::<Vec<_>>()
        };
        let shares = [
            ("w.cpu_share".to_string(), None),
            ("w.cpus".to_string(), None),
        ];
        let all = names.iter().flat_map(of).chain(shares);
        let all = all.map(info).collect::<Vec<_>>();
        crate::catalogue::Catalogue::new(all).rows().to_vec()
    }

    fn names(info: &[&MetricInfo]) -> Vec<String> {
        info.iter().map(|m| m.name.clone()).collect()
    }

    #[test]
    fn the_service_that_clients_see_is_looked_at_before_its_rate() {
        let info = of_services(&["front", "back"]);
        assert_eq!(services(&info), ["front", "back"]);
        let first = names(&first_looked_at(&info));
        assert_eq!(
            first,
            [
                "front.latency_us.p50",
                "front.latency_us.p99",
                "front.per_s"
            ]
        );
    }

    #[test]
    fn without_a_service_it_is_the_rate_or_the_wake_up_latency() {
        assert_eq!(
            names(&first_looked_at(&of_services(&[]))),
            ["wakeup_latency_us.p99"]
        );
        let mut info = of_services(&["a"]);
        info.retain(|m| m.name.ends_with(".per_s") || m.name.ends_with(".mean"));
        assert_eq!(names(&first_looked_at(&info)), ["a.per_s"]);
    }
}
