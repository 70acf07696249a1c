//! What steps do, in plain sentences.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::Steps;
use super::verbs::{Call, Choosable, Content, Ending, Errors, Step};
use crate::wire::excerpt;

/// One thing that a check does, or what must come of it.
enum Clause {
    Does(String),
    Must(String),
}

use Clause::{Does, Must};

impl Steps {
    /// Returns what the steps do and what must come.
    pub(in crate::requirements) fn text(&self) -> String {
        let (mut text, mut done) = (String::new(), Vec::new());
        let (mut sessions, mut prompts) = (0, 0);
        for (index, step) in self.steps.iter().enumerate() {
            let is_last = index + 1 == self.steps.len();
            for clause in clauses(step, &mut sessions, &mut prompts) {
                match clause {
                    // As of every turn that a later step needs.
                    Must(_) if matches!(step, Step::Prompt(it) if it.is_plain()) && !is_last => {}
                    Does(what) => done.push(what),
                    Must(what) if done.is_empty() && !text.is_empty() => {
                        text.pop();
                        let _ = write!(text, ", and {what}.");
                    }
                    Must(what) => end(&mut text, &mut done, &format!("; {what}")),
                }
            }
        }
        if !done.is_empty() {
            end(&mut text, &mut done, "");
        }
        text
    }
}

/// Ends a sentence about what was done.
fn end(text: &mut String, done: &mut Vec<String>, must: &str) {
    let sentence = match done.split_last() {
        None => must.trim_start_matches("; ").to_owned(),
        Some((last, [])) => format!("{last}{must}"),
        Some((last, before)) => format!("{}, then {last}{must}", before.join(", ")),
    };
    done.clear();
    let mut letters = sentence.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    let space = if text.is_empty() { "" } else { " " };
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{space}{}{}.",
        first.unwrap_or_default(),
        letters.as_str()
    );
}

fn clauses(step: &Step, sessions: &mut usize, prompts: &mut usize) -> Vec<Clause> {
    let article = |count: &mut usize| {
        *count += 1;
        if *count == 1 { "a" } else { "another" }
    };
    match step {
        Step::Each(step) => vec![Does(format!(
            "does this with each of {} values",
            step.len()
        ))],
        Step::Open(step) if !step.with.is_empty() => {
            let capabilities = named(&Value::Object(step.with.clone()));
            vec![Does(format!("declares {capabilities} too"))]
        }
        Step::Open(_) | Step::Needs(_) | Step::Settle(_) => Vec::new(),
        Step::Initialized(step) => vec![Must(format!(
            "the result of `initialize` must have {}",
            named(step)
        ))],
        Step::Session(_) => vec![Does(format!("opens {} session", article(sessions)))],
        Step::Choose(step) => vec![Does(format!(
            "opens a session with a {}",
            match step {
                Choosable::Mode => "mode",
                Choosable::Option => "select option",
            }
        ))],
        Step::Prompt(step) => {
            let content = content(&step.prompt);
            let place = session(&step.session);
            let with = given_members(&step.with);
            let what = format!("sends {} prompt{content}{place}{with}", article(prompts));
            let mut all = vec![Does(what)];
            all.extend(ending(&step.ending()));
            all
        }
        Step::Begin(step) => {
            let (content, place) = (content(&step.begin), session(&step.session));
            vec![Does(format!(
                "begins {} turn{content}{place}",
                article(prompts)
            ))]
        }
        Step::Cancel(step) => vec![Does(format!("sends `session/cancel`{}", session(step)))],
        Step::Asked(step) => vec![Must(format!("the agent must call `{}`", step))],
        Step::Ends(step) => {
            let mut all = ending(&step.ending());
            if step.promptly {
                all.push(Must("the turn must end within the timeout".to_owned()));
            } else if all.is_empty() {
                all.push(Must("the turn must end".to_owned()));
            }
            all
        }
        Step::Call(step) => call(step),
        Step::Notify(step) => vec![Does(format!(
            "sends the notification `{}`{}",
            step.notify,
            given(&step.params)
        ))],
        Step::Raw(step) => {
            let line = step.as_str().map_or_else(|| shown(step), str::to_owned);
            vec![Does(format!("sends the line `{line}`"))]
        }
        Step::Expect(step) => vec![Must(format!("{} must come", described(step)))],
        Step::Silent(_) => vec![Must("no answer to it may come".to_owned())],
        Step::Serves(_) => vec![Must("`session/new` must succeed afterwards".to_owned())],
    }
}

fn call(step: &Call) -> Vec<Clause> {
    let mut what = format!("sends `{}`", step.call);
    if let Some(id) = &step.id {
        let _ = write!(what, " with the id `{}`", shown(id));
    }
    match &step.params {
        // A variable says less than what is changed in it.
        Some(params) if step.with.is_empty() => what += &given(params),
        _ => what += &given_members(&step.with),
    }
    let error = step.error.as_ref().map(error);
    let result = step.result.as_ref().map(|pattern| match pattern.as_str() {
        Some("{any}") => "a result".to_owned(),
        Some("{empty}") => "an empty object".to_owned(),
        _ => format!("a result with {}", named(pattern)),
    });
    let due = match (result, error, step.not_error) {
        (Some(result), Some(error), _) => format!("{result} or {error}"),
        (Some(due), None, _) | (None, Some(due), _) => due,
        (None, None, Some(code)) => format!("an answer other than error {code}"),
        (None, None, None) if step.id.is_some() => "an answer with this id".to_owned(),
        (None, None, None) => "an answer".to_owned(),
    };
    vec![Does(what), Must(format!("{due} must come"))]
}

/// What is sent with a request or a notification.
fn given(params: &Value) -> String {
    match params {
        Value::Object(members) if members.is_empty() => " with empty params".to_owned(),
        Value::Object(members) => given_members(members),
        Value::Array(_) => " with an array as its params".to_owned(),
        _ => String::new(),
    }
}

fn given_members(members: &Map<String, Value>) -> String {
    let mut members = members.clone();
    let mut place = String::new();
    if members.get("sessionId").is_some_and(Value::is_string) {
        place = session(&members.remove("sessionId").unwrap_or_default());
    }
    let members = Value::Object(members);
    match named(&members).as_str() {
        "" => place,
        named => format!("{place} with {named}"),
    }
}

/// The members of an object in words.
fn named(value: &Value) -> String {
    let mut all = Vec::new();
    leaves("", value, &mut all);
    match all.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

fn leaves(path: &str, value: &Value, all: &mut Vec<String>) {
    if let Value::Object(members) = value
        && (path.is_empty() || !members.is_empty())
    {
        for (name, member) in members {
            let dot = if path.is_empty() { "" } else { "." };
            leaves(&format!("{path}{dot}{name}"), member, all);
        }
        return;
    }
    let kind = match value.as_str() {
        Some("{any}") => "any value",
        Some("{string}") => "a string",
        Some("{text}") => "a text that is not empty",
        Some("{number}") => "a number",
        Some("{object}") => "an object",
        Some("{array}") => "an array",
        _ => return all.push(format!("`{path}: {}`", shown(value))),
    };
    all.push(format!("{kind} as `{path}`"));
}

/// The types of the blocks of a prompt that is not a text of the profile alone.
fn content(content: &Content) -> String {
    let blocks = match content {
        Content::Word(word) if word == "hello" || word == "slow" => return String::new(),
        Content::Word(word) => return format!(" of the word `{word}`"),
        Content::Blocks(blocks) => blocks,
    };
    let kinds = blocks
        .iter()
        .filter_map(|block| block.get("type")?.as_str());
    let kinds: Vec<_> = kinds.map(|kind| format!("`{kind}`")).collect();
    match kinds[..] {
        [] => " without blocks".to_owned(),
        _ => format!(" of the blocks {}", kinds.join(" and ")),
    }
}

/// A session, unless it is the only one.
fn session(id: &Value) -> String {
    match id.as_str() {
        Some("{session}") => String::new(),
        Some(id) if id.starts_with('{') => format!(" in the session `{id}`"),
        _ => " for an unknown session".to_owned(),
    }
}

fn error(errors: &Errors) -> String {
    match errors {
        Errors::Is(true) => "an error".to_owned(),
        Errors::Is(false) => "no error".to_owned(),
        Errors::Code(code) => format!("error {code}"),
        Errors::Codes(codes) => format!("error {}", listed(codes)),
    }
}

fn ending(ending: &Ending<'_>) -> Vec<Clause> {
    let text = match (ending.stop, ending.not_stop, ending.error) {
        (Some(stop), None, _) => {
            format!("the turn must end with the stop reason {}", described(stop))
        }
        (_, Some(other), _) => format!("the turn must end with a stop reason other than `{other}`"),
        (None, None, Some(Errors::Is(false))) => "the turn must end without an error".to_owned(),
        (None, None, Some(errors)) => format!("{} must come", error(errors)),
        (None, None, None) => return Vec::new(),
    };
    vec![Must(text)]
}

/// A value, with the `null` that TOML does not have.
fn shown(value: &Value) -> String {
    excerpt(value).replace("\"{null}\"", "null")
}

/// A pattern in words.
pub(super) fn described(pattern: &Value) -> String {
    let code = pattern.pointer("/error/code").and_then(Value::as_i64);
    let id = pattern.get("id").and_then(Value::as_str);
    match (code, id, pattern) {
        (Some(code), Some("{null}"), _) => format!("error {code} with the id null"),
        (Some(code), ..) => format!("error {code}"),
        (_, _, Value::String(text)) => format!("`{text}`"),
        _ => format!("a message with `{}`", shown(pattern)),
    }
}

/// Numbers in words.
pub(super) fn listed(codes: &[i32]) -> String {
    let codes: Vec<_> = codes.iter().map(i32::to_string).collect();
    codes.join(" or ")
}

/// A value of TOML in a line.
pub(super) fn inline(value: &Value) -> String {
    match value {
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let all = members.iter();
            let all: Vec<_> = all
                .map(|(name, value)| format!("{} = {}", key(name), inline(value)))
                .collect();
            format!("{{ {} }}", all.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        // The escapes of JSON are those of TOML.
        other => other.to_string(),
    }
}

fn key(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => Value::from(name).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(steps: Value) -> String {
        // Tables live as long as the program.
        let steps: &'static Value = Box::leak(Box::new(steps));
        Steps::read(steps.as_array().unwrap()).unwrap().text()
    }

    #[test]
    fn steps_are_sentences() {
        assert_eq!(
            text(json!([
                {"needs": "session/resume"},
                {"session": "session"},
                {"prompt": "hello"},
                {"call": "session/resume", "result": "{any}"},
                {"prompt": "hello", "not_stop": "cancelled"},
            ])),
            "Opens a session, sends a prompt, then sends `session/resume`; a result must come. Sends another \
             prompt; the turn must end with a stop reason other than `cancelled`."
        );
        assert_eq!(
            text(json!([{"raw": "{oops"}, {"expect": {"error": {"code": -32700}}}])),
            "Sends the line `{oops`; error -32700 must come."
        );
        assert_eq!(
            text(json!([
                {"notify": "x", "params": {"a": 7}}, {"silent": true}, {"serves": true},
            ])),
            "Sends the notification `x` with `a: 7`; no answer to it may come, and `session/new` must \
             succeed afterwards."
        );
        assert_eq!(
            text(json!([
                {"call": "x", "id": "{null}", "error": [-32002, -32602]},
                {"session": "session"},
                {"begin": "slow"},
                {"cancel": "none"},
                {"ends": "slow", "stop": "cancelled"},
            ])),
            "Sends `x` with the id `null`; error -32002 or -32602 must come. Opens a session, begins a \
             turn, then sends `session/cancel` for an unknown session; the turn must end with the \
             stop reason `cancelled`."
        );
    }

    #[test]
    fn a_step_is_shown_as_it_stands_in_its_file() {
        let step = json!({"call": "x", "params": {"a.b": [1, "c\n", {}]}});
        assert_eq!(
            inline(&step),
            r#"{ call = "x", params = { "a.b" = [1, "c\n", {}] } }"#
        );
    }
}
