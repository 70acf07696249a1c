//! Agents of version 2 whose processes exit and are restarted.

use acp_client::{Client, Error, Phase};
use acp_sdk::v1::StopReason;

use super::{ends, word};
use crate::agent::within;
use crate::restart::agent;

/// The first process is killed during a turn. The next one replays the conversation.
const AGENT: &str = r#"
chunk() { update '{"sessionUpdate":"agent_message_chunk","messageId":"m'"$1"'","content":{"type":"text","text":"'"$1"'"}}'; }
answer '{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}'
if [ $run = 1 ]; then
    answer '{"sessionId":"s"}'; answer '{"messageId":"u"}'
    update '{"sessionUpdate":"state_update","state":"running"}'
    chunk one; kill -9 $$
fi
expect session/resume; case $line in *replayFrom*) ;; *) exit 77;; esac
chunk one
send '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'
answer '{"messageId":"v"}'
update '{"sessionUpdate":"state_update","state":"running"}'
chunk two
update '{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}'
cat >/dev/null"#;

#[tokio::test]
async fn a_turn_is_lost_with_its_process_and_the_session_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(dir.path(), AGENT);
    let client = within(Client::builder().offer_v2().spawn(agent))
        .await
        .unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let mut events = session.events();
    let turn = session.prompt("hi").await.unwrap();
    let error = within(turn.outcome()).await.unwrap_err();
    assert!(matches!(error, Error::ConnectionLost { .. }), "{error}");
    let turn = session.prompt("go on").await.unwrap();
    ends(turn, StopReason::EndTurn, "two").await;
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "ended end_turn") {
        let event = within(events.next()).await.unwrap();
        let is_old = event.phase == Phase::Replayed;
        seen.push(if is_old { "old" } else { "" }.to_owned() + &word(&event.event));
    }
    // The second prompt may have been made before the session was loaded or afterwards.
    seen.retain(|event| event != "started");
    let expected = [
        "running",
        "one",
        "failed",
        "Gap(Loaded)",
        "oldone",
        "history",
        "running",
        "two",
        "idle",
        "ended end_turn",
    ];
    assert_eq!(seen, expected);
}

/// The first process is killed before it has answered the prompt. The next one knows the prompt's key.
const KEYED: &str = r#"
key() { key=${line#*\"idempotencyKey\":\"}; key=${key%%\"*}; }
answer '{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}'
if [ $run = 1 ]; then
    answer '{"sessionId":"s"}'; expect session/prompt; key; echo "$key" >key; kill -9 $$
fi
answer '{}'
expect session/prompt; key; read -r first <key
[ ${#key} -gt 30 ] && [ "$key" = "$first" ] || exit 77
send '{"jsonrpc":"2.0","id":'"$id"',"result":{"messageId":"u"}}'
update '{"sessionUpdate":"state_update","state":"running"}'
update '{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"one"}}'
update '{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}'
cat >/dev/null"#;

#[tokio::test]
async fn a_prompt_without_an_answer_is_sent_again_with_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let builder = Client::builder().offer_v2();
    let client = within(builder.spawn(agent(dir.path(), KEYED)))
        .await
        .unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt("hi").await.unwrap();
    ends(turn, StopReason::EndTurn, "one").await;

    // Without keys, nobody knows whether the agent has the prompt.
    let dir = tempfile::tempdir().unwrap();
    let builder = Client::builder().offer_v2().without_idempotency_keys();
    let client = within(builder.spawn(agent(dir.path(), KEYED)))
        .await
        .unwrap();
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt("hi").await.unwrap();
    let error = within(turn.outcome()).await.unwrap_err();
    assert!(matches!(error, Error::ConnectionLost { .. }), "{error}");
}
