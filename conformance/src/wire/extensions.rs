//! Extensions that agents and clients in use have, as data: what would break a row is a note.
//!
//! The file `extensions.toml` lists them by what they are, each with its reason; no product is named.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use crate::embedded;

/// An extension of the protocol.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// The name in reports.
    pub name: String,
    /// The requirement that it would break.
    pub requirement: String,
    /// Why it is tolerated.
    pub because: String,
    /// The method of the message, or of the request that it answers.
    method: Option<String>,
    /// The places in the message: JSON Pointers, in which `*` is any name or index.
    #[serde(default)]
    at: Vec<String>,
    /// Categories of config options.
    #[serde(default)]
    categories: Vec<String>,
    /// Members of `_meta` that name a terminal which the agent runs itself.
    #[serde(default)]
    terminals: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "extension")]
    all: Vec<Extension>,
}

static ALL: LazyLock<Vec<Extension>> = LazyLock::new(|| {
    let text = include_str!("../../extensions.toml");
    embedded::read::<File>("extensions.toml", text).all
});

/// All of them.
pub fn all() -> &'static [Extension] {
    &ALL
}

/// The extension that has this member, by its JSON Pointer into the message.
pub(crate) fn field(method: &str, pointer: &str) -> Option<&'static Extension> {
    let of_method = |known: &&Extension| known.method.as_deref() == Some(method);
    let mut of_method = ALL.iter().filter(of_method);
    of_method.find(|known| known.at.iter().any(|pattern| covers(pattern, pointer)))
}

/// The extension that has this category of config options.
pub(crate) fn category(name: &str) -> Option<&'static Extension> {
    let has = |known: &&Extension| known.categories.iter().any(|one| one == name);
    ALL.iter().find(has)
}

/// The terminals of the agent's own that an update of a tool call names, with the extension.
pub(crate) fn terminals(update: &Value) -> impl Iterator<Item = (&str, &'static Extension)> {
    let meta = update.get("_meta").into_iter();
    meta.flat_map(|meta| {
        ALL.iter().flat_map(move |known| {
            known.terminals.iter().filter_map(move |member| {
                let id = meta.get(member)?.get("terminal_id")?;
                Some((id.as_str()?, known))
            })
        })
    })
}

/// Whether a JSON Pointer is one of a pattern.
fn covers(pattern: &str, pointer: &str) -> bool {
    let (mut wanted, mut names) = (pattern.split('/'), pointer.split('/'));
    loop {
        match (wanted.next(), names.next()) {
            (None, None) => return true,
            (Some(wanted), Some(name)) if wanted == "*" || wanted == name => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pattern_covers_what_has_its_names() {
        assert!(covers("/a/*/b", "/a/0/b"));
        for other in ["/a/0", "/a/0/c", "/a/0/b/c", "/b/0/b"] {
            assert!(!covers("/a/*/b", other), "{other}");
        }
    }

    #[test]
    fn each_has_a_requirement_a_reason_and_a_place() {
        use crate::requirements;
        use crate::wire::Version;
        for known in all() {
            let versions = [Version::V1, Version::V2];
            let mut rows = versions.into_iter().flat_map(requirements::of);
            assert!(
                rows.any(|(_, row)| row.id == known.requirement),
                "{known:?}"
            );
            assert!(known.because.ends_with('.'), "{known:?}");
            let places = known.at.len() + known.categories.len() + known.terminals.len();
            assert!(places > 0, "{known:?}");
            assert_eq!(known.at.is_empty(), known.method.is_none(), "{known:?}");
        }
    }

    #[test]
    fn a_terminal_is_known_by_its_id() {
        let update = json!({"_meta": {"terminal_info": {"terminal_id": "t"}}});
        let ids: Vec<_> = terminals(&update).map(|(id, _)| id).collect();
        assert_eq!(ids, ["t"]);
    }
}
