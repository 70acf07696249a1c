//! What the log must be, and what it says of prompts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::agent::MODES;
use crate::client::Version;
use crate::record::Entry;
use crate::view::View;
use crate::world::{Prompt, Reply, Steer};

type Log = [Arc<Entry>];

/// Returns the turn that an event belongs to: the number of its first event.
fn turn_of(number: u64, log: &Log) -> Option<u64> {
    let at = usize::try_from(number).unwrap();
    let before = log[..at - 1]
        .iter()
        .rposition(|entry| entry.kind() == "turn_ended");
    let from = before.map_or(0, |at| at + 1);
    let started = log[from..at]
        .iter()
        .rposition(|entry| entry.kind() == "turn_started");
    Some((from + started?) as u64 + 1)
}

/// Returns the id of the prompt that an event belongs to.
pub fn prompt_of(number: u64, log: &Log) -> Option<String> {
    let turn = turn_of(number, log)?;
    // Its words follow, in the same commit.
    let words = log.get(usize::try_from(turn).unwrap())?.said();
    let (name, _) = words.rsplit_once(' ')?;
    Some(match name.starts_with("injected") {
        true => format!("turn-{turn}"),
        false => name.to_owned(),
    })
}

/// A turn as the log has it.
struct Turn<'a> {
    words: &'a Entry,
    /// The number of its end.
    end: u64,
    ended: &'a Value,
}

/// Checks the events of a session in which nothing runs.
pub fn check(log: &Log) -> Result<(), String> {
    check_turns(log, &mut Vec::new())
}

/// Checks as [`check`] does, and adds the turns that have ended before the first fault to `turns`: in a
/// session that was deleted, the last turn need not have an end.
fn check_turns<'a>(log: &'a Log, turns: &mut Vec<Turn<'a>>) -> Result<(), String> {
    let mut running = None;
    let mut calls = BTreeSet::new();
    let mut questions = BTreeSet::new();
    for (at, entry) in log.iter().enumerate() {
        let (number, value) = (at as u64 + 1, &entry.value);
        match entry.kind() {
            "turn_started" => {
                if let Some(before) = running.replace(number) {
                    return Err(format!(
                        "turn {number} starts, and turn {before} has no end"
                    ));
                }
            }
            "turn_ended" => {
                let started = running.take();
                if started.is_none() || value["turn"].as_u64() != started {
                    return Err(format!(
                        "event {number} ends {}, not {started:?}",
                        value["turn"]
                    ));
                }
                if let Some(call) = calls.pop_first() {
                    return Err(format!(
                        "tool call {call} is open after its turn {started:?}"
                    ));
                }
                if let Some(question) = questions.pop_first() {
                    return Err(format!("question {question} is open after its turn"));
                }
                let words = &log[usize::try_from(started.unwrap()).unwrap()];
                let end = number;
                let ended = value;
                turns.push(Turn { words, end, ended });
            }
            "tool_call" => drop(calls.insert(value["toolCallId"].to_string())),
            "tool_call_update" if value["status"] == "completed" || value["status"] == "failed" => {
                let call = value["toolCallId"].to_string();
                if !calls.remove(&call) {
                    return Err(format!("event {number} ends {call}, which is not open"));
                }
            }
            "permission_asked" => {
                if value["question"] != number {
                    return Err(format!("event {number} asks {}", value["question"]));
                }
                questions.insert(number);
            }
            "permission_answered" => {
                let question = value["question"].as_u64().unwrap_or(0);
                if !questions.remove(&question) {
                    return Err(format!("event {number} ends {question}, which is not open"));
                }
            }
            _ => {}
        }
    }
    match running {
        Some(turn) => Err(format!("turn {turn} has no end")),
        None => Ok(()),
    }
}

/// Checks that chosen options were chosen by a client.
pub fn replies(log: &Log, replies: &[&Reply]) -> Result<(), String> {
    for entry in log
        .iter()
        .filter(|entry| entry.kind() == "permission_answered")
    {
        let (question, outcome) = (&entry.value["question"], &entry.value["outcome"]);
        let Some(option) = outcome["optionId"].as_str() else {
            continue;
        };
        let is_it = |reply: &&&Reply| *question == reply.question && option == reply.option;
        if !replies.iter().any(|reply| is_it(&reply)) {
            return Err(format!("nobody has answered {question} with {option}"));
        }
    }
    Ok(())
}

/// Returns the questions without an answer, with the text that they are about.
pub fn open_questions(log: &Log) -> BTreeMap<u64, String> {
    let mut open = BTreeMap::new();
    for entry in log {
        let question = entry.value["question"].as_u64();
        match (entry.kind(), question) {
            ("permission_asked", Some(question)) => {
                let title = entry.value["request"]["toolCall"]["title"].as_str();
                open.insert(question, title.unwrap_or_default().to_owned());
            }
            ("permission_answered", Some(question)) => drop(open.remove(&question)),
            _ => {}
        }
    }
    open
}

/// Returns the mode and the title after the last event.
pub fn settings(log: &Log) -> (&str, Option<&str>) {
    let mut modes = log.iter().rev().map(|entry| &entry.value["currentModeId"]);
    let mode = modes.find_map(Value::as_str).unwrap_or(MODES[0]);
    let mut infos = log.iter().rev().map(|entry| &entry.value);
    let info = infos.find(|value| value["sessionUpdate"] == "session_info_update");
    (mode, info.and_then(|info| info["title"].as_str()))
}

/// Checks the answer of a prompt. `is_exact`: no commit may have happened that the server took for
/// failed.
pub fn answer(
    prompt: &Prompt,
    view: Option<&View>,
    log: &Log,
    is_exact: bool,
) -> Result<(), String> {
    let Some(answer) = &prompt.answer else {
        return Ok(());
    };
    let words = log
        .iter()
        .position(|entry| entry.kind() == "user_message_chunk" && entry.said() == prompt.text);
    let mut turns = Vec::new();
    // A fault of the log is reported for the log.
    let _ = check_turns(log, &mut turns);
    let turn = turns.iter().find(|turn| turn.words.said() == prompt.text);
    let reached = |last| match (&answer.places, view) {
        (Some(places), Some(view)) => view.ends_at(places, last, log),
        _ => true,
    };
    match (&answer.result, prompt.version) {
        (Ok(result), Version::V2) => {
            let words = words.ok_or("an answer to a prompt that is not in the log")?;
            if log[words].value["messageId"] != result["messageId"] {
                return Err(format!(
                    "the message is {:?}, got {result}",
                    log[words].value
                ));
            }
            Ok(())
        }
        (Err(error), Version::V2) => match words {
            Some(at) if is_exact && !prompt.may_be_cancelled => {
                Err(format!("event {} is the prompt, got {error}", at + 1))
            }
            _ if prompt.may_fail || prompt.may_be_cancelled => Ok(()),
            _ if is_full(error) => Ok(()),
            _ => Err(format!("nothing has failed, got {error}")),
        },
        (Ok(result), Version::V1) => {
            let stop = result["stopReason"].as_str().unwrap_or_default();
            if stop == "cancelled" && !prompt.may_be_cancelled {
                return Err("nothing has cancelled it".to_owned());
            }
            match turn {
                None if stop == "cancelled" && (words.is_none() || !is_exact) => Ok(()),
                None => Err(format!("its turn is not in the log, got {stop}")),
                // What the store does not take cannot be said later.
                Some(turn) if turn.ended["error"].is_string() && !is_exact => Ok(()),
                Some(turn) if turn.ended["stopReason"] != stop => {
                    Err(format!("the log has {}, got {stop}", turn.ended))
                }
                Some(turn) if is_exact && !reached(turn.end) => {
                    let places = &answer.places;
                    Err(format!("answered at {places:?}, not at {}", turn.end))
                }
                Some(_) => Ok(()),
            }
        }
        (Err(error), Version::V1) => match turn {
            Some(turn) if turn.ended["stopReason"].is_string() && is_exact => {
                Err(format!("the log has {}, got {error}", turn.ended))
            }
            Some(turn) if turn.ended["error"] == error["message"] => Ok(()),
            _ if prompt.may_fail => Ok(()),
            _ if is_full(error) => Ok(()),
            _ => Err(format!("nothing has failed, got {error}")),
        },
    }
}

/// Checks the answers to input of one text, which may have been sent several times.
pub fn steers(steers: &[&Steer], log: &Log, is_exact: bool) -> Result<(), String> {
    let said = |entry: &&Arc<Entry>| {
        entry.kind() == "user_message_chunk" && entry.said() == steers[0].text
    };
    let count = log.iter().filter(said).count();
    if count > 1 && is_exact {
        return Err(format!("it is {count} times in the log"));
    }
    let mut refused = true;
    for steer in steers {
        let Some(Ok(answer)) = &steer.answer else {
            refused = false;
            continue;
        };
        match answer["outcome"].as_str() {
            Some("injected") => {
                refused = false;
                let number = answer["eventId"].as_u64().unwrap();
                let entry = log.get(usize::try_from(number).unwrap() - 1);
                let entry = entry.filter(|entry| said(entry));
                let message = entry.map(|entry| &entry.value["messageId"]);
                if message != Some(&answer["messageId"]) {
                    return Err(format!("it is not event {number}: {answer}"));
                }
            }
            Some("refused") => {}
            _ => refused = false,
        }
    }
    match refused && count > 0 && is_exact {
        true => Err("it is in the log, and was refused".to_owned()),
        false => Ok(()),
    }
}

/// Returns whether the server had no room for a session, because another one was in use.
fn is_full(error: &Value) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    message.contains("open and in use")
}
