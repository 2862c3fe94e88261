//! Progress on standard error, if that is a terminal and somebody wants it.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over `total`, drawn by `template` (of `indicatif`), or nothing.
pub fn bar(total: u64, template: &str, hidden: bool) -> ProgressBar {
    let target = if hidden {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar over `total` of `what`, or nothing.
pub fn counted(total: u64, what: &str, hidden: bool) -> ProgressBar {
    let template = format!("{{pos}}/{{len}} {what} {{wide_bar}} {{elapsed_precise}}");
    bar(total, &template, hidden)
}
