//! The text of a permission request and the keys that answer it.

use acp_sdk::v1::{PermissionOption, PermissionOptionKind};
use unicode_width::UnicodeWidthStr;

use super::super::style::{Face, Paint, fit, wrap};
use super::SIGN;
use acp_client::internal::Shown;
use acp_client::{Asker, Decision, PermissionRequest};

/// Returns the key of an option: a letter for its kind, or else its number.
fn letter(question: &PermissionRequest, index: usize) -> Option<char> {
    let options = &question.request.options;
    let kind = &options.get(index)?.kind;
    let first = options.iter().position(|option| option.kind == *kind)?;
    let letter = match kind {
        PermissionOptionKind::AllowOnce => 'y',
        PermissionOptionKind::AllowAlways => 'a',
        PermissionOptionKind::RejectOnce => 'n',
        PermissionOptionKind::RejectAlways => 'd',
        _ => number(index)?,
    };
    match first == index {
        true => Some(letter),
        false => number(index),
    }
}

fn number(index: usize) -> Option<char> {
    char::from_digit(u32::try_from(index + 1).ok()?, 10)
}

pub(super) fn decision(key: char, question: &PermissionRequest) -> Option<Decision> {
    let rejects = matches!(key, 'n' | '\u{1b}');
    // Whoever cannot read it cannot allow it.
    if Shown::new(question).too_long.is_some() {
        return rejects.then_some(Decision::Reject);
    }
    let options = &question.request.options;
    let chosen = (0..options.len())
        .find(|index| letter(question, *index) == Some(key) || number(*index) == Some(key));
    match chosen {
        Some(index) => Some(Decision::Option(options[index].option_id.clone())),
        // The request may lack an option that rejects.
        None if rejects => Some(Decision::Reject),
        None => None,
    }
}

/// Returns the text of a request, whole, with its `changes` and without its keys.
pub(super) fn shown(
    question: &PermissionRequest,
    changes: &[String],
    width: usize,
    paint: Paint,
) -> String {
    let who = match question.asker {
        Asker::Agent => "? May the agent:",
        Asker::Client => "? May acp for the agent:",
        Asker::Afterwards => "? The agent did, unasked:",
    };
    let all = Shown::new(question);
    let mut text = String::new();
    let wrapped = |line: &String, first: usize| wrap(line, width.saturating_sub(first).max(10));
    let mut title = wrapped(&all.lines[0], who.len() + 2).into_iter();
    text += &format!(
        "{} {}\n",
        paint.text(SIGN, who),
        title.next().unwrap_or_default()
    );
    for line in title {
        text += &format!("    {line}\n");
    }
    for line in all.lines[1..].iter().flat_map(|line| wrapped(line, 4)) {
        text += &format!("  {}\n", paint.text(Face::DIM, &line));
    }
    if let Some(lines) = all.too_long {
        text += &format!(
            "  {lines} lines are too long to be shown: it can only be refused here, or allowed by a rule\n"
        );
    }
    // The line of the key has no room for them, and "always" may be said there of more than one call.
    for (key, effect, option) in offered(question) {
        let name = fit(&option.name, usize::MAX);
        if name.width() > room(effect, width) {
            for line in wrapped(&format!("{key}  {effect}: {name}"), 4) {
                text += &format!("  {line}\n");
            }
        }
    }
    for line in changes {
        text += line;
        text.push('\n');
    }
    text
}

/// Returns the options with their keys and effects. The agent chooses the name; the kind states the
/// effect.
fn offered(
    question: &PermissionRequest,
) -> impl Iterator<Item = (char, &'static str, &PermissionOption)> {
    let options = question.request.options.iter().enumerate();
    options.filter_map(|(index, option)| {
        let effect = match option.kind {
            PermissionOptionKind::AllowOnce => "allow once",
            PermissionOptionKind::AllowAlways => "allow always",
            PermissionOptionKind::RejectOnce => "reject once",
            PermissionOptionKind::RejectAlways => "reject always",
            _ => "another answer",
        };
        Some((letter(question, index)?, effect, option))
    })
}

/// Returns the columns for the name of an option.
fn room(effect: &str, width: usize) -> usize {
    width.saturating_sub(effect.len() + 10)
}

/// Returns the keys that answer, one line each.
pub(super) fn keys(question: &PermissionRequest, width: usize, more: usize) -> Vec<String> {
    let mut lines: Vec<_> = offered(question)
        .map(|(key, effect, option)| {
            let name = fit(&option.name, room(effect, width));
            format!("  {key}  {effect}: {name}")
        })
        .collect();
    if more > 0 {
        lines.push(format!("  v  show {more} more lines of the change"));
    }
    lines.push("  Esc  refuse · Ctrl-C  cancel the turn".to_owned());
    lines
}
