//! A disk that is full: a file system of 4 MiB in a mount namespace of its own.
//!
//! Where the system permits no such namespace, the test says so and ends.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use acp_server::event::Batch;
use acp_server::store::{
    Commit, Lease, SessionRecord, SqliteStore, Store, StoreError, StoreErrorKind,
};
use acp_store_tests::contract::audit;
use tempfile::TempDir;

const FOLDER: &str = "ACP_FULL_DISK_FOLDER";

/// Mounts a small file system at `$ACP_FULL_DISK_FOLDER`, and runs the arguments.
const MOUNTED: &str =
    r#"mount -t tmpfs -o size=4m,nr_inodes=40 tmpfs "$ACP_FULL_DISK_FOLDER" || exit 77; exec "$@""#;

#[test]
fn a_full_disk_is_reported_and_nothing_is_lost() {
    let folder = TempDir::new().unwrap();
    let unshared = |command: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare
            .args(["-rm", "sh", "-c", MOUNTED, "sh"])
            .args(command);
        unshare.env(FOLDER, folder.path());
        unshare
    };
    let possible = unshared(&["true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        eprintln!("not tested: no mount namespace can be created here");
        return;
    }
    let test = std::env::current_exe().unwrap();
    let test = test.to_str().unwrap();
    let arguments = ["--exact", "full_disk::inside", "--ignored", "--nocapture"];
    let mut command = vec![test];
    command.extend(arguments);
    let output = unshared(&command).output().unwrap();
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}{}", text[0], text[1]);
    assert!(text[0].contains("1 passed"), "{}", text[0]);
}

/// Takes the space that is left with a file of this name, but not that of `left` bytes.
fn fill(folder: &Path, name: &str, left: usize) -> PathBuf {
    let path = folder.join(name);
    let mut file = File::create(&path).unwrap();
    while file.write_all(&[7; 4_096]).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(left as u64)).unwrap();
    path
}

/// Creates as many files as the file system permits.
fn use_up_files(folder: &Path) -> Vec<PathBuf> {
    let paths = (0..).map(|number| folder.join(format!("file {number}")));
    paths
        .take_while(|path| File::create(path).is_ok())
        .collect()
}

fn events(first: u64, bytes: usize) -> Commit {
    let mut batch = Batch::new(first);
    batch.push(&format!("\"{first} {}\"", "x".repeat(bytes)));
    let mut commit = Commit::default();
    commit.events = Some(Arc::new(batch));
    commit.sync = first.is_multiple_of(5);
    commit
}

/// Commits until the store refuses.
async fn commit_until_full(store: &SqliteStore, lease: &Lease, last: &mut u64) -> StoreError {
    loop {
        let bytes = usize::try_from(*last * 977 % 20_000).unwrap();
        match store.commit(lease, events(*last + 1, bytes)).await {
            Ok(()) => *last += 1,
            Err(error) => return error,
        }
    }
}

#[track_caller]
fn expect_full(error: &StoreError, path: &Path) {
    assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
    let text = error.to_string();
    assert!(text.contains("Free space"), "{text}");
    assert!(text.contains(path.to_str().unwrap()), "{text}");
}

/// Every event that was acknowledged is there, and no other.
async fn expect_events(store: &SqliteStore, last: u64) {
    let identity = |text: &str| text.split(['"', ' ']).nth(1).map(str::to_owned);
    let acknowledged: Vec<_> = (1..=last)
        .map(|number| (number, number.to_string()))
        .collect();
    let acknowledged = acknowledged
        .iter()
        .map(|(number, text)| (*number, text.as_str()));
    let audit = audit::session(store, &"s".into(), identity, acknowledged).await;
    assert!(audit.is_clean(), "{audit:?}");
    assert_eq!(audit.last, last);
}

#[tokio::test]
#[ignore = "started by the test in this module, in a small file system"]
async fn inside() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        panic!("{FOLDER} is not set");
    };
    let folder = folder.canonicalize().unwrap();
    // Without space for the folder or the lock file, nothing can be opened.
    let path = folder.join("a/sessions.db");
    for left in [0, 4_096, 8_192, 16_384, 32_768] {
        let filler = fill(&folder, "filler", left);
        if let Err(error) = SqliteStore::open(&path) {
            expect_full(&error, &path);
        }
        fs::remove_file(filler).unwrap();
    }
    let mut store = SqliteStore::open(&path).unwrap();
    let mut lease = store.create(&SessionRecord::new("s", "/")).await.unwrap();
    let mut last = 0;
    for round in 0..30 {
        // Full at another place each time.
        let filler = fill(&folder, "filler", round * 7_919 % 200_000);
        let error = commit_until_full(&store, &lease, &mut last).await;
        expect_full(&error, &path);
        expect_events(&store, last).await;
        let large = SessionRecord::new(format!("{round}"), "x".repeat(900_000));
        expect_full(&store.create(&large).await.unwrap_err(), &path);
        if round % 3 == 0 {
            // The store is closed and opened while the disk is full. It needs its log, shared memory
            // and the lock file of its owner.
            drop(store);
            let more = fill(&folder, "more", round / 3 * 1_024);
            // With what is left of the log and the shared memory, it can be opened.
            match SqliteStore::open(&path) {
                Err(error) => expect_full(&error, &path),
                Ok(store) => expect_events(&store, last).await,
            }
            fs::remove_file(&more).unwrap();
            fs::remove_file(&filler).unwrap();
            let files = use_up_files(&folder);
            expect_full(&SqliteStore::open(&path).unwrap_err(), &path);
            for file in files {
                fs::remove_file(file).unwrap();
            }
            // Closing with enough space leaves neither, so both must be created again.
            drop(SqliteStore::open(&path).unwrap());
            let filler = fill(&folder, "filler", 0);
            expect_full(&SqliteStore::open(&path).unwrap_err(), &path);
            fs::remove_file(&filler).unwrap();
            store = SqliteStore::open(&path).unwrap();
            expect_events(&store, last).await;
            lease = store.acquire(&"s".into()).await.unwrap().1;
        } else {
            fs::remove_file(&filler).unwrap();
        }
        // There is room again.
        store.commit(&lease, events(last + 1, 10)).await.unwrap();
        last += 1;
        if store.usage().await.unwrap().disk_bytes > 2 << 20 {
            let mut trim = Commit::default();
            trim.trim_before = Some(last);
            store.commit(&lease, trim).await.unwrap();
            store.delete(&lease.session).await.unwrap();
            drop(store);
            store = SqliteStore::open(&path).unwrap();
            lease = store.create(&SessionRecord::new("s", "/")).await.unwrap();
            last = 0;
        }
    }
}
