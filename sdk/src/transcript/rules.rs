//! What transcripts show, as tables that are generated from the documents of the protocol.

use super::place::Place;
use crate::json::codegen::DescriptorFn;

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
    pub params: PayloadMasking,
    /// Of the result.
    pub result: PayloadMasking,
}

/// What transcripts show of params or a result.
#[derive(Debug)]
pub struct PayloadMasking {
    /// Which members.
    pub visible: Visible,
    /// Its types: members that none of them has are masked.
    pub types: &'static [DescriptorFn],
}

/// Which members of params or a result transcripts show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visible {
    /// Those of its types, as the rules say, at any depth.
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

    /// What is shown of the params and the result of a method that a document has, and their types.
    pub(super) fn method(&self, name: &str) -> Option<[(Visible, Place); 2]> {
        let methods = self.0.iter().filter_map(|rules| {
            let methods = rules.methods;
            let index = methods.binary_search_by(|method| method.method.cmp(name));
            methods.get(index.ok()?)
        });
        let payloads = methods.map(|method| [&method.params, &method.result]);
        payloads
            .map(|payloads| payloads.map(|payload| (payload.visible, Place::of(payload.types))))
            .reduce(|[one, two], [other_one, other_two]| {
                [stricter(one, other_one), stricter(two, other_two)]
            })
    }

    fn any(&self, names: impl Fn(&MaskingRules) -> &'static [&'static str], member: &str) -> bool {
        let mut tables = self.0.iter().map(|rules| names(rules));
        tables.any(|names| names.binary_search(&member).is_ok())
    }
}

/// What both show, of the types of either. Of two lists the first counts, for documents agree on
/// their tags and ids.
fn stricter(one: (Visible, Place), other: (Visible, Place)) -> (Visible, Place) {
    let visible = match one.0 {
        Visible::Members => other.0,
        Visible::Only(_) => one.0,
    };
    (visible, one.1.or(&other.1))
}

#[cfg(any(test, fuzzing))]
impl Rules {
    /// The rules of version 1.
    pub(crate) fn v1() -> Self {
        Self(vec![&crate::v1::MASKING])
    }
}
