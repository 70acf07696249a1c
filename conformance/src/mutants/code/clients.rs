//! Clients of version 2 that get batches or cursors wrong.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::target::{Filter, Passing, Tap};
use crate::wire::Party;

pub(super) const FUNCTIONS: &[(&str, Filter)] = &[
    ("answers_news_in_batches", answers_news_in_batches),
    ("refuses_whole_batches", refuses_whole_batches),
    ("overlooks_garbage", overlooks_garbage),
    ("batches_prompts", batches_prompts),
    ("tidies_cursors", tidies_cursors),
    ("asks_for_more_pages", asks_for_more_pages),
];

fn answers_news_in_batches(tap: &mut Tap<'_>, it: Passing) {
    let is_news = |one: &Value| one.get("method").is_some() && one.get("id").is_none();
    let batch = batch(&it).unwrap_or_default();
    tap.forward(&it);
    if !batch.is_empty() && batch.iter().all(is_news) {
        tap.to_agent(&json!([]));
    }
}

fn refuses_whole_batches(tap: &mut Tap<'_>, it: Passing) {
    let batch = batch(&it).unwrap_or_default();
    if batch.iter().all(Value::is_object) {
        tap.forward(&it);
    } else {
        let error = json!({"code": ErrorCode::INVALID_REQUEST, "message": "no"});
        tap.to_agent(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
    }
}

fn overlooks_garbage(tap: &mut Tap<'_>, it: Passing) {
    let is_garbage = it.from == Party::Agent && it.raw.is_some() && batch(&it).is_none();
    tap.lose(&it, is_garbage);
}

fn batches_prompts(tap: &mut Tap<'_>, it: Passing) {
    match it.asks("session/prompt") {
        true => tap.to_agent(&json!([it.value])),
        false => tap.forward(&it),
    }
}

fn tidies_cursors(tap: &mut Tap<'_>, it: Passing) {
    let hit = it.asks("session/list") && it.params["cursor"].is_string();
    tap.edit(it, hit, |value| {
        let cursor = value["params"]["cursor"].as_str().unwrap_or_default();
        value["params"]["cursor"] = json!(cursor.trim());
    });
}

/// Goes on after the last page, as if its cursor led to more.
fn asks_for_more_pages(tap: &mut Tap<'_>, it: Passing) {
    let is_page = it.succeeds("session/list");
    let next = it.value.pointer("/result/nextCursor").cloned();
    tap.forward(&it);
    match next.unwrap_or_default() {
        Value::Null if is_page => {
            let params = json!({"cursor": tap.kept("cursor").take()});
            tap.ask(Party::Agent, "session/list", &params);
        }
        cursor if is_page => *tap.kept("cursor") = cursor,
        _ => {}
    }
}

/// The messages of a batch of the agent.
fn batch(it: &Passing) -> Option<Vec<Value>> {
    let line = it.raw.as_deref().filter(|_| it.from == Party::Agent)?;
    serde_json::from_slice(line).ok()
}
