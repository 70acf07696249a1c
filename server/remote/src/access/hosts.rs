//! Which hosts and origins a request may name, against DNS rebinding and foreign pages.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};

use super::host::{Host, Origin};
use crate::failure::Failure;

/// The hosts that requests may name, and the foreign origins whose pages may send requests.
///
/// Loopback names (`localhost`, `127.0.0.0/8`, `[::1]`, any port) are always allowed. A page of
/// another site can make a browser send requests to this server, and DNS rebinding makes them look
/// like requests to that site; such requests name a host or an origin that is not listed here.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    listed: Vec<Host>,
    addresses: bool,
    origins: Vec<Origin>,
}

/// Why a request was refused before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The host is missing, doubled, malformed or contradictory.
    InvalidHost(&'static str),
    /// The host is not allowed.
    ForbiddenHost,
    /// The origin is not allowed.
    ForbiddenOrigin,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let (status, error, message) = match refusal {
            Refusal::InvalidHost(reason) => (StatusCode::BAD_REQUEST, "invalid_host", reason),
            Refusal::ForbiddenHost => (
                StatusCode::FORBIDDEN,
                "forbidden_host",
                "the host of the request is not allowed. `--allow-host NAME` allows it",
            ),
            Refusal::ForbiddenOrigin => (
                StatusCode::FORBIDDEN,
                "forbidden_origin",
                "the origin of the request is not allowed. `--cors ORIGIN` allows it",
            ),
        };
        Self::new(status, error).message(message)
    }
}

/// Whose page sends a request that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// No page, or a page of this server.
    Own,
    /// A page of a listed origin.
    ListedOrigin,
}

impl Hosts {
    /// Allows loopback names only.
    #[must_use]
    pub fn loopback() -> Self {
        Self::default()
    }

    /// Allows a host; without a port, at every port.
    #[must_use]
    pub fn allow(mut self, host: Host) -> Self {
        self.listed.push(host);
        self
    }

    /// Allows every host that is an IP address, for servers bound to all addresses of a machine.
    ///
    /// Rebinding needs a name: a page whose host is an address was served from that address.
    #[must_use]
    pub fn allow_addresses(mut self) -> Self {
        self.addresses = true;
        self
    }

    /// Allows requests of the pages of an origin (CORS).
    #[must_use]
    pub fn allow_origin(mut self, origin: Origin) -> Self {
        self.origins.push(origin);
        self
    }

    /// Returns whether pages of other origins may send requests at all.
    pub(super) fn has_origins(&self) -> bool {
        !self.origins.is_empty()
    }

    /// Checks host and origin of a request, which came over TLS if `tls` is true.
    pub(super) fn check(&self, request: &Parts, tls: bool) -> Result<Sender, Refusal> {
        let host = host_of(request)?;
        let listed = || self.listed.iter().any(|entry| entry.covers(&host));
        let by_address = self.addresses && host.is_address();
        if !(host.is_loopback() || by_address || listed()) {
            return Err(Refusal::ForbiddenHost);
        }
        let origin = match single(&request.headers, &header::ORIGIN) {
            Single::None => return Ok(Sender::Own),
            Single::One(text) => text.parse::<Origin>(),
            Single::Invalid => return Err(Refusal::ForbiddenOrigin),
        };
        let origin = origin.map_err(|_| Refusal::ForbiddenOrigin)?;
        if origin.is_of(&host, tls) {
            Ok(Sender::Own)
        } else if self.origins.contains(&origin) {
            Ok(Sender::ListedOrigin)
        } else {
            Err(Refusal::ForbiddenOrigin)
        }
    }
}

/// Returns the host that a request names. If it names one twice, both must be equal.
fn host_of(request: &Parts) -> Result<Host, Refusal> {
    let invalid = Refusal::InvalidHost;
    let parse = |text: &str| {
        let host = text.parse::<Host>();
        host.map_err(|_| invalid("the host of the request is malformed"))
    };
    let header = match single(&request.headers, &header::HOST) {
        Single::None => None,
        Single::One(text) => Some(parse(text)?),
        Single::Invalid => return Err(invalid("expected one Host header, got several or no text")),
    };
    // HTTP/2 has the authority among its pseudo-headers; HTTP/1.1 has one in the absolute form.
    let authority = match request.uri.authority() {
        Some(authority) => Some(parse(authority.as_str())?),
        None => None,
    };
    match (header, authority) {
        (Some(host), Some(authority)) if host != authority => Err(invalid(
            "Host header and request target name different hosts",
        )),
        (Some(host), _) => Ok(host),
        // Only HTTP/2 and later may do without the header.
        (None, Some(authority)) if request.version >= axum::http::Version::HTTP_2 => Ok(authority),
        _ => Err(invalid("the Host header is missing")),
    }
}

/// A header that may occur once.
enum Single<'a> {
    None,
    One(&'a str),
    /// Several, or not ASCII.
    Invalid,
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Single<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Single::None,
        (Some(value), None) => value.to_str().map_or(Single::Invalid, Single::One),
        _ => Single::Invalid,
    }
}
