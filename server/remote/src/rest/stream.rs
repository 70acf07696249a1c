//! A long response that is written while the log is read.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;

use acp_server::event::StoredEvent;
use acp_server::store::{Page, Pages, Store, StoreError};

use super::long_reads::LongRead;

/// Returns the pieces of a response: a head, what `event` writes of each event, and a tail.
///
/// If the store fails, the response is broken off, so that nobody takes it for the whole.
pub(super) fn pieces<F>(
    read: LongRead,
    pages: Pages<Arc<dyn Store>>,
    head: String,
    event: F,
    tail: String,
) -> impl Stream<Item = Result<Bytes, StoreError>>
where
    F: FnMut(StoredEvent<'_>, &mut String) + Send + 'static,
{
    enum Part<F> {
        Head(String, F),
        Pages(F),
        End,
    }
    let state = (Part::Head(head, event), read, pages, tail);
    futures_util::stream::unfold(state, async |(part, read, mut pages, mut tail)| {
        let (piece, next) = match part {
            Part::Head(head, event) => (Ok(head), Part::Pages(event)),
            Part::Pages(event) => match rendered(&read, &mut pages, event).await {
                Ok(Some((piece, event))) => (Ok(piece), Part::Pages(event)),
                Ok(None) => (Ok(std::mem::take(&mut tail)), Part::End),
                Err(error) => (Err(error), Part::End),
            },
            Part::End => return None,
        };
        Some((piece.map(Bytes::from), (next, read, pages, tail)))
    })
}

/// Returns what `event` writes of the next events, and `event`; `None` at the end.
async fn rendered<F>(
    read: &LongRead,
    pages: &mut Pages<Arc<dyn Store>>,
    mut event: F,
) -> Result<Option<(String, F)>, StoreError>
where
    F: FnMut(StoredEvent<'_>, &mut String) + Send + 'static,
{
    let Some(chunk) = read.turns.next(pages).await? else {
        return Ok(None);
    };
    let render = move |pages: &[Page]| {
        let mut output = String::new();
        for stored in pages.iter().flat_map(Page::events) {
            event(stored, &mut output);
        }
        (output, event)
    };
    chunk.run(render).await.map(Some)
}

/// Collects the pieces; `None` if there are more than `limit` bytes.
///
/// # Errors
///
/// The store's.
pub(super) async fn collect(
    pieces: impl Stream<Item = Result<Bytes, StoreError>>,
    limit: usize,
) -> Result<Option<String>, StoreError> {
    use futures_util::StreamExt as _;
    let mut pieces = std::pin::pin!(pieces);
    let mut whole = Vec::new();
    while let Some(piece) = pieces.next().await {
        whole.extend_from_slice(&piece?);
        if whole.len() > limit {
            return Ok(None);
        }
    }
    // The pieces are texts.
    Ok(Some(String::from_utf8_lossy(&whole).into_owned()))
}
