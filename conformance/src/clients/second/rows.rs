//! What version 2 demands of clients.

use serde_json::json;

use crate::clients::Played;
use crate::clients::conduct::{
    answers_extensions, cancels_permission, hears_after_cancelling, ignores_notifications,
    method_not_found, notices_death,
};
use crate::clients::handshake::{
    absolute_cwd, asks_for, closes_on_other_version, comes_to_an_end, custom_fields,
    initialize_first, introduces, no_undeclared_content, only_messages,
};
use crate::clients::look::{answer, expect, first, survives};
use crate::clients::services::permission;
use crate::clients::table::{ClientRequirement, row};
use crate::harness::{Outcome, Stop};
use crate::requirements::Tier::{Info, Must, Should};
use crate::wire::{Kind, Party};

pub(in crate::clients) const ROWS: &[ClientRequirement] = &[
    row(
        Must,
        "client.initialize-first",
        "v2-hello",
        "v2/initialization#initialization",
        "Before a Session can be created, Clients MUST initialize the connection",
        initialize_first,
    ),
    row(
        Must,
        "client.version",
        "v2-hello",
        "v2/initialization#version-negotiation",
        "The `initialize` request MUST include the latest protocol version the Client supports.",
        version,
    ),
    row(
        Must,
        "client.info",
        "v2-hello",
        "v2/initialization#implementation-information",
        "Both Clients and Agents MUST provide information about their implementation",
        info,
    ),
    row(
        Should,
        "client.closes-on-other-version",
        "v2-version",
        "v2/initialization#version-negotiation",
        "the Client SHOULD close the connection and inform the user about it",
        closes_on_other_version,
    ),
    row(
        Must,
        "client.only-messages",
        "v2-hello",
        "v2/transports#stdio",
        "MUST NOT write anything to the agent's `stdin` that is not a valid ACP message",
        only_messages,
    ),
    row(
        Must,
        "client.absolute-cwd",
        "v2-hello",
        "v2/session-setup#working-directory",
        "MUST be an absolute path",
        absolute_cwd,
    ),
    row(
        Must,
        "client.no-undeclared-methods",
        "v2-hello",
        "v2/initialization#initialization",
        "If `authMethods` is omitted or empty, Clients MUST NOT call either method.",
        no_undeclared_methods,
    ),
    row(
        Must,
        "client.no-undeclared-content",
        "v2-hello",
        "v2/prompt-lifecycle#1-user-message",
        "Clients MUST restrict types of content according to the Prompt Capabilities",
        no_undeclared_content,
    ),
    row(
        Must,
        "client.custom-fields",
        "v2-hello",
        "v2/extensibility#the-meta-field",
        "MUST NOT add any custom fields at the root of a type that's part of the specification.",
        custom_fields,
    ),
    row(
        Info,
        "client.comes-to-an-end",
        "v2-hello",
        "v2/transports#stdio",
        "Client->>Agent Process: Close stdin, terminate subprocess",
        comes_to_an_end,
    ),
    row(
        Must,
        "client.permission",
        "v2-permission",
        "v2/tool-calls#requesting-permission",
        "The Client responds with the user's decision",
        permission,
    ),
    row(
        Must,
        "client.answers-extensions",
        "v2-strangeness",
        "v2/extensibility#custom-requests",
        "implementations MUST respond accordingly with the provided `id`",
        answers_extensions,
    ),
    row(
        Should,
        "client.method-not-found",
        "v2-strangeness",
        "v2/extensibility#custom-requests",
        "it should respond with the standard \"Method not found\" error",
        method_not_found,
    ),
    row(
        Should,
        "client.ignores-notifications",
        "v2-strangeness",
        "v2/extensibility#custom-notifications",
        "implementations SHOULD ignore unrecognized notifications.",
        ignores_notifications,
    ),
    row(
        Must,
        "client.unknown-values",
        "v2-strangeness",
        "v2/extensibility#enum-and-tagged-union-variants",
        "When displaying an unknown value, implementations SHOULD fall back to generic UI behavior",
        survives,
    ),
    row(
        Must,
        "client.undeclared-questions",
        "v2-questions",
        "v2/elicitation#url-completion",
        "Requests using a mode the Client has not advertised produce JSON-RPC `-32602`",
        questions,
    ),
    row(
        Must,
        "client.unknown-completions",
        "v2-questions",
        "v2/elicitation#url-completion",
        "Clients MUST ignore unknown or already-completed IDs.",
        ignores_notifications,
    ),
    row(
        Must,
        "client.cancels-permission",
        "v2-cancellation",
        "v2/prompt-lifecycle#cancellation",
        "MUST respond to all pending `session/request_permission` requests with the `cancelled` outcome",
        cancels_permission,
    ),
    row(
        Should,
        "client.hears-after-cancelling",
        "v2-cancellation",
        "v2/prompt-lifecycle#cancellation",
        "The Client SHOULD still accept tool call updates received after sending `session/cancel`.",
        hears_after_cancelling,
    ),
    row(
        Info,
        "client.notices-death",
        "v2-death",
        "v2/transports#stdio",
        "Client->>Agent Process: Close stdin, terminate subprocess",
        notices_death,
    ),
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
