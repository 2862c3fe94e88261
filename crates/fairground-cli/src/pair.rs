//! Base and patch on one machine under one workload: what `compare` simulates in each place.

use std::path::Path;

use fairground::policy::Patch;
use fairground_report::{Catalogue, Compare};
use fairground_sim::outcome::Outcome;

use crate::args::{CompareArgs, What};
use crate::decided::{self, Uses};
use crate::failure::Failure;
use crate::glue;
use crate::group_settings::{self, side_by_side};
use crate::plan::{Case, Plan, Side, patches};
use crate::profile_names::profile_named;
use crate::simulate::Job;

/// Two kernels, one machine, one workload.
pub struct Pair {
    /// What they have in common.
    pub plan: Plan,
    base: Case,
    patch: Case,
    /// Profile, with that of base if it is another.
    pub profile: String,
    /// What became of what was asked for.
    decided: Vec<String>,
}

impl Pair {
    /// Of what was asked for; everything that can be wrong is refused here.
    ///
    /// # Errors
    /// Anything unknown, contradictory or unreadable, and nothing to compare.
    pub fn new(
        args: &CompareArgs,
        what: &What,
        file: Option<&Path>,
        workload: &[String],
    ) -> Result<Self, Failure> {
        let patches = patches(&what.patch)?;
        if patches.is_empty()
            && what.set.is_empty()
            && args.base.is_empty()
            && args.base_profile.is_none()
        {
            return Err(Failure::with_help(
                "nothing to compare",
                "give --patch, --set, --base or --base-profile, or two saved results; \
                 `fairground list patches` shows the patches",
            ));
        }
        let plan = Plan::new(what, file, workload)?;
        let base_profile = match &args.base_profile {
            Some(name) => profile_named(name)?,
            None => plan.profile,
        };
        let mut base = plan.case(base_profile, &patches, Side::Base, &args.base)?;
        let mut patch = plan.case(plan.profile, &patches, Side::Patch, &what.set)?;
        base.check()?;
        patch.check()?;
        side_by_side(&mut [&mut base, &mut patch]);
        let profile = if base_profile.name == plan.profile.name {
            plan.profile.name.into()
        } else {
            format!("{} (base: {})", plan.profile.name, base_profile.name)
        };
        let cpus = plan.machine.topology.nr_cpus();
        let mut told = decided::overridden(&patches, &patch.features);
        let mut grown = decided::grown(&args.base, &base.features, cpus);
        grown.extend(decided::grown(&what.set, &patch.features, cpus));
        let sides = [(&base, base_profile), (&patch, plan.profile)];
        for (side, profile) in sides {
            let uses = Uses::of(&side.features, &side.workload);
            grown.extend(decided::newer(uses, profile.name));
        }
        grown.dedup();
        told.extend(grown);
        told.extend(decided::slow_in_vain(&patch));
        Ok(Self {
            plan,
            base,
            patch,
            profile,
            decided: told,
        })
    }

    /// The metrics that there will be.
    pub fn catalogue(&self) -> Catalogue {
        Catalogue::new(glue::metric_info(&self.patch.workload))
    }

    /// Base and patch, as the machine runs them.
    pub fn jobs(&self) -> [Job<'_>; 2] {
        [&self.base, &self.patch].map(|case| case.job(&self.plan.machine))
    }

    /// What came of the runs; `command_line` is what gives the same again.
    pub fn result(
        &self,
        base_runs: Vec<Outcome>,
        patch_runs: Vec<Outcome>,
        command_line: &[String],
    ) -> Compare {
        let setup = glue::setup(&self.plan, &self.patch, self.profile.clone(), command_line);
        let base = glue::variant(&self.base, base_runs);
        let patch = glue::variant(&self.patch, patch_runs);
        let groups = group_settings::alike(&self.base.workload, &self.patch.workload);
        let alike = base.decisions == patch.decisions && groups;
        let mut result = Compare::new(setup, base, patch);
        let of_patch = &self.patch.workload.notes;
        let of_base = &self.base.workload.notes;
        let only = of_base.iter().filter(|note| !of_patch.contains(note));
        result.notes.extend(of_patch.iter().chain(only).cloned());
        result.notes.extend(self.decided.iter().cloned());
        if alike {
            let note = "base and patch make the same decisions, so all differences are 0";
            result.notes.push(note.into());
        } else if result.is_the_same_throughout() {
            let note = "base and patch are the same in every count of every run: this workload did \
                        not reach what differs between them";
            result.notes.push(note.into());
        }
        result
    }
}

/// What the patches are and where they come from.
///
/// # Errors
/// A name that no patch has.
pub fn titles(what: &What) -> Result<String, Failure> {
    let title = |patch: &&Patch| {
        format!(
            "{}: {}\n          {}\n",
            patch.name, patch.what, patch.origin
        )
    };
    Ok(patches(&what.patch)?.iter().map(title).collect())
}
