//! Tools as their server describes them.

use rmcp::model::Tool;
use serde_json::Value;

use crate::tool_name;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct McpTool {
    /// The name for models, unique in the session; see [`tool_name`].
    pub name: String,
    /// The server's name.
    pub server: String,
    /// The server's name of the tool.
    pub tool: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description for models.
    pub description: Option<String>,
    /// The JSON Schema of the arguments, an object.
    pub input_schema: Value,
    /// The JSON Schema of [`CallOutput::structured`](crate::CallOutput::structured), an object.
    pub output_schema: Option<Value>,
    /// Hints of the server on the tool's effects.
    pub annotations: ToolAnnotations,
}

/// Hints on the effects of a tool. They are claims of the server: rely on them for servers that you trust
/// only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// Whether the tool changes nothing. MCP's default is `false`.
    pub read_only: Option<bool>,
    /// Whether the tool may destroy something. MCP's default is `true`.
    pub destructive: Option<bool>,
    /// Whether a second call with the same arguments changes nothing more. MCP's default is `false`.
    pub idempotent: Option<bool>,
    /// Whether the tool uses other systems, such as the web. MCP's default is `true`.
    pub open_world: Option<bool>,
}

impl McpTool {
    pub(crate) fn new(server: &str, tool: Tool) -> Self {
        let hints = tool.annotations.unwrap_or_default();
        let schema =
            |schema: std::sync::Arc<_>| Value::Object(std::sync::Arc::unwrap_or_clone(schema));
        Self {
            name: tool_name(server, &tool.name),
            server: server.to_owned(),
            tool: tool.name.into_owned(),
            title: tool.title.or(hints.title),
            description: tool.description.map(Into::into),
            input_schema: schema(tool.input_schema),
            output_schema: tool.output_schema.map(schema),
            annotations: ToolAnnotations {
                read_only: hints.read_only_hint,
                destructive: hints.destructive_hint,
                idempotent: hints.idempotent_hint,
                open_world: hints.open_world_hint,
            },
        }
    }
}
