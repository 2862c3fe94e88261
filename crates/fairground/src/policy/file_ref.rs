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

/// What is on the line of the count.
///
/// Whoever else uses the file takes that line away, and a call that still has to look at the file,
/// as `fsnotify` does at its end, fetches it once more. Sources: "fs.h: Optimize file struct to
/// prevent false sharing", chenzhiyin, 2023 (Linux 6.5: `f_op`, `f_path` and `f_inode` leave the
/// line, `f_mode` comes to it); "fs: place f_ref to 3rd cache line in struct file to resolve false
/// sharing", Pan Deng, 2025 (Linux 6.15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileRefLine {
    /// Fields that each call reads: `f_mode`, before Linux 6.5 `f_op` and `f_inode`.
    Fields,
    /// None of these.
    Own,
}
