//! What to set so that more requirements are judged, in one line for all that lack the same.

use std::collections::BTreeSet;

use super::document::{Document, Outcome};

/// The prompts with an option of their own: the word, what it causes, and the option.
const OPTIONS: [(&str, &str, &str); 3] = [
    ("slow", "a long turn", "--cancel-prompt TEXT"),
    ("tool", "a tool call", "--tool-prompt TEXT"),
    ("hello", "a turn with text", "--prompt TEXT"),
];

/// Returns a line for each option that sets a prompt, and one for the profile, which has all others, if
/// requirements were not judged for want of them. A prompt that the user has set
/// is no hint.
pub(super) fn hints(report: &Document) -> Vec<String> {
    let open = [Outcome::Inconclusive, Outcome::Skip];
    let open = open.iter().flat_map(|word| report.with(*word));
    let prompts: Vec<Vec<&str>> = open
        .map(|entry| {
            let mut words = prompts(entry.why());
            words.retain(|word| !report.words.iter().any(|had| had == word));
            words
        })
        .filter(|words| !words.is_empty())
        .collect();
    let needed = |count: usize| match count {
        1 => "1 requirement needs".to_owned(),
        count => format!("{count} requirements need"),
    };
    let mut hints = Vec::new();
    for (word, what, option) in OPTIONS {
        let count = prompts.iter().filter(|words| **words == [word]).count();
        if count > 0 {
            hints.push(format!("{} {what}: {option}", needed(count)));
        }
    }
    let is_option = |words: &Vec<&str>| OPTIONS.iter().any(|(word, ..)| **words == [*word]);
    let others = || prompts.iter().filter(|words| !is_option(words));
    let words: BTreeSet<&str> = others().flatten().copied().collect();
    if !words.is_empty() {
        let words = words.into_iter().collect::<Vec<_>>().join(", ");
        let needed = needed(others().count());
        hints.push(format!("{needed} other prompts: --profile FILE ({words})"));
    }
    hints
}

/// The words of the prompts that a reason names: those in backticks after the word `prompt`.
fn prompts(reason: &str) -> Vec<&str> {
    let places = ["prompt `", "prompts `"].iter();
    let place = places.filter_map(|start| reason.find(start)).min();
    let named = place.and_then(|place| reason.get(place..));
    // What is between two backticks, and then between the next two.
    named
        .unwrap_or_default()
        .split('`')
        .skip(1)
        .step_by(2)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report;
    use crate::requirements::Tier;

    #[test]
    fn requirements_without_their_prompt_have_one_hint() {
        let rows = ["a.1", "a.2", "a.3", "a.4", "a.5", "a.6"];
        let rows = rows.map(|id| (id, Tier::Must, Outcome::Inconclusive));
        let mut report = report("agent", &rows);
        let reasons = [
            "the turn of the prompt `slow` ended at once",
            "the turn of the prompt `slow` ended at once",
            "no tool call; the prompt `tool` should cause one",
            "the profile has no prompt `form` or `url`",
            "no file; the prompts `read` and `form` may cause it",
            "the agent does not declare `auth.logout`",
        ];
        for (entry, reason) in report.requirements.iter_mut().zip(reasons) {
            entry.reason = Some(reason.to_owned());
        }
        assert_eq!(
            hints(&report),
            [
                "2 requirements need a long turn: --cancel-prompt TEXT",
                "1 requirement needs a tool call: --tool-prompt TEXT",
                "2 requirements need other prompts: --profile FILE (form, read, url)",
            ]
        );
        report.words = ["slow", "read"].map(str::to_owned).to_vec();
        assert_eq!(
            hints(&report),
            [
                "1 requirement needs a tool call: --tool-prompt TEXT",
                "2 requirements need other prompts: --profile FILE (form, url)",
            ]
        );
        report.requirements.truncate(0);
        assert_eq!(hints(&report), [""; 0]);
    }
}
