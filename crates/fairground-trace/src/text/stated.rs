//! What recorders say about the machine around the events: how many CPUs it has, of which the last
//! may have been idle all the time, and the release of its kernel.

use super::SAID;
use super::line::number;
use crate::recording::Recording;

/// Takes it from a line: `#           entries-in-buffer/entries-written: 9/9   #P:12` (ftrace),
/// `cpus=12` (trace-cmd), `# nrcpus online : 12` and `# os release : 6.18.3` (`perf script
/// --header`), `#: cpus = 12` ([`crate::export`], of a simulated run).
pub fn see(text: &[u8], recording: &mut Recording) {
    let cpus = |text: &[u8]| number(text.trim_ascii_start()).map(|(n, _)| n);
    let online = value(text, b"# nrcpus online").and_then(cpus);
    let in_heading = text.strip_prefix(b"cpus=").and_then(cpus);
    let in_table = || {
        let at = memchr::memmem::find(text, b"entries-in-buffer")?;
        let at = at + memchr::memmem::find(&text[at..], b"#P:")?;
        cpus(&text[at + 3..])
    };
    let ours = || {
        let said = text.strip_prefix(SAID.as_bytes())?;
        let value = said.strip_prefix(b"cpus")?.trim_ascii_start();
        value.strip_prefix(b"=").and_then(cpus)
    };
    if let Some(cpus) = online.or(in_heading).or_else(in_table).or_else(ours) {
        recording.states_cpus(cpus);
    }
    if let Some(release) = value(text, b"# os release") {
        recording.states_kernel(release);
    }
}

/// What `perf script --header` writes behind a name and a colon.
fn value<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = text.strip_prefix(name)?.trim_ascii_start();
    rest.strip_prefix(b":").map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_cpus_and_the_kernel_are_read_where_recorders_say_them() {
        for (text, cpus) in [
            ("cpus=12", 12),
            ("# nrcpus online : 12", 12),
            ("# entries-in-buffer/entries-written: 18/18   #P:12", 12),
            ("#: cpus = 12", 12),
            ("#: cpus = [12, 13]", 3),
            ("# nrcpus avail : 16", 3),
            ("cpus=2", 3),
            ("cpus=99999999999", 3),
            ("# a comment about #P:12", 3),
        ] {
            let mut r = Recording::new("test");
            r.cpus = 3;
            see(text.as_bytes(), &mut r);
            assert_eq!(r.cpus, cpus, "{text}");
        }
        let mut r = Recording::new("test");
        see(b"# os release : 5.10.44-1-generic", &mut r);
        assert_eq!(r.kernel.as_deref(), Some("5.10.44-1-generic"));
    }
}
