//! Recordings of `perf`: `perf.data`, as a file or through a pipe.

mod data;
mod magic;
mod pipe;
mod sample;

pub use data::read;
pub use magic::MAGICS;
