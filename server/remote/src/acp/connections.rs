//! The connections over HTTP, and the number of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_sdk::{ConnectionBuilder, MessageTransport, Transport};
use acp_server::internal::connection::Role;
use acp_server::{Access, Server};
use bytes::Bytes;
use tokio::sync::mpsc;

use super::failure::Failure;
use super::streams::Streams;
use super::transport;
use crate::EndpointSettings;
use crate::access::{Share, Shares};
use crate::caller::Caller;
use crate::metrics::Open;
use crate::nodes::{Joined, NodeCaller, Nodes};

/// Messages that wait to be read by a connection; further POST requests wait.
const INCOMING: usize = 16;

/// The endpoint's state.
pub(super) struct HttpConnections {
    pub(super) server: Server,
    /// Where the agent's endpoint is.
    path: Arc<str>,
    pub(super) settings: EndpointSettings,
    places: Arc<Shares>,
    open: Mutex<HashMap<String, Arc<HttpConnection>>>,
}

/// The place of an open connection.
pub(super) struct Place {
    _share: Share,
    _open: Open,
}

/// A connection whose messages come as POST requests and leave on streams.
pub(super) struct HttpConnection {
    pub(super) streams: Arc<Streams>,
    incoming: mpsc::Sender<Bytes>,
    /// Of whoever opened it; others do not find it.
    access: Access,
    /// The token of a file that opened it.
    name: Option<Arc<str>>,
}

impl HttpConnections {
    /// Creates the connections of one agent; `places` are those of all.
    pub(super) fn new(
        server: Server,
        path: Arc<str>,
        settings: EndpointSettings,
        places: Arc<Shares>,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            path,
            places,
            settings,
            open: Mutex::default(),
        })
    }

    /// Takes the place of a further connection.
    ///
    /// # Errors
    ///
    /// When there is none for the caller, or the server is about to end.
    pub(super) fn place(&self, caller: &Caller) -> Result<Place, Failure> {
        if self.server.is_ending() {
            return Err(Failure::STOPPING);
        }
        let share = self.places.take(caller.holder, 1);
        Ok(Place {
            _share: share.ok_or(Failure::TOO_MANY_CONNECTIONS)?,
            _open: Open::new(&self.settings.metrics.connections),
        })
    }

    /// Returns a connection that was opened with the same rights, and by the same token if that has
    /// a name.
    pub(super) fn find(&self, id: &str, caller: &Caller) -> Option<Arc<HttpConnection>> {
        let found = self.open().get(id).cloned();
        found.filter(|connection| {
            connection.access == caller.access && connection.name.as_ref() == caller.owner.name()
        })
    }

    /// Returns the node that has a connection, if that is another one that can be asked.
    pub(super) fn node_of(&self, id: &str, caller: &Caller) -> Option<(&Arc<dyn Nodes>, String)> {
        let nodes = self.settings.nodes_for(caller)?;
        let address = self.settings.connection_ids.as_ref()?.node_of(id)?;
        Some((nodes, address))
    }

    /// Returns the id of a further connection over HTTP.
    ///
    /// # Errors
    ///
    /// When the system has no source of random numbers.
    pub(super) fn create_id(&self) -> Result<String, getrandom::Error> {
        match &self.settings.connection_ids {
            Some(ids) => ids.create(),
            None => acp_server::internal::connection_id(),
        }
    }

    /// Opens a connection. It ends when it is [closed](Self::close), or after a time without use.
    pub(super) fn open_http(
        self: &Arc<Self>,
        place: Place,
        id: String,
        caller: Caller,
    ) -> Arc<HttpConnection> {
        let is_relayed = self.settings.nodes_for(&caller).is_some();
        let streams = Streams::new(self.settings.clone(), is_relayed);
        let (incoming, received) = mpsc::channel(INCOMING);
        let transport = transport::Transport::new(streams.clone(), received);
        let builder = self.builder();
        let transport = self.attached(transport, &caller, "acp/http", Some(streams.clone()));
        let role = Role {
            gate: Some(streams.clone()),
            ..caller.role("acp/http")
        };
        let mut running = self.server.attach_role(builder, transport, role);
        let connection = Arc::new(HttpConnection {
            streams: streams.clone(),
            incoming,
            name: caller.owner.name().cloned(),
            access: caller.access,
        });
        self.open().insert(id.clone(), connection.clone());
        let connections = self.clone();
        let mut leases = self.server.leases_lost();
        tokio::spawn(async move {
            tokio::select! {
                Ok(()) = leases.changed() => {}
                // The peer closes it, or breaks the protocol.
                _ = running.closed() => {}
                () = connections.unused(&streams) => {}
                () = caller.ended.cancelled() => {}
                () = connections.settings.stop.cancelled() => {}
            }
            connections.close(&id);
            let _ = running.shutdown().await;
            drop(place);
        });
        connection
    }

    /// Returns the transport by which a client is attached to the server.
    pub(super) fn attached(
        &self,
        client: impl MessageTransport + 'static,
        caller: &Caller,
        route: &'static str,
        pace: Option<Arc<Streams>>,
    ) -> Transport {
        match self.settings.nodes_for(caller) {
            Some(nodes) => {
                let joined = Joined {
                    server: self.server.clone(),
                    path: self.path.clone(),
                    caller: NodeCaller::new(caller.clone(), route),
                    pace: pace.map(|pace| pace as _),
                };
                nodes.join(Box::pin(client), joined)
            }
            None => Transport::messages(client),
        }
    }

    /// Settings of a connection, whatever carries it.
    pub(super) fn builder(&self) -> ConnectionBuilder {
        ConnectionBuilder::new().max_message_bytes(self.settings.message_bytes)
    }

    /// Ends a connection: what was sent is still handled. `false` if there is none.
    pub(super) fn close(&self, id: &str) -> bool {
        self.open().remove(id).is_some()
    }

    /// Waits until nobody has used a connection for the grace time.
    async fn unused(&self, streams: &Streams) {
        let grace = self.settings.grace;
        loop {
            let unused = streams.unused_for();
            let Some(left) = grace.checked_sub(unused).filter(|left| !left.is_zero()) else {
                return;
            };
            // A connection in use is checked again after the whole time: it ends late by one at most.
            tokio::time::sleep(left.max(Duration::from_millis(10))).await;
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpConnection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpConnection {
    /// Passes a message on; `false` if the connection has ended.
    pub(super) async fn receive(&self, message: Bytes) -> bool {
        self.incoming.send(message).await.is_ok()
    }
}
