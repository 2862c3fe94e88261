//! Groups whose own metrics are asked for by name (`/web/throttled_pct`). Where few groups have a
//! limit each has its own anyway; of one, or of many, those that somebody names.

use fairground_report::GROUP_METRICS;

/// Paths of the groups that are named in metrics, conditions or targets.
pub fn groups<'a>(texts: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let path = |text: &'a String| {
        let text = text.trim();
        let at = GROUP_METRICS
            .iter()
            .find_map(|name| text.find(&format!("/{name}")));
        at.filter(|at| *at > 0 && text.starts_with('/'))
            .map(|at| text[..at].to_string())
    };
    texts.into_iter().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_in_conditions_and_names() {
        let texts = [
            "/web/throttled_pct<5",
            " /a/b.1/slow_periods_pct",
            "throttled_pct>5",
            "/throttled_pct",
            "web.latency_us.p99<20ms",
        ]
        .map(String::from);
        assert_eq!(groups(&texts), ["/web", "/a/b.1"]);
    }
}
