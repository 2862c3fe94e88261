//! What a level of task groups costs, where this process may make groups: cgroup v1 `cpu`, or a
//! cgroup v2 subtree that was delegated to it (Documentation/admin-guide/cgroup-v2.rst,
//! "Delegation").

use std::io;
use std::path::{Path, PathBuf};

use super::kernel;
use crate::sample;

/// How deep the deep group is.
pub(crate) const DEPTH: u32 = 6;

/// Pipe round trip on one CPU at depth 0 and at [`DEPTH`], in turns, ns.
pub(crate) fn turns(cpu: u32, turns: u32, count: u32) -> io::Result<Vec<(f64, f64)>> {
    let groups = Groups::make(Path::new("/sys/fs/cgroup"))?;
    let round = || -> io::Result<f64> {
        let times = kernel::pipe_round_trip((cpu, cpu), count)?;
        sample::quiet(&times).ok_or_else(|| io::Error::other("no batch was measured"))
    };
    let mut found = Vec::new();
    for _ in 0..turns {
        enter(&groups.top)?;
        let top = round()?;
        enter(groups.deepest())?;
        found.push((top, round()?));
    }
    Ok(found)
}

/// A chain of groups that goes away with this value, after the process has gone home.
struct Groups {
    home: PathBuf,
    /// The group at depth 0 of the comparison: our own.
    top: PathBuf,
    /// Made here, outermost first.
    made: Vec<PathBuf>,
    /// Where the controller was handed down, to take it back.
    handed: Option<PathBuf>,
}

impl Groups {
    fn make(mount: &Path) -> io::Result<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let (home, v2) = home(mount, &own)?;
        let mut groups = Self {
            top: home.clone(),
            home,
            made: Vec::new(),
            handed: None,
        };
        let name = format!("fairground-calibrate-{}", std::process::id());
        if v2 {
            // A group with processes cannot hand controllers down: this one moves aside.
            let aside = groups.home.join(format!("{name}-aside"));
            groups.add(aside.clone())?;
            enter(&aside)?;
            groups.top = aside;
            let control = groups.home.join("cgroup.subtree_control");
            std::fs::write(&control, "+cpu")?;
            groups.handed = Some(control);
        }
        let mut path = groups.home.join(name);
        // In version 2 the shallow group is one below home already.
        let levels = DEPTH + u32::from(v2);
        for level in 0..levels {
            groups.add(path.clone())?;
            if v2 && level + 1 < levels {
                std::fs::write(path.join("cgroup.subtree_control"), "+cpu")?;
            }
            path.push("below");
        }
        Ok(groups)
    }

    fn add(&mut self, path: PathBuf) -> io::Result<()> {
        std::fs::create_dir(&path)?;
        self.made.push(path);
        Ok(())
    }

    fn deepest(&self) -> &Path {
        self.made.last().unwrap_or(&self.home)
    }
}

impl Drop for Groups {
    /// Leaves nothing behind, as far as the system lets it.
    fn drop(&mut self) {
        let aside = self.handed.is_some();
        let (first, rest) = self.made.split_at(usize::from(aside).min(self.made.len()));
        if !aside {
            let _ = enter(&self.home);
        } else if let Some(aside) = first.first() {
            let _ = enter(aside);
        }
        rest.iter()
            .rev()
            .for_each(|dir| drop(std::fs::remove_dir(dir)));
        if let Some(control) = &self.handed {
            let _ = std::fs::write(control, "-cpu");
            let _ = enter(&self.home);
        }
        first.iter().for_each(|dir| drop(std::fs::remove_dir(dir)));
    }
}

/// This process's group in the hierarchy that schedules, and whether that is version 2.
fn home(mount: &Path, own: &str) -> io::Result<(PathBuf, bool)> {
    let lines = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?.trim_start_matches('/')))
    });
    let mut unified = None;
    for (controllers, path) in lines {
        if controllers.split(',').any(|c| c == "cpu") {
            let named = [mount.join(controllers), mount.join("cpu")];
            let dir = named.into_iter().find(|dir| dir.is_dir());
            return dir
                .map(|dir| (dir.join(path), false))
                .ok_or_else(|| io::Error::other("the `cpu` hierarchy is not mounted"));
        }
        if controllers.is_empty() {
            unified = Some(mount.join(path));
        }
    }
    let dir = unified.ok_or_else(|| io::Error::other("no cgroup hierarchy with `cpu`"))?;
    let has = std::fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default();
    if has.split_whitespace().any(|c| c == "cpu") {
        Ok((dir, true))
    } else {
        Err(io::Error::other(
            "the group of this process has no `cpu` controller",
        ))
    }
}

fn enter(group: &Path) -> io::Result<()> {
    std::fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_either_version() {
        // Tests run in the folder of their crate.
        let mount = Path::new("tests/data/cgroup");
        let v1 = "9:name=systemd:/\n2:cpuacct:/x\n1:cpu,cpuacct:/user/a\n0::/\n";
        let both = home(mount, v1).unwrap();
        assert_eq!(both, (mount.join("cpu,cpuacct/user/a"), false));
        let v2 = "0::/session.slice\n";
        assert_eq!(
            home(mount, v2).unwrap(),
            (mount.join("session.slice"), true)
        );
        assert!(home(mount, "0::/elsewhere\n").is_err());
        assert!(home(mount, "").is_err());
    }
}
