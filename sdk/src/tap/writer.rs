//! The thread that masks and writes.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde_json::value::RawValue;

use super::Side;
use super::mask::mask;
use super::policy::Policies;
use super::queue::{Content, Queue, Record};
use crate::jsonrpc::{self, Incoming};

pub(super) struct Worker {
    writer: Box<dyn Write + Send>,
    masked: bool,
    /// How much may still be written.
    left: u64,
    queue: Arc<Queue>,
    policies: Policies,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Whatever ended the thread, nothing is to gather for it.
        self.queue.close();
    }
}

impl Worker {
    pub(super) fn new(
        writer: Box<dyn Write + Send>,
        masked: bool,
        max_bytes: u64,
        queue: Arc<Queue>,
    ) -> Self {
        Self {
            writer,
            masked,
            left: max_bytes,
            queue,
            policies: Policies::default(),
        }
    }

    pub(super) fn run(mut self) {
        while let Some(records) = self.queue.take() {
            for record in records {
                let line = self.line(record);
                if line.len() as u64 > self.left {
                    tracing::warn!("the transcript has reached its size and ends here");
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
                let why = quoted("they came faster than they could be written");
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
            // What was read as a message is JSON; for the rest, skipping it is a check
            // that needs neither memory nor depth.
            !matches!(message, Incoming::Invalid { .. })
                || serde_json::from_str::<&RawValue>(text).is_ok()
        });
        match (json, &message) {
            (Some(text), _) if self.masked => format!("\"msg\":{}", mask(text, policy)),
            // Between tokens a line feed is a blank, and strings hold none.
            (Some(text), _) => format!("\"msg\":{}", text.replace(['\n', '\r'], " ")),
            (None, Incoming::Invalid { reason, .. }) if !self.masked => {
                let text = String::from_utf8_lossy(bytes);
                format!("\"raw\":{},\"why\":{}", quoted(&text), quoted(reason))
            }
            // The reason may quote the text.
            (None, _) => {
                let text = format!("[redacted: {} bytes]", bytes.len());
                format!("\"raw\":{},\"why\":{}", quoted(&text), quoted("no JSON"))
            }
        }
    }
}

fn report(error: &io::Error) {
    tracing::warn!(%error, "the transcript cannot be written and ends here");
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
