//! Groups of a derived workload, and what is written to them.

use fairground::math::weight::nice_to_weight;
use fairground_sim::workload::program::{Cgroup, CgroupWrite, Event};

use super::attributes::limit;
use super::refused::no_group;
use super::workload::Builder;

/// That writes of a run are left out.
const PARTLY: &str = "what the run wrote to files of groups meanwhile is left out, as the trace \
                      does not have all of the run";

impl Builder<'_> {
    /// The groups, parents first.
    pub(super) fn groups(&mut self) -> Result<(), String> {
        for words in &self.from.attributes.cgroups {
            let at = |e: String| format!("cgroup `{}`: {e}", words.path);
            // What is written on the command line has not been in a file.
            words.check().map_err(|(_, wrong)| at(wrong))?;
            let parent = match words.above() {
                None | Some("/") => 0,
                Some(above) => self.group(above).map_err(at)?,
            };
            let mut group = Cgroup::new(&words.path, parent);
            if let Some(weight) = words.weight {
                group.shares = Cgroup::shares_of_weight(weight);
            }
            group.shares = words.shares.unwrap_or(group.shares);
            if let Some(nice) = words.nice {
                group.shares = nice_to_weight(nice).into();
            }
            (group.quota_ns, group.period_ns) = words.limit().map_err(at)?;
            group.burst_ns = words.burst_us.unwrap_or(0).saturating_mul(1000);
            group.idle = words.idle;
            group.cpuset = words.cpus.clone().map(|cpus| self.mask(cpus));
            self.out.workload.cgroups.push(group);
        }
        // Here, where it is known which words are wrong: many threads may be meant by them.
        for words in &self.from.attributes.threads {
            let group = words.cgroup.as_ref().map(|path| self.group(path));
            group
                .transpose()
                .map_err(|e| format!("{}: {e}", words.who()))?;
        }
        Ok(())
    }

    /// What was written to groups during a simulated run, which is replayed on the same clock.
    pub(super) fn writes(&mut self) -> Result<(), String> {
        let run = self.from.attributes.run.as_ref();
        let Some(run) = run.filter(|run| !run.writes.is_empty()) else {
            return Ok(());
        };
        if !self.is_whole() {
            self.out.notes.push(PARTLY.into());
            return Ok(());
        }
        for words in &run.writes {
            let at = |e: String| format!("write to `{}`: {e}", words.cgroup);
            let cgroup = self.group(&words.cgroup).map_err(at)?;
            let max = words.max.as_deref().map(limit).transpose().map_err(at)?;
            let max = max.map(|(quota_ns, period_ns)| CgroupWrite::Max {
                quota_ns,
                period_ns,
            });
            let burst = words.burst_us.map(|us| us.saturating_mul(1000));
            let writes = [
                max,
                burst.map(CgroupWrite::Burst),
                words.shares.map(CgroupWrite::Shares),
                words.idle.map(CgroupWrite::Idle),
            ];
            let at_ns = words.at_ns;
            let events = writes.into_iter().flatten().map(|write| Event {
                at_ns,
                cgroup,
                write,
            });
            self.out.workload.events.extend(events);
        }
        Ok(())
    }

    /// A group by its path.
    pub(super) fn group(&self, path: &str) -> Result<u32, String> {
        let groups = &self.out.workload.cgroups;
        let found = groups.iter().position(|g| g.path == path);
        found.map(|i| i as u32).ok_or_else(|| {
            let known: Vec<&str> = groups.iter().map(|g| g.path.as_str()).collect();
            no_group(path, &known)
        })
    }
}
