//! Tests of the `description` texts, which become the rustdoc of the generated types.
//!
//! A description that is missing, only repeats the name, or copies the official text is
//! a failure.

mod official;

use std::collections::{BTreeMap, BTreeSet};

use acp_schema::{DIALECTS, Document};
use serde_json::Value;

/// Start of the links to the specification and its proposals.
const SPECIFICATION: &str = "https://agentclientprotocol.com/";

/// Maximum number of words in a first sentence, which rustdoc shows in lists.
const LONGEST: usize = 15;

/// Words that start a paraphrase where a term would do.
const QUESTIONS: [&str; 6] = ["How", "What", "Where", "Which", "Who", "Whose"];

/// Minimum share of common words at which a text counts as copied.
const SIMILAR: f64 = 0.7;

/// Paragraphs at the start of every official description of a proposal.
const UNSTABLE: [&str; 2] = [
    "**UNSTABLE**",
    "This capability is not part of the spec yet, and may be removed or changed at any point.",
];

/// A definition, property or variant, which needs a description.
struct Place {
    /// JSON Pointer below `$defs`.
    at: String,
    /// Names of the definition, the property and the variant.
    names: String,
    text: Option<String>,
}

#[test]
fn every_definition_property_and_variant_is_described() {
    let missing: Vec<String> = all_places()
        .into_iter()
        .filter(|place| place.text.is_none())
        .map(|place| place.at)
        .collect();
    assert!(
        missing.is_empty(),
        "{} missing: {missing:#?}",
        missing.len()
    );
}

#[test]
fn descriptions_are_sentences() {
    let broken: Vec<String> = texts(all_places())
        .filter(|(_, text)| {
            let first = text.lines().next().unwrap_or_default();
            !first.ends_with('.') || !text.ends_with('.') || text.trim() != text
        })
        .map(|(place, text)| format!("{}: {text}", place.at))
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn first_sentences_are_short_and_name_their_subject() {
    let broken: Vec<String> = texts(all_places())
        .filter(|(_, text)| {
            let words: Vec<&str> = first_sentence(text).split_whitespace().collect();
            words.len() > LONGEST || words.first().is_some_and(|word| QUESTIONS.contains(word))
        })
        .map(|(place, text)| format!("{}: {text}", place.at))
        .collect();
    assert!(broken.is_empty(), "{} broken: {broken:#?}", broken.len());
}

#[test]
fn definitions_cite_the_specification_and_name_their_method() {
    let mut broken = Vec::new();
    let documents = official::ours();
    let definitions = documents.iter().flat_map(Document::defs);
    for (name, schema) in definitions.filter(|(_, schema)| !official::is_envelope(schema)) {
        let text = description(schema).unwrap_or_default();
        if !text.contains(SPECIFICATION) {
            broken.push(format!("{name} does not cite {SPECIFICATION}"));
        }
        if let Some(method) = schema.get("x-method").and_then(Value::as_str) {
            let first = text.lines().next().unwrap_or_default();
            if !first.contains(&format!("`{method}`")) {
                broken.push(format!("{name} does not name `{method}` at once"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn descriptions_say_more_than_the_name() {
    let trivial: Vec<String> = texts(all_places())
        .filter(|(place, text)| is_trivial(&place.names, text))
        .map(|(place, text)| format!("{}: {text}", place.at))
        .collect();
    assert!(trivial.is_empty(), "{trivial:#?}");
}

#[test]
fn repeating_the_name_is_trivial() {
    for (names, text, trivial) in [
        ("NewSessionRequest sessionId", "The session id.", true),
        ("NewSessionRequest", "A request for a new session.", true),
        ("ToolKind switch_mode", "Switch mode.", true),
        ("Cost amount", "How much.", false),
    ] {
        assert_eq!(is_trivial(names, text), trivial, "{names}: {text}");
    }
}

#[test]
fn descriptions_are_our_own() {
    let mut copied = Vec::new();
    for version in official::versions() {
        let definitions = version.theirs.iter();
        let theirs = places(definitions.map(|(name, schema)| (name.as_str(), schema)));
        let known: BTreeMap<String, String> = texts(theirs)
            .map(|(place, text)| (place.at.clone(), text))
            .collect();
        assert!(known.len() > 700, "only {} official texts", known.len());
        let official: BTreeSet<Vec<String>> = known
            .values()
            .flat_map(|text| sentences(text))
            .filter(|sentence| sentence.len() > 3)
            .collect();
        for (place, text) in texts(places(version.ours.defs())) {
            let at = format!("{}{}", version.name, place.at);
            let ours = sentences(&text);
            if let Some(sentence) = ours.iter().find(|one| official.contains(*one)) {
                copied.push(format!("{at}: has the sentence {sentence:?}"));
            } else if let Some(theirs) = known.get(&place.at)
                && likeness(&text, theirs) >= SIMILAR
            {
                copied.push(format!("{at}: {text} / official: {theirs}"));
            }
        }
    }
    assert!(copied.is_empty(), "{} copied: {copied:#?}", copied.len());
}

#[test]
fn likeness_ignores_case_and_white_space() {
    assert!(likeness("The id of  the session.", "the ID of the\nsession") > 0.99);
    assert!(likeness("The id of the session.", "The id of a session.") >= SIMILAR);
    assert!(likeness("The session to open.", "The ID of the session to load.") < SIMILAR);
}

/// Returns the places of all bundled documents.
fn all_places() -> Vec<Place> {
    let dialects = DIALECTS.map(|(name, text)| Document::parse(name, text).expect("valid"));
    let documents = official::ours();
    documents
        .iter()
        .chain(&dialects)
        .flat_map(|document| places(document.defs()))
        .collect()
}

/// Returns the places of `definitions`.
fn places<'a>(definitions: impl Iterator<Item = (&'a str, &'a Value)>) -> Vec<Place> {
    let mut found = Vec::new();
    for (name, schema) in definitions {
        let deep = !official::is_envelope(schema);
        found.push(Place::new(format!("/{name}"), name.to_owned(), schema));
        walk(&format!("/{name}"), name, schema, deep, &mut found);
    }
    found
}

/// Collects the places inside `schema`, with `deep` also those inside its properties.
fn walk(at: &str, names: &str, schema: &Value, deep: bool, found: &mut Vec<Place>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let at = format!("{at}/properties/{name}");
        let names = format!("{names} {name}");
        // The description of a variant covers its tag.
        if property.get("const").is_none() {
            found.push(Place::new(at.clone(), names.clone(), property));
        }
        if deep {
            walk(&at, &names, property, deep, found);
        }
    }
    for keyword in ["oneOf", "anyOf"] {
        let branches = schema.get(keyword).and_then(Value::as_array);
        for (index, branch) in branches.into_iter().flatten().enumerate() {
            let at = format!("{at}/{keyword}/{index}");
            // Bare references and null are not variants.
            if let Some(name) = variant(branch) {
                let names = format!("{names} {name}");
                found.push(Place::new(at.clone(), names.clone(), branch));
                walk(&at, &names, branch, deep, found);
            }
        }
    }
    if let Some(items) = schema.get("items") {
        walk(&format!("{at}/items"), names, items, deep, found);
    }
}

/// Returns the name of a branch of a union.
fn variant(branch: &Value) -> Option<String> {
    let tag = || {
        let properties = branch.get("properties")?.as_object()?;
        properties
            .values()
            .find_map(|property| property.get("const"))
    };
    let name = branch.get("const").or_else(tag).or(branch.get("title"))?;
    Some(
        name.as_str()
            .map_or_else(|| name.to_string(), str::to_owned),
    )
}

impl Place {
    fn new(at: String, names: String, schema: &Value) -> Self {
        let text = description(schema).filter(|text| !text.trim().is_empty());
        Self { at, names, text }
    }
}

fn description(schema: &Value) -> Option<String> {
    Some(schema.get("description")?.as_str()?.to_owned())
}

fn texts(places: Vec<Place>) -> impl Iterator<Item = (Place, String)> {
    places.into_iter().filter_map(|mut place| {
        let text = place.text.take()?;
        Some((place, text))
    })
}

/// Returns the text up to the first full stop that ends a sentence.
fn first_sentence(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.split_once(". ").map_or(line, |(first, _)| first)
}

/// Returns whether every word of `text` occurs in `names`.
fn is_trivial(names: &str, text: &str) -> bool {
    const EMPTY: [&str; 10] = [
        "a", "an", "and", "for", "is", "it", "of", "the", "this", "to",
    ];
    let mut spaced = String::new();
    for c in names.chars() {
        if c.is_uppercase() {
            spaced.push(' ');
        }
        spaced.push(c);
    }
    let known = words(&spaced);
    words(text)
        .iter()
        .all(|word| EMPTY.contains(&word.as_str()) || known.contains(word))
}

/// Splits a text into sentences of words, without paragraphs that contain links.
fn sentences(text: &str) -> Vec<Vec<String>> {
    text.split("\n\n")
        .filter(|paragraph| !paragraph.contains("](http") && !UNSTABLE.contains(paragraph))
        .flat_map(|paragraph| paragraph.split(['.', ';', ':']))
        .map(words)
        .filter(|words| !words.is_empty())
        .collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Returns the share of words that two texts have in common, from 0 to 1.
fn likeness(a: &str, b: &str) -> f64 {
    let (a, b): (Vec<_>, Vec<_>) = (
        sentences(a).into_iter().flatten().collect(),
        sentences(b).into_iter().flatten().collect(),
    );
    let mut rest = b.clone();
    let common = a.iter().filter(|word| {
        let found = rest.iter().position(|other| &other == word);
        found.map(|index| rest.swap_remove(index)).is_some()
    });
    let total = u32::try_from(a.len() + b.len()).unwrap_or(u32::MAX).max(1);
    2.0 * f64::from(u32::try_from(common.count()).unwrap_or(u32::MAX)) / f64::from(total)
}
