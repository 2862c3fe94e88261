//! The command line of fairground.
fn main() {}
