//! Base and patch on one machine under one workload: what `compare` simulates in each place.

use std::path::Path;

use fairground_report::{Catalogue, Compare};
use fairground_sim::outcome::Outcome;

use crate::apart;
use crate::args::CompareArgs;
use crate::decided;
use crate::failure::Failure;
use crate::glue;
use crate::group_settings::side_by_side;
use crate::plan::{Case, Plan, Side, patches};
use crate::profile_names::profile_named;
use crate::simulate::Job;
use crate::what::What;

/// Two kernels, one machine, one workload.
pub struct Pair {
    /// What they have in common.
    pub plan: Plan,
    base: Case,
    patch: Case,
    /// Profile, with that of base if it is another.
    pub profile: String,
    /// What must be known of the runs of base, and of patch.
    told: [Vec<String>; 2],
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
        for case in [&mut base, &mut patch] {
            case.apart = apart::groups(args.fail_on.iter().chain(&args.metric));
        }
        let profile = if base_profile.name == plan.profile.name {
            plan.profile.name.into()
        } else {
            format!("{} (base: {})", plan.profile.name, base_profile.name)
        };
        let told = [
            decided::of_side(&plan, &base, base_profile.name, &[], &args.base),
            decided::of_runs(&plan, &patch, &patches, &what.set),
        ];
        Ok(Self {
            plan,
            base,
            patch,
            profile,
            told,
        })
    }

    /// The metrics that there will be.
    pub fn catalogue(&self) -> Catalogue {
        Catalogue::new(glue::metric_info(&self.patch.workload, &self.patch.apart))
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
        let [of_base, of_patch] = self.told.clone();
        let base = glue::variant(&self.base, base_runs, of_base);
        let patch = glue::variant(&self.patch, patch_runs, of_patch);
        Compare::new(setup, base, patch)
    }
}
