//! What a conversion could not keep.

/// The most losses that are listed; further ones are counted.
const MOST: usize = 64;

/// A part of a value that the other version has no place for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pointer: String,
    reason: &'static str,
}

impl Loss {
    /// Returns the JSON Pointer of the part in the source; empty for the whole value.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Returns why the other version has no place for it.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.reason
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.pointer, self.reason)
    }
}

/// The losses of conversions: the first 64, and the number of the others.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    list: Vec<Loss>,
    unlisted: usize,
}

impl Losses {
    /// Returns the first losses, in the order of the conversion.
    #[must_use]
    pub fn list(&self) -> &[Loss] {
        &self.list
    }

    /// Returns the number of losses that [`list`](Self::list) does not contain.
    #[must_use]
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// Returns whether nothing was lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Reports the member at `tokens`, relative to the value that is converted; empty for the
    /// whole value.
    pub(super) fn lost(&mut self, tokens: &str, reason: &'static str) {
        if self.list.len() == MOST {
            self.unlisted += 1;
            return;
        }
        let mut pointer = String::new();
        if !tokens.is_empty() {
            pointer = format!("/{tokens}");
        }
        self.list.push(Loss { pointer, reason });
    }

    /// Reports that the value has no form in the other version.
    pub(super) fn none<T>(&mut self, reason: &'static str) -> Option<T> {
        self.lost("", reason);
        None
    }

    /// Converts a part at `tokens`, whose losses are reported with their place in the whole.
    pub(super) fn within<T>(&mut self, tokens: &str, convert: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.list.len();
        let converted = convert(self);
        self.prefix(before, |pointer| pointer.insert_str(0, tokens));
        converted
    }

    /// As [`within`](Self::within) for an item of a list.
    pub(super) fn within_item<T>(
        &mut self,
        index: usize,
        convert: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.list.len();
        let converted = convert(self);
        self.prefix(before, |pointer| pointer.insert_str(0, &index.to_string()));
        converted
    }

    fn prefix(&mut self, before: usize, write: impl Fn(&mut String)) {
        for loss in &mut self.list[before..] {
            write(&mut loss.pointer);
            if !loss.pointer.starts_with('/') && !loss.pointer.is_empty() {
                loss.pointer.insert(0, '/');
            }
        }
    }
}
