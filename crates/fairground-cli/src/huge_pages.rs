//! Huge pages for the state of simulated machines.
//!
//! A run of hundreds of CPUs goes at random through some 100 MB, more than the translation buffers
//! of a processor cover in pages of 4 KiB, and the more so in a virtual machine. Where the kernel
//! gives huge pages only to those that ask (`madvise`), the allocator has to ask. That of glibc
//! takes this wish from the environment, before `main`: so the program starts itself once more.
//! What it saves is in `docs/performance.md`; results are the same.
//!
//! Sources: glibc manual, "Memory Allocation Tunables" (`glibc.malloc.hugetlb`); kernel
//! documentation, `admin-guide/mm/transhuge.rst`.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::ffi::OsStr;

/// Starts the program once more, with huge pages asked for, if that can change anything and the
/// environment does not say anything of glibc's tunables yet. Comes back if not.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn ask() {
    use std::os::unix::process::CommandExt;

    const TUNABLES: &str = "GLIBC_TUNABLES";
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let enabled = std::fs::read_to_string(ENABLED).unwrap_or_default();
    if !is_wanted(std::env::var_os(TUNABLES).as_deref(), &enabled) {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let mut words = std::env::args_os();
    let mut again = std::process::Command::new(program);
    if let Some(name) = words.next() {
        again.arg0(name);
    }
    // It returns only if it could not be done, and then small pages do.
    let _ = again
        .args(words)
        .env(TUNABLES, "glibc.malloc.hugetlb=1")
        .exec();
}

/// Whether to ask: `enabled` is the kernel's rule in brackets, among those that it could have.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn is_wanted(tunables: Option<&OsStr>, enabled: &str) -> bool {
    tunables.is_none() && enabled.contains("[madvise]")
}

/// Elsewhere the allocator is not asked.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn ask() {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// A machine has one rule; `tests/huge_pages.rs` starts the program under that.
    #[test]
    fn only_a_kernel_that_waits_to_be_asked_is_asked() {
        for (enabled, wanted) in [
            ("always [madvise] never\n", true),
            ("[always] madvise never\n", false),
            ("always madvise [never]\n", false),
            // No such file: a kernel without huge pages.
            ("", false),
        ] {
            assert_eq!(is_wanted(None, enabled), wanted, "{enabled}");
            // Also an empty variable says something.
            for tunables in ["", "glibc.malloc.hugetlb=1"] {
                assert!(!is_wanted(Some(OsStr::new(tunables)), enabled));
            }
        }
    }
}
