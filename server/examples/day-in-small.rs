//! Many turns over many sessions with retention, and what they cost: a line of figures now and then.
//!
//! `day-in-small [TURNS [SESSIONS [KEEP_SESSIONS]]]` (default 200,000, 2,000 and 500). Each session has
//! its turns at once, then is closed; eight run at the same time. The store is a file in a temporary
//! folder, and retention inspects it every second.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use acp_sdk::v1::{ContentBlock, StopReason, TextContent};
use acp_server::store::SqliteStore;
use acp_server::{Handler, HandlerError, HandlerResult, Limits, Server, Turn};

type Failure = Box<dyn Error + Send + Sync>;

/// Sessions that are used at the same time.
const AT_ONCE: u64 = 8;

/// Answers with ten pieces of text.
struct Words;

impl Handler for Words {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        for _ in 0..10 {
            turn.send_text("The quick brown fox jumps over the lazy dog. ")
                .await?;
        }
        Ok(StopReason::EndTurn)
    }
}

/// Resident memory of this process in bytes; 0 where the system does not say.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

fn text(error: HandlerError) -> String {
    error.to_string()
}

async fn report(server: &Server, turns: u64, begun: Instant) -> Result<(), Failure> {
    let usage = server.store().usage().await?;
    let mib = |bytes: u64| bytes / (1 << 20);
    writeln!(
        std::io::stdout(),
        "{:>5} s  {turns:>7} turns  {:>5} sessions  {:>8} events  used {:>4} MiB  files {:>4} MiB  \
         resident {:>4} MiB  deleted {:>5}  failed {}",
        begun.elapsed().as_secs(),
        usage.sessions,
        usage.events,
        mib(usage.used_bytes),
        mib(usage.disk_bytes),
        mib(resident()),
        server.statistics().retention_deleted,
        server.statistics().retention_failed,
    )?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|argument| argument.parse::<u64>());
    let mut next = |default: u64| numbers.next().unwrap_or(Ok(default));
    let (turns, sessions, kept) = (next(200_000)?, next(2_000)?, next(500)?);
    let folder = tempfile::tempdir()?;
    let mut limits = Limits::default();
    limits.idle_timeout = Duration::from_secs(2);
    limits.retention.keep_sessions = Some(kept);
    limits.retention.interval = Duration::from_secs(1);
    let store = SqliteStore::open(folder.path().join("sessions.db"))?;
    let server = Server::builder(Words).store(store).limits(limits).build();

    let (begun, done) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let each = turns / sessions.max(1);
    let mut tasks = tokio::task::JoinSet::new();
    let remaining = Arc::new(AtomicU64::new(sessions));
    for _ in 0..AT_ONCE {
        let (server, done, remaining) = (server.clone(), done.clone(), remaining.clone());
        tasks.spawn(async move {
            let take = |left: u64| left.checked_sub(1);
            while remaining
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_ok()
            {
                let session = server.create_session("/work").await.map_err(text)?;
                for _ in 0..each {
                    let prompt = ContentBlock::Text(TextContent::new("What does the fox do?"));
                    let turn = session.prompt(vec![prompt])?;
                    turn.stop_reason().await.map_err(text)?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok::<_, Failure>(())
        });
    }
    let mut every = tokio::time::interval(Duration::from_secs(10));
    loop {
        tokio::select! {
            _ = every.tick() => report(&server, done.load(Ordering::Relaxed), begun).await?,
            ended = tasks.join_next() => match ended {
                Some(ended) => ended??,
                None => break,
            }
        }
    }
    // The last sessions become idle, and what they leave behind is removed.
    tokio::time::sleep(Duration::from_secs(8)).await;
    report(&server, done.load(Ordering::Relaxed), begun).await?;
    server.shutdown().await;
    Ok(())
}
