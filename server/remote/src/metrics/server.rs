//! The numbers that the servers themselves keep.

use std::fmt;

use acp_server::Statistics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{label, write};
use crate::agents::Agents;

/// Reads the statistics of each agent's server whenever they are asked for.
#[derive(Debug)]
pub(super) struct ServerNumbers(pub(super) Agents);

impl Collector for ServerNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let agents = self.0.iter();
        let numbers: Vec<_> = agents
            .map(|agent| (label(&self.0, agent), agent.server().statistics()))
            .collect();
        let mut gauge = |name, help, value: fn(&Statistics) -> u64| {
            let row = |(labels, numbers): &(Vec<_>, Statistics)| {
                (labels.clone(), ConstGauge::<u64>::new(value(numbers)))
            };
            write(&mut encoder, name, help, numbers.iter().map(row).collect())
        };
        gauge("sessions", "Sessions in memory", |it| it.sessions)?;
        gauge("turns_running", "Turns that run", Statistics::turns_running)?;
        let mut counter = |name, help, value: fn(&Statistics) -> u64| {
            let row = |(labels, numbers): &(Vec<_>, Statistics)| {
                (labels.clone(), ConstCounter::<u64>::new(value(numbers)))
            };
            write(&mut encoder, name, help, numbers.iter().map(row).collect())
        };
        counter("turns_started", "Turns that started", |it| it.turns_started)?;
        let help = "Sessions that retention deleted";
        counter("retention_deleted", help, |it| it.retention_deleted)?;
        let help = "Inspections for retention that failed";
        counter("retention_failed", help, |it| it.retention_failed)?;
        let help = "Sessions opened because their server was killed in a turn";
        counter("sessions_adopted", help, |it| it.adopted)?;
        let rows = numbers.iter().flat_map(|(labels, numbers)| {
            by_reason(numbers).map(|(reason, count)| {
                let labels = [labels.clone(), vec![("reason", reason.to_owned())]].concat();
                (labels, ConstCounter::<u64>::new(count))
            })
        });
        let help = "Turns that ended, by stop reason";
        write(&mut encoder, "turns_ended", help, rows.collect())
    }
}

fn by_reason(numbers: &Statistics) -> [(&'static str, u64); 7] {
    [
        ("end_turn", numbers.end_turn),
        ("max_tokens", numbers.max_tokens),
        ("max_turn_requests", numbers.max_turn_requests),
        ("refusal", numbers.refusal),
        ("cancelled", numbers.cancelled),
        ("other", numbers.other),
        ("failed", numbers.failed),
    ]
}
