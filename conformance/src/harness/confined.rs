//! Whether a permission request is about the suite's directory only.
//!
//! The suite grants what an agent asks for, on a machine that is somebody's. So it looks for paths in
//! the request: locations, diffs, and the tool's input. A path outside is a reason to reject.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::names::plain;

/// Members whose text is a path.
const PATHS: [&str; 18] = [
    "path",
    "file",
    "filepath",
    "filename",
    "cwd",
    "workdir",
    "workingdirectory",
    "directory",
    "dir",
    "dirpath",
    "folder",
    "abspath",
    "absolutepath",
    "targetfile",
    "notebookpath",
    "source",
    "destination",
    "uri",
];

/// Members whose text is a command.
const COMMANDS: [&str; 5] = ["command", "cmd", "args", "script", "code"];

/// Absolute paths that a command may name: programs and the usual devices.
const HARMLESS: [&str; 7] = [
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/dev/null",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
];

/// How deep the input of a tool is searched.
const DEPTH: usize = 8;

/// Returns the first path in the params of `session/request_permission` that is outside `folder`.
/// Everything is inside of an empty folder.
pub(super) fn outside(params: &Value, folder: &Path) -> Option<String> {
    if folder.as_os_str().is_empty() {
        return None;
    }
    search(params, "", folder, DEPTH)
}

fn search(value: &Value, name: &str, folder: &Path, depth: usize) -> Option<String> {
    if depth == 0 {
        return None;
    }
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "options")
            .find_map(|(name, value)| search(value, &plain(name), folder, depth - 1)),
        // The elements of `args` are words of a command, too.
        Value::Array(items) => items
            .iter()
            .find_map(|item| search(item, name, folder, depth - 1)),
        Value::String(text) if PATHS.contains(&name) => {
            let path = text.strip_prefix("file://").unwrap_or(text);
            is_outside(path, folder).then(|| text.clone())
        }
        Value::String(text) if COMMANDS.contains(&name) => words(text)
            .find(|word| is_outside(word, folder) && !is_harmless(word))
            .map(str::to_owned),
        _ => None,
    }
}

/// The words of a command line that may be paths.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let splits = |c: char| c.is_whitespace() || "'\"`;|&<>()=,".contains(c);
    let words = line.split(splits);
    words.filter(|word| word.starts_with(['/', '~']) || word.split('/').any(|part| part == ".."))
}

fn is_harmless(word: &str) -> bool {
    let climbs = word.split('/').any(|part| part == "..");
    !climbs && HARMLESS.iter().any(|start| word.starts_with(start))
}

/// Whether a path leads out of the folder; a relative one begins there.
fn is_outside(path: &str, folder: &Path) -> bool {
    if path.starts_with('~') {
        return true;
    }
    // Another scheme than `file` is no place on this machine.
    if path.contains("://") {
        return false;
    }
    let mut whole = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    !whole.starts_with(folder)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(call: Value) -> Option<String> {
        let options = json!([{"optionId": "/etc", "name": "/etc", "kind": "allow_once"}]);
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        outside(&params, Path::new("/suite/work"))
    }

    #[test]
    fn what_is_inside_is_granted() {
        for call in [
            json!({"title": "Write /etc/passwd"}),
            json!({"locations": [{"path": "/suite/work/a.txt"}, {"path": "b/../c"}]}),
            json!({"content": [{"type": "diff", "path": "/suite/work/a", "newText": "/etc"}]}),
            json!({"rawInput": {"command": ["/bin/bash", "-lc", "echo a > b.txt 2>/dev/null"]}}),
            json!({"rawInput": {"command": "cat /suite/work/a", "workdir": "/suite/work"}}),
            json!({"rawInput": {"uri": "https://example.com/etc"}}),
        ] {
            assert_eq!(asked(call.clone()), None, "{call}");
        }
    }

    #[test]
    fn what_is_outside_is_rejected() {
        for (call, path) in [
            (
                json!({"locations": [{"path": "/suite/worker/a"}]}),
                "/suite/worker/a",
            ),
            (
                json!({"content": [{"type": "diff", "path": "/etc/x"}]}),
                "/etc/x",
            ),
            (json!({"rawInput": {"file_path": "../x"}}), "../x"),
            (
                json!({"rawInput": {"uri": "file:///etc/x"}}),
                "file:///etc/x",
            ),
            (json!({"rawInput": {"command": "cat '/etc/x'"}}), "/etc/x"),
            (
                json!({"rawInput": {"command": ["sh", "-c", "rm -rf ~/x"]}}),
                "~/x",
            ),
            (
                json!({"rawInput": {"cmd": "/usr/bin/../../etc/x"}}),
                "/usr/bin/../../etc/x",
            ),
            (json!({"rawInput": {"workdir": "/home"}}), "/home"),
        ] {
            assert_eq!(asked(call.clone()).as_deref(), Some(path), "{call}");
        }
    }
}
