//! The types' `JsonSchema` is the document's.

use std::collections::BTreeMap;

use acp_codegen::export;
use acp_schema::{Checked, Side, Validator};
use acp_sdk::runtime::schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::Suite;
use crate::checks::{TAKES_ANY, assert_none, method, with_method_for_each};

pub(crate) fn of<T: JsonSchema>() -> Value {
    SchemaGenerator::default()
        .into_root_schema_for::<T>()
        .into()
}

pub(crate) fn the_schemas_of_types_accept_what_the_document_does(suite: &Suite) {
    let document = Validator::new(&with_method_for_each(suite)).unwrap();
    let compiled = suite.types.iter().map(|ty| {
        let schema = (ty.schema)();
        let validator = jsonschema::validator_for(&schema);
        (
            ty.name,
            validator.unwrap_or_else(|e| panic!("{}: {e}\n{schema:#}", ty.name)),
        )
    });
    let compiled: BTreeMap<_, _> = compiled.collect();
    assert_none(&suite.failures(|ty, vector| {
        let expected = document.params(Side::AGENT, &method(ty.name), &vector.value);
        let valid = compiled[ty.name].is_valid(&vector.value);
        match valid == matches!(expected, Checked::Valid) {
            true => Ok(()),
            // The document's validator goes by the tag, as a reader does.
            false if valid && TAKES_ANY.contains(&ty.name) => Ok(()),
            false => Err(format!("valid: {valid}, by the document {expected:?}")),
        }
    }));
}

pub(crate) fn exported_again_the_types_add_nothing(suite: &Suite) {
    // The types of JSON-RPC have schemas of their own.
    let json_rpc = |schema: &Value| {
        let text = schema.to_string();
        ["RpcError", "ErrorCode", "RequestId"]
            .iter()
            .any(|name| text.contains(name))
    };
    let schemas = suite.types.iter().map(|ty| (ty.schema)());
    let schemas = schemas.filter(|schema| !json_rpc(schema));
    let overlay = export(&suite.document, schemas).unwrap();
    assert_eq!(overlay, json!({ "$defs": {} }));
}

#[cfg(feature = "v2")]
#[test]
fn types_of_both_versions_stand_in_one_schema() {
    let schema = of::<(acp_sdk::v1::SessionUpdate, acp_sdk::v2::SessionUpdate)>();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let text = json!({ "type": "text", "text": "hi" });
    let old = json!({ "sessionUpdate": "agent_message_chunk", "content": text });
    let mut new = old.clone();
    new["messageId"] = json!("m");
    assert!(validator.is_valid(&json!([old, new])));
    assert!(!validator.is_valid(&json!([new, old])), "{schema:#}");
}
