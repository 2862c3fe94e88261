//! Command lines of sysbench as people have them: the test's name anywhere, `_` for `-`, names of
//! options of version 0.5, options that mean nothing where the database is a model.

/// Options by their old names, which version 1.0 still takes.
const RENAMED: [(&str, &str); 3] = [
    ("--num-threads", "--threads"),
    ("--max-requests", "--events"),
    ("--max-time", "--time"),
];

/// Why options that begin so are left out.
const IGNORED: [(&str, &str); 16] = [
    ("--pgsql-", NO_CONNECTION),
    ("--mysql-", NO_CONNECTION),
    ("--db-ps-mode", NO_CONNECTION),
    ("--db-debug", NO_CONNECTION),
    ("--rand-", "all random choices are made evenly"),
    ("--report-interval", ONE_REPORT),
    ("--verbosity", ONE_REPORT),
    ("--histogram", ONE_REPORT),
    ("--debug", ONE_REPORT),
    ("--auto-inc", NO_WRITES),
    ("--create-secondary", NO_WRITES),
    ("--create-table-options", NO_WRITES),
    ("--secondary", NO_WRITES),
    ("--delete-inserts", NO_WRITES),
    ("--index-updates", NO_WRITES),
    ("--non-index-updates", NO_WRITES),
];
const NO_CONNECTION: &str = "the database is a model, nobody connects to it";
const ONE_REPORT: &str = "there is one report, at the end";
const NO_WRITES: &str = "tables are always there and are only read";

/// The test's name second, options by the names that they have now, and notes on those that are
/// left out.
pub(super) fn in_order(argv: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut test, mut rest, mut notes) = (None, Vec::new(), Vec::new());
    for arg in argv.iter().skip(1) {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg.as_str(), None),
        };
        if !name.starts_with("--") {
            if test.is_none() && !name.starts_with('-') {
                test = Some(test_name(arg));
            } else {
                rest.push(arg.clone());
            }
            continue;
        }
        let name = name.replace('_', "-");
        if let ("--test", Some(value)) = (name.as_str(), value) {
            test = Some(test_name(value));
            notes.push("--test is deprecated: the test is named without an option".into());
            continue;
        }
        if let Some((_, why)) = IGNORED.iter().find(|(begin, _)| name.starts_with(begin)) {
            notes.push(format!("{name} is left out: {why}"));
            continue;
        }
        let now = RENAMED.iter().find(|(old, _)| *old == name);
        if let Some((old, new)) = now {
            notes.push(format!("{old} is deprecated: it is {new} now"));
        }
        let name = now.map_or(name.as_str(), |(_, new)| new);
        rest.push(match value {
            Some(value) => format!("{name}={value}"),
            None => name.to_owned(),
        });
    }
    let mut all = argv.first().cloned().into_iter().collect::<Vec<_>>();
    all.extend(test);
    all.extend(rest);
    (all, notes)
}

/// A test may be named by the path of its script.
fn test_name(word: &str) -> String {
    let file = word.rsplit('/').next().unwrap_or(word);
    file.strip_suffix(".lua").unwrap_or(file).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error, make};
    use crate::workload::program::Op;

    #[test]
    fn a_command_line_of_a_manual_is_taken() {
        let w = make(
            "sysbench /usr/share/sysbench/oltp_read_only.lua --db-driver=pgsql --pgsql-host=h \
             --pgsql-user=u --pgsql-password=p --rand-type=uniform --tables=4 \
             --table_size=1000000 --report-interval=1 --events=0 --threads=2 --time=1 run",
        );
        assert_eq!(w.argv[..2], ["sysbench", "oltp_read_only"]);
        assert_eq!(w.templates.len(), 4);
        for (part, why) in [
            ("--pgsql-user", "nobody connects"),
            ("--rand-type", "evenly"),
            ("--report-interval", "one report"),
        ] {
            let said = |note: &&String| note.contains(part) && note.contains(why);
            assert!(w.notes.iter().any(|n| said(&n)), "{part}: {:?}", w.notes);
        }
    }

    #[test]
    fn dashes_and_old_names() {
        let old = make("sysbench --test=cpu --num-threads=2 --max-requests=9 --max-time=0 run");
        let new = make("sysbench cpu --threads=2 --events=9 --time=0 run");
        assert_eq!(old.argv, new.argv);
        assert_eq!(old.programs, new.programs);
        assert_eq!((old.notes.len(), new.notes.len()), (4, 0));
        let w = make("sysbench threads --thread_locks=2 --thread-yields=7");
        assert!(w.programs[0].ops.contains(&Op::LoopStart { count: 7 }));
        // The last one holds.
        let w = make("sysbench cpu --threads=2 --threads=3");
        assert!(w.programs[1].ops.contains(&Op::LoopStart { count: 3 }));
        // sysbench knows no abbreviations.
        let message = error("sysbench threads --thread=2");
        assert!(message.contains("unknown option"), "{message}");
    }
}
