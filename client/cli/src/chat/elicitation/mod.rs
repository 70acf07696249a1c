//! An elicitation of the agent: a form, filled in field by field, or a page that the user may open.
//!
//! It knows keys and lines, and nothing of the terminal. An accepted form fits its schema. No answer is
//! an event of the session, because it may be a secret.

mod field;
mod form;
#[cfg(test)]
mod tests;

use acp_sdk::v1::{
    CreateElicitationRequest, ElicitationAcceptAction, ElicitationAction, ElicitationFormMode,
    ElicitationMode,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use self::form::Form;

/// The effect of a key.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Open,
    Done(ElicitationAction),
    /// The page is to be opened, and consent is given.
    Browse(String),
}

/// An elicitation that is being answered.
#[derive(Debug)]
pub(super) enum Elicited {
    Form(Form),
    Page { url: String },
}

impl Elicited {
    /// Prepares an elicitation; `None` if it has an unknown mode or requires an unknown field.
    pub(super) fn new(request: &CreateElicitationRequest) -> Option<Self> {
        match &request.mode {
            ElicitationMode::Form(ElicitationFormMode {
                requested_schema, ..
            }) => Form::new(requested_schema).map(Self::Form),
            ElicitationMode::Url(page) => Some(Self::Page {
                url: page.url.clone(),
            }),
            _ => None,
        }
    }

    /// Returns the text below the agent's message: the whole URL of a page.
    pub(super) fn below(&self) -> Option<String> {
        match self {
            Self::Form(_) => None,
            Self::Page { url } => Some(visible(url)),
        }
    }

    /// Returns the lines that change with each key, cut to the size of the terminal.
    pub(super) fn lines(&self, width: usize, height: usize) -> Vec<String> {
        match self {
            Self::Form(form) => form.lines(width, height),
            Self::Page { .. } => vec![
                "  o  open it in the browser".to_owned(),
                "  y  agree, and open it yourself".to_owned(),
                "  n  decline · Ctrl-D  no answer · Ctrl-C  cancel the turn".to_owned(),
            ],
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Step {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('d') {
            return Step::Done(ElicitationAction::Cancel);
        }
        match self {
            Self::Form(_) if key.code == KeyCode::Esc => Step::Done(ElicitationAction::Decline),
            Self::Form(form) => form.key(key),
            Self::Page { url } => match key.code {
                KeyCode::Char('n') | KeyCode::Esc => Step::Done(ElicitationAction::Decline),
                KeyCode::Char('y') => Step::Done(ElicitationAcceptAction::new().into()),
                KeyCode::Char('o') => Step::Browse(url.clone()),
                _ => Step::Open,
            },
        }
    }

    /// Appends typed text.
    pub(super) fn paste(&mut self, text: &str) {
        if let Self::Form(form) = self {
            form.paste(text);
        }
    }

    /// Returns the answer as text that stays on the terminal.
    pub(super) fn summary(&self, action: &ElicitationAction, width: usize) -> Vec<String> {
        match (self, action) {
            (_, ElicitationAction::Decline) => vec!["  declined".to_owned()],
            (_, ElicitationAction::Cancel) => vec!["  no answer".to_owned()],
            (Self::Page { .. }, _) => vec!["  agreed".to_owned()],
            (Self::Form(form), _) => form.answers(width),
        }
    }
}

/// Returns a URL in ASCII: other characters can look like different ones.
fn visible(url: &str) -> String {
    let show = |c: char| match c {
        '!'..='~' => c.to_string(),
        c => c.escape_unicode().to_string(),
    };
    url.chars().map(show).collect()
}
