//! Host cost of one touch.
fn main() {}
