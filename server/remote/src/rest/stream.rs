//! A long response that is written while the log is read.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;

use acp_server::event::StoredEvent;
use acp_server::store::{Pages, Store, StoreError};

/// Returns the pieces of a response: a head, what `event` writes of each event, and a tail.
///
/// If the store fails, the response is broken off, so that nobody takes it for the whole.
pub(super) fn pieces<F>(
    pages: Pages<Arc<dyn Store>>,
    head: String,
    event: F,
    tail: String,
) -> impl Stream<Item = Result<Bytes, StoreError>>
where
    F: FnMut(StoredEvent<'_>, &mut String),
{
    enum Part {
        Head(String),
        Pages,
        End,
    }
    let state = (Part::Head(head), pages, event, tail);
    futures_util::stream::unfold(
        state,
        async |(part, mut pages, mut event, mut tail)| match part {
            Part::Head(head) => Some((Ok(head.into()), (Part::Pages, pages, event, tail))),
            Part::Pages => match pages.next().await {
                Ok(Some(page)) => {
                    let mut output = String::new();
                    for stored in page.events() {
                        event(stored, &mut output);
                    }
                    Some((Ok(output.into()), (Part::Pages, pages, event, tail)))
                }
                Ok(None) => {
                    let tail = std::mem::take(&mut tail);
                    Some((Ok(tail.into()), (Part::End, pages, event, String::new())))
                }
                Err(error) => Some((Err(error), (Part::End, pages, event, tail))),
            },
            Part::End => None,
        },
    )
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
