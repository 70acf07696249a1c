//! What generated code is written against, and what untyped code can use.
//!
//! Generated text calls this module only; behaviour lives here, by hand.

mod context;
mod peer;
mod service;

pub use self::context::Context;
pub use self::peer::Peer;
pub use self::service::{
    HandlerFuture, IncomingNotification, IncomingRequest, Service, unsupported, unsupported_ext,
};
pub use crate::error::{Error, HandlerError, HandlerResult, Result};
#[doc(hidden)]
pub use crate::json::codegen::*;
pub use crate::json::{
    DecodeError, Described, EncodeError, Json, Leniency, Map, Meta, Patch, RawValue,
    TypeDescriptor, UnknownVariant, decode, decode_leniently, decode_result, encode,
};
pub use crate::transcript::{MaskingRules, MethodMasking, Visible};
pub use crate::version::{IntoAgent, IntoClient, ProtocolVersion, single_version};

use std::pin::Pin;

use serde_core::{Serialize, de::DeserializeOwned};

/// A future that owns what it needs.
pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A type that travels in a message.
pub trait Payload: Serialize + DeserializeOwned + Described + Send + Sync + 'static {}
impl<T: Serialize + DeserializeOwned + Described + Send + Sync + 'static> Payload for T {}

/// The params of a method.
pub trait Params: Payload {
    /// The session that these params are about, if the method has one.
    fn session_id(&self) -> Option<&str> {
        None
    }
}

/// A request: its name and types.
pub trait Method {
    /// As on the wire.
    const NAME: &'static str;
    /// What is asked.
    type Params: Params;
    /// What is answered.
    type Result: Payload;
    /// The protocol version whose types these are, when the request negotiates the version.
    const NEGOTIATES: Option<u16> = None;
}

/// A notification: its name and type.
pub trait Notification {
    /// As on the wire.
    const NAME: &'static str;
    /// What is told.
    type Params: Params;
}

/// A value of the peer's that is worth having but not worth a complaint.
pub(crate) fn decode_quietly<T: Payload>(raw: &RawValue) -> Option<T> {
    decode(raw.get(), &mut |_| {}).ok()
}
