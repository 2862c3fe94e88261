//! How a system call of a thread takes its reference to an open file. No rule of the scheduler:
//! where threads write to one file it decides with the scheduler who waits for whom.
//!
//! Source: "fs: introduce file_ref_t", Christian Brauner, 2024 (Linux 6.13).

/// What `fdget` does where threads share their table of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileRef {
    /// Reads the count and swaps it unless it was zero, until nobody was quicker
    /// (`atomic_long_inc_not_zero`).
    IncNotZero,
    /// Adds to it, whatever it is (`file_ref_get`).
    Add,
}
