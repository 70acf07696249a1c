//! Questions to the user.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::passive::{text, undeclared, watch};
use super::{Check, NamedCheck};
use crate::harness::{Caps, Conn, Cx, Outcome, Reply, UserInput, inconclusive};
use crate::passive::{RuleResult, View, violation};
use crate::wire::Party;

use Check::Run;

const NONE: &str = "the agent asked nothing; the prompts `form` and `url` may make it";
const NO_URL: &str = "no elicitation by URL; the prompt `url` may cause one";
const NO_FORM: &str = "no form; the prompt `form` may cause one";

pub(super) const CHECKS: &[NamedCheck] = &[
    (
        "elicitation.no-undeclared-mode",
        watch(
            no_undeclared_mode,
            "no turn with a client that declares less",
        ),
    ),
    (
        "elicitation.empty-declares-nothing",
        Run(empty_declares_nothing),
    ),
    ("elicitation.fallback", Run(fallback)),
    ("elicitation.accepted", Run(accepted)),
    ("elicitation.declined", Run(declined)),
    ("elicitation.dismissed", Run(dismissed)),
    ("elicitation.failed", Run(failed)),
    ("elicitation.unknown-action", Run(unknown_action)),
    ("elicitation.no-form-instead", Run(no_form_instead)),
    ("elicitation.unique-id", watch(unique_id, NO_URL)),
    (
        "elicitation.completes-its-own",
        watch(completes_its_own, "no elicitation/complete"),
    ),
    (
        "elicitation.no-credentials-in-url",
        watch(no_credentials_in_url, NO_URL),
    ),
    ("elicitation.https", watch(https, NO_URL)),
    ("elicitation.no-url-in-form", watch(no_url_in_form, NO_FORM)),
    (
        "elicitation.no-secrets-in-form",
        watch(no_secrets_in_form, NO_FORM),
    ),
    ("elicitation.message", watch(message, NONE)),
];

/// The params of the question that it is, if it is one of this mode; of any, if that
/// is empty.
fn question<'a>(view: &View<'a>, mode: &str) -> Option<&'a Value> {
    let asks = view.calls(Party::Agent, "elicitation/create");
    let params = Some(view.params()).filter(|_| asks)?;
    (mode.is_empty() || text(params, "/mode") == Some(mode)).then_some(params)
}

/// Whether the client may have advertised modes of its own: in the `_meta` of its capabilities.
fn extends_elicitation(view: &View<'_>) -> bool {
    let client = view.state.client.as_ref();
    let capabilities = client.and_then(|client| {
        client
            .get("capabilities")
            .or(client.get("clientCapabilities"))
    });
    let places = ["/_meta", "/elicitation/_meta"].iter();
    capabilities.is_some_and(|all| places.clone().any(|place| all.pointer(place).is_some()))
}

pub(super) fn no_undeclared_mode(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    for mode in ["form", "url"] {
        let breaks = question(view, mode).is_some();
        let what = format!("the mode {mode}");
        seen += undeclared(view, &format!("/elicitation/{mode}"), breaks, &what)?;
    }
    let Some(params) = question(view, "") else {
        return Ok(seen);
    };
    let mode = text(params, "/mode");
    let declares = |mode| view.state.client_declares(mode) == Some(true);
    let is_unadvertised = match mode {
        Some("form" | "url") => false,
        Some(_) => !extends_elicitation(view),
        // A form, by MCP. A client with either mode gets an invalid request, which is another row's question.
        None => !["/elicitation/form", "/elicitation/url"]
            .into_iter()
            .any(declares),
    };
    if is_unadvertised {
        let what = mode.map_or("a question without a mode".to_owned(), |mode| {
            format!("the mode {mode}")
        });
        let pointer = format!("/elicitation/{}", mode.unwrap_or("form"));
        seen += undeclared(view, &pointer, true, &what)?;
    }
    Ok(seen)
}

/// The words of the profile that make the agent ask.
///
/// # Errors
/// Inconclusive when it has none.
fn asking_words(conn: &Conn) -> Outcome<Vec<&'static str>> {
    conn.word(&["form", "url"])?;
    let mut words = vec!["form", "url"];
    words.retain(|word| conn.env.profile.prompts.contains_key(*word));
    Ok(words)
}

/// Makes the agent ask on a connection that declares these capabilities. Yields the end of the turn of
/// `form`, if the profile has it.
fn tempted(cx: &mut Cx, capabilities: Value) -> Outcome<(&mut Conn, Option<Reply>)> {
    let conn = cx.with(&Caps::These(capabilities))?;
    let session = conn.session()?;
    let mut form = None;
    for word in asking_words(conn)? {
        let request = conn.begin(&session, word)?;
        match word {
            "url" => conn.end_turn(&session, request)?,
            _ => form = Some(conn.turn_reply(request)?),
        }
    }
    Ok((conn, form))
}

fn empty_declares_nothing(cx: &mut Cx) -> Outcome {
    for nothing in [json!({}), json!({"form": null, "url": null})] {
        let (conn, _) = tempted(cx, json!({"elicitation": nothing}))?;
        let mut asked = conn.recording().calls(Party::Agent, "elicitation/create");
        if let Some((index, _)) = asked.next() {
            return Err(conn.at(
                index,
                "expected no question for a client that declares no mode, got one",
            ));
        }
    }
    Ok(())
}

/// Version 2 has a stop reason for turns that fail.
fn failed_turn(end: &Reply) -> bool {
    match &end.answer {
        Ok(result) => text(result, "/stopReason") == Some("error"),
        Err(_) => true,
    }
}

fn fallback(cx: &mut Cx) -> Outcome {
    let (conn, form) = tempted(cx, json!({}))?;
    conn.word(&["form"])?;
    // What needs a URL may fail: "it must use another safe flow or fail the operation".
    match form.filter(failed_turn) {
        Some(end) => Err(conn.at(
            end.index,
            "expected the turn of `form` to go on without a question, got an error",
        )),
        None => Ok(()),
    }
}

/// A turn in which the agent asks, and the user does this.
fn answered(cx: &mut Cx, input: UserInput) -> Outcome {
    let conn = cx.ready()?;
    conn.script.input = input;
    let session = conn.session()?;
    for word in asking_words(conn)? {
        let running = conn.begin(&session, word)?;
        let asked = conn.asked(running, "elicitation/create")?;
        if input != UserInput::Accept {
            conn.turn_reply(running)?;
            continue;
        }
        if word == "url" {
            // Nobody follows a link here, so the agent may wait for that, or fail when nothing comes of it.
            conn.end_turn(&session, running)?;
            continue;
        }
        let end = conn.turn_reply(running)?;
        let answer = conn.recording().result(asked);
        if answer.and_then(|answer| text(answer, "/action")) != Some("accept") {
            return inconclusive("the suite cannot fill this form in");
        }
        if failed_turn(&end) {
            let reason = "expected the turn to go on with the form, got an error";
            return Err(conn.at(end.index, reason));
        }
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

fn unknown_action(cx: &mut Cx) -> Outcome {
    answered(cx, UserInput::Later)
}

fn no_form_instead(cx: &mut Cx) -> Outcome {
    let conn = cx.with(&Caps::These(json!({"elicitation": {"form": {}}})))?;
    let session = conn.session()?;
    let word = conn.word(&["url"])?;
    let request = conn.begin(&session, word)?;
    conn.end_turn(&session, request)?;
    let mut asked = conn.recording().calls(Party::Agent, "elicitation/create");
    match asked.find(|(_, entry)| text(entry.params(), "/mode") == Some("form")) {
        Some((index, _)) => Err(conn.at(
            index,
            "expected no form in the stead of a URL that the client does not support, got one",
        )),
        None => Ok(()),
    }
}

pub(super) fn unique_id(view: &View<'_>) -> RuleResult {
    let Some(params) = question(view, "url") else {
        return Ok(0);
    };
    let id = text(params, "/elicitationId").unwrap_or_default();
    let known = view.state.elicitations.get(id);
    if known.is_some_and(|asked| asked.outstanding) {
        return violation(format!(
            "expected an id of its own, got {id}, which is outstanding"
        ));
    }
    Ok(1)
}

pub(super) fn completes_its_own(view: &View<'_>) -> RuleResult {
    if !view.calls(Party::Agent, "elicitation/complete") || !view.state.is_whole() {
        return Ok(0);
    }
    let id = text(view.params(), "/elicitationId").unwrap_or_default();
    if !view.state.elicitations.contains_key(id) {
        return violation(format!("expected the id of a question, got {id}"));
    }
    Ok(1)
}

/// What stands between the scheme and the path of a URL.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Whether the authority of a URL names this machine.
fn is_local(authority: &str) -> bool {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((host, _)) => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let address = host.parse::<IpAddr>();
    address.is_ok_and(|address| address.is_loopback())
        || host == "localhost"
        || host.ends_with(".localhost")
}

/// The name of a parameter in the query or the fragment of a URL that has a secret as its value.
fn secret_parameter(url: &str) -> Option<&str> {
    let mut parameters = url.split(['?', '#', '&']).skip(1);
    parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        // A flag, such as `reset_password=true`, is no secret.
        let is_value = !["", "true", "false"].contains(&value);
        (is_value && (is_secret(name) || name.eq_ignore_ascii_case("token"))).then_some(name)
    })
}

pub(super) fn no_credentials_in_url(view: &View<'_>) -> RuleResult {
    let Some(params) = question(view, "url") else {
        return Ok(0);
    };
    let url = text(params, "/url").unwrap_or_default();
    if authority(url).contains('@') {
        return violation("expected a URL without credentials, got a user name or password in it");
    }
    if let Some(name) = secret_parameter(url) {
        return violation(format!(
            "expected a URL without credentials, got a value of `{name}` in it"
        ));
    }
    Ok(1)
}

pub(super) fn https(view: &View<'_>) -> RuleResult {
    let Some(params) = question(view, "url") else {
        return Ok(0);
    };
    let url = text(params, "/url").unwrap_or_default();
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if !scheme.eq_ignore_ascii_case("https") && !is_local(authority(url)) {
        return violation(format!("expected a URL of HTTPS, got {url}"));
    }
    Ok(1)
}

pub(super) fn no_url_in_form(view: &View<'_>) -> RuleResult {
    let Some(params) = question(view, "form") else {
        return Ok(0);
    };
    let form = params.get("requestedSchema").unwrap_or(&Value::Null);
    if has_url(text(params, "/message").unwrap_or_default()) || shows_url(form) {
        return violation("expected a form whose texts have no URL, got one with it");
    }
    Ok(1)
}

fn has_url(text: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| text.contains(scheme))
}

/// Whether a text of a form that is shown beside its fields has a URL. Nobody clicks on a default, a
/// pattern or a `$schema`.
fn shows_url(form: &Value) -> bool {
    let is_shown = |name: &str| matches!(name, "title" | "description" | "enumNames");
    let is_url = |text: &Value| text.as_str().is_some_and(has_url);
    match form {
        Value::Object(members) => members.iter().any(|(name, member)| match member {
            Value::String(text) => is_shown(name) && has_url(text),
            Value::Array(texts) if is_shown(name) => texts.iter().any(is_url),
            member => shows_url(member),
        }),
        Value::Array(elements) => elements.iter().any(shows_url),
        _ => false,
    }
}

/// What secrets are called: the last words of a name, without what separates them.
const SECRETS: [&str; 20] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "secretkey",
    "apikey",
    "privatekey",
    "accesskey",
    "accesstoken",
    "apitoken",
    "authtoken",
    "bearertoken",
    "refreshtoken",
    "recoverycode",
    "recoverycodes",
    "creditcardnumber",
    "cardnumber",
    "cvc",
    "cvv",
];

/// The words of a name in lower case; digits at its end are left out.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    let name = name.trim_end_matches(|last: char| last.is_ascii_digit());
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && previous.is_lowercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        previous = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a name ends in what secrets are called.
fn is_secret(name: &str) -> bool {
    let words = words(name);
    (1..=3).any(|last| {
        let end = words.len().checked_sub(last).and_then(|at| words.get(at..));
        end.is_some_and(|end| SECRETS.contains(&end.concat().as_str()))
    })
}

/// Whether the title of a field says that a secret is to be entered, and nothing more.
fn asks_for_secret(title: &str) -> bool {
    let filler = ["a", "an", "enter", "new", "please", "the", "your"];
    let mut words = words(title);
    words.retain(|word| !filler.contains(&word.as_str()));
    SECRETS.contains(&words.concat().as_str())
}

/// Whether the title of a field says that something is named, whatever it is.
fn asks_for_name(title: &str) -> bool {
    let words = words(title);
    let is_name = |word: &String| matches!(word.as_str(), "name" | "id" | "path");
    words.first().is_some_and(is_name) || words.last().is_some_and(is_name)
}

/// A secret is a text that the user writes: flags, numbers and choices are none.
fn takes_text(field: &Value) -> bool {
    let chosen = ["enum", "oneOf"]
        .iter()
        .any(|list| field.get(list).is_some());
    text(field, "/type") == Some("string") && !chosen
}

pub(super) fn no_secrets_in_form(view: &View<'_>) -> RuleResult {
    let Some(params) = question(view, "form") else {
        return Ok(0);
    };
    let fields = params
        .pointer("/requestedSchema/properties")
        .and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let title = text(field, "/title").unwrap_or_default();
        let is_asked = is_secret(name) && !asks_for_name(title) || asks_for_secret(title);
        if takes_text(field) && is_asked {
            return violation(format!(
                "expected a form without secrets, got the field `{name}`"
            ));
        }
    }
    Ok(1)
}

pub(super) fn message(view: &View<'_>) -> RuleResult {
    let Some(params) = question(view, "") else {
        return Ok(0);
    };
    if text(params, "/message").is_none_or(|message| message.trim().is_empty()) {
        return violation("expected a message in the question, got none");
    }
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passive::{Said, State};
    use crate::wire::Kind;

    /// MCP has a form where no mode is named; here it is no mode that the client declares.
    #[test]
    fn a_question_without_a_mode_is_not_for_who_declares_none() {
        let is_broken = |elicitation: Value| {
            let client = json!({"id": 0, "method": "initialize",
                "params": {"clientCapabilities": {"elicitation": elicitation}}});
            let question = json!({"id": 0, "method": "elicitation/create",
                "params": {"sessionId": "s", "message": "Which?", "requestedSchema": {}}});
            let said = |from, value| Said {
                place: 0,
                from,
                kind: Kind::Request,
                value,
            };
            let mut state = State::whole();
            state.take(said(Party::Client, &client));
            no_undeclared_mode(&View::new(&state, said(Party::Agent, &question))).is_err()
        };
        assert!(is_broken(json!({})));
        assert!(is_broken(Value::Null));
        // It is an invalid request, and another row's.
        assert!(!is_broken(json!({"form": {}})));
    }

    #[test]
    fn a_parameter_is_a_secret_by_its_name_and_value() {
        for name in ["token", "Token", "api_key"] {
            let url = format!("https://h.example/x?a=b&{name}=c");
            assert_eq!(secret_parameter(&url), Some(name));
        }
        assert_eq!(secret_parameter("https://h.example/token?tokens=1"), None);
        assert_eq!(secret_parameter("https://h.example/x?token="), None);
        let flag = "https://h.example/login?reset_password=true";
        assert_eq!(secret_parameter(flag), None);
    }

    #[test]
    fn the_authority_of_a_url_ends_at_its_path() {
        assert_eq!(authority("https://u:p@h.example/x@y"), "u:p@h.example");
        assert_eq!(authority("https://h.example?x=a@b"), "h.example");
    }

    #[test]
    fn the_machine_is_known_by_its_whole_name() {
        for local in [
            "localhost",
            "LOCALHOST:80",
            "app.localhost:3000",
            "me@localhost",
            "127.0.0.2:8080",
            "[::1]:80",
        ] {
            assert!(is_local(local), "{local}");
        }
        for other in [
            "localhost.example.com",
            "127.example.com",
            "notlocalhost",
            "localhost@example.com",
            "10.0.0.1",
            "[::2]",
            "",
        ] {
            assert!(!is_local(other), "{other}");
        }
    }
}
