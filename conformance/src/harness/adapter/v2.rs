//! The steps in v2: a turn ends with the update that its session is idle.

use serde_json::{Value, json};

use super::{Adapter, Capability, Place};
use crate::harness::Recording;
use crate::wire::{Version, is_output};

pub(super) static ADAPTER: Adapter = Adapter {
    client_members: ("info", "capabilities"),
    agent_members: ("info", "capabilities"),
    all_capabilities,
    place,
    login_methods: ("auth/login", "auth/logout"),
    load: "session/resume",
    load_params: || Some(("replayFrom", json!({"type": "start"}))),
    turn_end,
    answers_early: true,
};

fn all_capabilities() -> Value {
    json!({
        "auth": {"terminal": {}},
        "elicitation": {"form": {}, "url": {}},
    })
}

fn place(capability: Capability) -> Place {
    Place::At(match capability {
        Capability::AdditionalDirectories => "/session/additionalDirectories",
        Capability::Image => "/session/prompt/image",
        Capability::Audio => "/session/prompt/audio",
        Capability::EmbeddedContext => "/session/prompt/embeddedContext",
        Capability::McpStdio => "/session/mcp/stdio",
        Capability::McpHttp => "/session/mcp/http",
        // Those that are not in the document of version 2 have another one in their place.
        Capability::Method(method) => return Place::of_method(Version::V2, method),
    })
}

fn turn_end(recording: &Recording, request: usize, index: usize) -> Option<Result<Value, Value>> {
    let entry = recording.entries.get(index)?;
    if entry.request == Some(request) {
        return entry.answer().err().map(Err);
    }
    let update = entry.params().get("update")?;
    let prompt = recording.entries.get(request)?;
    let ours = index > request && entry.session() == prompt.session();
    if !ours || state(update)? != "idle" {
        return None;
    }
    let updates = |from: usize| {
        let entries = recording.entries.iter().enumerate();
        let since = entries.take(index).skip(from).rev();
        let ours = since.filter(|(_, entry)| entry.session() == prompt.session());
        ours.filter_map(|(place, entry)| Some((place, entry.params().get("update")?)))
    };
    // Before the prompt is inserted, the agent reports the end of other work, or no end.
    let is_echoed = updates(request + 1).any(|(_, update)| is_of_user(update));
    let mut answers = recording.entries.iter().take(index);
    if !is_echoed && !answers.any(|entry| entry.request == Some(request)) {
        return None;
    }
    let states = || updates(0).filter(|(_, update)| state(update).is_some());
    let is_idle = |update: &Value| state(update) == Some("idle");
    let (last, was_idle) = states()
        .next()
        .map_or((0, true), |(place, update)| (place, is_idle(update)));
    let since = last.max(request);
    let has_worked = !was_idle || updates(since).any(|(_, update)| is_output(kind(update)));
    let reason = stop_reason(update);
    let has_ended = match reason {
        None => is_echoed || has_worked,
        // A repeated state may have the reason of earlier work.
        Some(_) => {
            let mut since_work = states().take_while(|(_, update)| is_idle(update));
            has_worked || !since_work.any(|(_, update)| stop_reason(update) == reason)
        }
    };
    has_ended.then(|| Ok(update.clone()))
}

/// The state that an update reports.
fn state(update: &Value) -> Option<&str> {
    let is_state = update.get("sessionUpdate")? == "state_update";
    update.get("state").filter(|_| is_state)?.as_str()
}

fn stop_reason(update: &Value) -> Option<&str> {
    update.get("stopReason")?.as_str()
}

fn kind(update: &Value) -> &str {
    let kind = update.get("sessionUpdate").and_then(Value::as_str);
    kind.unwrap_or_default()
}

/// Whether an update says that a prompt was inserted.
fn is_of_user(update: &Value) -> bool {
    kind(update).starts_with("user_message")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::harness::Recorder;
    use crate::wire::{Party, Schema};

    /// The places of these messages of the agent that end the turn of the last prompt.
    fn ends(messages: &[Value]) -> Vec<usize> {
        let mut recorder = Recorder::new(Schema::of(Version::V2).unwrap());
        let mut prompt = 0;
        for (place, message) in messages.iter().enumerate() {
            let mut message = message.clone();
            message["jsonrpc"] = json!("2.0");
            let from = match message["method"] == "session/prompt" {
                true => Party::Client,
                false => Party::Agent,
            };
            if from == Party::Client {
                prompt = place;
            }
            recorder.message(from, message, Duration::ZERO);
        }
        let recording = recorder.recording;
        let all = prompt + 1..messages.len();
        all.filter(|index| turn_end(&recording, prompt, *index).is_some())
            .collect()
    }

    fn update(update: Value) -> Value {
        json!({"method": "session/update", "params": {"sessionId": "s", "update": update}})
    }

    fn reports(state: &str) -> Value {
        update(json!({"sessionUpdate": "state_update", "state": state}))
    }

    fn ended(reason: &str) -> Value {
        let mut idle = reports("idle");
        idle["params"]["update"]["stopReason"] = json!(reason);
        idle
    }

    fn prompt(id: u64) -> Value {
        let prompt = json!([{"type": "text", "text": "x"}]);
        json!({"id": id, "method": "session/prompt", "params": {"sessionId": "s", "prompt": prompt}})
    }

    fn inserted(id: u64) -> Value {
        json!({"id": id, "result": {"messageId": "m"}})
    }

    fn echo() -> Value {
        update(json!({"sessionUpdate": "user_message", "messageId": "m"}))
    }

    #[test]
    fn the_idle_state_after_the_work_of_a_prompt_ends_its_turn() {
        let (idle, running) = (reports("idle"), reports("running"));
        let turn = [
            prompt(1),
            inserted(1),
            idle.clone(),
            echo(),
            running,
            ended("end_turn"),
        ];
        assert_eq!(ends(&turn), [5]);
        assert_eq!(ends(&[prompt(1), echo(), idle, inserted(1)]), [2]);
        // Nothing but the reason is reported.
        assert_eq!(ends(&[prompt(1), inserted(1), ended("end_turn")]), [2]);
    }

    /// The agent may work without a prompt, for example when a session is opened.
    #[test]
    fn the_end_of_work_before_the_insertion_ends_no_turn() {
        let (running, end) = (reports("running"), ended("end_turn"));
        let own = [prompt(1), running.clone(), end.clone()];
        let turn = [inserted(1), echo(), running, end];
        assert_eq!(ends(&[&own[..], &turn[..]].concat()), [6]);
        let before = [&own[1..], &[prompt(1)], &turn[..]].concat();
        assert_eq!(ends(&before), [6]);
        // A state that ends nothing follows.
        let idle = [reports("idle"), own[2].clone()];
        assert_eq!(
            ends(&[&own[..], &turn[..1], &idle, &turn[1..]].concat()),
            [8]
        );
    }

    #[test]
    fn a_prompt_may_join_work() {
        let joins = [
            reports("running"),
            prompt(1),
            inserted(1),
            ended("end_turn"),
        ];
        assert_eq!(ends(&joins), [3]);
    }

    /// An idle state with the reason of the turn before may come again, as with another list of background
    /// work.
    #[test]
    fn a_repeated_state_ends_no_turn() {
        let cancelled = ended("cancelled");
        let first = [
            prompt(1),
            inserted(1),
            echo(),
            reports("running"),
            cancelled.clone(),
        ];
        let next = [echo(), reports("running"), ended("end_turn")];
        let again = [&[prompt(2), cancelled.clone(), inserted(2)], &next[..]].concat();
        assert_eq!(ends(&[&first[..], &again[..]].concat()), [10]);
        let again = [&[prompt(2), inserted(2), cancelled], &next[..]].concat();
        assert_eq!(ends(&[&first[..], &again[..]].concat()), [10]);
    }
}
