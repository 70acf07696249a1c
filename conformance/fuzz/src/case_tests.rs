//! What is drawn, and what it demands.

use std::collections::BTreeMap;

use super::*;

fn drawn(seed: u64, count: usize) -> Vec<Case> {
    let schema = Schema::v1().unwrap();
    let setting = Setting {
        folder: "/w".into(),
        session: "s".into(),
        prompt: "hello".into(),
        mode: Some("ask".into()),
        lists: true,
    };
    let mut cases = Cases {
        document: Document::v1().unwrap(),
        random: Random::new(seed),
        next: 0,
    };
    (0..count).map(|_| cases.draw(&schema, &setting)).collect()
}

#[test]
fn a_seed_decides_everything() {
    assert_eq!(drawn(1, 30), drawn(1, 30));
    assert_ne!(drawn(1, 30), drawn(2, 30));
}

#[test]
fn all_demands_and_methods_come_up_and_nothing_harmful() {
    let cases = drawn(3, 600);
    let mut demands = BTreeMap::new();
    for case in &cases {
        *demands.entry(format!("{:?}", case.demand)).or_insert(0) += 1;
        if case.demand == Demand::Accept {
            let params = &case.message["params"];
            for (name, value) in [
                ("cwd", json!("/w")),
                ("mcpServers", json!([])),
                ("sessionId", json!("s")),
            ] {
                assert!(params[name].is_null() || params[name] == value, "{params}");
            }
        }
    }
    for demand in ["Accept", "RefuseParams", "Survive"] {
        assert!(demands[demand] > cases.len() / 10, "{demands:?}");
    }
    for method in [
        "session/new",
        "session/prompt",
        "session/cancel",
        "session/list",
        "session/set_mode",
    ] {
        assert!(
            cases.iter().any(|case| case.message["method"] == method),
            "{method}"
        );
    }
}

#[test]
fn a_fault_in_the_params_must_be_refused_and_one_in_the_envelope_survived() {
    let schema = Schema::v1().unwrap();
    let of = |message: Value, whole| demand(&schema, &message, whole);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}});
    assert_eq!(of(list.clone(), true), Demand::Accept);
    assert_eq!(of(list.clone(), false), Demand::Survive);
    let mut wrong = list.clone();
    wrong["params"] = json!({"cursor": 1});
    assert_eq!(of(wrong, false), Demand::RefuseParams);
    let mut nameless = list;
    nameless["id"] = json!({});
    assert_eq!(of(nameless, false), Demand::Survive);
}

#[test]
fn every_smaller_message_lacks_one_thing() {
    let message = json!({"params": {"a": [1, {"b/c": 2}]}});
    let smaller: Vec<String> = smaller(&message)
        .iter()
        .map(|message| message["params"].to_string())
        .collect();
    assert_eq!(
        smaller,
        [
            "null",
            "{}",
            "{\"a\":[{\"b/c\":2}]}",
            "{\"a\":[1]}",
            "{\"a\":[1,{}]}"
        ]
    );
}
