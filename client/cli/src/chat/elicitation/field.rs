//! A field of a form: its description, choices and answer.

use acp_sdk::v1::{
    ElicitationContentValue as Value, ElicitationPropertySchema as Property, EnumOption,
    MultiSelectItems,
};

use crate::chat::style::fit;
use acp_client::internal::check_field;

/// Maximum number of choices that are shown.
pub(super) const CHOICES: usize = 9;

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) property: Property,
    pub(super) required: bool,
    pub(super) answer: Option<Value>,
}

impl Field {
    pub(super) fn new(name: &str, property: &Property, required: bool) -> Self {
        Self {
            name: name.to_owned(),
            property: property.clone(),
            required,
            answer: None,
        }
    }

    /// Returns the title, and whether an answer is required.
    pub(super) fn heading(&self) -> String {
        let title = match &self.property {
            Property::String(schema) => &schema.title,
            Property::Integer(schema) => &schema.title,
            Property::Number(schema) => &schema.title,
            Property::Boolean(schema) => &schema.title,
            Property::Array(schema) => &schema.title,
            _ => &None,
        };
        let title = title.as_deref().unwrap_or(&self.name);
        let needed = if self.required { ", required" } else { "" };
        format!("{title}{needed}")
    }

    /// Returns the description, the choices and the expected type as lines.
    pub(super) fn help(&self, room: usize) -> Vec<String> {
        let (description, expected) = match &self.property {
            Property::String(schema) => (&schema.description, String::new()),
            Property::Integer(schema) => {
                let range = range(schema.minimum, schema.maximum);
                (&schema.description, format!("a whole number{range}"))
            }
            Property::Number(schema) => {
                let range = range(schema.minimum, schema.maximum);
                (&schema.description, format!("a number{range}"))
            }
            Property::Boolean(schema) => (&schema.description, "y or n".to_owned()),
            Property::Array(schema) => (
                &schema.description,
                "numbers, with commas between them".to_owned(),
            ),
            _ => (&None, String::new()),
        };
        let mut lines: Vec<_> = description.iter().map(|text| fit(text, room)).collect();
        let choices = self.choices();
        for (number, choice) in (1..).zip(&choices).take(CHOICES) {
            let named = match choice.title == choice.value {
                true => choice.title.clone(),
                false => format!("{} ({})", choice.title, choice.value),
            };
            lines.push(fit(&format!("{number}  {named}"), room));
        }
        if choices.len() > CHOICES {
            let more = format!(
                "… {} in all; the value itself can be typed, too",
                choices.len()
            );
            lines.push(fit(&more, room));
        }
        let default = self.default();
        let unset = match (&default, self.required) {
            (Some(default), _) => format!("Enter alone: {}", shown(default)),
            (None, false) => "Enter alone: nothing".to_owned(),
            (None, true) => String::new(),
        };
        let parts: Vec<_> = [expected, unset]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        if !parts.is_empty() {
            lines.push(fit(&parts.join("; "), room));
        }
        lines
    }

    fn choices(&self) -> Vec<Choice> {
        let plain = |value: &String| Choice {
            value: value.clone(),
            title: value.clone(),
        };
        let titled = |option: &EnumOption| Choice {
            value: option.const_.clone(),
            title: option.title.clone(),
        };
        match &self.property {
            Property::String(schema) => {
                let values = schema.enum_.iter().flatten().map(plain);
                values
                    .chain(schema.one_of.iter().flatten().map(titled))
                    .collect()
            }
            Property::Array(schema) => match &schema.items {
                MultiSelectItems::String(items) => items.enum_.iter().map(plain).collect(),
                MultiSelectItems::Titled(items) => items.any_of.iter().map(titled).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn default(&self) -> Option<Value> {
        match &self.property {
            Property::String(schema) => schema.default.clone().map(Value::String),
            Property::Integer(schema) => schema.default.map(Value::Integer),
            Property::Number(schema) => schema.default.map(Value::Number),
            Property::Boolean(schema) => schema.default.map(Value::Boolean),
            Property::Array(schema) => schema.default.clone().map(Value::StringArray),
            _ => None,
        }
    }

    /// Reads an answer. Without text, it is the default, if there is one.
    ///
    /// # Errors
    ///
    /// Fails with the reason when the text is not valid for the field.
    pub(super) fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if typed.is_empty() {
            let default = self.default();
            return match default {
                None if self.required => Err("an answer is required".to_owned()),
                default => Ok(default),
            };
        }
        let choices = self.choices();
        let chosen = |text: &str| {
            let text = text.trim();
            let exact = choices.iter().find(|choice| choice.value == text);
            let number = text
                .parse::<usize>()
                .ok()
                .and_then(|number| choices.get(number.checked_sub(1)?));
            let choice = exact
                .or(number)
                .ok_or_else(|| format!("{text:?} is none of the choices"))?;
            Ok::<_, String>(choice.value.clone())
        };
        let value = match &self.property {
            Property::String(_) if choices.is_empty() => Value::String(typed.to_owned()),
            Property::String(_) => Value::String(chosen(typed)?),
            Property::Integer(_) => {
                let number = typed.parse();
                Value::Integer(number.map_err(|_| "expected a whole number".to_owned())?)
            }
            Property::Number(_) => match typed.parse::<f64>() {
                Ok(number) if number.is_finite() => Value::Number(number),
                _ => return Err("expected a number".to_owned()),
            },
            Property::Boolean(_) => match typed.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Value::Boolean(true),
                "n" | "no" | "false" => Value::Boolean(false),
                _ => return Err("expected y or n".to_owned()),
            },
            Property::Array(_) => {
                let mut values: Vec<String> = Vec::new();
                for value in typed.split(',').map(chosen) {
                    let value = value?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Value::StringArray(values)
            }
            _ => return Err("acp cannot ask for this".to_owned()),
        };
        check_field(&self.property, &value)?;
        Ok(Some(value))
    }

    /// Returns the title and the answer as a line; `None` without an answer.
    pub(super) fn answered(&self, width: usize) -> Option<String> {
        let answer = shown(self.answer.as_ref()?);
        let heading = self.heading();
        let heading = heading.strip_suffix(", required").unwrap_or(&heading);
        Some(format!(
            "  {}",
            fit(&format!("{heading}: {answer}"), width.saturating_sub(4))
        ))
    }
}

struct Choice {
    value: String,
    title: String,
}

fn range<T: std::fmt::Display>(least: Option<T>, most: Option<T>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(", at least {least}"),
        (None, Some(most)) => format!(", at most {most}"),
        (None, None) => String::new(),
    }
}

/// Returns an answer as it is shown, and as it can be typed.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Boolean(yes) => (if *yes { "yes" } else { "no" }).to_owned(),
        Value::StringArray(values) => values.join(", "),
        _ => String::new(),
    }
}
