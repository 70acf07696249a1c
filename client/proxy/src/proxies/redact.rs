//! Keeps secrets from the agent.

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use crate::Proxy;
use crate::message::{raw, value};

/// Patterns of secrets with a form of their own: keys of cloud services and code hosts, tokens, private
/// keys.
pub const SECRETS: [&str; 9] = [
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{36,}\b",
    r"\bgithub_pat_[A-Za-z0-9_]{22,}\b",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
];

/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";

/// Members whose text is no text, but encoded content or a name that must stay what it is.
const KEPT: [&str; 5] = ["data", "blob", "mimeType", "sessionId", "type"];

/// Creates a proxy that replaces secrets in prompts, in files that the client reads for the agent, and in
/// the output of terminals.
///
/// What the agent reads by itself it cannot see: confine the agent (`--sandbox`) where that matters. A
/// secret that is spread over two contents is not found.
///
/// # Errors
///
/// Fails if a pattern is invalid.
pub fn redact<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>) -> Result<Proxy, regex::Error> {
    let patterns = patterns
        .into_iter()
        .map(|pattern| Regex::new(pattern.as_ref()));
    let patterns: Arc<[Regex]> = patterns.collect::<Result<Vec<_>, _>>()?.into();
    let mut proxy = Proxy::new("redact");
    for method in ["session/prompt", "session/inject"] {
        let patterns = patterns.clone();
        proxy = proxy.on_raw_request(Some(method), move |next, params| {
            let mut params = params;
            let mut text = value(params.as_deref());
            let redacted = mask(&mut text, &patterns).then(|| raw(&text));
            async move {
                if let Some(redacted) = redacted {
                    params = Some(redacted?);
                }
                next.call(params).await
            }
        });
    }
    for method in ["fs/read_text_file", "terminal/output"] {
        let patterns = patterns.clone();
        proxy = proxy.on_raw_request(Some(method), move |next, params| {
            let patterns = patterns.clone();
            async move {
                let result = next.call(params).await?;
                let mut text = value(Some(&result));
                match mask(&mut text, &patterns) {
                    true => raw(&text),
                    false => Ok(result),
                }
            }
        });
    }
    Ok(proxy)
}

/// Replaces secrets in all texts; returns whether there was one.
fn mask(value: &mut Value, patterns: &[Regex]) -> bool {
    match value {
        Value::String(text) => {
            let mut has_masked = false;
            for pattern in patterns {
                if pattern.is_match(text) {
                    *text = pattern.replace_all(text, REDACTED).into_owned();
                    has_masked = true;
                }
            }
            has_masked
        }
        Value::Array(values) => {
            let masked = values.iter_mut().map(|value| mask(value, patterns));
            masked.fold(false, |any, masked| any | masked)
        }
        Value::Object(members) => {
            let texts = members
                .iter_mut()
                .filter(|(name, _)| !KEPT.contains(&name.as_str()));
            let masked = texts.map(|(_, value)| mask(value, patterns));
            masked.fold(false, |any, masked| any | masked)
        }
        _ => false,
    }
}
