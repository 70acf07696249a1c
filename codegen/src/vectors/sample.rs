//! Generates valid values of a schema: minimal, complete, and one for each choice in it.

use acp_schema::Document;
use serde_json::{Map, Number, Value, json};

use super::resolved::{Alternative, Field, Form, View};
use crate::lower::target;

/// Depth from which a complete value has required members only.
const DEPTH: usize = 6;

/// The members of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    /// Required members only.
    Least,
    /// All members, down to this depth.
    Most(usize),
}

impl Amount {
    pub(super) const MOST: Self = Self::Most(DEPTH);

    fn inner(self) -> Self {
        match self {
            Self::Least | Self::Most(0) => Self::Least,
            Self::Most(depth) => Self::Most(depth - 1),
        }
    }
}

/// Returns a value of a resolved schema.
pub(super) fn sample(document: &Document, view: &View<'_>, amount: Amount) -> Value {
    let full = amount != Amount::Least;
    let inner = |schema| sample(document, &View::of(document, schema), amount.inner());
    match &view.form {
        Form::Any if full => json!({ "any": [1, "two", null, 0.5] }),
        Form::Any => json!(1),
        Form::Null => Value::Null,
        Form::Boolean => full.into(),
        Form::Integer(range) if full => number(range.allowed.1),
        Form::Integer(range) => number(0.max(range.allowed.0).min(range.allowed.1)),
        Form::Number { least, most } => 0.5_f64
            .max(least.unwrap_or(f64::MIN))
            .min(most.unwrap_or(f64::MAX))
            .into(),
        Form::Text(text) => match (text.words.as_slice(), text.format) {
            ([first, ..], _) if !full => (*first).into(),
            ([.., last], _) => (*last).into(),
            (_, Some("uri")) => "https://example.com/a".into(),
            (_, Some("date-time")) => "2026-01-31T09:30:00Z".into(),
            (_, Some("regex")) => "^a$".into(),
            _ if full => "a \"long\"\ttext\n\u{e9}\u{1f600}\\".into(),
            _ => "text".into(),
        },
        Form::Array { items, least } if full => {
            let all = [
                inner(items),
                sample(document, &View::of(document, items), Amount::Least),
            ];
            let more = (2..*least).map(|_| inner(items));
            all.into_iter().chain(more).collect()
        }
        // No item is computed for an optional one: the type may be recursive.
        Form::Array { items, least } => (0..*least).map(|_| inner(items)).collect(),
        Form::Map(values) if full => json!({ "key": inner(values), "a/b~": inner(values) }),
        Form::Free if full => json!({ "example.com/key": [null, { "a": 1 }] }),
        Form::Map(_) | Form::Free => json!({}),
        Form::Object(forms) => forms
            .first()
            .map_or_else(|| json!({}), |form| object(document, form, amount)),
        Form::Choice(branches) => branches.first().map_or(Value::Null, |branch| inner(branch)),
    }
}

/// Returns an object of one alternative.
pub(super) fn object(document: &Document, form: &Alternative<'_>, amount: Amount) -> Value {
    let full = amount != Amount::Least;
    let fields = form.fields.iter().filter(|field| full || field.required);
    let member = |field: &Field<'_>| {
        let value = match field.tag {
            Some(tag) => tag.into(),
            None => sample(document, &View::of(document, field.schema), amount.inner()),
        };
        (field.name.to_owned(), value)
    };
    Value::Object(fields.map(member).collect::<Map<_, _>>())
}

/// Returns values of different types and at boundaries. Referenced definitions are only sampled,
/// because they have vectors of their own.
pub(super) fn variations(document: &Document, schema: &Value) -> Vec<Value> {
    let view = View::of(document, schema);
    let mut values = if is_reference(schema) {
        vec![sample(document, &view, Amount::Least)]
    } else {
        choices(document, &view)
    };
    if view.null {
        values.push(Value::Null);
    }
    values
}

/// Returns a value for each choice of a resolved schema itself.
pub(super) fn choices(document: &Document, view: &View<'_>) -> Vec<Value> {
    let both = |view| [Amount::Least, Amount::MOST].map(|amount| sample(document, view, amount));
    match &view.form {
        Form::Boolean => vec![false.into(), true.into()],
        Form::Integer(range) => {
            let (least, most) = range.allowed;
            let mut numbers = vec![least, 0.max(least).min(most), most];
            numbers.dedup();
            numbers.into_iter().map(number).collect()
        }
        Form::Number { least, most } => {
            let within = |number: &f64| {
                least.is_none_or(|least| *number >= least)
                    && most.is_none_or(|most| *number <= most)
            };
            let numbers = [-0.5, 0.0, 0.1, 1e15].into_iter().filter(within);
            let whole = Some(json!(1)).filter(|_| within(&1.0));
            numbers.map(Value::from).chain(whole).collect()
        }
        Form::Text(text) if !text.words.is_empty() => {
            let words = text.words.iter().map(|word| (*word).into());
            let other = text.open.then(|| "_other".into());
            words.chain(other).collect()
        }
        Form::Text(text) if text.least == 0 && text.format.is_none() => {
            let [least, most] = both(view);
            vec!["".into(), least, most]
        }
        Form::Choice(branches) => branches
            .iter()
            .flat_map(|branch| variations(document, branch))
            .collect(),
        Form::Object(forms) => forms
            .iter()
            .flat_map(|form| {
                [Amount::Least, Amount::MOST].map(|amount| object(document, form, amount))
            })
            .collect(),
        Form::Array { items, .. } => {
            let each = variations(document, items).into_iter();
            let each = each.map(|item| Value::Array(vec![item]));
            both(view).into_iter().chain(each).collect()
        }
        _ => both(view).into(),
    }
}

/// Returns whether a schema is a reference, nullable or not.
fn is_reference(schema: &Value) -> bool {
    let (key, rest) = match crate::lower::branches(schema) {
        Some(branches) => branches,
        None => return target(schema).is_some(),
    };
    let _ = key;
    rest.iter()
        .filter(|branch| branch.get("type").is_none_or(|kind| kind != "null"))
        .all(|branch| target(branch).is_some() && branch.get("title").is_none())
}

/// Returns a number; beyond 64 bits, the nearest double.
pub(super) fn number(number: i128) -> Value {
    let signed = i64::try_from(number).map(Number::from);
    let unsigned = || u64::try_from(number).map(Number::from);
    match signed.or_else(|_| unsigned()) {
        Ok(number) => Value::Number(number),
        #[allow(
            clippy::cast_precision_loss,
            reason = "the point is to be out of range"
        )]
        Err(_) => (number as f64).into(),
    }
}
