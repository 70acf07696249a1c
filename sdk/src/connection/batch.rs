//! The responses to a batch, written as one array when the last is known.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::lock;
use crate::sync::Mutex;

/// Responses to the requests of one batch.
#[derive(Debug)]
pub(crate) struct Batch {
    answers: Mutex<Answers>,
}

#[derive(Debug)]
struct Answers {
    /// How many are outstanding.
    due: usize,
    written: Vec<Box<RawValue>>,
}

impl Batch {
    /// Creates a batch with one outstanding answer, the end of reading it, which is no message.
    pub(crate) fn open() -> Arc<Self> {
        let answers = Answers {
            due: 1,
            written: Vec::new(),
        };
        Arc::new(Self {
            answers: Mutex::new(answers),
        })
    }

    /// Adds an outstanding answer.
    pub(crate) fn expect(&self) {
        lock(&self.answers).due += 1;
    }

    /// Records an answer, which may be no message. Returns all of them after the last.
    pub(crate) fn answer(&self, answer: Option<Box<RawValue>>) -> Option<Vec<Box<RawValue>>> {
        let mut answers = lock(&self.answers);
        answers.written.extend(answer);
        answers.due = answers.due.saturating_sub(1);
        let complete = answers.due == 0 && !answers.written.is_empty();
        complete.then(|| std::mem::take(&mut answers.written))
    }
}
