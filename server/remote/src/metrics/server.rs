//! The numbers that the server itself keeps.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use acp_server::{Server, Statistics};

/// Reads the server's statistics whenever they are asked for.
#[derive(Debug)]
pub(super) struct ServerNumbers(pub(super) Server);

impl Collector for ServerNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let numbers = self.0.statistics();
        for (name, help, value) in [
            ("sessions", "Sessions in memory", numbers.sessions),
            ("turns_running", "Turns that run", numbers.turns_running()),
        ] {
            let gauge = ConstGauge::new(value);
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            gauge.encode(metric)?;
        }
        for (name, help, value) in [
            ("turns_started", "Turns that started", numbers.turns_started),
            (
                "retention_deleted",
                "Sessions that retention deleted",
                numbers.retention_deleted,
            ),
            (
                "retention_failed",
                "Inspections for retention that failed",
                numbers.retention_failed,
            ),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(metric)?;
        }
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
