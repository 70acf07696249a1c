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
    /// When a side is missing or unknown, a request has no response, a response
    /// has no request, or a keyword that starts with `x-` is not one of ours.
    pub fn from_document(document: &Document) -> Result<Self, Error> {
        for (name, schema) in document.defs() {
            known_keywords(document, schema, &format!("/$defs/{}", escaped(name)))?;
        }
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
        let asked = |response: &&Marked<'_>| {
            methods
                .iter()
                .any(|method| method.side == response.side && method.name == response.method)
        };
        let mut responses = marked
            .iter()
            .filter(|marked| marked.name.ends_with("Response"));
        if let Some(orphan) = responses.find(|response| !asked(response)) {
            return Err(Error::invalid(
                document.name(),
                &format!("/$defs/{}", orphan.name),
                format!(
                    "no request is marked for `{}`; mark one alike",
                    orphan.method
                ),
            ));
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

/// The keywords that documents add to JSON Schema.
const KEYWORDS: [&str; 7] = [
    // The method that a definition is the params or the result of.
    "x-method",
    // Who handles the method: agent, client, protocol or proxy.
    "x-side",
    // An envelope, which only routes; no type is made of it.
    "x-docs-ignore",
    // Readers take an invalid value as absent.
    "x-deserialize-default-on-error",
    // Readers take null as absent.
    "x-deserialize-default-on-null",
    // Readers drop invalid items and keep the others.
    "x-deserialize-skip-invalid-items",
    // Absent, null and a value mean three things, as in a patch.
    "x-tri-state",
];

fn known_keywords(document: &Document, schema: &Value, at: &str) -> Result<(), Error> {
    let nested: Vec<(String, &Value)> = match schema {
        Value::Object(members) => {
            let unknown =
                |key: &&String| key.starts_with("x-") && !KEYWORDS.contains(&key.as_str());
            if let Some(key) = members.keys().find(unknown) {
                return Err(Error::invalid(
                    document.name(),
                    &format!("{at}/{}", escaped(key)),
                    format!("unknown keyword; known are {}", KEYWORDS.join(", ")),
                ));
            }
            members
                .iter()
                // Values are data, and nothing in them is a keyword.
                .filter(|(key, _)| {
                    !["const", "default", "enum", "examples"].contains(&key.as_str())
                })
                .flat_map(|(key, member)| {
                    let at = format!("{at}/{}", escaped(key));
                    match member {
                        // The members of these are named by the protocol.
                        Value::Object(named) if key == "properties" || key == "$defs" => named
                            .iter()
                            .map(|(name, schema)| (format!("{at}/{}", escaped(name)), schema))
                            .collect(),
                        member => vec![(at, member)],
                    }
                })
                .collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| (format!("{at}/{index}"), item))
            .collect(),
        _ => Vec::new(),
    };
    nested
        .into_iter()
        .try_for_each(|(at, schema)| known_keywords(document, schema, &at))
}

/// A key as a step of a JSON Pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
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
