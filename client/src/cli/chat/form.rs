//! An elicitation of the agent: a form, filled in field by field, or a page that the user may open.
//!
//! A form knows keys and lines, and nothing of the terminal. What it answers fits its schema. No answer is an
//! event of the session, for it may be a secret.

use acp_sdk::runtime::Map;
use acp_sdk::v1::{
    CreateElicitationRequest, ElicitationAcceptAction, ElicitationAction,
    ElicitationContentValue as Value, ElicitationFormMode, ElicitationMode,
    ElicitationPropertySchema as Property, ElicitationSchema, EnumOption, MultiSelectItems,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::style::{clean, fit};
use crate::hooks::check_field;

/// Bytes that an answer of the user may have.
const LONGEST: usize = 1 << 20;

/// Choices that are shown at once.
const CHOICES: usize = 9;

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

/// A form that is being filled in.
#[derive(Debug)]
pub(super) struct Form {
    fields: Vec<Field>,
    /// The field that is asked for; behind the last one, all answers are to be confirmed.
    at: usize,
    typed: String,
    /// The error in the typed text.
    wrong: Option<String>,
}

#[derive(Debug)]
struct Field {
    name: String,
    property: Property,
    required: bool,
    answer: Option<Value>,
}

impl Elicited {
    /// Prepares an elicitation; `None` if nothing of it can be asked here.
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

    /// The text below the agent's message: the whole URL of a page.
    pub(super) fn below(&self) -> Option<String> {
        match self {
            Self::Form(_) => None,
            Self::Page { url } => Some(visible(url)),
        }
    }

    /// The lines that change, for so many columns.
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
        if let Self::Form(form) = self
            && form.typed.len() + text.len() <= LONGEST
        {
            form.typed.push_str(&text.replace('\r', "\n"));
        }
    }

    /// Returns the answer as text that stays on the terminal.
    pub(super) fn summary(&self, action: &ElicitationAction, width: usize) -> Vec<String> {
        match (self, action) {
            (_, ElicitationAction::Decline) => vec!["  declined".to_owned()],
            (_, ElicitationAction::Cancel) => vec!["  no answer".to_owned()],
            (Self::Page { .. }, _) => vec!["  agreed".to_owned()],
            (Self::Form(form), _) => {
                let fields = form.fields.iter();
                fields.filter_map(|field| field.answered(width)).collect()
            }
        }
    }
}

impl Form {
    fn new(schema: &ElicitationSchema) -> Option<Self> {
        let required = |name: &str| schema.required.iter().flatten().any(|field| field == name);
        let fields = schema.properties.iter().map(|(name, property)| Field {
            name: name.to_owned(),
            property: property.clone(),
            required: required(name),
            answer: None,
        });
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

    fn key(&mut self, key: KeyEvent) -> Step {
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
                let field = self.fields.get(self.at);
                let answer = field.and_then(|field| field.answer.as_ref());
                self.typed = answer.map(typed).unwrap_or_default();
                self.wrong = None;
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
                self.wrong = None;
                let next = self
                    .fields
                    .get(self.at)
                    .and_then(|field| field.answer.as_ref());
                self.typed = next.map(typed).unwrap_or_default();
            }
            Err(wrong) => self.wrong = Some(wrong),
        }
    }

    fn lines(&self, width: usize, height: usize) -> Vec<String> {
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

impl Field {
    fn heading(&self) -> String {
        let title = match &self.property {
            Property::String(schema) => &schema.title,
            Property::Integer(schema) => &schema.title,
            Property::Number(schema) => &schema.title,
            Property::Boolean(schema) => &schema.title,
            Property::Array(schema) => &schema.title,
            _ => &None,
        };
        let title = title.as_deref().unwrap_or(&self.name);
        let needed = if self.required { ", required" } else { "" };
        format!("{title}{needed}")
    }

    /// Returns the possible answers as lines.
    fn help(&self, room: usize) -> Vec<String> {
        let (description, expected) = match &self.property {
            Property::String(schema) => (&schema.description, String::new()),
            Property::Integer(schema) => {
                let range = range(schema.minimum, schema.maximum);
                (&schema.description, format!("a whole number{range}"))
            }
            Property::Number(schema) => {
                let range = range(schema.minimum, schema.maximum);
                (&schema.description, format!("a number{range}"))
            }
            Property::Boolean(schema) => (&schema.description, "y or n".to_owned()),
            Property::Array(schema) => (
                &schema.description,
                "numbers, with commas between them".to_owned(),
            ),
            _ => (&None, String::new()),
        };
        let mut lines: Vec<_> = description.iter().map(|text| fit(text, room)).collect();
        let choices = self.choices();
        for (number, choice) in (1..).zip(&choices).take(CHOICES) {
            let named = match choice.title == choice.value {
                true => choice.title.clone(),
                false => format!("{} ({})", choice.title, choice.value),
            };
            lines.push(fit(&format!("{number}  {named}"), room));
        }
        if choices.len() > CHOICES {
            let more = format!(
                "… {} in all; the value itself can be typed, too",
                choices.len()
            );
            lines.push(fit(&more, room));
        }
        let default = self.default();
        let unset = match (&default, self.required) {
            (Some(default), _) => format!("Enter alone: {}", said(default)),
            (None, false) => "Enter alone: nothing".to_owned(),
            (None, true) => String::new(),
        };
        let parts: Vec<_> = [expected, unset]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        if !parts.is_empty() {
            lines.push(fit(&parts.join("; "), room));
        }
        lines
    }

    fn choices(&self) -> Vec<Choice> {
        let plain = |value: &String| Choice {
            value: value.clone(),
            title: value.clone(),
        };
        let titled = |option: &EnumOption| Choice {
            value: option.const_.clone(),
            title: option.title.clone(),
        };
        match &self.property {
            Property::String(schema) => {
                let values = schema.enum_.iter().flatten().map(plain);
                values
                    .chain(schema.one_of.iter().flatten().map(titled))
                    .collect()
            }
            Property::Array(schema) => match &schema.items {
                MultiSelectItems::String(items) => items.enum_.iter().map(plain).collect(),
                MultiSelectItems::Titled(items) => items.any_of.iter().map(titled).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn default(&self) -> Option<Value> {
        match &self.property {
            Property::String(schema) => schema.default.clone().map(Value::String),
            Property::Integer(schema) => schema.default.map(Value::Integer),
            Property::Number(schema) => schema.default.map(Value::Number),
            Property::Boolean(schema) => schema.default.map(Value::Boolean),
            Property::Array(schema) => schema.default.clone().map(Value::StringArray),
            _ => None,
        }
    }

    /// Reads an answer; nothing typed is the default, or no answer.
    fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if typed.is_empty() {
            let default = self.default();
            return match default {
                None if self.required => Err("an answer is required".to_owned()),
                default => Ok(default),
            };
        }
        let choices = self.choices();
        let chosen = |text: &str| {
            let text = text.trim();
            let exact = choices.iter().find(|choice| choice.value == text);
            let number = text
                .parse::<usize>()
                .ok()
                .and_then(|number| choices.get(number.checked_sub(1)?));
            let choice = exact
                .or(number)
                .ok_or_else(|| format!("{text:?} is none of the choices"))?;
            Ok::<_, String>(choice.value.clone())
        };
        let value = match &self.property {
            Property::String(_) if choices.is_empty() => Value::String(typed.to_owned()),
            Property::String(_) => Value::String(chosen(typed)?),
            Property::Integer(_) => {
                let number = typed.parse();
                Value::Integer(number.map_err(|_| "expected a whole number".to_owned())?)
            }
            Property::Number(_) => match typed.parse::<f64>() {
                Ok(number) if number.is_finite() => Value::Number(number),
                _ => return Err("expected a number".to_owned()),
            },
            Property::Boolean(_) => match typed.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Value::Boolean(true),
                "n" | "no" | "false" => Value::Boolean(false),
                _ => return Err("expected y or n".to_owned()),
            },
            Property::Array(_) => {
                let mut values: Vec<String> = Vec::new();
                for value in typed.split(',').map(chosen) {
                    let value = value?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Value::StringArray(values)
            }
            _ => return Err("acp cannot ask for this".to_owned()),
        };
        check_field(&self.property, &value)?;
        Ok(Some(value))
    }

    /// The field with its answer, if it has one.
    fn answered(&self, width: usize) -> Option<String> {
        let answer = said(self.answer.as_ref()?);
        let heading = self.heading();
        let heading = heading.strip_suffix(", required").unwrap_or(&heading);
        Some(format!(
            "  {}",
            fit(&format!("{heading}: {answer}"), width.saturating_sub(4))
        ))
    }
}

struct Choice {
    value: String,
    title: String,
}

fn range<T: std::fmt::Display>(least: Option<T>, most: Option<T>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(", at least {least}"),
        (None, Some(most)) => format!(", at most {most}"),
        (None, None) => String::new(),
    }
}

/// An answer, for people.
fn said(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Boolean(yes) => (if *yes { "yes" } else { "no" }).to_owned(),
        Value::StringArray(values) => values.join(", "),
        _ => String::new(),
    }
}

/// An answer, as it can be typed.
fn typed(value: &Value) -> String {
    said(value)
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

/// Returns a URL in ASCII: other characters can look like different ones.
fn visible(url: &str) -> String {
    let show = |c: char| match c {
        '!'..='~' => c.to_string(),
        c => c.escape_unicode().to_string(),
    };
    url.chars().map(show).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(schema: serde_json::Value) -> Option<Elicited> {
        let request =
            json!({"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": schema});
        Elicited::new(&serde_json::from_value(request).unwrap())
    }

    fn types(form: &mut Elicited, keys: &str) -> Step {
        let mut step = Step::Open;
        for key in keys.chars() {
            let code = match key {
                '\r' => KeyCode::Enter,
                '↑' => KeyCode::Up,
                letter => KeyCode::Char(letter),
            };
            step = form.key(KeyEvent::from(code));
        }
        step
    }

    #[test]
    fn every_kind_of_field_is_read() {
        // A text, which keeps the order of the fields.
        let schema = r#"{"type": "object", "required": ["name", "size"], "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2},
            "age": {"type": "integer", "minimum": 1, "maximum": 9},
            "rate": {"type": "number"},
            "sure": {"type": "boolean", "default": true},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
            "none": {"type": "string"}
        }}"#;
        let mut form = Elicited::Form(Form::new(&serde_json::from_str(schema).unwrap()).unwrap());
        let wrong = |form: &mut Elicited, keys: &str, reason: &str| {
            assert_eq!(types(form, keys), Step::Open);
            let lines = form.lines(80, 24).join("\n");
            assert!(lines.contains(&format!("! {reason}")), "{lines}");
            let erase = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL);
            form.key(erase);
        };
        assert!(form.lines(80, 24)[0].contains("Your name, required (1 of 7)"));
        wrong(&mut form, "\r", "an answer is required");
        wrong(&mut form, "a\r", "needs at least 2 characters");
        types(&mut form, "Eve\r");
        wrong(&mut form, "12\r", "may have at most 9");
        wrong(&mut form, "x\r", "expected a whole number");
        types(&mut form, "7\r");
        wrong(&mut form, "inf\r", "expected a number");
        types(&mut form, "1.5\r");
        wrong(&mut form, "maybe\r", "expected y or n");
        types(&mut form, "\r");
        let lines = form.lines(80, 24).join("\n");
        assert!(lines.contains("2  Large (l)"), "{lines}");
        wrong(&mut form, "3\r", "\"3\" is none of the choices");
        types(&mut form, "2\r");
        types(&mut form, "3, a,c\r");
        assert_eq!(types(&mut form, "\r"), Step::Open, "all is to be confirmed");
        // Back to the last but one, which is changed.
        types(&mut form, "↑↑");
        assert!(form.lines(80, 24).join("\n").contains("› c, a"));
        form.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        types(&mut form, "2\r\r");
        let Step::Done(action) = types(&mut form, "\r") else {
            panic!("not sent");
        };
        let sent = serde_json::to_value(&action).unwrap();
        let content =
            json!({"name": "Eve", "age": 7, "rate": 1.5, "sure": true, "size": "l", "tags": ["b"]});
        assert_eq!(sent, json!({"action": "accept", "content": content}));
        assert_eq!(form.summary(&action, 80)[0], "  Your name: Eve");
    }

    #[test]
    fn a_form_is_declined_or_dismissed() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let mut form = form(schema).unwrap();
        let escape = KeyEvent::from(KeyCode::Esc);
        assert_eq!(form.key(escape), Step::Done(ElicitationAction::Decline));
        let end = KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL);
        assert_eq!(form.key(end), Step::Done(ElicitationAction::Cancel));
    }

    #[test]
    fn what_cannot_be_asked_is_no_form() {
        let unknown =
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "colour"}}});
        assert!(form(unknown).is_none());
        let absent = json!({"type": "object", "required": ["a"], "properties": {}});
        assert!(form(absent).is_none());
    }

    #[test]
    fn a_form_keeps_to_its_terminal_and_controls_nothing() {
        let choices: Vec<_> = (0..30)
            .map(|n| format!("choice {n}\u{1b}[2J {}", "x".repeat(300)))
            .collect();
        let properties: serde_json::Map<_, _> = (0..50)
            .map(|n| {
                (
                    format!("field {n}"),
                    json!({"type": "string", "title": "t\u{202e}\n".repeat(90), "enum": choices}),
                )
            })
            .collect();
        let mut form = form(json!({"type": "object", "properties": properties})).unwrap();
        for _ in 0..=50 {
            let lines = form.lines(40, 24);
            assert!(lines.len() <= 24, "{}", lines.len());
            for line in &lines {
                assert!(
                    unicode_width::UnicodeWidthStr::width(line.as_str()) <= 40,
                    "{line}"
                );
                assert_eq!(&clean(line), line);
            }
            form.paste(&"ü界".repeat(100));
            form.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
            types(&mut form, "1\r");
        }
    }

    #[test]
    fn a_page_needs_consent_and_is_shown_as_a_whole() {
        let url = format!("https://example.com/{}?a=\u{202e}b", "x".repeat(300));
        let request = json!({"sessionId": "s", "mode": "url", "message": "m", "elicitationId": "e", "url": url});
        let mut page = Elicited::new(&serde_json::from_value(request).unwrap()).unwrap();
        let shown = page.below().unwrap();
        assert_eq!(shown, url.replace('\u{202e}', "\\u{202e}"));
        assert_eq!(types(&mut page, "x\r"), Step::Open);
        assert_eq!(
            types(&mut page, "n"),
            Step::Done(ElicitationAction::Decline)
        );
        assert_eq!(types(&mut page, "o"), Step::Browse(url));
        let agreed = types(&mut page, "y");
        assert_eq!(agreed, Step::Done(ElicitationAcceptAction::new().into()));
    }
}
