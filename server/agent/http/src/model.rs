//! A model of a provider.

use std::time::Duration;

use acp_agent::model::{Answer, Model, ModelError, Request};
use acp_server::BoxFuture;
use genai::adapter::AdapterKind;
use genai::chat::ChatOptions;
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use serde::{Deserialize, Serialize};

use crate::{answer, error, request};

/// Time without a piece of an answer after which it is given up.
const SILENCE: Duration = Duration::from_secs(300);

/// The API that a provider has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Api {
    /// Chat completions of OpenAI, which many servers have.
    Openai,
    /// Responses of OpenAI.
    OpenaiResponses,
    /// Messages of Anthropic.
    Anthropic,
    /// Gemini.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl Api {
    fn adapter(self) -> AdapterKind {
        match self {
            Self::Openai => AdapterKind::OpenAI,
            Self::OpenaiResponses => AdapterKind::OpenAIResp,
            Self::Anthropic => AdapterKind::Anthropic,
            Self::Gemini => AdapterKind::Gemini,
            Self::Ollama => AdapterKind::Ollama,
        }
    }

    /// Returns the URL of the provider whose API it is.
    #[must_use]
    pub fn url(self) -> &'static str {
        match self {
            Self::Openai | Self::OpenaiResponses => "https://api.openai.com/v1/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
            Self::Ollama => "http://localhost:11434/",
        }
    }
}

/// Why a model cannot be asked at all.
#[derive(Debug, thiserror::Error)]
#[error("the model {model} cannot be set up: {reason}")]
pub struct BuildError {
    model: String,
    reason: String,
}

/// A model that is asked over HTTP.
#[derive(Debug)]
pub struct HttpModel {
    name: String,
    context_window: u64,
    client: Client,
    target: ServiceTarget,
    options: ChatOptions,
}

/// A model that is being set up.
#[derive(Debug)]
#[must_use = "`build` makes the model"]
pub struct HttpModelBuilder {
    api: Api,
    model: String,
    name: Option<String>,
    url: Option<String>,
    key: Option<String>,
    context_window: u64,
    max_tokens: Option<u32>,
}

impl HttpModel {
    /// Begins a model; `model` is what the provider calls it.
    #[allow(clippy::new_ret_no_self, reason = "it has no required parts but these")]
    pub fn new(api: Api, model: impl Into<String>) -> HttpModelBuilder {
        HttpModelBuilder {
            api,
            model: model.into(),
            name: None,
            url: None,
            key: None,
            context_window: 128_000,
            max_tokens: None,
        }
    }
}

impl HttpModelBuilder {
    /// Sets the name that users select it by (default: what the provider calls it).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the URL of the server, up to the version (default: [`Api::url`]).
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Sets the key. Servers on this machine may need none.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the tokens that a request and its answer may have together (default: 128,000).
    pub fn context_window(mut self, tokens: u64) -> Self {
        self.context_window = tokens;
        self
    }

    /// Sets the tokens that an answer may have (default: the provider's).
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Makes the model. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// If the URL is none, or TLS cannot be set up.
    pub fn build(self) -> Result<HttpModel, BuildError> {
        let name = self.name.unwrap_or_else(|| self.model.clone());
        let fail = |reason: String| BuildError {
            model: name.clone(),
            reason,
        };
        let url = self.url.unwrap_or_else(|| self.api.url().to_owned());
        let parsed =
            reqwest::Url::parse(&url).map_err(|error| fail(format!("{url:?}: {error}")))?;
        // Paths are added to it.
        let url = format!("{}/", parsed.as_str().trim_end_matches('/'));
        let http = crate::client(|client| client);
        let http = http.map_err(|error| fail(error.to_string()))?;
        let client = Client::builder().with_reqwest(http).build();
        let client = client.map_err(|error| fail(error.to_string()))?;
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_tool_calls(true)
            .with_capture_content(false)
            .with_normalize_reasoning_content(true)
            .with_stream_header_timeout(SILENCE)
            .with_stream_read_timeout(SILENCE);
        if let Some(tokens) = self.max_tokens {
            options = options.with_max_tokens(tokens);
        }
        Ok(HttpModel {
            context_window: self.context_window,
            client,
            target: ServiceTarget {
                endpoint: Endpoint::from_owned(url),
                auth: AuthData::from_single(self.key.unwrap_or_default()),
                model: ModelIden::new(self.api.adapter(), self.model),
            },
            options,
            name,
        })
    }
}

impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn context_window(&self) -> u64 {
        self.context_window
    }

    fn answer<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async {
            let asked = request::chat(request);
            let target = self.target.clone();
            let stream = self
                .client
                .exec_chat_stream(target, asked, Some(&self.options));
            let stream = stream.await.map_err(|error| error::of(&self.name, error))?;
            answer::of(self.name.clone(), stream.stream).await
        })
    }
}
