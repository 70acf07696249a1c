//! What the protocol demands of clients, as rows of data.

use serde_json::{Value, json};

use super::Played;
use super::scenes::CURTAIN;
use crate::harness::{Entry, Outcome, Stop, fail, inconclusive, skip};
use crate::requirements::Tier;
use crate::wire::{Kind, Party, Rule};

/// A requirement of clients.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequirement {
    /// `client-area.name`.
    pub id: &'static str,
    /// How much it weighs.
    pub tier: Tier,
    /// The page and heading of the sentence.
    pub cite: &'static str,
    /// The sentence, or the part of it that matters.
    pub quote: &'static str,
    /// The scene after which it is checked.
    pub scene: &'static str,
    /// The check.
    pub check: fn(&Played) -> Outcome,
}

/// The requirements of clients about one subject.
#[derive(Clone, Copy, Debug)]
pub struct ClientArea {
    /// The first part of its requirements' ids.
    pub name: &'static str,
    /// Its requirements.
    pub rows: &'static [ClientRequirement],
}

/// All areas.
pub const AREAS: &[ClientArea] = &[ClientArea {
    name: "client",
    rows: ROWS,
}];

/// All requirements of clients.
pub fn all() -> impl Iterator<Item = &'static ClientRequirement> {
    AREAS.iter().flat_map(|area| area.rows)
}

const fn row(
    tier: Tier,
    id: &'static str,
    scene: &'static str,
    cite: &'static str,
    quote: &'static str,
    check: fn(&Played) -> Outcome,
) -> ClientRequirement {
    ClientRequirement {
        id,
        tier,
        cite,
        quote,
        scene,
        check,
    }
}

use Tier::{Capability, Info, Must, Should};

const ROWS: &[ClientRequirement] = &[
    row(
        Must,
        "client.initialize-first",
        "hello",
        "initialization#initialization",
        "Before a Session can be created, Clients MUST initialize the connection",
        initialize_first,
    ),
    row(
        Must,
        "client.version",
        "hello",
        "initialization#version-negotiation",
        "The `initialize` request MUST include the latest protocol version the Client supports.",
        version,
    ),
    row(
        Should,
        "client.info",
        "hello",
        "initialization#implementation-information",
        "Both Clients and Agents SHOULD provide information about their implementation",
        info,
    ),
    row(
        Should,
        "client.closes-on-other-version",
        "version",
        "initialization#version-negotiation",
        "the Client SHOULD close the connection and inform the user about it",
        closes_on_other_version,
    ),
    row(
        Must,
        "client.only-messages",
        "hello",
        "transports#stdio",
        "MUST NOT write anything to the agent's `stdin` that is not a valid ACP message",
        only_messages,
    ),
    row(
        Must,
        "client.valid-files",
        "files",
        "transports#stdio",
        "MUST NOT write anything to the agent's `stdin` that is not a valid ACP message",
        only_messages,
    ),
    row(
        Must,
        "client.valid-terminals",
        "terminals",
        "transports#stdio",
        "MUST NOT write anything to the agent's `stdin` that is not a valid ACP message",
        only_messages,
    ),
    row(
        Must,
        "client.absolute-cwd",
        "hello",
        "session-setup#working-directory",
        "MUST be an absolute path",
        absolute_cwd,
    ),
    row(
        Must,
        "client.no-undeclared-methods",
        "hello",
        "session-setup#checking-support",
        "Clients MUST NOT attempt to call `session/load`",
        no_undeclared_methods,
    ),
    row(
        Must,
        "client.no-undeclared-content",
        "hello",
        "prompt-turn#1-user-message",
        "Clients MUST restrict types of content according to the Prompt Capabilities",
        no_undeclared_content,
    ),
    row(
        Must,
        "client.no-undeclared-servers",
        "hello",
        "session-setup#checking-transport-support",
        "Before using HTTP or SSE transports, Clients MUST verify the Agent's capabilities",
        no_undeclared_servers,
    ),
    row(
        Must,
        "client.no-undeclared-directories",
        "hello",
        "session-setup#additional-workspace-roots",
        "Clients MUST only send `additionalDirectories` when the Agent advertises",
        no_undeclared_directories,
    ),
    row(
        Must,
        "client.custom-fields",
        "hello",
        "extensibility#the-meta-field",
        "Implementations MUST NOT add any custom fields at the root of a type that's part of the specification.",
        custom_fields,
    ),
    row(
        Info,
        "client.comes-to-an-end",
        "hello",
        "transports#stdio",
        "Client->>Agent Process: Close stdin, terminate subprocess",
        comes_to_an_end,
    ),
    row(
        Must,
        "client.permission",
        "permission",
        "tool-calls#requesting-permission",
        "The Client responds with the user's decision",
        permission,
    ),
    row(
        Capability,
        "client.reads",
        "files",
        "file-system#reading-files",
        "The Client responds with the file contents",
        reads,
    ),
    row(
        Capability,
        "client.reads-lines",
        "files",
        "file-system#reading-files",
        "Optional line number to start reading from (1-based)",
        reads_lines,
    ),
    row(
        Capability,
        "client.read-fails",
        "files",
        "overview#error-handling",
        "Errors include an `error` object with `code` and `message`",
        read_fails,
    ),
    row(
        Should,
        "client.refuses-relative-paths",
        "files",
        "overview#argument-requirements",
        "All file paths in the protocol MUST be absolute.",
        refuses_relative_paths,
    ),
    row(
        Capability,
        "client.creates-files",
        "files",
        "file-system#writing-files",
        "The Client MUST create the file if it doesn't exist.",
        creates_files,
    ),
    row(
        Capability,
        "client.writes-exactly",
        "files",
        "file-system#writing-files",
        "The text content to write to the file",
        writes_exactly,
    ),
    row(
        Capability,
        "client.runs-commands",
        "terminals",
        "terminals#getting-output",
        "The Client responds with the current output and exit status",
        runs_commands,
    ),
    row(
        Capability,
        "client.exit-code",
        "terminals",
        "terminals#waiting-for-exit",
        "The Client responds once the command exits",
        exit_code,
    ),
    row(
        Capability,
        "client.release-invalidates",
        "terminals",
        "terminals#releasing-terminals",
        "After release the terminal ID becomes invalid for all other `terminal/*` methods.",
        release_invalidates,
    ),
    row(
        Capability,
        "client.truncates-characters",
        "terminals",
        "terminals#executing-commands",
        "The Client MUST ensure truncation happens at a character boundary",
        truncates_characters,
    ),
    row(
        Capability,
        "client.keeps-killed-terminals",
        "terminals",
        "terminals#killing-commands",
        "After killing a command, the terminal remains valid",
        keeps_killed_terminals,
    ),
    row(
        Should,
        "client.refuses-undeclared-terminals",
        "terminals",
        "terminals#checking-support",
        "the Agent MUST NOT attempt to call any terminal methods",
        refuses_undeclared_terminals,
    ),
    row(
        Must,
        "client.answers-extensions",
        "strangeness",
        "extensibility#custom-requests",
        "Upon receiving a custom request, implementations MUST respond accordingly",
        answers_extensions,
    ),
    row(
        Should,
        "client.method-not-found",
        "strangeness",
        "extensibility#custom-requests",
        "it should respond with the standard \"Method not found\" error",
        method_not_found,
    ),
    row(
        Should,
        "client.ignores-notifications",
        "strangeness",
        "extensibility#custom-notifications",
        "implementations SHOULD ignore unrecognized notifications",
        ignores_notifications,
    ),
    row(
        Must,
        "client.survives-the-future",
        "strangeness",
        "session-config-options#option-categories",
        "Clients MUST handle missing or unknown categories gracefully.",
        survives,
    ),
    row(
        Info,
        "client.survives-noise",
        "noise",
        "transports#stdio",
        "MUST NOT write anything to its `stdout` that is not a valid ACP message",
        survives,
    ),
    row(
        Must,
        "client.no-undeclared-answers",
        "questions",
        "elicitation#url-completion",
        "Requests using a mode the Client has not advertised produce JSON-RPC `-32602`",
        questions,
    ),
    row(
        Must,
        "client.ignores-completions",
        "questions",
        "elicitation#url-completion",
        "Clients MUST ignore unknown or already-completed IDs.",
        survives,
    ),
    row(
        Must,
        "client.cancels-permission",
        "cancellation",
        "prompt-turn#cancellation",
        "The Client MUST respond to all pending `session/request_permission` requests",
        cancels_permission,
    ),
    row(
        Should,
        "client.hears-after-cancelling",
        "cancellation",
        "prompt-turn#cancellation",
        "The Client SHOULD still accept tool call updates received after sending `session/cancel`.",
        hears_after_cancelling,
    ),
    row(
        Info,
        "client.notices-death",
        "death",
        "transports#stdio",
        "Client->>Agent Process: Close stdin, terminate subprocess",
        notices_death,
    ),
];

fn first<'a>(played: &'a Played, method: &'a str) -> Outcome<(usize, &'a Entry)> {
    let mut calls = played.recording.calls(Party::Client, method);
    calls.next().ok_or_else(|| {
        Stop::failed(format!(
            "the client did not call {method}{}",
            played.last_words()
        ))
    })
}

/// The answers to the agent's requests of a method, in order.
fn answers<'a>(played: &'a Played, method: &'a str) -> Vec<(usize, &'a Entry)> {
    let recording = &played.recording;
    let asked = recording.calls(Party::Agent, method);
    asked
        .filter_map(|(index, _)| recording.answer(index))
        .collect()
}

/// The answer to the n-th request of the agent with this method.
fn answer<'a>(played: &'a Played, method: &'a str, n: usize) -> Outcome<(usize, &'a Entry)> {
    let recording = &played.recording;
    let Some((index, _)) = recording.calls(Party::Agent, method).nth(n) else {
        return inconclusive(format!(
            "the scene did not get to {method}{}",
            played.last_words()
        ));
    };
    let reason = format!("no answer to {method}");
    recording
        .answer(index)
        .ok_or_else(|| Stop::at(recording, index, reason))
}

fn result<'a>(played: &'a Played, method: &'a str, n: usize) -> Outcome<(usize, &'a Value)> {
    let (index, entry) = answer(played, method, n)?;
    match entry.value.get("result") {
        Some(result) => Ok((index, result)),
        None => Err(Stop::at(
            &played.recording,
            index,
            format!("{method} was refused"),
        )),
    }
}

fn refused(played: &Played, method: &str, n: usize) -> Outcome<usize> {
    let (index, entry) = answer(played, method, n)?;
    match entry.kind {
        Kind::Error => Ok(index),
        _ => Err(Stop::at(
            &played.recording,
            index,
            format!("{method} was not refused"),
        )),
    }
}

fn needs(played: &Played, pointer: &str) -> Outcome {
    if played.recording.declared(pointer).is_some() {
        return Ok(());
    }
    let name = pointer.trim_start_matches('/').replace('/', ".");
    skip(format!("the client does not declare `{name}`"))
}

fn expect(played: &Played, index: usize, good: bool, reason: &str) -> Outcome {
    if good {
        Ok(())
    } else {
        Err(Stop::at(&played.recording, index, reason))
    }
}

fn initialize_first(played: &Played) -> Outcome {
    let (index, _) = first(played, "initialize")?;
    let mut ours = played.recording.entries.iter().enumerate();
    let first = ours.find(|(_, entry)| entry.from == Party::Client);
    expect(
        played,
        index,
        first.is_some_and(|(first, _)| first == index),
        "something came before `initialize`",
    )?;
    self::first(played, "session/new").map(drop)
}

fn version(played: &Played) -> Outcome {
    let (index, entry) = first(played, "initialize")?;
    let version = entry
        .params()
        .get("protocolVersion")
        .and_then(Value::as_u64);
    expect(
        played,
        index,
        version.is_some_and(|version| version >= 1),
        "no protocol version",
    )
}

fn info(played: &Played) -> Outcome {
    let (index, entry) = first(played, "initialize")?;
    let has = |name: &str| {
        let text = entry
            .params()
            .get("clientInfo")
            .and_then(|info| info.get(name));
        text.and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    expect(
        played,
        index,
        has("name") && has("version"),
        "no `clientInfo` with a name and a version",
    )
}

fn closes_on_other_version(played: &Played) -> Outcome {
    first(played, "initialize")?;
    let mut after = played.recording.calls(Party::Client, "session/new");
    match after.next() {
        Some((index, _)) => Err(Stop::at(
            &played.recording,
            index,
            "a session with an agent that speaks version 65535",
        )),
        None if played.closed || played.exit.is_some() => Ok(()),
        None => fail("the client neither goes on nor closes the connection"),
    }
}

fn only_messages(played: &Played) -> Outcome {
    for (index, entry) in played.recording.entries.iter().enumerate() {
        if let Some(finding) = entry.findings.iter().find(|finding| {
            let rules = [
                Rule::Schema,
                Rule::Envelope,
                Rule::NotJson,
                Rule::TooLong,
                Rule::UnmatchedAnswer,
            ];
            finding.by == Some(Party::Client) && rules.contains(&finding.rule)
        }) {
            return Err(Stop::at(&played.recording, index, finding.to_string()));
        }
    }
    first(played, "initialize").map(drop)
}

fn absolute_cwd(played: &Played) -> Outcome {
    let (index, entry) = first(played, "session/new")?;
    let cwd = entry
        .params()
        .get("cwd")
        .and_then(Value::as_str)
        .unwrap_or_default();
    expect(
        played,
        index,
        std::path::Path::new(cwd).is_absolute(),
        "`cwd` is not an absolute path",
    )
}

fn no_undeclared_methods(played: &Played) -> Outcome {
    first(played, "initialize")?;
    for method in [
        "session/load",
        "session/resume",
        "session/list",
        "session/close",
        "session/delete",
        "logout",
    ] {
        if let Some((index, _)) = played.recording.calls(Party::Client, method).next() {
            let reason = format!("the agent does not declare {method}");
            return Err(Stop::at(&played.recording, index, reason));
        }
    }
    Ok(())
}

fn no_undeclared_content(played: &Played) -> Outcome {
    let (index, entry) = first(played, "session/prompt")?;
    let blocks = entry.params().get("prompt").and_then(Value::as_array);
    let plain = blocks.into_iter().flatten().all(|block| {
        let kind = block.get("type").and_then(Value::as_str);
        matches!(kind, Some("text" | "resource_link"))
    });
    expect(played, index, plain, "the agent declares no such content")
}

fn no_undeclared_servers(played: &Played) -> Outcome {
    let (index, entry) = first(played, "session/new")?;
    let servers = entry.params().get("mcpServers").and_then(Value::as_array);
    let mut remote = servers
        .into_iter()
        .flatten()
        .filter(|server| server.get("url").is_some());
    expect(
        played,
        index,
        remote.next().is_none(),
        "the agent declares no HTTP or SSE",
    )
}

fn no_undeclared_directories(played: &Played) -> Outcome {
    let (index, entry) = first(played, "session/new")?;
    let more = entry
        .params()
        .get("additionalDirectories")
        .and_then(Value::as_array);
    expect(
        played,
        index,
        more.is_none_or(Vec::is_empty),
        "the agent declares no additional directories",
    )
}

fn custom_fields(played: &Played) -> Outcome {
    for (index, entry) in played.recording.entries.iter().enumerate() {
        let found = entry
            .findings
            .iter()
            .find(|finding| finding.rule == Rule::CustomField);
        if let (Party::Client, Some(finding)) = (entry.from, found) {
            return Err(Stop::at(&played.recording, index, finding.to_string()));
        }
    }
    first(played, "initialize").map(drop)
}

fn comes_to_an_end(played: &Played) -> Outcome {
    if played.exit.is_some() {
        return Ok(());
    }
    fail("the client did not end after its only turn")
}

fn permission(played: &Played) -> Outcome {
    let (index, result) = result(played, "session/request_permission", 0)?;
    let chosen = result.pointer("/outcome/optionId");
    let offered = [json!("o-1"), json!("o-2")];
    let cancelled = result.pointer("/outcome/outcome") == Some(&json!("cancelled"));
    expect(
        played,
        index,
        cancelled || chosen.is_some_and(|id| offered.contains(id)),
        "the client chose what was not offered",
    )
}

fn content(played: &Played, n: usize) -> Outcome<(usize, String)> {
    needs(played, "/fs/readTextFile")?;
    let (index, result) = result(played, "fs/read_text_file", n)?;
    let content = result.get("content").and_then(Value::as_str);
    Ok((index, content.unwrap_or_default().to_owned()))
}

fn reads(played: &Played) -> Outcome {
    let (index, content) = content(played, 0)?;
    expect(
        played,
        index,
        content == "one\ntwo\nthree\n",
        "the content is not the file's",
    )
}

fn reads_lines(played: &Played) -> Outcome {
    let (index, content) = content(played, 1)?;
    expect(
        played,
        index,
        content.trim_end_matches('\n') == "two",
        "line 2 is `two`, and one line was asked for",
    )
}

fn read_fails(played: &Played) -> Outcome {
    needs(played, "/fs/readTextFile")?;
    refused(played, "fs/read_text_file", 2).map(drop)
}

fn refuses_relative_paths(played: &Played) -> Outcome {
    needs(played, "/fs/readTextFile")?;
    refused(played, "fs/read_text_file", 3).map(drop)
}

fn creates_files(played: &Played) -> Outcome {
    needs(played, "/fs/writeTextFile")?;
    let (index, _) = result(played, "fs/write_text_file", 0)?;
    let written = played.folder.join("new/out.txt").exists();
    expect(played, index, written, "the file does not exist afterwards")
}

fn writes_exactly(played: &Played) -> Outcome {
    needs(played, "/fs/writeTextFile")?;
    result(played, "fs/write_text_file", 1)?;
    let (index, back) = content(played, 4)?;
    expect(
        played,
        index,
        back == "Grüße\nwithout a last newline",
        "the file holds something else",
    )?;
    let left = std::fs::read_to_string(played.folder.join("new/out.txt"));
    expect(
        played,
        index,
        left.is_ok_and(|left| left.is_empty()),
        "overwriting with nothing left something",
    )
}

fn output(played: &Played, n: usize) -> Outcome<(usize, &Value)> {
    needs(played, "/terminal")?;
    result(played, "terminal/output", n)
}

fn runs_commands(played: &Played) -> Outcome {
    let (index, output) = output(played, 0)?;
    expect(
        played,
        index,
        output.get("output") == Some(&json!("hello")),
        "the output is not the command's",
    )?;
    let code = output.pointer("/exitStatus/exitCode");
    expect(
        played,
        index,
        code == Some(&json!(3)),
        "the exit status is not the command's",
    )
}

fn exit_code(played: &Played) -> Outcome {
    needs(played, "/terminal")?;
    let (index, exit) = result(played, "terminal/wait_for_exit", 0)?;
    expect(
        played,
        index,
        exit.get("exitCode") == Some(&json!(3)),
        "the exit code is 3",
    )
}

fn release_invalidates(played: &Played) -> Outcome {
    needs(played, "/terminal")?;
    refused(played, "terminal/output", 1).map(drop)
}

fn truncates_characters(played: &Played) -> Outcome {
    let (index, output) = output(played, 2)?;
    expect(
        played,
        index,
        output.get("truncated") == Some(&json!(true)),
        "eight bytes more than the limit, and not truncated",
    )?;
    let text = output
        .get("output")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let whole = text.chars().all(|c| c == 'ä');
    expect(
        played,
        index,
        whole && text.len() <= 5,
        "the end of the output, cut between characters, is due",
    )
}

fn keeps_killed_terminals(played: &Played) -> Outcome {
    needs(played, "/terminal")?;
    result(played, "terminal/kill", 0)?;
    result(played, "terminal/wait_for_exit", 2)?;
    result(played, "terminal/output", 3)?;
    result(played, "terminal/release", 2).map(drop)
}

fn refuses_undeclared_terminals(played: &Played) -> Outcome {
    if played.recording.declared("/terminal").is_some() {
        return skip("the client declares terminals");
    }
    refused(played, "terminal/create", 0).map(drop)
}

fn answers_extensions(played: &Played) -> Outcome {
    answer(played, "_acp-conformance/unknown", 0).map(drop)
}

fn method_not_found(played: &Played) -> Outcome {
    for method in ["_acp-conformance/unknown", "no/such/method"] {
        let (index, entry) = answer(played, method, 0)?;
        let code = entry.value.pointer("/error/code");
        expect(
            played,
            index,
            code == Some(&json!(-32601)),
            "the error is -32601",
        )?;
    }
    Ok(())
}

fn ignores_notifications(played: &Played) -> Outcome {
    first(played, "session/prompt")?;
    let stray = played.recording.entries.iter().position(|entry| {
        let answer = matches!(entry.kind, Kind::Result | Kind::Error);
        entry.from == Party::Client && answer && entry.request.is_none()
    });
    match stray {
        Some(index) => Err(Stop::at(
            &played.recording,
            index,
            "a notification was answered",
        )),
        None => survives(played),
    }
}

/// The client stays until the scene is over, and does not end before the turn does.
fn survives(played: &Played) -> Outcome {
    let (prompt, _) = first(played, "session/prompt")?;
    let said = played.recording.updates_of("agent_message_chunk");
    let curtain =
        said.filter(|update| update.body.pointer("/content/text") == Some(&json!(CURTAIN)));
    if curtain.last().is_none() || played.recording.answer(prompt).is_none() {
        return fail(format!(
            "the scene did not come to its end{}",
            played.last_words()
        ));
    }
    match played.exit {
        Some(Some(code)) if code != 0 => fail(format!(
            "the client ended with exit code {code}{}",
            played.last_words()
        )),
        Some(None) => fail(format!(
            "the client was killed by a signal{}",
            played.last_words()
        )),
        _ => Ok(()),
    }
}

fn questions(played: &Played) -> Outcome {
    let form = played
        .recording
        .declared("/elicitation")
        .and_then(|modes| modes.get("form"));
    let (index, entry) = answer(played, "elicitation/create", 0)?;
    if form.is_some_and(|form| !form.is_null()) {
        return expect(
            played,
            index,
            entry.kind == Kind::Result,
            "the client declares forms and refuses one",
        );
    }
    let code = entry.value.pointer("/error/code").and_then(Value::as_i64);
    expect(
        played,
        index,
        matches!(code, Some(-32602 | -32601)),
        "a mode that is not declared is refused with -32602",
    )
}

fn cancels_permission(played: &Played) -> Outcome {
    let mut cancels = played.recording.calls(Party::Client, "session/cancel");
    if cancels.next().is_none() {
        return inconclusive("the client does not cancel when it is interrupted");
    }
    let (index, result) = result(played, "session/request_permission", 0)?;
    let outcome = result.pointer("/outcome/outcome");
    expect(
        played,
        index,
        outcome == Some(&json!("cancelled")),
        "the turn was cancelled, and so is the question",
    )
}

fn hears_after_cancelling(played: &Played) -> Outcome {
    cancels_permission(played)?;
    let (prompt, _) = first(played, "session/prompt")?;
    if answers(played, "session/request_permission").is_empty()
        || !played
            .recording
            .answer(prompt)
            .is_some_and(|(_, answer)| answer.kind == Kind::Result)
    {
        return fail("the client did not stay until the turn was over");
    }
    Ok(())
}

fn notices_death(played: &Played) -> Outcome {
    first(played, "session/prompt")?;
    match played.exit {
        None => fail("the client goes on although its agent has ended"),
        Some(Some(0)) => fail("the client ends as if all were well, although its agent has died"),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::clients::SCENES;
    use crate::requirements::pages;

    #[test]
    fn every_row_has_an_id_a_citation_a_quote_and_a_scene() {
        let mut seen = HashSet::new();
        for row in all() {
            assert!(seen.insert(row.id), "{} stands twice", row.id);
            assert!(row.id.starts_with("client."), "{}", row.id);
            assert!(
                pages::address(row.cite).is_some(),
                "{} cites {}",
                row.id,
                row.cite
            );
            assert!((8..=120).contains(&row.quote.chars().count()), "{}", row.id);
            assert!(
                SCENES.iter().any(|scene| scene.name == row.scene),
                "{}",
                row.id
            );
        }
    }
}
