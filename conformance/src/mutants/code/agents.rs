//! Agents that get sessions, turns or their cancellation wrong.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::target::{Filter, Passing, Tap};

pub(super) const FUNCTIONS: &[(&str, Filter)] = &[
    ("one_session_id", one_session_id),
    (
        "tells_news_of_its_first_session",
        tells_news_of_its_first_session,
    ),
    (
        "forgets_the_user_between_processes",
        forgets_the_user_between_processes,
    ),
    ("works_in_its_first_session", works_in_its_first_session),
    ("reads_beside_the_session", reads_beside_the_session),
    ("shares_mcp_servers", shares_mcp_servers),
    ("deletes_no_active_session", deletes_no_active_session),
    ("lists_all_that_had_a_turn", lists_all_that_had_a_turn),
    ("lists_sessions_below", lists_sessions_below),
    ("answers_in_the_other_session", answers_in_the_other_session),
    ("patches_its_first_message", patches_its_first_message),
    ("one_huge_page", one_huge_page),
    ("one_prompt_a_session", one_prompt_a_session),
    ("cancellation_lasts", cancellation_lasts),
    ("misses_early_cancellation", misses_early_cancellation),
    ("fails_after_insertion", fails_after_insertion),
    ("cancels_before_insertion", cancels_before_insertion),
    ("cancels_before_it_works", cancels_before_it_works),
    ("cancels_everything", cancels_everything),
    ("cancelled_request_fails", cancelled_request_fails),
];

fn one_session_id(tap: &mut Tap<'_>, it: &Passing) {
    if it.succeeds("session/new") && tap.kept("first").is_null() {
        *tap.kept("first") = it.value["result"]["sessionId"].clone();
    }
    if it.asks("session/prompt") && tap.turns(it.at("/sessionId")) > 1 {
        // It waits for the turn of a session that the client takes for another one.
        tap.leave_open(&it.value["id"]);
    }
    let (hit, first) = (it.succeeds("session/new"), tap.kept("first").clone());
    tap.edit(it, hit, |value| value["result"]["sessionId"] = first);
}

fn tells_news_of_its_first_session(tap: &mut Tap<'_>, it: &Passing) {
    let created = it.value.pointer("/result/sessionId");
    if let Some(id) = created.filter(|_| it.succeeds("session/new"))
        && tap.kept("first").is_null()
    {
        *tap.kept("first") = id.clone();
    }
    if it.updates("agent_message_chunk")
        && let Some(first) = tap.kept("first").as_str().map(str::to_owned)
    {
        tap.update(&first, &json!({"sessionUpdate": "session_info_update"}));
    }
    tap.forward();
}

/// Sessions of another connection have no messages of the user.
fn forgets_the_user_between_processes(tap: &mut Tap<'_>, it: &Passing) {
    let created = it
        .value
        .pointer("/result/sessionId")
        .and_then(Value::as_str);
    if let Some(id) = created.filter(|_| it.succeeds("session/new")) {
        *tap.kept(&format!("created {id}")) = json!(true);
    }
    let is_user = it.updates("user_message_chunk") || it.updates("user_message");
    let is_lost = is_user
        && tap
            .kept(&format!("created {}", it.at("/sessionId")))
            .is_null();
    tap.lose(it, is_lost);
}

/// A session must be closed before it is deleted, which an agent may demand.
fn deletes_no_active_session(tap: &mut Tap<'_>, it: &Passing) {
    let created = it
        .value
        .pointer("/result/sessionId")
        .and_then(Value::as_str);
    if let Some(id) = created.filter(|_| it.succeeds("session/new")) {
        *tap.kept(&format!("active {id}")) = json!(true);
    }
    let active = format!("active {}", it.at("/sessionId"));
    if it.succeeds("session/close") {
        *tap.kept(&active) = Value::Null;
        let meta = json!({"conformance.example/deletable": true});
        return tap.edit(it, true, |value| value["result"]["_meta"] = meta);
    }
    let is_active = it.asks("session/delete") && !tap.kept(&active).is_null();
    tap.refuse(it, is_active, ErrorCode::INVALID_REQUEST);
}

/// The list of a directory without sessions is that of another one.
fn lists_all_that_had_a_turn(tap: &mut Tap<'_>, it: &Passing) {
    let is_elsewhere = it.at("/cwd").ends_with("elsewhere");
    let listed = it.value.pointer("/result/sessions").cloned();
    let listed = listed.filter(|_| it.succeeds("session/list"));
    if let Some(listed) = listed.filter(|_| !is_elsewhere)
        && listed.as_array().is_some_and(|listed| !listed.is_empty())
    {
        *tap.kept("listed") = listed;
    }
    let all = tap.kept("listed").clone();
    let hit = it.succeeds("session/list") && is_elsewhere && all.is_array();
    tap.edit(it, hit, |value| value["result"]["sessions"] = all);
}

/// A directory stands for those below it, too, as far as their sessions were listed.
fn lists_sessions_below(tap: &mut Tap<'_>, it: &Passing) {
    let (cwd, is_list) = (it.at("/cwd").to_owned(), it.succeeds("session/list"));
    let known = tap.kept("below").clone();
    let below = known["cwd"].as_str().unwrap_or_default();
    let hit = is_list && !cwd.is_empty() && below != cwd && below.starts_with(&cwd);
    let listed = it
        .value
        .pointer("/result/sessions")
        .and_then(Value::as_array);
    if let Some(listed) = listed.filter(|listed| is_list && !cwd.is_empty() && !listed.is_empty()) {
        *tap.kept("below") = json!({"cwd": cwd, "sessions": listed});
    }
    tap.edit(it, hit, |value| {
        value["result"]["sessions"] = known["sessions"].clone()
    });
}

/// While the prompt `slow` is worked on, answers to others name its session.
fn answers_in_the_other_session(tap: &mut Tap<'_>, it: &Passing) {
    let is_slow = it.asks("session/prompt") && it.prompt() == "slow";
    if is_slow || it.asks("session/cancel") || it.asks("session/new") {
        *tap.kept("slow") = match is_slow {
            true => it.params["sessionId"].clone(),
            false => Value::Null,
        };
    }
    let slow = tap.kept("slow").clone();
    let text = it.at("/update/content/text").to_owned();
    let hit = it.updates("agent_message_chunk") && text.starts_with("Hello") && slow.is_string();
    tap.edit(it, hit, |value| value["params"]["sessionId"] = slow);
}

/// In v2: the message of an earlier turn gets other metadata in the next one, as updates may have it.
fn patches_its_first_message(tap: &mut Tap<'_>, it: &Passing) {
    let session = it.at("/sessionId").to_owned();
    let first = format!("message {session}");
    let id = it.params.pointer("/update/messageId").cloned();
    if let Some(id) = id.filter(|_| it.updates("agent_message_chunk")) {
        let known = tap.kept(&first).clone();
        if known.is_null() {
            *tap.kept(&first) = id;
        } else if known != id {
            let meta = json!({"conformance.example/seen": true});
            let patch =
                json!({"sessionUpdate": "agent_message", "messageId": known, "_meta": meta});
            tap.update(&session, &patch);
        }
    }
    tap.forward();
}

/// Commands run in the directory of the first session.
fn works_in_its_first_session(tap: &mut Tap<'_>, it: &Passing) {
    if it.asks("session/new") && tap.kept("cwd").is_null() {
        *tap.kept("cwd") = it.params["cwd"].clone();
    }
    let first = tap.kept("cwd").clone();
    let hit = it.tells("terminal/create") || it.updates("terminal_update");
    tap.edit(it, hit, |value| {
        for place in ["/params/cwd", "/params/update/cwd"] {
            if let Some(cwd) = value.pointer_mut(place) {
                cwd.clone_from(&first);
            }
        }
    });
}

/// Relative paths begin in the parent of the session's directory.
fn reads_beside_the_session(tap: &mut Tap<'_>, it: &Passing) {
    let path = std::path::Path::new(it.at("/path"));
    let beside = path.parent().and_then(std::path::Path::parent);
    let beside = beside.zip(path.file_name());
    let beside = beside.map(|(folder, name)| json!(folder.join(name)));
    let session = it.at("/sessionId").to_owned();
    if it.asks("session/prompt") && it.prompt() == "read input.txt" {
        *tap.kept("relative") = json!(session);
    }
    let hit = it.tells("fs/read_text_file") && *tap.kept("relative") == session;
    tap.edit(it, hit, |value| {
        value["params"]["path"] = beside.unwrap_or_default();
    });
}

/// A session without MCP servers gets those of the session before.
fn shares_mcp_servers(tap: &mut Tap<'_>, it: &Passing) {
    let servers = it
        .params
        .get("mcpServers")
        .filter(|_| it.asks("session/new"));
    let has_some = servers
        .and_then(Value::as_array)
        .is_some_and(|all| !all.is_empty());
    if let Some(servers) = servers.filter(|_| has_some) {
        *tap.kept("servers") = servers.clone();
    }
    let earlier = tap.kept("servers").clone();
    let hit = it.asks("session/new") && !has_some && !earlier.is_null();
    tap.edit(it, hit, |value| value["params"]["mcpServers"] = earlier);
}

fn one_huge_page(tap: &mut Tap<'_>, it: &Passing) {
    let hit = it.succeeds("session/list") && *it.params == json!({});
    tap.edit(it, hit, |value| {
        let sessions = value.pointer_mut("/result/sessions");
        if let Some(sessions) = sessions.and_then(Value::as_array_mut) {
            let entry = |number| json!({"sessionId": format!("x{number}"), "cwd": "/elsewhere"});
            sessions.extend((0..1001).map(entry));
        }
    });
}

fn one_prompt_a_session(tap: &mut Tap<'_>, it: &Passing) {
    let mut again = false;
    if it.asks("session/prompt") {
        again = is_hello(it) && *tap.kept("greeted") == it.params["sessionId"];
        *tap.kept("greeted") = json!(null);
        if is_hello(it) {
            *tap.kept("greeted") = it.params["sessionId"].clone();
        }
    } else if it.asks("session/load") || it.asks("session/resume") {
        *tap.kept("greeted") = json!(null);
    }
    tap.refuse(it, again, ErrorCode::INTERNAL_ERROR);
}

fn cancellation_lasts(tap: &mut Tap<'_>, it: &Passing) {
    if it.value.pointer("/result/stopReason") == Some(&json!("cancelled")) {
        *tap.kept("cancelled") = it.params["sessionId"].clone();
    }
    let cancelled = tap.kept("cancelled").clone();
    let hit = it.succeeds("session/prompt")
        && is_hello(it)
        && it.params["sessionId"] == cancelled
        && *tap.kept("again") == cancelled;
    if it.asks("session/prompt") {
        *tap.kept("again") = it.params["sessionId"].clone();
    }
    tap.edit(it, hit, |value| {
        value["result"]["stopReason"] = json!("cancelled")
    });
}

/// Of a prompt and its cancellation in one write, only the prompt gets through.
fn misses_early_cancellation(tap: &mut Tap<'_>, it: &Passing) {
    let raw = it.raw.clone().unwrap_or_default();
    let text = String::from_utf8_lossy(&raw);
    if text.contains("session/cancel") && text.contains("session/prompt") {
        let prompt = text.lines().next().unwrap_or_default();
        let prompt = serde_json::from_str::<Value>(prompt).unwrap_or_default();
        tap.to_agent(&prompt);
        tap.leave_open(&prompt["id"]);
    } else {
        tap.forward();
    }
}

/// The prompt of a write that has its cancellation or the end of its session, too.
fn prompt_with_cancellation(it: &Passing) -> Option<Value> {
    let raw = String::from_utf8_lossy(it.raw.as_deref()?).into_owned();
    let ends = raw.contains("cancel") || raw.contains("session/close");
    let has_both = raw.contains("session/prompt") && ends;
    let prompt = raw.lines().next().filter(|_| has_both)?;
    serde_json::from_str(prompt).ok()
}

/// A prompt that is cancelled at once is answered with an error, although its message was inserted.
fn fails_after_insertion(tap: &mut Tap<'_>, it: &Passing) {
    if let Some(prompt) = prompt_with_cancellation(it) {
        *tap.kept("prompt") = prompt["id"].clone();
    }
    let id = tap.kept("prompt").clone();
    let hit = it.value.get("result").is_some() && it.value["id"] == id;
    tap.edit(it, hit, |value| *value = cancelled(&id));
}

/// A prompt that is cancelled at once is not inserted, which is sound.
fn cancels_before_insertion(tap: &mut Tap<'_>, it: &Passing) {
    match prompt_with_cancellation(it) {
        Some(prompt) => tap.to_client(&cancelled(&prompt["id"])),
        None => tap.forward(),
    }
}

/// A prompt that is cancelled at once is inserted, and its work does not begin, which is sound.
fn cancels_before_it_works(tap: &mut Tap<'_>, it: &Passing) {
    if let Some(prompt) = prompt_with_cancellation(it) {
        *tap.kept("idle") = prompt["params"]["sessionId"].clone();
    }
    let idle = tap.kept("idle").clone();
    let is_work = it.updates("state_update") || it.updates("agent_message_chunk");
    let is_lost = is_work && idle.is_string() && it.params["sessionId"] == idle;
    tap.lose(it, is_lost);
}

fn cancelled(id: &Value) -> Value {
    let error = json!({"code": ErrorCode::REQUEST_CANCELLED, "message": "cancelled"});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// A cancellation ends the slow turns of all sessions.
fn cancels_everything(tap: &mut Tap<'_>, it: &Passing) {
    let session = it.at("/sessionId");
    if it.asks("session/prompt") && it.prompt() == "slow" {
        tap.kept("slow")[session] = json!(true);
    } else if it.asks("session/cancel") {
        let slow = tap.kept("slow").take();
        let others = slow.as_object().into_iter().flat_map(|all| all.keys());
        for other in others.filter(|other| *other != session) {
            let params = json!({"sessionId": other});
            tap.to_agent(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
        }
    }
    tap.forward();
}

fn cancelled_request_fails(tap: &mut Tap<'_>, it: &Passing) {
    if it.asks("$/cancel_request") {
        *tap.kept("cancelled") = it.params["requestId"].clone();
    }
    let cancelled = tap.kept("cancelled").clone();
    let hit = it.answers("session/prompt") && it.value["id"] == cancelled;
    tap.edit(it, hit, |value| {
        let id = value["id"].take();
        let error = json!({"code": ErrorCode::INTERNAL_ERROR, "message": "aborted"});
        *value = json!({"jsonrpc": "2.0", "id": id, "error": error});
    });
}

fn is_hello(it: &Passing) -> bool {
    it.prompt().starts_with("Hello")
}
