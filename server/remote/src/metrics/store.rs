//! The numbers of the stores.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acp_server::store::StoreUsage;
use futures_util::future::join_all;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{Label, label, write};
use crate::agents::Agents;

/// Time for a store to answer; without an answer the other numbers are written alone.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the store of one agent said, with the labels of the agent.
type Labelled = (Vec<Label>, StoreUsage);

/// What the stores said last. Clones are handles to the same numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreNumbers(Arc<Mutex<Vec<Labelled>>>);

impl StoreNumbers {
    /// Asks the store of each agent.
    pub(super) async fn read(&self, agents: &Agents) {
        let usages = agents.iter().map(async |agent| {
            let usage = tokio::time::timeout(PATIENCE, agent.server().store().usage()).await;
            Some((label(agents, agent), usage.ok()?.ok()?))
        });
        let usages = join_all(usages).await.into_iter().flatten().collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = usages;
    }
}

impl Collector for StoreNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let usages = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut row = |name, help, value: fn(&StoreUsage) -> u64| {
            let row = |(labels, usage): &(Vec<_>, StoreUsage)| {
                (labels.clone(), ConstGauge::<u64>::new(value(usage)))
            };
            write(&mut encoder, name, help, usages.iter().map(row).collect())
        };
        row("store_sessions", "Sessions in the store", |it| it.sessions)?;
        row("store_events", "Events in the store", |it| it.events)?;
        let help = "Bytes of sessions and events in the store";
        row("store_used_bytes", help, |it| it.used_bytes)?;
        let help = "Bytes of the files of the store, with free space and logs";
        row("store_disk_bytes", help, |it| it.disk_bytes)
    }
}
