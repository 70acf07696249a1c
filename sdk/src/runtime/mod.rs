//! What generated code calls. Not for applications: it may change with any release.
//!
//! Generated text calls this module only; behaviour is written by hand elsewhere.

pub use crate::error::{Error, HandlerError, HandlerResult, Result};
pub use crate::facts::{
    AccessRight, Attachment, Content, ContentTable, Login, MethodFacts, MethodTable, NamedValue,
    Retry, Scope,
};
#[doc(hidden)]
pub use crate::json::codegen::*;
pub use crate::json::{
    CoalescingRule, DecodeError, Described, EncodeError, IntoOption, Json, Leniency, Map, Meta,
    Patch, RawValue, TextPattern, TypeDescriptor, UnknownVariant, decode, decode_leniently,
    decode_result, encode,
};
pub use crate::jsonrpc::Cancellation;
pub use crate::peer::Peer;
pub use crate::service::{
    Context, HandlerFuture, IncomingNotification, IncomingRequest, Outcome, Service,
    as_ext_notification, as_ext_request, unknown, unsupported, unsupported_ext,
};
pub use crate::transcript::{MaskingRules, MethodMasking, PayloadMasking, Visible};
pub use crate::version::{IntoAgent, IntoClient, ProtocolVersion, single_version};

use std::pin::Pin;

use serde_core::{Serialize, de::DeserializeOwned};

/// Fails to compile where generated text meets the runtime of another version. Since generated text
/// calls what applications must not call, both have the same major and minor version.
///
/// # Panics
///
/// When the versions differ.
pub const fn generated_for(major: u64, minor: u64) {
    assert!(
        major == number(env!("CARGO_PKG_VERSION_MAJOR"))
            && minor == number(env!("CARGO_PKG_VERSION_MINOR")),
        concat!(
            "this code was generated for another version of acp-sdk than ",
            env!("CARGO_PKG_VERSION"),
            ": generate it again with acp-codegen of the same version"
        )
    );
}

/// Returns the number that `digits` are.
const fn number(digits: &str) -> u64 {
    match u64::from_str_radix(digits, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version is made of numbers"),
    }
}

/// A handler that owns what it needs.
pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A type that travels in a message.
pub trait Payload: Serialize + DeserializeOwned + Described + Send + Sync + 'static {}
impl<T: Serialize + DeserializeOwned + Described + Send + Sync + 'static> Payload for T {}

/// The params of a method.
pub trait Params: Payload {
    /// Returns the session that these params name, if the method has one.
    fn session_id(&self) -> Option<&str> {
        None
    }
}

/// A request: its name and types.
pub trait Method {
    /// The name on the wire.
    const NAME: &'static str;
    /// The params.
    type Params: Params;
    /// The result.
    type Result: Payload;
    /// The protocol version whose types these are, when the request negotiates the version.
    const NEGOTIATES: Option<u16> = None;
}

/// A notification: its name and type.
pub trait Notification {
    /// The name on the wire.
    const NAME: &'static str;
    /// The params.
    type Params: Params;
}

/// Deserializes a value of the peer whose leniencies are not reported.
pub(crate) fn decode_quietly<T: Payload>(raw: &RawValue) -> Option<T> {
    decode(raw.get(), &mut |_| {}).ok()
}

#[cfg(test)]
mod tests {
    use super::generated_for;

    #[test]
    fn text_of_another_version_is_refused_with_a_sentence() {
        let refused = std::panic::catch_unwind(|| generated_for(0, u64::MAX)).unwrap_err();
        let sentence = refused.downcast_ref::<&str>().unwrap();
        assert!(sentence.contains("generate it again"), "{sentence}");
    }
}
