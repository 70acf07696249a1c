//! Questions to the user: what the client answers to a form, and that it leaves a URL alone.

use std::net::{SocketAddr, TcpListener};

use serde_json::{Value, json};

use super::assertions::expect;
use super::played::{ClientCheck, Played};
use super::scripted_agent::{STILL_THERE, ScriptedAgent};
use crate::harness::{Outcome, Stop, inconclusive};
use crate::wire::Party;

pub(super) const CHECKS: &[ClientCheck] = &[
    ("client.form-conforms", form_conforms),
    ("client.no-prefetch", no_prefetch),
];

/// The notification that tells of a connection to the URL.
const FETCHED: &str = "_acp-conformance/fetched";

/// Asks by a form, then by a URL of this machine, whatever the client declares. Reports a connection to
/// the URL.
pub(super) fn ask(stage: &mut ScriptedAgent) {
    stage.ask_by_form();
    let listener = listen();
    // No URL is shown without a socket.
    if let Some((_, address)) = &listener {
        let question = json!({
            "mode": "url", "message": "Please log in", "elicitationId": "prefetch",
            "url": format!("http://{address}/login"),
        });
        stage.ask("elicitation/create", question);
    }
    // One that fetches the URL beside its answer has time for it.
    stage.ask(STILL_THERE, json!({}));
    if listener.is_some_and(|(listener, _)| listener.accept().is_ok()) {
        stage.notify(FETCHED, &json!({}));
    }
}

/// A socket of this machine that does not block, and its address.
fn listen() -> Option<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).ok()?;
    listener.set_nonblocking(true).ok()?;
    let address = listener.local_addr().ok()?;
    Some((listener, address))
}

/// The place of the first answer to a question of this mode, and its result.
fn answered<'a>(played: &'a Played, mode: &str) -> Option<(usize, &'a Value)> {
    let mut asked = played.recording.calls(Party::Agent, "elicitation/create");
    let (asked, _) = asked.find(|(_, entry)| entry.params().get("mode") == Some(&json!(mode)))?;
    let (index, answer) = played.recording.answer(asked)?;
    Some((index, answer.value.get("result").unwrap_or(&Value::Null)))
}

/// The form requires a text as `name`.
fn form_conforms(played: &Played) -> Outcome {
    let Some((index, result)) = answered(played, "form") else {
        return inconclusive("the client did not answer the form, which its user may have to do");
    };
    if result.get("action") != Some(&json!("accept")) {
        return Ok(());
    }
    let content = result.get("content").unwrap_or(&Value::Null);
    let conforms = content.get("name").is_some_and(Value::is_string);
    let reason = format!("expected `content` with a text as `name`, got {content}");
    expect(played, index, conforms, &reason)
}

fn no_prefetch(played: &Played) -> Outcome {
    let answer = answered(played, "url").map(|(_, result)| result);
    let accepts = answer.is_some_and(|result| result.get("action") == Some(&json!("accept")));
    let mut fetched = played.recording.calls(Party::Agent, FETCHED);
    match (fetched.next(), answer) {
        // Nobody has consented while the question is open either.
        (Some((index, _)), _) if !accepts => Err(Stop::at(
            &played.recording,
            index,
            "expected no connection to a URL to which the user did not consent, got one",
        )),
        (Some(_), _) => inconclusive("the client accepts, and may open the URL"),
        (None, None) => inconclusive("the client did not answer the question with a URL"),
        (None, Some(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_consents_to_a_url_while_the_question_is_open() {
        let outcome = |answer: Option<Value>, is_fetched: bool| {
            let asked =
                json!({"id": "a", "method": "elicitation/create", "params": {"mode": "url"}});
            let answer = answer.map(|result| ("client", json!({"id": "a", "result": result})));
            let fetched = ("agent", json!({"method": FETCHED}));
            let all = [("agent", asked)].into_iter().chain(answer);
            no_prefetch(&Played::of(all.chain(is_fetched.then_some(fetched))))
        };
        let (accept, cancel) = (json!({"action": "accept"}), json!({"action": "cancel"}));
        assert!(matches!(outcome(None, true), Err(Stop::Fail(_))));
        assert!(matches!(outcome(None, false), Err(Stop::Inconclusive(_))));
        assert!(matches!(
            outcome(Some(cancel.clone()), true),
            Err(Stop::Fail(_))
        ));
        assert!(outcome(Some(cancel), false).is_ok());
        let accepted = outcome(Some(accept), true);
        assert!(
            matches!(accepted, Err(Stop::Inconclusive(_))),
            "{accepted:?}"
        );
    }
}
