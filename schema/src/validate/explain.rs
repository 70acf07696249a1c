//! Turns "no branch of the union fits" into the field that is wrong.
//!
//! In a union whose branches carry a constant tag, the branch that the value
//! names is the one its sender meant; only that branch's errors are reported.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::Violation;

/// The violations behind an error; `root` is the compiled document, `instance`
/// the whole value.
pub(super) fn explain(
    root: &Value,
    instance: &Value,
    error: &ValidationError<'_>,
) -> Vec<Violation> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return vec![plain(error)];
    };
    let path = error.instance_path().as_str();
    let branches = follow(root, error.evaluation_path().as_str()).and_then(Value::as_array);
    let (Some(value), Some(branches)) = (instance.pointer(path), branches) else {
        return vec![plain(error)];
    };
    let tags: Vec<Option<(&str, &Value)>> = branches.iter().map(tag).collect();
    let named = tags
        .iter()
        .position(|tag| tag.is_some_and(|(key, constant)| value.get(key) == Some(constant)));
    let chosen = named.or_else(|| only_candidate(path, context, &tags));
    if let Some(errors) = chosen.and_then(|index| context.get(index))
        && !errors.is_empty()
    {
        return errors
            .iter()
            .flat_map(|error| explain(root, instance, error))
            .collect();
    }
    let Some((key, _)) = tags.iter().flatten().next().filter(|_| value.is_object()) else {
        return vec![plain(error)];
    };
    let known: Vec<String> = tags
        .iter()
        .flatten()
        .map(|(_, constant)| constant.to_string())
        .collect();
    let message = match value.get(key) {
        Some(found) => format!("{found} is not one of {}", known.join(", ")),
        None => format!("`{key}` is missing; one of {}", known.join(", ")),
    };
    vec![Violation {
        path: format!("{path}/{key}"),
        schema_path: error.evaluation_path().as_str().to_owned(),
        message,
    }]
}

fn plain(error: &ValidationError<'_>) -> Violation {
    Violation {
        path: error.instance_path().as_str().to_owned(),
        schema_path: error.evaluation_path().as_str().to_owned(),
        message: error.to_string(),
    }
}

/// The constant member that a branch requires.
fn tag(branch: &Value) -> Option<(&str, &Value)> {
    let properties = branch.get("properties")?.as_object()?;
    properties
        .iter()
        .find_map(|(key, schema)| Some((key.as_str(), schema.get("const")?)))
}

/// The one branch without a tag whose type at least fits, as the object in
/// "object or null".
fn only_candidate(
    path: &str,
    context: &[Vec<ValidationError<'_>>],
    tags: &[Option<(&str, &Value)>],
) -> Option<usize> {
    let mut fitting = context.iter().enumerate().filter(|(index, errors)| {
        let untagged = tags.get(*index).is_some_and(Option::is_none);
        let wrong_type = errors.iter().any(|error| {
            error.instance_path().as_str() == path
                && matches!(
                    error.kind(),
                    ValidationErrorKind::Type { .. }
                        | ValidationErrorKind::Constant { .. }
                        | ValidationErrorKind::Not { .. }
                )
        });
        untagged && !wrong_type
    });
    let (index, _) = fitting.next()?;
    fitting.next().is_none().then_some(index)
}

/// The keyword's value at an evaluation path, in which `$ref` is a step.
fn follow<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = root;
    for step in path.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        at = match at {
            Value::Object(members) => members.get(&step)?,
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
        if step == "$ref"
            && let Some(target) = at.as_str()
        {
            at = root.pointer(target.strip_prefix('#')?)?;
        }
    }
    Some(at)
}
