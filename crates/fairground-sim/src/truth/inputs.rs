//! Cases whose recordings have set figures of the model: that they agree is not evidence.

/// Case, and what it has set; `docs/calibration.md` says how.
pub const INPUTS: &[(&str, &str)] = &[
    (
        "f1-pipe-same-cpu",
        "how a wake-up and a sleep are divided, prepare_to_wait, the tracer at a switch",
    ),
    ("f4-pipe-and-hog", "how a sleep is divided"),
    (
        "f2-pipe-two-cpus-fill",
        "ipi_to_handler and idle_loop_exit of the guest",
    ),
    ("f3-pipe-unpinned-fill", "idle_loop_exit of the guest"),
];

/// What the recording of `case` has set; `None` if nothing.
#[must_use]
pub fn has_set(case: &str) -> Option<&'static str> {
    let input = INPUTS.iter().find(|(name, _)| *name == case);
    input.map(|(_, figures)| *figures)
}
