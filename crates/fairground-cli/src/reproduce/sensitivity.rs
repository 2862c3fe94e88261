//! `--sensitivity`: what is assumed over its plausible range, and which verdicts stay.
//!
//! A figure of a machine file that nobody measured is set to the ends of its range (`lo`, `hi`;
//! half and twice where the file gives none), so are the factors on what is assumed elsewhere
//! ([`varied`]). One thing at a time, all else as it is. What cannot change a run (HZ 1000 where
//! it has that, the knee while its slope is 0) is not counted there. With `--keep` it goes on when
//! stopped.

use std::path::Path;

use fairground_report::reproduce::number;

use super::experiment::Experiment;
use super::jobs::{Jobs, Sides};
use super::keep::{Done, Keep};
use super::varied::{self, Varied};
use super::{ReproduceArgs, asked, headlines, model, runner, verdict};
use crate::failure::Failure;
use crate::glue::VERSION;
use crate::output;

/// An experiment with the jobs of each variation; the first is as it is.
struct Case {
    experiment: Experiment,
    plans: Vec<(Option<Varied>, Vec<Sides>)>,
}

/// What one variation makes of a row or a headline.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    /// `factor2`, `in band`, ..
    verdict: String,
    /// The change or the value that it is about.
    value: Option<f64>,
}

/// A row's verdict with the usual figures, and those with others.
struct Verdict {
    change: String,
    row: String,
    usual: Said,
    /// What was varied, and what came of it; not those that the time was over for.
    others: Vec<(String, Said)>,
    /// Variations that were not run.
    open: usize,
}

impl Verdict {
    /// Where the verdict is another.
    fn others(&self) -> String {
        let other = |(name, said): &&(String, Said)| {
            (said.verdict != self.usual.verdict).then(|| format!("{} with {name}", said.verdict))
        };
        let mut others: Vec<String> = self.others.iter().filter_map(|o| other(&o)).collect();
        if others.is_empty() {
            others.push(match (self.others.len(), self.open) {
                (0, _) => "-".into(),
                (_, 0) => "the same over all ranges".into(),
                (n, _) => format!("the same in {n} variations"),
            });
        }
        if self.open > 0 {
            others.push(format!("{} not run", self.open));
        }
        others.join(", ")
    }

    /// Least and greatest value, and what was varied for it.
    fn range(&self) -> [String; 2] {
        let values = self
            .others
            .iter()
            .filter_map(|(name, said)| Some((said.value?, name)));
        let mut values: Vec<(f64, &String)> = values.collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let text = |v: Option<&(f64, &String)>| {
            v.map_or("-".into(), |(v, name)| {
                format!("{} ({name})", number(Some(*v)))
            })
        };
        [text(values.first()), text(values.last())]
    }
}

/// Runs the rows with each figure varied, and prints which verdicts change; with `--markdown`
/// their table goes into `calibration.md` of that directory.
///
/// # Errors
/// A run that fails, a page that cannot be read or written or has no place for the table.
pub fn sensitivity(experiments: &[Experiment], args: &ReproduceArgs) -> Result<(), Failure> {
    let page = args.markdown.as_ref().map(|dir| dir.join(PAGE));
    let old = page.as_deref().map(read).transpose()?;
    let mut jobs = Jobs::default();
    let cases: Vec<Case> = experiments
        .iter()
        .map(|e| case(e, &mut jobs))
        .collect::<Result<_, _>>()?;
    let done = simulate(&jobs, &cases, args)?;
    let mut verdicts = Vec::new();
    for case in &cases {
        verdicts.extend(verdicts_of(case, &done)?);
    }
    let text = table(&verdicts);
    if let (Some(path), Some(old)) = (&page, &old) {
        let new = with_table(old, &text).ok_or_else(|| no_place(path))?;
        output::Place::own(path)?.write(&new)?;
    }
    output::stdout(&text)
}

fn case(experiment: &Experiment, jobs: &mut Jobs) -> Result<Case, Failure> {
    let as_it_is = std::iter::once(None);
    let all = as_it_is.chain(varied::all(experiment)?.into_iter().map(Some));
    let plans = all.enumerate().map(|(rank, varied)| {
        let vary = |machine: &_, features: &mut _| match &varied {
            Some(varied) => varied.apply(machine, features),
            None => Ok(Clone::clone(machine)),
        };
        let sides = runner::plan_of(experiment, jobs, &vary, rank as u64)?;
        Ok((varied, sides))
    });
    let plans = plans.collect::<Result<Vec<_>, Failure>>()?;
    let experiment = experiment.clone();
    Ok(Case { experiment, plans })
}

/// All as it is first, which says how long the rest takes.
fn simulate(
    jobs: &Jobs,
    cases: &[Case],
    args: &ReproduceArgs,
) -> Result<Vec<Option<Done>>, Failure> {
    let keep = Keep::open(args.keep.as_deref())?;
    let plain = cases.iter().filter_map(|c| c.plans.first());
    let mut first: Vec<usize> = plain
        .flat_map(|(_, plan)| plan)
        .flat_map(|sides| sides.base.iter().chain(&sides.patch).copied())
        .collect();
    first.sort_unstable();
    first.dedup();
    let mut done = runner::run_all(jobs, &first, &keep, args)?;
    let rest: Vec<usize> = jobs
        .order()
        .into_iter()
        .filter(|n| done[*n].is_none())
        .collect();
    if !args.no_progress {
        let ran = first.iter().filter(|n| done[**n].is_some()).count();
        let cpu_s = runner::cpu_time(&done, &first);
        crate::stderr(&to_come(rest.len(), ran, cpu_s));
    }
    let more = runner::run_all(jobs, &rest, &keep, args)?;
    for (slot, new) in done.iter_mut().zip(more) {
        if new.is_some() {
            *slot = new;
        }
    }
    Ok(done)
}

/// How much is to be done, and how long it takes by what `ran` simulations took. `--within` may
/// have let none of them begin: then nothing says how long one takes.
fn to_come(count: usize, ran: usize, cpu_s: f64) -> String {
    if ran == 0 {
        return format!("{count} simulations more\n");
    }
    let minutes = cpu_s / ran as f64 * count as f64 / 60.0;
    format!("{count} simulations more: {minutes:.0} minutes of CPU time, less what is kept\n")
}

fn verdicts_of(case: &Case, done: &[Option<Done>]) -> Result<Vec<Verdict>, Failure> {
    let mut plans = case.plans.iter();
    let Some((_, plain)) = plans.next() else {
        return Ok(Vec::new());
    };
    let usual = said(&case.experiment, plain, done)?.into_iter();
    let mut verdicts: Vec<Option<Verdict>> = usual
        .map(|(_, row, said)| {
            Some(Verdict {
                change: case.experiment.change.clone(),
                row,
                usual: said?,
                others: Vec::new(),
                open: 0,
            })
        })
        .collect();
    for (varied, plan) in plans {
        let name = varied.as_ref().map_or_else(String::new, Varied::name);
        let all = said(&case.experiment, plan, done)?;
        for ((run, _, said), verdict) in all.into_iter().zip(&mut verdicts) {
            let changes = plan[run] != plain[run];
            let Some(verdict) = verdict.as_mut().filter(|_| changes) else {
                continue;
            };
            match said {
                Some(said) => verdict.others.push((name.clone(), said)),
                None => verdict.open += 1,
            }
        }
    }
    Ok(verdicts.into_iter().flatten().collect())
}

/// Number of its run, its name, and what is said of it.
type Of = (usize, String, Option<Said>);

/// The headlines, then the rows that are counted: as many and in the same order for every plan.
fn said(
    experiment: &Experiment,
    plan: &[Sides],
    done: &[Option<Done>],
) -> Result<Vec<Of>, Failure> {
    let reproduced = runner::gather(experiment.clone(), plan, done, false)?;
    let mut all = Vec::new();
    for ((run, _), (headline, row)) in asked(experiment).zip(headlines(&reproduced)) {
        let said = row.map(|row| Said {
            verdict: verdict(&headline, Some(row)).1.to_lowercase(),
            value: headline.value(row),
        });
        all.push((run, format!("headline: {}", headline.text), said));
    }
    for (number, run) in experiment.runs.iter().enumerate() {
        let rows = reproduced.rows.iter().find(|(r, _)| r.name == run.name);
        for (at, spec) in run.rows.iter().enumerate() {
            let said = rows.map(|(_, rows)| Said {
                verdict: rows[at].class.name().into(),
                value: rows[at].simulated.change_pct,
            });
            if spec.evidence.is_none() {
                let name = format!("{} {}, change in %", run.name, spec.metric);
                all.push((number, name, said));
            }
        }
    }
    Ok(all)
}

const PAGE: &str = "calibration.md";
const BEGIN: &str = "<!-- made by `fairground reproduce --sensitivity --markdown docs` -->\n";
const END: &str = "<!-- end -->\n";

/// The page, if it has a place for the table: asked before the runs, which take long.
fn read(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::new(format!("cannot read `{}`: {e}", path.display())))?;
    match with_table(&text, "") {
        Some(_) => Ok(text),
        None => Err(no_place(path)),
    }
}

fn no_place(path: &Path) -> Failure {
    let lines = format!("expected the lines `{}` and `{}`", BEGIN.trim(), END.trim());
    Failure::new(format!("{}: {lines}", path.display()))
}

/// `page` with `table` between its two lines.
fn with_table(page: &str, table: &str) -> Option<String> {
    let (head, rest) = page.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}{table}{END}{tail}"))
}

/// The table, under what it was made with.
fn table(verdicts: &[Verdict]) -> String {
    let mut text = format!(
        "Made by fairground {}, model `{}`, one thing varied at a time.\n\n",
        VERSION,
        model::hash()
    );
    text += "| change | headline or row | verdict | value | least | greatest | another verdict |\n";
    text += "| --- | --- | --- | ---: | --- | --- | --- |\n";
    for v in verdicts {
        let [least, greatest] = v.range();
        let cells = [
            v.change.clone(),
            v.row.clone(),
            v.usual.verdict.clone(),
            number(v.usual.value),
            least,
            greatest,
            v.others(),
        ];
        text += &format!("| {} |\n", cells.map(|c| c.replace('|', "/")).join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_goes_between_its_two_lines() {
        let page = format!("above\n{BEGIN}old\n{END}below\n");
        let new = with_table(&page, "new\n").expect("a place");
        assert_eq!(new, format!("above\n{BEGIN}new\n{END}below\n"));
        assert_eq!(with_table("no place", "new\n"), None);
    }

    #[test]
    fn how_long_it_takes_is_said_where_it_is_known() {
        assert_eq!(to_come(90, 0, -0.0), "90 simulations more\n");
        let told = to_come(90, 3, 6.0);
        assert!(told.starts_with("90 simulations more: 3 minutes"), "{told}");
    }

    #[test]
    fn a_verdict_says_where_it_is_another() {
        let said = |verdict: &str, value: f64| Said {
            verdict: verdict.into(),
            value: Some(value),
        };
        let verdict = |others: &[(&str, Said)], open| Verdict {
            change: "c".into(),
            row: "run | metric".into(),
            usual: said("sign", 20.0),
            others: others
                .iter()
                .map(|(n, s)| (n.to_string(), s.clone()))
                .collect(),
            open,
        };
        let same = [
            ("HZ 250", said("sign", 21.0)),
            ("no knee", said("sign", 19.0)),
        ];
        let other = [("HZ 250", said("miss", 1.0))];
        let text = table(&[verdict(&same, 0), verdict(&other, 2)]);
        let last: Vec<&str> = text.lines().skip(4).collect();
        assert_eq!(
            last,
            [
                "| c | run / metric | sign | 20.00 | 19.00 (no knee) | 21.00 (HZ 250) \
                 | the same over all ranges |",
                "| c | run / metric | sign | 20.00 | 1.000 (HZ 250) | 1.000 (HZ 250) \
                 | miss with HZ 250, 2 not run |",
            ]
        );
    }
}
