//! Questions to the user.

use serde_json::{Value, json};

use super::steps::{ended, initialize, ready, work};
use crate::harness::{Outcome, UserInput, inconclusive};
use crate::requirements::elicitation::{
    completes_its_own, https, message, no_credentials_in_url, no_secrets_in_form,
    no_undeclared_mode, no_url_in_form, unique_id,
};
use crate::requirements::watch::watch;
use crate::requirements::{Check, NamedCheck};
use crate::suite::Cx;
use crate::wire::Party;

use Check::Run;

const NONE: &str = "the agent asked nothing; the prompts `form` and `url` may make it";
const NO_URL: &str = "no elicitation by URL; the prompt `url` may cause one";
const NO_FORM: &str = "no form; the prompt `form` may cause one";

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    (
        "elicitation.no-undeclared-mode",
        watch(
            no_undeclared_mode,
            "no prompt of a client that declares less",
        ),
    ),
    (
        "elicitation.empty-declares-nothing",
        Run(empty_declares_nothing),
    ),
    ("elicitation.accepted", Run(accepted)),
    ("elicitation.declined", Run(declined)),
    ("elicitation.dismissed", Run(dismissed)),
    ("elicitation.failed", Run(failed)),
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

/// Says what makes the agent ask, with clients that declare no mode in either way.
fn empty_declares_nothing(cx: &mut Cx) -> Outcome {
    for nothing in [json!({}), json!({"form": null, "url": null})] {
        let conn = cx.fresh()?;
        let mut params = initialize(&json!(2));
        params["capabilities"] = json!({"elicitation": nothing});
        conn.result("initialize", params)?;
        let session = conn.session()?;
        for word in ["form", "url"] {
            let word = conn.word(&[word])?;
            work(conn, &session, word)?;
        }
        let mut asked = conn.recording().calls(Party::Agent, "elicitation/create");
        if let Some((index, _)) = asked.next() {
            return Err(conn.at(index, "the client declares no mode"));
        }
    }
    Ok(())
}

/// Prompts for which the agent asks, and the user does this.
fn answered(cx: &mut Cx, input: UserInput) -> Outcome {
    let (conn, session) = ready(cx)?;
    conn.script.input = input;
    for word in ["form", "url"] {
        let word = conn.word(&[word])?;
        let request = conn.begin(&session, word)?;
        ended(conn, &session, request)?;
        let asks = |value: &Value| value["method"] == "elicitation/create";
        if !conn.since(request).any(|(_, entry)| asks(&entry.value)) {
            return inconclusive(NONE);
        }
    }
    work(conn, &session, "hello").map(drop)
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
