//! Replacing a part of a file.

use acp_sdk::v1::ToolKind;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{path, text_of};
use crate::{Call, Risk, Tool, ToolError, ToolOutcome};

#[derive(Deserialize, JsonSchema)]
struct Edit {
    /// Absolute, or relative to the working directory.
    path: String,
    /// The text to replace, exactly as in the file, with enough lines around it to be there once.
    old_text: String,
    /// The text in its place.
    new_text: String,
    /// Replace it wherever it is.
    #[serde(default)]
    all: bool,
}

/// Returns the tool `edit`: another text for a part of a file. It fails if the part is not there, or is there
/// more than once, and if the file is changed by somebody else while the user is asked.
#[must_use]
pub fn edit() -> Tool {
    let description = "Replaces a text in a file by another one. The old text must be in the file exactly once, \
        unless `all` is set.";
    Tool::new("edit", description, |edit: Edit, call: Call| async move {
        let change = |old: Option<&str>| match old {
            Some(old) => replace(old, &edit),
            None => Err(ToolError::failed(format!(
                "there is no file {}; use `write` for a new one",
                edit.path
            ))),
        };
        call.change_file(&edit.path, change).await?;
        Ok(format!("Changed {}.", edit.path))
    })
    .kind(ToolKind::Edit)
    .risk(Risk::Edits)
    .asks_itself()
    .shown(|edit| format!("Edit {}", text_of(edit, "path")), path)
}

fn replace(old: &str, edit: &Edit) -> ToolOutcome<String> {
    let Edit {
        path,
        old_text,
        new_text,
        all,
    } = edit;
    if old_text.is_empty() {
        return Err(ToolError::failed(
            "`old_text` is empty; use `write` for a whole file",
        ));
    }
    if old_text == new_text {
        return Err(ToolError::failed(
            "`old_text` and `new_text` are the same; nothing would change",
        ));
    }
    match old.matches(old_text.as_str()).count() {
        0 => Err(ToolError::failed(format!(
            "`old_text` is not in {path}; read the file and copy the text exactly, with its white space"
        ))),
        1 => Ok(old.replacen(old_text.as_str(), new_text, 1)),
        _ if *all => Ok(old.replace(old_text.as_str(), new_text)),
        count => Err(ToolError::failed(format!(
            "`old_text` is {count} times in {path}; add lines around it, or set `all`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_if_it_is_there_once() {
        let edit = |old: &str, new: &str, all| Edit {
            path: "a".to_owned(),
            old_text: old.to_owned(),
            new_text: new.to_owned(),
            all,
        };
        let replaced = |old, new, all| match replace("one two one", &edit(old, new, all)) {
            Ok(text) => text,
            Err(ToolError::Failed(reason)) => reason,
            Err(other) => format!("{other:?}"),
        };
        assert_eq!(replaced("two", "2", false), "one 2 one");
        assert_eq!(replaced("one", "1", true), "1 two 1");
        assert!(replaced("one", "1", false).contains("2 times"));
        assert!(replaced("three", "3", false).contains("not in a"));
        assert!(replaced("", "3", false).contains("empty"));
        assert!(replaced("two", "two", false).contains("the same"));
    }
}
