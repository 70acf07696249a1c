//! The answers to a batch: gathered, and written as one array when the last is there.

use std::sync::{Arc, Mutex};

use serde_json::value::RawValue;

use super::lock;

/// Answers to the requests of one batch.
#[derive(Debug)]
pub(crate) struct Batch {
    answers: Mutex<Answers>,
}

#[derive(Debug)]
struct Answers {
    /// How many are still to come.
    due: usize,
    written: Vec<Box<RawValue>>,
}

impl Batch {
    /// A batch that waits for one answer: that all of it has been read, which is no message.
    pub(crate) fn open() -> Arc<Self> {
        let answers = Answers {
            due: 1,
            written: Vec::new(),
        };
        Arc::new(Self {
            answers: Mutex::new(answers),
        })
    }

    /// One more answer is to come.
    pub(crate) fn expect(&self) {
        lock(&self.answers).due += 1;
    }

    /// One answer, if it is a message. Yields all of them after the last.
    pub(crate) fn answer(&self, answer: Option<Box<RawValue>>) -> Option<Vec<Box<RawValue>>> {
        let mut answers = lock(&self.answers);
        answers.written.extend(answer);
        answers.due = answers.due.saturating_sub(1);
        let complete = answers.due == 0 && !answers.written.is_empty();
        complete.then(|| std::mem::take(&mut answers.written))
    }
}
