//! Questions to the user.

use serde_json::{Value, json};

use super::steps::{ended, initialize, ready, work};
use crate::harness::{Outcome, UserInput, inconclusive};
use crate::requirements::elicitation::{
    completes_its_own, https, message, no_credentials_in_url, no_secrets_in_form,
    no_undeclared_mode, no_url_in_form, unique_id,
};
use crate::requirements::watch::watch;
use crate::requirements::{Check, Requirement, must, should};
use crate::suite::Cx;
use crate::wire::Party;

use Check::{Excluded, Run};

const NONE: &str = "the agent asked nothing; the prompts `form` and `url` may make it";
const NO_URL: &str = "no elicitation by URL; the prompt `url` may cause one";
const NO_FORM: &str = "no form; the prompt `form` may cause one";

pub(super) const ROWS: &[Requirement] = &[
    must(
        "elicitation.no-undeclared-mode",
        "v2/elicitation#checking-support",
        "Agents MUST NOT request a mode the Client has not advertised.",
        watch(
            no_undeclared_mode,
            "no prompt of a client that declares less",
        ),
    ),
    must(
        "elicitation.empty-declares-nothing",
        "v2/elicitation#checking-support",
        "`{}` and `{\"form\":null,\"url\":null}` advertise no supported modes.",
        Run(empty_declares_nothing),
    ),
    must(
        "elicitation.accepted",
        "v2/elicitation#responses",
        "`accept`: the user submitted or consented to the interaction.",
        Run(accepted),
    ),
    must(
        "elicitation.declined",
        "v2/elicitation#responses",
        "They MUST handle `decline`, `cancel`, and failures",
        Run(declined),
    ),
    must(
        "elicitation.dismissed",
        "v2/elicitation#responses",
        "They MUST handle `decline`, `cancel`, and failures",
        Run(dismissed),
    ),
    must(
        "elicitation.failed",
        "v2/elicitation#responses",
        "They MUST handle `decline`, `cancel`, and failures",
        Run(failed),
    ),
    must(
        "elicitation.unique-id",
        "v2/elicitation#url-completion",
        "`elicitationId` unique among outstanding URL elicitations on that Agent-Client connection",
        watch(unique_id, NO_URL),
    ),
    must(
        "elicitation.completes-its-own",
        "v2/elicitation#url-completion",
        "include the original `elicitationId`",
        watch(completes_its_own, "no elicitation/complete"),
    ),
    must(
        "elicitation.no-credentials-in-url",
        "v2/elicitation#url-security",
        "Agents MUST NOT put credentials, personal data, or pre-authenticated access in the URL",
        watch(no_credentials_in_url, NO_URL),
    ),
    should(
        "elicitation.https",
        "v2/elicitation#url-security",
        "SHOULD use HTTPS outside development",
        watch(https, NO_URL),
    ),
    should(
        "elicitation.no-url-in-form",
        "v2/elicitation#url-security",
        "Agents SHOULD NOT include URLs intended to be clickable in any field of a form-mode request.",
        watch(no_url_in_form, NO_FORM),
    ),
    must(
        "elicitation.no-secrets-in-form",
        "v2/elicitation#form-mode",
        "Form mode MUST NOT be used to request secrets or credentials",
        watch(no_secrets_in_form, NO_FORM),
    ),
    must(
        "elicitation.message",
        "v2/elicitation#user-interaction-requirements",
        "Clients SHOULD present the request's `message`",
        watch(message, NONE),
    ),
    must(
        "elicitation.bound-to-user",
        "v2/elicitation#url-security",
        "The Agent MUST verify that the authenticated user who started the elicitation is the same",
        Excluded("happens between the agent and its website, out of sight of the connection"),
    ),
    must(
        "elicitation.no-tokens",
        "v2/elicitation#url-mode",
        "Agents MUST NOT send credentials or tokens obtained through URL mode back over ACP",
        Excluded("what was obtained elsewhere cannot be recognized on the wire"),
    ),
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
