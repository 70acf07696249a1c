//! What version 2 demands of clients.

use serde_json::json;

use crate::clients::Played;
use crate::clients::assertions::{answer, expect, first, survives};
use crate::clients::handshake::{
    absolute_cwd, asks_for, closes_on_other_version, comes_to_an_end, custom_fields,
    initialize_first, introduces, method_names, no_undeclared_content, only_messages,
};
use crate::clients::robustness::{
    answers_extensions, cancelled_request, cancels_pending_permission, cancels_permission,
    hears_after_cancelling, ignores_notifications, method_not_found, notices_death,
};
use crate::clients::services::permission;
use crate::clients::table::ClientCheck;
use crate::harness::{Outcome, Stop};
use crate::wire::{Kind, Party};

pub(in crate::clients) const CHECKS: &[ClientCheck] = &[
    ("client.initialize-first", initialize_first),
    ("client.version", version),
    ("client.info", info),
    ("client.closes-on-other-version", closes_on_other_version),
    ("client.only-messages", only_messages),
    ("client.absolute-cwd", absolute_cwd),
    ("client.no-undeclared-methods", no_undeclared_methods),
    ("client.no-undeclared-content", no_undeclared_content),
    ("client.custom-fields", custom_fields),
    ("client.method-names", method_names),
    ("client.comes-to-an-end", comes_to_an_end),
    ("client.permission", permission),
    ("client.answers-extensions", answers_extensions),
    ("client.method-not-found", method_not_found),
    ("client.ignores-notifications", ignores_notifications),
    ("client.unknown-values", survives),
    ("client.undeclared-questions", questions),
    ("client.unknown-completions", ignores_notifications),
    ("client.cancels-permission", cancels_permission),
    (
        "client.cancels-pending-permission",
        cancels_pending_permission,
    ),
    ("client.cancelled-request", cancelled_request),
    ("client.hears-after-cancelling", hears_after_cancelling),
    ("client.notices-death", notices_death),
];

fn version(played: &Played) -> Outcome {
    asks_for(played, 2, "not version 2, which was to be tested")
}

fn info(played: &Played) -> Outcome {
    introduces(played, "info")
}

fn no_undeclared_methods(played: &Played) -> Outcome {
    first(played, "initialize")?;
    for method in ["auth/login", "auth/logout", "session/delete"] {
        if let Some((index, _)) = played.recording.calls(Party::Client, method).next() {
            let reason = format!("the agent does not declare {method}");
            return Err(Stop::at(&played.recording, index, reason));
        }
    }
    Ok(())
}

fn questions(played: &Played) -> Outcome {
    let (_, handshake) = first(played, "initialize")?;
    let form = handshake.params().pointer("/capabilities/elicitation/form");
    let (index, entry) = answer(played, "elicitation/create", 0)?;
    if form.is_some_and(|form| !form.is_null()) {
        let reason = "the client declares forms and refuses one";
        return expect(played, index, entry.kind == Kind::Result, reason);
    }
    let refused = entry.value.pointer("/error/code") == Some(&json!(-32602));
    let reason = "a mode that is not declared is not refused with -32602";
    expect(played, index, refused, reason)
}
