//! Profiles by name, and which one is meant by a kernel that has none.

use fairground::policy::{PROFILES, Profile, find_profile};

use crate::failure::Failure;

/// Major and minor version of a kernel.
pub type Version = (u32, u32);

/// The first kernel that picks by EEVDF.
const EEVDF: Version = (6, 6);

/// How many releases each major version before the last has had: 3.0 to 3.19, 4.0 to 4.20, ...
const RELEASES: [u32; 7] = [0, 0, 0, 20, 21, 20, 20];

/// The profile called `name`.
///
/// # Errors
/// A name that no profile has.
pub fn profile_named(name: &str) -> Result<&'static Profile, Failure> {
    find_profile(name)
        .ok_or_else(|| Failure::with_help(format!("unknown profile `{name}`"), profile_help(name)))
}

/// Which profile is meant by a name that none has: there are few kernels, so all are named.
pub fn profile_help(name: &str) -> String {
    let all: Vec<&str> = PROFILES.iter().map(|p| p.name).collect();
    let near = version(name).map_or(String::new(), near_words);
    format!(
        "{near}known: {}; see `fairground list profiles`",
        all.join(", ")
    )
}

fn near_words(asked: Version) -> String {
    let Some(near) = nearest(asked).map(|profile| profile.name) else {
        return String::new();
    };
    if version(near) == Some(asked) {
        return format!("did you mean `{near}`? ");
    }
    let (major, minor) = asked;
    let why = match asked >= EEVDF {
        true => "picks by EEVDF, as all since 6.6",
        false => "picks by CFS, as all before 6.6",
    };
    format!("Linux {major}.{minor} {why}; the nearest profile that does is `{near}`; ")
}

/// The profile of the nearest version among those that pick as that one does: no other difference
/// between two kernels is as large. Of two as near the newer.
pub fn nearest(asked: Version) -> Option<&'static Profile> {
    let known = PROFILES.iter().filter_map(|p| Some((version(p.name)?, p)));
    let alike = known.filter(|(v, _)| (*v >= EEVDF) == (asked >= EEVDF));
    let apart = |v: Version| release(v).abs_diff(release(asked));
    let near = alike.min_by_key(|(v, _)| (apart(*v), std::cmp::Reverse(*v)));
    near.map(|(_, profile)| profile)
}

/// The first two numbers of a name; a name without any is of no kernel.
pub fn version(name: &str) -> Option<Version> {
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let mut parts = digits.split(|c: char| !c.is_ascii_digit());
    let mut part = || parts.next()?.parse().ok();
    Some((part()?, part().unwrap_or(0)))
}

/// The how manyth release since 3.0 that is.
fn release((major, minor): Version) -> u32 {
    let last = RELEASES.len() as u32;
    let before: u32 = RELEASES.iter().take(major as usize).sum();
    let more = major.saturating_sub(last).saturating_mul(20);
    before.saturating_add(more).saturating_add(minor)
}

#[cfg(test)]
mod tests {
    use fairground::policy::{Features, decisions};

    use super::*;

    #[test]
    fn a_kernel_without_a_profile_has_the_nearest_that_picks_as_it_does() {
        for (asked, near) in [
            ((6, 6), "linux-6.9"),
            ((6, 8), "linux-6.9"),
            ((6, 14), "linux-6.15"),
            ((7, 1), "linux-6.18"),
            ((6, 1), "linux-6.5"),
            ((5, 4), "linux-5.8"),
            ((5, 15), "linux-5.8"),
            ((4, 18), "linux-5.8"),
            ((2, 6), "linux-3.10"),
        ] {
            assert_eq!(nearest(asked).map(|p| p.name), Some(near), "{asked:?}");
        }
        let help = profile_help("linux-6.6");
        let said = "Linux 6.6 picks by EEVDF, as all since 6.6; the nearest profile that does is \
                    `linux-6.9`; known: ";
        assert!(help.starts_with(said), "{help}");
        assert!(profile_help("6.12").starts_with("did you mean `linux-6.12-lts`? "));
        assert!(profile_help("newest").starts_with("known: "));
    }

    #[test]
    fn a_version_may_be_as_large_as_it_likes() {
        for asked in ["linux-6.4294967295", "linux-4294967295.4294967295"] {
            let help = profile_help(asked);
            assert!(
                help.contains("the nearest profile that does is `linux-6.18`"),
                "{help}"
            );
        }
        assert!(profile_help("linux-4294967296").starts_with("known: "));
    }

    /// The border is where the decision says it is.
    #[test]
    fn profiles_pick_as_their_versions_say() {
        let pick = decisions().iter().find(|d| d.name == "pick").unwrap();
        for profile in PROFILES {
            let cfs = (pick.get)(&Features::of_profile(profile)) == "cfs";
            assert_eq!(
                version(profile.name).unwrap() < EEVDF,
                cfs,
                "{}",
                profile.name
            );
        }
    }
}
