//! What the files of a cgroup hold in a scenario: weights, limits and bursts, read and checked as
//! the kernel checks them.

use super::error::{Error, Source};
use super::node::{Fields, Node, Value};
use crate::workload::cpu_counts::{limit_hint, weight_hint};
use crate::workload::limit_words;
use crate::workload::program::{Cgroup, Ns};
use crate::workload::validate::SHARES;

/// A weight in units of shares, and where it stands: as `cpu.weight`, or as the `cpu.shares` of
/// cgroup v1, of which most have no `cpu.weight`.
pub(super) fn weight<'a>(fields: &Fields<'a>) -> Result<Option<(&'a Node, u64)>, Error> {
    let source = fields.source;
    let shares = fields.get("cpu.shares").map(|node| {
        let range = *SHARES.start() as i64..=*SHARES.end() as i64;
        Ok((node, node.int(source, range)? as u64))
    });
    let Some(node) = fields.get("cpu.weight") else {
        return shares.transpose();
    };
    if let Some((shares, _)) = shares.transpose()? {
        let message = "'cpu.weight' and 'cpu.shares' are one weight; expected one of them";
        return Err(source.error(shares.span.clone(), message));
    }
    let weight = node.int(source, 1..=10_000);
    let weight = weight.map_err(|e| e.help(weight_hint(node.raw(source))))?;
    Ok(Some((node, Cgroup::shares_of_weight(weight as u64))))
}

/// Microseconds, as the file holds, or a time with its unit.
pub(super) fn burst(source: &Source, node: &Node) -> Result<Ns, Error> {
    match node.value {
        Value::Str(_) => node.ns(source),
        _ => Ok(node.int(source, 0..=1_000_000_000)? as Ns * 1000),
    }
}

pub(super) fn check_burst(
    source: &Source,
    node: &Node,
    burst: Ns,
    quota: Option<Ns>,
) -> Result<(), Error> {
    match quota {
        Some(quota) if burst > quota => {
            let (burst, quota) = (burst / 1000, quota / 1000);
            let message = format!("the burst of {burst} us is above the quota of {quota} us");
            Err(source.error(node.span.clone(), message))
        }
        _ => Ok(()),
    }
}

/// Quota and period of a `cpu.max` ([`limit_words::cpu_max`]); without a period, `period_ns` stays.
pub(super) fn cpu_max(
    source: &Source,
    node: &Node,
    period_ns: Ns,
) -> Result<(Option<Ns>, Ns), Error> {
    const EXPECTED: &str = "a text: QUOTA PERIOD in microseconds, QUOTA/PERIOD with units, or max";
    // Not a text: perhaps a number of CPUs.
    let text = node.str(source, EXPECTED);
    let text = text.map_err(|e| e.help(limit_hint(node.raw(source))))?;
    match limit_words::cpu_max(text) {
        Ok((quota_ns, period)) => Ok((quota_ns, period.unwrap_or(period_ns))),
        Err(refused) => {
            let message = format!("cpu.max '{text}': {}", refused.expected);
            Err(source.error(node.span.clone(), message).help(refused.hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::Scenario;
    use crate::workload::program::CgroupWrite;
    use crate::workload::{Env, Workload};

    fn read(group: &str, event: &str) -> Result<Workload, String> {
        let text = format!(
            "duration = \"10ms\"\n[[cgroup]]\npath = \"/a\"\n{group}\n[[event]]\nat = \"1ms\"\n\
             cgroup = \"/a\"\n{event}\n[[task]]\nname = \"t\"\ncgroup = \"/a\"\nsteps = [\"hog\"]\n"
        );
        let scenario = Scenario::parse("a.toml", &text).map_err(|e| e.to_string())?;
        scenario
            .workload(&Env { cpus: 2 })
            .map_err(|e| e.to_string())
    }

    #[test]
    fn a_weight_is_also_read_in_shares() {
        let w = read("\"cpu.shares\" = 2", "\"cpu.shares\" = 262144").unwrap();
        assert_eq!(w.cgroups[1].shares, 2);
        assert_eq!(w.events[0].write, CgroupWrite::Shares(262_144));
        let idle = "\"cpu.idle\" = 1";
        for (group, event, told) in [
            (
                "\"cpu.weight\" = 50\n\"cpu.shares\" = 512",
                idle,
                "'cpu.weight' and 'cpu.shares' are one weight; expected one of them",
            ),
            (
                "\"cpu.shares\" = 1",
                idle,
                "1 is out of range; expected an integer from 2 to 262144",
            ),
            (
                idle,
                "\"cpu.shares\" = 1000",
                "the kernel refuses a weight while",
            ),
        ] {
            let error = read(group, event).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
