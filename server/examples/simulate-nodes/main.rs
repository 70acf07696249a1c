//! Simulates many nodes over one database: real servers, in paused time, whose store counts and delays what they
//! ask a model of a database.
//!
//! `simulate-nodes [NODES] [SESSIONS] [QUERIES]` (default 1000, 100000, 5000): the nodes, the sessions of all of
//! them, of which a tenth is in a turn, and the queries that the database answers each second. The default takes
//! a quarter of an hour. It prints a line for each case: when the sessions of the nodes that had them were open again, and
//! what the database had to do until five minutes after the fault. Clients ask any other node for their sessions, again
//! and again as `acp-client` does.

#![allow(clippy::print_stdout, reason = "the result")]

mod database;
mod node;

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::HandlerResult;
use acp_sdk::v1::{SessionId, StopReason};
use acp_server::store::{SessionRecord, Store};
use acp_server::{Handler, Server, Turn};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use database::{Database, lock};
use node::StoreOfNode;

/// The time of a case from its fault on.
const WATCHED: Duration = Duration::from_secs(300);

/// A turn that does not end by itself.
struct Busy;

impl Handler for Busy {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.cancelled().await;
        Ok(StopReason::Cancelled)
    }
}

#[derive(Clone, Copy)]
enum Fault {
    Nothing,
    /// These many nodes die at once.
    Kill(usize),
    /// The database answers nothing for these many seconds.
    Away(u64),
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
/// Returns when; `None` if it noticed nothing.
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
            return Some(began.elapsed());
        }
        wait = (wait * 2).min(Duration::from_secs(15));
    }
}

async fn run(
    (count, sessions, per_second): (usize, usize, u32),
    name: &str,
    fault: Fault,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut nodes = Nodes::start(count, sessions).await?;
    let database = nodes.database.clone();
    let began = std::time::Instant::now();
    // The servers look for sessions of ended nodes, and renew.
    sleep(Duration::from_secs(20)).await;
    database.count(per_second);
    let fault_at = Instant::now();
    let (mut gone, mut waiting) = (0, Vec::new());
    match fault {
        Fault::Nothing => {}
        Fault::Kill(killed) => {
            gone = killed;
            (0..killed).for_each(|node| database.kill(node));
            waiting = nodes.sessions.drain(..killed).flatten().collect();
        }
        Fault::Away(seconds) => {
            database.stop(Duration::from_secs(seconds));
            waiting = nodes.sessions.drain(..).flatten().collect();
        }
    }
    let dead: Vec<_> = nodes.servers.drain(..gone).collect();
    let servers = Arc::new(nodes.servers);
    let mut clients = JoinSet::new();
    for session in waiting {
        clients.spawn(client(database.clone(), servers.clone(), session));
    }
    let mut times: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    sleep_until(fault_at + WATCHED).await;
    times.sort_unstable();
    let at = |part: f64| match times.len() {
        0 => "-".to_owned(),
        len => format!(
            "{:.1}",
            times[((len - 1) as f64 * part) as usize].as_secs_f64()
        ),
    };
    let abandoned = lock(&database.begun).clone();
    let left = abandoned
        .iter()
        .filter(|session| database.owner(session).is_none())
        .count();
    let load = lock(&database.load);
    let seconds = load.queries.len().max(1);
    let sum: u32 = load.queries.iter().sum();
    println!(
        "| {name} | {} | {} | {} | {} | {} | {} | {:.2} | {} | {} | {left} |",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0),
        sum as usize / seconds,
        load.queries.iter().max().unwrap_or(&0),
        load.longest_wait.as_secs_f64(),
        load.fenced,
        load.late,
    );
    let bars = load.queries.chunks(5).map(|of| {
        let mean = of.iter().sum::<u32>() / of.len() as u32;
        ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(mean * 7 / per_second).min(7) as usize]
    });
    let bars: String = bars.collect();
    eprintln!(
        "{name}: {bars} (queries, 5 s each; computed in {:.0?})",
        began.elapsed()
    );
    drop(dead);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u32>());
    let mut number = |or| numbers.next().unwrap_or(Ok(or));
    let (count, sessions) = (number(1000)? as usize, number(100_000)? as usize);
    let sizes = (count, sessions, number(5000)?);
    println!(
        "| fault | sessions asked for | open after s: median | p99 | last | queries/s | most in a second | longest wait s | nodes that lost their leases | late attempts | left |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, fault) in [
        ("none", Fault::Nothing),
        ("one node dies", Fault::Kill(1)),
        ("one of ten dies", Fault::Kill(count / 10)),
        ("the database stops for 8 s", Fault::Away(8)),
        ("the database stops for 25 s", Fault::Away(25)),
    ] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        runtime.block_on(run(sizes, name, fault))?;
    }
    Ok(())
}
