//! What was replayed where: machine, kernel and settings of both replays, and how to get the same
//! again, in the words of `run` and `compare`.

use std::collections::{BTreeMap, BTreeSet};

use fairground::policy::Patch;
use fairground_report::{
    MachineId, Redo, Variant, changes_text, differing, foot_text, head_text, labelled,
};
use fairground_trace::derive::Attributes;
use fairground_trace::derive::attributes::Group;
use fairground_trace::replay::Place;

use crate::decided::{self, SLOW_IN_VAIN, Uses};
use crate::failure::Failure;
use crate::glue;
use crate::group_files::{GroupFile, max_text, weight_text};
use crate::machine_id::machine_id;
use crate::plan::patches;
use crate::plan::titles;
use crate::replay::args::ReplayArgs;
use crate::replay::home::other_kernel;
use crate::what::Setting;

/// Machine and kernel of one replay.
pub struct Kernel {
    /// The machine.
    pub machine: MachineId,
    /// The profile.
    pub profile: String,
    /// Decisions, and the files of groups that were set on the command line; without runs.
    pub variant: Variant,
}

/// Both replays, and how to get them again.
pub struct About {
    /// Where the recording was made.
    pub home: Kernel,
    /// The other one, if there is one.
    pub what_if: Option<Kernel>,
    /// Patches of the other one.
    pub patches: Vec<String>,
    /// What these are and where they come from.
    pub titles: String,
    /// How to get the same again; its seeds are those that were run.
    pub redo: Redo,
    /// What a reader must know before believing the numbers.
    pub notes: Vec<String>,
}

/// What is asked for.
pub struct Asked<'a> {
    /// The command line.
    pub args: &'a ReplayArgs,
    /// The same in words.
    pub command_line: &'a [String],
    /// What is known of the recording, and the same with files of groups written.
    pub known: [&'a Attributes; 2],
    /// Files of groups that are written.
    pub files: &'a [&'a Setting],
    /// What all random numbers come from.
    pub seeds: &'a [u64],
    /// The profile of the recorded kernel.
    pub recorded_profile: &'a str,
}

impl About {
    /// Of a replay at `home` and, if there is one, of the one at the other place.
    ///
    /// # Errors
    /// A patch, profile or file that is not there.
    pub fn new(asked: &Asked<'_>, home: &Place, other: Option<&Place>) -> Result<Self, Failure> {
        let what = &asked.args.what;
        let recorded = asked.recorded_profile;
        let profile = what.profile.as_deref().unwrap_or(recorded);
        let kernel = |place: &Place, profile: &str, known| -> Result<Kernel, Failure> {
            Ok(Kernel {
                machine: machine_id(&place.machine),
                profile: profile.into(),
                variant: Variant {
                    decisions: glue::decisions_of(&place.features),
                    settings: settings(asked.files, known)?,
                    ..Variant::default()
                },
            })
        };
        let [before, after] = asked.known;
        let first = kernel(home, recorded, before)?;
        let what_if = other.map(|place| kernel(place, profile, after));
        let what_if: Option<Kernel> = what_if.transpose()?;
        let mut notes = newer(&first, home, before);
        if let (Some(kernel), Some(place)) = (&what_if, other) {
            notes.extend(of_what_if(asked, kernel, place, home)?);
            if alike(&first, kernel) {
                let note = "both replays make the same decisions, so all differences are 0";
                notes.push(note.into());
            }
        }
        let limited = |known: &Attributes| known.cgroups.iter().any(is_limited);
        if what.slow.is_some() && !limited(before) && !limited(after) {
            notes.push(SLOW_IN_VAIN.into());
        }
        // Both kernels may lack the same.
        let mut said = BTreeSet::new();
        notes.retain(|note| said.insert(note.clone()));
        let last = other.unwrap_or(home);
        let mut redo = Redo::new(
            asked.command_line,
            asked.seeds.to_vec(),
            glue::assumed(&last.machine),
        );
        let slow = what.slow.map(|ns| ("slow".to_string(), format!("{ns} ns")));
        redo.conditions.extend(slow);
        Ok(Self {
            home: first,
            what_if,
            patches: what.patch.clone(),
            titles: titles(what)?,
            redo,
            notes,
        })
    }

    /// Machine and kernel of the replay where the recording was made.
    pub fn home_text(&self) -> String {
        head(&self.home)
    }

    /// The same of the other one, with what differs.
    pub fn what_if_text(&self) -> String {
        let Some(kernel) = &self.what_if else {
            return String::new();
        };
        let mut text = head(kernel);
        for (i, line) in self.titles.lines().enumerate() {
            // Each patch has two lines, its origin is the second.
            let label = if i % 2 == 0 { "patch" } else { "" };
            text += &labelled(label, line);
        }
        let (before, after) = (&self.home.variant, &kernel.variant);
        text + &changes_text(["replayed", "what if"], before, after)
    }

    /// What to know, and how to get the same again.
    pub fn foot(&self) -> String {
        foot_text(&self.redo, &self.notes)
    }

    /// The same for the head of a page.
    pub fn facts(&self) -> Vec<(String, String)> {
        let mut facts = vec![
            ("fairground".to_string(), glue::VERSION.to_string()),
            ("replayed on".into(), self.home.machine.with_parts()),
            ("profile".into(), self.home.profile.clone()),
        ];
        if let Some(kernel) = &self.what_if {
            facts.push(("what if, on".into(), kernel.machine.with_parts()));
            facts.push(("what if, profile".into(), kernel.profile.clone()));
            if !self.patches.is_empty() {
                facts.push(("what if, patch".into(), self.patches.join(", ")));
            }
            for (name, [before, after]) in differing(&self.home.variant, &kernel.variant) {
                let words = format!("{after} (replayed: {before})");
                facts.push((format!("what if, {name}"), words));
            }
        }
        facts
    }

    /// The notes of a page.
    pub fn page_notes(&self) -> Vec<String> {
        let not_modelled = self.redo.not_modelled_text();
        self.notes.iter().cloned().chain(not_modelled).collect()
    }
}

fn head(kernel: &Kernel) -> String {
    head_text(glue::VERSION, &kernel.machine, &kernel.profile, &[])
}

fn alike(a: &Kernel, b: &Kernel) -> bool {
    let of = |k: &Kernel| (k.variant.decisions.clone(), k.variant.settings.clone());
    a.machine == b.machine && of(a) == of(b)
}

/// What the kernel of a replay had not.
fn newer(kernel: &Kernel, place: &Place, known: &Attributes) -> Vec<String> {
    decided::newer(Uses::of_recording(&place.features, known), &kernel.profile)
}

/// What must be told of the kernel of the other replay.
fn of_what_if(
    asked: &Asked<'_>,
    kernel: &Kernel,
    place: &Place,
    home: &Place,
) -> Result<Vec<String>, Failure> {
    let what = &asked.args.what;
    let patches = patches(&what.patch)?;
    let mut notes = Vec::new();
    let mut with = other_kernel(what, home)?;
    for patch in &patches {
        let before = glue::decisions_of(&with);
        patch.apply(&mut with);
        if before == glue::decisions_of(&with) {
            notes.push(has_it(patch, &kernel.profile));
        }
    }
    let cpus = place.machine.topology.nr_cpus();
    notes.extend(decided::overridden(&patches, &place.features));
    notes.extend(decided::grown(&what.set, &place.features, cpus));
    notes.extend(newer(kernel, place, asked.known[1]));
    Ok(notes)
}

fn is_limited(group: &Group) -> bool {
    matches!(group.limit(), Ok((Some(_), _)))
}

/// `compare` switches a patch off in base. The recorded kernel is what it is, so here it stays.
fn has_it(patch: &Patch, profile: &str) -> String {
    let without = patch.base.iter();
    let without: Vec<String> = without.map(|(d, v)| format!("--set {d}={v}")).collect();
    format!(
        "{profile} does what `{}` does, so the patch changes nothing; without it: {}",
        patch.name,
        without.join(" ")
    )
}

/// What the files that the command line writes hold.
fn settings(files: &[&Setting], known: &Attributes) -> Result<BTreeMap<String, String>, Failure> {
    let paths: Vec<String> = known.cgroups.iter().map(|g| g.path.clone()).collect();
    let mut held = BTreeMap::new();
    for setting in files {
        let file = GroupFile::read(setting)?;
        for group in file.find(&paths)? {
            let name = format!("{}/{}", paths[group], file.file);
            held.insert(name, value(&known.cgroups[group], file.file)?);
        }
    }
    Ok(held)
}

fn value(group: &Group, file: &str) -> Result<String, Failure> {
    Ok(match file {
        "cpu.max" => {
            let (quota_ns, period_ns) = group.limit().map_err(Failure::new)?;
            max_text(quota_ns, period_ns)
        }
        "cpu.max.burst" => group.burst_us.unwrap_or(0).to_string(),
        "cpu.idle" => u8::from(group.idle).to_string(),
        _ => match (group.weight, group.shares, group.nice) {
            (Some(weight), _, _) => weight.to_string(),
            (None, Some(shares), _) => weight_text(shares),
            (None, None, Some(nice)) => format!("that of nice {nice}"),
            (None, None, None) => "100".into(),
        },
    })
}
