//! Commands of tool calls, and command patterns.
//!
//! A rule that allows matches only a single program with its arguments: a line that a shell could
//! interpret in any other way is not a [`simple`](Command::simple) command. A rule that denies
//! treats each word of the line as the possible start of a command.

use std::collections::BTreeSet;

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use super::RulesError;

/// The longest command that is matched, in bytes.
const LONGEST: usize = 64 << 10;

/// The maximum number of words of a command that are matched.
const MAX_WORDS: usize = 1024;

/// Characters that make a line more than a simple command: operators, redirections, expansions and
/// escapes, including those of shells other than Unix shells (`^`, `!`, `#`).
const SPECIAL: &[char] = &[
    ';', '&', '|', '<', '>', '$', '`', '\\', '(', ')', '{', '}', '!', '#', '^',
];

/// Characters of globs, which expand to other words unless quoted.
const WILD: &[char] = &['*', '?', '[', ']'];

/// Programs that execute a line after `-c`.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash"];

/// Commands of shells that change the directory.
const CHANGES: &[&str] = &["cd", "chdir", "pushd", "set-location", "sl"];

/// Options that change the directory in which a program works.
const DIRECTORY_OPTIONS: &[&str] = &[
    "-C",
    "--chdir",
    "--cwd",
    "--directory",
    "--prefix",
    "--work-tree",
];

/// The command that a tool call runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    /// The text that a shell interprets, if it is known.
    line: Option<String>,
    /// The program and its arguments, for a simple command.
    simple: Option<Vec<String>>,
    /// The words of each command that the line may contain.
    parts: Vec<Vec<String>>,
    /// Whether it has expansions whose value is known only at run time.
    expands: bool,
}

impl Command {
    /// Parses a shell line.
    pub(super) fn line(line: &str) -> Self {
        if line.len() > LONGEST {
            return Self::unknown();
        }
        let simple = simple_words(line);
        // Quotes may be part of a word, or enclose a line for another shell.
        let mut parts = split(line, true);
        parts.extend(split(line, false));
        let expands = line.contains(['$', '`', '*', '?', '[', '{', '~', '\\', '^', '%']);
        Self {
            line: Some(line.to_owned()),
            simple,
            parts,
            expands,
        }
    }

    /// Creates a command from a program and its arguments.
    pub(super) fn words(words: &[String]) -> Self {
        if words.iter().map(String::len).sum::<usize>() > LONGEST || words.len() > MAX_WORDS {
            return Self::unknown();
        }
        if let [shell, flag, line] = words
            && is_shell(shell)
            && matches!(flag.as_str(), "-c" | "-lc")
        {
            return Self::line(line);
        }
        let mut parts = vec![words.to_vec()];
        let mut expands = false;
        for word in words {
            let inner = Self::line(word);
            parts.extend(inner.parts);
            expands |= inner.expands;
        }
        // The agent reports no shell, but some agents join the words for one.
        let harmless = |word: &String| !word.contains(SPECIAL) && !word.contains(char::is_control);
        let one = !words.is_empty() && words.iter().all(harmless);
        let is_interpreter = words.first().is_some_and(|word| is_shell(word));
        Self {
            line: None,
            simple: (one && !is_interpreter).then(|| words.to_vec()),
            parts,
            expands,
        }
    }

    fn unknown() -> Self {
        Self {
            line: None,
            simple: None,
            parts: Vec::new(),
            expands: true,
        }
    }

    /// Returns the program and its arguments of a simple command.
    pub(super) fn simple(&self) -> Option<&[String]> {
        self.simple.as_deref()
    }

    /// Returns whether both run the same: the same words, or the same text in a shell.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        if let (Some(words), Some(others)) = (&self.simple, &other.simple) {
            return words == others;
        }
        match (&self.line, &other.line) {
            (Some(line), Some(other)) => line == other,
            // The words themselves come first.
            (None, None) => !self.parts.is_empty() && self.parts.first() == other.parts.first(),
            _ => false,
        }
    }

    pub(super) fn expands(&self) -> bool {
        self.expands
    }

    /// Returns all words of the command.
    pub(super) fn all_words(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flatten().map(String::as_str)
    }

    /// Returns the directories that the command may change to, in their order; `None` if one is not
    /// named, such as by `cd -`.
    pub(super) fn changes_of_directory(&self) -> impl Iterator<Item = Option<&str>> {
        self.parts.iter().flat_map(|part| {
            let words = part.iter().enumerate();
            words.filter_map(|(index, word)| change_of_directory(word, &part[index + 1..]))
        })
    }
}

/// Returns the directory that a word, with the words after it, may change to.
fn change_of_directory<'a>(word: &'a str, more: &'a [String]) -> Option<Option<&'a str>> {
    let lower = word.to_ascii_lowercase();
    if lower == "popd" {
        return Some(None);
    }
    if CHANGES.contains(&lower.as_str()) {
        let mut more = more.iter().map(String::as_str);
        let target = more.find(|word| *word == "-" || !word.starts_with('-'));
        return Some(target.filter(|word| *word != "-"));
    }
    if DIRECTORY_OPTIONS.contains(&word) {
        return more.first().map(|word| Some(word.as_str()));
    }
    if let Some((option, value)) = word.split_once('=') {
        return DIRECTORY_OPTIONS.contains(&option).then_some(Some(value));
    }
    let attached = word.strip_prefix("-C").filter(|value| !value.is_empty());
    attached.map(Some)
}

fn is_shell(program: &str) -> bool {
    let name = ["/bin/", "/usr/bin/"]
        .iter()
        .find_map(|dir| program.strip_prefix(dir))
        .unwrap_or(program);
    SHELLS.contains(&name)
}

/// Returns the words of a line that contains only words, spaces and pairs of quotes.
fn simple_words(line: &str) -> Option<Vec<String>> {
    let other_space = |c: char| c != ' ' && (c.is_control() || c.is_whitespace());
    if line.contains(SPECIAL) || line.contains(other_space) {
        return None;
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            // A tilde at the start of a word or of a value expands to a directory.
            (None, '~') => match word.as_deref() {
                None | Some("") => return None,
                Some(word) if word.ends_with([':', '=']) => return None,
                Some(_) => word.get_or_insert_default().push('~'),
            },
            (None, c) if WILD.contains(&c) => return None,
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (quote.is_none() && !words.is_empty() && words.len() <= MAX_WORDS).then_some(words)
}

/// Splits a line into possible commands, and those into words. Quotes are removed: if `joins`,
/// quoted text is part of its word, otherwise quotes separate words.
fn split(line: &str, joins: bool) -> Vec<Vec<String>> {
    let mut parts = vec![Vec::new()];
    let mut word = String::new();
    let mut quote: Option<char> = None;
    let end_word = |word: &mut String, parts: &mut Vec<Vec<String>>, ends_part: bool| {
        if let Some(part) = parts.last_mut()
            && !word.is_empty()
        {
            part.push(std::mem::take(word));
        }
        if ends_part {
            parts.push(Vec::new());
        }
    };
    for c in line.chars() {
        match c {
            '\'' | '"' if !joins => end_word(&mut word, &mut parts, false),
            '\'' | '"' if quote == Some(c) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(c),
            // An escape may be in the middle of a name.
            '\\' => {}
            _ if joins && quote.is_some() => word.push(c),
            ';' | '&' | '|' | '(' | ')' | '{' | '}' | '`' | '\n' | '\r' | '<' | '>' => {
                end_word(&mut word, &mut parts, true);
            }
            c if c.is_whitespace() => end_word(&mut word, &mut parts, false),
            c => word.push(c),
        }
    }
    end_word(&mut word, &mut parts, false);
    parts.retain(|part| !part.is_empty());
    parts
}

/// A command pattern: one glob per word. `**` as the last word matches any further words.
#[derive(Debug, Clone)]
pub(super) struct CommandPattern {
    text: CommandText,
    exact: Vec<GlobMatcher>,
    /// Case-insensitive matchers, for rules that deny.
    wide: Vec<GlobMatcher>,
    any_more: bool,
}

/// The notation of a command pattern: words separated by spaces, or a list of words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum CommandText {
    Line(String),
    Words(Vec<String>),
}

impl CommandPattern {
    pub(super) fn new(text: CommandText) -> Result<Self, RulesError> {
        let words: Vec<String> = match &text {
            CommandText::Line(line) => line.split_whitespace().map(str::to_owned).collect(),
            CommandText::Words(words) => words.clone(),
        };
        let shown = words.join(" ");
        let invalid = |reason: String| RulesError::Pattern {
            pattern: shown.clone(),
            reason,
        };
        let any_more = words.last().is_some_and(|last| last == "**");
        let words = &words[..words.len() - usize::from(any_more)];
        if words.is_empty() || words.len() > MAX_WORDS || shown.len() > LONGEST {
            return Err(invalid("expected a program, and arguments".to_owned()));
        }
        if words.iter().any(|word| word == "**") {
            return Err(invalid("`**` must be the last word".to_owned()));
        }
        let globs = |any_case: bool| {
            let glob = |word: &String| {
                let glob = GlobBuilder::new(word)
                    .literal_separator(false)
                    .backslash_escape(true)
                    .case_insensitive(any_case)
                    .build();
                glob.map(|glob| glob.compile_matcher())
                    .map_err(|error| invalid(error.kind().to_string()))
            };
            words.iter().map(glob).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            exact: globs(false)?,
            wide: globs(true)?,
            text,
            any_more,
        })
    }

    pub(super) fn text(&self) -> &CommandText {
        &self.text
    }

    /// Returns whether `words` as a whole match the pattern.
    pub(super) fn contains(&self, words: &[String]) -> bool {
        let enough = match self.any_more {
            true => words.len() >= self.exact.len(),
            false => words.len() == self.exact.len(),
        };
        let mut pairs = self.exact.iter().zip(words);
        enough && pairs.all(|(glob, word)| glob.is_match(word))
    }

    /// Returns whether a matching command may start anywhere in `command`, with or without further
    /// arguments, and with options before each of its arguments.
    pub(super) fn touches(&self, command: &Command) -> bool {
        let mut parts = command.parts.iter();
        parts.any(|part| (0..part.len()).any(|start| self.begins(&part[start..])))
    }

    /// Returns whether `words` begin with the words of the pattern.
    fn begins(&self, words: &[String]) -> bool {
        let Some((program, arguments)) = self.wide.split_first() else {
            return false;
        };
        let named = |word: &String| program.is_match(word) || program.is_match(file_name(word));
        if !words.first().is_some_and(named) {
            return false;
        }
        // The indexes at which the next word of the pattern may be.
        let mut next = BTreeSet::from([1]);
        for argument in arguments {
            let mut candidates = BTreeSet::new();
            while let Some(index) = next.pop_first() {
                let Some(word) = words.get(index) else {
                    continue;
                };
                // It is not known which options have a value: `git -C DIR push`, `git -P push`.
                if word.starts_with(['-', '+']) {
                    next.insert(index + 1);
                    if !word.contains('=') {
                        next.insert(index + 2);
                    }
                }
                if argument.is_match(word) {
                    candidates.insert(index + 1);
                }
            }
            next = candidates;
        }
        !next.is_empty()
    }
}

fn file_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name.strip_suffix(".exe").unwrap_or(name)
}

#[cfg(test)]
mod tests;
