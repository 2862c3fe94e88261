//! `run-pelt.csv`: one line for each load-tracking update that ended a period.

use fairground::math::pelt::SchedAvg;

/// The columns, in the order of the file.
const COLUMNS: &str = "t_ns,kind,rq_cpu,id,on_rq,delayed,nr_queued,last_update_time,load_sum,\
util_sum,period_contrib,load_avg,runnable_avg,util_avg,util_est,weight,sum_exec,vruntime,\
vlag_or_vprot,deadline,slice,tg_load_avg,tg_load_avg_contrib";

/// Whose update it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A task's.
    Task,
    /// The entity of a group on one CPU.
    Group,
    /// A group's queue on one CPU.
    Queue,
}

impl Kind {
    /// All, in the order of results.
    pub const ALL: [Self; 3] = [Self::Task, Self::Group, Self::Queue];

    /// Its name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task_se",
            Self::Group => "group_se",
            Self::Queue => "cfs_rq",
        }
    }
}

/// One update.
#[derive(Clone, Debug)]
pub struct Record {
    /// Line of the file, from 1.
    pub line: usize,
    /// Since T0.
    pub t_ns: i64,
    /// Whose.
    pub kind: Kind,
    /// Of which queue.
    pub cpu: u32,
    /// Name of the task or path of the group.
    pub id: String,
    /// Whether it is queued, before the change that the update belongs to.
    pub on_rq: bool,
    /// Whether it is dequeued with a delay.
    pub delayed: bool,
    /// The state that the update left; runnable sums are not recorded.
    pub avg: SchedAvg,
    /// Scaled weight before the change that the update belongs to.
    pub weight: u64,
    /// Load of the group on all CPUs, as published.
    pub tg_load_avg: u64,
    /// What this CPU has in it.
    pub contrib: u64,
}

/// Reads the file.
///
/// # Errors
/// The line, and what was expected there.
pub fn parse(text: &str) -> Result<Vec<Record>, String> {
    let mut lines = text.lines().enumerate();
    match lines.next() {
        Some((_, head)) if head == COLUMNS => {}
        _ => return Err(format!("line 1: the columns must be {COLUMNS}")),
    }
    lines
        .map(|(i, line)| record(i + 1, line).map_err(|e| format!("line {}: {e}", i + 1)))
        .collect()
}

fn record(line: usize, text: &str) -> Result<Record, String> {
    let c: Vec<&str> = text.split(',').collect();
    let wanted = COLUMNS.split(',').count();
    if c.len() != wanted {
        return Err(format!("{} columns, expected {wanted}", c.len()));
    }
    let signed = |i: usize| number::<i64>(c[i], i);
    let unsigned = |i: usize| number::<u64>(c[i], i);
    let small = |i: usize| number::<u32>(c[i], i);
    let kind = Kind::ALL
        .into_iter()
        .find(|k| k.name() == c[1])
        .ok_or_else(|| format!("kind '{}' is none of task_se, group_se, cfs_rq", c[1]))?;
    let period_contrib = small(10)?;
    if period_contrib >= 1024 {
        return Err(format!("period_contrib {period_contrib} is not below 1024"));
    }
    Ok(Record {
        line,
        t_ns: signed(0)?,
        kind,
        cpu: small(2)?,
        id: c[3].to_string(),
        on_rq: unsigned(4)? != 0,
        delayed: unsigned(5)? != 0,
        avg: SchedAvg {
            last_update_time: unsigned(7)?,
            load_sum: unsigned(8)?,
            runnable_sum: 0,
            util_sum: small(9)?,
            period_contrib,
            load_avg: unsigned(11)?,
            runnable_avg: unsigned(12)?,
            util_avg: unsigned(13)?,
            util_est: small(14)?,
        },
        weight: unsigned(15)?,
        tg_load_avg: signed(21)?.cast_unsigned(),
        contrib: unsigned(22)?,
    })
}

fn number<T: std::str::FromStr>(text: &str, column: usize) -> Result<T, String> {
    let name = COLUMNS.split(',').nth(column).unwrap_or_default();
    text.parse()
        .map_err(|_| format!("{name}: '{text}' is not a number of its range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_lines_are_refused_with_their_place() {
        let good =
            format!("{COLUMNS}\n5,task_se,1,a,0,0,0,1024,7,8,9,1,2,3,4,1048576,0,0,0,0,0,0,0\n");
        assert_eq!(parse(&good).expect("good")[0].avg.util_sum, 8);
        for (from, to, word) in [
            ("task_se", "task", "kind"),
            (",1048576,", ",1e6,", "weight"),
            (",0\n", "\n", "22 columns"),
            (",9,1,", ",1024,1,", "period_contrib"),
        ] {
            let bad = good.replacen(from, to, if word == "kind" { 2 } else { 1 });
            let error = parse(&bad).expect_err(word);
            assert!(error.contains("line 2") && error.contains(word), "{error}");
        }
        assert!(parse("").is_err() && parse("t_ns\n").is_err());
    }
}
