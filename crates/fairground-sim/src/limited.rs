//! Files that are held in memory as a whole, up to a size. Their own size does not limit them: a
//! device and a pipe have none, and what is packed says little about what it becomes.

use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The text of a file of at most `bytes_max` bytes.
///
/// # Errors
/// It cannot be read, is no UTF-8, or is larger ([`ErrorKind::FileTooLarge`]).
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    text(std::fs::File::open(path)?, bytes_max)
}

/// The text of a source of at most `bytes_max` bytes, of which no more than that is read.
///
/// # Errors
/// As [`read_text`].
pub fn text(source: impl Read, bytes_max: u64) -> Result<String> {
    let mut bytes = Vec::new();
    // One byte more than is allowed shows that there is too much.
    source.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let message = format!("it has more than {} MiB", bytes_max >> 20);
        return Err(Error::new(ErrorKind::FileTooLarge, message));
    }
    let wrong = |_| Error::new(ErrorKind::InvalidData, "it is no UTF-8 text");
    String::from_utf8(bytes).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_is_allowed() {
        let endless = || std::io::repeat(b'x');
        let told = text(endless(), 2 << 20).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::FileTooLarge);
        assert_eq!(told.to_string(), "it has more than 2 MiB");
        assert_eq!(text(endless().take(7), 7).unwrap(), "xxxxxxx");
        // What is cut off in the middle of a letter is too long, not damaged.
        let told = text("\u{e4}\u{e4}".as_bytes(), 2).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::FileTooLarge);
        let told = text(&b"\xff"[..], 2).unwrap_err();
        assert_eq!(told.to_string(), "it is no UTF-8 text");
    }
}
