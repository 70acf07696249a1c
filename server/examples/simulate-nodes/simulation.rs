//! One case: nodes with sessions, a fault, and the clients of the sessions that it reaches.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::HandlerResult;
use acp_sdk::v1::{SessionId, StopReason};
use acp_server::store::{SessionRecord, Store};
use acp_server::{Handler, Server, Turn};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::database::{Database, Load, lock};
use super::node::StoreOfNode;

/// The time of a case from its fault on.
const WATCHED: Duration = Duration::from_secs(300);

/// What a simulation is of.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) nodes: usize,
    /// The sessions of all nodes, of which a tenth is in a turn.
    pub(crate) sessions: usize,
    /// Queries that the database answers each second.
    pub(crate) queries: u32,
}

#[derive(Clone, Copy)]
pub(crate) enum Fault {
    Nothing,
    /// These many nodes die at once.
    Kill(usize),
    /// These many nodes end as by SIGTERM, one each second.
    End(usize),
    /// The database answers nothing for these many seconds.
    Away(u64),
}

/// What happened from the fault on.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How long each session that was served no more was not open, in order.
    pub(crate) open_after: Vec<Duration>,
    /// Sessions in whose turn their node ended, and that nobody has.
    pub(crate) left: usize,
    /// Queries by second.
    pub(crate) queries: Vec<u32>,
    /// The longest time that a query waited.
    pub(crate) longest_wait: Duration,
    /// Nodes whose leases ended because they could not renew them in time.
    pub(crate) fenced: u32,
    /// Attempts to open a session that another node was faster with.
    pub(crate) late: u32,
}

/// A turn that does not end by itself.
struct Busy;

impl Handler for Busy {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.cancelled().await;
        Ok(StopReason::Cancelled)
    }
}

struct Nodes {
    database: Arc<Database>,
    servers: Vec<Server>,
    /// The sessions of each node.
    sessions: Vec<Vec<SessionId>>,
    tasks: JoinSet<()>,
}

impl Nodes {
    async fn start(count: usize, sessions: usize) -> Result<Self, Box<dyn std::error::Error>> {
        let mut nodes = Self {
            database: Arc::new(Database::new(count)),
            servers: Vec::new(),
            sessions: Vec::new(),
            tasks: JoinSet::new(),
        };
        for node in 0..count {
            let database = nodes.database.clone();
            let store = StoreOfNode {
                database: database.clone(),
                node,
            };
            let server = Server::builder(Busy).store(store).build();
            let mut own = Vec::new();
            for number in 0..sessions / count {
                if number % 10 == 0 {
                    let session = server.create_session("/").await?;
                    session.prompt(vec!["work".into()])?;
                    own.push(session.id().clone());
                } else {
                    let record = SessionRecord::new(format!("{node}-{number}"), "/");
                    database.store.create(&record).await?;
                    database.own(&record.id, node);
                    own.push(record.id);
                }
            }
            lock(&database.begun).extend(own.iter().step_by(10).cloned());
            // They were not all started at once.
            let first = Duration::from_millis(database.random(10_000) as u64);
            nodes
                .tasks
                .spawn(async move { database.renew(node, first).await });
            nodes.servers.push(server);
            nodes.sessions.push(own);
        }
        Ok(nodes)
    }
}

/// A client that notices when its session is served no more, and asks one node after the other for it, until one has it.
/// Returns how long that took; `None` if it noticed nothing.
async fn client(
    database: Arc<Database>,
    servers: Arc<Vec<Server>>,
    session: SessionId,
) -> Option<Duration> {
    let began = Instant::now();
    while database.is_served(&session) {
        if began.elapsed() > WATCHED / 2 {
            return None;
        }
        sleep(Duration::from_secs(1)).await;
    }
    let noticed = Instant::now();
    let mut wait = Duration::from_millis(250);
    loop {
        sleep(wait.mul_f64(0.75 + database.random(256) as f64 / 1024.0)).await;
        let server = &servers[database.random(servers.len())];
        // The node asks who has the session, and passes the request on if another one has it.
        let is_open = match server.store().owner(&session).await {
            Ok(Some(_)) => database.is_served(&session),
            _ => server.session(&session).await.is_ok() || database.is_served(&session),
        };
        if is_open {
            return Some(noticed.elapsed());
        }
        wait = (wait * 2).min(Duration::from_secs(15));
    }
}

/// Simulates a case, in paused time.
///
/// # Errors
///
/// The error of a server that takes no sessions.
pub(crate) async fn simulate(
    sizes: Sizes,
    fault: Fault,
) -> Result<Outcome, Box<dyn std::error::Error>> {
    let mut nodes = Nodes::start(sizes.nodes, sizes.sessions).await?;
    let database = nodes.database.clone();
    // The servers look for sessions of ended nodes, and renew.
    sleep(Duration::from_secs(20)).await;
    database.count(sizes.queries);
    let fault_at = Instant::now();
    // The first nodes are those that the fault ends.
    let (ended, reached) = match fault {
        Fault::Nothing => (0, 0),
        Fault::Kill(count) | Fault::End(count) => (count, count),
        Fault::Away(_) => (0, sizes.nodes),
    };
    let ended: Vec<_> = nodes.servers.drain(..ended).collect();
    let reached: Vec<_> = nodes.sessions.drain(..reached).flatten().collect();
    let servers = Arc::new(nodes.servers);
    let mut clients = JoinSet::new();
    for session in reached {
        clients.spawn(client(database.clone(), servers.clone(), session));
    }
    match fault {
        Fault::Nothing => {}
        Fault::Kill(count) => (0..count).for_each(|node| database.kill(node)),
        Fault::End(_) => {
            for (node, server) in ended.iter().enumerate() {
                server.shutdown().await;
                database.end(node).await;
                sleep(Duration::from_secs(1)).await;
            }
        }
        Fault::Away(seconds) => database.stop(Duration::from_secs(seconds)),
    }
    let mut open_after: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    open_after.sort_unstable();
    sleep_until(fault_at + WATCHED).await;
    let begun = lock(&database.begun).clone();
    let left = begun.iter().filter(|of| database.owner(of).is_none());
    let left = left.count();
    drop(ended);
    let load = std::mem::replace(&mut *lock(&database.load), Load::new());
    Ok(Outcome {
        open_after,
        left,
        queries: load.queries,
        longest_wait: load.longest_wait,
        fenced: load.fenced,
        late: load.late,
    })
}
