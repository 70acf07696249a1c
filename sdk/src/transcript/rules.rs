//! What transcripts show, as tables that are generated from the documents of the protocol.

/// What transcripts show of the messages of one document.
#[derive(Debug)]
pub struct MaskingRules {
    /// Members whose text is shown, sorted.
    pub shown: &'static [&'static str],
    /// Members that are URIs, sorted. Shown when they are those of files.
    pub uris: &'static [&'static str],
    /// Members that are masked with everything inside, sorted.
    pub sensitive: &'static [&'static str],
    /// The methods, sorted by name. Messages of other methods show only their form.
    pub methods: &'static [MethodMasking],
}

/// What transcripts show of the messages of one method.
#[derive(Debug)]
pub struct MethodMasking {
    /// The name on the wire.
    pub method: &'static str,
    /// Of the params.
    pub params: Visible,
    /// Of the result.
    pub result: Visible,
}

/// What transcripts show of params or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visible {
    /// Members as the rules say, at any depth.
    Members,
    /// These top-level members, and only the form of the others.
    Only(&'static [&'static str]),
}

/// The rules of all documents that a connection may speak.
///
/// A member is shown when one document shows it and none calls it sensitive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Vec<&'static MaskingRules>);

impl Rules {
    pub(crate) fn new(rules: Vec<&'static MaskingRules>) -> Self {
        Self(rules)
    }

    pub(super) fn is_sensitive(&self, member: &str) -> bool {
        self.any(|rules| rules.sensitive, member)
    }

    pub(super) fn is_shown(&self, member: &str) -> bool {
        self.any(|rules| rules.shown, member)
    }

    pub(super) fn is_uri(&self, member: &str) -> bool {
        self.any(|rules| rules.uris, member)
    }

    /// What is shown of the params and the result of a method that a document has.
    pub(super) fn method(&self, name: &str) -> Option<(Visible, Visible)> {
        let methods = self.0.iter().filter_map(|rules| {
            let methods = rules.methods;
            let index = methods.binary_search_by(|method| method.method.cmp(name));
            methods.get(index.ok()?)
        });
        methods
            .map(|method| (method.params, method.result))
            .reduce(|one, other| (stricter(one.0, other.0), stricter(one.1, other.1)))
    }

    fn any(&self, names: impl Fn(&MaskingRules) -> &'static [&'static str], member: &str) -> bool {
        let mut tables = self.0.iter().map(|rules| names(rules));
        tables.any(|names| names.binary_search(&member).is_ok())
    }
}

/// What both show. Of two lists the first counts, for documents agree on their tags and ids.
fn stricter(one: Visible, other: Visible) -> Visible {
    match one {
        Visible::Members => other,
        Visible::Only(_) => one,
    }
}

#[cfg(any(test, fuzzing))]
impl Rules {
    /// The rules of version 1.
    pub(crate) fn v1() -> Self {
        Self(vec![&crate::v1::MASKING])
    }
}
