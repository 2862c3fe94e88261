//! The outputs that pages quote, made again by the commands above them.
//!
//! A block, indented or `sh`, with one `fairground` command, and the next block, `text`, with what
//! it prints: all of it, or some lines. A comment between the two can add options to the command
//! (`<!-- with: --lines 8 -->`) that only shorten what is quoted.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// Pages whose examples take minutes at most.
pub const PAGES: [&str; 7] = [
    "README.md",
    "docs/configs.md",
    "docs/cpu-limits.md",
    "docs/explain.md",
    "docs/signs.md",
    "docs/verdicts.md",
    "docs/workloads/cyclictest.md",
];

/// A quoted line that the command does not print any more.
#[derive(Debug, PartialEq, Eq)]
pub struct Gone {
    /// The command.
    pub command: String,
    /// The line as it is quoted.
    pub line: String,
}

/// Makes the examples of pages again with the release build, which must be there, each command
/// once. What each page quotes that is not printed any more.
///
/// # Errors
/// If a page cannot be read or written, or a command fails.
pub fn write<'a>(root: &Path, pages: &[&'a str]) -> io::Result<Vec<(&'a str, Gone)>> {
    let mut printed: HashMap<String, String> = HashMap::new();
    let mut all_gone = Vec::new();
    for page in pages {
        let path = root.join(page);
        let text = fs::read_to_string(&path)?;
        let (text, gone) = refreshed(&text, &mut |command| match printed.entry(command.into()) {
            Entry::Occupied(known) => Ok(known.get().clone()),
            Entry::Vacant(new) => Ok(new.insert(run(root, command)?).clone()),
        })?;
        fs::write(path, text)?;
        all_gone.extend(gone.into_iter().map(|gone| (*page, gone)));
    }
    Ok(all_gone)
}

/// What a command prints, with the release build in front of the search path.
fn run(root: &Path, command: &str) -> io::Result<String> {
    eprintln!("{command}");
    let mut dirs = vec![root.join("target/release")];
    dirs.extend(
        std::env::var_os("PATH")
            .iter()
            .flat_map(std::env::split_paths),
    );
    let path = std::env::join_paths(dirs).map_err(io::Error::other)?;
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(root)
        .env("PATH", path)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{command}: {}", output.status)));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

/// A page with the outputs of its commands, and what they do not print any more.
fn refreshed(
    text: &str,
    run: &mut dyn FnMut(&str) -> io::Result<String>,
) -> io::Result<(String, Vec<Gone>)> {
    let (mut out, mut done, mut gone) = (String::new(), 0, Vec::new());
    for (command, at) in examples(text) {
        let printed = run(&command)?;
        let (lines, missing) = requoted(&text[at.clone()], &printed);
        out += &text[done..at.start];
        out += &lines;
        done = at.end;
        gone.extend(missing.into_iter().map(|line| Gone {
            command: command.clone(),
            line,
        }));
    }
    Ok((out + &text[done..], gone))
}

/// The commands of a page, and where what they print is quoted.
fn examples(text: &str) -> Vec<(String, Range<usize>)> {
    let (mut found, mut command, mut block) = (Vec::new(), None::<String>, None);
    for (event, at) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let lang = match kind {
                    CodeBlockKind::Fenced(lang) => lang,
                    CodeBlockKind::Indented => "sh".into(),
                };
                block = Some((lang, None::<Range<usize>>));
            }
            Event::Text(_) => {
                if let Some((_, all)) = &mut block {
                    let start = all.as_ref().map_or(at.start, |all| all.start);
                    *all = Some(start..at.end);
                }
            }
            Event::Html(html) => {
                let with = html.trim().strip_prefix("<!-- with: ");
                if let (Some(with), Some(c)) =
                    (with.and_then(|w| w.strip_suffix(" -->")), &mut command)
                {
                    *c = with_options(c, with);
                }
            }
            Event::End(TagEnd::CodeBlock) => match block.take() {
                Some((lang, Some(all))) if &*lang == "sh" => command = one_command(&text[all]),
                Some((lang, Some(all))) if &*lang == "text" => {
                    found.extend(command.take().map(|c| (c, all)));
                }
                _ => command = None,
            },
            _ => {}
        }
    }
    found
}

/// The command of a block that has one of ours and nothing else.
fn one_command(block: &str) -> Option<String> {
    let joined = block.replace("\\\n", " ");
    let mut lines = joined.lines().filter(|l| !l.trim().is_empty());
    let (line, None) = (lines.next()?, lines.next()) else {
        return None;
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = words.join(" ");
    match line.strip_prefix("cargo run --release -- ") {
        Some(rest) => Some(format!("fairground {rest}")),
        None => line.starts_with("fairground ").then_some(line),
    }
}

/// Options come before the workload of a command.
fn with_options(command: &str, with: &str) -> String {
    match command.split_once(" -- ") {
        Some((before, after)) => format!("{before} {with} -- {after}"),
        None => format!("{command} {with}"),
    }
}

/// The quoted lines as they are printed now: all of them if nearly all were quoted, from the first
/// on, else each by the words that it begins with, in order; and those that are not there.
fn requoted(quoted: &str, printed: &str) -> (String, Vec<String>) {
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let quoted: Vec<&str> = quoted.lines().collect();
    let (about, now) = (quoted.first(), printed.first());
    if about.map(|l| key(l)) == now.map(|l| key(l)) && quoted.len() * 5 >= printed.len() * 4 {
        return (printed.join("\n") + "\n", Vec::new());
    }
    let (mut text, mut gone, mut from) = (String::new(), Vec::new(), 0);
    for old in quoted {
        let same = |n: &usize| words(printed[*n]).eq(words(old));
        let alike = |n: &usize| key(printed[*n]) == key(old);
        let mut order = from..printed.len();
        match order.clone().find(same).or_else(|| order.find(alike)) {
            _ if old.trim().is_empty() => {}
            Some(n) => {
                text += printed[n];
                from = n + 1;
            }
            None => {
                text += old;
                gone.push(old.to_owned());
            }
        }
        text.push('\n');
    }
    (text, gone)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
}

/// What a line of a table or list is about: its first word, and up to two more that are no results.
fn key(line: &str) -> Vec<&str> {
    let mut words = words(line);
    let mut key: Vec<&str> = words.next().into_iter().collect();
    let is_setting = |w: &&str| {
        let result = w.starts_with(|c: char| c.is_ascii_digit() || "+-[".contains(c));
        !result || w.ends_with("ms")
    };
    key.extend(words.take(2).take_while(is_setting));
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# A page

```sh
cargo run --release -- compare \\
    --patch p -- hogs
```

It prints:

<!-- with: --lines 2 -->
```text
metric  base  change
switches  12  +3 %
waits 100ms  7
old  1
```

```text
no output of a command
```
";

    fn page(printed: &str) -> (String, Vec<Gone>, Vec<String>) {
        let mut commands = Vec::new();
        let (text, gone) = refreshed(PAGE, &mut |command| {
            commands.push(command.to_owned());
            Ok(printed.to_owned())
        })
        .unwrap();
        (text, gone, commands)
    }

    #[test]
    fn quoted_lines_are_those_of_the_command_above() {
        let printed = "head\nmetric  base  change\nother  3\nswitches  14  +9 %\nwaits 20ms  6\n\
                       waits 100ms  8\nmore\nmore\n";
        let (text, gone, commands) = page(printed);
        assert_eq!(commands, ["fairground compare --patch p --lines 2 -- hogs"]);
        assert_eq!(
            text,
            PAGE.replace("12  +3 %", "14  +9 %")
                .replace("100ms  7", "100ms  8")
        );
        let lines: Vec<_> = gone.iter().map(|g| g.line.as_str()).collect();
        assert_eq!(lines, ["old  1"]);
    }

    #[test]
    fn what_was_quoted_as_a_whole_is_replaced_as_a_whole() {
        let printed = "metric  base  change\nswitches  14  +9 %\nnew  1\nold  2\n";
        let (text, gone, _) = page(printed);
        assert!(text.contains(printed) && !text.contains("waits"), "{text}");
        assert_eq!(gone, []);
    }
}
