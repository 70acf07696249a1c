//! A child session: the work of a subagent, as part of the turn that began it.
//!
//! It is not a session of the server: it has no log, store or queue. Its updates are events of the
//! session of its turn.

use std::sync::Arc;

use acp_sdk::v1::{
    ContentBlock, ContentChunk, SessionId, SessionUpdate, StopReason, TextContent, ToolCallId,
    ToolKind,
};

use super::core::{Open, chunk, failed, push};
use super::unfinished::Unfinished;
use super::{NewToolCall, Role, Turn, TurnCore};
use crate::event::TurnEvent;
use crate::log::Appender;
use crate::{Error, Result};

/// The most child sessions of a turn that are open at once.
const MOST_CHILDREN: usize = 64;

/// A child session, such as that of a subagent. Dropped without an end, it ends as cancelled, and so
/// does one that is open when its turn ends.
///
/// Clients of protocol version 2 are sent its updates and questions under its own id. Those of version
/// 1 see it as a tool call, and are asked its questions in the session of the turn.
///
/// ```
/// # async fn example(turn: acp_server::Turn) -> acp_server::Result<()> {
/// use acp_sdk::v1::{StopReason, ToolKind};
///
/// let child = turn.child("Find the callers").await?;
/// let search = child.tool_call("Search for `connect`", ToolKind::Search).await?;
/// search.complete("3 matches").await?;
/// child.send_text("There are three callers.").await?;
/// child.end(StopReason::EndTurn).await
/// # }
/// ```
///
/// Spec: <https://agentclientprotocol.com/rfds/subagents>
#[derive(Debug)]
#[must_use = "a child session that is dropped is cancelled"]
pub struct Child {
    core: Arc<TurnCore>,
    id: SessionId,
}

impl Turn {
    /// Begins a child session, and announces it to clients by a title for people.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text). [`Error::Failed`] while 64 child sessions of the turn are open.
    pub async fn child(&self, title: impl Into<String>) -> Result<Child> {
        let core = self.core().clone();
        let id = core.begin_child(title.into()).await?;
        Ok(Child { core, id })
    }
}

impl Child {
    /// Returns the id, which no session and no other child session has.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Adds text to the message of the child session's agent.
    ///
    /// # Errors
    ///
    /// As [`Turn::send_text`]. The same holds for all methods here.
    pub async fn send_text(&self, text: impl Into<String>) -> Result<()> {
        self.say(Role::Agent, text.into()).await
    }

    /// Adds text to the thoughts of the child session's agent.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub async fn send_thought(&self, text: impl Into<String>) -> Result<()> {
        self.say(Role::Thought, text.into()).await
    }

    /// Adds text to the message that gave the child session its task.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub async fn send_task(&self, text: impl Into<String>) -> Result<()> {
        self.say(Role::User, text.into()).await
    }

    /// Announces a tool call of the child session, when the result is awaited. The user is asked about
    /// it by [`Turn::ask_permission`].
    pub fn tool_call(&self, title: impl Into<String>, kind: ToolKind) -> NewToolCall {
        NewToolCall::new(&self.core, title.into(), kind).of_child(&self.id)
    }

    /// Sends any update of the child session. One of settings changes nothing in the session itself.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub async fn send(&self, update: SessionUpdate) -> Result<()> {
        self.core.send_of(Some(&self.id), update).await
    }

    /// Ends the child session. Its open tool calls fail.
    ///
    /// # Errors
    ///
    /// As [`send_text`](Self::send_text).
    pub async fn end(self, stop_reason: StopReason) -> Result<()> {
        let ending = self
            .core
            .append(|appender| self.core.close_child(appender, &self.id, stop_reason));
        ending.await
    }

    async fn say(&self, role: Role, text: String) -> Result<()> {
        for piece in super::core::pieces(&text) {
            let block = ContentBlock::Text(TextContent::new(piece));
            self.send(role.chunk(ContentChunk::new(block))).await?;
        }
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.core.write_now_of(&self.id, |appender| {
            self.core
                .close_child(appender, &self.id, StopReason::Cancelled)
        });
    }
}

impl TurnCore {
    async fn begin_child(&self, title: String) -> Result<SessionId> {
        let id = format!("{}-{}", self.session.id(), self.next_id("child"));
        let id = SessionId::from(id);
        self.append(|appender| {
            {
                let mut open = self.open();
                if open.children.len() >= MOST_CHILDREN {
                    let reason = format!("{MOST_CHILDREN} child sessions are open; end one first");
                    return Err(Error::failed(reason));
                }
                open.own.end_message();
                let child = (id.clone(), Unfinished::default());
                open.children.push(child);
            }
            {
                let titles = &mut self.session.state().child_titles;
                if titles.len() == MOST_CHILDREN {
                    titles.pop_front();
                }
                titles.push_back((id.clone(), title.clone()));
            }
            let child = id.clone();
            push(appender, &TurnEvent::ChildStarted { child, title })
        })
        .await?;
        Ok(id)
    }

    /// Appends an update, of a child session or of the session itself.
    pub(super) async fn send_of(
        &self,
        child: Option<&SessionId>,
        update: SessionUpdate,
    ) -> Result<()> {
        match child {
            Some(child) => {
                self.append(|appender| self.write_of(appender, child, update))
                    .await
            }
            None => self.send(update).await,
        }
    }

    /// Appends an update of a child session under the log's lock.
    fn write_of(
        &self,
        appender: &mut Appender<'_>,
        child: &SessionId,
        mut update: SessionUpdate,
    ) -> Result<()> {
        {
            let mut open = self.open();
            let Open { children, ids, .. } = &mut *open;
            let Some((_, unfinished)) = children.iter_mut().find(|(id, _)| id == child) else {
                return Err(Error::failed(format!(
                    "the child session {child} has ended"
                )));
            };
            match chunk(&mut update) {
                Some((role, chunk)) if chunk.message_id.is_none() => {
                    chunk.message_id = Some(unfinished.message(role, self.turn, ids));
                }
                Some(_) => {}
                None => unfinished.note(&update),
            }
        }
        let child = child.clone();
        push(appender, &TurnEvent::ChildUpdate { child, update })
    }

    /// Appends the end of a child session under the log's lock, unless it has ended.
    fn close_child(
        &self,
        appender: &mut Appender<'_>,
        child: &SessionId,
        stop_reason: StopReason,
    ) -> Result<()> {
        let at = {
            let open = self.open();
            open.children.iter().position(|(id, _)| id == child)
        };
        let Some(at) = at else { return Ok(()) };
        let (child, mut unfinished) = self.open().children.remove(at);
        for call in unfinished.take_calls() {
            let (child, update) = (child.clone(), failed(&call));
            push(appender, &TurnEvent::ChildUpdate { child, update })?;
        }
        push(appender, &TurnEvent::ChildEnded { child, stop_reason })
    }

    /// The turn ends: so do its child sessions.
    pub(super) fn close_children(&self, appender: &mut Appender<'_>) -> Result<()> {
        let children: Vec<_> = {
            let open = self.open();
            open.children.iter().map(|(id, _)| id.clone()).collect()
        };
        children
            .iter()
            .try_for_each(|child| self.close_child(appender, child, StopReason::Cancelled))
    }

    /// The guard of a child's tool call is gone without an end: the call has failed.
    pub(super) fn child_call_dropped(&self, child: &SessionId, id: &ToolCallId) {
        self.write_now_of(child, |appender| {
            let is_open = {
                let open = self.open();
                let mut children = open.children.iter();
                children.any(|(known, open)| known == child && open.has_call(id))
            };
            match is_open {
                true => self.write_of(appender, child, failed(id)),
                false => Ok(()),
            }
        });
    }

    /// Appends without a wait, if a child session is open.
    fn write_now_of(&self, child: &SessionId, write: impl FnOnce(&mut Appender<'_>) -> Result<()>) {
        let is_open = {
            let open = self.open();
            open.children.iter().any(|(known, _)| known == child)
        };
        if !is_open {
            return;
        }
        let appended = self.session.log().append_now(Some(self.epoch), |appender| {
            self.check_open("an update")?;
            write(appender)
        });
        // If the store has failed, so has the turn.
        drop(appended);
    }
}
