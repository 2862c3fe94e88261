//! Writes to the control files of a case's groups, cgroup v1 or v2, as the kernel takes them: what
//! it refuses is refused here, what it clamps is clamped.

use super::case::number;
use crate::workload::program::{Cgroup, CgroupWrite, Ns};
use crate::workload::validate::{PERIOD_NS_MAX, QUOTA_NS_MIN, SHARES};

const US: Ns = 1_000;

/// What a group's files hold, as far as later writes depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Files {
    quota_ns: Option<Ns>,
    period_ns: Ns,
    burst_ns: Ns,
    idle: bool,
}

impl From<&Cgroup> for Files {
    fn from(group: &Cgroup) -> Self {
        Self {
            quota_ns: group.quota_ns,
            period_ns: group.period_ns,
            burst_ns: group.burst_ns,
            idle: group.idle,
        }
    }
}

/// Names of the files that limit a group's time.
pub(super) const LIMITS: [&str; 5] = [
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "cpu.cfs_burst_us",
    "cpu.max",
    "cpu.max.burst",
];

/// Names of the others.
const WEIGHTS: [&str; 3] = ["cpu.shares", "cpu.weight", "cpu.idle"];

/// Whether a group has such a file that can be written.
///
/// # Errors
/// What it is called, and what there is.
pub(super) fn known(file: &str) -> Result<(), String> {
    if WEIGHTS.contains(&file) || LIMITS.contains(&file) {
        return Ok(());
    }
    let (weights, limits) = (WEIGHTS.join(", "), LIMITS.join(", "));
    Err(format!(
        "'{file}' is not known, expected {weights}, {limits}"
    ))
}

/// `cpu.shares` as the kernel keeps it: brought into its range, not refused.
pub(super) fn shares(written: u64) -> u64 {
    written.clamp(*SHARES.start(), *SHARES.end())
}

/// Quota of cgroup v1; a negative one is none.
pub(super) fn quota(us: i64) -> Option<Ns> {
    u64::try_from(us).ok().map(|us| us * US)
}

impl Files {
    /// A write of `text` to `file`.
    ///
    /// # Errors
    /// What the kernel would refuse, and why.
    pub(super) fn write(&mut self, file: &str, text: &str) -> Result<CgroupWrite, String> {
        match file {
            "cpu.shares" | "cpu.weight" if self.idle => {
                return Err("the kernel refuses a weight while cpu.idle is 1".into());
            }
            "cpu.shares" => return Ok(CgroupWrite::Shares(shares(positive(text)?))),
            "cpu.weight" => {
                let weight = positive(text)?;
                if !(1..=10_000).contains(&weight) {
                    return Err(format!("{weight}, expected 1 to 10000"));
                }
                return Ok(CgroupWrite::Shares(Cgroup::shares_of_weight(weight)));
            }
            "cpu.idle" => {
                self.idle = match text {
                    "0" => false,
                    "1" => true,
                    other => return Err(format!("'{other}', expected 0 or 1")),
                };
                return Ok(CgroupWrite::Idle(self.idle));
            }
            "cpu.cfs_burst_us" | "cpu.max.burst" => self.burst_ns = positive(text)? * US,
            "cpu.cfs_quota_us" => self.quota_ns = quota(number(text)?),
            "cpu.cfs_period_us" => self.period_ns = positive(text)? * US,
            "cpu.max" => self.set_max(text)?,
            other => return known(other).and(Err(format!("'{other}' is not known"))),
        }
        self.in_range()?;
        Ok(match file {
            "cpu.cfs_burst_us" | "cpu.max.burst" => CgroupWrite::Burst(self.burst_ns),
            _ => CgroupWrite::Max {
                quota_ns: self.quota_ns,
                period_ns: self.period_ns,
            },
        })
    }

    /// Whether the kernel takes quota, period and burst.
    fn in_range(&self) -> Result<(), String> {
        let period_us = self.period_ns / US;
        if !(QUOTA_NS_MIN..=PERIOD_NS_MAX).contains(&self.period_ns) {
            return Err(format!("the kernel refuses a period of {period_us} us"));
        }
        let Some(quota) = self.quota_ns else {
            return Ok(());
        };
        if quota < QUOTA_NS_MIN {
            return Err(format!("the kernel refuses a quota of {} us", quota / US));
        }
        if self.burst_ns > quota {
            return Err("the kernel refuses a burst above the quota".into());
        }
        Ok(())
    }

    fn set_max(&mut self, text: &str) -> Result<(), String> {
        let mut words = text.split_whitespace();
        self.quota_ns = match words.next() {
            Some("max") => None,
            Some(us) => Some(positive(us)? * US),
            None => return Err("nothing is written".into()),
        };
        if let Some(us) = words.next() {
            self.period_ns = positive(us)? * US;
        }
        match words.next() {
            Some(more) => Err(format!("'{more}' after quota and period")),
            None => Ok(()),
        }
    }
}

/// Whether no group may use more of a CPU than the nearest one above it with a limit, as cgroup v1
/// demands (`max(c_i) <= C` in Documentation/scheduler/sched-bwc). Version 2 takes any limit, and
/// the tighter one holds.
///
/// # Errors
/// The group whose limit the kernel would refuse.
pub(super) fn attainable(limits: &[Files], groups: &[Cgroup]) -> Result<(), String> {
    for (group, own) in groups.iter().zip(limits) {
        let Some(quota) = own.quota_ns else { continue };
        let mut at = group.parent as usize;
        while at > 0 {
            if let Some(above) = limits[at].quota_ns {
                let [ours, theirs] = [(quota, limits[at].period_ns), (above, own.period_ns)]
                    .map(|(quota, period)| u128::from(quota) * u128::from(period));
                if ours > theirs {
                    let (path, parent) = (&group.path, &groups[at].path);
                    return Err(format!(
                        "the kernel refuses a limit of '{path}' above that of '{parent}' \
                         (cgroup v1; machine.cgroup names version 2 if it is that)"
                    ));
                }
                break;
            }
            at = groups[at].parent as usize;
        }
    }
    Ok(())
}

fn positive(text: &str) -> Result<u64, String> {
    let n = number(text)?;
    u64::try_from(n).map_err(|_| format!("{n} is negative"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        Files::from(&Cgroup::new("/g", 0))
    }

    #[test]
    fn a_limit_is_at_most_that_of_the_next_limited_group_above() {
        let mut groups = vec![Cgroup::new("/", 0), Cgroup::new("/a", 0)];
        groups.extend([Cgroup::new("/a/b", 1), Cgroup::new("/a/b/c", 2)]);
        let check = |quotas: [Option<Ns>; 3]| {
            let mut limits: Vec<Files> = groups.iter().map(Files::from).collect();
            for (files, quota) in limits[1..].iter_mut().zip(quotas) {
                files.quota_ns = quota;
            }
            limits[3].period_ns = 50_000_000;
            attainable(&limits, &groups)
        };
        let ms = |n: u64| Some(n * 1_000_000);
        assert_eq!(check([ms(80), None, ms(40)]), Ok(()));
        assert_eq!(check([None, ms(10), None]), Ok(()));
        let error = check([ms(80), None, ms(41)]).expect_err("0.82 of a CPU in 0.8");
        assert!(error.contains("'/a/b/c' above that of '/a'"), "{error}");
    }

    #[test]
    fn shares_are_clamped_and_weights_refused() {
        let mut f = files();
        let shares = |n| Ok(CgroupWrite::Shares(n));
        assert_eq!(f.write("cpu.shares", "0"), shares(2));
        assert_eq!(f.write("cpu.shares", "999999"), shares(262_144));
        assert_eq!(f.write("cpu.weight", "10000"), shares(102_400));
        assert!(f.write("cpu.weight", "0").is_err());
        assert!(f.write("cpu.weight", "10001").is_err());
        assert_eq!(f.write("cpu.idle", "1"), Ok(CgroupWrite::Idle(true)));
        assert!(f.write("cpu.idle", "7").is_err());
        assert!(f.write("cpu.shares", "1024").is_err(), "the group is idle");
        assert_eq!(f.write("cpu.idle", "0"), Ok(CgroupWrite::Idle(false)));
        assert_eq!(f.write("cpu.shares", "1024"), shares(1024));
    }

    #[test]
    fn limits_keep_what_other_files_hold() {
        let mut f = files();
        let max = |quota_ns, period_ns| {
            Ok(CgroupWrite::Max {
                quota_ns,
                period_ns,
            })
        };
        let ms = 1_000_000;
        assert_eq!(
            f.write("cpu.cfs_quota_us", "20000"),
            max(Some(20 * ms), 100 * ms)
        );
        assert_eq!(
            f.write("cpu.cfs_period_us", "50000"),
            max(Some(20 * ms), 50 * ms)
        );
        assert!(f.write("cpu.max.burst", "20001").is_err());
        f.burst_ns = 0;
        assert_eq!(
            f.write("cpu.max.burst", "5000"),
            Ok(CgroupWrite::Burst(5 * ms))
        );
        assert_eq!(f.write("cpu.max", "max"), max(None, 50 * ms));
        assert!(f.write("cpu.max", "1 2 3").is_err());
        assert!(f.write("cpu.mux", "1").is_err());
    }
}
