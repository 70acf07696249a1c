//! Computes the expected result of reading a value, from the schema alone.
//!
//! A small interpreter of schemas and their leniency keywords. It returns whether a value is
//! valid, which parts of an invalid value are dropped, which places are invalid when it cannot be
//! read, and the value with defaults for absent members.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::resolved::{Alternative, Field, Form, Integer, View, Views};
use crate::lower::escape;

/// The result of reading a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// The schema accepts it.
    Valid { means: Value },
    /// Invalid for the schema; readers accept it without the parts in `dropped`.
    Lenient { means: Value, dropped: Vec<String> },
    /// It cannot be read; one of these places is reported.
    Invalid { paths: Vec<String> },
}

/// Reads a value of the definition whose resolved schema is `top`.
pub(super) fn classify<'a>(views: &Views<'a>, top: &View<'a>, value: &Value) -> Verdict {
    let mut oracle = Oracle::new(views);
    match oracle.read(top, value, "") {
        Err(paths) => Verdict::Invalid { paths },
        Ok(means) if oracle.odd || !oracle.dropped.is_empty() => Verdict::Lenient {
            means,
            dropped: oracle.dropped,
        },
        Ok(means) => Verdict::Valid { means },
    }
}

/// The value that was read, or the invalid places.
type Read = Result<Value, Vec<String>>;

struct Oracle<'v, 'a> {
    views: &'v Views<'a>,
    dropped: Vec<String>,
    /// Whether a value is invalid for the schema, although nothing was dropped.
    odd: bool,
}

impl<'v, 'a> Oracle<'v, 'a> {
    fn new(views: &'v Views<'a>) -> Self {
        Self {
            views,
            dropped: Vec::new(),
            odd: false,
        }
    }

    fn read(&mut self, view: &View<'a>, value: &Value, at: &str) -> Read {
        let wrong = || Err(vec![at.to_owned()]);
        let same = || Ok(value.clone());
        if value.is_null() && view.null {
            return same();
        }
        match (&view.form, value) {
            (Form::Any, _)
            | (Form::Null, Value::Null)
            | (Form::Boolean, Value::Bool(_))
            | (Form::Free, Value::Object(_)) => same(),
            (Form::Integer(range), Value::Number(_)) => match whole(value) {
                Some(number) if self.fits(range, number) => same(),
                _ => wrong(),
            },
            (Form::Number { least, most }, Value::Number(number)) => {
                let number = number.as_f64().unwrap_or_default();
                self.odd |= least.is_some_and(|least| number < least);
                self.odd |= most.is_some_and(|most| number > most);
                same()
            }
            (Form::Text(text), Value::String(word)) => {
                self.odd |= !text.open && !text.known.contains(word.as_str());
                self.odd |= word.chars().count() < text.least;
                same()
            }
            (Form::Array { items, least }, Value::Array(values)) => {
                self.odd |= values.len() < *least;
                let item = self.views.of(items);
                let read = |(index, value)| self.read(&item, value, &format!("{at}/{index}"));
                values.iter().enumerate().map(read).collect()
            }
            (Form::Map(values), Value::Object(members)) => {
                let member = self.views.of(values);
                let read = |(name, value): (&String, &Value)| {
                    let at = format!("{at}/{}", escape(name));
                    Ok((name.clone(), self.read(&member, value, &at)?))
                };
                members.iter().map(read).collect()
            }
            (Form::Object(forms), Value::Object(members)) => self.object(forms, members, at),
            (Form::Choice(branches), _) => {
                let views = branches.iter().map(|branch| self.views.of(branch));
                let views: Vec<Rc<View<'a>>> = views.collect();
                self.first(&views, |oracle, view| oracle.read(view, value, at))
            }
            _ => wrong(),
        }
    }

    /// Records numbers that are valid for the type but not for the schema.
    fn fits(&mut self, range: &Integer, number: i128) -> bool {
        let within = |(least, most): (i128, i128)| (least..=most).contains(&number);
        self.odd |= !within(range.allowed);
        within(range.width)
    }

    fn object(&mut self, forms: &[Alternative<'a>], value: &Map<String, Value>, at: &str) -> Read {
        let tags: BTreeSet<&str> = forms
            .iter()
            .flat_map(tags_in)
            .map(|(name, _)| name)
            .collect();
        let tolerant = |tag: &&str| forms.iter().any(|form| form.tolerant.contains(tag));
        let odd = |tag: &str| {
            value
                .get(tag)
                .is_some_and(|v| !v.is_string() && !v.is_null())
        };
        if let Some(tag) = tags.iter().copied().find(|tag| odd(tag) && tolerant(tag)) {
            let mut rest = value.clone();
            rest.shift_remove(tag);
            let means = self.object(forms, &rest, at)?;
            self.dropped.push(format!("{at}/{}", escape(tag)));
            return Ok(means);
        }
        let word = |tag: &str| value.get(tag).and_then(Value::as_str);
        let known = |tag: &str, word| {
            forms
                .iter()
                .flat_map(tags_in)
                .any(|pair| pair == (tag, word))
        };
        // The tag of an inner union is ignored unless the outer tags select its variant.
        let reached = |tag: &str| {
            forms.iter().any(|form| {
                form.fields.iter().any(|field| field.name == tag)
                    && tags_in(form)
                        .all(|(name, expected)| name == tag || word(name) == Some(expected))
            })
        };
        let unknown = |tag: &str| word(tag).is_some_and(|word| !known(tag, word)) && reached(tag);
        if let Some(tag) = tags.iter().copied().find(|tag| unknown(tag)) {
            return self.unknown(forms, tag, value, at);
        }
        let matches = |form: &&Alternative<'a>| {
            !form.open && tags_in(form).all(|(tag, expected)| word(tag) == Some(expected))
        };
        let matching: Vec<&Alternative<'a>> = forms.iter().filter(matches).collect();
        let most = matching.iter().map(|form| tags_in(form).count()).max();
        let fullest = matching
            .into_iter()
            .filter(|form| Some(tags_in(form).count()) == most);
        let fullest: Vec<&Alternative<'a>> = fullest.collect();
        let read = self.first(&fullest, |oracle, form| {
            let mut means = oracle.fields(&form.fields, value, at)?;
            if let (true, Value::Object(means)) = (form.keeps, &mut means) {
                let named = |name: &str| form.fields.iter().any(|field| field.name == name);
                let others = value.iter().filter(|(name, _)| !named(name));
                means.extend(others.map(|(name, value)| (name.clone(), value.clone())));
            }
            Ok(means)
        });
        read.map_err(|mut paths| {
            // Readers may also report a tag that is missing or not a string, or a member beside
            // the union.
            let odd = tags.iter().filter(|tag| word(tag).is_none());
            paths.extend(odd.map(|tag| format!("{at}/{}", escape(tag))));
            if fullest.is_empty() {
                let beside = forms.first().map_or_else(Vec::new, |form| {
                    let fields = form.fields.iter().filter(|field| field.within.is_empty());
                    fields.cloned().collect()
                });
                paths.extend(self.fields(&beside, value, at).err().unwrap_or_default());
            }
            paths
        })
    }

    /// Reads an object whose tag is unknown: members beside the union are read, the others are
    /// kept unchanged.
    fn unknown(
        &mut self,
        forms: &[Alternative<'a>],
        tag: &str,
        value: &Map<String, Value>,
        at: &str,
    ) -> Read {
        let word = |name: &str| value.get(name).and_then(Value::as_str);
        let fits = |form: &&Alternative<'a>| {
            tags_in(form).all(|(name, expected)| name == tag || word(name) == Some(expected))
        };
        let forms: Vec<&Alternative<'a>> = forms.iter().filter(fits).collect();
        let has_union =
            |form: &&&Alternative<'a>| form.fields.iter().any(|field| field.name == tag);
        let (beside, _) = forms
            .iter()
            .find(has_union)
            .map_or_else(Default::default, |form| split(form, tag));
        let is_beside = |name: &str| beside.iter().any(|field| field.name == name);
        // The catch-all branch only decides whether the schema permits it.
        let valid = forms.iter().filter(|form| form.open).any(|form| {
            let mut strict = Oracle::new(self.views);
            let (_, union) = split(form, tag);
            strict.fields(&union, value, at).is_ok() && !strict.odd && strict.dropped.is_empty()
        });
        self.odd |= !valid;
        let mut means = match self.fields(&beside, value, at)? {
            Value::Object(means) => means,
            _ => Map::new(),
        };
        let kept = value.iter().filter(|(name, _)| !is_beside(name));
        means.extend(kept.map(|(name, value)| (name.clone(), value.clone())));
        Ok(Value::Object(means))
    }

    fn fields(&mut self, fields: &[Field<'a>], value: &Map<String, Value>, at: &str) -> Read {
        let mut means = Map::new();
        let mut wrong = Vec::new();
        for field in fields {
            let at = format!("{at}/{}", escape(field.name));
            match self.member(field, value.get(field.name), &at) {
                Ok(Some(value)) => {
                    means.insert(field.name.into(), value);
                }
                Ok(None) => {}
                Err(paths) => wrong.extend(paths),
            }
        }
        if wrong.is_empty() {
            Ok(Value::Object(means))
        } else {
            Err(wrong)
        }
    }

    /// Reads a member; `None` when the result equals its absence.
    fn member(
        &mut self,
        field: &Field<'a>,
        value: Option<&Value>,
        at: &str,
    ) -> Result<Option<Value>, Vec<String>> {
        let view = self.views.of(field.schema);
        let Some(value) = value else {
            if field.required {
                return Err(vec![at.to_owned()]);
            }
            return Ok(self.default(field, &view));
        };
        if value.is_null() {
            if view.null {
                let kept = field.required || field.marked("x-tri-state");
                return Ok(kept.then_some(Value::Null));
            }
            let list = matches!(view.form, Form::Array { .. } | Form::Map(_));
            // Null is equivalent to absence here, so nothing is dropped.
            let absent = !field.required && !list && field.schema.get("default").is_none();
            if absent || field.marked("x-deserialize-default-on-null") {
                self.odd = true;
                return Ok(self.stand_in(field, &view));
            }
        }
        let list = matches!(view.form, Form::Array { .. } | Form::Map(_));
        let (dropped, odd) = (self.dropped.len(), self.odd);
        let read = match (&view.form, value) {
            (Form::Array { items, least }, Value::Array(values))
                if field.marked("x-deserialize-skip-invalid-items") =>
            {
                self.odd |= values.len() < *least;
                Ok(self.valid_items(&self.views.of(items), values, at))
            }
            _ => self.read(&view, value, at),
        };
        match read {
            Ok(means) => {
                let empty = match &means {
                    Value::Array(items) => items.is_empty(),
                    Value::Object(members) => members.is_empty(),
                    _ => false,
                };
                // An absent list and an empty list are equivalent.
                let omitted = list
                    && empty
                    && !view.null
                    && !field.required
                    && field.schema.get("default").is_none();
                Ok((!omitted).then_some(means))
            }
            Err(_)
                if field.marked("x-deserialize-default-on-error")
                    && (!field.required || list || view.null) =>
            {
                self.dropped.truncate(dropped);
                self.odd = odd;
                self.dropped.push(at.to_owned());
                Ok(self.stand_in(field, &view))
            }
            Err(paths) => Err(paths),
        }
    }

    fn valid_items(&mut self, view: &View<'a>, values: &[Value], at: &str) -> Value {
        let mut items = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let at = format!("{at}/{index}");
            let (dropped, odd) = (self.dropped.len(), self.odd);
            match self.read(view, value, &at) {
                Ok(item) => items.push(item),
                Err(_) => {
                    self.dropped.truncate(dropped);
                    self.odd = odd;
                    self.dropped.push(at);
                }
            }
        }
        Value::Array(items)
    }

    /// Returns the replacement of a dropped value.
    fn stand_in(&mut self, field: &Field<'a>, view: &View<'a>) -> Option<Value> {
        if !field.required {
            return self.default(field, view);
        }
        Some(match view.form {
            _ if view.null => Value::Null,
            Form::Array { .. } => Value::Array(Vec::new()),
            _ => Value::Object(Map::new()),
        })
    }

    /// Returns the value of an absent member.
    fn default(&mut self, field: &Field<'a>, view: &View<'a>) -> Option<Value> {
        let default = field
            .schema
            .get("default")
            .filter(|value| !value.is_null())?;
        if view.null {
            return None;
        }
        // A default may omit members that have defaults.
        Some(
            self.read(view, default, "")
                .unwrap_or_else(|_| default.clone()),
        )
    }

    /// Reads with the first alternative that succeeds: all are tried strictly before any is tried
    /// leniently.
    fn first<T>(&mut self, all: &[T], read: impl Fn(&mut Self, &T) -> Read) -> Read {
        let mut lenient = None;
        let mut wrong = Vec::new();
        for one in all {
            let mut oracle = Oracle::new(self.views);
            match read(&mut oracle, one) {
                Ok(means) if oracle.dropped.is_empty() && !oracle.odd => return Ok(means),
                Ok(means) => {
                    lenient.get_or_insert((means, oracle.dropped));
                }
                Err(paths) => wrong.extend(paths),
            }
        }
        let (means, dropped) = lenient.ok_or(wrong)?;
        self.odd = true;
        self.dropped.extend(dropped);
        Ok(means)
    }
}

/// Returns the members beside the union with the tag `tag`, and those in its branches.
fn split<'a>(form: &Alternative<'a>, tag: &str) -> (Vec<Field<'a>>, Vec<Field<'a>>) {
    let fields = form.fields.iter().cloned();
    fields.partition(|field| !field.within.contains(&tag))
}

fn tags_in<'a, 'b>(form: &'b Alternative<'a>) -> impl Iterator<Item = (&'a str, &'a str)> + 'b {
    form.fields
        .iter()
        .filter_map(|field| Some((field.name, field.tag?)))
}

/// Returns the number if its value is an integer, as that of `1.0`.
fn whole(value: &Value) -> Option<i128> {
    let signed = value.as_i64().map(i128::from);
    let exact = signed.or_else(|| value.as_u64().map(i128::from));
    exact.or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        // Larger doubles have lost the digits that they were written with.
        let exact = (1_u64 << f64::MANTISSA_DIGITS) as f64;
        (number.abs() <= exact).then_some(number as i128)
    })
}
