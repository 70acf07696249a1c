//! Two schemas, change by change.

use std::collections::BTreeSet;

use acp_schema::{Document, Kind, Method};
use serde_json::{Map, Value};

use super::Change;
use super::flow::{Flow, Roles};
use super::shape::{contains, definition, is_open, kind, list, number, requires, variants, within};
use crate::lower::{integer_range, is_any, nullable, tag};

/// The effect of a change on the set of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// None, or none that a peer can observe.
    Same,
    /// New values are possible: receivers may not understand them.
    Wider,
    /// Old values are not possible any more: senders may be refused.
    Narrower,
    Both,
}

pub(super) struct Comparison<'a> {
    old: &'a Document,
    new: &'a Document,
    flow: &'a Flow,
    /// Pairs of definitions that are compared already.
    seen: BTreeSet<(String, String)>,
    waiting: Vec<(String, String)>,
    /// The roles that send the value.
    senders: Roles,
    pub(super) changes: Vec<Change>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(old: &'a Document, new: &'a Document, flow: &'a Flow) -> Self {
        Self {
            old,
            new,
            flow,
            seen: BTreeSet::new(),
            waiting: Vec::new(),
            senders: flow.roles().clone(),
            changes: Vec::new(),
        }
    }

    /// Compares what two forms of a method carry.
    pub(super) fn method(&mut self, old: &Method, new: &Method) {
        let mut parts = vec![("params", old.kind.params(), new.kind.params())];
        if let (Kind::Request { result: before, .. }, Kind::Request { result: after, .. }) =
            (&old.kind, &new.kind)
        {
            parts.push(("result", before, after));
        }
        for (part, before, after) in parts {
            if before != after {
                let what = format!("{part} are defined by `{after}` in place of `{before}`");
                self.report(&old.name, what, Effect::Same);
                self.pair(before, after);
            }
        }
    }

    /// Compares two definitions, and later those that they refer to.
    pub(super) fn pair(&mut self, old: &str, new: &str) {
        if self.seen.insert((old.to_owned(), new.to_owned())) {
            self.waiting.push((old.to_owned(), new.to_owned()));
        }
        while let Some((before, after)) = self.waiting.pop() {
            let (Some(old), Some(new)) = (self.old.def(&before), self.new.def(&after)) else {
                continue;
            };
            // Envelopes only route; what they carry is compared by method.
            if old.get("x-docs-ignore").is_none() && new.get("x-docs-ignore").is_none() {
                self.senders = self.flow.senders(&after);
                self.schemas(&after, old, new);
            }
        }
    }

    pub(super) fn finish(self) -> Vec<Change> {
        self.changes
    }

    fn report(&mut self, at: &str, what: impl Into<String>, effect: Effect) {
        let wider = matches!(effect, Effect::Wider | Effect::Both);
        let narrower = matches!(effect, Effect::Narrower | Effect::Both);
        let mut breaks = Roles::new();
        if narrower {
            breaks.extend(&self.senders);
        }
        if wider {
            breaks.extend(self.flow.receivers(&self.senders));
        }
        self.changes.push(Change {
            at: at.into(),
            what: what.into(),
            breaks: breaks.into_iter().collect(),
        });
    }

    fn schemas(&mut self, at: &str, old: &Value, new: &Value) {
        let (without, without_too) = (nullable(old), nullable(new));
        match (without.is_some(), without_too.is_some()) {
            (false, true) if !is_any(old) => self.report(at, "may be null", Effect::Wider),
            (true, false) if !is_any(new) => {
                self.report(at, "must not be null any more", Effect::Narrower);
            }
            _ => {}
        }
        let (old, new) = (
            without.as_ref().unwrap_or(old),
            without_too.as_ref().unwrap_or(new),
        );
        match (is_any(old), is_any(new)) {
            (true, true) => return,
            (true, false) => return self.report(at, "is restricted", Effect::Narrower),
            (false, true) => return self.report(at, "may be anything", Effect::Wider),
            (false, false) => {}
        }
        match (definition(old), definition(new)) {
            (Some(before), Some(after)) => {
                if before != after {
                    self.other_name(at, before, after);
                }
            }
            // One of the two is written out; what is referred to must be the same.
            (Some(name), None) => {
                if let Some(old) = self.old.def(name) {
                    self.schemas(at, old, new);
                }
            }
            (None, Some(name)) => {
                if let Some(new) = self.new.def(name) {
                    self.schemas(at, old, new);
                }
            }
            (None, None) => self.written_out(at, old, new),
        }
    }

    /// A reference to a definition of another name. One that only has a new name is told of
    /// once, not at every place that refers to it.
    fn other_name(&mut self, at: &str, before: &str, after: &str) {
        let first = self.seen.insert((before.to_owned(), after.to_owned()));
        if self.new.def(before).is_some() || self.old.def(after).is_some() {
            let what = format!("refers to `{after}` in place of `{before}`");
            self.report(at, what, Effect::Same);
        } else if first {
            self.report(after, format!("was called `{before}`"), Effect::Same);
        }
        if first {
            self.waiting.push((before.to_owned(), after.to_owned()));
        }
    }

    fn written_out(&mut self, at: &str, old: &Value, new: &Value) {
        if self.kinds(at, old, new) {
            self.limits(at, old, new);
            self.unions(at, old, new);
            self.members(at, old, new);
            let (before, after) = (list(old, "allOf"), list(new, "allOf"));
            if before.len() != after.len() {
                self.report(at, "is made of other parts", Effect::Both);
            }
            for (before, after) in before.iter().zip(after) {
                self.schemas(at, before, after);
            }
            for (key, place) in [("items", "[]"), ("additionalProperties", "{}")] {
                if let (Some(before @ Value::Object(_)), Some(after @ Value::Object(_))) =
                    (old.get(key), new.get(key))
                {
                    self.schemas(&format!("{at}{place}"), before, after);
                }
            }
        }
    }

    /// Compares types, and says whether the rest can be compared.
    fn kinds(&mut self, at: &str, old: &Value, new: &Value) -> bool {
        let (before, after) = (kind(old), kind(new));
        let effect = match (before.as_str(), after.as_str()) {
            (before, after) if before == after => return true,
            ("integer", "number") => Effect::Wider,
            ("number", "integer") => Effect::Narrower,
            // Names for values of a text: the open ones allow what was allowed.
            ("string", "one of several texts") if is_open(new) => Effect::Same,
            ("string", "one of several texts") => Effect::Narrower,
            ("one of several texts", "string") if is_open(old) => Effect::Same,
            ("one of several texts", "string") => Effect::Wider,
            _ => Effect::Both,
        };
        self.report(at, format!("is {after} in place of {before}"), effect);
        false
    }

    fn limits(&mut self, at: &str, old: &Value, new: &Value) {
        const LIMITS: [(&str, bool); 6] = [
            ("minimum", true),
            ("minLength", true),
            ("minItems", true),
            ("maximum", false),
            ("maxLength", false),
            ("maxItems", false),
        ];
        for (key, least) in LIMITS {
            let (before, after) = (number(old, key), number(new, key));
            let effect = match (before, after) {
                (None, None) => continue,
                (Some(before), Some(after)) if before.total_cmp(&after).is_eq() => continue,
                (None, Some(_)) => Effect::Narrower,
                (Some(_), None) => Effect::Wider,
                (Some(before), Some(after)) if (after > before) == least => Effect::Narrower,
                (Some(_), Some(_)) => Effect::Wider,
            };
            self.keyword(at, key, old, new, effect);
        }
        let range = |format: &Value| integer_range(format.as_str()?);
        for key in ["format", "pattern", "const"] {
            let (before, after) = (old.get(key), new.get(key));
            let effect = match (before, after) {
                _ if before == after => continue,
                (None, _) => Effect::Narrower,
                (_, None) => Effect::Wider,
                (Some(before), Some(after)) => match (range(before), range(after)) {
                    (Some(before), Some(after)) if contains(after, before) => Effect::Wider,
                    (Some(before), Some(after)) if contains(before, after) => Effect::Narrower,
                    _ => Effect::Both,
                },
            };
            self.keyword(at, key, old, new, effect);
        }
    }

    fn keyword(&mut self, at: &str, key: &str, old: &Value, new: &Value, effect: Effect) {
        let what = match (old.get(key), new.get(key)) {
            (Some(before), Some(after)) => format!("`{key}` is {after} in place of {before}"),
            (None, Some(after)) => format!("`{key}` {after} added"),
            (Some(before), None) => format!("`{key}` {before} removed"),
            (None, None) => return,
        };
        self.report(at, what, effect);
    }

    fn unions(&mut self, at: &str, old: &Value, new: &Value) {
        let (before, after) = (variants(old), variants(new));
        if before.is_empty() && after.is_empty() {
            return;
        }
        if tag(old) != tag(new) && !before.is_empty() && !after.is_empty() {
            let name = |schema| tag(schema).map_or("nothing".to_owned(), |tag| format!("`{tag}`"));
            let what = format!(
                "variants are told apart by {} in place of {}",
                name(new),
                name(old)
            );
            return self.report(at, what, Effect::Both);
        }
        let open = (is_open(old), is_open(new));
        for (key, branch) in &before {
            match after.iter().find(|(other, _)| other == key) {
                Some((_, kept)) => self.schemas(&format!("{at}#{key}"), branch, kept),
                // An open union still takes it, but nobody knows what it means.
                None => {
                    self.report(at, format!("variant `{key}` removed"), Effect::Narrower);
                }
            }
        }
        for (key, _) in &after {
            if !before.iter().any(|(other, _)| other == key) {
                let effect = if open.0 { Effect::Same } else { Effect::Wider };
                self.report(at, format!("variant `{key}` added"), effect);
            }
        }
        match open {
            (false, true) if !before.is_empty() => {
                self.report(at, "variants of any other name are allowed", Effect::Wider);
            }
            (true, false) if !after.is_empty() => {
                let what = "variants of any other name are not allowed any more";
                self.report(at, what, Effect::Narrower);
            }
            _ => {}
        }
    }

    fn members(&mut self, at: &str, old: &Value, new: &Value) {
        let none = Map::new();
        let properties = |schema: &'_ Value| {
            let properties = schema.get("properties").and_then(Value::as_object);
            properties.cloned().unwrap_or_else(|| none.clone())
        };
        let (before, after) = (properties(old), properties(new));
        for (name, property) in &before {
            let place = format!("{at}.{name}");
            let (was, is) = (requires(old, name), requires(new, name));
            let Some(kept) = after.get(name) else {
                let effect = if was { Effect::Wider } else { Effect::Same };
                self.report(&place, format!("{} removed", member(was)), effect);
                continue;
            };
            match (was, is) {
                (true, false) => self.report(&place, "may be absent", Effect::Wider),
                (false, true) => self.report(&place, "is required", Effect::Narrower),
                _ => {}
            }
            self.annotations(&place, property, kept);
            self.schemas(&place, property, kept);
        }
        for name in after.keys().filter(|name| !before.contains_key(*name)) {
            let is = requires(new, name);
            // Members that are not known are ignored.
            let effect = if is { Effect::Narrower } else { Effect::Same };
            self.report(
                &format!("{at}.{name}"),
                format!("{} added", member(is)),
                effect,
            );
        }
    }

    /// What absence means, and what readers tolerate.
    fn annotations(&mut self, at: &str, old: &Value, new: &Value) {
        let (before, after) = (old.get("default"), new.get("default"));
        if before != after {
            match (before, after) {
                // That says no more than the defaults of the members themselves.
                (Some(Value::Object(before)), Some(Value::Object(after)))
                    if within(before, after) =>
                {
                    self.report(at, "`default` has more members", Effect::Same);
                }
                _ => self.keyword(at, "default", old, new, Effect::Narrower),
            }
        }
        let markers = |schema: &Value| -> BTreeSet<String> {
            let keys = schema.as_object().into_iter().flat_map(Map::keys);
            keys.filter(|key| key.starts_with("x-")).cloned().collect()
        };
        let (before, after) = (markers(old), markers(new));
        for marker in before.symmetric_difference(&after) {
            let verb = if after.contains(marker) {
                "added"
            } else {
                "removed"
            };
            // What a strict sender writes is not touched by it.
            self.report(at, format!("`{marker}` {verb}"), Effect::Same);
        }
    }
}

fn member(required: bool) -> &'static str {
    if required {
        "required member"
    } else {
        "optional member"
    }
}
