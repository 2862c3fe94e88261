//! Reading what `zstd` has compressed.

use std::io::{self, Read};

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// Most memory that a file may ask for, as a power of two: what `zstd --long` takes.
const WINDOW_LOG_MAX: u32 = 27;
/// So much is read at a time.
const BUFFER: usize = 128 << 10;

/// A source, unpacked as it is read.
pub struct ZstdReader<R> {
    source: R,
    context: DCtx<'static>,
    buffer: Vec<u8>,
    at: usize,
    /// Whether a frame has begun and not ended.
    inside: bool,
}

impl<R: Read> ZstdReader<R> {
    pub fn new(source: R) -> Self {
        let mut context = DCtx::create();
        // Without the parameter the limit is the library's own, which is no lower.
        let _ = context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX));
        Self {
            source,
            context,
            buffer: Vec::new(),
            at: 0,
            inside: false,
        }
    }
}

impl<R: Read> Read for ZstdReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_string());
        while !out.is_empty() {
            if self.at == self.buffer.len() {
                self.buffer.resize(BUFFER, 0);
                let n = self.source.read(&mut self.buffer)?;
                self.buffer.truncate(n);
                self.at = 0;
                if n == 0 && self.inside {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if n == 0 {
                    return Ok(0);
                }
            }
            let mut from = InBuffer::around(&self.buffer[self.at..]);
            let mut to = OutBuffer::around(&mut *out);
            let left = self.context.decompress_stream(&mut to, &mut from);
            let left = left.map_err(|code| bad(zstd_safe::get_error_name(code)))?;
            self.inside = left > 0;
            self.at += from.pos();
            let written = to.pos();
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compressed_comes_back_and_a_cut_is_told() {
        let plain: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut packed = vec![0; zstd_safe::compress_bound(plain.len())];
        let n = zstd_safe::compress(&mut packed[..], &plain, 3).unwrap();
        packed.truncate(n);
        // Two frames, one behind the other.
        let twice = [&packed[..], &packed].concat();
        let mut back = Vec::new();
        ZstdReader::new(&twice[..]).read_to_end(&mut back).unwrap();
        assert!(back == [&plain[..], &plain].concat());
        let mut some = Vec::new();
        let cut = ZstdReader::new(&packed[..n / 2]).read_to_end(&mut some);
        let kind = cut.map_err(|e| e.kind());
        assert_eq!(kind, Err(io::ErrorKind::UnexpectedEof));
        assert!(plain.starts_with(&some));
    }
}
