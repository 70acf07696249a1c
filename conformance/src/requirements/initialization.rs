//! The handshake: versions, capabilities, who the agent is.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Check, NamedCheck};
use crate::harness::{Caps, Conn, Cx, Outcome, Reply, Update, inconclusive};
use crate::wire::{UNSUPPORTED_PROTOCOL_VERSION, Version, is_output};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("initialization.same-version", Run(same_version)),
    ("initialization.newer-version", Run(newer_version)),
    ("initialization.older-version", Run(older_version)),
    ("initialization.baseline-methods", Run(baseline_methods)),
    ("initialization.comes-first", Run(comes_first)),
];

fn ask_for(conn: &mut Conn, version: u64) -> Outcome<Reply> {
    let params = params_for(version, conn.version());
    conn.call("initialize", params)
}

/// Returns the params of a client that asks for a version. Those of another version than the tested one have
/// the members of all: an agent of several versions reads them by the one that it selects, and may
/// refuse them without the members that this one requires.
fn params_for(version: u64, tested: Version) -> Value {
    let mut params = Caps::Full.initialize(tested);
    if version != tested.number()
        && let Some(members) = params.as_object_mut()
    {
        for other in [Version::V1, Version::V2] {
            if let Value::Object(more) = Caps::Full.initialize(other) {
                members.extend(more);
            }
        }
    }
    params["protocolVersion"] = json!(version);
    params
}

fn version_for(conn: &mut Conn, version: u64) -> Outcome<(usize, Option<u64>)> {
    let reply = ask_for(conn, version)?;
    match &reply.answer {
        Ok(result) => Ok((
            reply.index,
            result.get("protocolVersion").and_then(Value::as_u64),
        )),
        Err(_) => Err(conn.at(reply.index, "expected a result of initialize, got an error")),
    }
}

/// A version, or that there is none, in words.
fn named(version: Option<u64>) -> String {
    version.map_or_else(|| "none".to_owned(), |version| version.to_string())
}

fn same_version(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let version = conn.version().number();
    let (index, chosen) = version_for(conn, version)?;
    if chosen == Some(version) {
        return Ok(());
    }
    let reason = format!(
        "expected version {version}, which was asked for, got {}",
        named(chosen)
    );
    let failure = conn.at(index, reason);
    let Some(chosen) = chosen else {
        return Err(failure);
    };
    // The sentence is about versions that the agent supports.
    match latest_version(cx.fresh()?)? {
        Some(latest) if latest == version => Err(failure),
        _ => inconclusive(format!(
            "the agent chose version {chosen}; whether it supports version {version} cannot be seen"
        )),
    }
}

/// The latest version that the agent supports, as far as it shows it on this new connection.
///
/// # Errors
/// When it does not answer.
pub(crate) fn latest_version(conn: &mut Conn) -> Outcome<Option<u64>> {
    let reply = ask_for(conn, 65_535)?;
    let result = reply.answer.ok();
    Ok(result.and_then(|result| result.get("protocolVersion")?.as_u64()))
}

fn newer_version(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let least = conn.version().number();
    match version_for(conn, 65_535)? {
        (_, Some(chosen)) if (least..65_535).contains(&chosen) => Ok(()),
        (index, chosen) => Err(conn.at(
            index,
            format!(
                "expected the latest version that the agent supports, got {}",
                named(chosen)
            ),
        )),
    }
}

fn older_version(cx: &mut Cx) -> Outcome {
    let mut conn = cx.fresh()?;
    let is_v2 = conn.version() == Version::V2;
    let mut reply = ask_for(conn, 0)?;
    if reply.answer.is_err() && (is_v2 || speaks_v2(&reply)) {
        refuses_version(conn, &reply, 0)?;
        if !is_v2 {
            return Ok(());
        }
        // After a refusal, the agent may end.
        conn = cx.fresh()?;
        reply = ask_for(conn, 1)?;
        if reply.answer.is_err() {
            return refuses_version(conn, &reply, 1);
        }
    }
    let result = reply.answer.as_ref().ok();
    let chosen = result.and_then(|result| result.get("protocolVersion")?.as_u64());
    match chosen {
        // The agent may speak v1.
        Some(1) => Ok(()),
        Some(1..) if !is_v2 => Ok(()),
        chosen => Err(conn.at(
            reply.index,
            format!(
                "expected a version that the agent supports and the client may know, got {}",
                named(chosen)
            ),
        )),
    }
}

/// The versions that the agent supports, as a refusal tells them.
fn supported(reply: &Reply) -> Option<&Vec<Value>> {
    let error = reply.answer.as_ref().err()?;
    error.pointer("/data/supported")?.as_array()
}

/// Whether the agent that refuses a version speaks v2, too, by which it has to refuse it.
fn speaks_v2(reply: &Reply) -> bool {
    let mut supported = supported(reply).into_iter().flatten();
    supported.any(|version| version.as_u64() >= Some(Version::V2.number()))
}

/// The agent says that it supports no version up to `requested`, and which it does.
fn refuses_version(conn: &Conn, reply: &Reply, requested: u64) -> Outcome {
    conn.has_code(reply, UNSUPPORTED_PROTOCOL_VERSION)?;
    let data = reply
        .answer
        .as_ref()
        .err()
        .and_then(|error| error.get("data"));
    let is_later = |version: &Value| version.as_u64().is_some_and(|it| it > requested);
    let names_later =
        supported(reply).is_some_and(|all| !all.is_empty() && all.iter().all(is_later));
    if names_later && data.and_then(|data| data.get("requested")?.as_u64()) == Some(requested) {
        return Ok(());
    }
    let reason = format!(
        "expected data with `requested`: {requested} and the later versions as `supported`, got {}",
        data.unwrap_or(&Value::Null)
    );
    Err(conn.at(reply.index, reason))
}

fn baseline_methods(cx: &mut Cx) -> Outcome {
    let conn = cx.with(&Caps::None)?;
    let session = conn.session()?;
    let turn = conn.prompt(&session, "hello")?;
    let inside = turn.request..turn.end;
    // Commands and the like describe the session and may come at any time.
    let is_ours = |update: Update<'_>| {
        inside.contains(&update.index) && update.session == session && is_output(update.kind)
    };
    if !conn.recording().updates().any(is_ours) {
        let reason = "expected a session/update with output in the turn, got none";
        return Err(conn.at(turn.end, reason));
    }
    let mark = conn.mark();
    conn.cancel(&session);
    conn.settle()?;
    conn.nothing_answered_since(mark)
}

fn comes_first(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let params = conn.setup(None);
    let request = conn.request("session/new", params);
    // As long as the handshake may take, because the agent is still starting.
    let reply = conn.reply_within(request, conn.env.start_timeout());
    // A WebSocket is closed then, for its first message must be `initialize`.
    if reply.is_err() && conn.env.target.is_remote() && conn.ends_within(Duration::ZERO) {
        return Ok(());
    }
    let reply = reply?;
    match reply.answer {
        Ok(_) => Err(conn.at(
            reply.index,
            "expected an error for session/new before initialize, got a result",
        )),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_asked_for_with_the_members_of_all() {
        let has = |asked: u64, tested: Version| {
            let params = params_for(asked, tested);
            assert_eq!(params["protocolVersion"], asked);
            ["clientInfo", "info"].map(|member| params[member]["name"].is_string())
        };
        assert_eq!(has(1, Version::V1), [true, false]);
        assert_eq!(has(65_535, Version::V1), [true, true]);
        assert_eq!(has(1, Version::V2), [true, true]);
        assert_eq!(has(2, Version::V2), [false, true]);
    }
}
