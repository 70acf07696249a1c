//! What a tool returns, and why it fails.

use std::fmt;

use acp_sdk::v1::{ContentBlock, ImageContent, TextContent};
use acp_server::text_of;
use serde::{Deserialize, Serialize};

/// What a tool returns to the model. As JSON it is the result of a tool of the Model Context Protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Text, images, resources.
    pub content: Vec<ContentBlock>,
    /// Whether the tool has failed.
    #[serde(default)]
    pub is_error: bool,
}

impl Output {
    /// Creates the output of a tool that has failed.
    pub fn error(reason: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::from(reason.into())
        }
    }

    /// Adds an image; `data` is base64.
    #[must_use]
    pub fn with_image(mut self, mime_type: impl Into<String>, data: impl Into<String>) -> Self {
        let image = ImageContent::new(data, mime_type);
        self.content.push(ContentBlock::Image(image));
        self
    }

    /// Returns the texts, with line feeds between them.
    #[must_use]
    pub fn text(&self) -> String {
        text_of(&self.content)
    }

    /// Cuts texts so that all of them have at most `most` bytes, and says so. The beginning and the end are
    /// kept: an error is often in the last lines.
    #[must_use]
    pub(crate) fn limited(mut self, most: usize) -> Self {
        let mut room = most;
        for block in &mut self.content {
            if let ContentBlock::Text(content) = block {
                if content.text.len() > room {
                    content.text = cut(&content.text, room);
                }
                room = room.saturating_sub(content.text.len());
            }
        }
        self
    }
}

fn cut(text: &str, most: usize) -> String {
    let mut head = most / 2;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - (most - head).min(text.len());
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let missing = tail - head;
    let (head, tail) = (&text[..head], &text[tail..]);
    format!(
        "{head}\n[… {missing} of {} bytes are left out …]\n{tail}",
        text.len()
    )
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self {
            content: vec![ContentBlock::Text(TextContent::new(text))],
            is_error: false,
        }
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<serde_json::Value> for Output {
    fn from(value: serde_json::Value) -> Self {
        value.to_string().into()
    }
}

/// Why a tool did not return an output. Errors of any type become [`Failed`](Self::Failed) with `?`.
#[derive(Debug)]
pub enum ToolError {
    /// The model is told the reason and may try something else.
    Failed(String),
    /// The user does not allow it. The model is told so.
    Rejected,
    /// The turn was cancelled. It ends.
    Cancelled,
}

impl ToolError {
    /// Creates an error with a reason for the model.
    pub fn failed(reason: impl fmt::Display) -> Self {
        Self::Failed(reason.to_string())
    }
}

impl<E: std::error::Error + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let any: &dyn std::error::Error = &error;
        match any.downcast_ref::<acp_server::Error>() {
            Some(acp_server::Error::Cancelled) => Self::Cancelled,
            _ => Self::failed(error),
        }
    }
}

/// The result of a tool.
pub type ToolOutcome<T = Output> = Result<T, ToolError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let text = format!("begin{}end", "é".repeat(1000));
        let output = Output::from(text.clone()).limited(100);
        let cut = output.text();
        assert!(cut.starts_with("begin") && cut.ends_with("end"), "{cut}");
        assert!(cut.contains("of 2008 bytes are left out"), "{cut}");
        assert!(cut.len() < 200);
        assert_eq!(Output::from(text.clone()).limited(2008).text(), text);
    }

    #[test]
    fn errors_of_any_type_tell_the_model_but_a_cancelled_turn_ends() {
        fn parse(text: &str) -> ToolOutcome<u8> {
            Ok(text.parse()?)
        }
        assert!(
            matches!(parse("x"), Err(ToolError::Failed(reason)) if reason.contains("invalid digit"))
        );
        let cancelled = ToolError::from(acp_server::Error::Cancelled);
        assert!(matches!(cancelled, ToolError::Cancelled));
    }
}
