//! Finds the invalid field when no branch of a union matches.
//!
//! Only the errors of the branch that the sender meant are reported. That is the one
//! whose constant tag the value has; among branches without a tag it is the one whose
//! members the value has most of, and misses fewest of, if one is ahead of the others.

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
    let chosen = named.or_else(|| {
        let candidates = candidates(path, context, &tags);
        likeliest(root, value, branches, &candidates)
    });
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
pub(super) fn tag(branch: &Value) -> Option<(&str, &Value)> {
    let properties = branch.get("properties")?.as_object()?;
    properties
        .iter()
        .find_map(|(key, schema)| Some((key.as_str(), schema.get("const")?)))
}

/// The branches without a tag whose type at least fits, as the object in "object or
/// null".
fn candidates(
    path: &str,
    context: &[Vec<ValidationError<'_>>],
    tags: &[Option<(&str, &Value)>],
) -> Vec<usize> {
    let fitting = context.iter().enumerate().filter(|(index, errors)| {
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
    fitting.map(|(index, _)| index).collect()
}

/// The branch that a value is most like, unless two are equally so.
fn likeliest(
    root: &Value,
    value: &Value,
    branches: &[Value],
    candidates: &[usize],
) -> Option<usize> {
    if let [only] = candidates {
        return Some(*only);
    }
    let likeness = |index: &usize| {
        branches
            .get(*index)
            .map_or(0, |branch| likeness(root, value, branch))
    };
    let best = candidates.iter().map(likeness).max()?;
    let mut leading = candidates.iter().filter(|index| likeness(index) == best);
    let first = leading.next()?;
    leading.next().is_none().then_some(*first)
}

/// How much the outline of a value is that of a schema: the members that both have,
/// less those that the value lacks. Of a list, the items count.
fn likeness(root: &Value, value: &Value, schema: &Value) -> i64 {
    let mut total = 0;
    if let Some(target) = schema.get("$ref").and_then(Value::as_str)
        && let Some(schema) = target.strip_prefix('#').and_then(|at| root.pointer(at))
    {
        total += likeness(root, value, schema);
    }
    for part in schema
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        total += likeness(root, value, part);
    }
    match value {
        Value::Object(members) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let shared = properties.into_iter().flat_map(|properties| {
                properties.keys().filter(|name| members.contains_key(*name))
            });
            let required = schema.get("required").and_then(Value::as_array);
            let missing = required
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .filter(|name| !members.contains_key(*name));
            total += count(shared) - count(missing);
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                let items = items.iter().map(|item| likeness(root, item, schema));
                total += items.sum::<i64>();
            }
        }
        _ => {}
    }
    total
}

fn count(items: impl Iterator) -> i64 {
    i64::try_from(items.count()).unwrap_or(i64::MAX)
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
