//! Messages shortened for a report, with the offending place kept.

use serde_json::{Map, Value};

use super::envelope::shorten;

/// How much is kept of what is not the place, from generous to little: characters of a string.
const BUDGETS: [usize; 5] = [200, 80, 40, 20, 8];

/// The JSON text of a message in about `limit` characters. When it is longer, what is away from the
/// place of the JSON Pointer is cut first.
#[must_use]
pub fn excerpt_around(message: &Value, pointer: &str, limit: usize) -> String {
    let text = message.to_string();
    if fits(&text, limit) {
        return text;
    }
    let names: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|name| name.replace("~1", "/").replace("~0", "~"))
        .collect();
    let cut = |budget| kept(message, &names, budget).to_string();
    let mut cuts = BUDGETS.into_iter().map(cut);
    let short = cuts.find(|text| fits(text, limit));
    short.unwrap_or_else(|| shorten(&text, limit))
}

fn fits(text: &str, limit: usize) -> bool {
    text.char_indices().nth(limit).is_none()
}

/// What is kept on the way to the place: the other members and elements are cut.
fn kept(value: &Value, names: &[String], budget: usize) -> Value {
    let Some((name, rest)) = names.split_first() else {
        // The place itself is worth more than what surrounds it.
        return cut(value, 4 * budget);
    };
    match value {
        Value::Object(members) => {
            let mut few = few_members(members, budget, Some(name));
            if let Some(member) = members.get(name) {
                few.insert(name.clone(), kept(member, rest, budget));
            }
            Value::Object(few)
        }
        Value::Array(elements) => {
            let place = name.parse::<usize>().ok();
            let Some((place, element)) = place.and_then(|at| Some((at, elements.get(at)?))) else {
                return cut(value, budget);
            };
            let after = elements.len() - place - 1;
            let mut few = Vec::new();
            few.extend((place > 0).then(|| left_out(place)));
            few.push(kept(element, rest, budget));
            few.extend((after > 0).then(|| left_out(after)));
            Value::Array(few)
        }
        _ => cut(value, budget),
    }
}

/// The beginning of a value.
fn cut(value: &Value, budget: usize) -> Value {
    match value {
        Value::String(text) => Value::String(shorten(text, budget)),
        Value::Array(elements) => {
            let room = room(budget);
            let mut few: Vec<_> = elements
                .iter()
                .take(room)
                .map(|it| cut(it, budget))
                .collect();
            few.extend((elements.len() > room).then(|| left_out(elements.len() - room)));
            Value::Array(few)
        }
        Value::Object(members) => Value::Object(few_members(members, budget, None)),
        other => other.clone(),
    }
}

fn few_members(
    members: &Map<String, Value>,
    budget: usize,
    but: Option<&str>,
) -> Map<String, Value> {
    let room = room(budget);
    let others = members
        .iter()
        .filter(|(name, _)| Some(name.as_str()) != but);
    let count = others.clone().count();
    let few = others
        .take(room)
        .map(|(name, member)| (shorten(name, budget.max(40)), cut(member, budget)));
    let mut few: Map<_, _> = few.collect();
    if count > room {
        few.insert("…".to_owned(), left_out(count - room));
    }
    few
}

/// How many members or elements are kept.
fn room(budget: usize) -> usize {
    (budget / 8).max(2)
}

fn left_out(count: usize) -> Value {
    Value::String(format!("… {count} more"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_is_left_alone() {
        let message = json!({"id": 1, "result": {"a": [1, 2, 3]}});
        assert_eq!(
            excerpt_around(&message, "/result/a/7", 600),
            message.to_string()
        );
    }

    #[test]
    fn the_place_is_kept_in_a_long_message() {
        let option =
            |number: usize| json!({"id": format!("option-{number}"), "text": "x".repeat(90)});
        let mut options: Vec<_> = (0..100).map(option).collect();
        options[57]["category"] = json!("brain");
        let message = json!({"jsonrpc": "2.0", "id": 3, "result": {
            "configOptions": options, "sessionId": "s", "note": "y".repeat(10_000),
        }});
        let short = excerpt_around(&message, "/result/configOptions/57/category", 600);
        assert!(short.chars().count() <= 600, "{short}");
        for part in ["option-57", "brain", "… 57 more", "… 42 more", "\"id\":3"] {
            assert!(short.contains(part), "{part}: {short}");
        }
        assert!(!short.contains("option-58"), "{short}");
    }

    #[test]
    fn names_may_have_slashes_and_places_may_not_exist() {
        let message = json!({"params": {"_meta": {"a/b": "c", "z": "z".repeat(5000)}}});
        assert!(excerpt_around(&message, "/params/_meta/a~1b", 200).contains("a/b"));
        let short = excerpt_around(&message, "/params/x/0", 200);
        assert!(short.chars().count() <= 201, "{short}");
    }

    #[test]
    fn what_cannot_be_cut_by_its_members_is_cut_as_text() {
        let deep = (0..500).fold(json!(1), |inside, _| json!([inside]));
        assert!(excerpt_around(&deep, "", 100).chars().count() <= 101);
    }
}
