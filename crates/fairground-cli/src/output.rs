//! Where results go: tables to the terminal, JSON and CSV to files, never half a file.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use fairground_report::Style;
use fairground_report::html::PageError;

use crate::failure::Failure;
use crate::how::{Color, How, Most};
use crate::inputs::Inputs;
use crate::whole_file;

/// The places that the user asked for.
pub struct Output<'a> {
    how: &'a How,
    most: Most,
    json: Option<Target>,
    csv: Option<Target>,
    report: Option<Target>,
}

/// Names of standard output. Behind the longer ones may be a file, which must not be replaced: what
/// else is written there would be lost.
const STDOUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

enum Target {
    Stdout,
    /// A regular file, made in one step.
    File(PathBuf),
    /// A pipe or device: there is nothing to replace.
    Special(PathBuf),
}

impl<'a> Output<'a> {
    /// Checks the places before anything is simulated from `inputs`.
    ///
    /// # Errors
    /// A place that cannot be written or is read, or standard output twice.
    pub fn new(how: &'a How, most: Most, inputs: &Inputs) -> Result<Self, Failure> {
        let target = |option: &str, path: &Option<PathBuf>| {
            let path = path.as_deref();
            path.map(|p| Target::asked(option, p, inputs)).transpose()
        };
        let json = target("--json", &how.json)?;
        let csv = target("--csv", &how.csv)?;
        let report = target("--report", &how.report)?;
        no_two(&[
            ("--json", json.as_ref()),
            ("--csv", csv.as_ref()),
            ("--report", report.as_ref()),
        ])?;
        Ok(Self {
            how,
            most,
            json,
            csv,
            report,
        })
    }

    /// The place that another option, `name`, names is none of these.
    ///
    /// # Errors
    /// It is.
    pub fn refuse_same(&self, name: &str, place: &Place) -> Result<(), Failure> {
        let named = [
            ("--json", &self.json),
            ("--csv", &self.csv),
            ("--report", &self.report),
        ];
        named
            .iter()
            .try_for_each(|(other, target)| clash(other, target.as_ref(), name, Some(&place.0)))
    }

    /// Writes the result: `text` for people, the others where they were asked for.
    ///
    /// # Errors
    /// A place that cannot be written.
    pub fn write(
        &self,
        json: &impl Fn() -> serde_json::Result<String>,
        csv: &dyn Fn() -> String,
        text: &dyn Fn(Style) -> String,
        page: &dyn Fn(Style) -> Result<String, PageError>,
    ) -> Result<(), Failure> {
        if let Some(target) = &self.json {
            let body = json().map_err(|e| Failure::new(format!("cannot write JSON: {e}")))?;
            target.write((body + "\n").as_bytes())?;
        }
        if let Some(target) = &self.csv {
            target.write(csv().as_bytes())?;
        }
        if let Some(target) = &self.report {
            let page = page(self.most.style(false)).map_err(Failure::new)?;
            target.write(page.as_bytes())?;
        }
        if self.how.quiet {
            return Ok(());
        }
        let taken = [&self.json, &self.csv, &self.report]
            .iter()
            .any(|t| matches!(t, Some(Target::Stdout)));
        let colour = if taken {
            colour(self.how.color, &std::io::stderr())
        } else {
            colour(self.how.color, &std::io::stdout())
        };
        let body = text(self.most.style(colour));
        if taken {
            // Standard error that is gone is nobody's loss.
            let _ = std::io::stderr().write_all(body.as_bytes());
            Ok(())
        } else {
            stdout(&body)
        }
    }
}

/// Two outputs must not go to one place.
fn clash(a: &str, first: Option<&Target>, b: &str, second: Option<&Target>) -> Result<(), Failure> {
    match (first, second) {
        (Some(Target::Stdout), Some(Target::Stdout)) => Err(Failure::new(format!(
            "{a} and {b} cannot both go to standard output"
        ))),
        (Some(Target::File(path)), Some(Target::File(other))) if path == other => Err(
            Failure::new(format!("{a} and {b} both name `{}`", path.display())),
        ),
        _ => Ok(()),
    }
}

/// One place for a command with no other choice of outputs.
pub struct Place(Target);

impl Place {
    /// Checks the place that `option` names before anything is simulated from `inputs`.
    ///
    /// # Errors
    /// It cannot be written, or is read.
    pub fn new(option: &str, path: &Path, inputs: &Inputs) -> Result<Self, Failure> {
        Target::asked(option, path, inputs).map(Self)
    }

    /// A file that is read and written again, or is the program's own.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn own(path: &Path) -> Result<Self, Failure> {
        Target::new(path).map(Self)
    }

    /// Whether it is standard output.
    pub fn is_stdout(&self) -> bool {
        matches!(self.0, Target::Stdout)
    }

    /// Writes `text`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, text: &str) -> Result<(), Failure> {
        self.0.write(text.as_bytes())
    }

    /// Lets `body` write, piece by piece.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn stream(
        &self,
        body: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        self.0.stream(body)
    }
}

/// No two of these places are one.
///
/// # Errors
/// Two are.
pub fn all_differ(named: &[(&str, Option<&Place>)]) -> Result<(), Failure> {
    let targets: Vec<_> = named
        .iter()
        .map(|(name, place)| (*name, place.map(|place| &place.0)))
        .collect();
    no_two(&targets)
}

fn no_two(named: &[(&str, Option<&Target>)]) -> Result<(), Failure> {
    for (i, (a, first)) in named.iter().enumerate() {
        for (b, second) in &named[i + 1..] {
            clash(a, *first, b, *second)?;
        }
    }
    Ok(())
}

/// Writes to standard output. A reader who has seen enough (`| head`) is no error.
///
/// # Errors
/// Standard output cannot be written.
pub fn stdout(text: &str) -> Result<(), Failure> {
    stdout_bytes(text.as_bytes())
}

fn stdout_bytes(bytes: &[u8]) -> Result<(), Failure> {
    Target::Stdout.write(bytes)
}

/// Whether to colour what goes to `stream`.
pub fn colour(when: Color, stream: &impl IsTerminal) -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    match when {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => stream.is_terminal() && !no_color,
    }
}

impl Target {
    fn asked(option: &str, path: &Path, inputs: &Inputs) -> Result<Self, Failure> {
        let target = Self::new(path)?;
        if let Self::File(_) = target {
            inputs.spare(option, path)?;
        }
        Ok(target)
    }

    fn new(path: &Path) -> Result<Self, Failure> {
        if STDOUT.iter().any(|name| path == Path::new(name)) {
            return Ok(Self::Stdout);
        }
        let fail = |e: &dyn std::fmt::Display| {
            Failure::new(format!("cannot write `{}`: {e}", path.display()))
        };
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") && !path.exists() {
            return Err(fail(
                &"a name that ends with `/` is one of a directory; expected a file",
            ));
        }
        // Through a link, so that the link stays and its file is replaced; and one name for a file,
        // however it is spelt, also if it is new.
        let path = path
            .canonicalize()
            .unwrap_or_else(|_| in_full(&target_of(path)));
        if path.is_dir() {
            return Err(fail(&"it is a directory"));
        }
        if path.exists() && !path.is_file() {
            return Ok(Self::Special(path));
        }
        if path.file_name().is_none() {
            return Err(fail(&"it has no name"));
        }
        // Better now than after minutes of simulating.
        whole_file::check(&path).map_err(|e| fail(&e))?;
        Ok(Self::File(path))
    }

    fn write(&self, text: &[u8]) -> Result<(), Failure> {
        self.stream(|out| out.write_all(text))
    }

    fn stream(
        &self,
        body: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let fail = |path: &Path, e: std::io::Error| {
            Failure::new(format!("cannot write `{}`: {e}", path.display()))
        };
        match self {
            Self::Stdout => {
                let mut out = std::io::stdout().lock();
                match body(&mut out).and_then(|()| out.flush()) {
                    Err(e) if e.kind() != ErrorKind::BrokenPipe => {
                        Err(Failure::new(format!("cannot write standard output: {e}")))
                    }
                    _ => Ok(()),
                }
            }
            Self::Special(path) => {
                let file = std::fs::OpenOptions::new().write(true).open(path);
                file.and_then(|file| whole_file::fill(file, body))
                    .map_err(|e| fail(path, e))
            }
            Self::File(path) => whole_file::write(path, body).map_err(|e| fail(path, e)),
        }
    }
}

/// Where a link leads whose file does not exist yet; any other path is itself.
fn target_of(path: &Path) -> PathBuf {
    match (std::fs::read_link(path), path.parent()) {
        (Ok(target), Some(directory)) => directory.join(target),
        (Ok(target), None) => target,
        (Err(_), _) => path.into(),
    }
}

/// A path that does not exist yet, by its directory.
fn in_full(path: &Path) -> PathBuf {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    match (directory.canonicalize(), path.file_name()) {
        (Ok(directory), Some(name)) => directory.join(name),
        _ => path.into(),
    }
}
