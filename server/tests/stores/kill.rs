//! What `kill -9` leaves: a process writes under load, is killed at a random moment, and the store
//! is compared with what it had acknowledged.
//!
//! `ACP_KILL_ROUNDS` sets the number of rounds (default 20).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use acp_server::event::Batch;
use acp_server::store::{
    Commit, Durability, RecordChange, SessionRecord, SqliteOptions, SqliteStore, Store,
    StoreErrorKind,
};
use acp_store_tests::contract::audit;
use tempfile::TempDir;

const SESSIONS: [&str; 3] = ["0", "1", "2"];
/// After so many rounds a new store is begun, so that comparing stays quick.
const ROUNDS_PER_STORE: usize = 20;
const FOLDER: &str = "ACP_KILL_FOLDER";
const ROUND: &str = "ACP_KILL_ROUND";

/// Acknowledged events by session: number and identity.
type Acknowledged = BTreeMap<&'static str, Vec<(u64, String)>>;

fn random(below: u64) -> u64 {
    getrandom::u64().unwrap() % below
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_and_nothing_is_doubled() {
    let rounds = std::env::var("ACP_KILL_ROUNDS");
    let rounds = rounds.map_or(20, |rounds| rounds.parse().unwrap());
    let (mut events, mut empty) = (0, 0);
    let mut folder = TempDir::new().unwrap();
    let mut acknowledged = Acknowledged::new();
    for round in 0..rounds {
        if round % ROUNDS_PER_STORE == 0 {
            folder = TempDir::new().unwrap();
            acknowledged.clear();
        }
        let before = acknowledged.values().map(Vec::len).sum::<usize>();
        // From the start of the process to well into its work.
        let life = Duration::from_micros(random(80_000));
        write_and_kill(folder.path(), round, life, &mut acknowledged);
        let written = acknowledged.values().map(Vec::len).sum::<usize>() - before;
        events += written;
        empty += usize::from(written == 0);
        compare(folder.path(), &acknowledged).await;
    }
    eprintln!("{rounds} rounds, {empty} of them before the first commit; {events} events");
    assert!(
        events > rounds * 10,
        "only {events} events: nothing was under load"
    );
}

/// Starts the writer, kills it after `life`, and collects what it acknowledged.
fn write_and_kill(folder: &Path, round: usize, life: Duration, acknowledged: &mut Acknowledged) {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::writer", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(writer.stdout.take().unwrap());
    let (begun, begins) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let lines = stdout.split(b'\n').map_while(Result::ok);
        let told = lines.inspect(|line| {
            if line.starts_with(b"ack ") {
                let _ = begun.send(());
            }
        });
        told.collect::<Vec<_>>()
    });
    // Half of them while they open the store, half in the middle of their work.
    if round % 2 == 1 {
        begins.recv_timeout(Duration::from_secs(60)).unwrap();
    }
    // A moment in the life of another process, not an event.
    std::thread::sleep(life);
    writer.kill().unwrap();
    writer.wait().unwrap();
    for line in reader.join().unwrap() {
        let line = String::from_utf8(line).unwrap();
        // The last line may be cut; a whole one ends with a point.
        let Some(line) = line
            .strip_prefix("ack ")
            .and_then(|line| line.strip_suffix('.'))
        else {
            continue;
        };
        let fields: Vec<u64> = line
            .split(' ')
            .map(|field| field.parse().unwrap())
            .collect();
        let [session, first, last, counter] = fields[..] else {
            panic!("{line}");
        };
        let session = SESSIONS[usize::try_from(session).unwrap()];
        let list = acknowledged.entry(session).or_default();
        list.extend(
            (first..=last)
                .zip(counter..)
                .map(|(number, counter)| (number, format!("{round}.{counter}"))),
        );
    }
}

/// Opens the store and compares it with what was acknowledged.
async fn compare(folder: &Path, acknowledged: &Acknowledged) {
    let store = SqliteStore::open(folder.join("sessions.db"));
    let store = store.unwrap_or_else(|error| panic!("open: {error}"));
    let identity = |text: &str| {
        let text = text.strip_prefix("{\"id\":\"")?;
        Some(text.split_once('"')?.0.to_owned())
    };
    for (session, events) in acknowledged {
        let events = events.iter().map(|(number, id)| (*number, id.as_str()));
        let session = (*session).into();
        let audit = audit::session(&store, &session, identity, events).await;
        assert!(audit.is_clean(), "{:?}: {audit:#?}", folder);
        // The lease of the process that was killed is gone with it.
        let (record, lease) = store.acquire(&session).await.unwrap();
        assert_eq!(record.last_event, audit.last);
        // A commit's events and its change came together.
        let title = record.title.and_then(|title| title.parse().ok());
        assert_eq!(title, Some(record.last_event), "title of {session}");
        store.release(&lease).await.unwrap();
    }
}

/// The process that is killed. Not a test.
#[ignore = "started by the test in this module"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writer() {
    let (Ok(folder), Ok(round)) = (std::env::var(FOLDER), std::env::var(ROUND)) else {
        return;
    };
    let every = round.parse::<usize>().unwrap() / 2 % 2 == 1;
    let durability = if every {
        Durability::EveryCommit
    } else {
        Durability::TurnEnd
    };
    let options = SqliteOptions::new().durability(durability);
    let store = options
        .open(Path::new(&folder).join("sessions.db"))
        .unwrap();
    let store = Arc::new(store);
    let mut tasks = tokio::task::JoinSet::new();
    for (at, session) in SESSIONS.into_iter().enumerate() {
        tasks.spawn(write(store.clone(), at, session, round.clone()));
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
}

/// Appends until the process is killed, or until nobody reads its output.
async fn write(store: Arc<SqliteStore>, at: usize, session: &str, round: String) {
    let (mut last, lease) = match store.acquire(&session.into()).await {
        Ok((record, lease)) => (record.last_event, lease),
        Err(error) if error.kind() == StoreErrorKind::NotFound => {
            let mut record = SessionRecord::new(session, "/");
            record.title = Some("0".to_owned());
            (0, store.create(&record).await.unwrap())
        }
        Err(error) => panic!("{error}"),
    };
    let (start, mut counter) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(20) {
        let count = [1, 1, 5, 60][usize::try_from(random(4)).unwrap()];
        let padding = "x".repeat(usize::try_from(random(300)).unwrap());
        let lines = (counter..counter + count)
            .map(|counter| format!("{{\"id\":\"{round}.{counter}\",\"x\":\"{padding}\"}}\n"));
        let first = last + 1;
        last += count;
        let mut commit = Commit::default();
        commit.events = Batch::from_lines(first, lines.collect()).map(Arc::new);
        commit.change = RecordChange::default();
        commit.change.title = Some(Some(last.to_string()));
        commit.sync = random(20) == 0;
        store.commit(&lease, commit).await.unwrap();
        let told = format!("ack {at} {first} {last} {counter}.\n");
        // One call, so that lines of the tasks do not mix.
        if std::io::stdout().write_all(told.as_bytes()).is_err() {
            return;
        }
        counter += count;
        // Other work that must not be half done.
        if random(30) == 0 {
            let fork = SessionRecord::new(format!("fork of {session}"), "/");
            let _ = store.delete(&fork.id).await;
            store
                .fork(&lease.session, Some(random(last)), &fork)
                .await
                .unwrap();
        }
    }
}
