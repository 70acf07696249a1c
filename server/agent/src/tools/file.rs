//! Reading and writing whole files.

use acp_sdk::v1::{ErrorCode, ReadTextFileRequest, ToolKind};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{path, text_of};
use crate::{Call, Risk, Tool, ToolOutcome};

#[derive(Deserialize, JsonSchema)]
struct Read {
    /// Absolute, or relative to the working directory.
    path: String,
    /// The first line to read, from 1.
    line: Option<u32>,
    /// How many lines to read.
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Write {
    /// Absolute, or relative to the working directory.
    path: String,
    /// The whole text of the file.
    content: String,
}

/// Returns the tool `read`: the text of a file, or some of its lines.
#[must_use]
pub fn read() -> Tool {
    let description = "Reads a text file. Use `line` and `limit` for a part of a long one.";
    Tool::new("read", description, |file: Read, call: Call| async move {
        let session = call.session();
        let mut request = ReadTextFileRequest::new(session.id(), session.resolve(&file.path));
        request.line = file.line;
        request.limit = file.limit;
        Ok(call.turn().read_file_with(request).await?)
    })
    .kind(ToolKind::Read)
    .shown(|file| format!("Read {}", text_of(file, "path")), path)
}

/// Returns the tool `write`: a new file, or another text for one.
#[must_use]
pub fn write() -> Tool {
    let description = "Writes a whole text file, a new one or in place of the old one. To change a part of a \
        file, use `edit`.";
    Tool::new("write", description, |file: Write, call: Call| async move {
        let content = file.content;
        let old = call.change_file(&file.path, |_| Ok(content)).await?;
        Ok(match old {
            Some(_) => format!("Replaced {}.", file.path),
            None => format!("Created {}.", file.path),
        })
    })
    .kind(ToolKind::Edit)
    .risk(Risk::Edits)
    .asks_itself()
    .shown(|file| format!("Write {}", text_of(file, "path")), path)
}

/// Returns the text of a file, or `None` if there is none.
pub(crate) async fn existing(call: &Call, path: &str) -> ToolOutcome<Option<String>> {
    match call.turn().read_file(path).await {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.code() == Some(ErrorCode::RESOURCE_NOT_FOUND) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
