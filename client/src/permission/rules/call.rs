//! The properties of a tool call that rules match: kind, paths and commands.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use acp_sdk::v1::ToolKind;

use super::command::Command;
use super::input::Input;
use super::path::{Base, CallPath, is_glob, may_be_path};
use crate::permission::PermissionRequest;

/// The maximum number of words of all commands that deny rules match as paths.
const MAX_WORDS: usize = 4000;

/// The maximum number of paths of a call.
const MAX_PATHS: usize = 16_000;

/// The maximum number of directories in which a command may be.
const MAX_DIRECTORIES: usize = 32;

/// The maximum number of globs of a call.
const MAX_GLOBS: usize = 100;

/// The properties of a tool call that rules match.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) kind: Option<ToolKind>,
    pub(super) base: Option<Base>,
    /// The paths in locations, diffs and known members of the input.
    pub(super) paths: Vec<CallPath>,
    /// Whether a path of the call is ambiguous.
    pub(super) has_unclear_path: bool,
    /// Those of `paths` that may be globs.
    pub(super) globs: Vec<CallPath>,
    /// Whether one of them is only in the input, where tools accept globs.
    pub(super) has_input_glob: bool,
    /// All other strings of the input and words of commands that are a path if they are one at all.
    pub(super) more_paths: Vec<CallPath>,
    /// Those that are a path only if they are globs, or written for another system.
    pub(super) more_globs: Vec<CallPath>,
    /// Whether there is another string.
    has_text: bool,
    /// Whether another string may be an ambiguous path.
    pub(super) has_unclear_text: bool,
    pub(super) commands: Vec<Command>,
    /// The directories in which the input says that its command runs.
    directories: Vec<CallPath>,
    /// Whether one of them is ambiguous.
    has_unclear_directory: bool,
    /// Whether a command changes to a directory that is not known.
    has_unclear_change: bool,
    /// Whether the input sets environment variables of the command.
    pub(super) has_environment: bool,
    /// Whether the whole call was inspected.
    pub(super) is_complete: bool,
}

impl Call {
    pub(super) fn new(question: &PermissionRequest) -> Self {
        let base = question.cwd.as_deref().and_then(Base::new);
        let input = Input::read(question.raw_input.as_ref());
        let mut call = Self {
            kind: question.kind.clone(),
            base,
            paths: Vec::new(),
            has_unclear_path: input.has_unclear_path,
            globs: Vec::new(),
            has_input_glob: false,
            more_paths: Vec::new(),
            more_globs: Vec::new(),
            has_text: false,
            has_unclear_text: false,
            commands: input.commands,
            directories: Vec::new(),
            has_unclear_directory: input.has_unclear_directory,
            has_unclear_change: false,
            has_environment: input.has_environment,
            is_complete: !input.is_cut,
        };
        // The directories that relative paths may be relative to.
        let mut bases: Vec<PathBuf> = Vec::new();
        bases.extend(call.base.as_ref().map(|base| base.lexical().to_owned()));
        // The session's own directory is that of a call which names none: naming it says nothing.
        let mut named = Vec::new();
        for text in &input.directories {
            let base = bases.first().map(PathBuf::as_path);
            match CallPath::resolve(text, base) {
                Some(path) => {
                    if base != Some(path.lexical()) {
                        named.push(text.clone());
                    }
                    call.directories.push(path);
                }
                None => {
                    named.push(text.clone());
                    call.has_unclear_directory = true;
                }
            }
        }
        let directories = call.directories.iter();
        bases.extend(directories.map(|path| path.written().to_owned()));
        for text in &question.paths {
            call.add_path(text, &bases);
        }
        let locations: HashSet<CallPath> = call.paths.iter().cloned().collect();
        for text in &input.paths {
            let added = call.add_path(text, &bases);
            // A location is a name, and so is its repetition in the input.
            let is_location = added.iter().any(|path| locations.contains(path));
            call.has_input_glob |= is_glob(text) && !is_location;
        }
        let mut known = HashSet::new();
        call.paths.retain(|path| known.insert(path.clone()));
        call.add_changes_of_directory(&mut bases);
        call.add_texts(&input.texts, &bases);
        call.add_texts(&named, &bases);
        call.add_words(&bases);
        call
    }

    /// Adds a path in each directory that it may be relative to, and returns the paths.
    fn add_path(&mut self, text: &str, bases: &[PathBuf]) -> Vec<CallPath> {
        let resolved = resolve(text, bases);
        let is_relative = resolved.iter().any(|path| !path.is_written_as(text));
        self.has_unclear_path |= resolved.is_empty() || (is_relative && self.has_unclear_directory);
        for path in &resolved {
            if self.paths.len() >= MAX_PATHS {
                self.is_complete = false;
                break;
            }
            self.paths.push(path.clone());
        }
        if is_glob(text) {
            add_globs(&mut self.globs, &resolved, &mut self.is_complete);
        }
        resolved
    }

    /// Adds the directories that the commands change to.
    fn add_changes_of_directory(&mut self, bases: &mut Vec<PathBuf>) {
        for change in self.commands.iter().flat_map(Command::changes_of_directory) {
            let resolved = change.map(|text| resolve(text, bases)).unwrap_or_default();
            self.has_unclear_change |= resolved.is_empty();
            for path in resolved {
                let path = path.lexical().to_owned();
                if bases.contains(&path) {
                    continue;
                }
                if bases.len() >= MAX_DIRECTORIES {
                    self.has_unclear_change = true;
                    return;
                }
                bases.push(path);
            }
        }
    }

    fn add_words(&mut self, bases: &[PathBuf]) {
        let mut words: HashSet<&str> = HashSet::new();
        for word in self.commands.iter().flat_map(Command::all_words) {
            if words.len() >= MAX_WORDS {
                self.is_complete = false;
                break;
            }
            words.insert(word);
            // `--file=x`, `file=@x`, `HEAD:x`, `a,b`, `-fx`
            for part in word.split(['=', ',']) {
                words.insert(part);
                if !part.contains("://") {
                    words.extend(part.split(['@', ':']));
                }
            }
            words.extend(word.split_once('=').map(|(_, value)| value));
            let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            let value =
                short.and_then(|rest| rest.char_indices().nth(1).map(|(at, _)| &rest[at..]));
            words.extend(value);
        }
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        self.add_texts(&words, bases);
    }

    /// Adds strings that may be paths.
    fn add_texts(&mut self, texts: &[String], bases: &[PathBuf]) {
        for text in texts {
            let text = text.trim();
            self.has_text |= !text.is_empty();
            let resolved = resolve(text, bases);
            if resolved.is_empty() {
                self.has_unclear_text |= may_be_path(text);
                if text.contains('\\') {
                    let slashed = resolve(&text.replace('\\', "/"), bases);
                    add_globs(&mut self.more_globs, &slashed, &mut self.is_complete);
                }
            } else if is_glob(text) {
                add_globs(&mut self.more_globs, &resolved, &mut self.is_complete);
            }
            if self.more_paths.len() + resolved.len() > MAX_PATHS {
                self.is_complete = false;
                return;
            }
            self.more_paths.extend(resolved);
        }
    }

    /// Resolves the symbolic links of all paths. Blocks for as long as the file system takes.
    pub(super) fn follow_links(&mut self) {
        if let Some(base) = &mut self.base {
            base.follow_links();
        }
        let listed = self.paths.iter_mut().chain(&mut self.globs);
        let more = self.more_paths.iter_mut().chain(&mut self.more_globs);
        for path in listed.chain(more).chain(&mut self.directories) {
            path.follow_links();
        }
    }

    /// Returns whether the agent reports that the call runs a command.
    pub(super) fn runs(&self) -> bool {
        !self.commands.is_empty() || self.kind == Some(ToolKind::Execute)
    }

    /// Returns the directory of the command, as written and with symbolic links resolved; `None` if there
    /// may be several.
    pub(super) fn directory(&self) -> Option<(&Path, Option<&Path>)> {
        if self.has_unclear_directory {
            return None;
        }
        match self.directories.as_slice() {
            [] => self.base.as_ref().map(|base| (base.lexical(), base.real())),
            [directory] => Some((directory.lexical(), directory.real())),
            _ => None,
        }
    }

    /// Returns whether the call has neither a path nor a command nor another text.
    pub(super) fn says_nothing(&self) -> bool {
        self.paths.is_empty() && !self.has_text && self.commands.is_empty()
    }

    /// Returns whether the input names a directory of its command.
    pub(super) fn has_directory(&self) -> bool {
        !self.directories.is_empty()
    }

    /// Returns whether the command may run outside of the session's directory.
    pub(super) fn runs_elsewhere(&self) -> bool {
        let base = self.base.as_ref();
        let inside = |path: &CallPath| base.is_some_and(|base| path.is_inside(base));
        self.has_unclear_directory || !self.directories.iter().all(inside)
    }

    /// Returns whether any directory that relative paths may be relative to is not known.
    pub(super) fn may_be_anywhere(&self) -> bool {
        self.base.is_none() || self.has_unclear_directory || self.has_unclear_change
    }

    /// Returns the only command, if it is simple and runs in the session's directory as it is.
    pub(super) fn simple_command(&self) -> Option<&[String]> {
        match self.commands.as_slice() {
            [command] if !self.has_environment => command.simple(),
            _ => None,
        }
    }
}

/// Resolves a path in each of the directories; empty if it is ambiguous.
fn resolve(text: &str, bases: &[PathBuf]) -> Vec<CallPath> {
    let Some((first, more)) = bases.split_first() else {
        return CallPath::resolve(text, None).into_iter().collect();
    };
    let Some(path) = CallPath::resolve(text, Some(first)) else {
        return Vec::new();
    };
    let mut paths = vec![path];
    if !paths[0].is_written_as(text) {
        let others = more.iter();
        paths.extend(others.filter_map(|base| CallPath::resolve(text, Some(base))));
    }
    paths
}

fn add_globs(globs: &mut Vec<CallPath>, paths: &[CallPath], is_complete: &mut bool) {
    *is_complete &= globs.len() + paths.len() <= MAX_GLOBS;
    if *is_complete {
        globs.extend_from_slice(paths);
    }
}
