//! Completes what a hook has changed by what its types do not know.

use acp_sdk::json;
use acp_sdk::service::Payload;
use acp_sdk::{HandlerError, HandlerResult};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Returns `value` as JSON with the members of `original` that the type `T` does not have, and
/// `original` itself if nothing was changed.
///
/// # Errors
///
/// `-32603` if the value cannot be written.
pub(crate) fn completed<T: Payload>(
    original: Option<&RawValue>,
    value: &T,
) -> HandlerResult<Box<RawValue>> {
    let unwritable = |error| HandlerError::internal(format!("cannot write the message: {error}"));
    let after = to_raw_value(value).map_err(unwritable)?;
    let Some(original) = original else {
        return Ok(after);
    };
    let before: Option<T> = json::from_str(original.get()).ok();
    let Some(before) = before.and_then(|before| to_raw_value(&before).ok()) else {
        return Ok(after);
    };
    if before.get() == after.get() {
        return Ok(original.to_owned());
    }
    let parse = |raw: &RawValue| serde_json::from_str::<Value>(raw.get());
    match (parse(original), parse(&before), parse(&after)) {
        (Ok(mut original), Ok(before), Ok(after)) => {
            change(&mut original, &before, after);
            to_raw_value(&original).map_err(unwritable)
        }
        _ => Ok(after),
    }
}

/// Makes in `original` the changes that lead from `before` to `after`.
fn change(original: &mut Value, before: &Value, after: Value) {
    if *before == after {
        return;
    }
    match (original, before, after) {
        (Value::Object(original), Value::Object(before), Value::Object(after)) => {
            original.retain(|name, _| after.contains_key(name) || !before.contains_key(name));
            for (name, value) in after {
                match (original.get_mut(&name), before.get(&name)) {
                    (Some(original), Some(before)) => change(original, before, value),
                    _ => drop(original.insert(name, value)),
                }
            }
        }
        (Value::Array(original), Value::Array(before), Value::Array(after))
            if original.len() == before.len() =>
        {
            let is_as_long = after.len() == before.len();
            let completed = after.into_iter().enumerate().map(|(at, value)| {
                let here = before.get(at).filter(|earlier| **earlier == value);
                let found = here.map(|_| at);
                let found = found.or_else(|| before.iter().position(|earlier| *earlier == value));
                match found {
                    Some(found) => original[found].clone(),
                    // Changed in its place.
                    None if is_as_long => {
                        let mut changed = original[at].clone();
                        change(&mut changed, &before[at], value);
                        changed
                    }
                    None => value,
                }
            });
            *original = completed.collect();
        }
        (original, _, after) => *original = after,
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{ContentBlock, PromptRequest};

    use super::*;

    const ORIGINAL: &str = r#"{"sessionId":"s","later":1e400,"prompt":[{"type":"text","text":"a","x":1},{"type":"text","text":"b","y":2}]}"#;

    fn completed_after(change: impl FnOnce(&mut PromptRequest)) -> String {
        let original: Box<RawValue> = serde_json::from_str(ORIGINAL).unwrap();
        let mut request: PromptRequest = json::from_str(ORIGINAL).unwrap();
        change(&mut request);
        completed(Some(&original), &request)
            .unwrap()
            .get()
            .to_owned()
    }

    #[test]
    fn what_is_not_changed_is_the_original_text() {
        assert_eq!(completed_after(|_| {}), ORIGINAL);
    }

    #[test]
    fn unknown_members_survive_changes_around_them() {
        let original = ORIGINAL.replace("1e400", "7");
        let request: PromptRequest = json::from_str(&original).unwrap();
        let raw: Box<RawValue> = serde_json::from_str(&original).unwrap();
        let expect = |request: &PromptRequest, expected: Value| {
            let text = completed(Some(&raw), request).unwrap();
            let value: Value = serde_json::from_str(text.get()).unwrap();
            assert_eq!(value, expected);
        };
        let [a, b] = [
            serde_json::json!({"type": "text", "text": "a", "x": 1}),
            serde_json::json!({"type": "text", "text": "b", "y": 2}),
        ];
        let new = serde_json::json!({"type": "text", "text": "new"});
        let prompt =
            |prompt: Value| serde_json::json!({"sessionId": "s", "later": 7, "prompt": prompt});

        let mut before = request.clone();
        before.prompt.insert(0, ContentBlock::from("new"));
        expect(&before, prompt(serde_json::json!([new, a, b])));
        let mut behind = request.clone();
        behind.prompt.push(ContentBlock::from("new"));
        expect(&behind, prompt(serde_json::json!([a, b, new])));
        let mut without = request.clone();
        without.prompt.remove(0);
        expect(&without, prompt(serde_json::json!([b])));
        let mut replaced = request;
        replaced.prompt[1] = ContentBlock::from("new");
        let changed = serde_json::json!({"type": "text", "text": "new", "y": 2});
        expect(&replaced, prompt(serde_json::json!([a, changed])));
    }
}
