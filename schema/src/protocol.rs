//! The methods of a document, from its markers `x-method` and `x-side`.

use serde_json::Value;

use crate::{Document, Error};

/// Who handles a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The agent.
    Agent,
    /// The client.
    Client,
    /// Either end, below the protocol's own methods.
    Protocol,
    /// A proxy between the two.
    Proxy,
}

/// Whether a method is answered, and the definitions of what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request.
    Request {
        /// The definition of the params.
        params: String,
        /// The definition of the result.
        result: String,
    },
    /// A notification.
    Notification {
        /// The definition of the params.
        params: String,
    },
}

/// One method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The name on the wire.
    pub name: String,
    /// Who handles it.
    pub side: Side,
    /// What it carries.
    pub kind: Kind,
    /// The description of its params.
    pub description: Option<String>,
}

/// The method table of a document, in the order of the document.
#[derive(Clone, Debug)]
pub struct Protocol {
    methods: Vec<Method>,
}

impl Protocol {
    /// Reads the table from the markers of a document.
    ///
    /// # Errors
    /// When a side is missing or unknown, or a request has no response.
    pub fn from_document(document: &Document) -> Result<Self, Error> {
        let marked: Vec<Marked<'_>> = document
            .defs()
            .filter_map(|(name, schema)| Marked::new(document, name, schema))
            .collect::<Result<_, _>>()?;
        let mut methods = Vec::new();
        for params in marked
            .iter()
            .filter(|marked| !marked.name.ends_with("Response"))
        {
            let kind = if params.name.ends_with("Request") {
                let answers = |other: &&Marked<'_>| {
                    other.method == params.method
                        && other.side == params.side
                        && other.name.ends_with("Response")
                };
                let Some(result) = marked.iter().find(answers) else {
                    return Err(Error::invalid(
                        document.name(),
                        &format!("/$defs/{}", params.name),
                        format!(
                            "no response is marked for `{}`; mark one alike",
                            params.method
                        ),
                    ));
                };
                Kind::Request {
                    params: params.name.into(),
                    result: result.name.into(),
                }
            } else {
                Kind::Notification {
                    params: params.name.into(),
                }
            };
            methods.push(Method {
                name: params.method.into(),
                side: params.side,
                kind,
                description: params.description.map(str::to_owned),
            });
        }
        Ok(Self { methods })
    }

    /// All methods.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        self.methods.iter()
    }

    /// The method `name` that `side` handles.
    #[must_use]
    pub fn method(&self, side: Side, name: &str) -> Option<&Method> {
        self.methods
            .iter()
            .find(|method| method.side == side && method.name == name)
    }
}

/// A definition that says which method it is for.
struct Marked<'a> {
    name: &'a str,
    method: &'a str,
    side: Side,
    description: Option<&'a str>,
}

impl<'a> Marked<'a> {
    fn new(document: &Document, name: &'a str, schema: &'a Value) -> Option<Result<Self, Error>> {
        let method = schema.get("x-method")?.as_str()?;
        let side = match schema.get("x-side").and_then(Value::as_str) {
            Some("agent") => Side::Agent,
            Some("client") => Side::Client,
            Some("protocol") => Side::Protocol,
            Some("proxy") => Side::Proxy,
            _ => {
                return Some(Err(Error::invalid(
                    document.name(),
                    &format!("/$defs/{name}/x-side"),
                    "missing or unknown; use agent, client, protocol or proxy",
                )));
            }
        };
        let description = schema.get("description").and_then(Value::as_str);
        Some(Ok(Self {
            name,
            method,
            side,
            description,
        }))
    }
}
