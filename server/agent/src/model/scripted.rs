//! A model whose answers are written down, for demonstrations and tests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_server::BoxFuture;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{Answer, Delta, ErrorKind, Message, Model, ModelError, Request, Tokens, ToolUse};

type Script = dyn Fn(usize, &Request) -> Result<Vec<Delta>, ModelError> + Send + Sync;

/// A model that answers by a function or a list, without a network.
///
/// ```
/// use acp_agent::model::{Delta, Scripted};
///
/// let model = Scripted::list([
///     vec![Scripted::tool("add", serde_json::json!({"a": 1, "b": 2}))],
///     vec![Delta::Text("The sum is 3.".to_owned())],
/// ]);
/// ```
pub struct Scripted {
    name: String,
    context_window: u64,
    /// The time before each piece of an answer.
    pace: Duration,
    asked: AtomicUsize,
    script: Box<Script>,
}

impl Scripted {
    /// Creates a model that answers by a function of the number of the request, from 0, and the request.
    pub fn new(
        script: impl Fn(usize, &Request) -> Result<Vec<Delta>, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: "scripted".to_owned(),
            context_window: 128_000,
            pace: Duration::ZERO,
            asked: AtomicUsize::new(0),
            script: Box::new(script),
        }
    }

    /// Creates a model with these answers, one after the other. A request after the last one is an error.
    pub fn list(answers: impl IntoIterator<Item = Vec<Delta>>) -> Self {
        let answers: Vec<_> = answers.into_iter().collect();
        Self::new(move |request, _| match answers.get(request) {
            Some(answer) => Ok(answer.clone()),
            None => {
                let reason = format!(
                    "the script has {} answers, and no further one",
                    answers.len()
                );
                Err(ModelError::new("scripted", ErrorKind::Invalid, reason))
            }
        })
    }

    /// Creates a model for demonstrations: `TOOL {json}` in the newest message of the user calls that tool,
    /// `slow` is answered for half a minute, and any other text is repeated.
    #[must_use]
    pub fn demo() -> Self {
        Self {
            pace: Duration::from_millis(20),
            ..Self::new(|_, request| Ok(demo(request)))
        }
    }

    /// Sets the [name](Model::name); it is `scripted` otherwise.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the [context window](Model::context_window).
    #[must_use]
    pub fn with_context_window(mut self, tokens: u64) -> Self {
        self.context_window = tokens;
        self
    }

    /// Returns a piece of an answer that calls a tool.
    #[must_use]
    pub fn tool(name: &str, arguments: Value) -> Delta {
        Delta::ToolUse(ToolUse {
            id: format!("use-{name}"),
            name: name.to_owned(),
            arguments,
        })
    }
}

fn demo(request: &Request) -> Vec<Delta> {
    let tokens = Delta::Tokens(Tokens {
        input: 100,
        output: 10,
        ..Tokens::default()
    });
    let text = match request.messages.last() {
        Some(Message::Tools { results }) => {
            let results = results.iter().map(|result| {
                let how = if result.output.is_error {
                    "failed"
                } else {
                    "returned"
                };
                format!("`{}` {how}:\n\n{}", result.name, result.output.text())
            });
            results.collect::<Vec<_>>().join("\n\n")
        }
        Some(Message::User { content }) => {
            let said = acp_server::text_of(content);
            let (name, arguments) = said.trim().split_once(' ').unwrap_or((said.trim(), ""));
            if request.tools.iter().any(|tool| tool.name == name) {
                let arguments = serde_json::from_str(arguments).unwrap_or(json!({}));
                return vec![tokens, Scripted::tool(name, arguments)];
            }
            if name == "slow" {
                let pieces = (0..1500).map(|piece| Delta::Text(format!("{piece} ")));
                return pieces.collect();
            }
            format!("You said: {said}")
        }
        _ => "There is nothing to answer.".to_owned(),
    };
    vec![tokens, Delta::Text(text)]
}

impl Model for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn context_window(&self) -> u64 {
        self.context_window
    }

    fn answer<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = (self.script)(number, request);
        Box::pin(async move {
            let deltas = futures_util::stream::iter(answer?.into_iter().map(Ok));
            let pace = self.pace;
            if pace.is_zero() {
                return Ok(Box::pin(deltas) as Answer);
            }
            let paced = deltas.then(move |delta| async move {
                tokio::time::sleep(pace).await;
                delta
            });
            Ok(Box::pin(paced) as Answer)
        })
    }
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scripted")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
