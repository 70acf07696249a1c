//! The version of the protocol that a connection speaks, as its `initialize` exchange says.
//!
//! The request is judged by the version that it asks for, and everything from its answer on by
//! the one that the answer chooses. Before that, where the exchange was not seen, and of a request
//! for a version that has no schema here, version 1 is assumed.

use std::sync::Arc;

use acp_schema::DIALECTS;
use serde::Serialize;
use serde_json::Value;

use super::{Party, Schema, Version};
use crate::Result;

/// The versions that a connection may speak.
#[derive(Clone, Debug)]
pub struct Schemas {
    first: Arc<Schema>,
    v2: Option<Arc<Schema>>,
}

impl Schemas {
    /// Every version; which one it is, the traffic says.
    ///
    /// # Errors
    /// Never for the documents as shipped.
    pub fn any() -> Result<Self> {
        Ok(Self {
            first: Schema::of(Version::V1)?,
            v2: Some(Schema::of(Version::V2)?),
        })
    }

    /// The protocol of another system, whatever the traffic says: one of [`dialects`](Self::dialects).
    ///
    /// # Errors
    /// [`Error::NoDialect`](crate::Error::NoDialect) for another name.
    pub fn dialect(name: &str) -> Result<Self> {
        Ok(Arc::new(Schema::dialect(name)?).into())
    }

    /// The names of the protocols of other systems.
    pub fn dialects() -> impl Iterator<Item = &'static str> {
        DIALECTS.into_iter().map(|(name, _)| name)
    }

    /// This version, or any if there is none.
    ///
    /// # Errors
    /// Never for the documents as shipped.
    pub fn given(version: Option<Version>) -> Result<Self> {
        match version {
            Some(version) => Ok(Schema::of(version)?.into()),
            None => Self::any(),
        }
    }
}

/// This version and no other, whatever the traffic says.
impl From<Arc<Schema>> for Schemas {
    fn from(schema: Arc<Schema>) -> Self {
        Self {
            first: schema,
            v2: None,
        }
    }
}

/// Where the version is known from that messages are judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Whoever asked for the judgement said so.
    Given,
    /// The answer to `initialize` chose it.
    Agreed,
    /// The answer to `initialize` chose one that has no schema here.
    Unsupported,
    /// It is the one that `initialize` asked for; no answer was seen.
    Asked,
    /// No `initialize` was seen.
    Assumed,
}

/// What a connection's version is, and how that is known.
#[derive(Debug)]
pub(crate) struct Agreement {
    schemas: Schemas,
    now: Arc<Schema>,
    basis: Basis,
    /// The id of the request `initialize` that has no answer yet.
    asked: Option<Value>,
    /// The number that was agreed on, if it has no schema here.
    unsupported: Option<u64>,
}

impl Agreement {
    pub(crate) fn new(schemas: Schemas) -> Self {
        Self {
            now: schemas.first.clone(),
            basis: match schemas.v2 {
                None => Basis::Given,
                Some(_) => Basis::Assumed,
            },
            schemas,
            asked: None,
            unsupported: None,
        }
    }

    /// The number of the version that is spoken.
    pub(crate) fn number(&self) -> u64 {
        let known = self.now.version().number();
        self.unsupported.unwrap_or(known)
    }

    /// The schema by which to judge the next message.
    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.now
    }

    pub(crate) fn basis(&self) -> Basis {
        self.basis
    }

    fn is_settled(&self) -> bool {
        matches!(self.basis, Basis::Agreed | Basis::Unsupported)
    }

    /// Takes a message that is about to be judged; tells whether the version changes with it.
    pub(crate) fn hear(&mut self, from: Party, message: &Value) -> bool {
        if self.schemas.v2.is_none() {
            return false;
        }
        let method = message.get("method").and_then(Value::as_str);
        let (version, basis) = match (from, method) {
            (Party::Client, Some("initialize")) if !self.is_settled() => {
                self.asked = message.get("id").cloned();
                (message.pointer("/params/protocolVersion"), Basis::Asked)
            }
            (Party::Agent, None)
                if self.asked.is_some() && message.get("id") == self.asked.as_ref() =>
            {
                self.asked = None;
                (message.pointer("/result/protocolVersion"), Basis::Agreed)
            }
            _ => return false,
        };
        let Some(version) = version.and_then(Value::as_u64) else {
            return false;
        };
        let before = self.now.version();
        if basis == Basis::Agreed && Version::of_number(version).is_none() {
            self.unsupported = Some(version);
            self.basis = Basis::Unsupported;
            return false;
        }
        // Of a number from the future nothing is known; the draft is no better guess.
        self.now = match &self.schemas.v2 {
            Some(v2) if version == v2.version().number() => v2.clone(),
            _ => self.schemas.first.clone(),
        };
        self.basis = basis;
        before != self.now.version()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(version: u64) -> Value {
        json!({"id": 0, "method": "initialize", "params": {"protocolVersion": version}})
    }

    fn answer(version: u64) -> Value {
        json!({"id": 0, "result": {"protocolVersion": version}})
    }

    fn heard(agreement: &mut Agreement, from: Party, message: &Value) -> (u64, Basis) {
        agreement.hear(from, message);
        (agreement.schema().version().number(), agreement.basis())
    }

    #[test]
    fn the_answer_decides_and_decides_once() {
        let mut it = Agreement::new(Schemas::any().unwrap());
        let other = json!({"id": 7, "result": {"protocolVersion": 2}});
        assert_eq!(heard(&mut it, Party::Agent, &other), (1, Basis::Assumed));
        assert_eq!(heard(&mut it, Party::Client, &ask(2)), (2, Basis::Asked));
        assert_eq!(heard(&mut it, Party::Agent, &other), (2, Basis::Asked));
        assert_eq!(heard(&mut it, Party::Agent, &answer(1)), (1, Basis::Agreed));
        assert_eq!(heard(&mut it, Party::Client, &ask(2)), (1, Basis::Agreed));
    }

    #[test]
    fn of_a_version_from_the_future_nothing_is_known() {
        let mut it = Agreement::new(Schemas::any().unwrap());
        assert_eq!(heard(&mut it, Party::Client, &ask(99)), (1, Basis::Asked));
        assert_eq!(heard(&mut it, Party::Agent, &answer(2)), (2, Basis::Agreed));
    }

    #[test]
    fn a_version_without_a_schema_is_none_of_those_with_one() {
        let mut it = Agreement::new(Schemas::any().unwrap());
        it.hear(Party::Client, &ask(1));
        let (_, basis) = heard(&mut it, Party::Agent, &answer(99));
        assert_eq!((basis, it.number()), (Basis::Unsupported, 99));
        heard(&mut it, Party::Client, &ask(1));
        assert_eq!((it.basis(), it.number()), (Basis::Unsupported, 99));
    }

    #[test]
    fn what_is_given_stays() {
        let schema = Schema::of(Version::V2).unwrap();
        let mut it = Agreement::new(schema.into());
        assert_eq!(heard(&mut it, Party::Client, &ask(1)), (2, Basis::Given));
        assert_eq!(heard(&mut it, Party::Agent, &answer(1)), (2, Basis::Given));
    }
}
