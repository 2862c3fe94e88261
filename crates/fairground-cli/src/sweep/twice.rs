//! Values of one `--over` that mean the same: its points would be run twice, and the second would
//! be told to be `same` as if its value did nothing.

use std::path::Path;

use fairground::policy::Features;
use fairground_sim::machine_file::Machine;
use fairground_sim::workload::Workload;

use super::{OF_MACHINES, cpus_of, setting};
use crate::failure::Failure;
use crate::group_files::{GroupFile, Write, paths};
use crate::plan::set;

/// Refuses two values that mean the same: `50ms`, `50ms/100ms` and `50000` are one limit, `3ms` and
/// `3000000` one slice.
///
/// # Errors
/// Two that do, or one that cannot be read.
pub fn refuse(name: &str, values: &[String], workload: &Workload) -> Result<(), Failure> {
    let mut known: Vec<(&String, Meant)> = Vec::new();
    for value in values {
        let meant = Meant::by(name, value, workload)?;
        if let Some((first, _)) = known.iter().find(|(_, other)| *other == meant) {
            let message = format!("`{first}` and `{value}` of `--over {name}` are the same");
            return Err(Failure::with_help(message, "leave one of them out"));
        }
        known.push((value, meant));
    }
    Ok(())
}

/// What a value means.
#[derive(PartialEq)]
enum Meant {
    /// Of a file of groups: what is written, group by group.
    Writes(Vec<Write>),
    /// Of a decision: all decisions with it.
    Features(Box<Features>),
    /// Of what machines have, in one spelling.
    Named(String),
}

impl Meant {
    fn by(name: &str, value: &str, workload: &Workload) -> Result<Self, Failure> {
        if name.contains('/') {
            return writes(name, value, workload).map(Self::Writes);
        }
        if !OF_MACHINES.contains(&name) {
            let mut features = Features::default();
            set(&mut features, name, value)?;
            return Ok(Self::Features(Box::new(features)));
        }
        Ok(Self::Named(match name {
            "cpus" => cpus_of(value)?.to_string(),
            // Machines know their states in any case.
            "max-idle" => value.to_ascii_lowercase(),
            "machine" => machine(value),
            _ => value.into(),
        }))
    }
}

/// What is written to each group, with the period that it has if none is given.
fn writes(name: &str, value: &str, workload: &Workload) -> Result<Vec<Write>, Failure> {
    let file = GroupFile::read(&setting(name, value))?;
    let written = |group: usize| match file.write {
        Write::Max {
            quota_ns,
            period_ns,
        } => Write::Max {
            quota_ns,
            period_ns: period_ns.or(Some(workload.cgroups[group].period_ns)),
        },
        ref other => other.clone(),
    };
    let groups = file.find(&paths(workload))?;
    Ok(groups.into_iter().map(written).collect())
}

/// A machine's name, of a file the one in full.
fn machine(name: &str) -> String {
    let Some((file, _)) = Machine::file_of(name) else {
        return name.into();
    };
    match Path::new(file).canonicalize() {
        Ok(path) => format!("{}{}", path.display(), &name[file.len()..]),
        Err(_) => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use fairground_sim::workload::Env;
    use fairground_sim::workload::program::Cgroup;

    use super::*;

    fn refused(name: &str, values: &[&str]) -> String {
        let workload = Workload::from_argv(&["hogs", "--cgroup", "/"], &Env { cpus: 8 });
        let mut workload = workload.expect("hogs in the root");
        let groups = (0..2).map(|n| Cgroup::new(format!("/g.{n}"), 0));
        workload.cgroups.extend(groups);
        let values: Vec<String> = values.iter().map(|v| (*v).into()).collect();
        let refused = refuse(name, &values, &workload).err();
        refused.map_or(String::new(), |e| e.text(false))
    }

    #[test]
    fn values_that_write_the_same_are_refused() {
        let said = refused("/g/cpu.max", &["20ms", "50ms", "50ms/100ms"]);
        assert!(
            said.contains("`50ms` and `50ms/100ms` of `--over /g/cpu.max`"),
            "{said}"
        );
        assert!(refused("/g.0/cpu.max", &["50000", "50ms"]).contains("are the same"));
        assert!(refused("/g.0/cpu.max", &["max", "max/100ms"]).contains("are the same"));
        assert_eq!(refused("/g.0/cpu.max", &["50ms", "50ms/50ms", "max"]), "");
        assert!(refused("/g/cpu.max.burst", &["1ms", "1000"]).contains("are the same"));
    }

    #[test]
    fn values_in_two_spellings_are_refused() {
        for (name, first, second) in [
            ("base_slice_ns", "3ms", "3000000"),
            ("max-idle", "C1", "c1"),
            ("cpus", "8", "08"),
            ("machine", "Cargo.toml", "./Cargo.toml"),
        ] {
            let said = refused(name, &[first, second]);
            let told = format!("`{first}` and `{second}` of `--over {name}` are the same");
            assert!(said.contains(&told), "{name}: {said}");
        }
        for (name, values) in [
            ("base_slice_ns", ["3ms", "3001us"]),
            ("hz", ["100", "250"]),
            ("max-idle", ["C1", "C1E"]),
            ("cpus", ["4", "8"]),
            ("machine", ["icx-8358-2s", "spr-8480-2s"]),
            ("machine", ["a.xml@icx-8358-2s", "a.xml@spr-8480-2s"]),
            ("profile", ["linux-6.5", "linux-6.18"]),
        ] {
            assert_eq!(refused(name, &values), "", "{name}");
        }
    }
}
