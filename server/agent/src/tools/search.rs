//! Finding files, and text in them.

use std::path::{Path, PathBuf};

use acp_files::Roots;
use acp_sdk::v1::ToolKind;
use acp_server::Session;
use grep_regex::RegexMatcher;
use grep_searcher::sinks::UTF8;
use grep_searcher::{BinaryDetection, SearcherBuilder};
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{path, text_of};
use crate::{Call, Tool, ToolError, ToolOutcome};

/// Results of one call.
const MOST: usize = 500;

/// Characters of a line that are shown.
const LONGEST_LINE: usize = 300;

#[derive(Deserialize, JsonSchema)]
struct List {
    /// The directory; the working directory without it.
    path: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Glob {
    /// Such as `**/*.rs` or `src/{a,b}/*.txt`.
    pattern: String,
    /// The directory to look in; the working directory without it.
    path: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Grep {
    /// A regular expression of Rust's crate `regex`.
    pattern: String,
    /// The file or directory to look in; the working directory without it.
    path: Option<String>,
    /// Only files with such names, for example `*.rs`.
    glob: Option<String>,
}

/// Returns the tool `list`: the entries of a directory.
#[must_use]
pub fn list() -> Tool {
    let description = "Lists a directory. Directories end with `/`.";
    Tool::new("list", description, |list: List, call: Call| {
        in_thread(call, list.path, |root, cancel| {
            let mut walk = WalkBuilder::new(root);
            walk.max_depth(Some(1)).standard_filters(false);
            found(&walk, root, cancel, |_, _| true)
        })
    })
    .kind(ToolKind::Search)
    .shown(
        |list| {
            format!(
                "List {}",
                list["path"].as_str().unwrap_or("the working directory")
            )
        },
        path,
    )
}

/// Returns the tool `glob`: the files whose paths fit a pattern. Files that the project ignores are left out.
#[must_use]
pub fn glob() -> Tool {
    let description =
        "Finds files by a pattern of their paths. Files that `.gitignore` names are left out.";
    Tool::new("glob", description, |glob: Glob, call: Call| {
        in_thread(call, glob.path, move |root, cancel| {
            let pattern = globset::GlobBuilder::new(&glob.pattern)
                .literal_separator(true)
                .build()?
                .compile_matcher();
            let mut walk = WalkBuilder::new(root);
            walk.hidden(false).require_git(false);
            found(&walk, root, cancel, |path, is_directory| {
                !is_directory && pattern.is_match(path)
            })
        })
    })
    .kind(ToolKind::Search)
    .shown(|glob| format!("Find {}", text_of(glob, "pattern")), path)
}

/// Returns the tool `grep`: the lines of files that fit a regular expression.
#[must_use]
pub fn grep() -> Tool {
    let description = "Finds lines in files by a regular expression, as ripgrep does: `FILE:LINE:TEXT`. Binary \
        files, and those that `.gitignore` names, are left out.";
    Tool::new("grep", description, |grep: Grep, call: Call| {
        in_thread(call, grep.path, move |root, cancel| {
            let matcher = RegexMatcher::new(&grep.pattern)?;
            let mut walk = WalkBuilder::new(root);
            walk.hidden(false).require_git(false);
            if let Some(glob) = &grep.glob {
                walk.overrides(only(root, glob)?);
            }
            lines(&walk, root, cancel, &matcher)
        })
    })
    .kind(ToolKind::Search)
    .shown(
        |grep| format!("Search for {}", text_of(grep, "pattern")),
        path,
    )
}

fn only(root: &Path, glob: &str) -> Result<Override, ignore::Error> {
    let mut overrides = OverrideBuilder::new(root);
    overrides.add(glob)?;
    overrides.build()
}

/// Looks in a directory of the session, in a thread that ends when the call does.
async fn in_thread(
    call: Call,
    path: Option<String>,
    look: impl FnOnce(&Path, &CancellationToken) -> ToolOutcome<String> + Send + 'static,
) -> ToolOutcome<String> {
    let session = call.session().clone();
    let cancel = CancellationToken::new();
    let _guard = cancel.clone().drop_guard();
    let looking = tokio::task::spawn_blocking(move || {
        let root = confined(&session, path.as_deref())?;
        look(&root, &cancel)
    });
    looking.await.map_err(ToolError::failed)?
}

/// Returns a path of the session without symbolic links, if it is inside of its directories.
fn confined(session: &Session, path: Option<&str>) -> ToolOutcome<PathBuf> {
    let mut roots = Roots::open([session.cwd()])?;
    for directory in session.additional_directories() {
        // One that is gone takes nothing from the others.
        let _ = roots.add(directory);
    }
    let path = session.resolve(path.unwrap_or("."));
    roots
        .existing(&path)
        .map_err(|error| ToolError::failed(error.message))
}

/// Returns the paths below a root that fit, relative to it.
fn found(
    walk: &WalkBuilder,
    root: &Path,
    cancel: &CancellationToken,
    fits: impl Fn(&Path, bool) -> bool,
) -> ToolOutcome<String> {
    let mut paths = Vec::new();
    for entry in walk.build() {
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        // What cannot be read is left out.
        let Ok(entry) = entry else { continue };
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        if relative.as_os_str().is_empty() || !fits(relative, is_directory) {
            continue;
        }
        let mark = if is_directory { "/" } else { "" };
        paths.push(format!("{}{mark}", relative.display()));
        if paths.len() > MOST {
            break;
        }
    }
    paths.sort();
    Ok(some_of(paths))
}

/// Returns the lines below a root that match.
fn lines(
    walk: &WalkBuilder,
    root: &Path,
    cancel: &CancellationToken,
    matcher: &RegexMatcher,
) -> ToolOutcome<String> {
    let mut lines = Vec::new();
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .build();
    for entry in walk.build() {
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let name = match relative.as_os_str().is_empty() {
            true => entry.path().display().to_string(),
            false => relative.display().to_string(),
        };
        let sink = UTF8(|number, line| {
            let line: String = line.trim_end().chars().take(LONGEST_LINE).collect();
            lines.push(format!("{name}:{number}:{line}"));
            Ok(lines.len() <= MOST && !cancel.is_cancelled())
        });
        // A file that cannot be read, or is no text, is left out.
        let _ = searcher.search_path(matcher, entry.path(), sink);
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        if lines.len() > MOST {
            break;
        }
    }
    Ok(some_of(lines))
}

/// Joins results, and says if there are more.
fn some_of(mut results: Vec<String>) -> String {
    if results.is_empty() {
        return "Nothing was found.".to_owned();
    }
    let has_more = results.len() > MOST;
    results.truncate(MOST);
    let mut text = results.join("\n");
    if has_more {
        text.push_str("\n[There are more; narrow the search.]");
    }
    text
}
