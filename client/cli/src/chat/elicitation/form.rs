//! A form that is filled in field by field.

use acp_sdk::runtime::Map;
use acp_sdk::v1::{
    ElicitationAcceptAction, ElicitationContentValue as Value,
    ElicitationPropertySchema as Property, ElicitationSchema,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::Step;
use super::field::{CHOICES, Field, shown};
use crate::chat::style::{clean, fit};

/// Bytes that an answer of the user may have.
const LONGEST: usize = 1 << 20;

/// A form that is being filled in.
#[derive(Debug)]
pub(in crate::chat) struct Form {
    fields: Vec<Field>,
    /// The index of the current field. After the last one, Enter confirms all answers.
    at: usize,
    typed: String,
    /// The error in the typed text.
    wrong: Option<String>,
}

impl Form {
    /// Creates a form; `None` if it requires a field of unknown type.
    pub(super) fn new(schema: &ElicitationSchema) -> Option<Self> {
        let required = |name: &str| schema.required.iter().flatten().any(|field| field == name);
        let fields = schema
            .properties
            .iter()
            .map(|(name, property)| Field::new(name, property, required(name)));
        let (known, unknown): (Vec<_>, Vec<_>) =
            fields.partition(|field| !matches!(field.property, Property::Unknown(_)));
        let is_possible = unknown.iter().all(|field| !field.required)
            && schema
                .required
                .iter()
                .flatten()
                .all(|name| schema.properties.get(name).is_some());
        is_possible.then_some(Self {
            fields: known,
            at: 0,
            typed: String::new(),
            wrong: None,
        })
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Step {
        let plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if self.at >= self.fields.len() => {
                let answers = self.fields.iter();
                let content: Map<Value> = answers
                    .filter_map(|field| Some((field.name.clone(), field.answer.clone()?)))
                    .collect();
                return Step::Done(ElicitationAcceptAction::new().with_content(content).into());
            }
            KeyCode::Enter => self.enter(),
            KeyCode::Up => {
                self.at = self.at.saturating_sub(1);
                self.restore();
            }
            KeyCode::Backspace => drop(self.typed.pop()),
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => self.typed.clear(),
            KeyCode::Char(letter) if plain && self.typed.len() < LONGEST => self.typed.push(letter),
            _ => {}
        }
        Step::Open
    }

    /// Accepts the typed text as the value of the field.
    fn enter(&mut self) {
        let Some(field) = self.fields.get_mut(self.at) else {
            return;
        };
        match field.read(&self.typed) {
            Ok(answer) => {
                field.answer = answer;
                self.at += 1;
                self.restore();
            }
            Err(wrong) => self.wrong = Some(wrong),
        }
    }

    /// Restores the answer of the current field as typed text.
    fn restore(&mut self) {
        let field = self.fields.get(self.at);
        let answer = field.and_then(|field| field.answer.as_ref());
        self.typed = answer.map(shown).unwrap_or_default();
        self.wrong = None;
    }

    /// Appends text, unless the answer would be too long.
    pub(super) fn paste(&mut self, text: &str) {
        if self.typed.len() + text.len() <= LONGEST {
            self.typed.push_str(&text.replace('\r', "\n"));
        }
    }

    /// Returns the answered fields, a line each.
    pub(super) fn answers(&self, width: usize) -> Vec<String> {
        let fields = self.fields.iter();
        fields.filter_map(|field| field.answered(width)).collect()
    }

    pub(super) fn lines(&self, width: usize, height: usize) -> Vec<String> {
        let room = width.saturating_sub(4);
        let answered = self.fields.iter().take(self.at);
        let mut lines: Vec<_> = answered.filter_map(|field| field.answered(width)).collect();
        // Below the answers are a field with its choices, and the keys.
        let most = height.saturating_sub(CHOICES + 8).max(1);
        lines.drain(..lines.len().saturating_sub(most));
        match self.fields.get(self.at) {
            Some(field) => {
                let place = format!("({} of {})", self.at + 1, self.fields.len());
                lines.push(format!(
                    "  {} {place}",
                    fit(&field.heading(), room.saturating_sub(place.len()))
                ));
                lines.extend(
                    field
                        .help(room)
                        .into_iter()
                        .map(|line| format!("    {line}")),
                );
                lines.extend(
                    self.wrong
                        .iter()
                        .map(|wrong| format!("    ! {}", fit(wrong, room.saturating_sub(4)))),
                );
                lines.push(format!("  › {}", end_of(&self.typed, room)));
                lines.push(fit(
                    "  Enter  next · Up  back · Esc  decline · Ctrl-D  no answer",
                    width,
                ));
            }
            None => lines.push(fit(
                "  Enter  send · Up  back · Esc  decline · Ctrl-D  no answer",
                width,
            )),
        }
        lines
    }
}

/// Returns the end of the typed text that fits into the width.
fn end_of(typed: &str, room: usize) -> String {
    let typed = clean(typed).replace('\n', " ");
    let length = typed.chars().count();
    let hidden = length.saturating_sub(room.saturating_sub(1) / 2);
    match fit(&typed, room) {
        all if all == typed => all,
        // A character has two columns at most.
        _ => std::iter::once('…')
            .chain(typed.chars().skip(hidden))
            .collect(),
    }
}
