//! A file that is written in one step: there is the old one or all of the new one, never a half.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Checks, before minutes are spent, that the file can be written.
///
/// # Errors
/// It cannot.
pub fn check(path: &Path) -> Result<()> {
    // A name that is too long would show only when it is given to the file.
    if let Err(e) = path.symlink_metadata()
        && e.kind() != ErrorKind::NotFound
    {
        return Err(e);
    }
    let (temporary, _) = temporary(path)?;
    std::fs::remove_file(temporary)
}

/// Lets `body` write the file, which replaces the old one, if there is one, and keeps its mode.
///
/// # Errors
/// It cannot be written; then all is as it was.
pub fn write(path: &Path, body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let (temporary, file) = temporary(path)?;
    let done = fill(file, body).and_then(|()| std::fs::rename(&temporary, path));
    done.inspect_err(|_| {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&temporary);
    })
}

/// Lets `body` write to what is open.
///
/// # Errors
/// It cannot be written.
pub fn fill(file: File, body: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::new(file);
    body(&mut out)?;
    out.flush()
}

/// A new file beside `path`, with the mode of that from the first moment on. Its name is short,
/// however long that of `path` is: a file system has a longest one.
fn temporary(path: &Path) -> Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let old = path.metadata().map(|old| old.permissions()).ok();
    #[cfg(unix)]
    if let Some(old) = &old {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(old.mode() & 0o777);
    }
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".fairground-{}-{number}.tmp", std::process::id());
        let temporary = path.with_file_name(name);
        match options.open(&temporary) {
            // Of another computer that writes to this directory, or of a program that was killed.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
            Ok(file) => {
                if let Some(old) = old {
                    // For what the umask took; some file systems have no modes.
                    let _ = file.set_permissions(old);
                }
                return Ok((temporary, file));
            }
        }
    }
}
