//! The working directory of a session, as far as the agent shows what it uses.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::passive::{is_absolute, is_agents, text, watch};
use super::{Check, NamedCheck};
use crate::harness::{Conn, Cx, Entry, Outcome, inconclusive, skip};
use crate::passive::{RuleResult, View, violation};
use crate::wire::Party;

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("session-setup.working-directory", Run(working_directory)),
    ("session-setup.relative-paths", Run(relative_paths)),
    (
        "session-setup.inside-roots",
        watch(
            inside_roots,
            "no file or directory was named in a request of a session",
        ),
    ),
];

/// A file or a directory that the agent uses is in one of the session's directories.
fn inside_roots(view: &View<'_>) -> RuleResult {
    let file = is_agents(view, "fs/").then(|| text(view.params(), "/path"));
    let command = view.calls(Party::Agent, "terminal/create");
    let command = command.then(|| text(view.params(), "/cwd"));
    let terminal = view.update_of("terminal_update");
    let terminal = terminal.map(|update| text(update.body, "/cwd"));
    let asks = view.calls(Party::Agent, "session/request_permission");
    let asks = asks.then(|| asked_in(view.params()));
    let path = file.or(command).or(terminal).or(asks).flatten();
    let session = view.session().and_then(|session| view.known(session));
    let roots = session.map_or(&[][..], |session| &session.roots);
    // Whether it is absolute is another row's question.
    let Some(path) = path.filter(|path| is_absolute(path) && !roots.is_empty()) else {
        return Ok(0);
    };
    let is_inside = |root: &String| plain(path).starts_with(plain(root));
    if !roots.iter().any(is_inside) {
        let roots = roots.join(", ");
        return violation(format!("expected a path in {roots}, got {path}"));
    }
    Ok(1)
}

/// The directory of a command for which permission is asked. What another subject has is the extension's.
fn asked_in(params: &Value) -> Option<&str> {
    let is_command = text(params, "/subject/type") == Some("command");
    text(params, "/subject/cwd").filter(|_| is_command)
}

/// A path without `.` and `..`, which need not exist here. In one of Windows, which may be judged on another
/// system, there are two separators, and case does not count.
pub(super) fn plain(path: &str) -> PathBuf {
    let drive = path.get(1..3).filter(|root| [":\\", ":/"].contains(root));
    let path = match drive.is_some() || path.starts_with("\\\\") {
        true => path.replace('\\', "/").to_lowercase(),
        false => path.to_owned(),
    };
    let mut plain = PathBuf::new();
    for part in Path::new(&path).components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The prompts whose turns show directories.
const WORDS: [&str; 2] = ["terminal", "tool"];

/// Creates a directory for a session in that of the suite.
pub(super) fn directory(conn: &Conn, name: &str) -> Outcome<PathBuf> {
    let path = conn.env.folder.join(name);
    match std::fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(error) => inconclusive(format!("cannot create {}: {error}", path.display())),
    }
}

/// Opens a session in this directory.
fn session_in(conn: &mut Conn, folder: &Path) -> Outcome<String> {
    let mut params = conn.setup(None);
    params["cwd"] = json!(folder);
    Ok(conn.session_with(params)?.0)
}

/// A path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The directory in which the agent says that it runs a command.
fn shown(entry: &Entry) -> Option<&str> {
    let params = entry.params();
    match entry.method.as_deref()? {
        _ if entry.from != Party::Agent || !entry.is_call() => None,
        "terminal/create" => text(params, "/cwd"),
        "session/request_permission" => asked_in(params),
        "session/update" => {
            let kind = text(params, "/update/sessionUpdate")?;
            text(params, "/update/cwd").filter(|_| kind == "terminal_update")
        }
        _ => None,
    }
}

/// The names of what is in a directory, as far as it can be read.
fn names(folder: &Path) -> BTreeSet<OsString> {
    let entries = folder.read_dir().into_iter().flatten();
    entries
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .collect()
}

/// Two sessions in directories of their own: what the agent runs in the second one must not run in that
/// of the first one, nor where the agent was started. Any other directory may be what it needs. An agent
/// that does not say where it runs a tool shows it by the file that the tool creates.
fn working_directory(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let words = WORDS.into_iter();
    let words: Vec<_> = words.filter(|word| conn.word(&[word]).is_ok()).collect();
    if words.is_empty() {
        return conn.word(&WORDS).map(drop);
    }
    let (first, second) = (directory(conn, "first")?, directory(conn, "second")?);
    session_in(conn, &first)?;
    let session = session_in(conn, &second)?;
    let started = conn.env.target.directory();
    let is = |path: &Path, other: &Path| resolved(path) == resolved(other);
    let mut seen = 0;
    for word in words {
        // A file of a relative name is created where the tool runs.
        let text = conn.env.profile.prompts.get(word);
        let text = text.map(|text| text.replace("{folder}/", ""));
        let text = text.unwrap_or_default().replace("{folder}", ".");
        let before = [&first, &second].map(|folder| names(folder));
        let beside = started.as_deref().map(names).unwrap_or_default();
        let request = conn.begin_text(&session, &text)?;
        let end = conn.turn_reply(request)?.index;
        for (index, entry) in conn.since(request) {
            let Some(path) = shown(entry).filter(|_| entry.session() == Some(&*session)) else {
                continue;
            };
            seen += 1;
            // Whether it is absolute is another row's question.
            let path = &second.join(path);
            let is_strange = is(path, &first) || started.as_deref().is_some_and(|it| is(path, it));
            if is_strange {
                let reason = format!(
                    "expected the session's working directory {}, got {}",
                    second.display(),
                    path.display()
                );
                return Err(conn.at(index, reason));
            }
        }
        if seen > 0 {
            return Ok(());
        }
        // The agent keeps files of its own there, and others write where it was started.
        let is_named = |name: &&OsString| text.contains(&*name.to_string_lossy());
        let found = |folder: &Path, before: &BTreeSet<OsString>| {
            let names = names(folder);
            names.difference(before).find(is_named).cloned()
        };
        let beside = started.as_deref().map(|folder| (folder, &beside));
        for (folder, before) in beside.into_iter().chain([(&*first, &before[0])]) {
            if let Some(name) = found(folder, before) {
                let reason = format!(
                    "expected {} in the session's working directory {}, got it in {}",
                    name.display(),
                    second.display(),
                    folder.display()
                );
                return Err(conn.at(end, reason));
            }
        }
        if found(&second, &before[1]).is_some() {
            return Ok(());
        }
    }
    skip("the agent shows no working directory in its turns, and creates no file there")
}

const READ: &str = "fs/read_text_file";

/// The file that the agent is to read by a relative path, and that the session's directory has.
const RELATIVE: &str = "input.txt";

/// The file that the agent is to read by a relative path is that of the session's directory.
fn relative_paths(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    conn.word(&["relative"])?;
    let folder = directory(conn, "relative")?;
    if let Err(error) = std::fs::write(folder.join(RELATIVE), "one\n") {
        return inconclusive(format!("cannot write a file to read: {error}"));
    }
    let session = session_in(conn, &folder)?;
    let running = conn.begin(&session, "relative")?;
    conn.asked(running, READ)?;
    conn.turn_reply(running)?;
    // An agent may read other files before, such as instructions for it.
    let named = conn.since(running).find_map(|(index, entry)| {
        let path = text(entry.params(), "/path").filter(|_| entry.calls(Party::Agent, READ))?;
        // Whether it is absolute is another row's question.
        let path = folder.join(path);
        path.ends_with(RELATIVE).then_some((index, path))
    });
    let Some((asked, path)) = named else {
        return skip(format!("the agent read other files than {RELATIVE}"));
    };
    let expected = folder.join(RELATIVE);
    if resolved(&path) == resolved(&expected) {
        return Ok(());
    }
    let reason = format!(
        "expected the file {} of the session's working directory, got {}",
        expected.display(),
        path.display()
    );
    Err(conn.at(asked, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_inside_of_a_folder_however_it_is_written() {
        let is_inside = |path: &str| plain(path).starts_with(plain("/work/./session/"));
        assert!(is_inside("/work/session") && is_inside("/work/session/a/../b"));
        assert!(!is_inside("/work/sessions") && !is_inside("/work/session/../b"));
        let is_inside = |path: &str| plain(path).starts_with(plain(r"C:\Work"));
        assert!(is_inside(r"C:\Work\src\a.rs") && is_inside("c:/work/a"));
        assert!(!is_inside(r"C:\Works") && !is_inside(r"C:\Work\..\b") && !is_inside(r"D:\Work"));
    }
}
