//! What differs between the protocol versions in the steps that checks consist of.
//!
//! A check is written once. An [`Adapter`] turns its steps into the messages of a version: the
//! handshake, what an agent declares, and the end of a turn.

mod v1;
mod v2;

use std::str::FromStr;

use serde_json::{Value, json};

use super::Recording;
use crate::wire::{Party, Version, capability};

/// The capabilities that the client declares.
#[derive(Clone, Debug, PartialEq)]
pub enum Caps {
    /// Everything.
    Full,
    /// Nothing: no capabilities at all.
    None,
    /// These.
    These(Value),
}

impl Caps {
    /// Returns the params of `initialize` that declare this.
    #[must_use]
    pub fn initialize(&self, version: Version) -> Value {
        let adapter = of(version);
        let mut params = json!({"protocolVersion": version.number()});
        let (info, capabilities) = adapter.client_members;
        params[info] = json!({"name": "acp-conformance", "version": env!("CARGO_PKG_VERSION")});
        match self {
            Self::Full => params[capabilities] = (adapter.all_capabilities)(),
            Self::None => {}
            Self::These(value) => params[capabilities] = value.clone(),
        }
        params
    }
}

/// What an agent may declare that checks depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// A method of version 1, which the documents say the capability of.
    Method(&'static str),
    /// `additionalDirectories` of a session.
    AdditionalDirectories,
    /// Images in prompts.
    Image,
    /// Audio in prompts.
    Audio,
    /// Embedded resources in prompts.
    EmbeddedContext,
    /// MCP servers over stdio.
    McpStdio,
    /// MCP servers over HTTP.
    McpHttp,
}

impl Capability {
    /// `session/list`.
    pub const LIST: Self = Self::Method("session/list");
    /// A session is opened again, with its history.
    pub const LOAD: Self = Self::Method("session/load");
    /// A session is opened again, without its history.
    pub const RESUME: Self = Self::Method("session/resume");
    /// `session/close`.
    pub const CLOSE: Self = Self::Method("session/close");
    /// `session/delete`.
    pub const DELETE: Self = Self::Method("session/delete");
    /// `logout`.
    pub const LOGOUT: Self = Self::Method("logout");
}

impl FromStr for Capability {
    type Err = String;

    /// A method, or the name of the variant with hyphens.
    fn from_str(name: &str) -> Result<Self, String> {
        let methods = [
            Self::LIST,
            Self::LOAD,
            Self::RESUME,
            Self::CLOSE,
            Self::DELETE,
            Self::LOGOUT,
        ];
        let is_named = |known: &Self| matches!(known, Self::Method(method) if *method == name);
        match name {
            "additional-directories" => Ok(Self::AdditionalDirectories),
            "image" => Ok(Self::Image),
            "audio" => Ok(Self::Audio),
            "embedded-context" => Ok(Self::EmbeddedContext),
            "mcp-stdio" => Ok(Self::McpStdio),
            "mcp-http" => Ok(Self::McpHttp),
            _ => {
                let method = methods.into_iter().find(is_named);
                method.ok_or_else(|| format!("unknown capability `{name}`"))
            }
        }
    }
}

/// Where an agent declares a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: every agent of the version has it.
    Baseline,
    /// At this place of its capabilities, as an object or `true`.
    At(&'static str),
}

impl Place {
    fn of_method(version: Version, method: &str) -> Self {
        capability(version, Party::Agent, method).map_or(Self::Baseline, Self::At)
    }
}

/// The outcome of the turn that the prompt at the first place began, if the message at the second place
/// ends it: an object with the stop reason, or the error.
type TurnEnd = fn(&Recording, usize, usize) -> Option<Result<Value, Value>>;

/// A protocol version, as far as the steps of checks differ in it.
pub(super) struct Adapter {
    /// The members of the params of `initialize` with the client's name and capabilities.
    client_members: (&'static str, &'static str),
    /// The members of the result of `initialize` with the agent's name and capabilities.
    pub(super) agent_members: (&'static str, &'static str),
    /// The capabilities of a client that can do everything.
    pub(super) all_capabilities: fn() -> Value,
    /// Where an agent declares a capability.
    pub(super) place: fn(Capability) -> Place,
    /// The methods that log in and out.
    pub(super) login_methods: (&'static str, &'static str),
    /// The method that opens a session again with its history.
    pub(super) load: &'static str,
    /// What the params of that method have besides those of every setup.
    pub(super) load_params: fn() -> Option<(&'static str, Value)>,
    pub(super) turn_end: TurnEnd,
    /// Whether an answer to `session/prompt` means that the turn has begun only.
    pub(super) answers_early: bool,
}

/// Returns the adapter of a version.
pub(super) fn of(version: Version) -> &'static Adapter {
    match version {
        Version::V1 => &v1::ADAPTER,
        Version::V2 => &v2::ADAPTER,
    }
}
