//! Closes a gap of unions that have a branch without a tag.
//!
//! Such a branch takes any object that has its members, and so also one whose tag
//! names another branch and whose payload is wrong: a terminal login with broken
//! `args` would pass as a login without them. Therefore the branch without a tag rejects
//! the tags of the others. Unknown tags stay allowed, as in the schema.

use serde_json::{Map, Value, json};

/// Makes the untagged branches of all unions reject the tags of the others.
pub(super) fn tighten(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            for (keyword, value) in keywords.iter_mut() {
                match keyword.as_str() {
                    "const" | "default" | "enum" | "examples" => {}
                    "anyOf" => {
                        tighten(value);
                        refuse_known_tags(value);
                    }
                    _ => tighten(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tighten),
        _ => {}
    }
}

fn refuse_known_tags(branches: &mut Value) {
    let Some(branches) = branches.as_array_mut() else {
        return;
    };
    let tags: Vec<(String, Value)> = branches.iter().filter_map(tag).collect();
    let Some((key, _)) = tags.first().cloned() else {
        return;
    };
    let known: Vec<Value> = tags
        .into_iter()
        .filter(|(other, _)| *other == key)
        .map(|(_, constant)| constant)
        .collect();
    let has_tag = |branch: &Map<String, Value>| {
        let properties = branch.get("properties").and_then(Value::as_object);
        properties.is_some_and(|properties| properties.contains_key(&key))
    };
    for branch in branches.iter_mut().filter_map(Value::as_object_mut) {
        if !has_tag(branch) && !branch.contains_key("not") {
            let tagged = json!({ "required": [key], "properties": { &key: { "enum": known } } });
            branch.insert("not".into(), tagged);
        }
    }
}

/// The constant member of a branch.
fn tag(branch: &Value) -> Option<(String, Value)> {
    super::explain::tag(branch).map(|(key, constant)| (key.to_owned(), constant.clone()))
}
