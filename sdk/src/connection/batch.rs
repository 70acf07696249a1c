//! The responses to a batch, written as one array when the last is known.

use std::any::Any;
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
    /// What the answered requests keep until their answers are written.
    kept: Vec<Box<dyn Any + Send>>,
}

/// The answers to a batch, and what is to be dropped once they are in the output.
#[derive(Debug)]
pub(crate) struct CompleteBatch {
    pub(crate) answers: Vec<Box<RawValue>>,
    pub(crate) kept: Vec<Box<dyn Any + Send>>,
}

impl Batch {
    /// Creates a batch with one outstanding answer, the end of reading it, which is no message.
    pub(crate) fn open() -> Arc<Self> {
        let answers = Answers {
            due: 1,
            written: Vec::new(),
            kept: Vec::new(),
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
    pub(crate) fn answer(&self, answer: Option<Box<RawValue>>) -> Option<CompleteBatch> {
        let mut answers = lock(&self.answers);
        answers.written.extend(answer);
        answers.due = answers.due.saturating_sub(1);
        let complete = answers.due == 0 && !answers.written.is_empty();
        complete.then(|| CompleteBatch {
            answers: std::mem::take(&mut answers.written),
            kept: std::mem::take(&mut answers.kept),
        })
    }

    /// Keeps values until all answers are written. Returns them if they are.
    pub(crate) fn keep(&self, values: Vec<Box<dyn Any + Send>>) -> Vec<Box<dyn Any + Send>> {
        let mut answers = lock(&self.answers);
        if answers.due == 0 {
            return values;
        }
        answers.kept.extend(values);
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_keeps_is_kept_until_the_last_answer() {
        let batch = Batch::open();
        batch.expect();
        batch.expect();
        let answer = || Some(RawValue::NULL.to_owned());
        assert!(batch.answer(answer()).is_none());
        assert!(batch.keep(vec![Box::new(1)]).is_empty());
        assert!(batch.answer(None).is_none());
        let complete = batch.answer(answer()).unwrap();
        assert_eq!((complete.answers.len(), complete.kept.len()), (2, 1));
        assert_eq!(batch.keep(vec![Box::new(2)]).len(), 1);
    }
}
