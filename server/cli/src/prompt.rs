//! `acp-server prompt`: sends a prompt to a running server and writes the answer.

mod answer;
mod server;

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::answer::{Answer, End, Frames};
use self::server::Site;
use super::settings::SettingsArgs;
use super::usage::usage;
use super::{Failure, note};

/// How often a lost connection is opened again before the command fails.
const TRIES: u32 = 10;

/// The time between two tries.
const PAUSE: Duration = Duration::from_secs(1);

/// The time that the server is asked to wait for the end of a turn; then it is asked again.
const WAIT: u64 = 600;

/// The most bytes of a prompt from standard input.
const PROMPT_BYTES: u64 = 16 << 20;

/// Sends a prompt to a running server and writes the agent's answer to standard output.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --session a session is created; its id is written to standard error. A lost connection is
opened again, for 10 s, and the prompt runs once all the same, also when a server with a store on
the disk is started again meanwhile. Ctrl-C ends the command; the turn goes on. A question of the agent is named on standard error; answer it
on the page of the server, by a client, or by POST /tool/approve.

Exit codes: 0 when the turn ended by itself, 1 when it failed, was cancelled or refused, or the
server cannot be reached, 2 for wrong usage, and when no server of this user runs.")]
pub struct Prompt {
    /// What to say; `-` reads it from standard input
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
    /// Server of this user on this port [default: the only one that runs]
    #[arg(long, value_name = "PORT", conflicts_with = "url")]
    port: Option<u16>,
    /// Address of a server, such as https://agents.example
    #[arg(long, value_name = "URL")]
    url: Option<reqwest::Url>,
    /// File with the token; without it, ACP_SERVER_TOKEN of the environment, or the one that the
    /// server of this user has made
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Sends the token without TLS to another machine: everybody on the way can read it
    #[arg(long)]
    insecure: bool,
    /// Agent of a new session, where the server has several [default: the first one]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Session to continue
    #[arg(long, value_name = "ID", conflicts_with_all = ["agent", "cwd", "model", "mode", "option"])]
    session: Option<String>,
    /// Working directory of a new session, on the machine of the server [default: this directory]
    #[arg(long, value_name = "DIRECTORY")]
    cwd: Option<PathBuf>,
    /// What a new session begins with.
    #[command(flatten)]
    settings: SettingsArgs,
    /// Writes the result as JSON: output, tool calls, tokens and cost
    #[arg(long)]
    json: bool,
}

/// Sends a prompt and writes the answer.
pub(super) async fn prompt(args: Prompt) -> Result<(), Failure> {
    let site = Site::find(&args)?;
    let (path, body) = args.request()?;
    // With a name, the request can be sent again.
    let key = acp_server_remote::Token::random()?;
    let mut request = Request {
        site,
        path,
        body: body.to_string(),
        key: key.secret().to_owned(),
    };
    // The events say where the turn is, whatever is written of them.
    let end = request.stream(args.json).await?;
    match args.json {
        true => request.result().await,
        false => ended(end.success, end.reason.as_deref(), end.error.as_deref()),
    }
}

impl Prompt {
    /// Returns path and body of the request.
    fn request(&self) -> Result<(String, Value), Failure> {
        let text = match &self.text[..] {
            [text] if text == "-" => {
                let mut text = String::new();
                std::io::stdin()
                    .take(PROMPT_BYTES + 1)
                    .read_to_string(&mut text)
                    .map_err(|error| format!("cannot read the prompt: {error}"))?;
                if text.len() as u64 > PROMPT_BYTES {
                    return usage(format!("the prompt is longer than {PROMPT_BYTES} bytes"));
                }
                text
            }
            words => words.join(" "),
        };
        if let Some(id) = &self.session {
            let mut path = reqwest::Url::parse("http://localhost/sessions")?;
            if let Ok(mut segments) = path.path_segments_mut() {
                segments.push(id).push("turns");
            }
            return Ok((path.path().to_owned(), json!({ "prompt": text })));
        }
        let cwd = match &self.cwd {
            Some(cwd) => cwd.clone(),
            None => std::env::current_dir()
                .map_err(|error| format!("there is no current directory; use --cwd: {error}"))?,
        };
        if !cwd.is_absolute() {
            return usage(format!("--cwd {} is not an absolute path", cwd.display()));
        }
        let settings = self.settings.settings();
        let options: std::collections::BTreeMap<_, _> = settings.options.into_iter().collect();
        let body = json!({
            "prompt": text, "cwd": cwd, "agent": self.agent, "model": settings.model, "mode": settings.mode, "options": options,
        });
        Ok(("/sessions".to_owned(), body))
    }
}

/// A prompt that may be sent more than once.
struct Request {
    site: Site,
    path: String,
    body: String,
    key: String,
}

impl Request {
    /// Asks for the result and writes it.
    async fn result(&mut self) -> Result<(), Failure> {
        let path = format!("{}?wait={WAIT}", self.path);
        loop {
            let response = self.send(&path, "application/json").await?;
            let text = response
                .text()
                .await
                .map_err(|error| self.site.lost(&error))?;
            let result: Value = serde_json::from_str(&text)
                .map_err(|error| format!("the server did not answer with JSON: {error}"))?;
            if result["status"] == "running" {
                continue;
            }
            let output = &mut std::io::stdout().lock();
            writeln!(output, "{text}")?;
            let error = result["error"].as_str();
            return ended(
                result["success"] == true,
                result["stop_reason"].as_str(),
                error,
            );
        }
    }

    /// Writes the answer as it comes, or only what a person must know. Returns how the turn ended.
    async fn stream(&mut self, is_quiet: bool) -> Result<End, Failure> {
        let path = self.path.clone();
        let mut response = self.send(&path, "text/event-stream").await?;
        let session = match path.strip_suffix("/turns") {
            Some(session) => Some(session.to_owned()),
            None => {
                let place = response.headers().get("location");
                let place = place.and_then(|place| place.to_str().ok());
                if let Some(id) = place.and_then(|place| place.strip_prefix("/sessions/")) {
                    note(&format!("session: {id}"));
                }
                place.map(str::to_owned)
            }
        };
        let events = session.map(|session| format!("{session}/events"));
        let mut answer = Answer::new(std::io::stdout().is_terminal(), is_quiet);
        let mut tries = TRIES;
        loop {
            let mut frames = Frames::default();
            while let Ok(Some(piece)) = response.chunk().await {
                tries = TRIES;
                for frame in frames.read(&piece)? {
                    answer.show(&frame)?;
                }
                if let Some(end) = answer.end() {
                    return Ok(end.clone());
                }
            }
            // The stream was cut. What it has shown is not shown again.
            let events = events.as_deref().ok_or("the connection was lost")?;
            response = self.go_on(events, answer.last_event(), &mut tries).await?;
        }
    }

    /// Opens the stream of events again after a number.
    async fn go_on(
        &mut self,
        events: &str,
        after: u64,
        tries: &mut u32,
    ) -> Result<Response, Failure> {
        loop {
            let Some(left) = tries.checked_sub(1) else {
                return Err("the connection is lost again and again".into());
            };
            *tries = left;
            sleep(PAUSE).await;
            // A server that was started again has made another one.
            self.site.read_token_again()?;
            match self.site.get(events, after).await {
                Ok(again) if again.status() == StatusCode::UNAUTHORIZED && left > 0 => {}
                Ok(again) => return checked(again, "to show the rest of the answer").await,
                Err(error) if left == 0 => return Err(self.site.lost(&error)),
                Err(_) => {}
            }
        }
    }

    /// Sends the prompt, again if the connection is lost.
    async fn send(&mut self, path: &str, accept: &str) -> Result<Response, Failure> {
        let mut tries = TRIES;
        loop {
            let sent = self.site.post(path, accept, &self.key, self.body.clone());
            match (sent.await, tries.checked_sub(1)) {
                (Ok(response), Some(left))
                    if response.status() == StatusCode::SERVICE_UNAVAILABLE =>
                {
                    tries = left;
                }
                (Ok(response), _) => return checked(response, "the prompt").await,
                (Err(error), _) if error.is_connect() && tries == TRIES => {
                    return Err(self.site.lost(&error));
                }
                (Err(_), Some(left)) => tries = left,
                (Err(error), None) => return Err(self.site.lost(&error)),
            }
            sleep(PAUSE).await;
            self.site.read_token_again()?;
        }
    }
}

/// Returns the response, unless the server refuses something.
async fn checked(response: Response, what: &str) -> Result<Response, Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let text = response.text().await.unwrap_or_default();
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    let name = body["error"].as_str().unwrap_or("no reason");
    let why = body["message"].as_str().or(body["detail"].as_str());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let reason = acp_sdk::text::single_line(&format!("{name}{why}"));
    let hint = match status {
        StatusCode::UNAUTHORIZED => ". Use --token-file FILE or ACP_SERVER_TOKEN",
        _ => "",
    };
    let status = status.as_u16();
    Err(format!("the server refused {what} with {status}: {reason}{hint}").into())
}

/// Returns whether the turn did what it was to do.
fn ended(success: bool, reason: Option<&str>, error: Option<&str>) -> Result<(), Failure> {
    match (success, error, reason) {
        (true, ..) => Ok(()),
        (_, Some(error), _) => Err(format!("the turn failed: {error}").into()),
        (_, None, Some("cancelled")) => Err("the turn was cancelled".into()),
        (_, None, reason) => {
            let reason = reason.unwrap_or("unknown");
            Err(format!("the turn ended with the stop reason {reason}").into())
        }
    }
}
