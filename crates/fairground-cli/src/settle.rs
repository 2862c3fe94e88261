//! `--settled`: balancing settles in the warm-up, but for its last part (docs/settled-start.md).

use fairground_sim::workload::{Known, Workload};

use crate::failure::Failure;

/// Lets balancing settle in the warm-up, but for its last `before_ns`.
///
/// # Errors
/// A warm-up that is not longer than that.
pub fn settle(workload: &mut Workload, before_ns: u64) -> Result<(), Failure> {
    let warmup_ns = workload.warmup_ns;
    if warmup_ns > before_ns {
        workload.settle_ns = warmup_ns - before_ns;
        return Ok(());
    }
    let name = &workload.name;
    let ms = |ns: u64| ns as f64 / 1e6;
    let longer = match Known::of(&workload.argv) {
        Some(Known {
            name, warmup: None, ..
        }) => {
            let what = format!("`{name}` has no warm-up, so nothing of it could settle");
            return Err(Failure::with_help(what, without_settling()));
        }
        Some(Known {
            name,
            warmup: Some(own),
            ..
        }) => {
            format!("a longer warm-up (`-- {name} {own} ...`)")
        }
        None => "a longer warm-up (`warmup`, or --warmup)".to_string(),
    };
    // Where there is none, no --settled is short enough.
    let help = match warmup_ns {
        0 => format!("give the workload {longer}, or leave --settled out"),
        _ => format!("give a shorter --settled, or the workload {longer}"),
    };
    Err(Failure::with_help(
        format!(
            "the warm-up of `{name}`, {} ms, leaves no time to settle before its last {} ms",
            ms(warmup_ns),
            ms(before_ns)
        ),
        help,
    ))
}

/// What there is instead of settling what has no warm-up.
fn without_settling() -> String {
    let settled = Workload::known().iter().filter(|k| k.warmup.is_some());
    let names: Vec<String> = settled.map(|k| format!("`{}`", k.name)).collect();
    format!(
        "leave --settled out: all of its run is measured; scenario files have a warm-up, and {}",
        names.join(", ")
    )
}
