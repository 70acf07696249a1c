//! Tests of the rules of [`Store`], for any implementation.
//!
//! Each rule is a function that panics when the store breaks it. They need a tokio runtime, of
//! either flavor.

pub mod audit;
mod drops;
mod events;
mod forks;
mod instances;
mod leases;
mod listing;
mod prompts;
mod records;
mod trimming;

pub use instances::{check_instances, check_reopened};

use std::sync::Arc;

use acp_sdk::v1::SessionId;

use acp_server::event::Batch;
use acp_server::store::{
    Commit, EventPage, Lease, ListQuery, RecordChange, SessionRecord, Store, StoreError,
    StoreErrorKind,
};

type Shared = Arc<dyn Store>;

/// Tests all rules that concern one instance of a store.
///
/// `open` returns an empty store for each of them.
///
/// # Panics
///
/// Panics if the store breaks a rule.
pub async fn check<S: Store>(open: impl AsyncFn() -> S) {
    macro_rules! rules {
        ($($module:ident::$rule:ident,)*) => {
            $({
                let store: Shared = Arc::new(open().await);
                $module::$rule(store).await;
            })*
        };
    }
    rules! {
        records::sessions_are_found_as_created,
        records::ids_and_names_are_unique,
        records::changes_are_kept,
        records::a_deleted_session_is_gone,
        records::what_is_derived_is_the_latest_or_nothing,
        leases::each_lease_has_a_higher_token,
        leases::only_the_latest_lease_writes,
        leases::a_released_lease_does_not_write,
        leases::a_deleted_session_has_no_lease,
        leases::an_unused_session_is_one_without_a_lease,
        records::usage_counts_what_is_kept,
        events::batches_come_back,
        forks::events_keep_their_times,
        events::events_follow_each_other,
        events::a_refused_commit_changes_nothing,
        events::a_commit_is_repeated_without_harm,
        events::pages_have_about_the_size_asked_for,
        events::large_events_are_read_one_by_one,
        events::sessions_commit_at_the_same_time,
        trimming::removed_events_are_gone,
        trimming::all_events_can_be_removed,
        trimming::events_are_removed_with_their_commit_or_not,
        trimming::a_fork_lacks_the_events_that_its_source_lacks,
        listing::sessions_are_listed_by_activity,
        listing::lists_are_filtered,
        listing::the_opposite_order_has_the_same_sessions,
        listing::pages_neither_miss_nor_repeat_a_session,
        forks::a_fork_has_the_events_up_to_its_number,
        forks::source_and_fork_are_independent,
        forks::a_fork_is_refused_as_a_creation,
        prompts::prompts_wait_until_they_are_removed,
        prompts::changes_of_prompts_are_repeated_without_harm,
        prompts::a_refused_commit_changes_no_prompt,
        prompts::neither_forks_nor_later_sessions_have_the_prompts,
        drops::a_dropped_commit_is_whole_or_nothing,
        drops::a_dropped_creation_is_whole_or_nothing,
        drops::a_dropped_fork_is_whole_or_nothing,
        drops::a_dropped_deletion_is_whole_or_nothing,
    }
}

/// A session in a test.
struct Session {
    store: Shared,
    id: SessionId,
    lease: Lease,
}

impl Session {
    async fn create(store: &Shared, id: &str) -> Self {
        Self::create_as(store, &SessionRecord::new(id, "/work")).await
    }

    async fn create_as(store: &Shared, record: &SessionRecord) -> Self {
        let lease = store.create(record).await;
        let lease = lease.unwrap_or_else(|error| panic!("create {}: {error}", record.id));
        assert_eq!(lease.session, record.id, "session of the lease");
        Self {
            store: store.clone(),
            id: record.id.clone(),
            lease,
        }
    }

    /// Commits `count` events from the number `first` on.
    async fn append(&self, first: u64, count: u64) -> Result<(), StoreError> {
        self.commit(events(first, count)).await
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        // As a server does.
        match self.store.commit_now(&self.lease, &commit) {
            Some(result) => result,
            None => self.store.commit(&self.lease, commit).await,
        }
    }

    async fn change(&self, change: RecordChange) -> Result<(), StoreError> {
        let commit = with(Commit::default(), |commit| commit.change = change);
        self.commit(commit).await
    }

    async fn record(&self) -> SessionRecord {
        let found = self.store.find(&self.id).await;
        let found = found.unwrap_or_else(|error| panic!("find {}: {error}", self.id));
        found.unwrap_or_else(|| panic!("find {}: got none", self.id))
    }

    /// Reads all events, in pages of `max_bytes`.
    async fn all(&self, max_bytes: usize) -> Vec<String> {
        read_all(&*self.store, &self.id, max_bytes).await
    }

    /// Checks that the session has `count` events, each with the text for its number.
    async fn expect_events(&self, count: u64) {
        let expected: Vec<_> = (1..=count).map(text).collect();
        assert_eq!(self.all(1 << 20).await, expected, "events of {}", self.id);
        let record = self.record().await;
        assert_eq!(record.last_event, count, "last event");
        assert_eq!(record.oldest_event, 1, "oldest event");
    }
}

/// Returns a value with other members: outside of their crate no literal makes the types of stores.
fn with<T>(mut value: T, set: impl FnOnce(&mut T)) -> T {
    set(&mut value);
    value
}

/// Returns the text of the event `number`, whose length depends on the number.
fn text(number: u64) -> String {
    let padding = "ä".repeat(usize::try_from(number % 90).unwrap_or(0));
    format!(r#"{{"sessionUpdate":"agent_message_chunk","n":{number},"text":"{padding}"}}"#)
}

fn batch(first: u64, texts: impl IntoIterator<Item = String>) -> Arc<Batch> {
    let mut batch = Batch::new(first);
    for text in texts {
        batch.push(&text);
    }
    Arc::new(batch)
}

/// Returns a commit of the events `first..first + count`.
fn events(first: u64, count: u64) -> Commit {
    with(Commit::default(), |commit| {
        commit.events = Some(batch(first, (first..first + count).map(text)))
    })
}

/// Reads all events in pages of `max_bytes` and checks what each page says.
async fn read_all(store: &dyn Store, session: &SessionId, max_bytes: usize) -> Vec<String> {
    let mut texts = Vec::new();
    loop {
        let after = texts.len() as u64;
        let page = page(store, session, after, max_bytes).await;
        if page.batches.is_empty() {
            assert_eq!(page.last, after, "last event of the final page");
            return texts;
        }
        let read = page.batches.iter().flat_map(|batch| batch.after(after));
        for (number, text) in read {
            assert_eq!(number, texts.len() as u64 + 1, "number of the next event");
            texts.push(text.to_owned());
        }
        assert!(texts.len() as u64 > after, "a page without a further event");
        assert!(page.last >= texts.len() as u64, "events beyond the last");
    }
}

async fn page(store: &dyn Store, session: &SessionId, after: u64, max_bytes: usize) -> EventPage {
    let page = store.read(session, after, max_bytes).await;
    let page = page.unwrap_or_else(|error| panic!("read {session} after {after}: {error}"));
    assert!(
        (1..=page.last + 1).contains(&page.oldest),
        "oldest event {} of {}",
        page.oldest,
        page.last
    );
    if let Some(first) = page.batches.first() {
        let next = page.oldest.max(after + 1);
        assert!(first.first() <= next, "{first:?} begins after {next}");
        assert!(first.first() >= page.oldest, "{first:?} has removed events");
        assert!(first.last() > after, "{first:?} has no event after {after}");
    }
    for pair in page.batches.windows(2) {
        assert_eq!(pair[1].first(), pair[0].last() + 1, "{pair:?} have a gap");
    }
    page
}

/// Returns the ids of the sessions that match a query.
async fn listed(store: &dyn Store, query: &ListQuery) -> Vec<String> {
    let records = store.list(query).await;
    let records = records.unwrap_or_else(|error| panic!("list {query:?}: {error}"));
    assert!(records.len() <= query.limit, "more sessions than the limit");
    let ids = records.iter().map(|record| record.id.to_string());
    ids.collect()
}

#[track_caller]
fn expect_error<T>(result: Result<T, StoreError>, kind: StoreErrorKind, operation: &str) {
    match result {
        Ok(_) => panic!("{operation}: expected {kind:?}, got success"),
        Err(error) => {
            assert_eq!(error.kind(), kind, "{operation}: {error}");
            assert!(!error.to_string().is_empty(), "{operation}: no text");
        }
    }
}
