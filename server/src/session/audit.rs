//! The audit log: which question was answered, how, by whom and which way.
//!
//! Events of `tracing` with a target of their own, at the level info, so that an operator can route
//! them.

use std::sync::Arc;

use acp_sdk::text::escaped;
use acp_sdk::v1::{
    ElicitationAction, ElicitationMode, PermissionOption, RequestPermissionOutcome, SessionId,
    ToolCallUpdate,
};

use super::{Ask, Reply};
use crate::event::QuestionId;
use crate::turn::Decision;

/// The target of all lines.
const TARGET: &str = "acp_server::audit";

/// The route of what the server decides itself.
const IN_PLACE: &str = "server";

/// The maximum number of characters of a text, which is the agent's or the client's.
const CHARS: usize = 500;

/// Who answers a question, and which way.
#[derive(Clone, Debug)]
pub struct Answerer {
    /// Whose right it is, such as `master`.
    pub by: Arc<str>,
    /// What the answer came over, such as `rest`.
    pub route: &'static str,
    /// Name and version that a client has given.
    pub client: Option<Arc<str>>,
}

impl Answerer {
    /// A client without a token.
    pub(crate) fn local() -> Self {
        Self {
            by: "local client".into(),
            route: "acp",
            client: None,
        }
    }

    /// A rule of the server, or the time that is over.
    pub(crate) fn rule(by: &str) -> Self {
        Self {
            by: by.into(),
            route: IN_PLACE,
            client: None,
        }
    }

    /// Returns what answers in place of a person, if none does.
    pub(super) fn in_place_of_person(&self) -> Option<String> {
        (self.route == IN_PLACE).then(|| self.by.to_string())
    }

    /// The program that the server is a part of.
    pub(crate) fn program() -> Self {
        Self {
            by: "the program".into(),
            route: "program",
            client: None,
        }
    }
}

/// How a question ended.
pub(crate) enum Ending<'a> {
    /// With a reply.
    Answered(&'a Answerer, &'a Reply),
    /// The only client that could answer has failed.
    Failed(&'a Answerer, &'a crate::Error),
    /// Nobody waits any more: the turn was cancelled or has ended, or the asker no longer waits.
    Withdrawn,
}

/// Logs the end of a question.
pub(crate) fn ended(session: &SessionId, question: QuestionId, ask: &Ask, ending: &Ending<'_>) {
    if !tracing::enabled!(target: TARGET, tracing::Level::INFO) {
        return;
    }
    let asked = Asked::of(ask);
    let outcome = Outcome::of(ask, ending);
    let (answerer, message) = match ending {
        Ending::Answered(answerer, _) => (Some(*answerer), "a question was answered"),
        Ending::Failed(answerer, _) => (Some(*answerer), "a question was not answered"),
        Ending::Withdrawn => (None, "a question was withdrawn"),
    };
    let client = answerer.and_then(|answerer| answerer.client.as_deref());
    tracing::info!(
        target: TARGET,
        session = %session,
        question = question.0,
        asked = asked.what,
        title = asked.title,
        kind = asked.kind,
        outcome = outcome.name,
        option = outcome.option.map(|option| shown(option.option_id.as_str())),
        option_name = outcome.option.map(|option| shown(&option.name)),
        option_kind = outcome.option.map(|option| shown(option.kind.as_str())),
        error = outcome.error,
        by = answerer.map(|answerer| &*answerer.by),
        route = answerer.map(|answerer| answerer.route),
        client = client.map(shown),
        "{message}"
    );
}

/// Logs that an earlier answer that counts always has decided about a tool call.
pub(crate) fn remembered(session: &SessionId, call: &ToolCallUpdate, decision: &Decision) {
    let asked = Asked::about(call);
    tracing::info!(
        target: TARGET,
        session = %session,
        asked = "permission",
        title = asked.title,
        kind = asked.kind,
        outcome = "selected",
        option = shown(decision.option().as_str()),
        option_kind = shown(decision.kind().as_str()),
        by = "an earlier answer",
        "a question was not asked again"
    );
}

/// What was asked.
struct Asked {
    what: &'static str,
    title: String,
    kind: Option<String>,
}

impl Asked {
    fn of(ask: &Ask) -> Self {
        match ask {
            Ask::Permission(request) => Self::about(&request.tool_call),
            Ask::Elicitation(request) => Self {
                what: "elicitation",
                title: shown(&request.message),
                kind: match &request.mode {
                    ElicitationMode::Form(_) => Some("form".to_owned()),
                    ElicitationMode::Url(_) => Some("url".to_owned()),
                    _ => None,
                },
            },
        }
    }

    fn about(call: &ToolCallUpdate) -> Self {
        let title = call.title.as_deref();
        Self {
            what: "permission",
            title: shown(title.unwrap_or(call.tool_call_id.as_str())),
            kind: call.kind.as_ref().map(|kind| shown(kind.as_str())),
        }
    }
}

struct Outcome<'a> {
    name: &'static str,
    option: Option<&'a PermissionOption>,
    error: Option<String>,
}

impl<'a> Outcome<'a> {
    fn of(ask: &'a Ask, ending: &Ending<'_>) -> Self {
        let mut error = None;
        let mut option = None;
        let name = match ending {
            Ending::Withdrawn => "withdrawn",
            Ending::Failed(_, why) => {
                error = Some(shown(&why.to_string()));
                "failed"
            }
            Ending::Answered(_, Reply::Permission(RequestPermissionOutcome::Selected(chosen))) => {
                if let Ask::Permission(request) = ask {
                    let mut offered = request.options.iter();
                    option = offered.find(|option| option.option_id == chosen.option_id);
                }
                "selected"
            }
            Ending::Answered(_, Reply::Permission(_)) => "cancelled",
            // What was entered may be secret.
            Ending::Answered(_, Reply::Elicitation(action)) => match action {
                ElicitationAction::Accept(_) => "accept",
                ElicitationAction::Decline => "decline",
                ElicitationAction::Cancel => "cancel",
                _ => "unknown",
            },
        };
        Self {
            name,
            option,
            error,
        }
    }
}

/// Returns the beginning of a text, as one line in which hidden characters can be seen.
fn shown(text: &str) -> String {
    let cut = text.char_indices().nth(CHARS).map(|(at, _)| at);
    let beginning = escaped(&text[..cut.unwrap_or(text.len())]);
    let line = beginning.replace('\n', "\\n").replace('\t', "\\t");
    match cut {
        Some(_) => line + "…",
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_in_one_line_of_bounded_length() {
        assert_eq!(shown("ls\n\u{202e}\u{1b}[2K"), r"ls\n\u{202e}\u{1b}[2K");
        assert_eq!(shown(&"ä".repeat(CHARS)), "ä".repeat(CHARS));
        assert_eq!(shown(&"ä".repeat(CHARS + 1)), "ä".repeat(CHARS) + "…");
    }
}
