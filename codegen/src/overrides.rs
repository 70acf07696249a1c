//! Overrides for the bundled documents, with a reason per row.
//!
//! No other code names a definition. A table belongs to one document and applies to no
//! other. An unused row is an error.

use std::cell::RefCell;
use std::collections::BTreeSet;

use acp_schema::Document;

use crate::Error;

/// An override and its reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The definition or method that the row is about.
    pub(crate) at: &'static str,
    pub(crate) hint: Hint,
    /// For readers of the table.
    #[allow(dead_code, reason = "documentation of the row")]
    pub(crate) reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Hint {
    /// The Rust name of the method whose params are the definition `at`.
    MethodName(&'static str),
    /// The trait has no default for the method `at`.
    RequiredMethod,
    /// The trait's default answer to the method `at`, a Rust expression.
    DefaultAnswer(&'static str),
    /// The trait's default answer to the request `at` is -32602: what it names does not exist.
    UnknownByDefault,
    /// The field and type of the union that is part of the object `at`.
    Union {
        field: &'static str,
        name: &'static str,
        docs: &'static str,
    },
    /// A named value of the integer `at`.
    Constant {
        name: &'static str,
        value: i64,
        docs: &'static str,
    },
    /// The Rust type at this absolute path is that of the definition `at`; none is
    /// generated.
    #[allow(
        dead_code,
        reason = "no definition of the bundled documents needs it yet"
    )]
    External(&'static str),
    /// The variant without a tag of the union `at` also takes unknown tags.
    DefaultTakesUnknown,
}

/// Overrides for protocol version 1.
pub(crate) const V1: Table = &[BOTH, ONLY_V1];

/// Overrides for the draft of protocol version 2.
pub(crate) const V2: Table = &[BOTH, ONLY_V2];

/// Rows, in parts that several versions share.
pub(crate) type Table = &'static [&'static [Row]];

/// Overrides for both versions.
const BOTH: &[Row] = &[
    Row {
        at: "Error",
        hint: Hint::External("::acp_sdk::RpcError"),
        reason: "the error object is JSON-RPC's, and the same in every version",
    },
    Row {
        at: "ErrorCode",
        hint: Hint::External("::acp_sdk::ErrorCode"),
        reason: "unknown codes are preserved, so the type is the same in every version",
    },
    Row {
        at: "RequestId",
        hint: Hint::External("::acp_sdk::RequestId"),
        reason: "the id is JSON-RPC's, and the same in every version",
    },
    Row {
        at: "session/request_permission",
        hint: Hint::RequiredMethod,
        reason: "the protocol demands it of every client",
    },
    Row {
        at: "session/update",
        hint: Hint::RequiredMethod,
        reason: "the protocol demands it of every client",
    },
    Row {
        at: "SessionConfigOption",
        hint: Hint::Union {
            field: "kind",
            name: "SessionConfigKind",
            docs: "The type of the setting, with its value and what it can be set to.",
        },
        reason: "`type` is a keyword, and the type's name is shorter than the derived one",
    },
    Row {
        at: "SetSessionConfigOptionRequest",
        hint: Hint::Union {
            field: "value",
            name: "SessionConfigOptionValue",
            docs: "The new value of the setting.",
        },
        reason: "the union is the new value; its tag only says of which type",
    },
    Row {
        at: "CreateElicitationRequest",
        hint: Hint::Union {
            field: "mode",
            name: "ElicitationMode",
            docs: "The way in which the user is asked.",
        },
        reason: "the derived name, CreateElicitationRequestMode, is long",
    },
    Row {
        at: "CreateElicitationResponse",
        hint: Hint::Union {
            field: "action",
            name: "ElicitationAction",
            docs: "What the user did with the question.",
        },
        reason: "the derived name, CreateElicitationResponseAction, is long",
    },
    Row {
        at: "ElicitationFormMode",
        hint: Hint::Union {
            field: "scope",
            name: "ElicitationScope",
            docs: "What the question belongs to: a session, or a request outside of any.",
        },
        reason: "one type for what both modes share",
    },
    Row {
        at: "ElicitationUrlMode",
        hint: Hint::Union {
            field: "scope",
            name: "ElicitationScope",
            docs: "What the question belongs to: a session, or a request outside of any.",
        },
        reason: "one type for what both modes share",
    },
];

/// Overrides for version 1 only.
const ONLY_V1: &[Row] = &[
    Row {
        at: "SessionNotification",
        hint: Hint::MethodName("session_update"),
        reason: "`session` would not say what it does; the method is session/update",
    },
    Row {
        at: "initialize",
        hint: Hint::DefaultAnswer("InitializeResponse::new(ProtocolVersion::V1)"),
        reason: "an agent that speaks one version answers with it, whatever was asked",
    },
    Row {
        at: "session/new",
        hint: Hint::RequiredMethod,
        reason: "the protocol demands it of every agent",
    },
    Row {
        at: "session/prompt",
        hint: Hint::RequiredMethod,
        reason: "the protocol demands it of every agent",
    },
    Row {
        at: "session/cancel",
        hint: Hint::RequiredMethod,
        reason: "the protocol demands it of every agent; ignored cancels wedge sessions",
    },
    Row {
        at: "ProtocolVersion",
        hint: Hint::Constant {
            name: "V1",
            value: 1,
            docs: "Protocol version 1.",
        },
        reason: "the schema gives the range of versions, not the one it describes",
    },
    Row {
        at: "SessionConfigOptionValue",
        hint: Hint::DefaultTakesUnknown,
        reason: "the schema's text says that unknown types with string values are value ids",
    },
];

/// Overrides for the draft of version 2 only.
const ONLY_V2: &[Row] = &[
    Row {
        at: "UpdateSessionNotification",
        hint: Hint::MethodName("session_update"),
        reason: "the method is session/update, and version 1 calls it so",
    },
    Row {
        at: "initialize",
        hint: Hint::RequiredMethod,
        reason: "the answer must name the agent's program, which nobody else can",
    },
    Row {
        at: "session/new",
        hint: Hint::RequiredMethod,
        reason: "the protocol demands it of every agent with sessions",
    },
    Row {
        at: "session/prompt",
        hint: Hint::RequiredMethod,
        reason: "the protocol demands it of every agent with sessions",
    },
    Row {
        at: "session/cancel",
        hint: Hint::RequiredMethod,
        reason: "as in version 1: ignored cancels wedge sessions",
    },
    Row {
        at: "tool_call/cancel",
        hint: Hint::UnknownByDefault,
        reason: "the schema demands it for unknown calls, and offers no call to other agents",
    },
    Row {
        at: "terminal/cancel",
        hint: Hint::UnknownByDefault,
        reason: "as for tool calls",
    },
    Row {
        at: "ProtocolVersion",
        hint: Hint::Constant {
            name: "V2",
            value: 2,
            docs: "Protocol version 2.",
        },
        reason: "the schema gives the range of versions, not the one it describes",
    },
    Row {
        at: "DiffChange",
        hint: Hint::Union {
            field: "operation",
            name: "DiffOperation",
            docs: "What happened to the file, and to which path.",
        },
        reason: "the derived name, DiffChangeOperation, is long",
    },
    Row {
        at: "IdleStateUpdate",
        hint: Hint::Union {
            field: "stop_reason",
            name: "StopReason",
            docs: "Why the work stopped, if that is reported.",
        },
        reason: "version 1 calls the reasons so",
    },
];

/// A table that records which of its rows were used.
#[derive(Debug)]
pub(crate) struct Overrides {
    table: Table,
    used: RefCell<BTreeSet<usize>>,
}

impl Overrides {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            used: RefCell::default(),
        }
    }

    /// The hints for `at` that `pick` takes.
    pub(crate) fn all<T>(&self, at: &str, pick: impl Fn(Hint) -> Option<T>) -> Vec<T> {
        let rows = self.rows().filter(|(_, row)| row.at == at);
        rows.filter_map(|(index, row)| {
            let picked = pick(row.hint)?;
            self.used.borrow_mut().insert(index);
            Some(picked)
        })
        .collect()
    }

    /// The first hint for `at` that `pick` takes.
    pub(crate) fn find<T>(&self, at: &str, pick: impl Fn(Hint) -> Option<T>) -> Option<T> {
        self.all(at, pick).into_iter().next()
    }

    /// Whether there is this hint for `at`.
    pub(crate) fn has(&self, at: &str, hint: Hint) -> bool {
        self.find(at, |found| (found == hint).then_some(()))
            .is_some()
    }

    /// The external types of a document: definition and path.
    pub(crate) fn external(&self, document: &Document) -> impl Iterator<Item = (String, String)> {
        self.rows().filter_map(|(index, row)| match row.hint {
            Hint::External(path) if document.def(row.at).is_some() => {
                self.used.borrow_mut().insert(index);
                Some((row.at.to_owned(), path.to_owned()))
            }
            _ => None,
        })
    }

    /// Fails when a row was never used.
    pub(crate) fn check_used(&self) -> Result<(), Error> {
        let used = self.used.borrow();
        let unused = self.rows().filter(|(index, _)| !used.contains(index));
        let unused: Vec<String> = unused
            .map(|(_, row)| format!("{} ({:?})", row.at, row.hint))
            .collect();
        if unused.is_empty() {
            Ok(())
        } else {
            Err(Error::UnusedOverrides(unused))
        }
    }

    /// All rows, numbered.
    fn rows(&self) -> impl Iterator<Item = (usize, &'static Row)> {
        self.table.iter().copied().flatten().enumerate()
    }
}
