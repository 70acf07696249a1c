//! Who wrote a message of plain NDJSON, which does not say.
//!
//! In this order:
//!
//! 1. A method of the protocol tells its caller: what the agent handles was
//!    written by the client, and the reverse.
//! 2. An answer goes to whoever waits for its id. When both do, because both
//!    count from zero, a result goes to the request whose schema accepts it; when
//!    that does not decide either, to the older request.
//! 3. An answer that nobody in the file waits for, and a method that the protocol
//!    does not define, stay unknown; their envelope is checked and nothing else.

use serde_json::Value;

use crate::wire::{Answer, Message, Party, Tracker, Verdict, read_envelope};

/// The writer of `value`, as far as it can be determined.
#[must_use]
pub fn infer(tracker: &Tracker, value: &Value) -> Option<Party> {
    match read_envelope(value).0? {
        Message::Request { method, .. } | Message::Notification { method, .. } => {
            tracker.schema().caller(method)
        }
        Message::Response { id, answer } => answerer(tracker, id?, answer),
    }
}

fn answerer(tracker: &Tracker, id: &Value, answer: Answer<'_>) -> Option<Party> {
    let by_agent = tracker.awaited(Party::Agent, id);
    let by_client = tracker.awaited(Party::Client, id);
    let (to_client, to_agent) = match (by_agent, by_client) {
        (Some(to_client), Some(to_agent)) => (to_client, to_agent),
        (Some(_), None) => return Some(Party::Agent),
        (None, Some(_)) => return Some(Party::Client),
        (None, None) => return None,
    };
    if let Answer::Result(result) = answer {
        let fits = |by: Party, method: &str| {
            !matches!(
                tracker.schema().result(by, method, result),
                Verdict::Invalid(_)
            )
        };
        match (
            fits(Party::Agent, to_client.0),
            fits(Party::Client, to_agent.0),
        ) {
            (true, false) => return Some(Party::Agent),
            (false, true) => return Some(Party::Client),
            _ => {}
        }
    }
    Some(if to_client.1 < to_agent.1 {
        Party::Agent
    } else {
        Party::Client
    })
}

#[cfg(test)]
mod tests {

    use serde_json::json;

    use super::*;
    use crate::wire::Schema;

    fn tracker() -> Tracker {
        Tracker::new(Schema::v1().unwrap())
    }

    fn prompt(tracker: &mut Tracker) {
        let params = json!({"sessionId": "s", "prompt": []});
        let prompt =
            json!({"jsonrpc": "2.0", "id": 0, "method": "session/prompt", "params": params});
        assert_eq!(infer(tracker, &prompt), Some(Party::Client));
        tracker.observe(Party::Client, 1, &prompt);
    }

    fn read(tracker: &mut Tracker) {
        let params = json!({"sessionId": "s", "path": "/a"});
        let read =
            json!({"jsonrpc": "2.0", "id": 0, "method": "fs/read_text_file", "params": params});
        assert_eq!(infer(tracker, &read), Some(Party::Agent));
        tracker.observe(Party::Agent, 2, &read);
    }

    #[test]
    fn a_method_tells_its_caller() {
        let tracker = tracker();
        let update = json!({"jsonrpc": "2.0", "method": "session/update"});
        assert_eq!(infer(&tracker, &update), Some(Party::Agent));
        let extension = json!({"jsonrpc": "2.0", "method": "_x"});
        assert_eq!(infer(&tracker, &extension), None);
    }

    #[test]
    fn colliding_ids_are_told_apart_by_the_schema() {
        let mut tracker = tracker();
        prompt(&mut tracker);
        read(&mut tracker);
        let content = json!({"jsonrpc": "2.0", "id": 0, "result": {"content": "x"}});
        assert_eq!(infer(&tracker, &content), Some(Party::Client));
        let stop = json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}});
        assert_eq!(infer(&tracker, &stop), Some(Party::Agent));
    }

    #[test]
    fn an_error_goes_to_the_older_request() {
        let mut tracker = tracker();
        prompt(&mut tracker);
        read(&mut tracker);
        let error = json!({"jsonrpc": "2.0", "id": 0, "error": {"code": 1, "message": ""}});
        assert_eq!(infer(&tracker, &error), Some(Party::Agent));
    }

    #[test]
    fn an_answer_nobody_waits_for_stays_unknown() {
        let stray = json!({"jsonrpc": "2.0", "id": 9, "result": {}});
        assert_eq!(infer(&tracker(), &stray), None);
    }
}
