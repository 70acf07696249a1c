//! Permission requests, answered with one key, and elicitations.

mod options;
#[cfg(test)]
mod tests;

use acp_sdk::v1::{CreateElicitationRequest, ElicitationAction, SessionId};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::{mpsc, oneshot};

use self::options::{decision, keys, shown};
use super::elicitation::{Elicited, Step};
use super::style::{Colour, Face, Paint, wrap};
use super::tools;
use super::view::View;
use acp_client::{Decision, PermissionRequest, Permissions, Reason};
use acp_client::{Elicitation, SessionContext};

/// Passes requests to the conversation.
#[derive(Debug, Clone)]
pub(super) struct Keys(mpsc::Sender<Asked>);

/// A request that waits for keys.
#[derive(Debug)]
pub(super) struct Asked {
    session: SessionId,
    what: What,
    /// Whether it is displayed. Earlier keys are not answers.
    pub(super) shown: bool,
    /// The rest of a long change, which a key shows.
    more: Vec<String>,
}

#[derive(Debug)]
enum What {
    Permission {
        question: Box<PermissionRequest>,
        answer: oneshot::Sender<Decision>,
    },
    Elicitation {
        message: String,
        elicited: Elicited,
        answer: oneshot::Sender<ElicitationAction>,
    },
}

/// The effect of a key on a request.
pub(super) enum Next {
    Open(Asked),
    /// The request is open, and these lines are shown above it.
    More(Asked, Vec<String>),
    /// The request is answered; the lines stay on the terminal.
    Answered(Vec<String>),
    /// The request is answered, and this page is opened.
    Browse(String),
}

impl Keys {
    pub(super) fn new() -> (Self, mpsc::Receiver<Asked>) {
        let (sender, questions) = mpsc::channel(1);
        (Self(sender), questions)
    }
}

impl Permissions for Keys {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        self.decide_with_reason(question).await.0
    }

    async fn decide_with_reason(&self, question: &PermissionRequest) -> (Decision, Option<Reason>) {
        let (answer, answered) = oneshot::channel();
        let session = question.request.session_id.clone();
        let question = Box::new(question.clone());
        let what = What::Permission { question, answer };
        // Fails when the conversation has ended.
        let _ = self.0.send(Asked::new(session, what)).await;
        match answered.await {
            Ok(decision) => (decision, None),
            Err(_) => (Decision::Reject, Some(Reason::Program(OUTSIDE.into()))),
        }
    }

    fn in_order(&self) -> bool {
        true
    }
}

impl Elicitation for Keys {
    /// Asks during turns only, because keys are not read without one.
    async fn ask(
        &self,
        session: Option<&SessionContext>,
        request: &CreateElicitationRequest,
    ) -> ElicitationAction {
        let elicited = session.zip(Elicited::new(request));
        let Some((session, elicited)) = elicited else {
            return ElicitationAction::Cancel;
        };
        let (answer, answered) = oneshot::channel();
        let what = What::Elicitation {
            message: request.message.clone(),
            elicited,
            answer,
        };
        let _ = self.0.send(Asked::new(session.id().clone(), what)).await;
        answered.await.unwrap_or(ElicitationAction::Cancel)
    }
}

impl Asked {
    fn new(session: SessionId, what: What) -> Self {
        Self {
            session,
            what,
            shown: false,
            more: Vec::new(),
        }
    }

    /// Returns whether the agent still waits for the answer.
    pub(super) fn is_open(&self) -> bool {
        match &self.what {
            What::Permission { answer, .. } => !answer.is_closed(),
            What::Elicitation { answer, .. } => !answer.is_closed(),
        }
    }

    /// Returns the session that asks.
    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the changes that are to be permitted. `view` is that of the session that asks, if it is open.
    pub(super) fn changes(
        &self,
        view: Option<&mut View>,
        width: usize,
        paint: Paint,
    ) -> Vec<String> {
        match (&self.what, view) {
            (What::Permission { question, .. }, Some(view)) => view.changes(question, width),
            (What::Permission { question, .. }, None) => tools::requested(question, width, paint),
            (What::Elicitation { .. }, _) => Vec::new(),
        }
    }

    /// Returns the text of the request, which stays on the terminal.
    pub(super) fn text(
        &mut self,
        view: &mut View,
        mut changes: Vec<String>,
        width: usize,
        paint: Paint,
    ) -> String {
        match &self.what {
            What::Permission { question, .. } => {
                self.more = changes.split_off(changes.len().min(SHORT_CHANGE));
                view.block(&shown(question, &changes, width, paint))
            }
            What::Elicitation {
                message, elicited, ..
            } => {
                let heading = match elicited {
                    Elicited::Form(_) => "? The agent asks:",
                    Elicited::Page { .. } => "? The agent asks you to open a page:",
                };
                let mut text = format!("{}\n", paint.text(SIGN, heading));
                for line in wrap(message, width.saturating_sub(3)).iter().take(MESSAGE) {
                    text += &format!("  {line}\n");
                }
                if let Some(url) = elicited.below() {
                    text += &format!("  {}\n", paint.text(Face::BOLD, &url));
                }
                view.block(&text)
            }
        }
    }

    /// Returns the live lines below the text.
    pub(super) fn lines(&self, width: usize, height: usize) -> Vec<String> {
        match &self.what {
            What::Permission { question, .. } => keys(question, width, self.more.len()),
            What::Elicitation { elicited, .. } => elicited.lines(width, height),
        }
    }

    /// Appends text to a typed answer.
    pub(super) fn paste(&mut self, text: &str) {
        if let What::Elicitation { elicited, .. } = &mut self.what {
            elicited.paste(text);
        }
    }

    /// Handles a key. The turn may have been cancelled meanwhile.
    pub(super) fn key(self, key: KeyEvent, width: usize) -> Next {
        let session = self.session;
        match self.what {
            What::Permission { question, answer } => {
                let letter = match key.code {
                    // With a modifier it is another key.
                    _ if !key.modifiers.difference(KeyModifiers::SHIFT).is_empty() => None,
                    KeyCode::Char(letter) => Some(letter),
                    KeyCode::Esc => Some('\u{1b}'),
                    _ => None,
                };
                if let Some(decision) = letter.and_then(|letter| decision(letter, &question)) {
                    let _ = answer.send(decision);
                    return Next::Answered(Vec::new());
                }
                let what = What::Permission { question, answer };
                let open = |more| Self {
                    session,
                    what,
                    shown: true,
                    more,
                };
                match letter {
                    Some('v') => Next::More(open(Vec::new()), self.more),
                    _ => Next::Open(open(self.more)),
                }
            }
            What::Elicitation {
                message,
                mut elicited,
                answer,
            } => match elicited.key(key) {
                Step::Open => {
                    let what = What::Elicitation {
                        message,
                        elicited,
                        answer,
                    };
                    Next::Open(Self {
                        session,
                        what,
                        shown: true,
                        more: Vec::new(),
                    })
                }
                Step::Done(action) => {
                    let summary = elicited.summary(&action, width);
                    let _ = answer.send(action);
                    Next::Answered(summary)
                }
                Step::Browse(url) => {
                    let _ = answer.send(acp_sdk::v1::ElicitationAcceptAction::new().into());
                    Next::Browse(url)
                }
            },
        }
    }
}

/// The reason for a refusal that nobody decided.
const OUTSIDE: &str = "acp asks during a turn only; a rule of --rules FILE can allow it";

/// Maximum number of lines of a change that are shown without a key.
const SHORT_CHANGE: usize = 40;

/// Maximum number of lines shown of an elicitation's message.
const MESSAGE: usize = 100;

/// The style of the mark before a request.
const SIGN: Face = Face {
    bold: true,
    ..Face::of(Colour::Yellow)
};
