//! Facts of methods that peers act on, from `x-scope`, `x-access`, `x-retry`, `x-joins`, `x-login`,
//! `x-capability`.
//! Receivers treat methods without facts as unknown.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::protocol::{Kind, Method};
use crate::walk::escaped;
use crate::{Document, Error};

/// The member of params and results that names a session.
const SESSION: &str = "sessionId";

/// The required keywords, in the order of the members of [`MethodFacts`].
const KEYWORDS: [&str; 4] = ["x-scope", "x-access", "x-retry", "x-joins"];

/// The optional keywords, which need the required ones.
const LOGIN: &str = "x-login";
const CAPABILITY: &str = "x-capability";

/// Facts of a method that do not depend on an implementation.
///
/// A document states them with four keywords at the params of the method: `x-scope`, `x-access`,
/// `x-retry` and `x-joins`, all four or none; `x-login` and `x-capability` may stand beside them. A
/// file (document or overlay) states them for all of its methods or for none: documents of other
/// protocols, and overlays with methods that only their author knows, need none. [`Protocol::from_document`](crate::Protocol::from_document) checks
/// that, and that they agree with the definitions: a method of a session requires `sessionId` in its
/// params, and one that creates a session requires it in its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodFacts {
    /// What the method belongs to.
    pub scope: Scope,
    /// The least right that the client needs.
    pub access: AccessRight,
    /// Whether the message may be sent again when its response is lost.
    pub retry: Retry,
    /// How the method changes the client's attachment to a session.
    pub joins: Attachment,
    /// Whether the method logs the user in or out.
    pub login: Option<Login>,
    /// The capability of the handling side that the method needs: a JSON Pointer into its
    /// capabilities. `None` if all must handle the method.
    pub capability: Option<String>,
}

/// Declares an enum whose variants are the values of a keyword.
macro_rules! keyword {
    ($(#[$docs:meta])* $name:ident { $($(#[$variant_docs:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_docs])* $variant,)* }

        impl $name {
            const WORDS: &'static [&'static str] = &[$($word),*];

            fn new(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

keyword! {
    /// What a method belongs to: `x-scope`.
    Scope {
        /// The connection, or a session that the params need not name.
        Connection = "connection",
        /// The session that its params name in the required member `sessionId`.
        Session = "session",
    }
}

keyword! {
    /// The least right that a client needs to take part in a method: `x-access`. A client needs it
    /// to call a method of the agent, and to be sent a method of the client.
    AccessRight {
        /// Reading, in every session.
        Reader = "reader",
        /// Everything in one session.
        Session = "session",
        /// Everything.
        Owner = "owner",
    }
}

keyword! {
    /// Whether a message may be sent again when its response is lost: `x-retry`.
    Retry {
        /// As it is.
        Safe = "safe",
        /// With the same idempotency key.
        Keyed = "keyed",
        /// Not at all: a second one has effects of its own.
        Never = "never",
    }
}

keyword! {
    /// How a method changes the client's attachment to a session: `x-joins`.
    Attachment {
        /// It attaches the client to the new session that the result names.
        Creates = "creates",
        /// It attaches the client to the session that the params name.
        Joins = "joins",
        /// It detaches the client from the session that the params name.
        Leaves = "leaves",
        /// It changes nothing.
        Keeps = "keeps",
    }
}

keyword! {
    /// How a method that succeeds changes whether the user is logged in: `x-login`.
    Login {
        /// The user is logged in.
        In = "in",
        /// The user is logged out.
        Out = "out",
    }
}

impl MethodFacts {
    /// Reads the facts of a definition; `None` if it has none of the keywords.
    pub(crate) fn of(
        document: &Document,
        definition: &str,
        schema: &Value,
    ) -> Result<Option<Self>, Error> {
        let at = |keyword: &str| format!("/$defs/{}/{keyword}", escaped(definition));
        let mut keywords = KEYWORDS.iter().chain([&LOGIN, &CAPABILITY]);
        let Some(present) = keywords.find(|key| schema.get(**key).is_some()) else {
            return Ok(None);
        };
        if schema.get("x-method").is_none() || definition.ends_with("Response") {
            let message = "not the params of a method, which have its facts; remove it";
            return Err(document.invalid(&at(present), message));
        }
        let word = |keyword: &str, words: &[&str]| {
            let word = schema.get(keyword).and_then(Value::as_str);
            word.ok_or_else(|| {
                let message = format!(
                    "missing beside `{present}`, or no string; expected one of {}",
                    words.join(", ")
                );
                document.invalid(&at(keyword), message)
            })
        };
        let unknown = |keyword: &str, word: &str, words: &[&str]| {
            let message = format!("unknown `{word}`; expected one of {}", words.join(", "));
            document.invalid(&at(keyword), message)
        };
        macro_rules! read {
            ($keyword:literal, $kind:ident) => {{
                let word = word($keyword, $kind::WORDS)?;
                $kind::new(word).ok_or_else(|| unknown($keyword, word, $kind::WORDS))?
            }};
        }
        Ok(Some(Self {
            scope: read!("x-scope", Scope),
            access: read!("x-access", AccessRight),
            retry: read!("x-retry", Retry),
            joins: read!("x-joins", Attachment),
            login: match schema.get(LOGIN) {
                Some(_) => Some(read!("x-login", Login)),
                None => None,
            },
            capability: match schema.get(CAPABILITY) {
                Some(Value::String(pointer)) if pointer.starts_with('/') => Some(pointer.clone()),
                Some(_) => {
                    let message = "no JSON Pointer into the capabilities of the handling side";
                    return Err(document.invalid(&at(CAPABILITY), message));
                }
                None => None,
            },
        }))
    }
}

/// Fails when the facts contradict the params or the result, when two forms of a method differ,
/// or when a file has methods with and without facts.
pub(crate) fn check(document: &Document, methods: &[Method]) -> Result<(), Error> {
    let at = |method: &Method| format!("/$defs/{}", escaped(method.kind.params()));
    let with_facts = methods.iter().filter(|method| method.facts.is_some());
    let files: BTreeSet<&str> = with_facts
        .map(|method| document.file(&at(method)))
        .collect();
    for (index, method) in methods.iter().enumerate() {
        let at = at(method);
        let Some(facts) = &method.facts else {
            if files.contains(document.file(&at)) {
                let message = format!(
                    "no facts of `{}`, but other methods of this file have them; add {}",
                    method.name,
                    KEYWORDS.join(", ")
                );
                return Err(document.invalid(&at, message));
            }
            continue;
        };
        let invalid = |keyword: &str, message: &str| {
            Err(document.invalid(&format!("{at}/{keyword}"), message))
        };
        let names_session = |definition: &str| {
            let required = document.def(definition).and_then(|it| it.get("required"));
            let required = required.and_then(Value::as_array);
            required.is_some_and(|names| names.iter().any(|name| name == SESSION))
        };
        let is_scoped = names_session(method.kind.params());
        match facts.scope {
            Scope::Session if !is_scoped => {
                return invalid("x-scope", "the params do not require `sessionId`");
            }
            Scope::Connection if is_scoped => {
                return invalid("x-scope", "the params require `sessionId`; use `session`");
            }
            _ => {}
        }
        let creates = matches!(&method.kind, Kind::Request { result, .. } if names_session(result));
        match facts.joins {
            Attachment::Creates if !creates => {
                return invalid("x-joins", "the result does not require `sessionId`");
            }
            Attachment::Joins | Attachment::Leaves if !is_scoped => {
                return invalid("x-joins", "the params do not require `sessionId`");
            }
            _ => {}
        }
        let before = methods.iter().take(index);
        let mut same =
            before.filter(|other| other.name == method.name && other.side == method.side);
        if same.any(|other| other.facts != method.facts) {
            let message = format!("other facts than of the other form of `{}`", method.name);
            return Err(document.invalid(&at, message));
        }
    }
    Ok(())
}
