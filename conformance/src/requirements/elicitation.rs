//! Questions to the user.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::watch::{text, watch};
use super::{Check, Requirement, must, should};
use crate::harness::{Caps, Conn, Entry, Outcome, Recording, Stop, UserInput};
use crate::suite::Cx;
use crate::wire::Party;

use Check::{Excluded, Run};

const NONE: &str = "the agent asked nothing; the prompts `form` and `url` may make it";
const NO_URL: &str = "no elicitation by URL; the prompt `url` may cause one";
const NO_FORM: &str = "no form; the prompt `form` may cause one";

pub(super) const ROWS: &[Requirement] = &[
    must(
        "elicitation.no-undeclared-mode",
        "elicitation#checking-support",
        "Agents MUST NOT request a mode the Client has not advertised.",
        watch(
            no_undeclared_mode,
            "no turn with a client that declares less",
        ),
    ),
    must(
        "elicitation.empty-declares-nothing",
        "elicitation#checking-support",
        "`{}` and `{\"form\":null,\"url\":null}` advertise no supported modes.",
        Run(empty_declares_nothing),
    ),
    should(
        "elicitation.fallback",
        "elicitation#checking-support",
        "Agents SHOULD provide a graceful fallback when the required mode is unavailable.",
        Run(fallback),
    ),
    must(
        "elicitation.accepted",
        "elicitation#responses",
        "`accept`: the user submitted or consented to the interaction.",
        Run(accepted),
    ),
    must(
        "elicitation.declined",
        "elicitation#responses",
        "They MUST handle `decline`, `cancel`, and failures",
        Run(declined),
    ),
    must(
        "elicitation.dismissed",
        "elicitation#responses",
        "They MUST handle `decline`, `cancel`, and failures",
        Run(dismissed),
    ),
    must(
        "elicitation.failed",
        "elicitation#responses",
        "They MUST handle `decline`, `cancel`, and failures",
        Run(failed),
    ),
    must(
        "elicitation.unique-id",
        "elicitation#url-completion",
        "keep each `elicitationId` unique among outstanding URL elicitations",
        watch(unique_id, NO_URL),
    ),
    must(
        "elicitation.completes-its-own",
        "elicitation#url-completion",
        "include the original `elicitationId`",
        watch(completes_its_own, "no elicitation/complete"),
    ),
    must(
        "elicitation.no-credentials-in-url",
        "elicitation#url-security",
        "Agents MUST NOT put credentials, personal data, or pre-authenticated access in the URL",
        watch(no_credentials_in_url, NO_URL),
    ),
    should(
        "elicitation.https",
        "elicitation#url-security",
        "SHOULD use HTTPS outside development",
        watch(https, NO_URL),
    ),
    should(
        "elicitation.no-url-in-form",
        "elicitation#url-security",
        "Agents SHOULD NOT include URLs intended to be clickable in any field of a form-mode request.",
        watch(no_url_in_form, NO_FORM),
    ),
    must(
        "elicitation.no-secrets-in-form",
        "elicitation#form-mode",
        "Form mode MUST NOT be used to request secrets or credentials",
        watch(no_secrets_in_form, NO_FORM),
    ),
    must(
        "elicitation.message",
        "elicitation#user-interaction-requirements",
        "Clients SHOULD present the request's `message`",
        watch(message, NONE),
    ),
    must(
        "elicitation.bound-to-user",
        "elicitation#url-security",
        "The Agent MUST verify that the authenticated user who started the elicitation is the same",
        Excluded("happens between the agent and its website, out of sight of the connection"),
    ),
];

fn questions<'a>(
    recording: &'a Recording,
    mode: &'a str,
) -> impl Iterator<Item = (usize, &'a Value)> {
    recording
        .calls(Party::Agent, "elicitation/create")
        .map(|(index, entry)| (index, entry.params()))
        .filter(move |(_, params)| mode.is_empty() || text(params, "/mode") == Some(mode))
}

fn no_undeclared_mode(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for mode in ["form", "url"] {
        let declared = recording
            .declared("/elicitation")
            .and_then(|modes| modes.get(mode));
        if declared.is_some_and(|mode| !mode.is_null()) || !super::watch::has_turns(recording) {
            continue;
        }
        seen += 1;
        if let Some((index, _)) = questions(recording, mode).next() {
            let reason = format!("the client does not declare the mode {mode}");
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

/// Makes the agent ask on a connection that declares these capabilities.
fn tempted(cx: &mut Cx, elicitation: Value) -> Outcome<&mut Conn> {
    let caps = Caps::These(json!({"elicitation": elicitation}));
    let conn = cx.with(&caps)?;
    let session = conn.session()?;
    for word in ["form", "url"] {
        let word = conn.word(&[word])?;
        let request = conn.begin(&session, word)?;
        conn.turn_reply(request)?;
    }
    Ok(conn)
}

fn empty_declares_nothing(cx: &mut Cx) -> Outcome {
    for nothing in [json!({}), json!({"form": null, "url": null})] {
        let conn = tempted(cx, nothing)?;
        if let Some((index, _)) = questions(conn.recording(), "").next() {
            return Err(conn.at(index, "the client declares no mode"));
        }
    }
    Ok(())
}

fn fallback(cx: &mut Cx) -> Outcome {
    let conn = tempted(cx, Value::Null)?;
    let refused = conn
        .recording()
        .calls(Party::Client, "session/prompt")
        .find_map(|(request, _)| {
            let (index, answer) = conn.recording().answer(request)?;
            answer.value.get("error").map(|_| index)
        });
    match refused {
        Some(index) => Err(conn.at(index, "the turn failed because the client cannot ask")),
        None => Ok(()),
    }
}

/// A turn in which the agent asks, and the user does this.
fn answered(cx: &mut Cx, input: UserInput) -> Outcome {
    let conn = cx.ready()?;
    conn.script.input = input;
    let session = conn.session()?;
    for word in ["form", "url"] {
        let running = conn.begin(&session, word)?;
        conn.asked(running, "elicitation/create")?;
        conn.turn_reply(running)?;
    }
    conn.prompt(&session, "hello").map(drop)
}

fn accepted(cx: &mut Cx) -> Outcome {
    answered(cx, UserInput::Accept)
}

fn declined(cx: &mut Cx) -> Outcome {
    answered(cx, UserInput::Decline)
}

fn dismissed(cx: &mut Cx) -> Outcome {
    answered(cx, UserInput::Cancel)
}

fn failed(cx: &mut Cx) -> Outcome {
    answered(cx, UserInput::Fail)
}

fn unique_id(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, params) in questions(recording, "url") {
        seen += 1;
        let id = text(params, "/elicitationId");
        // Accepted, it goes on until it is completed; otherwise the answer ends it.
        let outstanding = questions(recording, "url").any(|(earlier, other)| {
            earlier < index
                && text(other, "/elicitationId") == id
                && !is_over(recording, earlier, index)
        });
        if outstanding {
            let reason = format!("{} is outstanding already", id.unwrap_or_default());
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

/// Whether the interaction that was asked for at this place is over before another.
fn is_over(recording: &Recording, asked: usize, before: usize) -> bool {
    let Some((end, answer)) = recording.answer(asked) else {
        return false;
    };
    let id = |entry: &Entry| text(entry.params(), "/elicitationId").map(str::to_owned);
    let asked = recording.entries.get(asked).and_then(id);
    let mut completions = recording.calls(Party::Agent, "elicitation/complete");
    let completed = completions.any(|(index, entry)| index < before && id(entry) == asked);
    let accepted = text(&answer.value, "/result/action") == Some("accept");
    end < before && (!accepted || completed)
}

fn completes_its_own(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in recording.calls(Party::Agent, "elicitation/complete") {
        seen += 1;
        let id = text(entry.params(), "/elicitationId");
        let known: HashSet<_> = questions(recording, "url")
            .filter(|(asked, _)| *asked < index)
            .map(|(_, params)| text(params, "/elicitationId"))
            .collect();
        if !known.contains(&id) {
            let reason = format!("nobody was asked as {}", id.unwrap_or_default());
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

/// What stands between the scheme and the path of a URL.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

fn no_credentials_in_url(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, params) in questions(recording, "url") {
        seen += 1;
        if authority(text(params, "/url").unwrap_or_default()).contains('@') {
            return Err(Stop::at(
                recording,
                index,
                "the URL holds a user name or password",
            ));
        }
    }
    Ok(seen)
}

fn https(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, params) in questions(recording, "url") {
        seen += 1;
        let url = text(params, "/url").unwrap_or_default();
        let local = ["localhost", "127.", "[::1]"];
        let local = local.iter().any(|host| authority(url).starts_with(host));
        if !url.starts_with("https://") && !local {
            return Err(Stop::at(recording, index, format!("{url} is not HTTPS")));
        }
    }
    Ok(seen)
}

fn no_url_in_form(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, params) in questions(recording, "form") {
        seen += 1;
        let form = params
            .get("requestedSchema")
            .unwrap_or(&Value::Null)
            .to_string();
        let message = text(params, "/message").unwrap_or_default();
        if ["http://", "https://"]
            .iter()
            .any(|scheme| form.contains(scheme) || message.contains(scheme))
        {
            return Err(Stop::at(recording, index, "a form with a URL in it"));
        }
    }
    Ok(seen)
}

/// Words in the name of a field that asks for a secret.
const SECRETS: [&str; 7] = [
    "password",
    "passwd",
    "apikey",
    "privatekey",
    "accesstoken",
    "refreshtoken",
    "secret",
];

fn no_secrets_in_form(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, params) in questions(recording, "form") {
        seen += 1;
        let fields = params
            .pointer("/requestedSchema/properties")
            .and_then(Value::as_object);
        for name in fields.into_iter().flatten().map(|(name, _)| name) {
            let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
            if SECRETS.contains(&plain.to_ascii_lowercase().as_str()) {
                let reason = format!("the form asks for `{name}`");
                return Err(Stop::at(recording, index, reason));
            }
        }
    }
    Ok(seen)
}

fn message(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, params) in questions(recording, "") {
        seen += 1;
        if text(params, "/message").is_none_or(|message| message.trim().is_empty()) {
            return Err(Stop::at(recording, index, "the question says nothing"));
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_of_a_url_ends_at_its_path() {
        assert_eq!(authority("https://u:p@h.example/x@y"), "u:p@h.example");
        assert_eq!(authority("https://h.example?x=a@b"), "h.example");
    }
}
