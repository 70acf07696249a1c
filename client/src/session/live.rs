//! A conversation that follows the events of a session.

use std::collections::VecDeque;

use acp_sdk::conversation::{Changes, Conversation};
use acp_sdk::v1::SessionId;

use super::event::{Event, SessionEvent};
use super::events::Events;

/// The maximum number of child sessions whose conversations are kept.
const MOST_CHILDREN: usize = 32;

/// The limit in bytes of a child session's conversation.
const CHILD_BYTES: usize = 4 << 20;

/// The conversation of a session, and those of its child sessions, as they grow.
///
/// Created by [`Session::conversation`](crate::Session::conversation). Unread events exert backpressure
/// on the agent, as those of [`Events`] do.
///
/// ```no_run
/// # async fn example(session: acp_client::Session) {
/// let mut live = session.conversation();
/// while let Some(step) = live.next().await {
///     for change in step.changes {
///         let item = change.item().and_then(|id| live.conversation().item(id));
///         println!("redraw {change:?}: {item:?}");
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct LiveConversation {
    events: Events,
    conversation: Conversation,
    children: ChildConversations,
}

/// The conversations of the child sessions of a session: the last 32 that were updated, up to 4 MiB each.
#[derive(Debug, Default)]
pub struct ChildConversations(VecDeque<(SessionId, Conversation)>);

/// An event, and what it has changed in a conversation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConversationStep {
    /// The event.
    pub event: SessionEvent,
    /// What a user interface must redraw: of the conversation of the child session for
    /// [`Event::ChildSession`], else of the session's own.
    pub changes: Changes,
}

impl LiveConversation {
    pub(crate) fn new(events: Events) -> Self {
        Self {
            events,
            conversation: Conversation::new(),
            children: ChildConversations::default(),
        }
    }

    /// Returns the next event after it was applied; `None` when the session is closed or the agent has
    /// disconnected.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ConversationStep> {
        let event = self.events.next().await?;
        Some(self.apply(event))
    }

    /// Returns the next event if one is queued, after it was applied, without waiting.
    pub fn next_ready(&mut self) -> Option<ConversationStep> {
        let event = self.events.next_ready()?;
        Some(self.apply(event))
    }

    /// Returns the conversation so far. It keeps 64 MiB, and drops the oldest items first.
    #[must_use]
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Returns the conversations of the child sessions.
    #[must_use]
    pub fn children(&self) -> &ChildConversations {
        &self.children
    }

    fn apply(&mut self, event: SessionEvent) -> ConversationStep {
        let changes = match &event.event {
            Event::ChildSession(update) => self.children.of(&update.session).apply(&update.update),
            other => other.apply_to(&mut self.conversation),
        };
        ConversationStep { event, changes }
    }
}

impl ChildConversations {
    /// Returns the conversation of a child session, to be updated. A new one is empty.
    pub fn of(&mut self, session: &SessionId) -> &mut Conversation {
        let known = self.0.iter().position(|(id, _)| id == session);
        let child = known.and_then(|at| self.0.remove(at));
        if self.0.len() == MOST_CHILDREN {
            self.0.pop_front();
        }
        let new = || (session.clone(), Conversation::with_limit(CHILD_BYTES));
        self.0.push_back(child.unwrap_or_else(new));
        let last = self.0.len() - 1;
        &mut self.0[last].1
    }

    /// Returns the conversation of a child session.
    #[must_use]
    pub fn get(&self, session: &SessionId) -> Option<&Conversation> {
        let child = self.0.iter().find(|(id, _)| id == session)?;
        Some(&child.1)
    }

    /// Returns the child sessions, in the order of their last updates.
    pub fn iter(&self) -> impl Iterator<Item = (&SessionId, &Conversation)> {
        self.0.iter().map(|(id, child)| (id, child))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use acp_sdk::v1::{ContentBlock, ContentChunk, SessionUpdate};

    use super::super::{ChildUpdate, Inbox};
    use super::*;

    fn said(text: &str) -> SessionUpdate {
        SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(text)))
    }

    fn texts(conversation: &Conversation) -> Vec<String> {
        let messages = conversation.items().filter_map(|item| item.as_message());
        messages
            .map(|message| message.text().into_owned())
            .collect()
    }

    fn live() -> LiveConversation {
        LiveConversation::new(Events::new(Arc::<Inbox>::default()))
    }

    fn child(live: &mut LiveConversation, id: &str, text: &str) -> ConversationStep {
        let update = ChildUpdate {
            session: id.into(),
            title: None,
            update: said(text),
        };
        live.apply(SessionEvent::live(
            Event::ChildSession(Box::new(update)),
            None,
        ))
    }

    #[test]
    fn child_sessions_have_conversations_of_their_own() {
        let mut live = live();
        live.apply(SessionEvent::live(Event::Update(said("own ")), Some(1)));
        let changes: Vec<_> = child(&mut live, "a", "of a").changes.into_iter().collect();
        live.apply(SessionEvent::live(Event::Update(said("text")), Some(1)));
        child(&mut live, "b", "of b");
        child(&mut live, "a", ", more");
        assert_eq!(texts(live.conversation()), ["own text"]);
        let of_a = live.children().get(&"a".into()).unwrap();
        assert_eq!(texts(of_a), ["of a, more"]);
        assert!(changes[0].item().is_some_and(|id| of_a.item(id).is_some()));
        let order: Vec<_> = live.children().iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(order, ["b", "a"]);
        assert!(live.children().get(&"c".into()).is_none());
    }

    #[test]
    fn the_child_sessions_that_are_kept_are_bounded() {
        let mut live = live();
        for number in 0..2 * MOST_CHILDREN {
            child(&mut live, &number.to_string(), "text");
            child(&mut live, "0", ".");
        }
        assert_eq!(live.children().iter().count(), MOST_CHILDREN);
        assert!(live.children().get(&"1".into()).is_none());
        let first = texts(live.children().get(&"0".into()).unwrap());
        assert_eq!(first[0].len(), "text".len() + 2 * MOST_CHILDREN);
    }
}
