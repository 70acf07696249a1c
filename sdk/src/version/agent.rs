//! The gate in front of agents of version 2: it settles the version at `initialize` and then
//! passes messages to the agent of that version.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::agreed::{Agreed, Asking, Version, too_early, version_in};
use super::{Both, IntoAgent, V1, V2};
use crate::error::HandlerError;
use crate::json::encode_raw;
use crate::runtime::{
    HandlerFuture, IncomingNotification, IncomingRequest, Method as _, Peer, Service, decode,
};
use crate::{v1, v2};

const INITIALIZE: &str = v2::methods::Initialize::NAME;

impl<A: v2::Agent> IntoAgent<V2> for A {
    type Client = v2::ClientHandle;

    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Client) {
        let gate = Gate {
            agreed: Agreed::default(),
            first: None,
            second: Box::new(Second::new(self)),
        };
        (gate, v2::ClientHandle::new)
    }
}

impl<A: v1::Agent, B: v2::Agent> IntoAgent<Both<V1, V2>> for Both<A, B> {
    /// What to call the client with depends on the version: handlers are given it.
    type Client = Peer;

    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Client) {
        let gate = Gate {
            agreed: Agreed::default(),
            first: Some(Box::new(First::new(self.v1))),
            second: Box::new(Second::new(self.v2)),
        };
        (gate, std::convert::identity)
    }
}

/// An agent of one version.
trait Speaker: Send + Sync {
    /// Handles `initialize`; `asking` is given unless the version is settled already.
    fn initialize(&self, request: IncomingRequest<'_>, asking: Option<Asking>) -> HandlerFuture;

    /// Everything else.
    fn service(&self) -> &dyn Service;
}

struct Gate {
    agreed: Agreed,
    first: Option<Box<dyn Speaker>>,
    second: Box<dyn Speaker>,
}

impl Service for Gate {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        match (self.speaker(), request.method() == INITIALIZE) {
            (Some(speaker), false) => speaker.service().request(request),
            (None, false) => {
                let error = too_early(request.method());
                request.refuse(error)
            }
            (_, true) => self.initialize(request),
        }
    }

    fn notification(&self, note: IncomingNotification<'_>) -> HandlerFuture {
        match self.speaker() {
            Some(speaker) => speaker.service().notification(note),
            None => {
                let error = too_early(note.method());
                note.skip(&error)
            }
        }
    }

    fn takes_batches(&self) -> bool {
        self.first.is_none() || self.agreed.version() == Some(Version::Second)
    }
}

impl Gate {
    fn speaker(&self) -> Option<&dyn Speaker> {
        match self.agreed.version()? {
            Version::First => self.first.as_deref(),
            Version::Second => Some(&*self.second),
        }
    }

    fn initialize(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        let params = request.params().map_or("{}", RawValue::get);
        // As for other methods, null stands for params of which none are given.
        let params = if params == "null" { "{}" } else { params };
        let asked = match version_in(params) {
            Ok(asked) => asked,
            Err(error) => {
                return request.refuse(HandlerError::invalid_params(&error.path, error.message));
            }
        };
        let (speaker, asking) = match (self.speaker(), self.agreed.ask()) {
            (None, None) => {
                let error = too_early("another `initialize`");
                return request.refuse(error);
            }
            (None, asking) => (self.for_version(asked), asking),
            // The version stays, so whoever speaks the first serves any request for another,
            // and whoever speaks the second needs at least that.
            (Some(speaker), _) => {
                let served = asked >= 2 || self.agreed.version() == Some(Version::First);
                (served.then_some(speaker), None)
            }
        };
        match speaker {
            Some(speaker) => match readable(params, asked) {
                Some(params) => speaker.initialize(request.with_params(&params), asking),
                None => speaker.initialize(request, asking),
            },
            None => request.refuse(unsupported(asked)),
        }
    }

    /// Who serves a client that asks for a version. One that asks for less than there is gets
    /// the first, whose clients expect an answer rather than an error.
    fn for_version(&self, asked: u16) -> Option<&dyn Speaker> {
        if asked >= 2 {
            Some(&*self.second)
        } else {
            self.first.as_deref()
        }
    }
}

struct First<A> {
    agent: Arc<A>,
    service: v1::AgentService<A>,
}

impl<A: v1::Agent> First<A> {
    fn new(agent: A) -> Self {
        let agent = Arc::new(agent);
        let service = v1::AgentService::new(agent.clone());
        Self { agent, service }
    }
}

impl<A: v1::Agent> Speaker for First<A> {
    fn initialize(&self, request: IncomingRequest<'_>, asking: Option<Asking>) -> HandlerFuture {
        let agent = self.agent.clone();
        request.answer(move |cx, params| async move {
            let mut answer = agent.initialize(&v1::AgentContext::new(cx), params).await?;
            answer.protocol_version = v1::ProtocolVersion::V1;
            if let Some(asking) = asking {
                asking.settle(Version::First);
            }
            Ok(answer)
        })
    }

    fn service(&self) -> &dyn Service {
        &self.service
    }
}

struct Second<A> {
    agent: Arc<A>,
    service: v2::AgentService<A>,
}

impl<A: v2::Agent> Second<A> {
    fn new(agent: A) -> Self {
        let agent = Arc::new(agent);
        let service = v2::AgentService::new(agent.clone());
        Self { agent, service }
    }
}

impl<A: v2::Agent> Speaker for Second<A> {
    fn initialize(&self, request: IncomingRequest<'_>, asking: Option<Asking>) -> HandlerFuture {
        let agent = self.agent.clone();
        request.answer(move |cx, params| async move {
            let mut answer = agent.initialize(&v2::AgentContext::new(cx), params).await?;
            answer.protocol_version = v2::ProtocolVersion::V2;
            if let Some(asking) = asking {
                asking.settle(Version::Second);
            }
            Ok(answer)
        })
    }

    fn service(&self) -> &dyn Service {
        &self.service
    }
}

/// The params of a client of a later version, if they cannot be read as they are: with the
/// one member that this version cannot do without.
fn readable(params: &str, asked: u16) -> Option<Box<RawValue>> {
    if asked <= 2 || decode::<v2::InitializeRequest>(params, &mut |_| {}).is_ok() {
        return None;
    }
    let mut params: serde_json::Map<_, _> = serde_json::from_str(params).ok()?;
    let nobody = serde_json::json!({ "name": "unknown", "version": "unknown" });
    params.insert("info".to_owned(), nobody);
    encode_raw(&params).ok()
}

/// Nobody here speaks a version that low.
fn unsupported(asked: u16) -> HandlerError {
    let message = format!("protocol version {asked} is not supported: this agent speaks 2");
    let data = v2::UnsupportedProtocolVersionErrorData::new(asked, vec![v2::ProtocolVersion::V2]);
    let error = v2::Error::new(v2::ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message);
    error.with_data(data).into()
}
