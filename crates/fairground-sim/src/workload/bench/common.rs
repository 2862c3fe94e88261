//! Options and building blocks that all benchmark models share: the cgroups that a workload runs
//! in, lists of numbers, and durations.
use super::{Error, bad};
use crate::workload::duration;
pub use crate::workload::duration::parse_length_ns as length;
use crate::workload::limit_words;
use crate::workload::program::{Cgroup, Ns, Op, Program, Workload};

/// Most tasks of one workload, and most cgroups.
pub const TASKS_MAX: u64 = 1_000_000;

/// The group that stands for a session, where nobody names one.
pub const SESSION: &str = "/autogroup-1";

/// Where the tasks of a benchmark live.
#[derive(clap::Args, Clone, Debug)]
pub struct Groups {
    /// Runs in this cgroup, which is made ("/" is the root). By default one group below the root,
    /// as autogroup gives a session.
    #[arg(long, value_name = "PATH", value_parser = cgroup_path)]
    pub cgroup: Option<String>,
    /// Runs in a tree of cgroups of depth D, each inner group having W children; the load is
    /// dealt over the leaves.
    #[arg(long, value_name = "D:W", value_parser = tree)]
    pub tree: Option<(u32, u32)>,
    /// `cpu.weight` of the leaves (of the one group without --tree), dealt in turn.
    #[arg(long, value_name = "W,..", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub weight: Vec<u64>,
    /// `cpu.max` of each leaf (of the one group without --tree), like 2ms/10ms.
    #[arg(long, value_name = "QUOTA/PERIOD", value_parser = cpu_max)]
    pub cpu_max: Option<(Ns, Ns)>,
    /// Number of further cgroups without tasks, below the root.
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub idle_groups: u32,
}

impl Groups {
    /// Adds the groups to `workload`; gives the leaves, over which the load is dealt.
    ///
    /// # Errors
    /// The tree is too large, or the root was given a weight.
    pub fn build(&self, tool: &'static str, workload: &mut Workload) -> Result<Vec<u32>, Error> {
        let base = match (&self.cgroup, self.tree) {
            (Some(path), _) => path.as_str(),
            (None, Some(_)) => "/",
            (None, None) => SESSION,
        };
        let mut leaves = vec![add_path(workload, base)];
        let (depth, width) = self.tree.unwrap_or((0, 1));
        for _ in 0..depth {
            if leaves.len() as u64 * u64::from(width) > TASKS_MAX {
                let limit = format!("--tree {depth}:{width} has more than {TASKS_MAX} cgroups");
                return Err(bad(tool, limit));
            }
            leaves = add_level(workload, &leaves, width);
        }
        let weights = self.weight.len();
        none_spare(
            tool,
            "--weight",
            weights,
            leaves.len(),
            "cgroup; --tree makes more",
        )?;
        for (i, &leaf) in leaves
            .iter()
            .enumerate()
            .filter(|_| !self.weight.is_empty())
        {
            if leaf == 0 {
                return Err(bad(tool, "the root cgroup has no weight"));
            }
            let weight = self.weight[i % self.weight.len()];
            workload.cgroups[leaf as usize].shares = Cgroup::shares_of_weight(weight);
        }
        if let Some((quota_ns, period_ns)) = self.cpu_max {
            for &leaf in &leaves {
                if leaf == 0 {
                    return Err(bad(tool, "the root cgroup has no limit"));
                }
                let group = &mut workload.cgroups[leaf as usize];
                (group.quota_ns, group.period_ns) = (Some(quota_ns), period_ns);
            }
        }
        let idle = (0..self.idle_groups).map(|i| Cgroup::new(format!("/idle-{i}"), 0));
        workload.cgroups.extend(idle);
        Ok(leaves)
    }
}

/// Refuses a list with more values than there is to deal them to: nothing would come of the last.
///
/// # Errors
/// Values are spare; the error says what each value is for.
pub fn none_spare(
    tool: &'static str,
    option: &str,
    values: usize,
    takers: usize,
    each: &str,
) -> Result<(), Error> {
    if values <= takers {
        return Ok(());
    }
    let message =
        format!("{option} has {values} values for {takers}; expected at most one per {each}");
    Err(bad(tool, message))
}

fn add_level(workload: &mut Workload, parents: &[u32], width: u32) -> Vec<u32> {
    let mut level = Vec::new();
    for &parent in parents {
        let above = workload.cgroups[parent as usize]
            .path
            .trim_end_matches('/')
            .to_owned();
        for i in 0..width {
            level.push(workload.cgroups.len() as u32);
            workload
                .cgroups
                .push(Cgroup::new(format!("{above}/g{i}"), parent));
        }
    }
    level
}

fn add_path(workload: &mut Workload, path: &str) -> u32 {
    let mut parent = 0;
    let mut above = String::new();
    for part in path.split('/').filter(|p| !p.is_empty()) {
        above = format!("{above}/{part}");
        workload.cgroups.push(Cgroup::new(above.clone(), parent));
        parent = workload.cgroups.len() as u32 - 1;
    }
    parent
}

/// Adds a program and gives its index.
pub fn add_program(workload: &mut Workload, name: impl Into<String>, ops: Vec<Op>) -> u32 {
    workload.programs.push(Program {
        name: name.into(),
        ops,
    });
    workload.programs.len() as u32 - 1
}

/// The operations of a loop: `count` turns of `body`, appended to `ops`.
pub fn repeat(ops: &mut Vec<Op>, count: u64, body: impl IntoIterator<Item = Op>) {
    let start = ops.len() as u32;
    ops.push(Op::LoopStart { count });
    ops.extend(body);
    ops.push(Op::LoopEnd { start });
}

/// Parser of a duration that is not zero.
pub fn positive(text: &str) -> Result<Ns, String> {
    match length(text)? {
        0 => Err("expected more than 0".into()),
        ns => Ok(ns),
    }
}

/// Parser of a time limit: seconds, or a duration with a unit; 0 is none.
pub fn seconds(text: &str) -> Result<Ns, String> {
    let number: Result<f64, _> = text.trim().parse();
    match number {
        Ok(s) if s.is_finite() => duration::parse_ns(&format!("{s}s")),
        _ => length(text),
    }
}

/// A quota and its period.
fn cpu_max(text: &str) -> Result<(Ns, Ns), String> {
    match limit_words::cpu_max(text).map_err(|refused| refused.to_string())? {
        (Some(quota), Some(period)) => Ok((quota, period)),
        _ => Err("expected QUOTA/PERIOD, like 2ms/10ms".into()),
    }
}

fn cgroup_path(text: &str) -> Result<String, String> {
    let bad_part = |p: &str| p.is_empty() || p == "." || p == "..";
    let parts = || text.trim_start_matches('/').split('/');
    if !text.starts_with('/') || (text != "/" && parts().any(bad_part)) || parts().count() > 64 {
        return Err("expected an absolute path like /a/b".into());
    }
    Ok(text.to_owned())
}

fn tree(text: &str) -> Result<(u32, u32), String> {
    let numbers = text
        .split_once(':')
        .and_then(|(d, w)| Some((d.parse().ok()?, w.parse().ok()?)));
    match numbers {
        Some((depth @ 1..=16, width @ 1..=100_000)) => Ok((depth, width)),
        _ => Err("expected depth:width, like 3:10 (depth 1..16)".into()),
    }
}
