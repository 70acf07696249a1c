//! Which server is asked, and the requests to it.

use std::net::IpAddr;

use acp_server::internal::TOKEN_VARIABLE;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, Response, Url};

use super::super::remote::secrets;
use super::super::usage::usage;
use super::Prompt;
use crate::Failure;
use crate::deliver;
use crate::discovery::{Discovery, Found};

/// A server with its token.
pub(super) struct Site {
    url: Url,
    token: Option<HeaderValue>,
    /// The server of this user that has made the token.
    made_by: Option<Found>,
    client: Client,
}

/// Returns the address without the path of the endpoint for clients, which the log of a server names.
fn without_endpoint(mut url: Url) -> Url {
    let path = url.path().trim_end_matches('/').to_owned();
    if let Some(before) = path.strip_suffix("/acp") {
        url.set_path(before);
    }
    url
}

impl Site {
    /// Finds the server that the arguments mean.
    ///
    /// # Errors
    ///
    /// Wrong usage: none runs, several do, or the token would be sent without TLS.
    pub(super) fn find(args: &Prompt) -> Result<Self, Failure> {
        let (url, found) = match &args.url {
            Some(url) => (without_endpoint(url.clone()), None),
            None => {
                let found = only(args.port)?;
                (address(&found)?, Some(found))
            }
        };
        let given = match &args.token_file {
            Some(file) => Some(secrets::from_file(file)?.secret().to_owned()),
            None => std::env::var(TOKEN_VARIABLE).ok(),
        };
        let made_by = found.filter(|_| given.is_none());
        let token = given.or_else(|| made_by.as_ref().and_then(Found::token));
        if token.is_some() && url.scheme() != "https" && !is_loopback(&url) && !args.insecure {
            return usage(format!(
                "{url} is another machine, and the token would be sent without TLS. Use https, or --insecure"
            ));
        }
        let token = token.as_deref().map(header).transpose()?;
        let client = deliver::client()?;
        Ok(Self {
            url,
            token,
            made_by,
            client,
        })
    }

    /// Reads the token of a server again, which makes one each time that it starts.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub(super) fn read_token_again(&mut self) -> Result<(), Failure> {
        if let Some(token) = self.made_by.as_ref().and_then(Found::token) {
            self.token = Some(header(&token)?);
        }
        Ok(())
    }

    pub(super) async fn post(
        &self,
        path: &str,
        accept: &str,
        key: &str,
        body: String,
    ) -> reqwest::Result<Response> {
        let request = self.client.post(self.at(path)).body(body);
        let request = request.header("content-type", "application/json");
        let request = request
            .header("accept", accept)
            .header("idempotency-key", key);
        self.with_token(request).send().await
    }

    /// Opens the stream of events after a number.
    pub(super) async fn get(&self, path: &str, after: u64) -> reqwest::Result<Response> {
        let request = self.client.get(self.at(path));
        let request = request.header("last-event-id", after);
        self.with_token(request).send().await
    }

    /// Returns why the server cannot be asked.
    pub(super) fn lost(&self, error: &reqwest::Error) -> Failure {
        format!(
            "cannot reach the server at {}: {}",
            self.url,
            deliver::reason(error)
        )
        .into()
    }

    fn with_token(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.clone()),
            None => request,
        }
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url.as_str().trim_end_matches('/'))
    }
}

fn header(token: &str) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns the running server of a port, or the only one.
fn only(port: Option<u16>) -> Result<Found, Failure> {
    let mut alive = Discovery::of_user()?.list()?;
    alive.retain(|server| server.alive && port.is_none_or(|port| port == server.port));
    match (alive.len(), port) {
        (1, _) => Ok(alive.remove(0)),
        (0, Some(port)) => usage(format!("no acp-server runs on port {port}")),
        (0, None) => usage("no acp-server of this user runs. Start one: acp-server serve"),
        _ => {
            let ports: Vec<_> = alive.iter().map(|server| server.port.to_string()).collect();
            usage(format!(
                "several servers run (ports {}). Use --port PORT",
                ports.join(", ")
            ))
        }
    }
}

/// Returns the address of a server of this machine.
fn address(found: &Found) -> Result<Url, Failure> {
    let known = found.announcement.as_ref();
    let known = known.ok_or("the discovery file of the server cannot be read; use --url")?;
    // The name fits more certificates than the address.
    let host = match known.host.parse::<IpAddr>() {
        Ok(address) if known.scheme == "http" && !address.is_unspecified() => match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        },
        _ => "localhost".to_owned(),
    };
    Ok(Url::parse(&format!(
        "{}://{host}:{}/",
        known.scheme, known.port
    ))?)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
