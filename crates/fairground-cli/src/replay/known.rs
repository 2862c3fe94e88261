//! What is known of a recording beside its events: from a file of attributes, else as far as it
//! says itself.

use std::path::Path;

use fairground_sim::limited;
use fairground_sim::spec::Source;
use fairground_trace::Recording;
use fairground_trace::derive::Attributes;
use fairground_trace::text::SAID;

use crate::failure::Failure;
use crate::replay::args::ReplayArgs;
use crate::replay::open::open;

/// Largest file of attributes: those of 100,000 groups have about 10 MiB.
const BYTES_MAX: u64 = 64 << 20;

/// Where the words stand of which the attributes were read.
#[derive(Default)]
pub struct Words {
    /// The file, and which of its lines if they are not all.
    of: String,
    /// What is between that and the number of a line.
    line: &'static str,
    text: String,
}

impl Words {
    /// What is wrong with `key` in the table `[table]`, with its place.
    pub fn wrong(&self, table: &str, key: &str, failure: Failure) -> Failure {
        let lines = || (1..).zip(self.text.lines().map(str::trim));
        let head = format!("[{table}]");
        let begins = lines().find(|(_, line)| *line == head).map_or(0, |l| l.0);
        let names = |line: &str| {
            let name = line.split('=').next().unwrap_or_default().trim();
            name.trim_matches('"') == key
        };
        let found = lines().find(|(n, line)| *n > begins && names(line));
        let place = found.map_or(String::new(), |(n, _)| format!("{}{n}", self.line));
        failure.at(&format!("{}{place}", self.of))
    }
}

/// A recording, and what is known besides.
///
/// # Errors
/// With the name of the file.
pub fn read(args: &ReplayArgs, path: &Path) -> Result<(Recording, Attributes, Words), Failure> {
    let attributes = args.attributes.as_deref();
    let given = attributes.map(read_attributes).transpose()?;
    let recording = open(path, args.no_progress)?;
    let (mut known, words) = match given {
        Some((source, given)) => match given.check_groups(&recording.groups) {
            Err(refused) => return Err(refused.in_file(&source).into()),
            Ok(()) => {
                let of = source.name().to_string();
                let text = source.text().to_string();
                let line = ":";
                (given, Words { of, line, text })
            }
        },
        None => said(path, &recording)?,
    };
    known.take_groups(&recording.groups);
    known.take_processes(&recording.names);
    Ok((recording, known, words))
}

/// What a simulated run says about itself in its text.
fn said(path: &Path, recording: &Recording) -> Result<(Attributes, Words), Failure> {
    let words = Words {
        of: format!("{}: the lines that begin with `{SAID}`", path.display()),
        line: ": line ",
        text: recording.said.clone(),
    };
    let known = Attributes::parse(&recording.said).map_err(|e| {
        let message = format!("{}: {e}", words.of);
        Failure::with_help(message, "--attributes FILE is used instead of them")
    })?;
    Ok((known, words))
}

fn read_attributes(file: &Path) -> Result<(Source, Attributes), Failure> {
    let name = file.display().to_string();
    let text =
        limited::read_text(file, BYTES_MAX).map_err(|e| Failure::new(format!("{name}: {e}")))?;
    let source = Source::new(&name, &text);
    let read = Attributes::read(&source)?;
    Ok((source, read))
}
