//! The handshake, what a client may say at all, and how it ends.

use serde_json::Value;

use super::Played;
use super::assertions::{expect, first};
use super::live::ONLY_MESSAGES;
use super::table::ClientCheck;
use crate::harness::{Entry, Outcome, Stop, fail};
use crate::wire::{Finding, FindingKind, Party};

pub(super) const CHECKS: &[ClientCheck] = &[
    ("client.initialize-first", initialize_first),
    ("client.version", version),
    ("client.info", info),
    ("client.closes-on-other-version", closes_on_other_version),
    ("client.only-messages", only_messages),
    ("client.valid-files", only_messages),
    ("client.valid-terminals", only_messages),
    ("client.absolute-cwd", absolute_cwd),
    ("client.no-undeclared-methods", no_undeclared_methods),
    ("client.no-undeclared-content", no_undeclared_content),
    ("client.no-undeclared-servers", no_undeclared_servers),
    (
        "client.no-undeclared-directories",
        no_undeclared_directories,
    ),
    ("client.custom-fields", custom_fields),
    ("client.method-names", method_names),
    ("client.comes-to-an-end", comes_to_an_end),
];

pub(super) fn initialize_first(played: &Played) -> Outcome {
    let (index, _) = first(played, "initialize")?;
    let mut ours = played.recording.entries.iter().enumerate();
    let first = ours.find(|(_, entry)| entry.from == Party::Client);
    expect(
        played,
        index,
        first.is_some_and(|(first, _)| first == index),
        "something came before `initialize`",
    )?;
    self::first(played, "session/new").map(drop)
}

fn version(played: &Played) -> Outcome {
    asks_for(played, 1, "no protocol version")
}

/// Whether `initialize` asks for a version not below `least`.
pub(super) fn asks_for(played: &Played, least: u64, reason: &str) -> Outcome {
    let (index, entry) = first(played, "initialize")?;
    let version = entry.params().get("protocolVersion");
    let version = version.and_then(Value::as_u64);
    let good = version.is_some_and(|version| version >= least);
    expect(played, index, good, reason)
}

fn info(played: &Played) -> Outcome {
    introduces(played, "clientInfo")
}

/// Whether `initialize` says in this member who the client is.
pub(super) fn introduces(played: &Played, member: &str) -> Outcome {
    let (index, entry) = first(played, "initialize")?;
    let has = |name: &str| {
        let text = entry.params().get(member).and_then(|info| info.get(name));
        text.and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    let good = has("name") && has("version");
    let reason = format!("no `{member}` with a name and a version");
    expect(played, index, good, &reason)
}

pub(super) fn closes_on_other_version(played: &Played) -> Outcome {
    first(played, "initialize")?;
    let mut after = played.recording.calls(Party::Client, "session/new");
    match after.next() {
        Some((index, _)) => Err(Stop::at(
            &played.recording,
            index,
            "a session with an agent that speaks version 65535",
        )),
        None if played.closed || played.exit.is_some() => Ok(()),
        None => fail("the client neither goes on nor closes the connection"),
    }
}

pub(super) fn only_messages(played: &Played) -> Outcome {
    for (index, entry) in played.recording.entries.iter().enumerate() {
        if let Some(finding) = of_client(entry, ONLY_MESSAGES) {
            return Err(Stop::at(&played.recording, index, finding.to_string()));
        }
    }
    first(played, "initialize").map(drop)
}

pub(super) fn absolute_cwd(played: &Played) -> Outcome {
    let (index, entry) = first(played, "session/new")?;
    let cwd = entry
        .params()
        .get("cwd")
        .and_then(Value::as_str)
        .unwrap_or_default();
    expect(
        played,
        index,
        std::path::Path::new(cwd).is_absolute(),
        "`cwd` is not an absolute path",
    )
}

fn no_undeclared_methods(played: &Played) -> Outcome {
    first(played, "initialize")?;
    for method in [
        "session/load",
        "session/resume",
        "session/list",
        "session/close",
        "session/delete",
        "logout",
    ] {
        if let Some((index, _)) = played.recording.calls(Party::Client, method).next() {
            let reason = format!("the agent does not declare {method}");
            return Err(Stop::at(&played.recording, index, reason));
        }
    }
    Ok(())
}

pub(super) fn no_undeclared_content(played: &Played) -> Outcome {
    let (index, entry) = first(played, "session/prompt")?;
    let blocks = entry.params().get("prompt").and_then(Value::as_array);
    let plain = blocks.into_iter().flatten().all(|block| {
        let kind = block.get("type").and_then(Value::as_str);
        matches!(kind, Some("text" | "resource_link"))
    });
    expect(played, index, plain, "the agent declares no such content")
}

fn no_undeclared_servers(played: &Played) -> Outcome {
    let (index, entry) = first(played, "session/new")?;
    let servers = entry.params().get("mcpServers").and_then(Value::as_array);
    let mut remote = servers
        .into_iter()
        .flatten()
        .filter(|server| server.get("url").is_some());
    expect(
        played,
        index,
        remote.next().is_none(),
        "the agent declares no HTTP or SSE",
    )
}

fn no_undeclared_directories(played: &Played) -> Outcome {
    let (index, entry) = first(played, "session/new")?;
    let more = entry
        .params()
        .get("additionalDirectories")
        .and_then(Value::as_array);
    expect(
        played,
        index,
        more.is_none_or(Vec::is_empty),
        "the agent declares no additional directories",
    )
}

pub(super) fn custom_fields(played: &Played) -> Outcome {
    free_of(played, FindingKind::CustomField)
}

pub(super) fn method_names(played: &Played) -> Outcome {
    free_of(played, FindingKind::UnknownMethod)
}

fn free_of(played: &Played, kind: FindingKind) -> Outcome {
    for (index, entry) in played.recording.entries.iter().enumerate() {
        if let Some(finding) = of_client(entry, &[kind]) {
            return Err(Stop::at(&played.recording, index, finding.to_string()));
        }
    }
    first(played, "initialize").map(drop)
}

/// A finding of these kinds in a message of the client.
fn of_client<'a>(entry: &'a Entry, kinds: &[FindingKind]) -> Option<&'a Finding> {
    entry.findings.iter().find(|finding| {
        finding.by == Some(Party::Client)
            && finding.excuse.is_none()
            && kinds.contains(&finding.rule)
    })
}

pub(super) fn comes_to_an_end(played: &Played) -> Outcome {
    if played.exit.is_some() {
        return Ok(());
    }
    fail("the client did not end after its only turn")
}
