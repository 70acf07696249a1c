//! Routes the messages of a connection to the implementation of its protocol version.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::ProtocolVersion;
use super::agreement::{Agreement, Negotiating, not_negotiated, version_in};
use crate::error::{HandlerError, Result};
use crate::json::encode_raw;
use crate::jsonrpc::{ErrorCode, RpcError, is_null, null_id};
use crate::runtime::{
    Cancellation, HandlerFuture, IncomingNotification, IncomingRequest, Json, MaskingRules, Peer,
    Service, decode,
};
use crate::sync::atomic::{AtomicBool, Ordering};

/// The request that negotiates the version, in every version.
pub(super) const INITIALIZE: &str = "initialize";

/// A response to `initialize`, of the type of its version.
pub(super) type AnyResponse = Arc<dyn Any + Send + Sync>;

/// What negotiation needs of a version.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) number: u16,
    null_ids: bool,
    late_initialize: bool,
    unsupported_code: Option<i32>,
    initialize_defaults: &'static [(&'static str, &'static str)],
    reads_request: fn(&str) -> bool,
    pub(super) decode_response: fn(&Peer, &RawValue) -> Result<AnyResponse>,
}

impl Row {
    pub(super) fn of<V: ProtocolVersion>() -> Self {
        Self {
            number: V::NUMBER,
            null_ids: V::NULL_IDS,
            late_initialize: V::LATE_INITIALIZE,
            unsupported_code: V::UNSUPPORTED_CODE,
            initialize_defaults: V::INITIALIZE_DEFAULTS,
            reads_request: |params| decode::<V::InitializeRequest>(params, &mut |_| {}).is_ok(),
            decode_response: |peer, result| {
                let response: V::InitializeResponse =
                    peer.decode(INITIALIZE, Some(V::NUMBER), result)?;
                Ok(Arc::new(response))
            },
        }
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}", self.number)
    }
}

/// The implementation of a version.
pub(super) struct Entry {
    pub(super) row: Row,
    service: Box<dyn Service>,
}

impl Entry {
    pub(super) fn new<V: ProtocolVersion>(service: impl Service) -> Self {
        Self {
            row: Row::of::<V>(),
            service: Box::new(service),
        }
    }
}

/// The implementations of one end of a connection, by version. One of them serves the
/// connection from a successful `initialize` on; before, all other messages are refused.
pub(super) struct VersionRouter {
    agreement: Agreement,
    /// In ascending order.
    entries: Vec<Entry>,
    /// Whether this end answers `initialize`, and so settles the version.
    answers: bool,
    /// Whether a request other than `initialize` has arrived since the version was settled.
    has_served: AtomicBool,
}

impl VersionRouter {
    /// A router for the end that answers `initialize`.
    pub(super) fn agent(entries: Vec<Entry>) -> Self {
        Self {
            agreement: Agreement::default(),
            entries,
            answers: true,
            has_served: AtomicBool::new(false),
        }
    }

    /// A router for the end that sends `initialize`, and settles `agreement` by the answer.
    pub(super) fn client(entries: Vec<Entry>, agreement: Agreement) -> Self {
        Self {
            agreement,
            entries,
            answers: false,
            has_served: AtomicBool::new(false),
        }
    }

    fn agreed(&self) -> Option<&Entry> {
        let version = self.agreement.version()?;
        self.entries
            .iter()
            .find(|entry| entry.row.number == version)
    }

    fn initialize(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        let params = request.params().map_or("{}", RawValue::get);
        // As for other methods, null stands for absent params.
        let params = if params == "null" { "{}" } else { params };
        let requested = match version_in(params) {
            Ok(requested) => requested,
            Err(error) => {
                return request.refuse(HandlerError::invalid_params(&error.path, error.message));
            }
        };
        let (entry, negotiating) = match (self.agreed(), self.agreement.reserve()) {
            (None, None) => {
                return request.refuse(not_negotiated("another `initialize`"));
            }
            (None, Some(reservation)) => {
                (self.select(requested), Negotiating::settles(reservation))
            }
            (Some(entry), _)
                if !entry.row.late_initialize && self.has_served.load(Ordering::Relaxed) =>
            {
                return request.refuse(late_initialize(entry.row.number));
            }
            (Some(entry), _) => {
                let serves = serves(&entry.row, requested);
                (serves.then_some(entry), Negotiating::repeats())
            }
        };
        let Some(entry) = entry else {
            return request.refuse(self.unsupported(requested));
        };
        if is_null(request.id()) && !entry.row.null_ids {
            return request.refuse(HandlerError::response(null_id(INITIALIZE)));
        }
        let patched = readable(&entry.row, params, requested);
        let request = request.negotiating(negotiating);
        entry.service.request(match &patched {
            Some(params) => request.with_params(params),
            None => request,
        })
    }

    /// The implementation for a client that asks for a version: the highest that is not above
    /// it, else the lowest, if agents of that version answer clients of older ones.
    fn select(&self, requested: u16) -> Option<&Entry> {
        let not_above = |entry: &&Entry| entry.row.number <= requested;
        let lowest = self.entries.first();
        let highest = self.entries.iter().rfind(not_above);
        highest.or(lowest.filter(|lowest| serves(&lowest.row, requested)))
    }

    /// The error for a version that is older than every supported one.
    fn unsupported(&self, requested: u16) -> HandlerError {
        let supported: Vec<u16> = match self.agreed() {
            Some(entry) => vec![entry.row.number],
            None => self.entries.iter().map(|entry| entry.row.number).collect(),
        };
        let code = self
            .entries
            .iter()
            .find_map(|entry| entry.row.unsupported_code)
            .map_or(ErrorCode::INVALID_REQUEST, ErrorCode::new);
        let numbers: Vec<String> = supported.iter().map(u16::to_string).collect();
        let message = format!(
            "protocol version {requested} is not supported; supported: {}",
            numbers.join(", ")
        );
        let data = serde_json::json!({ "requested": requested, "supported": supported });
        HandlerError::response(RpcError::new(code, message).with_data(Json::from(data)))
    }
}

impl Service for VersionRouter {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        match self.agreed() {
            _ if self.answers && request.method() == INITIALIZE => self.initialize(request),
            Some(entry) => {
                self.has_served.store(true, Ordering::Relaxed);
                entry.service.request(request)
            }
            None => {
                let error = not_negotiated(request.method());
                request.refuse(error)
            }
        }
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        match self.agreed() {
            Some(entry) => entry.service.notification(notification),
            None => {
                let error = not_negotiated(notification.method());
                notification.ignore(&error)
            }
        }
    }

    fn has_null_ids(&self) -> bool {
        // Before, `initialize` depends on the version that it asks for, and all else is refused.
        self.agreed().is_none_or(|entry| entry.row.null_ids)
    }

    fn cancellation(&self) -> &'static Cancellation {
        let entry = self.agreed().or_else(|| self.entries.first());
        entry.map_or(&crate::v1::CANCELLATION, |entry| {
            entry.service.cancellation()
        })
    }

    fn masking_rules(&self) -> Vec<&'static MaskingRules> {
        let services = self.entries.iter().map(|entry| &entry.service);
        services
            .flat_map(|service| service.masking_rules())
            .collect()
    }
}

/// Whether agents of a version answer clients that ask for `requested`.
fn serves(row: &Row, requested: u16) -> bool {
    requested >= row.number || row.unsupported_code.is_none()
}

/// The error for an `initialize` that follows other requests.
fn late_initialize(version: u16) -> HandlerError {
    let message = format!(
        "`initialize` after another request, which version {version} does not allow; open another \
         connection"
    );
    HandlerError::new(ErrorCode::INVALID_REQUEST, message)
}

/// The params of a client of a later version when they do not have the form of this one: with
/// stand-ins for the members that this version requires.
fn readable(row: &Row, params: &str, requested: u16) -> Option<Box<RawValue>> {
    if requested <= row.number || row.initialize_defaults.is_empty() || (row.reads_request)(params)
    {
        return None;
    }
    let mut params: serde_json::Map<_, _> = serde_json::from_str(params).ok()?;
    for (name, value) in row.initialize_defaults {
        params.insert((*name).to_owned(), serde_json::from_str(value).ok()?);
    }
    encode_raw(&params).ok()
}

/// The service of an agent of one version: behind a router when agents of that version refuse
/// clients of older ones, else as it is.
pub fn single_version<V: ProtocolVersion>(service: impl Service) -> impl Service {
    match V::UNSUPPORTED_CODE {
        None => SingleVersion::Direct(service),
        Some(_) => SingleVersion::Routed(VersionRouter::agent(vec![Entry::new::<V>(service)])),
    }
}

enum SingleVersion<S> {
    Direct(S),
    Routed(VersionRouter),
}

impl<S: Service> Service for SingleVersion<S> {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        match self {
            Self::Direct(service) => service.request(request),
            Self::Routed(router) => router.request(request),
        }
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        match self {
            Self::Direct(service) => service.notification(notification),
            Self::Routed(router) => router.notification(notification),
        }
    }

    fn has_null_ids(&self) -> bool {
        match self {
            Self::Direct(service) => service.has_null_ids(),
            Self::Routed(router) => router.has_null_ids(),
        }
    }

    fn cancellation(&self) -> &'static Cancellation {
        match self {
            Self::Direct(service) => service.cancellation(),
            Self::Routed(router) => router.cancellation(),
        }
    }

    fn masking_rules(&self) -> Vec<&'static MaskingRules> {
        match self {
            Self::Direct(service) => service.masking_rules(),
            Self::Routed(router) => router.masking_rules(),
        }
    }
}
