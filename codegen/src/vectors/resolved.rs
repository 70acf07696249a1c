//! Resolves schemas for reading values: references replaced, unions expanded.
//!
//! It is independent of `lower`, from which code is generated, so a test that compares both finds
//! errors in either. It covers the documents that `generate` accepts; an unknown schema accepts any
//! value.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use acp_schema::Document;
use serde_json::Value;

use crate::lower::{branches, escape, integer_format, integer_range, is_any, target};

/// The values that a schema accepts.
#[derive(Debug)]
pub(super) struct View<'a> {
    /// Whether `null` is accepted.
    pub(super) null: bool,
    pub(super) form: Form<'a>,
}

#[derive(Debug)]
pub(super) enum Form<'a> {
    Any,
    Null,
    Boolean,
    Integer(Integer),
    Number {
        least: Option<f64>,
        most: Option<f64>,
    },
    Text(Text<'a>),
    Array {
        items: &'a Value,
        least: usize,
    },
    Map(&'a Value),
    /// An object with arbitrary members.
    Free,
    /// An object of one of several alternatives; mostly there is one.
    Object(Vec<Alternative<'a>>),
    /// A value of one of several alternatives without a tag.
    Choice(Vec<&'a Value>),
}

/// The range of an integer: that of the type, and that of the schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Integer {
    pub(super) width: (i128, i128),
    pub(super) allowed: (i128, i128),
}

#[derive(Debug)]
pub(super) struct Text<'a> {
    /// The defined values.
    pub(super) words: Vec<&'a str>,
    /// The same values as a set.
    pub(super) known: HashSet<&'a str>,
    /// Whether other values are valid.
    pub(super) open: bool,
    pub(super) least: usize,
    pub(super) format: Option<&'a str>,
}

/// One alternative of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Alternative<'a> {
    /// Name that distinguishes it from the others.
    pub(super) label: String,
    pub(super) fields: Vec<Field<'a>>,
    /// Whether it accepts tags that no other alternative has.
    pub(super) open: bool,
    /// Whether members that the schema does not name are kept.
    pub(super) keeps: bool,
    /// The tags of unions that are taken as absent when their tag is invalid.
    pub(super) tolerant: Vec<&'a str>,
}

#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Value,
    pub(super) required: bool,
    /// The required value, if the member distinguishes alternatives.
    pub(super) tag: Option<&'a str>,
    /// The tags of the unions whose branches contain it; empty for an untagged union.
    pub(super) within: Vec<&'a str>,
}

impl Field<'_> {
    pub(super) fn marked(&self, marker: &str) -> bool {
        self.schema.get(marker).is_some_and(|flag| flag == true)
    }
}

impl<'a> View<'a> {
    /// Returns the resolved schema of the definition `name`.
    pub(super) fn definition(document: &'a Document, name: &str) -> Self {
        let schema = document.def(name).unwrap_or(&Value::Null);
        look(document, schema, true)
    }

    /// Returns the resolved schema inside a definition.
    pub(super) fn of(document: &'a Document, schema: &'a Value) -> Self {
        look(document, schema, false)
    }
}

/// The resolved schemas of a document, each computed once.
///
/// Many vectors use the same schema, and that of an enum contains all its values.
#[derive(Debug)]
pub(super) struct Views<'a> {
    document: &'a Document,
    /// By the address of the schema, which is constant while the document is borrowed.
    known: RefCell<HashMap<*const Value, Rc<View<'a>>>>,
}

impl<'a> Views<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        Self {
            document,
            known: RefCell::default(),
        }
    }

    /// Returns the resolved schema inside a definition.
    pub(super) fn of(&self, schema: &'a Value) -> Rc<View<'a>> {
        let known = self
            .known
            .borrow()
            .get(&std::ptr::from_ref(schema))
            .cloned();
        known.unwrap_or_else(|| {
            let view = Rc::new(View::of(self.document, schema));
            let mut known = self.known.borrow_mut();
            known.insert(std::ptr::from_ref(schema), view.clone());
            view
        })
    }
}

fn look<'a>(document: &'a Document, schema: &'a Value, root: bool) -> View<'a> {
    let plain = |form| View { null: false, form };
    if is_any(schema) {
        return View {
            null: true,
            form: Form::Any,
        };
    }
    if let Some(name) = target(schema).and_then(|target| target.strip_prefix("#/$defs/")) {
        return View::definition(document, name);
    }
    if let Some((_, all)) = branches(schema)
        && schema.get("properties").is_none()
    {
        let rest: Vec<&Value> = all.iter().filter(|branch| !is_null(branch)).collect();
        let null = rest.len() < all.len();
        let form = match rest.as_slice() {
            [only] if null => look(document, only, root).form,
            rest => union(document, schema, rest),
        };
        return View { null, form };
    }
    if schema.get("enum").is_some() || schema.get("const").is_some() {
        return plain(text(schema, &[schema]).map_or(Form::Any, Form::Text));
    }
    let (kind, null) = kind(schema);
    let form = match kind {
        Some("null") => Form::Null,
        Some("boolean") => Form::Boolean,
        Some("integer") => Form::Integer(integer(schema)),
        Some("number") => Form::Number {
            least: schema.get("minimum").and_then(Value::as_f64),
            most: schema.get("maximum").and_then(Value::as_f64),
        },
        Some("string") => text(schema, &[schema]).map_or(Form::Any, Form::Text),
        Some("array") => Form::Array {
            items: schema.get("items").unwrap_or(&Value::Bool(true)),
            least: size(schema, "minItems"),
        },
        Some("object") => object(document, schema, root),
        _ => Form::Any,
    };
    let null = null || matches!(form, Form::Null);
    View { null, form }
}

/// Returns the type of a schema without `null`, and whether it accepts `null`.
fn kind(schema: &Value) -> (Option<&str>, bool) {
    match schema.get("type") {
        Some(Value::Array(types)) => {
            let kinds = types.iter().filter_map(Value::as_str);
            let (null, rest): (Vec<_>, Vec<_>) = kinds.partition(|kind| *kind == "null");
            (rest.first().copied(), !null.is_empty())
        }
        Some(Value::String(kind)) => (Some(kind), false),
        _ if schema.get("properties").is_some() || schema.get("allOf").is_some() => {
            (Some("object"), false)
        }
        _ => (None, false),
    }
}

fn is_null(branch: &Value) -> bool {
    branch.get("type").is_some_and(|kind| kind == "null")
}

fn size(schema: &Value, keyword: &str) -> usize {
    let size = schema.get(keyword).and_then(Value::as_u64).unwrap_or(0);
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// Resolves a union that is not part of an object.
fn union<'a>(document: &'a Document, schema: &'a Value, rest: &[&'a Value]) -> Form<'a> {
    if let Some(text) = text(schema, rest) {
        return Form::Text(text);
    }
    let integers = rest.iter().all(|branch| kind(branch).0 == Some("integer"));
    if let (true, Some(first)) = (integers, rest.first()) {
        // Named values and the catch-all branch have the same integer format.
        return Form::Integer(integer(first));
    }
    if rest.iter().all(|branch| is_object(document, branch)) {
        return Form::Object(alternatives(document, schema));
    }
    Form::Choice(rest.to_vec())
}

fn is_object(document: &Document, schema: &Value) -> bool {
    matches!(look(document, schema, true).form, Form::Object(_))
}

/// Resolves a union of strings; `None` when a branch is not a string.
fn text<'a>(schema: &'a Value, branches: &[&'a Value]) -> Option<Text<'a>> {
    let mut text = Text {
        words: Vec::new(),
        known: HashSet::new(),
        open: false,
        least: size(schema, "minLength"),
        format: schema.get("format").and_then(Value::as_str),
    };
    for branch in branches {
        if let Some(words) = branch.get("enum").and_then(Value::as_array) {
            for word in words {
                text.words.push(word.as_str()?);
            }
        } else if let Some(word) = branch.get("const") {
            text.words.push(word.as_str()?);
        } else if kind(branch).0 == Some("string") {
            text.open = true;
        } else {
            return None;
        }
    }
    text.known = text.words.iter().copied().collect();
    Some(text)
}

fn integer(schema: &Value) -> Integer {
    let width = integer_range(integer_format(schema)).unwrap_or((i64::MIN.into(), i64::MAX.into()));
    let limit = |keyword: &str| {
        let number = schema.get(keyword)?;
        let signed = number.as_i64().map(i128::from);
        signed.or_else(|| number.as_u64().map(i128::from))
    };
    let least = limit("minimum").unwrap_or(width.0).max(width.0);
    let most = limit("maximum").unwrap_or(width.1).min(width.1);
    Integer {
        width,
        allowed: (least, most),
    }
}

fn object<'a>(document: &'a Document, schema: &'a Value, root: bool) -> Form<'a> {
    if !root && schema.get("additionalProperties") == Some(&Value::Bool(true)) {
        // The members of such an object are read on demand.
        return Form::Free;
    }
    let fields = schema.get("properties").is_some() || schema.get("allOf").is_some();
    if fields || branches(schema).is_some() {
        return Form::Object(alternatives(document, schema));
    }
    match schema.get("additionalProperties") {
        Some(values) if !is_any(values) => Form::Map(values),
        // A definition is a separate type, even without members.
        _ if root => Form::Object(vec![Alternative::default()]),
        _ => Form::Free,
    }
}

/// Returns all alternatives of an object: its members with those of each branch of its unions.
fn alternatives<'a>(document: &'a Document, schema: &'a Value) -> Vec<Alternative<'a>> {
    let mut found = vec![Alternative {
        fields: own_fields(schema),
        keeps: schema.get("additionalProperties").is_some_and(is_any),
        ..Alternative::default()
    }];
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.strip_prefix("#/$defs/").unwrap_or_default();
        let referred = document.def(name).unwrap_or(&Value::Null);
        found = cross(&found, &alternatives(document, referred));
    }
    for part in schema
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        found = cross(&found, &alternatives(document, part));
    }
    if let Some((_, branches)) = branches(schema) {
        let tag = tag(schema);
        let spread = branches
            .iter()
            .flat_map(|branch| branch_forms(document, branch, tag));
        let own = tag.and_then(|tag| schema.pointer(&format!("/properties/{}", escape(tag))));
        let tolerant = own.is_some_and(|own| {
            own.get("x-deserialize-default-on-error")
                .is_some_and(|flag| flag == true)
        });
        found = cross(&found, &spread.collect::<Vec<_>>());
        for form in found.iter_mut().filter(|_| tolerant) {
            form.tolerant.extend(tag);
        }
    }
    found
}

/// Returns the name of the tag of a union.
fn tag(schema: &Value) -> Option<&str> {
    let name = crate::lower::tag(schema)?;
    let (_, branches) = branches(schema)?;
    // Equal to the name, but borrowed from the document.
    branches.iter().find_map(|branch| {
        let properties = branch.get("properties")?.as_object()?;
        properties
            .get_key_value(&name)
            .map(|(name, _)| name.as_str())
    })
}

fn own_fields<'a>(schema: &'a Value) -> Vec<Field<'a>> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|n| n == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let field = |(name, schema): (&'a String, &'a Value)| Field {
        name,
        schema,
        required: is_required(name),
        tag: None,
        within: Vec::new(),
    };
    properties.into_iter().flatten().map(field).collect()
}

fn branch_forms<'a>(
    document: &'a Document,
    branch: &'a Value,
    tag: Option<&'a str>,
) -> Vec<Alternative<'a>> {
    let own = tag.and_then(|tag| branch.pointer(&format!("/properties/{}", escape(tag))));
    let constant = own.and_then(|own| own.get("const")?.as_str());
    let title = branch.get("title").and_then(Value::as_str);
    let label = constant.or(title).or(target(branch)).unwrap_or_default();
    let mut forms = alternatives(document, branch);
    for form in &mut forms {
        form.open |= own.is_some_and(|own| constant.is_none() && kind(own).0 == Some("string"));
        form.label = match form.label.as_str() {
            "" => label.to_owned(),
            more => format!("{label}, {more}"),
        };
        for field in &mut form.fields {
            field.within.push(tag.unwrap_or_default());
            if Some(field.name) == tag {
                field.tag = constant;
            }
        }
    }
    forms
}

/// Combines each of `left` with each of `right`, whose members replace those of the same name.
fn cross<'a>(left: &[Alternative<'a>], right: &[Alternative<'a>]) -> Vec<Alternative<'a>> {
    let pair = |one: &Alternative<'a>, two: &Alternative<'a>| {
        let kept = one
            .fields
            .iter()
            .filter(|field| two.fields.iter().all(|other| other.name != field.name));
        let labels = [one.label.as_str(), two.label.as_str()];
        let labels: Vec<&str> = labels.into_iter().filter(|text| !text.is_empty()).collect();
        Alternative {
            label: labels.join(", "),
            fields: kept.chain(&two.fields).cloned().collect(),
            open: one.open || two.open,
            keeps: one.keeps || two.keeps,
            tolerant: [&one.tolerant[..], &two.tolerant].concat(),
        }
    };
    let pairs = left
        .iter()
        .flat_map(|one| right.iter().map(move |two| pair(one, two)));
    pairs.collect()
}
