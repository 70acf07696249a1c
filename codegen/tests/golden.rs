//! The Rust of the bundled document, kept so that a schema change shows its diff.

mod support;

use std::collections::BTreeMap;

use acp_codegen::{Builder, Options, generate, generate_bundled_conversions};
use acp_schema::Document;

/// The texts that `acp-sdk` is built from, without and with the proposals.
#[test]
fn the_bundled_documents_give_the_kept_texts() {
    for (folder, unstable) in [("", false), ("unstable/", true)] {
        let version = |builder: Builder| match unstable {
            true => builder.unstable().generate().unwrap(),
            false => builder.generate().unwrap(),
        };
        for (file, text) in [
            ("v1.rs", version(Builder::v1())),
            ("v2.rs", version(Builder::v2())),
            (
                "convert.rs",
                generate_bundled_conversions(unstable).unwrap(),
            ),
        ] {
            let kept = support::tests(&format!("../../sdk/generated/{folder}{file}"));
            support::compare(&kept, &text, "golden").unwrap_or_else(|diff| panic!("{diff}"));
        }
    }
}

/// The types are those of `acp_sdk::v1`, and the text is compiled as it is kept.
#[test]
fn the_extension_methods_give_the_kept_text() {
    let overlay = support::tests("../../schema/extensions.json");
    let builder = Builder::v1().overlay(overlay).extends("::acp_sdk::v1");
    let kept = support::tests("../../sdk/generated/extensions.rs");
    support::compare(&kept, &builder.generate().unwrap(), "golden")
        .unwrap_or_else(|diff| panic!("{diff}"));
}

/// The version that the SDK's tests add to those of its own.
#[test]
fn the_toy_version_gives_the_kept_text() {
    let document = support::tests("../../sdk/tests/versions/v3/schema.json");
    let text = Builder::from_file(document).generate().unwrap();
    let kept = support::tests("../../sdk/tests/versions/v3/generated.rs");
    support::compare(&kept, &text, "golden").unwrap_or_else(|diff| panic!("{diff}"));
}

#[test]
fn the_proposals_are_added_and_change_nothing_else() {
    let stable = Builder::v1().generate().unwrap();
    let text = Builder::v1().unstable().generate().unwrap();
    for expected in [
        "fn fork_session(",
        "fn message_mcp(",
        "fn message_mcp_notification(",
        "pub struct ProxySuccessorNotification",
        "pub title: Patch<String>,",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
    let missing: Vec<&str> = stable
        .lines()
        .filter(|line| line.starts_with("pub ") && !text.contains(line))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn version_2_is_generated_with_and_without_proposals() {
    let text = Builder::v2().generate().unwrap();
    for expected in [
        "pub const V2: Self = Self(2);",
        "fn session_update(",
        "pub stop_reason: Option<StopReason>,",
        "pub status: Patch<ToolCallStatus>,",
        "(https://agentclientprotocol.com/protocol/v2/schema#session-prompt)",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
    assert!(!text.contains("/protocol/v1/"));
    assert!(!text.contains("fn fork_session("));
    let text = Builder::v2().unstable().generate().unwrap();
    assert!(text.contains("fn fork_session("));
}

#[test]
fn constructors_agree_on_the_order_of_their_arguments() {
    for builder in [Builder::v1(), Builder::v2()] {
        let text = builder.unstable().generate().unwrap();
        let mut seen: BTreeMap<(String, String), String> = BTreeMap::new();
        let mut pairs = 0;
        for (before, rest) in text
            .match_indices("pub fn new(")
            .map(|(at, _)| text.split_at(at))
        {
            let owner = before.rsplit_once("\nimpl ").unwrap().1;
            let owner = owner.split_once(' ').unwrap().0.to_owned();
            let arguments = &rest["pub fn new(".len()..rest.find(") -> Self").unwrap()];
            // An id comes first, whatever it is called.
            let names: Vec<String> = arguments
                .split(',')
                .filter_map(|argument| argument.split_once(": "))
                .map(|(name, ty)| match ty.contains("Id>") {
                    true => format!("{} (id)", name.trim()),
                    false => name.trim().to_owned(),
                })
                .collect();
            for (index, first) in names.iter().enumerate() {
                for second in &names[index + 1..] {
                    let pair = (second.to_string(), first.to_string());
                    let other = seen.get(&pair);
                    assert_eq!(other, None, "{owner}::new has {first} before {second}");
                    seen.insert((first.to_string(), second.to_string()), owner.clone());
                    pairs += 1;
                }
            }
        }
        assert!(pairs > 50, "{pairs} pairs of arguments");
    }
}

#[test]
fn generation_does_not_depend_on_the_order_of_runs() {
    let document = Document::v1().unwrap();
    let first = generate(&document, &Options::v1()).unwrap();
    let second = generate(&document, &Options::v1()).unwrap();
    assert_eq!(first.text, second.text);
    assert_eq!(first.methods, 25);
}

#[test]
fn a_diff_shows_the_place_and_no_more() {
    let old: Vec<String> = (0..100).map(|line| line.to_string()).collect();
    let mut new = old.clone();
    new[50] = "fifty".to_owned();
    assert_eq!(
        support::diff(&old.join("\n"), &new.join("\n")),
        "@@ line 51 @@\n  47\n  48\n  49\n- 50\n+ fifty\n  51\n  52\n  53\n"
    );
}

#[test]
fn an_overlay_adds_methods_and_union_members() {
    let directory = tempfile::tempdir().unwrap();
    let overlay = directory.path().join("overlay.json");
    let text = r##"{
        "$defs": {
            "PingRequest": { "type": "object", "x-side": "agent", "x-method": "_example/ping" },
            "PingResponse": { "type": "object", "x-side": "agent", "x-method": "_example/ping" },
            "Video": { "type": "object", "properties": { "url": { "type": "string" } }, "required": ["url"] }
        },
        "x-patch": [{
            "op": "add",
            "path": "/$defs/ContentBlock/oneOf/-",
            "value": {
                "type": "object",
                "properties": { "type": { "type": "string", "const": "video" } },
                "required": ["type"],
                "allOf": [{ "$ref": "#/$defs/Video" }]
            }
        }]
    }"##;
    std::fs::write(&overlay, text).unwrap();
    let text = Builder::v1().overlay(&overlay).generate().unwrap();
    for expected in [
        "fn ping(\n        &self,\n        ctx: &AgentContext,\n        req: PingRequest,",
        "pub async fn ping(&self, req: PingRequest) -> runtime::Result<PingResponse>",
        "\"video\" => variant.payload().map(Self::Video),",
        "impl From<Video> for ContentBlock",
    ] {
        assert!(text.contains(expected), "{expected}");
    }

    std::fs::write(&overlay, r#"{"$defs": {"Plan": {"type": "string"}}}"#).unwrap();
    let error = Builder::v1()
        .overlay(&overlay)
        .generate()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("overlay.json") && error.contains("/$defs/Plan"),
        "{error}"
    );
    let absent = Builder::v1()
        .overlay("absent.json")
        .generate()
        .unwrap_err()
        .to_string();
    assert!(absent.starts_with("absent.json: "), "{absent}");
}
