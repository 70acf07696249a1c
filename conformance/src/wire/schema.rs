//! The protocol's schema as the wire needs it: asked by writer and method.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use acp_schema::{Checked, DIALECTS, Document, Kind, Protocol, Side, Validator, Violation};
use serde_json::{Value, json};

use super::unknown_fields::{Members, UnknownField};
use super::{Excuse, Finding, FindingKind, Party, envelope, extensions, releases};
use crate::{Error, Result};

/// The params of the request that negotiates the version.
const INITIALIZE: &str = "InitializeRequest";

/// Its members that version 1 has and version 2 does not.
const OF_VERSION_1: [&str; 2] = ["clientCapabilities", "clientInfo"];

/// Its members that version 2 has and version 1 does not.
const OF_VERSION_2: [&str; 2] = ["capabilities", "info"];

/// The definition of the error object.
const ERROR: &str = "Error";

/// What the schema says about a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Allowed.
    Valid,
    /// Forbidden, in one or more places.
    Invalid(Vec<Violation>),
    /// The schema does not define the method.
    Unknown,
}

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Version 1.
    #[default]
    V1,
    /// The draft of version 2.
    V2,
}

impl Version {
    /// The schema document of this version.
    ///
    /// # Errors
    /// Never for the documents as shipped.
    pub fn document(self) -> Result<Document> {
        Ok(match self {
            Self::V1 => Document::v1()?,
            Self::V2 => Document::v2()?,
        })
    }

    /// The schema document of this version with the proposals for it.
    pub(super) fn with_proposals(self) -> Result<Document> {
        Ok(match self {
            Self::V1 => Document::v1_unstable()?,
            Self::V2 => Document::v2_unstable()?,
        })
    }

    /// The version of this number, if it has a schema here.
    #[must_use]
    pub fn of_number(number: u64) -> Option<Self> {
        [Self::V1, Self::V2]
            .into_iter()
            .find(|version| version.number() == number)
    }

    /// The number, as `initialize` has it.
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// The number, as on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "1",
            Self::V2 => "2",
        }
    }
}

/// A method table and its validators.
#[derive(Debug)]
pub struct Schema {
    version: Version,
    dialect: Option<&'static str>,
    protocol: Protocol,
    validator: Validator,
    /// With the proposals: their names are the protocol's too, nobody's own.
    members: Members,
    proposed: HashSet<String>,
    empty_results: Vec<(Side, String)>,
}

impl Schema {
    /// Protocol version 1.
    ///
    /// # Errors
    /// Never for the document as shipped.
    pub fn v1() -> Result<Arc<Self>> {
        Self::of(Version::V1)
    }

    /// A version of the protocol. It is read once: all that judge in this process share it.
    ///
    /// # Errors
    /// Never for the documents as shipped.
    pub fn of(version: Version) -> Result<Arc<Self>> {
        static V1: Mutex<Option<Arc<Schema>>> = Mutex::new(None);
        static V2: Mutex<Option<Arc<Schema>>> = Mutex::new(None);
        let kept = match version {
            Version::V1 => &V1,
            Version::V2 => &V2,
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = &*kept {
            return Ok(schema.clone());
        }
        let (document, proposals) = (version.document()?, version.with_proposals()?);
        let schema = Self::read(version, None, &document, &proposals)?;
        Ok(kept.insert(Arc::new(schema)).clone())
    }

    /// The protocol of another system, by the name of its document in [`acp_schema::DIALECTS`].
    ///
    /// # Errors
    /// [`Error::NoDialect`] for another name.
    pub fn dialect(name: &str) -> Result<Self> {
        let mut documents = DIALECTS.into_iter();
        let document = documents.find(|(known, _)| *known == name);
        let (name, text) = document.ok_or_else(|| Error::NoDialect(name.to_owned()))?;
        let mut document = Document::parse(&format!("dialects/{name}.json"), text)?;
        if document.def(ERROR).is_none() {
            let error = error_object(&document).to_string();
            document = document.overlay("error object", &error)?;
        }
        Self::read(Version::V1, Some(name), &document, &document)
    }

    fn read(
        version: Version,
        dialect: Option<&'static str>,
        document: &Document,
        proposals: &Document,
    ) -> Result<Self> {
        let protocol = Protocol::from_document(document)?;
        let validator = Validator::new(document)?;
        let empty_results = protocol
            .methods()
            .filter_map(|method| match &method.kind {
                Kind::Request { result, .. } => Some((method, document.def(result)?)),
                Kind::Notification { .. } => None,
            })
            .filter(|(_, result)| is_empty_object(result))
            .map(|(method, _)| (method.side, method.name.clone()))
            .collect();
        let proposed = Protocol::from_document(proposals)?;
        let proposed = proposed.methods().map(|method| method.name.clone());
        Ok(Self {
            version,
            dialect,
            proposed: proposed.collect(),
            protocol,
            validator,
            members: Members::of(proposals.value().get("$defs").unwrap_or(&Value::Null)),
            empty_results,
        })
    }

    /// The name of the dialect, if the protocol is none of ACP's.
    #[must_use]
    pub fn dialect_name(&self) -> Option<&'static str> {
        self.dialect
    }

    /// The version of the protocol.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The method table.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// Judges the params of a call that `from` makes.
    #[must_use]
    pub fn params(&self, from: Party, method: &str, params: &Value) -> Verdict {
        match self.side(from, method) {
            Some(side) => self.validator.params(side, method, params).into(),
            None => Verdict::Unknown,
        }
    }

    /// Judges the result with which `by` answers a request.
    #[must_use]
    pub fn result(&self, by: Party, method: &str, result: &Value) -> Verdict {
        match self.side(by.peer(), method) {
            Some(side) => self.validator.result(side, method, result).into(),
            None => Verdict::Unknown,
        }
    }

    /// Whether a proposal has a method of this name.
    #[must_use]
    pub(crate) fn is_proposed(&self, method: &str) -> bool {
        self.proposed.contains(method)
    }

    /// The members of a message that the schema does not have, and in version 2 the values that it
    /// reserves. `method` is its method, or that of the request that it answers.
    pub(crate) fn custom_names(
        &self,
        from: Party,
        place: u64,
        method: Option<&str>,
        message: &Value,
    ) -> Vec<Finding> {
        let finding = |rule, pointer, message, excuse| Finding {
            place,
            rule,
            by: Some(from),
            method: method.map(str::to_owned),
            pointer,
            message,
            excuse,
        };
        let unknown = |member: &str, field: UnknownField<'_>| {
            let pointer = format!("{member}{}", field.pointer);
            let (message, excuse) = self.custom_field(method.unwrap_or_default(), &pointer, &field);
            finding(FindingKind::CustomField, pointer, message, excuse)
        };
        let outside = envelope::unknown_fields(message).map(|field| unknown("", field));
        let (member, value) = match message.get("method") {
            Some(_) => ("params", message.get("params")),
            None => ("result", message.get("result")),
        };
        let name = method.and_then(|method| self.definition(from, member, method));
        let (Some(value), Some(name)) = (value, name) else {
            return outside.collect();
        };
        let fields = self.unknown_fields(name, value).into_iter();
        let fields = fields.map(|field| unknown(&format!("/{member}"), field));
        // In version 1 the schema forbids unknown values, but for a few.
        let values = match self.version {
            Version::V2 => self.members.reserved_values(name, value),
            Version::V1 => Vec::new(),
        };
        let values = values.into_iter().map(|(at, value)| {
            let message = format!(
                "expected a value of the protocol or one that begins with `_`, got {value:?}"
            );
            let known = extensions::category(value).filter(|_| at.ends_with("/category"));
            let excuse = known.map(|known| Excuse::Extension(&known.name));
            let pointer = format!("/{member}{at}");
            finding(FindingKind::ReservedValue, pointer, message, excuse)
        });
        // An agent repeats what the client has written, with the client's members.
        let is_echo = |finding: &Finding| {
            let kind = message.pointer("/params/update/sessionUpdate");
            let kind = kind.and_then(Value::as_str).unwrap_or_default();
            kind.starts_with("user_message")
                && finding.pointer.starts_with("/params/update/content/")
        };
        let found = outside.chain(fields).chain(values);
        found.filter(|finding| !is_echo(finding)).collect()
    }

    /// The definition of the params or the result that a party sends.
    fn definition(&self, from: Party, member: &str, method: &str) -> Option<&str> {
        let caller = if member == "params" {
            from
        } else {
            from.peer()
        };
        let method = self.protocol.method(self.side(caller, method)?, method)?;
        match (&method.kind, member) {
            (Kind::Request { params, .. } | Kind::Notification { params }, "params") => {
                Some(params)
            }
            (Kind::Request { result, .. }, _) => Some(result),
            (Kind::Notification { .. }, _) => None,
        }
    }

    /// What is wrong with such a member, and why it is none of the sender's own.
    fn custom_field(
        &self,
        method: &str,
        pointer: &str,
        field: &UnknownField<'_>,
    ) -> (String, Option<Excuse>) {
        let expected = "expected a member of the schema or of a proposal, got";
        if let Some(known) = extensions::field(method, pointer) {
            let excuse = Excuse::Extension(&known.name);
            return (
                format!("{expected} another: {}", known.because),
                Some(excuse),
            );
        }
        // Version 2 is a draft, which has no releases.
        let release = releases::of_member(&field.of, &field.name);
        match release.filter(|_| self.version == Version::V1) {
            Some(release) => {
                let message = format!("{expected} one that other releases have: {release}");
                (message, Some(Excuse::Release))
            }
            None => {
                let message = format!("{expected} another; what is custom goes into `_meta`");
                (message, None)
            }
        }
    }

    /// The members of a value that its definition does not have.
    fn unknown_fields(&self, name: &str, value: &Value) -> Vec<UnknownField<'_>> {
        match value.as_object() {
            // A client of several versions sends the members of all: the agent has yet to choose.
            Some(all) if name == INITIALIZE => {
                let latest = all.get("protocolVersion").and_then(Value::as_u64);
                let others: &[&str] = match self.version {
                    Version::V2 => &OF_VERSION_1,
                    Version::V1 if latest > Some(1) => &OF_VERSION_2,
                    Version::V1 => &[],
                };
                let mut own = all.clone();
                own.retain(|name, _| !others.contains(&name.as_str()));
                self.members.unknown_fields(name, &Value::Object(own))
            }
            _ => self.members.unknown_fields(name, value),
        }
    }

    /// Judges an error object.
    #[must_use]
    pub fn error(&self, error: &Value) -> Verdict {
        self.validator.error_object(error).into()
    }

    /// Whether a method that `from` calls is a request; `None` when it is not of
    /// the protocol.
    #[must_use]
    pub fn is_request(&self, from: Party, method: &str) -> Option<bool> {
        let side = self.side(from, method)?;
        let method = self.protocol.method(side, method)?;
        Some(matches!(method.kind, Kind::Request { .. }))
    }

    /// Who calls this method, when only one party does.
    #[must_use]
    pub fn caller(&self, method: &str) -> Option<Party> {
        let handled = |side| self.protocol.method(side, method).is_some();
        match (handled(Side::AGENT), handled(Side::CLIENT)) {
            (true, false) => Some(Party::Client),
            (false, true) => Some(Party::Agent),
            _ => None,
        }
    }

    /// Whether the result with which `by` answers has no required member.
    #[must_use]
    pub(crate) fn result_may_be_empty(&self, by: Party, method: &str) -> bool {
        self.side(by.peer(), method).is_some_and(|side| {
            self.empty_results
                .iter()
                .any(|(known, name)| *known == side && name == method)
        })
    }

    /// The side under which the schema has a method that `from` calls.
    fn side(&self, from: Party, method: &str) -> Option<Side> {
        [from.calls(), Side::PROTOCOL]
            .into_iter()
            .find(|side| self.protocol.method(*side, method).is_some())
    }
}

impl From<Checked> for Verdict {
    fn from(checked: Checked) -> Self {
        match checked {
            Checked::Valid => Self::Valid,
            Checked::Invalid(violations) => Self::Invalid(violations),
            Checked::Unknown => Self::Unknown,
        }
    }
}

/// The error object of JSON-RPC for a document that has none, with the codes of the document if it lists them.
fn error_object(document: &Document) -> Value {
    let code = match document.def("ErrorCode") {
        Some(_) => json!({ "$ref": "#/$defs/ErrorCode" }),
        None => json!({ "type": "integer" }),
    };
    let properties = json!({ "code": code, "message": { "type": "string" } });
    let required = ["code", "message"];
    let object = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "$defs": { ERROR: object } })
}

fn is_empty_object(definition: &Value) -> bool {
    let type_is_object = definition.get("type").and_then(Value::as_str) == Some("object");
    let branches = ["anyOf", "oneOf", "allOf"];
    type_is_object
        && definition.get("required").is_none()
        && branches.iter().all(|union| definition.get(union).is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The members of what a party sends that the schema does not have.
    fn unknown(
        schema: &Schema,
        from: Party,
        member: &str,
        method: &str,
        value: &Value,
    ) -> Vec<String> {
        let name = schema.definition(from, member, method).unwrap();
        let found = schema.unknown_fields(name, value);
        found.into_iter().map(|field| field.pointer).collect()
    }

    #[test]
    fn a_method_belongs_to_the_one_who_calls_it() {
        let schema = Schema::v1().unwrap();
        let params = json!({"sessionId": "s"});
        assert_eq!(
            schema.params(Party::Client, "session/cancel", &params),
            Verdict::Valid
        );
        assert_eq!(
            schema.params(Party::Agent, "session/cancel", &params),
            Verdict::Unknown
        );
        let cancel = json!({"requestId": 1});
        for from in [Party::Agent, Party::Client] {
            assert_eq!(
                schema.params(from, "$/cancel_request", &cancel),
                Verdict::Valid
            );
        }
        assert_eq!(schema.caller("$/cancel_request"), None);
        assert_eq!(
            schema.is_request(Party::Client, "session/cancel"),
            Some(false)
        );
        assert_eq!(schema.is_request(Party::Client, "session/new"), Some(true));
    }

    #[test]
    fn names_of_proposals_are_not_custom() {
        let schema = Schema::v1().unwrap();
        let unknown_fields =
            |method, result| unknown(&schema, Party::Agent, "result", method, &result);
        let answer = json!({"agentCapabilities": {"mcpCapabilities": {"acp": false}}});
        assert_eq!(unknown_fields("initialize", answer), Vec::<String>::new());
        let turn = json!({"stopReason": "end_turn", "usage": {}, "cost": 1, "model": ""});
        assert_eq!(unknown_fields("session/prompt", turn), ["/cost", "/model"]);
    }

    #[test]
    fn members_of_another_version_are_not_custom_where_it_is_negotiated() {
        let schema = Schema::of(Version::V2).unwrap();
        let unknown_fields =
            |method, params| unknown(&schema, Party::Client, "params", method, &params);
        let mut params = json!({"protocolVersion": 2, "info": {"name": "c", "version": "1"}});
        for name in OF_VERSION_1 {
            params[name] = json!({});
            let first = Version::V1.document().unwrap();
            let members = &first.value()["$defs"]["InitializeRequest"]["properties"];
            assert!(members.get(name).is_some(), "{name}");
        }
        assert!(unknown_fields("initialize", params.clone()).is_empty());
        let elsewhere = json!({"clientCapabilities": {}});
        let found = unknown_fields("session/new", elsewhere);
        assert_eq!(found, ["/clientCapabilities"]);
        params["custom"] = json!(1);
        assert_eq!(unknown_fields("initialize", params), ["/custom"]);
    }

    #[test]
    fn a_client_that_asks_for_version_2_sends_its_members_to_agents_of_version_1() {
        let schema = Schema::v1().unwrap();
        let found = |version: u64| {
            let mut params = json!({"protocolVersion": version, "clientCapabilities": {}});
            for name in OF_VERSION_2 {
                params[name] = json!({});
                let second = Version::V2.document().unwrap();
                let members = &second.value()["$defs"]["InitializeRequest"]["properties"];
                assert!(members.get(name).is_some(), "{name}");
            }
            unknown(&schema, Party::Client, "params", "initialize", &params)
        };
        assert_eq!(found(2), Vec::<String>::new());
        assert_eq!(found(1), ["/capabilities", "/info"]);
    }

    #[test]
    fn a_result_belongs_to_the_one_who_gives_it() {
        let schema = Schema::v1().unwrap();
        let stop = json!({"stopReason": "end_turn"});
        assert_eq!(
            schema.result(Party::Agent, "session/prompt", &stop),
            Verdict::Valid
        );
        assert_eq!(
            schema.result(Party::Client, "session/prompt", &stop),
            Verdict::Unknown
        );
        assert!(schema.result_may_be_empty(Party::Agent, "session/set_mode"));
        assert!(!schema.result_may_be_empty(Party::Agent, "session/list"));
        assert!(!schema.result_may_be_empty(Party::Client, "elicitation/create"));
    }
}
