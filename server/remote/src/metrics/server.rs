//! The numbers that the server itself keeps.

use std::fmt;

use acp_server::{Server, Statistics};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::write;

/// Reads the server's statistics whenever they are asked for.
#[derive(Debug)]
pub(super) struct ServerNumbers(pub(super) Server);

impl Collector for ServerNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let numbers = self.0.statistics();
        let gauge = ConstGauge::<u64>::new;
        let counter = ConstCounter::<u64>::new;
        let mut row =
            |name, help, metric: &dyn EncodeMetric| write(&mut encoder, name, help, metric);
        row("sessions", "Sessions in memory", &gauge(numbers.sessions))?;
        row(
            "turns_running",
            "Turns that run",
            &gauge(numbers.turns_running()),
        )?;
        row(
            "turns_started",
            "Turns that started",
            &counter(numbers.turns_started),
        )?;
        let deleted = counter(numbers.retention_deleted);
        row(
            "retention_deleted",
            "Sessions that retention deleted",
            &deleted,
        )?;
        let failed = counter(numbers.retention_failed);
        row(
            "retention_failed",
            "Inspections for retention that failed",
            &failed,
        )?;
        let help = "Turns that ended, by stop reason";
        let mut metric =
            encoder.encode_descriptor("turns_ended", help, None, MetricType::Counter)?;
        for (reason, count) in by_reason(&numbers) {
            let labels = [("reason", reason)];
            ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
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
