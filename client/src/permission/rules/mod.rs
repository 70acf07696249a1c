//! Permission rules: allow and deny tool calls by kind, path and command. The first match decides.
//!
//! All information about a tool call comes from the agent. A rule that allows matches only if the
//! whole request fits; a rule that denies matches if any part fits. `docs/permissions.md` specifies
//! the file format and the comparison.

mod belongs;
mod call;
mod command;
mod error;
mod file;
mod glob;
mod input;
mod matching;
mod memory;
mod own_file;
mod path;
mod pattern;
mod rule;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::{PermissionOptionId, PermissionOptionKind, ToolKind};
use serde::{Deserialize, Serialize};

pub(crate) use self::belongs::Action;
use self::call::Call;
pub use self::error::RulesError;
use self::matching::Match;
use self::memory::Memory;
use self::own_file::OwnFile;
use self::rule::Effect;
pub use self::rule::Rule;
use super::{
    ALL_CHANGES, Asker, Decision, PermissionRequest, Permissions, Policy, Reason, RuleId,
    RuleSource,
};
use crate::hooks::AnyPermissions;

/// Storage of rules for answers that are final: `allow_always` and `reject_always`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Remember {
    /// Adds a rule that lasts as long as the session.
    #[default]
    Session,
    /// Adds a rule to the file from which the rules were read; without one, to the session.
    File,
    /// Adds no rule. The agent still receives the selected option.
    No,
}

/// Decides permission requests by an ordered list of rules, with a fallback.
///
/// Clones share the remembered rules.
///
/// ```
/// use acp_client::{Policy, Rule, Rules};
///
/// # fn example() -> Result<(), acp_client::RulesError> {
/// let rules = Rules::new()
///     .rule(Rule::deny().path("**/.env")?)
///     .rule(Rule::allow().command("cargo test **")?)
///     .fallback(Policy::ApproveReads);
/// # Ok(())
/// # }
/// # example().unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct Rules {
    /// The rules of the file, which precede all others. Reloaded when a rule is added.
    of_file: Arc<Mutex<Arc<Vec<Rule>>>>,
    file: Option<OwnFile>,
    of_program: Vec<Rule>,
    remember: Remember,
    memory: Arc<Memory>,
    fallback: Arc<AnyPermissions>,
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules")
            .field("file", &self.file)
            .field("of_file", &self.of_file())
            .field("of_program", &self.of_program)
            .field("remember", &self.remember)
            .finish_non_exhaustive()
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::new()
    }
}

impl Rules {
    /// Creates an empty list with the fallback [`Policy::DenyAll`].
    pub fn new() -> Self {
        Self {
            of_file: Arc::default(),
            file: None,
            of_program: Vec::new(),
            remember: Remember::default(),
            memory: Arc::default(),
            fallback: Arc::new(Policy::DenyAll),
        }
    }

    /// Reads rules from a TOML file. Blocks for as long as the file system takes.
    ///
    /// # Errors
    ///
    /// [`RulesError::Read`] if the file cannot be read or exceeds 1 MiB,
    /// [`RulesError::Invalid`] if one of its rules is invalid.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, RulesError> {
        let path = path.as_ref();
        let content = file::read(path)?;
        let own_file = OwnFile::new(path)?;
        Ok(Self {
            of_file: Arc::new(Mutex::new(Arc::new(content.rules))),
            file: Some(own_file),
            remember: content.remember.unwrap_or_default(),
            ..Self::new()
        })
    }

    /// Appends a rule, after the rules of a file.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.of_program.push(rule);
        self
    }

    /// Sets the handler of requests that no rule matches (default [`Policy::DenyAll`]).
    ///
    /// A request that a rule may deny, but that says too little, is passed to it only if it
    /// [asks a person](Permissions::asks_person), and rejected otherwise.
    pub fn fallback(mut self, fallback: impl Permissions) -> Self {
        self.fallback = Arc::new(fallback);
        self
    }

    /// Sets the storage of "always" answers (default: the file's setting, else [`Remember::Session`]).
    pub fn remember(mut self, remember: Remember) -> Self {
        self.remember = remember;
        self
    }

    /// Returns the file of the rules if it, or a link to it, lies in `directory`.
    ///
    /// An agent that works there can change the rules without the client, such as by a command. Calls
    /// for which it asks are rejected if they name the file. Blocks for as long as the file system takes.
    #[must_use]
    pub fn file_inside(&self, directory: impl AsRef<Path>) -> Option<&Path> {
        let file = self.file.as_ref()?;
        file.is_inside(directory.as_ref()).then(|| file.path())
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Vec<Rule>>> {
        self.of_file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_file(&self) -> Arc<Vec<Rule>> {
        self.lock().clone()
    }

    async fn judge(&self, question: &PermissionRequest) -> (Decision, Option<Reason>) {
        let of_file = self.of_file();
        let of_session = self.memory.rules(&question.request.session_id);
        let source = match &self.file {
            Some(file) => RuleSource::File(file.path().to_owned()),
            None => RuleSource::Program,
        };
        let rules = numbered(of_file.iter(), &source)
            .chain(numbered(self.of_program.iter(), &RuleSource::Program))
            .chain(numbered(of_session.iter(), &RuleSource::Session));
        let has_paths = rules.clone().any(|(_, _, rule)| rule.has_paths());
        let mut call = Call::new(question);
        if has_paths || call.has_directory() || self.file.is_some() {
            // File system calls may block for long.
            let judged = tokio::task::spawn_blocking(move || {
                call.follow_links();
                call
            });
            call = match judged.await {
                Ok(call) => call,
                // The runtime is shutting down.
                Err(_) => return (Decision::Reject, None),
            };
        }
        let kinds: Vec<_> = question
            .request
            .options
            .iter()
            .map(|option| &option.kind)
            .collect();
        // A rule allows one call. An option of another kind would allow more.
        let can_allow = kinds.contains(&&PermissionOptionKind::AllowOnce);
        let mut unclear = None;
        if let Some(file) = &self.file {
            let reason = || Reason::RulesFile(file.path().to_owned());
            match file.matches(&call) {
                Match::Yes => return (Decision::Reject, Some(reason())),
                Match::Unclear => unclear = Some(reason()),
                Match::No => {}
            }
        }
        for (source, index, rule) in rules {
            let id = || RuleId {
                source: source.clone(),
                number: index + 1,
                name: rule.shown_name().map(str::to_owned),
            };
            match (rule.effect(), rule.matches(&call)) {
                (Effect::Deny, Match::Yes) => return (Decision::Reject, Some(Reason::Rule(id()))),
                (Effect::Deny, Match::Unclear) => {
                    unclear.get_or_insert_with(|| Reason::Unclear(id()));
                }
                (Effect::Allow, Match::Yes) if can_allow && unclear.is_none() => {
                    return (Decision::AllowOnce, Some(Reason::Rule(id())));
                }
                _ => {}
            }
        }
        let (decision, reason) = match unclear {
            // No policy may allow what a rule may deny.
            Some(_) if !self.fallback.asks_person() => (Decision::Reject, None),
            Some(_) => {
                let question = PermissionRequest {
                    may_be_denied: true,
                    ..question.clone()
                };
                self.fallback.decide_with_reason(&question).await
            }
            None => self.fallback.decide_with_reason(question).await,
        };
        let always = match &decision {
            Decision::Option(id) if is_all_changes(question, id) => {
                return (decision, self.allow_all_changes(question).or(reason));
            }
            Decision::Option(id) => always(question, id),
            _ => None,
        };
        let remembered = match (always, &unclear) {
            // The rule would not decide: the one that may deny precedes it.
            (Some(Effect::Allow), Some(unclear)) if self.remember != Remember::No => {
                Some(Reason::NotRemembered(unclear.to_string()))
            }
            (Some(effect), _) => self.add(question, &call, effect).await,
            (None, _) => None,
        };
        (decision, remembered.or(reason).or(unclear))
    }

    /// Adds a rule to the session that allows all changes of files in its directory.
    fn allow_all_changes(&self, question: &PermissionRequest) -> Option<Reason> {
        if self.remember == Remember::No {
            return None;
        }
        match Rule::allow().kind(ToolKind::Edit).path("**") {
            Ok(rule) => self.memory.add(&question.request.session_id, rule),
            Err(error) => return Some(Reason::NotRemembered(error.to_string())),
        }
        Some(Reason::Remembered(None))
    }

    /// Adds a rule that gives the same answer to the same request.
    async fn add(
        &self,
        question: &PermissionRequest,
        call: &Call,
        effect: Effect,
    ) -> Option<Reason> {
        if self.remember == Remember::No {
            return None;
        }
        let rule = match Rule::exactly(call, effect) {
            Ok(rule) => rule,
            Err(why) => return Some(Reason::NotRemembered(why.to_owned())),
        };
        let path = self.file.as_ref().map(OwnFile::path);
        let (Remember::File, Some(path)) = (self.remember, path) else {
            self.memory.add(&question.request.session_id, rule);
            return Some(Reason::Remembered(None));
        };
        let added = tokio::task::spawn_blocking({
            let (path, rule) = (path.to_owned(), rule.clone());
            move || file::add(&path, &rule)
        });
        Some(match added.await {
            Ok(Ok(content)) => {
                *self.lock() = Arc::new(content.rules);
                Reason::Remembered(Some(path.to_owned()))
            }
            Ok(Err(error)) => {
                // The answer is valid without a rule in the file.
                self.memory.add(&question.request.session_id, rule);
                Reason::NotInFile(error.to_string())
            }
            Err(error) => Reason::NotRemembered(error.to_string()),
        })
    }
}

/// Returns rules with their source and number.
fn numbered<'a>(
    rules: impl Iterator<Item = &'a Rule> + Clone,
    source: &'a RuleSource,
) -> impl Iterator<Item = (&'a RuleSource, usize, &'a Rule)> + Clone {
    let numbered = rules.enumerate();
    numbered.map(move |(index, rule)| (source, index, rule))
}

/// Returns whether an option of the client allows all changes of files.
fn is_all_changes(question: &PermissionRequest, id: &PermissionOptionId) -> bool {
    question.asker == Asker::Client && id.as_str() == ALL_CHANGES
}

/// Returns the effect of an "always" option.
fn always(question: &PermissionRequest, id: &PermissionOptionId) -> Option<Effect> {
    match question.option(id)?.kind {
        PermissionOptionKind::AllowAlways => Some(Effect::Allow),
        PermissionOptionKind::RejectAlways => Some(Effect::Deny),
        _ => None,
    }
}

impl Permissions for Rules {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        self.judge(question).await.0
    }

    async fn decide_with_reason(&self, question: &PermissionRequest) -> (Decision, Option<Reason>) {
        self.judge(question).await
    }

    fn in_order(&self) -> bool {
        self.fallback.in_order()
    }

    fn asks_person(&self) -> bool {
        self.fallback.asks_person()
    }
}
