//! Forms from types: a JSON Schema becomes the subset of it that a form has.

use acp_sdk::Json;
use acp_sdk::v1::ElicitationSchema;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Elicitation, FormValues, Turn};
use crate::{Error, Result};

/// Members of a field of any type.
const COMMON: [&str; 4] = ["type", "title", "description", "default"];

/// The formats that text in a form can have.
const TEXT_FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

impl Turn {
    /// Asks the user to fill in a form that is made from a type, and returns its value.
    ///
    /// `T` is a struct. Each field is text, a number, a `bool`, an enum without data (one choice)
    /// or a `Vec` of such an enum (several choices); with `Option`, the user may leave it out.
    /// Documentation comments are shown to the user.
    ///
    /// ```
    /// use acp_server::{Elicitation, HandlerResult, Turn};
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Release {
    ///     /// Such as 1.4.0
    ///     version: String,
    ///     notes: Option<String>,
    /// }
    ///
    /// async fn release(turn: &Turn) -> HandlerResult<()> {
    ///     let asked = turn.elicit_as::<Release>("What is to be released?").await?;
    ///     let text = match asked {
    ///         Elicitation::Accepted(release) => format!("Releasing {}.", release.version),
    ///         Elicitation::NotOffered => "Please write the version in your prompt.".to_owned(),
    ///         _ => "Nothing is released.".to_owned(),
    ///     };
    ///     turn.send_text(text).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`elicit`](Self::elicit); [`Error::Form`](crate::Error::Form) if no form can ask for the
    /// type, or if the answer does not fit it.
    pub async fn elicit_as<T: JsonSchema + DeserializeOwned>(
        &self,
        message: impl Into<String>,
    ) -> Result<Elicitation<T>> {
        let asked = self.elicit(message, form_of::<T>()?).await?;
        asked.try_map(|values| value_of(&values))
    }
}

fn value_of<T: DeserializeOwned>(values: &FormValues) -> Result<T> {
    let value = Json::new(values).and_then(|json| json.parse());
    value.map_err(|error| refused::<T>(format!("the user's answer does not fit it: {error}")))
}

fn refused<T>(reason: String) -> Error {
    let expected = std::any::type_name::<T>();
    Error::Form { expected, reason }
}

/// Returns the form of a type.
fn form_of<T: JsonSchema>() -> Result<ElicitationSchema> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let form = form(schema.to_value(), &T::schema_name()).map_err(refused::<T>)?;
    serde_json::from_value(form).map_err(|error| refused::<T>(error.to_string()))
}

/// Returns a schema with what a form can have, or why it has no form.
fn form(mut schema: Value, name: &str) -> Result<Value, String> {
    let Some(fields) = schema.get_mut("properties").map(Value::take) else {
        return Err("it is no struct with named fields".to_owned());
    };
    let Value::Object(fields) = fields else {
        return Err("it is no struct with named fields".to_owned());
    };
    let mut properties = Map::new();
    for (name, field) in fields {
        let Some(property) = property(field) else {
            return Err(format!(
                "the field `{name}` is neither text, a number, a `bool`, an enum without data nor a \
                 `Vec` of such an enum"
            ));
        };
        properties.insert(name, property);
    }
    let mut form = json!({ "type": "object", "properties": properties });
    for member in ["title", "description", "required"] {
        if let Some(value) = schema.get_mut(member).map(Value::take) {
            form[member] = value;
        }
    }
    // The name of the type is no heading.
    if form["title"] == name
        && let Some(form) = form.as_object_mut()
    {
        form.remove("title");
    }
    Ok(form)
}

/// Returns a field; `None` if a form cannot have it.
fn property(field: Value) -> Option<Value> {
    let mut field = without_null(field)?;
    if let Some(options) = options(&field) {
        field.insert("type".to_owned(), "string".into());
        field.remove("enum");
        field.insert("oneOf".to_owned(), options);
    }
    let own: &[&str] = match field.get("type")?.as_str()? {
        "string" => &["minLength", "maxLength", "pattern", "format", "oneOf"],
        "number" | "integer" => &["minimum", "maximum"],
        "boolean" => &[],
        "array" => {
            let items = without_null(field.remove("items")?)?;
            let choices = json!({ "anyOf": options(&items)? });
            field.insert("items".to_owned(), choices);
            &["minItems", "maxItems", "items"]
        }
        _ => return None,
    };
    let is_known = |format: &str| TEXT_FORMATS.contains(&format);
    if !field
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(is_known)
    {
        field.remove("format");
    }
    // A default that is absent is no value to begin with.
    field.retain(|member, value| {
        !value.is_null() && (COMMON.contains(&member.as_str()) || own.contains(&member.as_str()))
    });
    Some(Value::Object(field))
}

/// Returns a schema as it is where its value is present.
fn without_null(schema: Value) -> Option<Map<String, Value>> {
    let Value::Object(mut schema) = schema else {
        return None;
    };
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        let [kind] = &types[..] else { return None };
        let kind = kind.clone();
        schema.insert("type".to_owned(), kind);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(branches)) = schema.remove("anyOf") {
        let is_present = |branch: &Value| branch["type"] != "null";
        let mut branches = branches.into_iter().filter(is_present);
        let (Some(Value::Object(branch)), None) = (branches.next(), branches.next()) else {
            return None;
        };
        // What is said of the field is nearer than what is said of its type.
        for (member, value) in branch {
            schema.entry(member).or_insert(value);
        }
    }
    Some(schema)
}

/// Returns the choices of an enum, with labels; `None` if it is none.
fn options(schema: &Map<String, Value>) -> Option<Value> {
    let option = |value: &Value, of: &Value| {
        let value = value.as_str()?;
        let mut option = json!({ "const": value, "title": of["title"].as_str().unwrap_or(value) });
        if let Some(description) = of["description"].as_str() {
            option["description"] = description.into();
        }
        Some(option)
    };
    let one = |branch: &Value| -> Option<Vec<Value>> {
        match (&branch["const"], &branch["enum"]) {
            (Value::String(_), _) => Some(vec![option(&branch["const"], branch)?]),
            (_, Value::Array(values)) => values
                .iter()
                .map(|value| option(value, &Value::Null))
                .collect(),
            _ => None,
        }
    };
    let found: Vec<Vec<Value>> = match (schema.get("oneOf"), schema.get("enum")) {
        (Some(Value::Array(branches)), _) => branches.iter().map(one).collect::<Option<_>>()?,
        (_, Some(values)) => vec![one(&json!({ "enum": values }))?],
        _ => return None,
    };
    Some(found.concat().into())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// How to publish
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    struct Publish {
        /// Such as 1.4.0
        version: String,
        #[schemars(title = "Copies", range(max = 9))]
        copy_count: u32,
        weight: Option<f64>,
        #[serde(default)]
        dry_run: bool,
        channel: Channel,
        /// Where else
        fallback: Option<Channel>,
        plain: Option<Plain>,
        also: Vec<Channel>,
        #[schemars(email)]
        contact: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Channel {
        /// For everybody
        Stable,
        Beta,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    enum Plain {
        A,
        B,
    }

    #[test]
    fn a_type_becomes_a_form() {
        let form = serde_json::to_value(form_of::<Publish>().unwrap()).unwrap();
        let channels = json!([
            { "const": "beta", "title": "beta" },
            { "const": "stable", "title": "stable", "description": "For everybody" },
        ]);
        let sorted = |mut options: Value| {
            let options = options.as_array_mut().unwrap();
            options.sort_by_key(|option| option["const"].to_string());
            Value::from(options.clone())
        };
        let fields = &form["properties"];
        assert_eq!(form["description"], "How to publish");
        assert_eq!(form.get("title"), None);
        let version = json!({ "type": "string", "description": "Such as 1.4.0" });
        assert_eq!(fields["version"], version);
        let count = json!({ "type": "integer", "title": "Copies", "minimum": 0, "maximum": 9 });
        assert_eq!(fields["copyCount"], count);
        assert_eq!(fields["weight"], json!({ "type": "number" }));
        assert_eq!(
            fields["dryRun"],
            json!({ "type": "boolean", "default": false })
        );
        assert_eq!(sorted(fields["channel"]["oneOf"].clone()), channels);
        assert_eq!(fields["fallback"]["description"], "Where else");
        assert_eq!(sorted(fields["fallback"]["oneOf"].clone()), channels);
        let plain = json!([{ "const": "A", "title": "A" }, { "const": "B", "title": "B" }]);
        assert_eq!(fields["plain"], json!({ "type": "string", "oneOf": plain }));
        assert_eq!(fields["also"]["type"], "array");
        assert_eq!(sorted(fields["also"]["items"]["anyOf"].clone()), channels);
        assert_eq!(
            fields["contact"],
            json!({ "type": "string", "format": "email" })
        );
        let required = ["version", "copyCount", "channel", "also"];
        assert_eq!(form["required"], json!(required));
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "a form needs its type")]
    struct Nested {
        inner: Vec<String>,
    }

    #[test]
    fn what_no_form_has_is_named() {
        let error = form_of::<Nested>().unwrap_err().to_string();
        assert!(
            error.contains("Nested") && error.contains("`inner`"),
            "{error}"
        );
        let error = form_of::<String>().unwrap_err().to_string();
        assert!(error.contains("no struct"), "{error}");
    }

    #[test]
    fn an_answer_becomes_a_value_or_says_what_does_not_fit() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Answer {
            channel: Channel,
        }
        let values = |text: &str| serde_json::from_str::<FormValues>(text).unwrap();
        let answer: Answer = value_of(&values(r#"{"channel":"beta","more":1}"#)).unwrap();
        assert_eq!(
            answer,
            Answer {
                channel: Channel::Beta
            }
        );
        let error = value_of::<Answer>(&values("{}")).unwrap_err().to_string();
        assert!(
            error.contains("Answer") && error.contains("`channel`"),
            "{error}"
        );
    }
}
