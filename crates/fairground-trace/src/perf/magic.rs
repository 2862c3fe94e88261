//! How recordings of perf begin, files and what went through a pipe.

/// How a file begins, on a machine of either byte order.
pub const MAGICS: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];
