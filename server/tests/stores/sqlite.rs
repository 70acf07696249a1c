//! The contract and the files of the store on disk.

use std::sync::atomic::{AtomicUsize, Ordering};

use acp_server::store::SqliteStore;
use acp_store_tests::contract;
use tempfile::TempDir;

async fn check_contract() {
    let (folder, number) = (TempDir::new().unwrap(), AtomicUsize::new(0));
    let open = async || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        SqliteStore::open(folder.path().join(format!("{number}/sessions.db"))).unwrap()
    };
    contract::check(open).await;
}

#[tokio::test]
async fn the_contract_holds() {
    check_contract().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_on_several_threads() {
    check_contract().await;
}

#[tokio::test]
async fn it_outlives_the_process() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    contract::check_reopened(async || SqliteStore::open(&path).unwrap()).await;
}

#[tokio::test]
async fn two_instances_share_a_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    let (first, second) = (SqliteStore::open(&path), SqliteStore::open(&path));
    contract::check_instances(first.unwrap(), second.unwrap()).await;
}
