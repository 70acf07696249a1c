//! Instances of this process that are about to end their leases.
//!
//! A dropped store ends its leases in a task, for a drop cannot wait. Other instances of the process
//! with the same tables lease nothing until that is done, so that a store can be dropped and opened
//! again. Other processes see its leases until then.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How many instances are ending, by their tables.
static ENDING: LazyLock<watch::Sender<HashMap<String, usize>>> =
    LazyLock::new(|| watch::Sender::new(HashMap::new()));

/// How long another instance waits for them.
const PATIENCE: Duration = Duration::from_secs(10);

/// An instance that is ending, until dropped.
#[derive(Debug)]
pub(crate) struct Ending(String);

impl Ending {
    /// Counts an instance with these tables.
    pub(crate) fn new(tables: String) -> Self {
        ENDING.send_modify(|ending| *ending.entry(tables.clone()).or_default() += 1);
        Self(tables)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        ENDING.send_modify(|ending| {
            if let Some(count) = ending.get_mut(&self.0) {
                *count -= 1;
                if *count == 0 {
                    ending.remove(&self.0);
                }
            }
        });
    }
}

/// Waits until no instance with these tables is ending.
///
/// Before the owner of a session is judged: afterwards it would be too late to know whether the owner
/// was ending then.
pub(crate) async fn settled(tables: &str) {
    let mut ending = ENDING.subscribe();
    let ended = ending.wait_for(|ending| !ending.contains_key(tables));
    // After the time limit the caller asks the database anyway.
    let _ = timeout(PATIENCE, ended).await;
}
