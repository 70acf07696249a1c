//! Definitions without finite values: each value must contain another one.

use std::collections::HashSet;

use serde_json::Value;

use crate::Document;

/// Returns the first definition without finite values, as a cycle of references: `A`, `B`, `A`.
pub(crate) fn first(document: &Document) -> Option<Vec<&str>> {
    let mut ending: HashSet<&str> = HashSet::new();
    let mut pending: Vec<(&str, &Value)> = document.defs().collect();
    // Each round finds those that need nothing but what earlier rounds have found.
    loop {
        let before = pending.len();
        pending.retain(|(name, schema)| {
            let ends = infinite_in(schema, &ending).is_none();
            if ends {
                ending.insert(name);
            }
            !ends
        });
        if pending.len() == before {
            break;
        }
    }
    let mut way = vec![pending.first()?.0];
    loop {
        let schema = document.def(way.last()?)?;
        let next = infinite_in(schema, &ending)?;
        let known = way.contains(&next);
        way.push(next);
        if known {
            return Some(way);
        }
    }
}

/// Returns a definition outside of `ending` that every value of the schema contains.
fn infinite_in<'a>(schema: &'a Value, ending: &HashSet<&str>) -> Option<&'a str> {
    let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array);
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        // What leads elsewhere than to a definition is judged by others.
        let name = name.strip_prefix("#/$defs/").unwrap_or_default();
        if !name.is_empty() && !ending.contains(name) {
            return Some(name);
        }
    }
    if may_be_null(schema) {
        return None;
    }
    let mut parts = list("allOf").into_iter().flatten();
    if let Some(name) = parts.find_map(|part| infinite_in(part, ending)) {
        return Some(name);
    }
    for branches in [list("oneOf"), list("anyOf")].into_iter().flatten() {
        let mut each = branches.iter().map(|branch| infinite_in(branch, ending));
        if let Some(Some(name)) = each.next()
            && each.all(|name| name.is_some())
        {
            return Some(name);
        }
    }
    if schema.get("minItems").and_then(Value::as_u64) > Some(0) {
        return infinite_in(schema.get("items")?, ending);
    }
    let properties = schema.get("properties")?;
    let mut required = list("required")?.iter().filter_map(Value::as_str);
    required.find_map(|name| infinite_in(properties.get(name)?, ending))
}

fn may_be_null(schema: &Value) -> bool {
    let types = schema.get("type").and_then(Value::as_array);
    types.is_some_and(|types| types.iter().any(|kind| kind == "null"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(definitions: &str) -> Option<String> {
        let text = format!(r#"{{"$defs": {definitions}}}"#);
        let document = Document::parse("doc.json", &text).unwrap();
        first(&document).map(|way| way.join(" "))
    }

    #[test]
    fn a_way_without_end_is_found() {
        for (definitions, expected) in [
            (r##"{"A": {"$ref": "#/$defs/A"}}"##, "A A"),
            (
                r##"{"A": {"allOf": [{"$ref": "#/$defs/B"}]}, "B": {"$ref": "#/$defs/A"}}"##,
                "A B A",
            ),
            (
                r##"{"A": {"properties": {"a": {"$ref": "#/$defs/B"}}, "required": ["a"]},
                     "B": {"type": "array", "items": {"$ref": "#/$defs/B"}, "minItems": 1}}"##,
                "A B B",
            ),
            (
                r##"{"A": {"oneOf": [{"$ref": "#/$defs/A"},
                     {"properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}]}}"##,
                "A A",
            ),
        ] {
            assert_eq!(way(definitions).as_deref(), Some(expected), "{definitions}");
        }
    }

    #[test]
    fn a_way_that_can_end_is_none() {
        for definitions in [
            r##"{"A": {"properties": {"a": {"$ref": "#/$defs/A"}}}}"##,
            r##"{"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}}"##,
            r##"{"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}}"##,
            r##"{"A": {"type": ["object", "null"],
                 "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}}"##,
            // Found in the second round, for what it needs stands behind it.
            r##"{"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/C"}, "C": {"type": "string"}}"##,
        ] {
            assert_eq!(way(definitions), None, "{definitions}");
        }
    }
}
