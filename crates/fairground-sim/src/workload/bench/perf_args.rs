//! Options of `perf bench` itself, which stand before the name of a benchmark and are put behind
//! it, by their long names: there `-f` and `-r` may mean something else.
use super::{Error, bad};
use crate::workload::program::Workload;

/// What they say to a benchmark that does not repeat.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Common {
    /// Format of the output (`perf bench -f FORMAT`): default, or simple for the figure alone.
    #[arg(long, value_name = "FORMAT", default_value = "default",
          value_parser = ["default", "simple"])]
    pub format: String,
    /// For benchmarks of futexes (`perf bench -r N`).
    #[arg(long, value_name = "N", hide = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
}

impl Common {
    /// The lines before the result, if they are to be printed.
    pub fn head(&self, head: String) -> String {
        if self.format == "simple" {
            String::new()
        } else {
            head
        }
    }

    /// Says what is not done.
    pub fn note(&self, w: &mut Workload) {
        if self.repeat.is_some_and(|n| n > 1) {
            let note = "perf bench --repeat is left out: only the benchmarks of futexes repeat";
            w.notes.push(note.into());
        }
    }
}

/// The options of `perf bench` behind the name of the benchmark, which has two words.
pub(super) fn in_order(mut argv: Vec<String>) -> Result<Vec<String>, Error> {
    let mut rest = argv.split_off(2).into_iter().peekable();
    let mut common = Vec::new();
    while let Some(arg) = rest.next_if(|arg| arg.starts_with('-')) {
        let Some((name, value)) = split(&arg) else {
            argv.push(arg);
            continue;
        };
        let value = match value {
            Some(value) => value.to_owned(),
            None => rest
                .next()
                .ok_or_else(|| bad("perf bench", format!("{name} needs a value")))?,
        };
        common.push(format!("{name}={value}"));
    }
    argv.extend(rest.by_ref().take(2));
    argv.extend(common);
    argv.extend(rest);
    Ok(argv)
}

/// The long name of an option and its value, where that stands in the same word.
fn split(arg: &str) -> Option<(&'static str, Option<&str>)> {
    [("--format", "-f"), ("--repeat", "-r")]
        .into_iter()
        .find_map(|(long, short)| {
            if let Some(rest) = arg.strip_prefix(long) {
                return match rest.strip_prefix('=') {
                    Some(value) => Some((long, Some(value))),
                    None => rest.is_empty().then_some((long, None)),
                };
            }
            let value = arg.strip_prefix(short)?;
            Some((long, (!value.is_empty()).then_some(value)))
        })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error, make};
    use crate::workload::marks::{MARK_END, MARK_START};
    use crate::workload::program::Op;

    #[test]
    fn options_of_perf_bench_stand_before_the_name() {
        for way in ["-r 3", "-r3", "--repeat 3", "--repeat=3"] {
            let w = make(&format!("perf bench {way} futex wake -m"));
            let main = &w.programs.last().unwrap().ops;
            assert!(main.contains(&Op::LoopStart { count: 3 }), "{way}");
        }
        let w = make("perf bench --repeat=3 sched pipe -l 10");
        assert!(w.notes[0].contains("only the benchmarks of futexes"));
        assert!(error("perf bench -r").contains("needs a value"));
    }

    #[test]
    fn the_simple_format_is_the_figure_alone() {
        for (line, printed) in [
            ("perf bench -f simple sched pipe -l 1000", "0.012"),
            ("perf bench --format=simple sched messaging", "0.012"),
            (
                "perf bench -fsimple mem memset -s 1MB -f default",
                "83432208.784214",
            ),
        ] {
            let w = make(line);
            let mut marks = w.empty_marks();
            marks.mark(MARK_START, 1_000);
            marks.mark(MARK_END, 12_569_000);
            assert_eq!(w.words.print(&marks), printed, "{line}");
        }
        let w = make("perf bench -f simple futex wake -s");
        let mut marks = w.empty_marks();
        marks.request(0, 0, 120_000);
        assert!(w.words.print(&marks).starts_with("Run summary"));
    }
}
