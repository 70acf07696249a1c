//! Requests of the agent whose ids are easily mistaken for others.

use serde_json::{Value, json};

use super::assertions::first;
use super::played::{ClientCheck, Played};
use super::robustness::stray_answer;
use super::scripted_agent::ScriptedAgent;
use crate::harness::{Entry, Outcome, Stop, inconclusive};
use crate::wire::{Kind, Party};

pub(super) const CHECKS: &[ClientCheck] = &[("client.echoes-ids", echoes_ids)];

/// No client knows it.
const METHOD: &str = "_acp-conformance/identified";

/// Zero, less, the largest whole number of JavaScript, a number and its text, and no text.
fn ids() -> [Value; 6] {
    [
        json!(0),
        json!(-7),
        json!(9_007_199_254_740_991_i64),
        json!(1),
        json!("1"),
        json!(""),
    ]
}

/// Sends all requests at once.
pub(super) fn turn(stage: &mut ScriptedAgent) {
    for id in ids() {
        stage.send(&json!({"jsonrpc": "2.0", "id": id, "method": METHOD, "params": {}}));
    }
    stage.are_answered(&ids());
}

/// Whether both are the same id; a number may be written as `1.0`.
fn is_same(a: &Value, b: &Value) -> bool {
    a == b || (a.is_number() && a.as_f64() == b.as_f64())
}

fn echoes_ids(played: &Played) -> Outcome {
    first(played, "session/prompt")?;
    let entries = || played.recording.entries.iter().enumerate();
    let requests = entries().filter(|(_, entry)| entry.calls(Party::Agent, METHOD));
    let requests: Vec<_> = requests.collect();
    let is_answered = |id: &Value| {
        entries().any(|(_, entry)| {
            let answers = matches!(entry.kind, Kind::Result | Kind::Error);
            let found = entry.value.get("id");
            answers && entry.from == Party::Client && found.is_some_and(|found| is_same(found, id))
        })
    };
    let missing = |(_, request): &&(usize, &Entry)| {
        request.value.get("id").is_some_and(|id| !is_answered(id))
    };
    let unanswered: Vec<_> = requests.iter().filter(missing).collect();
    match unanswered.first() {
        _ if requests.is_empty() => inconclusive("the scenario did not get to these requests"),
        Some((index, _))
            if unanswered.len() == requests.len() && stray_answer(played, *index).is_none() =>
        {
            inconclusive("the client answers no request whose method it does not know")
        }
        Some((index, request)) => {
            let id = request.value.get("id").unwrap_or(&Value::Null);
            let reason = format!("expected an answer with the id {id}, got none");
            Err(Stop::after(&played.recording, *index, reason))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_with_other_ids_are_not_taken_for_none() {
        let outcome = |answer: Option<Value>| {
            let prompt = json!({"id": 1, "method": "session/prompt", "params": {}});
            let asked = ids().map(|id| ("agent", json!({"id": id, "method": METHOD})));
            let all = [("client", prompt)].into_iter().chain(asked);
            let answers = answer.map(|id| ("client", json!({"id": id, "result": {}})));
            echoes_ids(&Played::of(all.chain(answers)))
        };
        assert!(matches!(outcome(None), Err(Stop::Inconclusive(_))));
        assert!(matches!(outcome(Some(Value::Null)), Err(Stop::Fail(_))));
        assert!(matches!(outcome(Some(json!("0"))), Err(Stop::Fail(_))));
    }
}
