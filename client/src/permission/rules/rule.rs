//! One rule: its conditions and its effect.

use acp_sdk::v1::ToolKind;

use super::RulesError;
use super::call::Call;
use super::command::{Command, CommandPattern, CommandText};
use super::matching::Match;
use super::pattern::PathPattern;

/// The effect of a rule on matching tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Allow,
    Deny,
}

/// Allows or denies tool calls that fulfil all of its conditions.
///
/// A rule without conditions matches each call.
///
/// ```
/// use acp_client::Rule;
/// use acp_sdk::v1::ToolKind;
///
/// # fn example() -> Result<(), acp_client::RulesError> {
/// let edits = Rule::allow().kind(ToolKind::Edit).path("src/**")?;
/// let tests = Rule::allow().name("tests").command("cargo test **")?;
/// let secrets = Rule::deny().path("**/.env")?;
/// # Ok(())
/// # }
/// # example().unwrap();
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Rule {
    effect: Effect,
    name: Option<String>,
    kinds: Vec<ToolKind>,
    paths: Vec<PathPattern>,
    commands: Vec<CommandPattern>,
}

impl Rule {
    /// Creates a rule that allows matching calls.
    pub fn allow() -> Self {
        Self::new(Effect::Allow)
    }

    /// Creates a rule that denies matching calls.
    pub fn deny() -> Self {
        Self::new(Effect::Deny)
    }

    pub(super) fn new(effect: Effect) -> Self {
        Self {
            effect,
            name: None,
            kinds: Vec::new(),
            paths: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// Sets the name that is displayed when the rule decides.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a kind of tool call. The call must have one of the added kinds.
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Adds a glob for paths, relative to the session's directory unless absolute.
    ///
    /// `*` and `?` match within a component, `**` across components. A rule that allows requires each
    /// path of the call to match one of its globs. A rule that denies requires one path that matches,
    /// or is below a path that does.
    ///
    /// # Errors
    ///
    /// [`RulesError::Pattern`] if it is not a valid glob, or contains `.` or `..`.
    pub fn path(mut self, glob: &str) -> Result<Self, RulesError> {
        self.paths.push(PathPattern::new(glob)?);
        Ok(self)
    }

    /// Adds a command pattern: one glob per word; `**` as the last word matches any further words.
    ///
    /// A rule that allows requires the call to run exactly one program that matches, with all of its
    /// arguments. A rule that denies matches if such a command may start anywhere in the call.
    ///
    /// # Errors
    ///
    /// [`RulesError::Pattern`] if it has no program, or a word is not a valid glob.
    pub fn command(self, pattern: &str) -> Result<Self, RulesError> {
        self.command_text(CommandText::Line(pattern.to_owned()))
    }

    pub(super) fn command_text(mut self, text: CommandText) -> Result<Self, RulesError> {
        self.commands.push(CommandPattern::new(text)?);
        Ok(self)
    }

    /// Creates the rule that matches exactly this call.
    ///
    /// # Errors
    ///
    /// The reason why no rule can: the call is not fully known.
    pub(super) fn exactly(call: &Call, effect: Effect) -> Result<Self, &'static str> {
        const INVALID: &str = "the call's command or a path of it cannot be written as a pattern";
        let mut rule = Self::new(effect);
        rule.kinds.extend(call.kind.clone());
        match call.commands.as_slice() {
            [_] => {
                let words = call.simple_command();
                let words = words.ok_or("the command of the call is not simple")?;
                let words = words.iter().map(|word| escape(word)).collect();
                let text = CommandText::Words(words);
                rule = rule.command_text(text).map_err(|_| INVALID)?;
            }
            [] if call.runs() => return Err("the call does not name its command"),
            [] if call.kind.is_none() => return Err("the call has no kind"),
            [] if call.paths.is_empty() => return Err("the call has neither a command nor a path"),
            [] => {}
            _ => return Err("the call has more than one command"),
        }
        if call.has_unclear_path || call.has_input_glob || !call.is_complete {
            return Err("a path of the call is ambiguous");
        }
        for path in &call.paths {
            let path = path.lexical().to_str().ok_or(INVALID)?;
            rule = rule.path(&escape(path)).map_err(|_| INVALID)?;
        }
        Ok(rule)
    }

    pub(super) fn effect(&self) -> Effect {
        self.effect
    }

    pub(super) fn shown_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) fn kinds(&self) -> &[ToolKind] {
        &self.kinds
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(PathPattern::text)
    }

    pub(super) fn commands(&self) -> impl Iterator<Item = &CommandText> {
        self.commands.iter().map(CommandPattern::text)
    }

    /// Returns whether the rule has conditions on paths.
    pub(super) fn has_paths(&self) -> bool {
        !self.paths.is_empty()
    }

    pub(super) fn matches(&self, call: &Call) -> Match {
        match self.effect {
            Effect::Allow => self.allows(call).into(),
            Effect::Deny => self.denies(call),
        }
    }

    /// Returns whether the whole request fulfils the conditions, in each interpretation.
    fn allows(&self, call: &Call) -> bool {
        let kind =
            self.kinds.is_empty() || call.kind.as_ref().is_some_and(|k| self.kinds.contains(k));
        let command = match self.commands.is_empty() {
            // A path does not restrict the effects of a command.
            true => self.paths.is_empty() || !call.runs(),
            false => {
                let allowed = |words| self.commands.iter().any(|pattern| pattern.contains(words));
                call.simple_command().is_some_and(allowed)
                    && !call.runs_elsewhere()
                    && call.is_complete
            }
        };
        let base = call.base.as_ref();
        let paths = self.paths.is_empty()
            || (!call.paths.is_empty()
                && !call.has_unclear_path
                && !call.has_input_glob
                && call.is_complete
                && call.paths.iter().all(|path| {
                    let mut patterns = self.paths.iter();
                    patterns.any(|pattern| pattern.contains(path, base))
                }));
        kind && command && paths
    }

    /// Returns whether any part of the request fulfils the conditions, in any interpretation.
    fn denies(&self, call: &Call) -> Match {
        self.denies_kind(call)
            .min(self.denies_command(call))
            .min(self.denies_path(call))
    }

    fn denies_kind(&self, call: &Call) -> Match {
        match &call.kind {
            _ if self.kinds.is_empty() => Match::Yes,
            Some(kind) if self.kinds.contains(kind) => Match::Yes,
            _ if call.runs() && self.kinds.contains(&ToolKind::Execute) => Match::Yes,
            Some(ToolKind::Think | ToolKind::Fetch | ToolKind::SwitchMode) => Match::No,
            // It may run a command, if it says nothing else.
            Some(_) if call.says_nothing() && self.kinds.contains(&ToolKind::Execute) => {
                Match::Unclear
            }
            Some(_) => Match::No,
            None => Match::Unclear,
        }
    }

    fn denies_command(&self, call: &Call) -> Match {
        if self.commands.is_empty() {
            return Match::Yes;
        }
        let denied = |command: &Command| {
            let mut patterns = self.commands.iter();
            patterns.any(|pattern| pattern.touches(command))
        };
        if call.commands.iter().any(denied) {
            return Match::Yes;
        }
        let unclear = match call.commands.as_slice() {
            [] => match &call.kind {
                Some(ToolKind::Think | ToolKind::Fetch | ToolKind::SwitchMode) => false,
                // They run no command, if they say anything.
                Some(
                    ToolKind::Read
                    | ToolKind::Edit
                    | ToolKind::Delete
                    | ToolKind::Move
                    | ToolKind::Search,
                ) => call.says_nothing(),
                _ => true,
            },
            commands => commands.iter().any(Command::expands),
        };
        Match::unclear_if(unclear || !call.is_complete)
    }

    fn denies_path(&self, call: &Call) -> Match {
        if self.paths.is_empty() {
            return Match::Yes;
        }
        let base = call.base.as_ref();
        let touches = |path| self.paths.iter().any(|pattern| pattern.touches(path, base));
        if call.paths.iter().chain(&call.more_paths).any(touches) {
            return Match::Yes;
        }
        let meets = |glob| {
            self.paths
                .iter()
                .map(|pattern| pattern.meets(glob, base))
                .max()
        };
        let met = call.globs.iter().filter_map(meets).max();
        if met == Some(Match::Yes) {
            return Match::Yes;
        }
        let unclear = met == Some(Match::Unclear)
            || call
                .more_globs
                .iter()
                .filter_map(meets)
                .any(|met| met != Match::No)
            || call.has_unclear_path
            || call.has_unclear_text
            || !call.is_complete
            || call.commands.iter().any(Command::expands)
            || Self::lacks_paths(call)
            || self.denies_contents(call);
        Match::unclear_if(unclear)
    }

    /// Returns whether the call may use paths that it does not name.
    fn lacks_paths(call: &Call) -> bool {
        let names_nothing = call.paths.is_empty() && call.commands.is_empty();
        let says_nothing = call.says_nothing();
        match &call.kind {
            Some(ToolKind::Think | ToolKind::Fetch | ToolKind::SwitchMode) if says_nothing => false,
            _ if call.may_be_anywhere() => true,
            Some(ToolKind::Think | ToolKind::Fetch | ToolKind::SwitchMode) => false,
            // Without a path, it searches its whole directory.
            Some(ToolKind::Search) => call.paths.is_empty(),
            Some(ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move) | None => {
                names_nothing
            }
            Some(_) => says_nothing,
        }
    }

    /// Returns whether the call may affect denied contents of a directory that it names.
    fn denies_contents(&self, call: &Call) -> bool {
        let base = call.base.as_ref();
        let has_denied = |path| {
            self.paths
                .iter()
                .any(|pattern| pattern.may_be_below(path, base))
        };
        let (one_file, whole) = match &call.kind {
            Some(ToolKind::Read | ToolKind::Edit) => (true, false),
            Some(ToolKind::Think | ToolKind::Fetch | ToolKind::SwitchMode | ToolKind::Execute) => {
                (false, false)
            }
            // A directory may exist on another machine only.
            _ => (false, true),
        };
        let mut listed = call.paths.iter();
        let mut more = call.more_paths.iter();
        listed.any(|path| (path.is_dir() || (whole && !path.is_file())) && has_denied(path))
            || (!one_file && more.any(|path| path.is_dir() && has_denied(path)))
    }
}

/// Escapes a string as a glob that matches only this string.
fn escape(text: &str) -> String {
    let mut glob = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' => glob.extend(['[', c, ']']),
            '\\' if !cfg!(windows) => glob.push_str("\\\\"),
            c => glob.push(c),
        }
    }
    glob
}
