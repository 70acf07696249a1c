//! Each kind of finding, and that what the protocol leaves open is none.

use serde_json::{Value, json};

use super::*;

struct Wire {
    tracker: Tracker,
    place: u64,
}

impl Wire {
    fn new() -> Self {
        Self {
            tracker: Tracker::new(Schema::v1().unwrap()),
            place: 0,
        }
    }

    fn agent(&mut self, mut message: Value) -> Observed {
        message["jsonrpc"] = "2.0".into();
        self.place += 1;
        self.tracker.observe(Party::Agent, self.place, &message)
    }

    fn client(&mut self, mut message: Value) -> Observed {
        message["jsonrpc"] = "2.0".into();
        self.place += 1;
        self.tracker.observe(Party::Client, self.place, &message)
    }

    fn prompt(&mut self, id: u64) -> Observed {
        let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}]});
        self.client(json!({"id": id, "method": "session/prompt", "params": params}))
    }

    fn text(&mut self) -> Observed {
        let content = json!({"type": "text", "text": "hi"});
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        let params = json!({"sessionId": "s", "update": update});
        self.agent(json!({"method": "session/update", "params": params}))
    }
}

fn rules(observed: &Observed) -> Vec<(Option<Excuse>, FindingKind)> {
    let findings = observed.findings.iter();
    findings
        .map(|finding| (finding.excuse, finding.rule))
        .collect()
}

#[test]
fn both_sides_count_from_zero_and_answers_find_their_request() {
    let mut wire = Wire::new();
    wire.prompt(0);
    let params = json!({"sessionId": "s", "path": "/a"});
    wire.agent(json!({"id": 0, "method": "fs/read_text_file", "params": params}));
    let read = wire.client(json!({"id": 0, "result": {"content": ""}}));
    assert_eq!(read.method.as_deref(), Some("fs/read_text_file"));
    assert_eq!(read.judged, Judged::Valid);
    let stop = wire.agent(json!({"id": 0, "result": {"stopReason": "end_turn"}}));
    assert_eq!(stop.method.as_deref(), Some("session/prompt"));
    assert_eq!((stop.judged, stop.findings), (Judged::Valid, vec![]));
}

#[test]
fn a_wrong_field_is_named_from_the_message_down() {
    let mut wire = Wire::new();
    wire.prompt(1);
    let stop = wire.agent(json!({"id": 1, "result": {"stopReason": "error"}}));
    assert_eq!(stop.judged, Judged::Invalid);
    let finding = &stop.findings[0];
    assert_eq!(finding.pointer, "/result/stopReason");
    assert_eq!(finding.method.as_deref(), Some("session/prompt"));
    assert_eq!((finding.excuse, finding.rule), (None, FindingKind::Schema));
    assert_eq!((finding.place, finding.by), (2, Some(Party::Agent)));
}

#[test]
fn a_client_request_is_a_probe_when_refused_and_a_mistake_when_accepted() {
    let broken = json!({"id": 1, "method": "session/new", "params": {"cwd": 7, "mcpServers": []}});
    let mut wire = Wire::new();
    assert_eq!(wire.client(broken.clone()).findings, []);
    let refused = wire.agent(json!({"id": 1, "error": {"code": -32602, "message": "no"}}));
    assert_eq!(
        rules(&refused),
        [(Some(Excuse::Refused), FindingKind::Schema)]
    );
    assert_eq!(refused.findings[0].place, 1);
    assert_eq!(refused.findings[0].by, Some(Party::Client));

    wire.client(broken.clone());
    let accepted = wire.agent(json!({"id": 1, "result": {"sessionId": "s"}}));
    assert_eq!(rules(&accepted), [(None, FindingKind::Schema)]);
    assert_eq!(accepted.findings[0].pointer, "/params/cwd");

    wire.client(broken);
    let unanswered = wire.tracker.finish();
    assert_eq!(unanswered[0].excuse, None);
}

#[test]
fn an_error_without_id_is_a_warning_by_its_reason() {
    let mut wire = Wire::new();
    let unreadable = wire.agent(json!({"error": {"code": -32700, "message": "parse error"}}));
    assert_eq!(rules(&unreadable), [(None, FindingKind::MissingId)]);
    let notification = json!({"code": -32601, "message": "method not found"});
    // Whatever it answers, the member is required.
    let answered = wire.agent(json!({"error": notification}));
    assert_eq!(
        rules(&answered),
        [
            (None, FindingKind::MissingId),
            (None, FindingKind::NotificationAnswered)
        ]
    );
    let answered = wire.agent(json!({"id": null, "error": notification}));
    assert_eq!(
        rules(&answered),
        [(None, FindingKind::NotificationAnswered)]
    );
    let right = wire.agent(json!({"id": null, "error": {"code": -32700, "message": "parse"}}));
    assert_eq!(rules(&right), []);
}

#[test]
fn answers_that_nobody_waits_for() {
    let mut wire = Wire::new();
    let stray = wire.agent(json!({"id": 9, "result": {}}));
    assert_eq!(rules(&stray), [(None, FindingKind::UnmatchedAnswer)]);
    assert_eq!(stray.judged, Judged::Open);
    let nameless = wire.agent(json!({"result": {}}));
    assert_eq!(rules(&nameless)[0], (None, FindingKind::Envelope));

    wire.prompt(1);
    wire.agent(json!({"id": 1, "result": {"stopReason": "end_turn"}}));
    let twice = wire.agent(json!({"id": 1, "result": {"stopReason": "end_turn"}}));
    assert_eq!(rules(&twice), [(None, FindingKind::UnmatchedAnswer)]);
}

#[test]
fn a_probe_without_a_method_may_be_refused_by_its_id() {
    let mut wire = Wire::new();
    let probe = json!({"jsonrpc": "2.0", "id": "odd", "method": 7});
    wire.tracker.observe_probe(Party::Client, &probe);
    let error = json!({"code": -32600, "message": "invalid request"});
    let refused = wire.agent(json!({"id": "odd", "error": error}));
    assert_eq!(rules(&refused), []);
    let twice = wire.agent(json!({"id": "odd", "error": error}));
    assert_eq!(rules(&twice), [(None, FindingKind::UnmatchedAnswer)]);
}

#[test]
fn a_probe_gets_its_answer_without_being_judged() {
    let mut wire = Wire::new();
    let probe = json!({"jsonrpc": "1.0", "id": 901, "method": "session/list", "params": {}});
    wire.tracker.observe_probe(Party::Client, &probe);
    let answer = wire.agent(json!({"id": 901, "result": {"sessions": 7}}));
    assert_eq!(answer.method.as_deref(), Some("session/list"));
    assert_eq!(answer.findings[0].pointer, "/result/sessions");
    assert_eq!(answer.findings.len(), 1);
}

#[test]
fn what_follows_a_cancelled_turn() {
    let mut wire = Wire::new();
    wire.prompt(1);
    wire.client(json!({"method": "session/cancel", "params": {"sessionId": "s"}}));
    assert_eq!(rules(&wire.text()), [], "before the answer");
    wire.agent(json!({"id": 1, "result": {"stopReason": "cancelled"}}));
    let late = wire.text();
    assert_eq!(rules(&late), [(None, FindingKind::LateUpdate)]);
    assert_eq!(late.judged, Judged::Valid);
    let usage = json!({"sessionUpdate": "usage_update", "used": 1, "size": 2});
    let params = json!({"sessionId": "s", "update": usage});
    let news = wire.agent(json!({"method": "session/update", "params": params}));
    assert_eq!(
        rules(&news),
        [(Some(Excuse::Background), FindingKind::LateUpdate)]
    );
    wire.prompt(2);
    assert_eq!(rules(&wire.text()), [], "in the next turn");
}

#[test]
fn requests_have_ids_and_notifications_have_none() {
    let mut wire = Wire::new();
    let params = json!({"sessionId": "s", "path": "/a"});
    let silent = wire.agent(json!({"method": "fs/read_text_file", "params": params}));
    assert_eq!(rules(&silent), [(None, FindingKind::Envelope)]);
    assert_eq!(silent.findings[0].pointer, "/id");
    assert_eq!(silent.judged, Judged::Invalid);
    let update = json!({"sessionUpdate": "usage_update", "used": 1, "size": 2});
    let params = json!({"sessionId": "s", "update": update});
    let asked = wire.agent(json!({"id": 3, "method": "session/update", "params": params}));
    assert_eq!(rules(&asked), [(None, FindingKind::Envelope)]);
}

#[test]
fn extensions_are_left_alone_and_other_names_are_not() {
    let mut wire = Wire::new();
    let extension = wire.agent(json!({"id": 1, "method": "_x/y", "params": [1]}));
    assert_eq!(
        (extension.judged, rules(&extension)),
        (Judged::Open, vec![])
    );
    let answer = wire.client(json!({"id": 1, "result": [2]}));
    assert_eq!((answer.judged, rules(&answer)), (Judged::Open, vec![]));
    let vendor = wire.agent(json!({"method": "vendor/y"}));
    assert_eq!(rules(&vendor), [(None, FindingKind::UnknownMethod)]);
    let protocol = wire.agent(json!({"method": "$/progress"}));
    assert_eq!(rules(&protocol), []);
}

#[test]
fn a_null_result_is_weighed_by_what_the_schema_wants() {
    let mut wire = Wire::new();
    let mut result_of = |method: &str, params: Value| {
        wire.client(json!({"id": 1, "method": method, "params": params}));
        wire.agent(json!({"id": 1, "result": null}))
    };
    let load = result_of(
        "session/load",
        json!({"sessionId": "s", "cwd": "/", "mcpServers": []}),
    );
    assert_eq!((load.judged, rules(&load)), (Judged::Valid, vec![]));
    let mode = result_of("session/set_mode", json!({"sessionId": "s", "modeId": "m"}));
    assert_eq!(
        rules(&mode),
        [(Some(Excuse::EmptyResult), FindingKind::Schema)]
    );
    let list = result_of("session/list", json!({}));
    assert_eq!(rules(&list), [(None, FindingKind::Schema)]);
}

#[test]
fn absent_and_null_params_are_an_empty_object() {
    let mut wire = Wire::new();
    assert_eq!(
        wire.client(json!({"id": 1, "method": "session/list"}))
            .judged,
        Judged::Valid
    );
    assert_eq!(
        wire.client(json!({"id": 2, "method": "session/list", "params": null}))
            .judged,
        Judged::Valid
    );
    let missing = wire.agent(json!({"method": "session/update"}));
    assert_eq!(rules(&missing)[0], (None, FindingKind::Schema));
}
