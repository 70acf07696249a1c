//! Protocol types inside users' own types, and in formats other than JSON text.

use std::fmt::Debug;

use acp_sdk::v1::{
    ContentBlock, ContentChunk, RequestId, SessionNotification, SessionUpdate, ToolCallUpdate,
};
use acp_sdk::{Json, Meta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

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

/// Writes `value` as CBOR and as MessagePack, with names and without, and reads it again.
fn formats<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let mut cbor = Vec::new();
    ciborium::into_writer(value, &mut cbor).expect("the format carries the value");
    let read: T = ciborium::from_reader(&*cbor).expect("the format carries the value");
    assert_eq!(&read, value);
    let named = rmp_serde::to_vec_named(value).expect("the format carries the value");
    assert_eq!(
        &rmp_serde::from_slice::<T>(&named).expect("the format carries the value"),
        value
    );
    let compact = rmp_serde::to_vec(value).expect("the format carries the value");
    assert_eq!(
        &rmp_serde::from_slice::<T>(&compact).expect("the format carries the value"),
        value
    );
}

#[test]
fn other_formats_carry_every_type() {
    let call: ToolCallUpdate = serde_json::from_str(&format!("{{{CALL}}}")).unwrap();
    formats(&call);
    let chunk = ContentChunk::new("text").with_meta(Meta::new().with("a", &json!({"b": 1.5})));
    for update in [
        SessionUpdate::AgentMessageChunk(chunk),
        SessionUpdate::ToolCallUpdate(call),
        serde_json::from_str(r#"{"x":[{"y":1}],"sessionUpdate":"later"}"#).unwrap(),
    ] {
        formats(&SessionNotification::new("session", update));
    }
    for id in [RequestId::Null, RequestId::Number(-7), RequestId::from("a")] {
        formats(&id);
    }
    formats(&ContentBlock::from("text"));
    formats(&Json::from(
        json!({"a": [1, -2, 0.5, null, true, "x\n", {}, []]}),
    ));
    formats(&Json::from(json!(null)));
    formats(&Meta::new());
}

#[test]
fn data_that_json_lacks_takes_the_form_that_serde_json_gives_it() {
    #[derive(Serialize)]
    struct Odd {
        bytes: Bytes,
        not_a_number: f64,
        by_number: std::collections::BTreeMap<i8, char>,
        large: u64,
    }
    struct Bytes;
    impl Serialize for Bytes {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&[1, 2])
        }
    }
    let odd = Odd {
        bytes: Bytes,
        not_a_number: f64::NAN,
        by_number: [(-1, 'x')].into(),
        large: u64::MAX,
    };
    let mut cbor = Vec::new();
    ciborium::into_writer(&odd, &mut cbor).unwrap();
    let read: Json = ciborium::from_reader(&*cbor).unwrap();
    assert_eq!(read.get(), serde_json::to_string(&odd).unwrap());
    assert!(ciborium::from_reader::<Meta, _>(&[0x80][..]).is_err());
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
