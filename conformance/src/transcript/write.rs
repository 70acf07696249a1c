//! Writes a recording, in the format that [`super::parse`] reads.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::record::Record;

/// Writes one record a line. It neither buffers nor flushes.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// A recording that goes to `out`.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes a record. `at` is when it was seen, in seconds since 1970. `verbatim`
    /// is a message as it was sent; it keeps what a [`Value`] does not, such as long
    /// numbers and members that occur twice.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&mut self, at: f64, record: &Record, verbatim: Option<&[u8]>) -> io::Result<()> {
        match record {
            Record::Message(from, value) => {
                write!(self.out, r#"{{"dir":"{}","at":{at:.6},"msg":"#, from.tag())?;
                match verbatim {
                    Some(text) => self.out.write_all(text)?,
                    None => serde_json::to_writer(&mut self.out, value)?,
                }
                self.out.write_all(b"}\n")
            }
            Record::Raw { from, text, why } => {
                let mut line = json!({"dir": from.tag(), "at": at, "raw": text});
                if let (Some(why), Some(line)) = (why, line.as_object_mut()) {
                    line.insert("why".into(), Value::String(why.clone()));
                }
                writeln!(self.out, "{line}")
            }
            Record::Lost {
                from,
                messages,
                why,
                on_purpose,
            } => {
                let mut line = json!({"dir": from.tag(), "at": at, "lost": messages, "why": why});
                if *on_purpose && let Some(line) = line.as_object_mut() {
                    line.insert("onPurpose".into(), Value::Bool(true));
                }
                writeln!(self.out, "{line}")
            }
            Record::Plain(value) => writeln!(self.out, "{value}"),
        }
    }

    /// Flushes what it writes to.
    ///
    /// # Errors
    /// When that fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::parse;
    use crate::wire::Party;

    #[test]
    fn what_is_written_is_read_back() {
        let records = [
            Record::Message(Party::Agent, json!({"id": 1, "result": null})),
            Record::Raw {
                from: Party::Client,
                text: "{\"a\\u0000".into(),
                why: Some("not JSON".into()),
            },
            Record::Raw {
                from: Party::Client,
                text: "probe".into(),
                why: None,
            },
            Record::Lost {
                from: Party::Agent,
                messages: 7,
                why: "too long".into(),
                on_purpose: false,
            },
            Record::Lost {
                from: Party::Client,
                messages: 1,
                why: "said elsewhere".into(),
                on_purpose: true,
            },
            Record::Plain(json!({"id": 2})),
        ];
        let mut writer = Writer::new(Vec::new());
        for record in &records {
            writer.write(1.5, record, None).unwrap();
        }
        let read: Vec<Record> = writer
            .out
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| parse(line).unwrap())
            .collect();
        assert_eq!(read, records);
    }

    #[test]
    fn a_message_is_kept_as_it_was_sent() {
        let text = br#"{"id": 12345678901234567890123, "id":1.0 }"#;
        let value = serde_json::from_slice(text).unwrap();
        let record = Record::Message(Party::Client, value);
        let mut writer = Writer::new(Vec::new());
        writer.write(0.25, &record, Some(text)).unwrap();
        assert_eq!(
            String::from_utf8(writer.out).unwrap(),
            "{\"dir\":\"c2a\",\"at\":0.250000,\"msg\":{\"id\": 12345678901234567890123, \"id\":1.0 }}\n"
        );
    }
}
