//! Prompts that were accepted and wait for their turns.

use std::sync::Arc;

/// A prompt that waits for its turn, as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredPrompt {
    /// Names the prompt in its session. Prompts are in the order of their numbers.
    pub number: u64,
    /// JSON, without line feeds. Only the server reads it.
    pub text: Arc<str>,
}

impl StoredPrompt {
    /// Creates a prompt with a number and its text.
    pub fn new(number: u64, text: impl Into<Arc<str>>) -> Self {
        Self {
            number,
            text: text.into(),
        }
    }
}

/// Changes of the prompts that wait in a session.
///
/// A commit that is repeated changes nothing more: a number that the session has is not added again, and
/// one that it does not have is not removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptChanges {
    /// Prompts that wait from now on.
    pub add: Vec<StoredPrompt>,
    /// Numbers of prompts that do not wait any more: their turns begin with this commit, or they were
    /// cancelled.
    pub remove: Vec<u64>,
}

impl PromptChanges {
    /// Returns whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }

    /// Removes a prompt, whether or not its addition is among these changes.
    pub(crate) fn remove(&mut self, number: u64) {
        let before = self.add.len();
        self.add.retain(|prompt| prompt.number != number);
        if self.add.len() == before {
            self.remove.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_was_not_added_yet_is_not_removed() {
        let mut changes = PromptChanges::default();
        changes.add.push(StoredPrompt::new(1, "1"));
        changes.add.push(StoredPrompt::new(2, "2"));
        changes.remove(1);
        changes.remove(7);
        assert_eq!(changes.add, [StoredPrompt::new(2, "2")]);
        assert_eq!(changes.remove, [7]);
    }
}
