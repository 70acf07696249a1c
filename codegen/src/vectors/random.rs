//! Generates pseudo-random values from a seed: whole messages with some invalid parts, and members
//! in any order.

use acp_schema::Document;
use serde_json::{Map, Value, json};

use super::invalid::kinds;
use super::resolved::{Alternative, Form, View};
use super::sample::number;

/// Depth from which values have required members only.
const DEPTH: usize = 5;

/// Returns a value of the definition `name`, the same for the same seed. About `faults` of 1,000
/// parts are invalid.
pub(super) fn random(document: &Document, name: &str, seed: u64, faults: u64) -> Value {
    let mut random = Random {
        document,
        state: seed,
        faults,
    };
    random.value(&View::definition(document, name), DEPTH)
}

struct Random<'a> {
    document: &'a Document,
    state: u64,
    faults: u64,
}

impl<'a> Random<'a> {
    /// Returns the next number (SplitMix64).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns whether the next part is made invalid.
    fn fault(&mut self) -> bool {
        self.next() % 1000 < self.faults
    }

    fn pick<'b, T>(&mut self, all: &'b [T]) -> Option<&'b T> {
        let index = self.below(all.len());
        all.get(index)
    }

    fn value(&mut self, view: &View<'a>, depth: usize) -> Value {
        if self.fault() {
            let kinds = kinds();
            return self.pick(&kinds).cloned().unwrap_or_default();
        }
        if view.null && self.one_in(5) {
            return Value::Null;
        }
        let document = self.document;
        match &view.form {
            Form::Any => {
                let all = [
                    json!("any"),
                    json!([1, { "a": null }]),
                    json!({ "b": 0.5 }),
                    json!(false),
                ];
                self.pick(&all).cloned().unwrap_or_default()
            }
            Form::Null => Value::Null,
            Form::Boolean => self.one_in(2).into(),
            Form::Integer(range) => {
                let (least, most) = range.allowed;
                let some = i128::from(self.next() % 1000).max(least).min(most);
                let all = [least, most, some, some];
                number(self.pick(&all).copied().unwrap_or_default())
            }
            Form::Number { least, most } => {
                let all = [0.25, -3.5, 0.0, 1e9];
                let number: f64 = self.pick(&all).copied().unwrap_or_default();
                number
                    .max(least.unwrap_or(f64::MIN))
                    .min(most.unwrap_or(f64::MAX))
                    .into()
            }
            Form::Text(text) => {
                let words: &[&str] = match text.words.as_slice() {
                    [] => &["text", "/a/b", "\u{e9}\n\"", "https://example.com/a"],
                    words => words,
                };
                if text.open && self.one_in(10) {
                    return "_other".into();
                }
                self.pick(words).copied().unwrap_or_default().into()
            }
            Form::Array { items, least } => {
                let item = View::of(document, items);
                let length = if depth == 0 { 0 } else { self.below(4) }.max(*least);
                let items = (0..length).map(|_| self.value(&item, depth.saturating_sub(1)));
                items.collect()
            }
            Form::Map(values) => {
                let value = View::of(document, values);
                let length = if depth == 0 { 0 } else { self.below(3) };
                let mut members = Map::new();
                for index in 0..length {
                    let value = self.value(&value, depth.saturating_sub(1));
                    members.insert(format!("key/{index}"), value);
                }
                members.into()
            }
            Form::Free => json!({ "example.com/key": [null, { "a": 1 }] }),
            Form::Object(forms) => match self.pick(forms) {
                Some(form) => self.object(form, depth),
                None => json!({}),
            },
            Form::Choice(branches) => match self.pick(branches).copied() {
                Some(branch) => self.value(&View::of(document, branch), depth),
                None => Value::Null,
            },
        }
    }

    fn object(&mut self, form: &Alternative<'a>, depth: usize) -> Value {
        let mut members = Vec::new();
        for field in &form.fields {
            let wanted = if field.required {
                !self.fault()
            } else {
                depth > 0 && self.one_in(2)
            };
            if !wanted {
                continue;
            }
            let value = match field.tag {
                Some(_) if self.fault() => "_later".into(),
                Some(tag) => tag.into(),
                None => {
                    let view = View::of(self.document, field.schema);
                    self.value(&view, depth.saturating_sub(1))
                }
            };
            members.push((field.name.to_owned(), value));
        }
        if self.fault() {
            members.push(("notDefined".to_owned(), json!({ "a": [null] })));
        }
        // Half of the objects keep the order of the schema, as most peers write it.
        if self.one_in(2) {
            for end in (1..members.len()).rev() {
                let other = self.below(end + 1);
                members.swap(end, other);
            }
        }
        Value::Object(members.into_iter().collect())
    }
}
