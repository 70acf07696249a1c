//! Validates the answer to a form.

use acp_sdk::runtime::Map;
use acp_sdk::v1::{
    ElicitationContentValue as Value, ElicitationPropertySchema as Property, ElicitationSchema,
    MultiSelectItems, StringPropertySchema,
};

/// The error of an answer that does not fit its form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the field {field:?} of the form {reason}")]
pub struct InvalidAnswer {
    /// The name of the field.
    pub field: String,
    /// The defect of its value.
    pub reason: String,
}

/// Checks the answer to a form, for applications that show forms. An invalid answer must not be
/// sent.
///
/// The patterns of text are checked if they have the same meaning in Rust and JavaScript. Formats
/// are not checked.
///
/// # Errors
///
/// Fails with the first field that does not fit.
pub fn check_form(form: &ElicitationSchema, content: &Map<Value>) -> Result<(), InvalidAnswer> {
    let invalid = |field: &str, reason: String| InvalidAnswer {
        field: field.to_owned(),
        reason,
    };
    for required in form.required.iter().flatten() {
        if content.get(required).is_none() {
            return Err(invalid(required, "is required".to_owned()));
        }
    }
    for (field, value) in content.iter() {
        let Some(property) = form.properties.get(field) else {
            return Err(invalid(field, "is not in the form".to_owned()));
        };
        check_field(property, value).map_err(|reason| invalid(field, reason))?;
    }
    Ok(())
}

/// Returns the error in the value of a field.
pub fn check_field(property: &Property, value: &Value) -> Result<(), String> {
    match (property, value) {
        (Property::String(schema), Value::String(text)) => check_text(schema, text),
        (Property::Integer(schema), Value::Integer(number)) => {
            within(*number, schema.minimum, schema.maximum)
        }
        (Property::Number(schema), Value::Integer(number)) => {
            // A number in a form has few digits.
            #[allow(clippy::cast_precision_loss, reason = "compared with a limit only")]
            within(*number as f64, schema.minimum, schema.maximum)
        }
        (Property::Number(schema), Value::Number(number)) => {
            within(*number, schema.minimum, schema.maximum)
        }
        (Property::Boolean(_), Value::Boolean(_)) | (Property::Unknown(_), _) => Ok(()),
        (Property::Array(schema), Value::StringArray(chosen)) => {
            within(chosen.len() as u64, schema.min_items, schema.max_items)?;
            let offered = choices(&schema.items);
            match chosen
                .iter()
                .find(|value| !offered.contains(&value.as_str()))
            {
                Some(other) => Err(format!("has the value {other:?}, which is not offered")),
                None => Ok(()),
            }
        }
        _ => Err("has a value of another type".to_owned()),
    }
}

fn check_text(schema: &StringPropertySchema, text: &str) -> Result<(), String> {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    within(length, schema.min_length, schema.max_length)
        .map_err(|reason| format!("{reason} characters"))?;
    if let Some(pattern) = &schema.pattern
        && let Ok(pattern) = regex::Regex::new(pattern)
        && !pattern.is_match(text)
    {
        return Err(format!("does not match the pattern {pattern}"));
    }
    let offered = schema.enum_.iter().flatten().map(String::as_str);
    let titled = schema.one_of.iter().flatten();
    let mut offered = offered
        .chain(titled.map(|option| option.const_.as_str()))
        .peekable();
    if offered.peek().is_some() && !offered.any(|value| value == text) {
        return Err(format!("has the value {text:?}, which is not offered"));
    }
    Ok(())
}

fn choices(items: &MultiSelectItems) -> Vec<&str> {
    match items {
        MultiSelectItems::String(items) => items.enum_.iter().map(String::as_str).collect(),
        MultiSelectItems::Titled(items) => {
            let options = items.any_of.iter();
            options.map(|option| option.const_.as_str()).collect()
        }
        _ => Vec::new(),
    }
}

fn within<T: PartialOrd + std::fmt::Display>(
    value: T,
    least: Option<T>,
    most: Option<T>,
) -> Result<(), String> {
    if let Some(least) = least.filter(|least| value < *least) {
        return Err(format!("needs at least {least}"));
    }
    if let Some(most) = most.filter(|most| value > *most) {
        return Err(format!("may have at most {most}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_fits_its_form_or_the_field_is_named() {
        let form = json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-zü]+$"},
                "color": {"type": "string", "enum": ["red", "blue"]},
                "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}]},
                "age": {"type": "integer", "minimum": 1, "maximum": 9},
                "rate": {"type": "number", "maximum": 1.5},
                "sure": {"type": "boolean"},
                "tags": {"type": "array", "maxItems": 1,
                    "items": {"type": "string", "enum": ["a", "b"]}},
            }
        });
        let form: ElicitationSchema = serde_json::from_value(form).unwrap();
        let check = |content: serde_json::Value| {
            let content = serde_json::from_value(content).unwrap();
            check_form(&form, &content).map_err(|error| error.to_string())
        };
        let fits = json!({"name": "müm", "color": "red", "size": "s", "age": 9, "rate": 1,
            "sure": true, "tags": ["b"]});
        assert_eq!(check(fits), Ok(()));
        for (content, reason) in [
            (json!({}), r#""name" of the form is required"#),
            (json!({"name": "a"}), "needs at least 2 characters"),
            (json!({"name": "abcde"}), "may have at most 4 characters"),
            (json!({"name": "AB"}), "does not match the pattern"),
            (json!({"name": 3}), "has a value of another type"),
            (
                json!({"name": "ab", "color": "green"}),
                r#""green", which is not offered"#,
            ),
            (json!({"name": "ab", "size": "Small"}), "is not offered"),
            (json!({"name": "ab", "age": 10}), "may have at most 9"),
            (json!({"name": "ab", "age": 1.5}), "another type"),
            (json!({"name": "ab", "rate": 1.6}), "may have at most 1.5"),
            (json!({"name": "ab", "sure": "yes"}), "another type"),
            (
                json!({"name": "ab", "tags": ["c"]}),
                r#""c", which is not offered"#,
            ),
            (
                json!({"name": "ab", "tags": ["a", "b"]}),
                "may have at most 1",
            ),
            (
                json!({"name": "ab", "other": "x"}),
                r#""other" of the form is not in the form"#,
            ),
        ] {
            let error = check(content).unwrap_err();
            assert!(error.contains(reason), "{error}, not {reason}");
        }
    }
}
