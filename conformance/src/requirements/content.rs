//! Content blocks: what a prompt may hold, and what an agent sends.

use serde_json::Value;

use super::passive::{items, text, watch};
use super::{NamedCheck, media};
use crate::harness::Recording;
use crate::passive::{RuleResult, Update, View, violation};
use crate::wire::Party;

pub(super) const CHECKS: &[NamedCheck] = &[
    (
        "content.base64",
        watch(base64, "no image, audio or blob came from the agent"),
    ),
    (
        "content.mime-type",
        watch(mime_type, "no image or audio came from the agent"),
    ),
    ("content.uri", watch(uri, "no resource came from the agent")),
];

/// The content blocks of the agent in an update or a question for permission.
fn blocks_of<'a>(method: &str, params: &'a Value) -> Vec<&'a Value> {
    let whole = match method {
        "session/update" => params.get("update"),
        "session/request_permission" => params.get("toolCall"),
        _ => None,
    };
    let mut blocks = match whole.and_then(|whole| whole.get("content")) {
        Some(block @ Value::Object(_)) => vec![block],
        Some(Value::Array(all)) => all.iter().filter_map(|item| item.get("content")).collect(),
        _ => Vec::new(),
    };
    // Of a compaction.
    blocks.extend(whole.into_iter().flat_map(|whole| items(whole, "/summary")));
    blocks
}

/// The content blocks of the agent in a message.
fn blocks<'a>(view: &View<'a>) -> Vec<&'a Value> {
    // What it repeats of a prompt is the client's.
    let is_echo = |update: Update<'_>| update.kind.starts_with("user_message");
    if view.is_call(Party::Agent) && !view.update().is_some_and(is_echo) {
        blocks_of(view.method, view.params())
    } else {
        Vec::new()
    }
}

/// Every content block that the agent sent.
pub(crate) fn agent_blocks(recording: &Recording) -> Vec<&Value> {
    let calls = recording.entries.iter();
    let calls = calls.filter(|entry| entry.from == Party::Agent && entry.is_call());
    calls
        .flat_map(|entry| blocks_of(entry.method.as_deref().unwrap_or_default(), entry.params()))
        .collect()
}

/// Every content block that the client sent.
pub(crate) fn client_blocks(recording: &Recording) -> Vec<&Value> {
    let prompts = recording.calls(Party::Client, "session/prompt");
    prompts
        .flat_map(|(_, entry)| items(entry.params(), "/prompt"))
        .collect()
}

fn base64(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    for block in blocks(view) {
        let data = text(block, "/data").or_else(|| text(block, "/resource/blob"));
        let Some(data) = data else { continue };
        seen += 1;
        if !media::is_base64(data) {
            return violation("expected base64, got other text");
        }
    }
    Ok(seen)
}

fn mime_type(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    for block in blocks(view) {
        let kind = text(block, "/type").unwrap_or_default();
        if kind != "image" && kind != "audio" {
            continue;
        }
        seen += 1;
        let mime = text(block, "/mimeType").unwrap_or_default();
        let top = mime.split_once('/').map(|(top, _)| top);
        if !top.is_some_and(|top| top.eq_ignore_ascii_case(kind)) {
            return violation(format!("expected a MIME type of {kind}, got {mime:?}"));
        }
    }
    Ok(seen)
}

fn uri(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    for block in blocks(view) {
        let kind = text(block, "/type").unwrap_or_default();
        if !kind.starts_with("resource") {
            continue;
        }
        seen += 1;
        let uri = text(block, "/uri").or_else(|| text(block, "/resource/uri"));
        if !uri.is_some_and(has_scheme) {
            return violation(format!("expected a URI, got {:?}", uri.unwrap_or_default()));
        }
    }
    Ok(seen)
}

/// Whether it begins with a scheme as RFC 3986 has it. One letter is the drive of a path.
fn has_scheme(uri: &str) -> bool {
    let is_of_scheme = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(is_of_scheme)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_no_scheme() {
        for uri in [
            "file:///a.txt",
            "https://x",
            "urn:a:b",
            "git+ssh://x",
            "zed:///a",
        ] {
            assert!(has_scheme(uri), "{uri}");
        }
        for path in [
            "/tmp/a:b",
            "C:\\notes.txt",
            "C:/notes.txt",
            "12:30 notes",
            "a b:c",
            ":x",
            "x",
        ] {
            assert!(!has_scheme(path), "{path}");
        }
    }
}
