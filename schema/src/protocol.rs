//! The methods of a document, from its markers `x-method` and `x-side`.

use serde_json::Value;

use crate::facts::{self, MethodFacts};
use crate::walk::escaped;
use crate::{Document, Error, Side};

/// Request or notification, and the definitions of its params and result.
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

impl Kind {
    /// The definition of the params.
    #[must_use]
    pub fn params(&self) -> &str {
        match self {
            Self::Request { params, .. } | Self::Notification { params } => params,
        }
    }

    /// Whether it is a request.
    #[must_use]
    pub fn is_request(&self) -> bool {
        matches!(self, Self::Request { .. })
    }
}

/// One form of one method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The name on the wire.
    pub name: String,
    /// The side that handles it.
    pub side: Side,
    /// Request or notification.
    pub kind: Kind,
    /// The description of its params.
    pub description: Option<String>,
    /// Its facts; `None` if its document states none.
    pub facts: Option<MethodFacts>,
    /// Whether an overlay adds it to the document.
    pub is_added: bool,
}

/// The method table of a document, in the order of the document.
///
/// A name can stand for several methods: another one on each side, and on one side
/// a request beside a notification.
#[derive(Clone, Debug)]
pub struct Protocol {
    methods: Vec<Method>,
    roles: Vec<Side>,
}

impl Protocol {
    /// Reads the table from the markers of a document, and checks the document.
    ///
    /// # Errors
    /// Fails when a side is missing, the document names more than two roles, a request has
    /// no response, a response has no request, two definitions are the same form of a
    /// method, facts of methods are incomplete or contradict the definitions, or
    /// [`Document::check`] fails.
    pub fn from_document(document: &Document) -> Result<Self, Error> {
        if !document.is_checked {
            document.check()?;
        }
        let marked: Vec<Marked<'_>> = document
            .defs()
            .filter_map(|(name, schema)| Marked::new(document, name, schema))
            .collect::<Result<_, _>>()?;
        let roles = roles(document, &marked)?;
        for (index, one) in marked.iter().enumerate() {
            let same = marked.iter().take(index).find(|other| one.is_same(other));
            if let Some(other) = same {
                let message = format!(
                    "`{}` is already marked as this part of `{}`; remove one of the markers",
                    other.name, one.method
                );
                return Err(document.invalid(&one.at(), message));
            }
        }
        let part = |method: &Marked<'_>, role: Role| {
            marked
                .iter()
                .find(|other| other.role == role && other.is_of(method))
        };
        let mut methods = Vec::new();
        for one in &marked {
            let kind = match one.role {
                Role::Request => {
                    let Some(result) = part(one, Role::Response) else {
                        let message = format!(
                            "no response for `{}`; mark one with the same `x-method` and `x-side`",
                            one.method
                        );
                        return Err(document.invalid(&one.at(), message));
                    };
                    Kind::Request {
                        params: one.name.into(),
                        result: result.name.into(),
                    }
                }
                Role::Notification => Kind::Notification {
                    params: one.name.into(),
                },
                Role::Response if part(one, Role::Request).is_none() => {
                    let message = format!(
                        "no request for `{}`; mark one with the same `x-method` and `x-side`",
                        one.method
                    );
                    return Err(document.invalid(&one.at(), message));
                }
                Role::Response => continue,
            };
            methods.push(Method {
                name: one.method.into(),
                side: one.side,
                kind,
                description: one.description.map(str::to_owned),
                facts: one.facts.clone(),
                is_added: document.is_added(one.name),
            });
        }
        facts::check(document, &methods)?;
        Ok(Self { methods, roles })
    }

    /// The roles that the document names, two at most, in the order of their names.
    #[must_use]
    pub fn roles(&self) -> &[Side] {
        &self.roles
    }

    /// Returns the role at the other end of the connection, `None` when the document does
    /// not name it.
    #[must_use]
    pub fn peer(&self, role: Side) -> Option<Side> {
        let other = |other: &&Side| **other != role;
        match self.roles.contains(&role) {
            true => self.roles.iter().find(other).copied(),
            false => None,
        }
    }

    /// Returns all methods; a name with two forms occurs twice.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        self.methods.iter()
    }

    /// Returns the method `name` that `side` handles, the request if it has both forms.
    #[must_use]
    pub fn method(&self, side: Side, name: &str) -> Option<&Method> {
        self.request(side, name)
            .or_else(|| self.notification(side, name))
    }

    /// Returns the request `name` that `side` handles.
    #[must_use]
    pub fn request(&self, side: Side, name: &str) -> Option<&Method> {
        self.forms(side, name)
            .find(|method| method.kind.is_request())
    }

    /// Returns the notification `name` that `side` handles.
    #[must_use]
    pub fn notification(&self, side: Side, name: &str) -> Option<&Method> {
        self.forms(side, name)
            .find(|method| !method.kind.is_request())
    }

    fn forms(&self, side: Side, name: &str) -> impl Iterator<Item = &Method> {
        self.methods
            .iter()
            .filter(move |method| method.side.includes(side) && method.name == name)
    }
}

/// The roles of the marked definitions, in the order of their names.
fn roles(document: &Document, marked: &[Marked<'_>]) -> Result<Vec<Side>, Error> {
    let mut roles: Vec<Side> = Vec::new();
    for one in marked.iter().filter(|one| one.side.is_role()) {
        match roles.as_slice() {
            known if known.contains(&one.side) => {}
            [first, second] => {
                let message = format!(
                    "third role `{}` beside `{first}` and `{second}`; a connection has two \
                     ends, so correct the name",
                    one.side
                );
                return Err(document.invalid(&format!("{}/x-side", one.at()), message));
            }
            _ => roles.push(one.side),
        }
    }
    roles.sort_unstable();
    Ok(roles)
}

/// What a marked definition is to its method, as its name says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Request,
    Response,
    Notification,
}

/// A definition that says which method it is for.
struct Marked<'a> {
    name: &'a str,
    method: &'a str,
    side: Side,
    role: Role,
    description: Option<&'a str>,
    facts: Option<MethodFacts>,
}

impl<'a> Marked<'a> {
    fn new(document: &Document, name: &'a str, schema: &'a Value) -> Option<Result<Self, Error>> {
        let at = |keyword: &str| format!("/$defs/{}/{keyword}", escaped(name));
        let facts = match MethodFacts::of(document, name, schema) {
            Ok(facts) => facts,
            Err(error) => return Some(Err(error)),
        };
        let Some(method) = schema.get("x-method") else {
            schema.get("x-side")?;
            let message = "a side without a method; add `x-method`, or remove it";
            return Some(Err(document.invalid(&at("x-side"), message)));
        };
        let Some(method) = method.as_str().filter(|name| is_name(name)) else {
            let message = "not the name of a method; use a string without white space";
            return Some(Err(document.invalid(&at("x-method"), message)));
        };
        let side = schema.get("x-side").and_then(Value::as_str);
        let Some(side) = side.and_then(|side| Side::new(side).ok()) else {
            return Some(Err(document.invalid(
                &at("x-side"),
                "missing or not a name; use a role such as agent or client, or `both`, \
                 `protocol` or `proxy`",
            )));
        };
        let role = if name.ends_with("Request") {
            Role::Request
        } else if name.ends_with("Response") {
            Role::Response
        } else {
            Role::Notification
        };
        let description = schema.get("description").and_then(Value::as_str);
        Some(Ok(Self {
            name,
            method,
            side,
            role,
            description,
            facts,
        }))
    }

    /// Whether both are parts of one method.
    fn is_of(&self, other: &Self) -> bool {
        self.side == other.side && self.method == other.method
    }

    /// Whether a side would handle both as the same part of one method.
    fn is_same(&self, other: &Self) -> bool {
        let shared = self.side.includes(other.side) || other.side.includes(self.side);
        shared && self.role == other.role && self.method == other.method
    }

    /// JSON Pointer to the definition.
    fn at(&self) -> String {
        format!("/$defs/{}", escaped(self.name))
    }
}

/// Whether a method can be called like this.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control())
}
