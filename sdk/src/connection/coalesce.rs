//! Joins adjacent text chunks of one message while they wait to be written.
//!
//! Lossless: texts are concatenated in order, and only chunks that are equal except for their
//! text are joined. Chunks with annotations or `_meta` are not changed. Any other message ends the
//! chunk, so the order never changes.

use std::any::Any;

use crate::json::{Encode, EncodeError, Json, encode_raw};
use crate::runtime::Notification as _;
use crate::v1::{
    ContentBlock, ContentChunk, SessionNotification, SessionUpdate, TextContent, methods,
};

/// The most text of a joined chunk, in bytes.
const LARGEST: usize = 16 << 10;

/// Params with the serializer of their type, which would otherwise be compiled here a second
/// time.
pub(crate) trait Typed: Any + Encode {
    /// Returns the serializer of the type.
    fn encoder(&self) -> EncodeAny;
}

/// Serializes values of one type.
pub(crate) type EncodeAny = fn(&dyn Any, &mut Vec<u8>) -> Result<(), EncodeError>;

impl<T: Any + Encode> Typed for T {
    fn encoder(&self) -> EncodeAny {
        |value, bytes| match value.downcast_ref::<T>() {
            Some(value) => value.encode(bytes),
            None => Ok(()),
        }
    }
}

/// Returns the notification in `params` if its text may be joined with another's.
pub(crate) fn text_chunk(params: &dyn Any) -> Option<&SessionNotification> {
    let note: &SessionNotification = params.downcast_ref()?;
    let chunk = chunk(&note.update)?;
    let text = text(chunk)?;
    let plain = text.meta.is_none() && text.annotations.is_none();
    (plain && chunk.meta.is_none() && note.meta.is_none()).then_some(note)
}

/// Returns the notification that untyped params contain, if its text may be joined with
/// another's and its type keeps all of it: members that the type does not know would be lost.
pub(crate) fn untyped_chunk(method: &str, params: &Json) -> Option<SessionNotification> {
    if method != methods::SessionUpdate::NAME {
        return None;
    }
    let note: SessionNotification = params.parse().ok()?;
    text_chunk(&note)?;
    let same = encode_raw(&note).is_ok_and(|raw| raw.get() == params.get());
    same.then_some(note)
}

/// Appends the text of `next` to `open`; `false` if they do not belong together.
pub(super) fn join(open: &mut SessionNotification, next: &SessionNotification) -> bool {
    let same_kind = std::mem::discriminant(&open.update) == std::mem::discriminant(&next.update);
    if !same_kind || open.session_id != next.session_id {
        return false;
    }
    let (Some(into), Some(from)) = (chunk_mut(&mut open.update), chunk(&next.update)) else {
        return false;
    };
    if into.message_id != from.message_id {
        return false;
    }
    let (ContentBlock::Text(into), Some(from)) = (&mut into.content, text(from)) else {
        return false;
    };
    if into.text.len() + from.text.len() > LARGEST {
        return false;
    }
    into.text.push_str(&from.text);
    true
}

/// Returns the bytes of text in a chunk that [`text_chunk`] returned.
pub(super) fn text_bytes(note: &SessionNotification) -> usize {
    chunk(&note.update)
        .and_then(text)
        .map_or(0, |text| text.text.len())
}

fn chunk(update: &SessionUpdate) -> Option<&ContentChunk> {
    match update {
        SessionUpdate::UserMessageChunk(chunk)
        | SessionUpdate::AgentMessageChunk(chunk)
        | SessionUpdate::AgentThoughtChunk(chunk) => Some(chunk),
        _ => None,
    }
}

fn chunk_mut(update: &mut SessionUpdate) -> Option<&mut ContentChunk> {
    match update {
        SessionUpdate::UserMessageChunk(chunk)
        | SessionUpdate::AgentMessageChunk(chunk)
        | SessionUpdate::AgentThoughtChunk(chunk) => Some(chunk),
        _ => None,
    }
}

fn text(chunk: &ContentChunk) -> Option<&TextContent> {
    match &chunk.content {
        ContentBlock::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::v1::{Annotations, ImageContent};

    fn note(session: &str, content: impl Into<ContentBlock>) -> SessionNotification {
        let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(content));
        SessionNotification::new(session, update)
    }

    fn say(text: &str) -> SessionNotification {
        note("s", TextContent::new(text))
    }

    #[test]
    fn texts_of_one_message_are_joined_in_order() {
        let mut open = say("Hel");
        assert!(join(&mut open, &say("lo")) && join(&mut open, &say("")));
        assert_eq!(open, say("Hello"));
        assert_eq!(text_bytes(&open), 5);
    }

    #[test]
    fn chunks_that_differ_in_more_than_their_text_are_not() {
        let thought = SessionUpdate::AgentThoughtChunk(ContentChunk::new(TextContent::new("x")));
        let message = ContentChunk::new(TextContent::new("x")).with_message_id("m2");
        let others = [
            note("t", TextContent::new("x")),
            SessionNotification::new("s", thought),
            SessionNotification::new("s", SessionUpdate::AgentMessageChunk(message)),
            say(&"x".repeat(LARGEST)),
        ];
        for other in others {
            let mut open = say("y");
            assert!(!join(&mut open, &other), "{other:?}");
            assert_eq!(open, say("y"));
        }
    }

    #[test]
    fn untyped_chunks_count_if_their_type_keeps_all_of_them() {
        let method = "session/update";
        let raw = |text: &str| Json::from(serde_json::from_str::<Box<RawValue>>(text).unwrap());
        let plain = encode_raw(&say("x")).unwrap();
        let note = untyped_chunk(method, &Json::from(plain.clone()));
        assert_eq!(note, Some(say("x")));
        assert!(untyped_chunk("_other", &Json::from(plain.clone())).is_none());
        let with_unknown = plain.get().replacen('{', "{\"novel\":1,", 1);
        assert!(untyped_chunk(method, &raw(&with_unknown)).is_none());
        assert!(untyped_chunk(method, &raw("[]")).is_none());
    }

    #[test]
    fn what_carries_more_than_text_is_left_alone() {
        assert!(text_chunk(&say("x")).is_some());
        let annotated = TextContent::new("x").with_annotations(Annotations::new());
        let image = ImageContent::new("aGk=", "image/png");
        let meta: crate::Meta = serde_json::from_str("{\"a\":1}").unwrap();
        let tagged = TextContent::new("x").with_meta(meta.clone());
        assert!(text_chunk(&note("s", annotated)).is_none());
        assert!(text_chunk(&note("s", tagged)).is_none());
        assert!(text_chunk(&note("s", image)).is_none());
        let chunk = ContentChunk::new(TextContent::new("x")).with_meta(meta.clone());
        let chunk = SessionUpdate::AgentMessageChunk(chunk);
        assert!(text_chunk(&SessionNotification::new("s", chunk)).is_none());
        assert!(text_chunk(&say("x").with_meta(meta)).is_none());
        assert!(text_chunk(&TextContent::new("x")).is_none(), "other params");
    }
}
