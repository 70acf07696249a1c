//! Every vector of every definition of either version, there and back.
//!
//! The value that comes back is equal to the original except at the places that the conversion
//! there has reported.

use std::collections::BTreeMap;

use acp_codegen::vectors::{Expect, Vectors, random, vectors};
use acp_schema::{Document, V1_UNSTABLE, V2_UNSTABLE};
use serde_json::Value;

use super::generated::PAIRS;
use super::{Convert, Losses};
use crate::json::from_str;
use crate::runtime::Payload;
use crate::{v1, v2};

/// The number of random messages of each definition.
const SEEDS: u32 = 60;

/// A definition of version 1 and its equal in version 2.
pub(super) struct Pair {
    v1: &'static str,
    v2: &'static str,
    from_v1: fn(&Value) -> Result<(), String>,
    from_v2: fn(&Value) -> Result<(), String>,
}

impl Pair {
    pub(super) const fn new<A, B>(v1: &'static str, v2: &'static str) -> Self
    where
        A: Convert<B> + Payload + Clone,
        B: Convert<A> + Payload + Clone,
    {
        let (from_v1, from_v2) = (there_and_back::<A, B>, there_and_back::<B, A>);
        Self {
            v1,
            v2,
            from_v1,
            from_v2,
        }
    }
}

fn there_and_back<A, B>(value: &Value) -> Result<(), String>
where
    A: Convert<B> + Payload + Clone,
    B: Convert<A> + Payload + Clone,
{
    let original: A = from_str(&value.to_string()).map_err(|error| error.to_string())?;
    let mut losses = Losses::default();
    let Some(there) = original.clone().convert(&mut losses) else {
        let is_reported = !losses.is_empty();
        return is_reported
            .then_some(())
            .ok_or("no form, and no reason".into());
    };
    let written = serde_json::to_string(&there).map_err(|error| error.to_string())?;
    from_str::<B>(&written).map_err(|error| format!("not read again: {error}"))?;
    let mut later = Losses::default();
    let tree = |value: &A| serde_json::to_value(value).map_err(|error| error.to_string());
    let original = tree(&original)?;
    let places: Vec<&str> = losses.list().iter().map(super::Loss::pointer).collect();
    let Some(back) = there.convert(&mut later) else {
        let is_reported = !losses.is_empty();
        return is_reported
            .then_some(())
            .ok_or(format!("{written} has no way back: {later:?}"));
    };
    let mut different = Vec::new();
    differences("", Some(&original), Some(&tree(&back)?), &mut different);
    let is_reported = |place: &String| {
        let within = |lost: &&str| place.starts_with(*lost) || lost.starts_with(place.as_str());
        places.iter().any(within)
    };
    match different.iter().find(|place| !is_reported(place)) {
        Some(place) => Err(format!(
            "{place} differs; there: {written}; reported: {places:?}"
        )),
        None => Ok(()),
    }
}

/// Collects the pointers of the places where two values differ.
fn differences(at: &str, a: Option<&Value>, b: Option<&Value>, found: &mut Vec<String>) {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let names = a
                .keys()
                .chain(b.keys().filter(|name| !a.contains_key(*name)));
            for name in names {
                let token = name.replace('~', "~0").replace('/', "~1");
                differences(&format!("{at}/{token}"), a.get(name), b.get(name), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{at}/{index}"), Some(a), Some(b), found);
            }
        }
        (a, b) if a == b => {}
        _ => found.push(at.to_owned()),
    }
}

fn documents() -> [Document; 2] {
    let (v1, v2) = (Document::v1().unwrap(), Document::v2().unwrap());
    match cfg!(feature = "unstable") {
        true => [
            v1.overlay("v1.unstable.json", V1_UNSTABLE).unwrap(),
            v2.overlay("v2.unstable.json", V2_UNSTABLE).unwrap(),
        ],
        false => [v1, v2],
    }
}

/// Which values of a definition are tried.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    Valid,
    /// Also what readers accept: the document of version 1 does not permit unknown variants and
    /// values, which its types keep.
    Read,
}

/// Returns the values of a definition: its vectors, and random ones.
fn values(document: &Document, all: &[Vectors], name: &str, which: Values) -> Vec<Value> {
    let set = all.iter().find(|set| set.definition == name).unwrap();
    let faults = if which == Values::Read { 3 } else { 0 };
    let random = (0..SEEDS).map(|seed| random(document, name, seed, faults));
    let vectors = set.vectors.iter().cloned().chain(random);
    let is_tried = |expect: &Expect| match expect {
        Expect::Valid { .. } => true,
        Expect::Lenient { .. } => which == Values::Read,
        _ => false,
    };
    vectors
        .filter(|vector| is_tried(&vector.expect))
        .map(|vector| vector.value)
        .collect()
}

type Check = fn(&Value) -> Result<(), String>;

/// Checks all values of the definitions of one document.
fn check(document: &Document, which: Values, side: impl Fn(&Pair) -> (&'static str, Check)) {
    let all = vectors(document).unwrap();
    let (mut failures, mut checked) = (BTreeMap::new(), 0);
    for pair in PAIRS {
        let (name, check) = side(pair);
        for value in values(document, &all, name, which) {
            checked += 1;
            if let Err(message) = check(&value) {
                let place = message.split(' ').next().unwrap_or_default().to_owned();
                let message = format!("{value}: {message}");
                failures.entry((pair.v1, place)).or_insert(message);
            }
        }
    }
    assert!(checked > 10_000, "{checked}");
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn version_1_survives_version_2() {
    let [v1, _] = documents();
    check(&v1, Values::Read, |pair| (pair.v1, pair.from_v1));
}

#[test]
fn version_2_survives_version_1() {
    let [_, v2] = documents();
    check(&v2, Values::Valid, |pair| (pair.v2, pair.from_v2));
}

#[test]
fn losses_name_their_place_in_the_source() {
    let links = (0..70).map(|_| {
        v2::ResourceLink::new("a", "file:///a")
            .with_icons(vec![v2::Icon::new("https://example.com")])
            .into()
    });
    let request = v2::PromptRequest::new("s", links.collect());
    let mut losses = Losses::default();
    let request: Option<v1::PromptRequest> = request.convert(&mut losses);
    assert_eq!(request.map(|request| request.prompt.len()), Some(70));
    assert_eq!(
        losses.list()[3].to_string(),
        "/prompt/3/icons: version 1 has no icons"
    );
    assert_eq!((losses.list().len(), losses.unlisted()), (64, 6));

    let text = r#"{"sessionId": "s", "mode": "form", "message": "m", "requestedSchema":
        {"type": "object", "properties": {"a/b": {"type": "string", "enum": []}}}}"#;
    let request: v1::CreateElicitationRequest = from_str(text).unwrap();
    let mut losses = Losses::default();
    let request: Option<v2::CreateElicitationRequest> = request.convert(&mut losses);
    assert_eq!(request, None);
    assert_eq!(
        losses.list()[0].pointer(),
        "/requestedSchema/properties/a~1b/enum"
    );
}

#[test]
fn numbers_and_unknown_members_keep_their_text() {
    for text in [
        r#"{"type":"_x","n":1.50e2,"more":{"_meta":null}}"#,
        r#"{"type":"text","text":"a","_meta":{"n":1.50e2}}"#,
    ] {
        let block: v2::ContentBlock = from_str(text).unwrap();
        let mut losses = Losses::default();
        let there: v1::ContentBlock = block.convert(&mut losses).unwrap();
        let back: v2::ContentBlock = there.convert(&mut losses).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert!(losses.is_empty(), "{losses:?}");
    }
}
