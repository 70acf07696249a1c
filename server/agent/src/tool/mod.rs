//! Tools: functions that a model may call.

mod call;
mod locks;
mod output;
mod set;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::ToolKind;
use acp_server::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use call::Call;
pub(crate) use call::SharedJournal;
pub(crate) use locks::FileLocks;
pub use output::{Output, ToolError, ToolOutcome};
pub(crate) use set::Run;
pub use set::ToolSet;

use crate::model::Definition;

/// What a tool may do on the user's machine, which decides when the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// It changes nothing. The user is never asked.
    Reads,
    /// It changes files of the session, which can be undone. The user is asked in the mode `ask`.
    Edits,
    /// Anything else: commands, the network, services. The user is always asked.
    Acts,
}

type Function = dyn Fn(Value, Call) -> BoxFuture<'static, ToolOutcome> + Send + Sync;

/// How a call is shown before it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) title: Option<String>,
    pub(crate) paths: Vec<String>,
}

/// A function that a model may call, and what the model and the user are told about it.
///
/// ```
/// use acp_agent::{Call, Tool, ToolOutcome};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     /// The first number.
///     a: f64,
///     /// The second number.
///     b: f64,
/// }
///
/// async fn add(numbers: Add, _: Call) -> ToolOutcome<String> {
///     Ok((numbers.a + numbers.b).to_string())
/// }
///
/// let tool = Tool::new("add", "Adds two numbers.", add);
/// ```
#[derive(Clone)]
pub struct Tool {
    definition: Definition,
    kind: ToolKind,
    risk: Risk,
    timeout: Duration,
    most: usize,
    asks_itself: bool,
    shown: Arc<dyn Fn(&Value) -> Shown + Send + Sync>,
    function: Arc<Function>,
}

impl Tool {
    /// Creates a tool of a function. The fields of its arguments, with their comments, become the schema that
    /// the model reads. It [reads](Risk::Reads), unless [`risk`](Self::risk) says otherwise.
    ///
    /// # Panics
    ///
    /// If the name is not one that models accept: 1 to 64 letters, digits, `_` and `-`.
    pub fn new<A, F, O>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: impl Fn(A, Call) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Future<Output = ToolOutcome<O>> + Send + 'static,
        O: Into<Output>,
    {
        let definition = Definition {
            name: name.into(),
            description: description.into(),
            input_schema: schema::<A>(),
        };
        Self::with_schema(definition, move |arguments, call| {
            let arguments = serde_json::from_value(arguments);
            let called = arguments.map(|arguments| function(arguments, call));
            async move {
                match called {
                    Ok(running) => running.await.map(Into::into),
                    Err(error) => Err(ToolError::failed(format!(
                        "the arguments do not fit the tool's schema: {error}"
                    ))),
                }
            }
        })
    }

    /// Creates a tool whose schema is known at run time only, such as that of another protocol.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub fn with_schema<F>(
        definition: Definition,
        function: impl Fn(Value, Call) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ToolOutcome> + Send + 'static,
    {
        assert!(
            is_name(&definition.name),
            "a tool is called {:?}: a name has {NAMES}",
            definition.name
        );
        Self {
            definition,
            kind: ToolKind::Other,
            risk: Risk::Reads,
            timeout: Duration::from_secs(120),
            most: 64 << 10,
            asks_itself: false,
            shown: Arc::new(|_| Shown::default()),
            function: Arc::new(move |arguments, call| Box::pin(function(arguments, call))),
        }
    }

    /// Sets the kind, by which clients choose an icon.
    #[must_use]
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets what it may do, which decides when the user is asked.
    #[must_use]
    pub fn risk(mut self, risk: Risk) -> Self {
        self.risk = risk;
        self
    }

    /// Sets the time that a call may take, questions to the user not counted (default: 120 s).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the bytes of text that the model receives (default: 64 KiB). The middle of more is left out.
    #[must_use]
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.most = bytes;
        self
    }

    /// Sets what the user sees of a call: its title, and the files that it touches. Without it the title is
    /// the tool's name.
    #[must_use]
    pub fn shown(
        mut self,
        title: impl Fn(&Value) -> String + Send + Sync + 'static,
        paths: impl Fn(&Value) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.shown = Arc::new(move |arguments| Shown {
            title: Some(title(arguments)),
            paths: paths(arguments),
        });
        self
    }

    /// The function asks by [`Call::permit`] at the right time, such as when it knows the change of a file.
    /// Without it, it begins when the user has allowed it.
    #[must_use]
    pub fn asks_itself(mut self) -> Self {
        self.asks_itself = true;
        self
    }

    /// Returns the tool as models know it.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Returns what it may do.
    #[must_use]
    pub fn risk_of(&self) -> Risk {
        self.risk
    }
}

/// What names of tools are made of.
pub(crate) const NAMES: &str = "1 to 64 letters, digits, `_` and `-`";

/// Returns whether models accept the name of a tool.
pub(crate) fn is_name(name: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(is_valid)
}

/// The JSON Schema of a type, without what models have no use for.
fn schema<A: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<A>();
    let mut schema = schema.to_value();
    if let Some(members) = schema.as_object_mut() {
        members.remove("title");
        // Providers demand both.
        members.entry("type").or_insert_with(|| "object".into());
        members
            .entry("properties")
            .or_insert_with(|| serde_json::json!({}));
    }
    schema
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("definition", &self.definition)
            .field("kind", &self.kind)
            .field("risk", &self.risk)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_what_a_model_needs() {
        #[derive(serde::Deserialize, JsonSchema)]
        #[allow(dead_code, reason = "only its schema is used")]
        struct Arguments {
            /// The file.
            path: String,
            range: Option<Range>,
        }
        #[derive(serde::Deserialize, JsonSchema)]
        #[allow(dead_code, reason = "only its schema is used")]
        struct Range {
            from: u32,
        }
        let schema = schema::<Arguments>();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["properties"]["path"]["description"], "The file.");
        assert_eq!(schema["required"], serde_json::json!(["path"]));
        assert!(schema.get("$defs").is_none(), "{schema}");
        assert_eq!(self::schema::<()>()["type"], "null");
    }
}
