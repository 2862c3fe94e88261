//! Two results that were saved, held against each other as if one command had simulated both.

use std::collections::{BTreeMap, BTreeSet};

use crate::differing::differing;
use crate::redo::Redo;
use crate::result::{Compare, Note, OfSaved, OfSeeds, SameCounts, Setup};
use crate::saved::Saved;

/// Compares two saved results, say of two builds of a changed engine.
///
/// Of a saved comparison, `base` gives its base and `patch` its patch; so a comparison held
/// against itself is that comparison. Differences of machine, profile, workload and version are
/// noted, not refused.
pub fn compare_saved(base: Saved, patch: Saved) -> Compare {
    let mut notes = left_out(&base, &patch);
    // Held against itself it says what it said, also of what is not saved with each side.
    let known = match &base {
        Saved::Compare(compare) if base == patch => compare.notes.clone(),
        _ => Vec::new(),
    };
    let (base_setup, base_variant) = base.into_variant("base");
    let (patch_setup, patch_variant) = patch.into_variant("patch");
    let differ = setup_notes(&base_setup, &patch_setup);
    let unlike = Note::Seeds(OfSeeds::SameCounts(SameCounts::NotReached));
    let alike = differ.is_empty() && !known.contains(&unlike);
    notes.extend(differ);
    let mut metrics = base_setup.workload_metrics.clone();
    metrics.extend(patch_setup.workload_metrics);
    let profile = match patch_setup.profile == base_setup.profile {
        true => patch_setup.profile,
        false => format!("{} (base: {})", patch_setup.profile, base_setup.profile),
    };
    let other = Some(patch_setup.machine).filter(|machine| !machine.is(&base_setup.machine));
    let setup = Setup {
        workload_metrics: metrics,
        profile,
        ..base_setup
    };
    let mut compare = Compare::of(setup, base_variant, patch_variant, alike);
    compare.patch_machine = other;
    let seeds = |side: usize| -> Vec<u64> {
        let runs = &compare.variants[side].runs;
        runs.iter().map(|run| run.seed).collect()
    };
    let (of_base, of_patch) = (seeds(0), seeds(1));
    compare.redo = Redo {
        command: format!("{}\n{}", compare.redo.command, patch_setup.redo.command),
        patch_seeds: if of_patch == of_base {
            Vec::new()
        } else {
            of_patch
        },
        seeds: of_base,
        ..compare.redo
    };
    compare.notes.splice(0..0, notes);
    let known = known.into_iter().filter(|n| !compare.notes.contains(n));
    let known: Vec<Note> = known.collect();
    compare.notes.extend(known);
    compare
}

/// What two saved comparisons have that is in none of the columns.
fn left_out(base: &Saved, patch: &Saved) -> Vec<Note> {
    if base == patch {
        return Vec::new();
    }
    let of = |saved: &Saved, side: usize, file, taken, other| {
        let Saved::Compare(compare) = saved else {
            return None;
        };
        let sets = differing(&compare.variants[0], &compare.variants[1]);
        let value = |(name, values): &(String, [String; 2])| format!("{name} = {}", values[side]);
        let sets = sets.iter().map(value).collect();
        Some(Note::Saved(OfSaved::LeftOut {
            file,
            taken,
            other,
            sets,
        }))
    };
    let notes = [
        of(base, 1, "first", "base", "patch"),
        of(patch, 0, "second", "patch", "base"),
    ];
    notes.into_iter().flatten().collect()
}

/// In what the results were made with they differ.
fn setup_notes(base: &Setup, patch: &Setup) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut differ = |what: &str, base: String, patch: String| {
        if base != patch {
            let what = what.into();
            notes.push(Note::Saved(OfSaved::Differ { what, base, patch }));
        }
    };
    let machine = |s: &Setup| format!("{} ({})", s.machine.id, s.machine.hash);
    differ("machine", machine(base), machine(patch));
    differ("profile", base.profile.clone(), patch.profile.clone());
    differ(
        "workload",
        base.workload.join(" "),
        patch.workload.join(" "),
    );
    differ("version", base.fairground.clone(), patch.fairground.clone());
    let (b, p) = (&base.redo.conditions, &patch.redo.conditions);
    let keys: BTreeSet<&String> = b.keys().chain(p.keys()).collect();
    for key in keys {
        let of = |side: &BTreeMap<String, String>| side.get(key).map_or("none", |v| v).to_string();
        differ(key, of(b), of(p));
    }
    notes
}
