//! Measures the stores: `cargo run --release -p acp-server --example bench-store`.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_server::event::Batch;
use acp_server::store::{
    Commit, Durability, ListQuery, MemoryStore, SessionRecord, SqliteOptions, Store,
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A text chunk of a stream has about this size.
const EVENT: &str = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a dozen words of an answer, more or less, as a model streams them"},"messageId":"m-1234567"}"#;
const BATCH: u64 = 400;
const REPLAYED: u64 = 1_000_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let open = |name: &str, durability| {
        let options = SqliteOptions::new().durability(durability);
        let store = options.open(folder.path().join(name).join("sessions.db"));
        store.map(|store| Arc::new(store) as Arc<dyn Store>)
    };
    measure("memory", &(Arc::new(MemoryStore::new()) as _)).await?;
    measure("SQLite", &open("turn", Durability::TurnEnd)?).await?;
    let every = open("every", Durability::EveryCommit)?;
    commits("SQLite, every commit synced", &every, 1, 2_000).await?;
    commits("SQLite, every commit synced", &every, 64, 200).await
}

async fn measure(name: &str, store: &Arc<dyn Store>) -> Result<()> {
    commits(name, store, 1, 20_000).await?;
    commits(name, store, 64, 1_000).await?;
    let start = Instant::now();
    let long = SessionRecord::new("long", "/");
    append(store, &long, REPLAYED, BATCH).await?;
    say(
        name,
        "events appended in batches of 400",
        REPLAYED,
        start.elapsed(),
    )?;
    replay(
        name,
        "events replayed, stored in batches of 400",
        store,
        &long,
    )
    .await?;
    let single = SessionRecord::new("single", "/");
    append(store, &single, REPLAYED / 10, 1).await?;
    replay(name, "events replayed, stored one by one", store, &single).await?;

    let start = Instant::now();
    for number in 0..20_000 {
        let record = SessionRecord::new(format!("n{number}"), "/");
        store.create(&record).await?;
    }
    say(name, "sessions created", 20_000, start.elapsed())?;
    let (mut query, mut listed, start) = (ListQuery::default(), 0, Instant::now());
    query.limit = 100;
    loop {
        let page = store.list(&query).await?;
        let Some(last) = page.last() else { break };
        listed += page.len() as u64;
        query.after = Some((last.updated_at.clone(), last.id.clone()));
    }
    say(name, "sessions listed, 100 a page", listed, start.elapsed())
}

/// Commits single events to `sessions` sessions at once.
async fn commits(name: &str, store: &Arc<dyn Store>, sessions: u64, each: u64) -> Result<()> {
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..sessions {
        let store = store.clone();
        let record = SessionRecord::new(format!("{sessions}/{number}"), "/");
        tasks.spawn(async move { append(&store, &record, each, 1).await });
    }
    while let Some(result) = tasks.join_next().await {
        result??;
    }
    let what = format!("commits of one event, {sessions} at once");
    say(name, &what, sessions * each, start.elapsed())
}

async fn append(
    store: &Arc<dyn Store>,
    record: &SessionRecord,
    count: u64,
    batch: u64,
) -> Result<()> {
    let lease = store.create(record).await?;
    let lines = format!("{EVENT}\n").repeat(usize::try_from(batch)?);
    for first in (1..=count).step_by(usize::try_from(batch)?) {
        let mut commit = Commit::default();
        commit.events = Batch::from_lines(first, lines.clone()).map(Arc::new);
        commit.sync = batch > 1 && first % (100 * batch) == 1;
        store.commit(&lease, commit).await?;
    }
    Ok(())
}

async fn replay(
    name: &str,
    what: &str,
    store: &Arc<dyn Store>,
    record: &SessionRecord,
) -> Result<()> {
    let start = Instant::now();
    let (mut after, mut bytes, mut first) = (0, 0, None);
    loop {
        let page = store.read(&record.id, after, 256 << 10).await?;
        for (_, text) in page.batches.iter().flat_map(|batch| batch.after(after)) {
            first.get_or_insert_with(|| start.elapsed());
            bytes += text.len();
        }
        match page.batches.last() {
            Some(batch) => after = batch.last(),
            None => break,
        }
    }
    say(name, what, after, start.elapsed())?;
    let first = first.unwrap_or_default();
    writeln!(
        std::io::stdout(),
        "{name}: first event after {first:.1?}; {bytes} bytes"
    )?;
    Ok(())
}

fn say(name: &str, what: &str, count: u64, time: Duration) -> Result<()> {
    let rate = count as f64 / time.as_secs_f64();
    let each = time.as_secs_f64() * 1e6 / count as f64;
    writeln!(
        std::io::stdout(),
        "{name}: {what}: {rate:.0} a second, {each:.2} µs each"
    )?;
    Ok(())
}
