//! Nodes in one process, over a store that knows which of them has a session.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_client::remote::{RemoteAgent, Token as ClientToken};
use acp_client::{Client, Policy, Session};
use acp_reference_agent::Reference;
use acp_sdk::v1::SessionId;
use acp_server::store::{
    Commit, EventPage, Lease, ListQuery, MemoryStore, NodeStatistics, NodesSeen, SessionOwner,
    SessionRecord, Store, StoreError, StoreEvent, StoreFuture, StoreUsage, StoredPrompt,
};
use acp_server::{Handler, Limits, Server};
use acp_server_cluster::Cluster;
use acp_server_remote::{
    AccessControl, EndpointSettings, Hosts, NodeEndpoint, ServeSettings, Token, Tokens, serve,
};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, Notify};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

pub(crate) const MASTER: &str = "a-token-of-all-clients";
pub(crate) const SECRET: &str = "a-secret-of-all-nodes";

/// The store of all nodes.
#[derive(Debug, Default)]
pub(crate) struct SharedStore {
    store: MemoryStore,
    nodes: Mutex<Vec<NodeState>>,
    owners: Mutex<HashMap<SessionId, usize>>,
    /// Nodes that are answered together that nobody has a session.
    race: Mutex<Option<Arc<Barrier>>>,
    /// One node acquires at a time, as rows are locked.
    acquiring: tokio::sync::Mutex<()>,
    committed: Notify,
}

#[derive(Clone, Debug)]
struct NodeState {
    address: String,
    /// Its leases are valid.
    is_valid: bool,
    /// It has been killed: what it began never ends.
    is_dead: bool,
    lost: Arc<Notify>,
}

/// The store as one node sees it.
#[derive(Debug)]
pub(crate) struct StoreOfNode {
    shared: Arc<SharedStore>,
    node: usize,
}

impl SharedStore {
    fn owner_of(&self, session: &SessionId) -> Option<(usize, NodeState)> {
        let node = *self.owners.lock().unwrap().get(session)?;
        let state = self.nodes.lock().unwrap()[node].clone();
        state.is_valid.then_some((node, state))
    }

    /// The next two nodes that ask who has a session, which nobody has, are answered at the same time.
    pub(crate) fn race(&self) {
        *self.race.lock().unwrap() = Some(Arc::new(Barrier::new(2)));
    }

    /// Returns the events of a session as text once a condition holds for them.
    pub(crate) async fn events_when(
        &self,
        session: &SessionId,
        condition: impl Fn(&str) -> bool,
    ) -> String {
        loop {
            let mut committed = std::pin::pin!(self.committed.notified());
            committed.as_mut().enable();
            let page = self.store.read(session, 0, usize::MAX).await.unwrap();
            let events: String = page.batches.iter().map(|batch| batch.lines()).collect();
            if condition(&events) {
                return events;
            }
            committed.await;
        }
    }

    pub(crate) fn is_owned(&self, session: &SessionId) -> bool {
        self.owner_of(session).is_some()
    }

    /// Ends the leases of a node.
    fn expire(&self, node: usize) {
        self.nodes.lock().unwrap()[node].is_valid = false;
    }
}

impl StoreOfNode {
    fn state(&self) -> NodeState {
        self.shared.nodes.lock().unwrap()[self.node].clone()
    }

    fn own(&self, session: &SessionId) {
        let mut owners = self.shared.owners.lock().unwrap();
        owners.insert(session.clone(), self.node);
    }

    fn check(&self, session: &SessionId) -> Result<(), StoreError> {
        match self.shared.owner_of(session) {
            Some((node, state)) if node != self.node => {
                let owner = SessionOwner::new(Some(state.address), false, Duration::ZERO);
                Err(StoreError::in_use_by(session, &owner))
            }
            _ => Ok(()),
        }
    }
}

impl Store for StoreOfNode {
    fn create<'a>(&'a self, record: &'a SessionRecord) -> StoreFuture<'a, Lease> {
        Box::pin(async move {
            let lease = self.shared.store.create(record).await?;
            self.own(&record.id);
            Ok(lease)
        })
    }

    fn acquire<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, (SessionRecord, Lease)> {
        Box::pin(async move {
            let _acquiring = self.shared.acquiring.lock().await;
            self.check(session)?;
            let acquired = self.shared.store.acquire(session).await?;
            self.own(session);
            Ok(acquired)
        })
    }

    fn acquire_unused<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> StoreFuture<'a, (SessionRecord, Lease)> {
        self.acquire(session)
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            if self
                .shared
                .owner_of(&lease.session)
                .is_some_and(|(node, _)| node == self.node)
            {
                self.shared.owners.lock().unwrap().remove(&lease.session);
            }
            self.shared.store.release(lease).await
        })
    }

    fn commit<'a>(&'a self, lease: &'a Lease, commit: Commit) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let state = self.state();
            if state.is_dead {
                std::future::pending::<()>().await;
            }
            match state.is_valid {
                true => {
                    let committed = self.shared.store.commit(lease, commit).await;
                    self.shared.committed.notify_waiters();
                    committed
                }
                false => Err(StoreError::lost_lease(&lease.session)),
            }
        })
    }

    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>> {
        self.shared.store.find(session)
    }

    fn list<'a>(&'a self, query: &'a ListQuery) -> StoreFuture<'a, Vec<SessionRecord>> {
        self.shared.store.list(query)
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, EventPage> {
        self.shared.store.read(session, after, max_bytes)
    }

    fn fork<'a>(
        &'a self,
        source: &'a SessionId,
        up_to: Option<u64>,
        target: &'a SessionRecord,
    ) -> StoreFuture<'a, Lease> {
        Box::pin(async move {
            let lease = self.shared.store.fork(source, up_to, target).await?;
            self.own(&target.id);
            Ok(lease)
        })
    }

    fn prompts<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Vec<StoredPrompt>> {
        self.shared.store.prompts(session)
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            self.check(session)?;
            self.shared.store.delete(session).await
        })
    }

    fn node_statistics(&self) -> StoreFuture<'_, Option<NodeStatistics>> {
        Box::pin(async move {
            let nodes = self.shared.nodes.lock().unwrap();
            let mut seen = NodesSeen::default();
            seen.alive = nodes.iter().filter(|node| node.is_valid).count() as u64;
            seen.gone = nodes.len() as u64 - seen.alive;
            seen.sessions = 3;
            seen.oldest_heartbeat = Duration::from_millis(2_500);
            let mut statistics = NodeStatistics::default();
            statistics.renewal_age = Duration::from_millis(1_500);
            statistics.takeovers = 7;
            statistics.leases_lost = 2;
            statistics.nodes = Some(seen);
            Ok(Some(statistics))
        })
    }

    fn usage(&self) -> StoreFuture<'_, StoreUsage> {
        self.shared.store.usage()
    }

    fn owner<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionOwner>> {
        Box::pin(async move {
            let owner = self.shared.owner_of(session).map(|(node, state)| {
                SessionOwner::new(Some(state.address), node == self.node, Duration::ZERO)
            });
            let race = self.shared.race.lock().unwrap().clone();
            if let (None, Some(race)) = (&owner, race) {
                race.wait().await;
                self.shared.race.lock().unwrap().take();
            }
            Ok(owner)
        })
    }

    fn abandoned(&self, limit: usize) -> StoreFuture<'_, Option<Vec<SessionId>>> {
        Box::pin(async move {
            let mut abandoned = Vec::new();
            for session in self.shared.store.list(&ListQuery::default()).await? {
                let waits = !self.shared.store.prompts(&session.id).await?.is_empty();
                let is_unfinished = waits || session.running_turn.is_some();
                if is_unfinished && self.shared.owner_of(&session.id).is_none() {
                    abandoned.push(session.id);
                }
            }
            abandoned.truncate(limit);
            Ok(Some(abandoned))
        })
    }

    fn leases_lost(&self) -> StoreEvent<'_> {
        let lost = self.shared.nodes.lock().unwrap()[self.node].lost.clone();
        Box::pin(async move { lost.notified().await })
    }
}

/// The way of the other nodes to one, which can be cut or hang.
struct Wire {
    task: JoinHandle<()>,
    cut: CancellationToken,
    hang: CancellationToken,
}

impl Wire {
    fn new(listener: TcpListener, to: SocketAddr) -> Self {
        let cut = CancellationToken::new();
        let is_cut = cut.clone();
        let hang = CancellationToken::new();
        let hangs = hang.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    () = is_cut.cancelled() => break,
                    accepted = listener.accept() => {
                        let (mut near, _) = accepted.unwrap();
                        let hangs = hangs.clone();
                        connections.spawn(async move {
                            let mut far = TcpStream::connect(to).await.unwrap();
                            tokio::select! {
                                biased;
                                () = hangs.cancelled() => std::future::pending().await,
                                // Either side may be gone.
                                _ = copy_bidirectional(&mut near, &mut far) => {}
                            }
                        });
                    }
                }
            }
            connections.shutdown().await;
        });
        Self { task, cut, hang }
    }

    /// Cuts it: nothing passes any more when this completes.
    async fn cut(&mut self) {
        self.cut.cancel();
        (&mut self.task).await.unwrap();
    }
}

/// Returns an agent at a URL, with the token of all clients.
pub(crate) fn agent(url: &str) -> RemoteAgent {
    let agent = RemoteAgent::new(url).unwrap();
    agent.token(ClientToken::new(MASTER).unwrap())
}

/// Connects a client that approves everything.
pub(crate) async fn client(agent: RemoteAgent) -> Client {
    let builder = Client::builder().permissions(Policy::ApproveAll);
    builder.connect_remote(agent).await.unwrap()
}

/// Sends a prompt; returns what its turn has said.
pub(crate) async fn say(session: &Session, text: &str) -> String {
    let turn = session.prompt(text).await.unwrap();
    turn.outcome().await.unwrap().text
}

/// A node that serves clients.
pub(crate) struct Node {
    shared: Arc<SharedStore>,
    number: usize,
    address: String,
    wire: Wire,
    serving: JoinHandle<()>,
    stop: CancellationToken,
}

impl Node {
    /// Starts a node that opens no session by itself.
    pub(crate) async fn start(shared: &Arc<SharedStore>) -> Self {
        Self::with(shared, SECRET, |_| {}).await
    }

    /// Starts a node with limits.
    pub(crate) async fn start_with(shared: &Arc<SharedStore>, limits: Limits) -> Self {
        Self::with_all(Reference, shared, SECRET, limits, |_| {}).await
    }

    /// Starts a node with an agent.
    pub(crate) async fn of(agent: impl Handler, shared: &Arc<SharedStore>) -> Self {
        Self::with_all(agent, shared, SECRET, Limits::default(), |_| {}).await
    }

    /// Starts a node with a secret, and settings of its own, that opens no session by itself.
    pub(crate) async fn with(
        shared: &Arc<SharedStore>,
        secret: &str,
        edit: impl FnOnce(&mut EndpointSettings),
    ) -> Self {
        let mut limits = Limits::default();
        limits.adoption.per_second = 0;
        Self::with_all(Reference, shared, secret, limits, edit).await
    }

    async fn with_all(
        agent: impl Handler,
        shared: &Arc<SharedStore>,
        secret: &str,
        limits: Limits,
        edit: impl FnOnce(&mut EndpointSettings),
    ) -> Self {
        let clients = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nodes = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = clients.local_addr().unwrap().to_string();
        let node_address = format!("http://{}", wire.local_addr().unwrap());
        let number = {
            let mut all = shared.nodes.lock().unwrap();
            all.push(NodeState {
                address: node_address.clone(),
                is_valid: true,
                is_dead: false,
                lost: Arc::default(),
            });
            all.len() - 1
        };
        let wire = Wire::new(wire, nodes.local_addr().unwrap());
        let store = StoreOfNode {
            shared: shared.clone(),
            node: number,
        };
        let server = Server::builder(agent).store(store).limits(limits).build();
        let master: Token = MASTER.parse().unwrap();
        let secret: Token = secret.parse().unwrap();
        let access = AccessControl::new(Hosts::loopback(), Tokens::new(&master));
        let mut settings = ServeSettings::new(access);
        let metrics = settings.endpoints.metrics.clone();
        let cluster = Cluster::new(secret.clone(), Duration::from_secs(1), metrics).unwrap();
        edit(&mut settings.endpoints);
        settings.endpoints.nodes = Some(Arc::new(cluster));
        settings.nodes = Some(NodeEndpoint {
            address: node_address,
            listener: nodes,
            secret,
        });
        let stop = settings.stop.clone();
        let serving = tokio::spawn(serve(server, clients, settings));
        Self {
            shared: shared.clone(),
            number,
            address,
            wire,
            serving,
            stop,
        }
    }

    /// Where clients reach it: `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Connects a client over WebSocket that approves everything.
    pub(crate) async fn client(&self) -> Client {
        client(self.agent()).await
    }

    pub(crate) fn agent(&self) -> RemoteAgent {
        agent(&format!("ws://{}/acp", self.address))
    }

    /// Sends a request of REST with the token of all clients; returns status and body.
    pub(crate) async fn rest(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.rest_by(Some(MASTER), method, path, body).await
    }

    /// Sends a request of REST with a token, or without one.
    pub(crate) async fn rest_by(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        body: &str,
    ) -> (u16, String) {
        let request = self.request(method, path).body(body.to_owned());
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Sends a request to `/acp` for a connection.
    pub(crate) async fn acp(
        &self,
        method: &str,
        connection: &str,
        body: &str,
    ) -> reqwest::Response {
        let request = self.request(method, "/acp").body(body.to_owned());
        let request = match connection {
            "" => request,
            id => request.header("acp-connection-id", id),
        };
        request.bearer_auth(MASTER).send().await.unwrap()
    }

    /// Reads the events of a session by REST with a token.
    pub(crate) async fn events(&self, token: &str, session: &str) -> reqwest::Response {
        let request = self.request("GET", &format!("/session/{session}/events"));
        request.bearer_auth(token).send().await.unwrap()
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let client = acp_client::internal::http_client(|client| client).unwrap();
        let url = format!("http://{}{path}", self.address);
        let request = client.request(method.parse().unwrap(), url);
        request.header("content-type", "application/json")
    }

    /// Other nodes do not reach it any more; its leases stay.
    pub(crate) async fn cut(&mut self) {
        self.wire.cut().await;
    }

    /// It hangs: it has its connections, answers nothing, and its leases end.
    pub(crate) fn hang(&self) {
        self.wire.hang.cancel();
        self.shared.expire(self.number);
    }

    /// Dies: it answers nothing more, its connections are cut, and its leases end.
    pub(crate) async fn kill(&mut self) {
        self.wire.cut().await;
        self.shared.nodes.lock().unwrap()[self.number].is_dead = true;
        self.serving.abort();
        self.shared.expire(self.number);
    }

    /// Its leases could not be renewed.
    pub(crate) fn lose_leases(&self) {
        self.shared.expire(self.number);
        let lost = self.shared.nodes.lock().unwrap()[self.number].lost.clone();
        lost.notify_one();
    }

    /// Ends as by SIGTERM.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
    }
}
