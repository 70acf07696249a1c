//! The members whose text transcripts show, from the root keyword `x-transcript`.

use serde_json::Value;

use crate::{Document, Error};

/// Names of members whose text is shown in masked transcripts.
///
/// Members that the schema limits to certain strings are shown without being named here.
/// `x-sensitive` at a definition or a member has precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptRules {
    /// Shown as they are.
    pub show: Vec<String>,
    /// URIs: shown when they are those of files.
    pub uris: Vec<String>,
}

impl Document {
    /// Returns what the document says about transcripts; nothing is shown when it says nothing.
    ///
    /// # Errors
    /// When `x-transcript` has another form than [`TranscriptRules`].
    pub fn transcript(&self) -> Result<TranscriptRules, Error> {
        const AT: &str = "/x-transcript";
        let mut rules = TranscriptRules::default();
        let Some(keyword) = self.value().get("x-transcript") else {
            return Ok(rules);
        };
        let Some(members) = keyword.as_object() else {
            return Err(self.invalid(AT, "not an object; write `{\"show\": [\"name\"]}`"));
        };
        for (key, value) in members {
            let list = match key.as_str() {
                "show" => &mut rules.show,
                "uris" => &mut rules.uris,
                _ => {
                    let at = format!("{AT}/{key}");
                    return Err(self.invalid(&at, "unknown; known are `show` and `uris`"));
                }
            };
            let names = value.as_array().and_then(|names| {
                let name = |name: &Value| name.as_str().map(str::to_owned);
                names.iter().map(name).collect::<Option<Vec<_>>>()
            });
            *list = names.ok_or_else(|| {
                let at = format!("{AT}/{key}");
                self.invalid(&at, "not a list of names of members")
            })?;
        }
        Ok(rules)
    }
}
