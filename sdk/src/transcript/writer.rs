//! The thread that masks and writes.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde_json::value::RawValue;

use super::Side;
use super::mask::mask;
use super::policy::Policies;
use super::queue::{Content, Queue, Record};
use super::rules::Rules;
use crate::jsonrpc::{self, Incoming};

pub(super) struct Worker {
    writer: Box<dyn Write + Send>,
    masked: bool,
    /// How many bytes may still be written.
    left: u64,
    queue: Arc<Queue>,
    policies: Policies,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Nothing may pile up for a thread that has ended.
        self.queue.close();
    }
}

impl Worker {
    pub(super) fn new(
        writer: Box<dyn Write + Send>,
        masked: bool,
        max_bytes: u64,
        queue: Arc<Queue>,
        rules: Rules,
    ) -> Self {
        Self {
            writer,
            masked,
            left: max_bytes,
            queue,
            policies: Policies::new(rules),
        }
    }

    pub(super) fn run(mut self) {
        while let Some(records) = self.queue.take() {
            for record in records {
                let line = self.line(record);
                if line.len() as u64 > self.left {
                    tracing::warn!("the transcript has reached its maximum size and ends");
                    self.flush();
                    return;
                }
                self.left -= line.len() as u64;
                if let Err(error) = self.writer.write_all(line.as_bytes()) {
                    report(&error);
                    return;
                }
            }
            if !self.flush() {
                return;
            }
        }
    }

    fn flush(&mut self) -> bool {
        let flushed = self.writer.flush();
        if let Err(error) = &flushed {
            report(error);
        }
        flushed.is_ok()
    }

    /// One line of the transcript.
    fn line(&mut self, record: Record) -> String {
        let content = match record.content {
            Content::Lost(messages) => {
                let why = quoted("messages arrived faster than they could be written");
                format!("\"lost\":{messages},\"why\":{why}")
            }
            Content::Skipped(why) => {
                format!("\"raw\":{},\"why\":{}", quoted("[skipped]"), quoted(&why))
            }
            Content::Text(text) => self.message(record.from, &text),
        };
        let dir = match record.from {
            Side::Agent => "a2c",
            Side::Client => "c2a",
        };
        let at = record.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        format!(
            "{{\"dir\":\"{dir}\",\"at\":{:.6},{content}}}\n",
            at.as_secs_f64()
        )
    }

    fn message(&mut self, from: Side, bytes: &[u8]) -> String {
        let message = jsonrpc::read(bytes);
        let policy = self.policies.of(from, &message);
        let json = std::str::from_utf8(bytes).ok().filter(|text| {
            // A valid message is JSON. For the rest, skipping the text checks it without
            // memory or recursion.
            !matches!(message, Incoming::Invalid { .. })
                || serde_json::from_str::<&RawValue>(text).is_ok()
        });
        match (json, &message) {
            (Some(text), _) if self.masked => {
                format!("\"msg\":{}", mask(text, policy, self.policies.rules()))
            }
            // Line feeds stand only between tokens: strings have them escaped.
            (Some(text), _) => format!("\"msg\":{}", text.replace(['\n', '\r'], " ")),
            (None, Incoming::Invalid { reason, .. }) if !self.masked => {
                let text = String::from_utf8_lossy(bytes);
                format!("\"raw\":{},\"why\":{}", quoted(&text), quoted(reason))
            }
            // The reason is left out, because it may quote the text.
            (None, _) => {
                let text = format!("[redacted: {} bytes]", bytes.len());
                format!("\"raw\":{},\"why\":{}", quoted(&text), quoted("not JSON"))
            }
        }
    }
}

fn report(error: &io::Error) {
    tracing::warn!(%error, "writing the transcript failed; it ends");
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
