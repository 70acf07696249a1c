//! Renders what stands in the folder `templates`.
//!
//! Every value is escaped for the format that the template's name ends in, unless a filter of that
//! format has made it.

use std::fmt::Write as _;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Output, State, UndefinedBehavior, Value};
use serde::Serialize;

use super::document::Outcome;
use super::escape;
use super::tally::Tally;
use crate::requirements::Tier;
use crate::wire::shorten;
use crate::{Error, Result};

/// The templates, by name.
static TEMPLATES: [(&str, &str); 16] = [
    ("area.md", include_str!("templates/area.md")),
    ("areas.md", include_str!("templates/areas.md")),
    ("badge.svg", include_str!("templates/badge.svg")),
    ("comparison.html", include_str!("templates/comparison.html")),
    ("comparison.md", include_str!("templates/comparison.md")),
    ("comparison.txt", include_str!("templates/comparison.txt")),
    ("failures.txt", include_str!("templates/failures.txt")),
    ("filters.html", include_str!("templates/filters.html")),
    ("junit.xml", include_str!("templates/junit.xml")),
    ("page.css", include_str!("templates/page.css")),
    ("page.html", include_str!("templates/page.html")),
    ("parts.html", include_str!("templates/parts.html")),
    ("report.html", include_str!("templates/report.html")),
    ("report.md", include_str!("templates/report.md")),
    ("report.txt", include_str!("templates/report.txt")),
    ("sentences.jinja", include_str!("templates/sentences.jinja")),
];

static ENVIRONMENT: LazyLock<Result<Environment<'static>, minijinja::Error>> =
    LazyLock::new(environment);

/// Renders a template.
///
/// # Errors
/// When the template does not fit the values.
pub(super) fn render(name: &'static str, values: impl Serialize) -> Result<String> {
    let rendered = ENVIRONMENT.as_ref().map_err(ToString::to_string);
    let rendered = rendered.and_then(|environment| {
        let template = environment.get_template(name);
        let rendered = template.and_then(|it| it.render(Value::from(Serde(values))));
        rendered.map_err(|error| error.to_string())
    });
    rendered.map_err(|reason| Error::Template { name, reason })
}

fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true);
    environment.set_syntax(syntax.keep_trailing_newline(true).build()?);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_auto_escape_callback(|name| {
        let (_, extension) = name.rsplit_once('.').unwrap_or_default();
        AutoEscape::Custom(extension.to_owned().into())
    });
    environment.set_formatter(escaped);
    environment.add_global("tiers", Value::from(Serde(Tier::ALL)));
    environment.add_global(
        "outcomes",
        Value::from(Serde([
            Outcome::Fail,
            Outcome::Pass,
            Outcome::Inconclusive,
            Outcome::Blocked,
            Outcome::Skip,
            Outcome::Excluded,
        ])),
    );
    environment.add_filter("block", |text: &str, language: &str| {
        Value::from_safe_string(escape::block(text, language))
    });
    environment.add_filter("code", |text: &str| {
        Value::from_safe_string(escape::code(text))
    });
    environment.add_filter("html_line", |text: &str| {
        Value::from_safe_string(escape::html_line(text))
    });
    environment.add_filter("heading", heading);
    environment.add_filter("file_address", file_address);
    environment.add_filter("indented", indented);
    environment.add_filter("prose", |text: &str| {
        Value::from_safe_string(escape::prose(text))
    });
    environment.add_filter("ratio", |tally: Serde<Tally>| tally.0.ratio());
    environment.add_filter("left", |value: Value, width: usize| {
        Value::from_safe_string(format!("{:<width$}", escape::terminal(&value.to_string())))
    });
    environment.add_filter("paragraph", |words: &str, title: &str| {
        Value::from_safe_string(paragraph(title, &escape::terminal(words)))
    });
    environment.add_filter("right", |value: Value, width: usize| {
        Value::from_safe_string(format!("{:>width$}", escape::terminal(&value.to_string())))
    });
    environment.add_filter("shorten", |text: &str, limit: usize| {
        shorten(&escape::terminal(text), limit)
    });
    environment.add_filter("decimals", |number: f64, count: usize| {
        format!("{number:.count$}")
    });
    environment.add_filter("place", |value: Value, list: Vec<Value>| {
        list.iter().position(|known| *known == value)
    });
    environment.add_filter("requirements", requirements);
    environment.add_test("link_target", |address: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/#:".contains(c);
        address.starts_with("https://") && address.chars().all(plain)
    });
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment)
}

/// Writes a value as the format of the template shows it.
fn escaped(out: &mut Output, state: &mut State, value: &Value) -> Result<(), minijinja::Error> {
    let text = match (value.as_str(), state.auto_escape()) {
        (Some(text), AutoEscape::Custom(format)) if !value.is_safe() => match &**format {
            "html" => escape::html(text),
            "md" => escape::markdown(text),
            "xml" | "svg" => escape::xml(text),
            _ => escape::terminal(text),
        },
        _ => value.to_string(),
    };
    Ok(out.write_str(&text)?)
}

/// `1 requirement`, `2 requirements`.
pub(super) fn requirements(count: usize) -> String {
    match count {
        1 => "1 requirement".to_owned(),
        count => format!("{count} requirements"),
    }
}

/// The page and heading of a citation, without the site.
fn heading(cite: &str) -> String {
    match cite.rsplit_once('/') {
        Some((_, place)) if !place.is_empty() => place.to_owned(),
        _ => cite.to_owned(),
    }
}

/// The relative address of a file in a folder.
pub(super) fn file_address(file: &str, folder: &str) -> String {
    let mut address = String::new();
    for byte in folder.bytes().chain([b'/']).chain(file.bytes()) {
        // Nothing else, so that no name becomes a scheme.
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            address.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(address, "%{byte:02X}");
        }
    }
    match folder.is_empty() {
        true => address.trim_start_matches('/').to_owned(),
        false => address,
    }
}

/// With further lines below the first word; none of them is empty, for an empty line ends a failure.
fn indented(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.collect::<Vec<_>>().join("\n        ")
}

/// Words, one a line, in lines of at most a hundred characters.
fn paragraph(title: &str, words: &str) -> String {
    let mut out = String::new();
    let mut line = format!("  {title:<9}");
    let mut words = words.lines().peekable();
    while let Some(word) = words.next() {
        let comma = if words.peek().is_some() { "," } else { "" };
        if line.len() + word.len() > 98 {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(11);
        }
        // Writing to a string does not fail.
        let _ = write!(line, "{word}{comma} ");
    }
    out + line.trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_do_not_fit_a_template_are_an_error_that_names_it() {
        let values = serde_json::json!({"report": {"name": "a"}});
        let error = render("report.md", values).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot render report.md: undefined value"),
            "{error}"
        );
    }
}
