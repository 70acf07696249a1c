//! The numbers of the store.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acp_server::store::{Store, StoreUsage};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::gauge::ConstGauge;

use super::write;

/// Time for the store to answer; without an answer the other numbers are written alone.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the store said last. Clones are handles to the same numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreNumbers(Arc<Mutex<Option<StoreUsage>>>);

impl StoreNumbers {
    /// Asks the store.
    pub(super) async fn read(&self, store: &Arc<dyn Store>) {
        let usage = tokio::time::timeout(PATIENCE, store.usage()).await;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = usage.ok().and_then(Result::ok);
    }
}

impl Collector for StoreNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let usage = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(usage) = usage else { return Ok(()) };
        let mut row =
            |name, help, value| write(&mut encoder, name, help, &ConstGauge::<u64>::new(value));
        row("store_sessions", "Sessions in the store", usage.sessions)?;
        row("store_events", "Events in the store", usage.events)?;
        let help = "Bytes of sessions and events in the store";
        row("store_used_bytes", help, usage.used_bytes)?;
        let help = "Bytes of the files of the store, with free space and logs";
        row("store_disk_bytes", help, usage.disk_bytes)?;
        Ok(())
    }
}
