//! `fairground list configs`: what each configuration is, where it is from, how the real one
//! differs, and what it stands for, on a machine if one is given.

use serde_json::{Value, json as object};

use super::expand::{COUNTS, Expanded, of_test};
use super::series::Shape;
use super::{Config, Named, Test};
use crate::wrap::wrap;

/// Columns that nothing may reach.
const WIDTH: usize = 99;

/// For which machine the workloads are shown.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// Its name.
    pub machine: &'a str,
    /// Its CPUs.
    pub shape: Shape,
    /// The whole series.
    pub whole: bool,
}

/// All configurations for people.
pub fn text(configs: &[Config], shown: Option<Shown>) -> String {
    let mut text = String::new();
    if let Some(shown) = shown {
        let cpus = shown.shape.cpus;
        text += &format!("on {}, {cpus} CPUs\n", shown.machine);
        if !shown.whole {
            let alone = format!("one alone (SUITE/NAME/TEST) takes up to {}", COUNTS.end());
            text += &format!("the counts of a test are those beside the others; {alone}\n");
        }
        text += "\n";
    }
    for config in configs {
        text += &format!("{}  {}\n", config.name, config.file);
        text += &labelled("", &config.what);
        let from = format!("{} at {}", config.repository, config.commit);
        text += &labelled("from", &from);
        for also in &config.also {
            text += &labelled("", also);
        }
        if let Some(why) = &config.why_not {
            text += &labelled("not modelled", why);
        } else {
            text += &labelled("there", &config.runs);
        }
        for test in &config.tests {
            text += &tested(config, test, shown);
        }
        for missing in &config.not_modelled {
            let why = format!("{}: {}", missing.name, missing.why);
            text += &labelled("not modelled", &why);
        }
        text += "\n";
    }
    text.pop();
    text
}

/// A test: its workloads on the machine, or the series in words.
fn tested(config: &Config, test: &Test, shown: Option<Shown>) -> String {
    let mut text = format!("    {}\n", test.name);
    text += &labelled("there", &name_n(&test.real));
    let Some(shown) = shown else {
        text += &labelled("here", &name_n(&test.command));
        if let Some(series) = &test.series {
            text += &labelled("N", &series.words());
        }
        return text;
    };
    let Expanded { workloads, of } = on(config, test, shown);
    for (i, words) in workloads.iter().enumerate() {
        // Not wrapped: it is there to be copied.
        let label = if i == 0 { "here" } else { "" };
        text += &format!("        {label:<14}{}\n", words.join(" "));
    }
    if of > workloads.len() {
        let cut = format!("{} of {of}; --whole has all", workloads.len());
        text += &labelled("", &cut);
    }
    text
}

fn on(config: &Config, test: &Test, shown: Shown) -> Expanded {
    of_test(test, config.tests.len(), shown.shape, shown.whole)
}

fn name_n(command: &str) -> String {
    command
        .replace("{n}", "N")
        .replace("{nodes}", "NODES")
        .replace("{loops}", "LOOPS")
}

fn labelled(label: &str, words: &str) -> String {
    const INDENT: usize = 22;
    let mut text = String::new();
    for (i, line) in wrap(words, WIDTH - INDENT).iter().enumerate() {
        let label = if i == 0 { label } else { "" };
        text += &format!("        {label:<14}{line}\n");
    }
    text
}

/// What was asked for, above the tables of its workloads.
pub fn about(asked: &[Named]) -> String {
    let mut text = String::new();
    for Named { config, test } in asked {
        let name = match test {
            Some(test) => format!("{}/{test}", config.name),
            None => config.name.clone(),
        };
        let mut lines = vec![
            format!("{name}: {}", config.what),
            format!(
                "{}, {} at {}",
                config.repository, config.file, config.commit
            ),
            format!("there: {}", config.runs),
        ];
        for missing in config.not_modelled.iter().filter(|_| test.is_none()) {
            lines.push(format!("not modelled: {}: {}", missing.name, missing.why));
        }
        let mut label = "config";
        for line in lines.iter().flat_map(|line| wrap(line, WIDTH - 10)) {
            text += &format!("{label:<10}{line}\n");
            label = "";
        }
    }
    text
}

/// How much of it is simulated on a machine.
pub fn taken(asked: &Named, machine: &str, shape: Shape, here: &Expanded) -> String {
    let (some, of) = (here.workloads.len(), here.of);
    if some == of {
        return String::new();
    }
    format!(
        "{:<10}{} on {machine}, {} CPUs: {some} of {of} workloads; --whole has all\n",
        "", asked.config.name, shape.cpus
    )
}

/// The same as JSON.
pub fn json(configs: &[Config], shown: Option<Shown>) -> Value {
    let row = |config: &Config| {
        let test = |test: &Test| {
            let workloads = shown.map(|shown| {
                let lines = on(config, test, shown).workloads;
                lines.iter().map(|words| words.join(" ")).collect()
            });
            let workloads: Option<Vec<String>> = workloads;
            object!({
                "name": test.name, "there": test.real, "here": test.command,
                "n": test.series.as_ref().map(super::series::Series::words),
                "workloads": workloads,
            })
        };
        let missing = config.not_modelled.iter();
        object!({
            "name": config.name, "what": config.what, "repository": config.repository,
            "file": config.file, "commit": config.commit, "also": config.also,
            "there": config.runs, "why_not": config.why_not,
            "tests": config.tests.iter().map(test).collect::<Vec<_>>(),
            "not_modelled": missing
                .map(|m| object!({ "name": m.name, "why": m.why }))
                .collect::<Vec<_>>(),
        })
    };
    configs.iter().map(row).collect()
}
