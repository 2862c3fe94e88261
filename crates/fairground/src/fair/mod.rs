//! The fair class on one CPU: everything here works on one `&mut Rq`.
