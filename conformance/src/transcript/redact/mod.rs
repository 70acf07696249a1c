//! Takes secrets out of messages before they are written down.
//!
//! Taken out are: the values of environment variables and HTTP headers of MCP
//! servers and terminals, everything that requests to log in carry besides the method's id, strings under names such as `apiKey`, `token` or `password`, and
//! arguments such as `--api-key=…`. Prompts, file contents and the output of
//! terminals are the conversation itself and stay.
//!
//! The shape is kept: a string stays a string, so that a message is judged alike
//! before and after, unless the secret itself was what made it invalid.

mod text;

use acp_schema::Login;
use serde_json::Value;

pub use self::text::redact_text;
use crate::wire::login;

/// What stands in the place of a secret.
const REDACTED: &str = "[redacted]";

/// Ends of names whose value is a secret, without case, `-` and `_`.
const SECRETS: [&str; 12] = [
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "authorization",
    "credentials",
    "cookie",
];

/// Takes the secrets out of a message; tells whether there were any.
pub fn redact(message: &mut Value) -> bool {
    let mut changed = false;
    let method = message.get("method").and_then(Value::as_str);
    if method.and_then(login) == Some(Login::In)
        && let Some(Value::Object(params)) = message.get_mut("params")
    {
        for (name, value) in params {
            if name != "methodId" {
                changed |= blank(value);
            }
        }
    }
    changed | walk(message)
}

fn walk(value: &mut Value) -> bool {
    let mut changed = false;
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                changed |= match (name.as_str(), &mut *member) {
                    ("env" | "headers", _) => variables(member),
                    ("args", Value::Array(args)) => arguments(args),
                    (name, Value::String(_)) if is_secret(name) => blank(member),
                    _ => walk(member),
                };
            }
        }
        Value::Array(items) => {
            for item in items {
                changed |= walk(item);
            }
        }
        _ => {}
    }
    changed
}

/// Lists of `{name, value}`, and the forms that they take by mistake: an object
/// from names to values, and `NAME=value`.
fn variables(value: &mut Value) -> bool {
    let Value::Array(items) = value else {
        return blank(value);
    };
    let mut changed = false;
    for item in items {
        changed |= match item {
            Value::Object(members) => members
                .iter_mut()
                .filter(|(name, _)| *name != "name")
                .fold(false, |changed, (_, value)| changed | blank(value)),
            other => blank(other),
        };
    }
    changed
}

/// Arguments of a command: the one after `--api-key`, and what follows its `=`.
fn arguments(args: &mut [Value]) -> bool {
    let mut changed = false;
    let mut next_is_secret = false;
    for arg in args {
        if std::mem::take(&mut next_is_secret) {
            changed |= blank(arg);
            continue;
        }
        let Value::String(text) = arg else { continue };
        let Some(option) = text.strip_prefix('-') else {
            continue;
        };
        match option.split_once('=') {
            Some((name, value)) if is_secret(name) && !value.is_empty() => {
                *text = format!("-{name}={REDACTED}");
                changed = true;
            }
            Some(_) => {}
            None => next_is_secret = is_secret(option),
        }
    }
    changed
}

/// Replaces every string and number in a value; tells whether there were any.
fn blank(value: &mut Value) -> bool {
    match value {
        Value::String(text) if !text.is_empty() && text != REDACTED => {
            REDACTED.clone_into(text);
            true
        }
        Value::Number(number) if number.as_u64() != Some(0) => {
            *number = 0.into();
            true
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |changed, item| changed | blank(item)),
        Value::Object(members) => members
            .values_mut()
            .fold(false, |changed, member| changed | blank(member)),
        _ => false,
    }
}

/// Whether what has this name is a secret.
fn is_secret(name: &str) -> bool {
    // Names are inspected for every member of every message; most end otherwise.
    let last = name.bytes().last().map(|byte| byte.to_ascii_lowercase());
    if !matches!(last, Some(b'y' | b'n' | b't' | b'd' | b'e' | b's')) {
        return false;
    }
    SECRETS.iter().any(|secret| ends_with(name, secret))
}

/// Whether `name` ends in `end`, leaving case, `-` and `_` aside.
fn ends_with(name: &str, end: &str) -> bool {
    let mut name = name
        .bytes()
        .rev()
        .filter(|byte| !matches!(byte, b'-' | b'_'));
    end.bytes()
        .rev()
        .all(|byte| name.next().is_some_and(|of| of.eq_ignore_ascii_case(&byte)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn redacted(mut message: Value) -> Value {
        let before = message.clone();
        let changed = redact(&mut message);
        assert_eq!(changed, message != before, "{message}");
        message
    }

    #[test]
    fn variables_and_headers_lose_their_values() {
        let message = json!({"method": "session/new", "params": {"cwd": "/w", "mcpServers": [
            {"name": "a", "command": "/a", "args": [], "env": [{"name": "KEY", "value": "s3cret"}]},
            {"type": "http", "name": "b", "url": "http://b", "headers": [{"name": "Authorization", "value": "Bearer x"}]},
        ]}});
        assert_eq!(
            redacted(message),
            json!({"method": "session/new", "params": {"cwd": "/w", "mcpServers": [
                {"name": "a", "command": "/a", "args": [], "env": [{"name": "KEY", "value": REDACTED}]},
                {"type": "http", "name": "b", "url": "http://b", "headers": [{"name": "Authorization", "value": REDACTED}]},
            ]}})
        );
    }

    #[test]
    fn variables_in_a_form_that_is_wrong_lose_them_too_and_stay_wrong() {
        let env = |env: Value| redacted(json!({"params": {"env": env}}))["params"]["env"].take();
        assert_eq!(env(json!({"KEY": "s"})), json!({"KEY": REDACTED}));
        assert_eq!(env(json!(["KEY=s"])), json!([REDACTED]));
        let number = env(json!([{"name": "KEY", "value": 7}]));
        assert_eq!(number, json!([{"name": "KEY", "value": 0}]));
    }

    #[test]
    fn authentication_keeps_only_its_method() {
        for method in ["authenticate", "auth/login"] {
            let message = |key: &str| {
                let meta = json!({"gateway": {"k": key}});
                json!({"method": method, "params": {"methodId": "key", "_meta": meta}})
            };
            assert_eq!(redacted(message("s")), message(REDACTED));
        }
    }

    #[test]
    fn names_tell_secrets_apart_from_counts() {
        let message = json!({"_meta": {"OPENAI_API_KEY": "s", "access-token": "s", "setCookie": "s"}, "inputTokens": 12, "token": 3, "title": "t"});
        assert_eq!(
            redacted(message),
            json!({"_meta": {"OPENAI_API_KEY": REDACTED, "access-token": REDACTED, "setCookie": REDACTED}, "inputTokens": 12, "token": 3, "title": "t"})
        );
    }

    #[test]
    fn arguments_lose_what_belongs_to_a_secret_option() {
        let args = json!({"args": ["--api-key", "s", "--token=s", "--verbose", "x", "--name=y"]});
        assert_eq!(
            redacted(args),
            json!({"args": ["--api-key", REDACTED, "--token=[redacted]", "--verbose", "x", "--name=y"]})
        );
    }

    #[test]
    fn what_has_no_secret_is_left_alone() {
        let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "the token is s3cret"}}}});
        assert_eq!(redacted(update.clone()), update);
    }
}
