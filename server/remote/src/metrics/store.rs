//! The numbers of the stores.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acp_server::store::{NodeStatistics, NodesSeen, StoreUsage};
use futures_util::future::{join, join_all};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::time::timeout;

use super::{Label, label, write};
use crate::agents::Agents;

/// Time for a store to answer; without an answer the other numbers are written alone.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the store of one agent said, with the labels of the agent.
type Labelled<T> = Vec<(Vec<Label>, T)>;

/// What the stores said last. Clones are handles to the same numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreNumbers(Arc<Mutex<Said>>);

#[derive(Clone, Debug, Default)]
struct Said {
    usages: Labelled<StoreUsage>,
    /// Of stores that several nodes share.
    nodes: Labelled<NodeStatistics>,
}

impl StoreNumbers {
    /// Asks the store of each agent.
    pub(super) async fn read(&self, agents: &Agents) {
        let said = agents.iter().map(async |agent| {
            let (store, label) = (agent.server().store(), label(agents, agent));
            let usage = timeout(PATIENCE, store.usage());
            let (usage, node) = join(usage, timeout(PATIENCE, store.node_statistics())).await;
            let (usage, node) = (
                usage.ok().and_then(Result::ok),
                node.ok().and_then(Result::ok),
            );
            let node = node.flatten();
            (
                usage.map(|usage| (label.clone(), usage)),
                node.map(|node| (label, node)),
            )
        });
        let (usages, nodes): (Vec<_>, Vec<_>) = join_all(said).await.into_iter().unzip();
        let said = Said {
            usages: usages.into_iter().flatten().collect(),
            nodes: nodes.into_iter().flatten().collect(),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = said;
    }
}

impl Collector for StoreNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Said { usages, nodes } = said.clone();
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
        row("store_disk_bytes", help, |it| it.disk_bytes)?;
        encode_nodes(&mut encoder, &nodes)
    }
}

/// Writes the numbers of a node, for stores that several nodes share.
fn encode_nodes(
    encoder: &mut DescriptorEncoder<'_>,
    nodes: &Labelled<NodeStatistics>,
) -> Result<(), fmt::Error> {
    let row = |(labels, node): &(Vec<_>, NodeStatistics)| {
        let age = ConstGauge::<f64>::new(node.renewal_age.as_secs_f64());
        (labels.clone(), age)
    };
    let help = "Seconds since this node last renewed its leases";
    let rows = nodes.iter().map(row).collect();
    write(encoder, "node_renewal_age_seconds", help, rows)?;
    let mut counter = |name, help, value: fn(&NodeStatistics) -> u64| {
        let row = |(labels, node): &(Vec<_>, NodeStatistics)| {
            (labels.clone(), ConstCounter::<u64>::new(value(node)))
        };
        write(encoder, name, help, nodes.iter().map(row).collect())
    };
    let help = "Sessions taken from nodes that were silent";
    counter("node_takeovers", help, |it| it.takeovers)?;
    let help = "Times that this node could not renew its leases in time and ended its sessions";
    counter("node_leases_lost", help, |it| it.leases_lost)?;
    let seen = nodes
        .iter()
        .filter_map(|(labels, node)| Some((labels, node.nodes?)));
    let seen: Vec<(&Vec<Label>, NodesSeen)> = seen.collect();
    let sessions = seen
        .iter()
        .map(|(labels, seen)| ((*labels).clone(), ConstGauge::<u64>::new(seen.sessions)));
    let help = "Sessions that this node has leased";
    write(encoder, "node_sessions", help, sessions.collect())?;
    let heartbeats = seen.iter().map(|(labels, seen)| {
        let age = ConstGauge::<f64>::new(seen.oldest_heartbeat.as_secs_f64());
        ((*labels).clone(), age)
    });
    let help = "Longest time since a node that is alive renewed its leases";
    let rows = heartbeats.collect();
    write(encoder, "node_oldest_heartbeat_seconds", help, rows)?;
    let states = seen.iter().flat_map(|(labels, seen)| {
        [("alive", seen.alive), ("gone", seen.gone)].map(|(state, count)| {
            let labels = [(*labels).clone(), vec![("state", state.to_owned())]].concat();
            (labels, ConstGauge::<u64>::new(count))
        })
    });
    let help = "Nodes of the store, by whether their leases are valid";
    write(encoder, "nodes", help, states.collect())
}
