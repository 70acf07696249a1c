//! What a program is sent while a request to a server is active.

use std::sync::Arc;

use acp_sdk::service::Context;
use acp_sdk::{Json, Peer};
use futures_util::FutureExt as _;
use serde_json::json;
use serde_json::value::RawValue;

use super::connection::Server;
use crate::mcp::wire::Inner;
use crate::message::value;

/// The request for the changes of lists, which is active until it is cancelled.
pub(super) const LISTEN: &str = "subscriptions/listen";

/// The member of `_meta` with the id of the [`LISTEN`] request.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Who is sent the notifications of a request.
#[derive(Clone, Copy)]
pub(super) enum Recipient<'a> {
    Nobody,
    /// The program that has sent the request.
    Caller(&'a Context),
    /// The program that has sent the [`LISTEN`] request.
    Subscriber(&'a Context),
    /// A program that is sent changes of lists, and knows of no request.
    Follower(&'a Peer),
}

impl Recipient<'_> {
    pub(super) async fn notify(&self, inner: Inner) {
        let (peer, params) = match self {
            Self::Nobody => return,
            Self::Caller(context) | Self::Subscriber(context) => {
                let params = inner.params.map(|params| self.receives(params));
                (context.peer(), params)
            }
            // The acknowledgment is for who has sent the request.
            Self::Follower(_) if !inner.method.ends_with("/list_changed") => return,
            Self::Follower(peer) => (*peer, None),
        };
        let sent = peer.notify_ext(&inner.method, params.as_ref()).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "a notification of an MCP server is not sent");
        }
    }

    /// Returns params or a result as the program receives them: a subscription has the id of its request.
    pub(super) fn receives(&self, raw: Box<RawValue>) -> Json {
        let Self::Subscriber(context) = self else {
            return raw.into();
        };
        let mut changed = value(Some(&raw));
        let id = changed
            .pointer_mut("/_meta")
            .and_then(|meta| meta.get_mut(SUBSCRIPTION));
        match id {
            Some(id) => *id = json!(context.request_id()),
            None => return raw.into(),
        }
        changed.into()
    }

    /// Waits until the program has cancelled the request.
    pub(super) async fn cancelled(&self) {
        match self {
            Self::Caller(context) | Self::Subscriber(context) => context.cancelled().await,
            Self::Nobody | Self::Follower(_) => std::future::pending().await,
        }
    }
}

impl Server {
    /// Subscribes to the changes of lists for a program that has begun with `initialize`: it expects them without
    /// a request.
    pub(super) fn follow_changes(self: &Arc<Self>, program: Peer) {
        let Some(changes) = self.lifecycle.take_changes() else {
            return;
        };
        let server = self.clone();
        let mut listening = Box::pin(async move {
            let params = Some(json!({"notifications": changes}));
            let params = server.lifecycle.complete(params).map(Json::from);
            let ended = server
                .call(Recipient::Follower(&program), LISTEN, params)
                .await;
            tracing::debug!(?ended, "an MCP server reports no more changes");
        });
        // It is sent before what the program sends next, so that no change after a list is missed.
        if listening.as_mut().now_or_never().is_none() {
            tokio::spawn(self.ended.clone().run_until_cancelled_owned(listening));
        }
    }
}
