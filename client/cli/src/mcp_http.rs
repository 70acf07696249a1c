//! `acp mcp --http`: the tool over streamable HTTP, for hosts that start no commands.
//!
//! Access to the address grants access to the agent, so hosts need a token. On loopback, one is made
//! unless the user gives or forbids one. Requests of web pages are rejected by their `Origin` and `Host`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::args::McpArgs;
use acp_client::McpServer;

/// The path of the endpoint.
const PATH: &str = "/mcp";

/// The variable with the token, if no file is given.
const TOKEN: &str = "ACP_MCP_TOKEN";

/// Minimum length of a token, in bytes.
const SHORTEST_TOKEN: usize = 16;

/// Maximum size of a token file, in bytes.
const LARGEST_FILE: u64 = 8 << 10;

/// Maximum number of connections, and of sessions.
const MOST: usize = 128;

/// Timeout for the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// Idle timeout of a session. A task may run long without a report.
const SILENCE: Duration = Duration::from_secs(3600);

/// Interval of retries when no connection can be accepted, such as without free descriptors.
const PAUSE: Duration = Duration::from_millis(100);

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// A listening socket.
pub(super) struct Http {
    listener: TcpListener,
    address: SocketAddr,
    hosts: Vec<String>,
    /// The SHA-256 of the required header.
    token: Option<[u8; 32]>,
    /// The token that was made because none was given.
    made_token: Option<String>,
}

impl Http {
    /// Binds the address.
    ///
    /// # Errors
    ///
    /// Fails when the token is missing or invalid, or the address is in use.
    pub(super) async fn listen(address: SocketAddr, args: &McpArgs) -> Result<Self, String> {
        let given = match args.no_token {
            true => None,
            false => token(args)?,
        };
        if given.is_none() && !address.ip().is_loopback() {
            return Err(format!(
                "{address} can be reached from other machines, and so needs a token: put one into a \
                 file, and give it by --http-token-file, or set {TOKEN}"
            ));
        }
        let made_token = match given.is_none() && !args.no_token {
            true => Some(random_token()?),
            false => None,
        };
        let token = given.or_else(|| made_token.clone());
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| format!("cannot listen to {address}: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let mut hosts = args.http_host.clone();
        hosts.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        hosts.push(address.ip().to_string());
        Ok(Self {
            listener,
            address,
            hosts,
            token: token.map(|token| hash(format!("Bearer {token}").as_bytes())),
            made_token,
        })
    }

    /// Returns the token that was made because none was given.
    pub(super) fn made_token(&self) -> Option<&str> {
        self.made_token.as_deref()
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves hosts until `stop` completes.
    pub(super) async fn serve(self, offers: &McpServer, stop: impl Future<Output = ()>) {
        let ended = CancellationToken::new();
        let _ended = ended.clone().drop_guard();
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(self.hosts)
            .enforce_origin_validation()
            .with_cancellation_token(ended);
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SILENCE);
        // Each session holds a clone, so that sessions are counted.
        let (counted, offers) = (Arc::new(()), offers.clone());
        let server = move || match Arc::strong_count(&counted) > MOST {
            true => Err(std::io::Error::other("there are too many sessions")),
            false => Ok(offers.clone().counted(counted.clone())),
        };
        let service = StreamableHttpService::new(server, Arc::new(sessions), config);
        let shared = Arc::new((service, self.token));
        let places = Arc::new(Semaphore::new(MOST));
        let mut connections = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = async {
                // The semaphore is never closed.
                let place = places.clone().acquire_owned().await;
                (place, self.listener.accept().await)
            };
            let (place, socket) = tokio::select! {
                accepted = accepted => accepted,
                Some(_) = connections.join_next() => continue,
                () = &mut stop => return,
            };
            let Ok((socket, _)) = socket else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let shared = shared.clone();
            connections.spawn(async move {
                let _place = place;
                let answer = hyper::service::service_fn(move |request: Request<Incoming>| {
                    let shared = shared.clone();
                    async move {
                        let (service, token) = &*shared;
                        Ok::<_, Infallible>(match refusal(&request, token.as_ref()) {
                            Some(refusal) => refusal,
                            None => service.handle(request).await,
                        })
                    }
                });
                let mut http = hyper::server::conn::http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(HEAD);
                // Errors of a client's connection do not concern the server.
                let _ = http.serve_connection(TokioIo::new(socket), answer).await;
            });
        }
    }
}

/// Rejects requests for another host, requests of web pages, and requests without the token.
fn refusal(request: &Request<Incoming>, token: Option<&[u8; 32]>) -> Option<Answer> {
    let given = request.headers().get(header::AUTHORIZATION);
    // Compares hashes, so that the duration reveals nothing about the token.
    let is_right = |token: &[u8; 32]| given.is_some_and(|given| hash(given.as_bytes()) == *token);
    let (status, text) = match token {
        Some(token) if !is_right(token) => (StatusCode::UNAUTHORIZED, "a bearer token is needed\n"),
        _ if request.uri().path() != PATH => (StatusCode::NOT_FOUND, "the server is at /mcp\n"),
        _ => return None,
    };
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    if status == StatusCode::UNAUTHORIZED {
        let scheme = header::HeaderValue::from_static("Bearer");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, scheme);
    }
    Some(response)
}

fn hash(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// Returns a token that nobody can guess.
fn random_token() -> Result<String, String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        format!(
            "cannot make a token: {error}. Put one into a file, and give it by --http-token-file"
        )
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads the token, if there is one.
fn token(args: &McpArgs) -> Result<Option<String>, String> {
    let (text, origin) = match &args.http_token_file {
        Some(path) => {
            let text = super::text_file::read(path, LARGEST_FILE);
            let text = text.and_then(|text| text.ok_or_else(|| "there is no such file".to_owned()));
            let text =
                text.map_err(|reason| format!("cannot read {}: {reason}", path.display()))?;
            (text, path.display().to_string())
        }
        None => match std::env::var(TOKEN) {
            Ok(text) => (text, TOKEN.to_owned()),
            Err(std::env::VarError::NotPresent) => return Ok(None),
            Err(error) => return Err(format!("cannot use {TOKEN}: {error}")),
        },
    };
    let token = text.trim();
    let is_visible = token.bytes().all(|byte| byte.is_ascii_graphic());
    match token.len() >= SHORTEST_TOKEN && is_visible {
        true => Ok(Some(token.to_owned())),
        false => Err(format!(
            "cannot use the token of {origin}: expected at least {SHORTEST_TOKEN} visible ASCII characters"
        )),
    }
}
