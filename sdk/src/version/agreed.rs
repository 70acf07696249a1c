//! Which version a connection speaks, once that is known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::HandlerError;
use crate::runtime::{self, DecodeError, Json, decode};
use crate::v1::ProtocolVersion;

/// A version that this crate speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    First = 1,
    Second = 2,
}

impl Version {
    pub(super) fn of(number: u16) -> Option<Self> {
        match number {
            1 => Some(Self::First),
            2 => Some(Self::Second),
            _ => None,
        }
    }
}

/// The version of a connection; its clones are about the same connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Agreed(Arc<AtomicU8>);

const OPEN: u8 = 0;
/// A request `initialize` is being handled.
const ASKED: u8 = u8::MAX;

impl Agreed {
    pub(super) fn version(&self) -> Option<Version> {
        Version::of(self.0.load(Ordering::Acquire).into())
    }

    pub(super) fn settle(&self, version: Version) {
        self.0.store(version as u8, Ordering::Release);
    }

    /// Takes the one place for a request that may settle the version; nothing while another
    /// has it, or when the version is settled.
    pub(super) fn ask(&self) -> Option<Asking> {
        let taken = self
            .0
            .compare_exchange(OPEN, ASKED, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok().then(|| Asking(self.clone()))
    }
}

/// The place of a request that may settle the version; dropped, it leaves it open.
#[derive(Debug)]
pub(super) struct Asking(Agreed);

impl Asking {
    pub(super) fn settle(self, version: Version) {
        self.0.settle(version);
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let state = &self.0.0;
        // What is settled stays so.
        let _ = state.compare_exchange(ASKED, OPEN, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// The number in the member `protocolVersion` of params or a result, read as the types of
/// every version read it. The other members may be those of any version.
///
/// # Errors
///
/// What stands there instead, with its JSON Pointer.
pub(super) fn version_in(text: &str) -> Result<u16, DecodeError> {
    struct Any {
        version: Option<Json>,
    }
    runtime::members!(Any { version "protocolVersion": Option<Json> = optional });
    let at = |path: &str, message: String| DecodeError {
        path: path.to_owned(),
        message,
    };
    let any: Any = serde_json::from_str(text).map_err(|error| at("", error.to_string()))?;
    let version = any.version.as_ref().map_or("null", Json::get);
    let version: ProtocolVersion =
        decode(version, &mut |_| {}).map_err(|error| at("/protocolVersion", error.message))?;
    Ok(version.get())
}

/// A message that may not come before the version is settled.
pub(super) fn too_early(method: &str) -> HandlerError {
    HandlerError::new(
        crate::v1::ErrorCode::INVALID_REQUEST,
        format!("{method} came before `initialize` was answered: no protocol version is agreed on"),
    )
}
