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

/// Starts the program once more, with huge pages asked for, if that can change anything and the
/// environment does not say anything of glibc's tunables yet. Comes back if not.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn ask() {
    use std::os::unix::process::CommandExt;

    const TUNABLES: &str = "GLIBC_TUNABLES";
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let only_who_asks = || std::fs::read_to_string(ENABLED).is_ok_and(|s| s.contains("[madvise]"));
    if std::env::var_os(TUNABLES).is_some() || !only_who_asks() {
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

/// Elsewhere the allocator is not asked.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn ask() {}
