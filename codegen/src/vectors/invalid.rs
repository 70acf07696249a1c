//! Generates invalid values: each member missing, of each wrong type, out of range, or with a
//! value of a later protocol version.

use acp_schema::Document;
use serde_json::{Value, json};

use super::resolved::{Alternative, Field, Form, View};
use super::sample::{Amount, number, object, sample};
use crate::lower::target;

/// One value of each JSON type.
pub(super) fn kinds() -> [Value; 7] {
    [
        Value::Null,
        true.into(),
        7.into(),
        0.5.into(),
        "text".into(),
        json!([]),
        json!({}),
    ]
}

/// A string that no schema defines.
const LATER: &str = "_later";

/// A value and the name of the change that was made to it.
pub(super) type Named = (String, Value);

/// Returns changed values of a definition. Most are invalid.
pub(super) fn faults(document: &Document, name: &str) -> Vec<Named> {
    let top = View::definition(document, name);
    let mut found: Vec<Named> = wrong(document, &top, 1)
        .into_iter()
        .map(|value| (format!("is {}", short(&value)), value))
        .collect();
    let Form::Object(forms) = &top.form else {
        return found;
    };
    for form in forms.iter().filter(|form| !form.open) {
        of_form(document, form, &mut found);
    }
    found
}

fn of_form(document: &Document, form: &Alternative<'_>, found: &mut Vec<Named>) {
    let least = object(document, form, Amount::Least);
    let label = match form.label.as_str() {
        "" => String::new(),
        label => format!("{label}: "),
    };
    let mut add = |what: String, change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut value = least.clone();
        if let Some(members) = value.as_object_mut() {
            change(members);
        }
        found.push((format!("{label}{what}"), value));
    };
    for field in &form.fields {
        let name = field.name;
        if field.required {
            add(format!("without {name}"), &|members| {
                members.shift_remove(name);
            });
        }
        for value in wrong_members(document, field) {
            let what = format!("{name} is {}", short(&value));
            add(what, &|members| {
                members.insert(name.into(), value.clone());
            });
        }
        if field.tag.is_some() {
            add(format!("{name} is of a later version"), &|members| {
                members.insert(name.into(), LATER.into());
                members.insert("more".into(), json!([{ "any": null }]));
            });
        }
    }
    add("with a member that is not defined".into(), &|members| {
        members.insert("notDefined".into(), json!({ "a": 1 }));
    });
}

fn wrong_members(document: &Document, field: &Field<'_>) -> Vec<Value> {
    match field.tag {
        Some(_) => kinds()
            .into_iter()
            .filter(|kind| !kind.is_string())
            .collect(),
        None => {
            let levels = if target(field.schema).is_some() { 1 } else { 2 };
            wrong(document, &View::of(document, field.schema), levels)
        }
    }
}

/// Returns values that may be invalid for a schema; inside lists and maps down to some depth.
fn wrong(document: &Document, view: &View<'_>, levels: usize) -> Vec<Value> {
    let mut values: Vec<Value> = kinds().into();
    let inner = |schema| match levels {
        0 => Vec::new(),
        _ => wrong(document, &View::of(document, schema), levels - 1),
    };
    match &view.form {
        Form::Integer(range) => {
            let (width, allowed) = (range.width, range.allowed);
            let beyond = [allowed.0 - 1, allowed.1 + 1, width.0 - 1, width.1 + 1];
            values.extend(beyond.map(number));
        }
        Form::Number { least, most } => {
            values.extend(least.map(|least| Value::from(least - 1.0)));
            values.extend(most.map(|most| Value::from(most + 1.0)));
        }
        Form::Text(text) => {
            values.push("".into());
            values.extend((!text.words.is_empty()).then(|| LATER.into()));
        }
        Form::Array { items, .. } => {
            // Valid items before and after the invalid one show that its index is reported.
            let good = sample(document, &View::of(document, items), Amount::Least);
            let lists = inner(items)
                .into_iter()
                .map(|bad| json!([good.clone(), bad, good.clone()]));
            values.extend(lists);
        }
        Form::Map(schema) => {
            values.extend(inner(schema).into_iter().map(|bad| json!({ "a/b~": bad })))
        }
        Form::Object(forms) if levels > 0 => {
            // One invalid value per alternative; the vectors of the definition itself contain all.
            values.extend(forms.iter().filter(|form| !form.open).filter_map(|form| {
                let mut value = object(document, form, Amount::Least);
                let missing = form.fields.iter().rev().find(|field| field.required)?;
                value.as_object_mut()?.shift_remove(missing.name);
                Some(value)
            }));
        }
        _ => {}
    }
    values
}

/// Formats a value as part of a name.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
