//! Protocol types inside users' own types.

use acp_sdk::v1::{SessionUpdate, ToolCallUpdate};
use acp_sdk::{Json, Meta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct Flattened {
    seen: u64,
    #[serde(flatten)]
    call: ToolCallUpdate,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct FlattenedUpdate {
    seen: u64,
    #[serde(flatten)]
    update: SessionUpdate,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct FlattenedMeta {
    seen: u64,
    #[serde(flatten)]
    rest: Meta,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
enum Untagged {
    Number(u64),
    Call(ToolCallUpdate),
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "event")]
enum Tagged {
    Call(ToolCallUpdate),
    Data(Json),
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "event", content = "data")]
enum Adjacent {
    Call(ToolCallUpdate),
    Data(Json, Json),
}

const CALL: &str =
    r#""toolCallId":"c","rawInput":{"a":[1,-2,0.5,null,true,"x\n"]},"_meta":{"k":{"n":1}}"#;

/// Reads `text` by serde_json and writes it again.
fn round<T: DeserializeOwned + Serialize>(text: &str) {
    let value: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let tree =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("the text is JSON");
    let written = serde_json::to_string(&value).expect("the value is written");
    assert_eq!(tree(&written), tree(text));
    // A tree is a format of its own.
    let value: T = serde_json::from_value(tree(text)).expect("the tree is read");
    assert_eq!(
        serde_json::to_value(&value).expect("the tree is written"),
        tree(text)
    );
}

#[test]
fn raw_json_survives_in_types_that_serde_buffers() {
    round::<Flattened>(&format!(r#"{{"seen":1,{CALL}}}"#));
    round::<FlattenedUpdate>(&format!(
        r#"{{"seen":1,"sessionUpdate":"tool_call_update",{CALL}}}"#
    ));
    round::<FlattenedUpdate>(r#"{"seen":1,"sessionUpdate":"later","x":{"y":[1]}}"#);
    round::<FlattenedMeta>(r#"{"seen":1,"a":{"b":[null]},"c":"d"}"#);
    round::<Untagged>(&format!("{{{CALL}}}"));
    round::<Tagged>(&format!(r#"{{"event":"Call",{CALL}}}"#));
    round::<Tagged>(r#"{"event":"Data","a":{"b":[null]}}"#);
    round::<Adjacent>(&format!(r#"{{"data":{{{CALL}}},"event":"Call"}}"#));
    round::<Adjacent>(r#"{"data":[{"x":1},[2]],"event":"Data"}"#);
}

#[test]
fn text_is_kept_where_json_is_read_and_written_directly() {
    for text in [
        "1.0",
        "1e2",
        "123456789012345678901234567890",
        r#"{"b":1,"a":2,"b":3}"#,
    ] {
        let value: Json = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
        assert_eq!(
            serde_json::to_vec(&[&value]).unwrap(),
            format!("[{text}]").into_bytes()
        );
        let value: Json = serde_json::from_slice(text.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        acp_sdk::runtime::encode(&value, &mut bytes).unwrap();
        assert_eq!(bytes, text.as_bytes());
        let value: Json = serde_json::from_reader(text.as_bytes()).unwrap();
        assert_eq!(value.get(), text);
    }
}
