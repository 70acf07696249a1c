//! Recordings of a model's answers, and their replay.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use acp_server::BoxFuture;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::{Answer, Delta, ErrorKind, Model, ModelError, Request, Scripted};

/// One line of a recording: a request and its whole answer.
#[derive(Serialize, Deserialize)]
struct Exchange {
    request: Request,
    answer: Vec<Delta>,
}

/// A model that writes down what another one is asked and answers, one JSON object per line.
///
/// Answers that break off are not written. Neither keys nor headers are part of a recording; the
/// conversation is.
#[derive(Debug)]
pub struct Recorder<M> {
    model: M,
    file: Arc<Mutex<File>>,
}

impl<M: Model> Recorder<M> {
    /// Records a model in a new file.
    ///
    /// # Errors
    ///
    /// If the file exists or cannot be created.
    pub fn create(model: M, path: impl AsRef<Path>) -> io::Result<Self> {
        let file = File::create_new(path)?;
        Ok(Self {
            model,
            file: Arc::new(Mutex::new(file)),
        })
    }
}

impl<M: Model> Model for Recorder<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn context_window(&self) -> u64 {
        self.model.context_window()
    }

    fn answer<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            let answer = self.model.answer(request).await?;
            let exchange = Exchange {
                request: request.clone(),
                answer: Vec::new(),
            };
            let state = (
                answer,
                Some(exchange),
                self.file.clone(),
                self.name().to_owned(),
            );
            Ok(Box::pin(futures_util::stream::unfold(state, next)) as Answer)
        })
    }
}

type Recording = (Answer, Option<Exchange>, Arc<Mutex<File>>, String);

/// Passes a piece on, and writes the exchange after the last one.
async fn next(state: Recording) -> Option<(Result<Delta, ModelError>, Recording)> {
    let (mut answer, mut exchange, file, model) = state;
    match answer.next().await {
        Some(Ok(delta)) => {
            if let Some(exchange) = &mut exchange {
                exchange.answer.push(delta.clone());
            }
            Some((Ok(delta), (answer, exchange, file, model)))
        }
        Some(Err(error)) => Some((Err(error), (answer, None, file, model))),
        None => {
            let written = write(&file, &exchange?);
            let error = written.err()?;
            let message = format!("the recording cannot be written: {error}");
            let error = ModelError::new(model.as_str(), ErrorKind::Invalid, message);
            Some((Err(error), (answer, None, file, model)))
        }
    }
}

fn write(file: &Mutex<File>, exchange: &Exchange) -> io::Result<()> {
    let mut line = serde_json::to_vec(exchange)?;
    line.push(b'\n');
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    file.write_all(&line)
}

/// Models that answer as a recording does.
#[derive(Debug)]
pub struct Replay;

impl Replay {
    /// Reads a recording. Its requests must come again in their order: one whose last message differs is an
    /// error, because the answer would not fit it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or a line is no exchange.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Scripted> {
        let path = path.as_ref();
        let lines = BufReader::new(File::open(path)?).lines();
        let mut exchanges = Vec::new();
        for (number, line) in lines.enumerate() {
            let exchange: Exchange = serde_json::from_str(&line?).map_err(|error| {
                let place = format!("{}:{}", path.display(), number + 1);
                io::Error::new(io::ErrorKind::InvalidData, format!("{place}: {error}"))
            })?;
            exchanges.push(exchange);
        }
        Ok(Scripted::new(move |number, request| {
            let fail = |reason: String| ModelError::new("replay", ErrorKind::Invalid, reason);
            let Some(recorded) = exchanges.get(number) else {
                let reason = format!(
                    "the recording has {} answers, and no further one",
                    exchanges.len()
                );
                return Err(fail(reason));
            };
            if recorded.request.messages.last() != request.messages.last() {
                let reason = "the last message is not the recorded one; record it anew";
                return Err(fail(format!("answer {}: {reason}", number + 1)));
            }
            Ok(recorded.answer.clone())
        })
        .named("replay"))
    }
}
