//! README's table of what the simulator was held against: its figures are those of the pages that
//! the commands make, so that it cannot promise more than they say.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The page with the table, below the root of the repository.
pub const FILE: &str = "README.md";
const BEGIN: &str = "<!-- made by `cargo run -p xtask -- docs` of the pages it names -->\n";
const END: &str = "<!-- end -->";

/// Writes the table.
///
/// # Errors
/// If a page cannot be read, has not the figures, or README cannot be written.
pub fn write(root: &Path) -> std::io::Result<()> {
    let text = text(root).map_err(std::io::Error::other)?;
    fs::write(root.join(FILE), text)
}

/// README with the figures of the pages.
///
/// # Errors
/// The page, and what of it is missing.
pub fn text(root: &Path) -> Result<String, String> {
    let read = |page: &str| {
        fs::read_to_string(root.join(page))
            .map(|text| Page {
                page: page.into(),
                text,
            })
            .map_err(|error| format!("{page}: {error}"))
    };
    let readme = read(FILE)?;
    let (before, _) = readme.cut(BEGIN)?;
    let (_, after) = readme.cut(END)?;
    let (smp, cases) = (read("docs/fidelity-smp.md")?, read("docs/fidelity.md")?);
    let (tables, replay) = (read("docs/reproduction.md")?, read("docs/replay.md")?);
    let mut out = format!("{before}{BEGIN}| compared | agrees | page |\n| --- | --- | --- |\n");
    let mut rows = vec![of_decisions(&smp)?];
    rows.extend(of_cases(&cases)?);
    rows.push(of_benchmarks(&cases)?);
    rows.push(of_whole_runs(&smp)?);
    rows.extend(of_tables(&tables)?);
    rows.extend(of_traces(&replay)?);
    for [what, agrees, page] in rows {
        let name = page.trim_start_matches("docs/").trim_end_matches(".md");
        let _ = writeln!(out, "| {what} | {agrees} | [{name}]({page}) |");
    }
    Ok(out + END + after)
}

/// A page and its path.
struct Page {
    page: String,
    text: String,
}

impl Page {
    /// What stands before the first `marker`, and behind it.
    fn cut(&self, marker: &str) -> Result<(&str, &str), String> {
        let missing = || format!("{}: no `{}`", self.page, marker.trim());
        self.text.split_once(marker).ok_or_else(missing)
    }

    /// The word that ends where `marker` begins.
    fn word_before(&self, marker: &str) -> Result<&str, String> {
        let before = self.cut(marker)?.0;
        Ok(before.rsplit([' ', '\n']).next().unwrap_or_default())
    }

    /// The word that begins where `marker` ends.
    fn word_after(&self, marker: &str) -> Result<&str, String> {
        let after = self.cut(marker)?.1;
        Ok(after.split([' ', '\n', ',']).next().unwrap_or_default())
    }

    /// The rows of the table whose head begins with `head`, in cells.
    fn rows(&self, head: &str) -> Result<impl Iterator<Item = Vec<&str>>, String> {
        let after = self.cut(&format!("\n| {head} |"))?.1;
        let rows = after
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'));
        Ok(rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()))
    }

    /// How many rows of all tables begin with this cell.
    fn lines_of(&self, first: &str) -> usize {
        let cell = format!("| {first} |");
        let lines = self.text.lines();
        lines.filter(|line| line.starts_with(&cell)).count()
    }

    /// The sums of cells `a/b` of a column, which may say more behind them, and of a number.
    fn sums(&self, head: &str, parts: usize, number: usize) -> Result<[u64; 3], String> {
        let mut sums = [0; 3];
        for row in self.rows(head)? {
            let cell = |i: usize| row.get(i).copied().unwrap_or_default();
            let odd = || format!("{}: `{}` is no count", self.page, row.join(" | "));
            let share = cell(parts).split([',', ' ']).next().unwrap_or_default();
            let (met, of) = share.split_once('/').ok_or_else(odd)?;
            for (sum, word) in sums.iter_mut().zip([met, of, cell(number)]) {
                *sum += word.parse::<u64>().map_err(|_| odd())?;
            }
        }
        Ok(sums)
    }
}

/// What is compared, how much of it agrees (one count or one share), and the page.
type Row = [String; 3];

fn row(what: impl Into<String>, agrees: String, page: &Page) -> Row {
    [what.into(), agrees, page.page.clone()]
}

fn of_decisions(smp: &Page) -> Result<Row, String> {
    let [equal, of, skipped] = smp.sums("decisions", 2, 3)?;
    let what = format!(
        "single decisions of Linux 6.12 on 16 and 32 CPUs, from the recorded state \
         ({skipped} more cannot be judged; where CPUs changed meanwhile they can only agree)"
    );
    Ok(row(what, format!("{equal} of {of}"), smp))
}

fn of_cases(cases: &Page) -> Result<[Row; 2], String> {
    let one = cases.word_before(" % are not missed on one CPU")?;
    let two = cases.word_before(" % on two (of both together")?;
    let of = |cpus: &str, share: &str| {
        let what = format!("measurements of recorded workloads, Linux 6.18 on {cpus}");
        row(what, format!("{share} %"), cases)
    };
    Ok([of("one CPU", one), of("two CPUs", two)])
}

fn of_benchmarks(cases: &Page) -> Result<Row, String> {
    let all = cases.word_after("those of their traced threads included, ")?;
    let what = "measurements of benchmarks recorded there, their threads' included";
    Ok(row(what, format!("{all} %"), cases))
}

fn of_whole_runs(smp: &Page) -> Result<Row, String> {
    let [met, of, _] = smp.sums("whole runs", 2, 3)?;
    let what = "measurements of whole runs of Linux 6.12 on 16 and 32 CPUs";
    Ok(row(what, format!("{met} of {of}"), smp))
}

fn of_tables(tables: &Page) -> Result<[Row; 2], String> {
    let number = |word: &str| {
        let odd = || format!("{}: `{word}` is no count", tables.page);
        word.parse::<u64>().map_err(|_| odd())
    };
    let rows = number(tables.word_after(" miss, of ")?)?;
    let missed = number(tables.word_before(" miss, of ")?)?;
    let verdicts: Vec<_> = tables.rows("headline")?.collect();
    let in_band = verdicts
        .iter()
        .filter(|row| row.last() == Some(&"in band"))
        .count();
    let headlines = verdicts.len();
    let agree = rows.saturating_sub(missed);
    let tell = tables.word_before(&format!(" of {rows} rows can tell"))?;
    let told = ["factor2", "sign", "noise"].map(|class| tables.lines_of(class));
    let told: usize = told.iter().sum();
    Ok([
        row(
            format!(
                "rows of the published tables of five changes that are evidence ({tell} of them \
                 can tell by the seeds that were run; {told} of these agree)"
            ),
            format!("{agree} of {rows}"),
            tables,
        ),
        row(
            "headline claims of these five changes",
            format!("{in_band} of {headlines}"),
            tables,
        ),
    ])
}

fn of_traces(replay: &Page) -> Result<[Row; 2], String> {
    let (_, met) = replay.cut("Met with what the case says: ")?;
    let line = Page {
        page: replay.page.clone(),
        text: met.lines().next().unwrap_or_default().into(),
    };
    let switches = line.cut("switches ")?.1;
    let switches = switches.split(',').next().unwrap_or_default();
    let latency = line.cut("second half ")?.1.trim_end_matches('.');
    Ok([
        row(
            "recorded traces replayed: number of switches",
            switches.into(),
            replay,
        ),
        row(
            "recorded traces replayed: median wake-up latency, in the half not used for fitting",
            latency.into(),
            replay,
        ),
    ])
}
