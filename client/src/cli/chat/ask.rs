//! Questions for permission, answered with one key.

use acp_sdk::v1::PermissionOptionKind;
use tokio::sync::{mpsc, oneshot};

use super::style::{Colour, Face, Paint, fit};
use crate::permission::{Decision, PermissionRequest, Permissions};

/// Hands questions to the conversation.
#[derive(Debug, Clone)]
pub(super) struct Keys(mpsc::Sender<Asked>);

/// A question that waits for a key.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) question: PermissionRequest,
    answer: oneshot::Sender<Decision>,
    /// It stands on the terminal: keys before that answer nothing.
    pub(super) shown: bool,
}

impl Keys {
    pub(super) fn new() -> (Self, mpsc::Receiver<Asked>) {
        let (sender, questions) = mpsc::channel(1);
        (Self(sender), questions)
    }
}

impl Permissions for Keys {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        let (answer, answered) = oneshot::channel();
        let question = question.clone();
        // Nobody listens when the conversation is at its end.
        let _ = self
            .0
            .send(Asked {
                question,
                answer,
                shown: false,
            })
            .await;
        answered.await.unwrap_or(Decision::Reject)
    }

    fn in_order(&self) -> bool {
        true
    }
}

impl Asked {
    /// Whether the agent still wants an answer.
    pub(super) fn is_open(&self) -> bool {
        !self.answer.is_closed()
    }

    /// Answers if the key does; otherwise the question is returned.
    pub(super) fn key(self, key: char) -> Option<Self> {
        match decision(key, &self.question) {
            Some(decision) => {
                // The turn may have been cancelled meanwhile.
                let _ = self.answer.send(decision);
                None
            }
            None => Some(self),
        }
    }
}

/// The key of an option: a letter for its kind, or else its number.
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

fn decision(key: char, question: &PermissionRequest) -> Option<Decision> {
    let options = &question.request.options;
    let chosen = (0..options.len())
        .find(|index| letter(question, *index) == Some(key) || number(*index) == Some(key));
    match chosen {
        Some(index) => Some(Decision::Option(options[index].option_id.clone())),
        // An agent may not offer a refusal.
        None if matches!(key, 'n' | '\u{1b}') => Some(Decision::Reject),
        None => None,
    }
}

/// The question, without its keys.
pub(super) fn shown(
    question: &PermissionRequest,
    diffs: &[String],
    width: usize,
    paint: Paint,
) -> String {
    let title = question.title.as_deref().unwrap_or("a tool call");
    let kind = question.kind.as_ref();
    let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
    let title = fit(&format!("{title}{kind}"), width.saturating_sub(18));
    let sign = Face {
        bold: true,
        ..Face::of(Colour::Yellow)
    };
    let mut text = format!("{} {title}\n", paint.text(sign, "? May the agent:"));
    if diffs.is_empty() {
        for path in question.paths.iter().take(5) {
            text += &format!("  {}\n", fit(path, width.saturating_sub(3)));
        }
        if let Some(input) = &question.raw_input {
            let input = fit(input.get(), width.saturating_sub(3));
            text += &format!("  {}\n", paint.text(Face::DIM, &input));
        }
    }
    for line in diffs {
        text += line;
        text.push('\n');
    }
    text
}

/// The keys that answer, one line each.
pub(super) fn keys(question: &PermissionRequest, width: usize) -> Vec<String> {
    let options = question.request.options.iter().enumerate();
    let mut lines: Vec<_> = options
        .filter_map(|(index, option)| {
            let key = letter(question, index)?;
            let kind = match option.kind {
                PermissionOptionKind::AllowOnce => "allow once",
                PermissionOptionKind::AllowAlways => "allow always",
                PermissionOptionKind::RejectOnce => "reject once",
                PermissionOptionKind::RejectAlways => "reject always",
                _ => "another answer",
            };
            // The name is the agent's; what the option does is said by its kind.
            let name = fit(&option.name, width.saturating_sub(kind.len() + 10));
            Some(format!("  {key}  {kind}: {name}"))
        })
        .collect();
    lines.push("  Esc  refuse · Ctrl-C  cancel the turn".to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{PermissionOption, RequestPermissionRequest, ToolCallUpdate, ToolKind};

    use super::*;

    fn question(kinds: &[PermissionOptionKind]) -> PermissionRequest {
        let call = ToolCallUpdate::new("call")
            .with_title("Run\n\u{1b}[2Jls")
            .with_kind(ToolKind::Execute);
        let options = kinds.iter().enumerate().map(|(index, kind)| {
            PermissionOption::new(index.to_string(), "Name\u{7}", kind.clone())
        });
        PermissionRequest::new(RequestPermissionRequest::new("s", call, options.collect()))
    }

    #[test]
    fn a_key_picks_the_option_of_its_kind() {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        let question = question(&[RejectAlways, AllowAlways, AllowOnce, RejectOnce, AllowOnce]);
        for (key, id) in [
            ('d', "0"),
            ('a', "1"),
            ('y', "2"),
            ('n', "3"),
            ('5', "4"),
            ('1', "0"),
        ] {
            assert_eq!(
                decision(key, &question),
                Some(Decision::Option(id.into())),
                "{key}"
            );
        }
        for key in ['x', '6', '0', '\r', ' ', 'Y'] {
            assert_eq!(decision(key, &question), None, "{key}");
        }
        assert_eq!(decision('\u{1b}', &question), Some(Decision::Reject));
    }

    #[test]
    fn a_refusal_is_always_possible() {
        let question = question(&[PermissionOptionKind::AllowAlways]);
        assert_eq!(decision('n', &question), Some(Decision::Reject));
        assert_eq!(decision('y', &question), None, "once is not always");
    }

    #[test]
    fn the_agent_controls_nothing() {
        let question = question(&[PermissionOptionKind::AllowOnce]);
        let text = shown(&question, &[], 80, Paint { colours: false });
        assert_eq!(text, "? May the agent: Run ls (execute)\n");
        assert_eq!(keys(&question, 80)[0], "  y  allow once: Name");
    }
}
