//! The verdicts of many places, counted in sentences.

use super::Tally;

/// The verdicts in sentences.
pub(super) fn sentences(tally: &Tally) -> Vec<String> {
    let words = ["better", "worse", "differs", "noise", "same", "no verdict"];
    let all = [
        &tally.better,
        &tally.worse,
        &tally.differs,
        &tally.noise,
        &tally.same,
        &tally.open,
    ];
    let total: usize = all.iter().map(|list| list.len()).sum();
    let named = words.iter().zip(all).filter(|(_, list)| !list.is_empty());
    let said = |(word, list): (&&str, &Vec<String>)| {
        format!("{word} on {} of {total}: {}", list.len(), list.join(", "))
    };
    let mut lines: Vec<String> = named.map(said).collect();
    for growth in &tally.from_cpus {
        let machine = &growth.machine;
        lines.push(match growth.cpus {
            Some(cpus) => format!("{machine}: it shows from {cpus} CPUs on, of those tried"),
            None => format!("{machine}: it does not show with the most CPUs"),
        });
    }
    lines
}
