//! Sessions: opening them, keeping them apart, their directories.

use super::passive::{repeated, text, watch_all};
use super::{Check, NamedCheck};
use crate::harness::{Conn, Cx, Outcome, Turn};
use crate::passive::{Asked, RuleResult, View, violation};
use crate::wire::{Party, is_output};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("session-setup.unique-id", Run(unique_id)),
    (
        "session-setup.known-session",
        watch_all(known_session, "no message of the agent about a session"),
    ),
    ("session-setup.independent", Run(independent)),
    (
        "session-setup.announced-first",
        watch_all(announced_first, "no update of a session"),
    ),
];

fn unique_id(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let ids = [conn.session()?, conn.session()?, conn.session()?];
    match repeated(ids.iter().map(String::as_str)) {
        Some(id) => Err(conn.at(
            conn.mark() - 1,
            format!("expected sessions with ids of their own, got {id} twice"),
        )),
        None => Ok(()),
    }
}

fn known_session(view: &View<'_>) -> RuleResult {
    // What a method of an extension calls `sessionId` is the extension's.
    let is_ours = view.is_call(Party::Agent) && !view.method.starts_with('_');
    let session = view.session().filter(|_| is_ours);
    let Some(session) = session.filter(|_| view.state.is_whole()) else {
        return Ok(0);
    };
    if is_news_of_a_list(view) {
        return Ok(1);
    }
    is_known(view, session)
}

/// The agent keeps a list of sessions up to date, which the client need not have opened.
fn is_news_of_a_list(view: &View<'_>) -> bool {
    let news = view.update_of("session_info_update");
    news.is_some_and(|news| view.state.lists(news.session))
}

/// The client knows this session, or may be about to: the answer that names it may be on its way.
/// When it is due is another row's question.
pub(super) fn is_known(view: &View<'_>, session: &str) -> RuleResult {
    let mut open = view.state.all_open(Party::Client);
    let mut coming = || open.any(|asked| asked.method != "session/prompt" && !is_barrier(asked));
    if view.known(session).is_none() && !coming() {
        return violation(format!("expected a session of the client, got {session:?}"));
    }
    Ok(1)
}

/// What the suite asks to see whether the agent reads creates no session.
fn is_barrier(asked: &Asked) -> bool {
    asked.method.starts_with("_acp-conformance/")
}

fn announced_first(view: &View<'_>) -> RuleResult {
    let update = view.update().filter(|_| view.state.is_whole());
    match update.map(|update| view.known(update.session)) {
        None => Ok(0),
        Some(None) if is_news_of_a_list(view) => Ok(1),
        Some(None) => violation(
            "expected updates of sessions that the client knows, got one before its session was named",
        ),
        Some(Some(_)) => Ok(1),
    }
}

fn independent(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (slow, quick) = (conn.session()?, conn.session()?);
    let running = conn.begin_slow(&slow)?;
    let turn = conn.prompt(&quick, "hello");
    conn.cancel(&slow);
    conn.turn_reply(running)?;
    let turn = turn?;
    let announced = conn.recording().updates_of("subagent_update");
    let children: Vec<_> = announced
        .filter_map(|it| text(it.body, "/sessionId"))
        .collect();
    let strays = conn.recording().updates().find(|update| {
        let within = turn.request < update.index && update.index < turn.end;
        // News of another session may come at any time, what a turn produces may not.
        let strange = update.session != slow && update.session != quick;
        let strange = strange && !children.contains(&update.session);
        within && strange && is_output(update.kind)
    });
    if let Some(update) = strays {
        return Err(conn.at(
            update.index,
            "expected updates of the two sessions, got one of another",
        ));
    }
    let has_output = |conn: &Conn, turn: &Turn| {
        let mut updates = conn.recording().updates();
        updates.any(|update| {
            let within = turn.request < update.index && update.index < turn.end;
            within && update.session == quick && is_output(update.kind)
        })
    };
    if !has_output(conn, &turn) {
        // Nothing may be all that it says to this prompt.
        let alone = conn.prompt(&quick, "hello")?;
        if has_output(conn, &alone) {
            return Err(conn.at(
                turn.end,
                "expected output of the turn in its own session while another one works, got none",
            ));
        }
    }
    Ok(())
}
