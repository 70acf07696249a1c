//! Sessions over both transports, as over stdio.

use acp_client::{Client, Event, Policy, Session};
use acp_sdk::v1::{ContentBlock, SessionUpdate, StopReason};

use crate::host::{Host, SCHEMES, within};

async fn connect(host: &Host, scheme: &str) -> Client {
    let builder = Client::builder().permissions(Policy::ApproveAll);
    builder.connect_remote(host.agent(scheme)).await.unwrap()
}

async fn answer(session: &Session, prompt: &str) -> (String, StopReason) {
    let turn = session.prompt(prompt).await.unwrap();
    let outcome = turn.outcome().await.unwrap();
    (outcome.to_string(), outcome.stop_reason)
}

fn text(event: &Event) -> Option<String> {
    let Event::Update(update) = event else {
        return None;
    };
    let (who, chunk) = match update {
        SessionUpdate::UserMessageChunk(chunk) => ("user", chunk),
        SessionUpdate::AgentMessageChunk(chunk) => ("agent", chunk),
        _ => return None,
    };
    match &chunk.content {
        ContentBlock::Text(text) => Some(format!("{who}: {}", text.text)),
        _ => None,
    }
}

async fn all_of_it(scheme: &str) {
    let host = Host::start().await;
    let client = connect(&host, scheme).await;
    let dir = std::env::temp_dir();
    let session = client.new_session(&dir).await.unwrap();
    let (hello, stop) = answer(&session, "hello").await;
    assert_eq!(stop, StopReason::EndTurn);
    assert!(!hello.is_empty());
    // Every piece, in order.
    let (stream, _) = answer(&session, "stream 500").await;
    let local = Host::start().await;
    let (expected, _) = {
        let client = connect(&local, scheme).await;
        let session = client.new_session(&dir).await.unwrap();
        answer(&session, "stream 500").await
    };
    assert_eq!(stream, expected);

    // A question, answered on the way.
    let mut turn = session.prompt("permission").await.unwrap();
    let mut asked = 0;
    while let Some(event) = turn.next().await {
        asked += u32::from(matches!(event.event, Event::Permission(_)));
    }
    assert_eq!(asked, 1);
    assert_eq!(
        turn.outcome().await.unwrap().stop_reason,
        StopReason::EndTurn
    );

    // Cancelled, while another session goes on.
    let other = client.new_session(&dir).await.unwrap();
    let slow = session.prompt("slow").await.unwrap();
    assert_eq!(answer(&other, "hello").await.0, hello);
    slow.cancel();
    assert_eq!(
        slow.outcome().await.unwrap().stop_reason,
        StopReason::Cancelled
    );

    // The history is there when the session is.
    let id = session.id().clone();
    drop(session);
    let session = client.load_session(id, &dir).await.unwrap();
    let mut events = session.events();
    let history = std::iter::from_fn(|| events.next_ready());
    let texts: Vec<_> = history.filter_map(|event| text(&event.event)).collect();
    assert_eq!(texts.first().unwrap(), "user: hello");
    let agent: String = texts
        .iter()
        .filter_map(|text| text.strip_prefix("agent: "))
        .collect();
    assert!(
        agent.contains(&stream),
        "the replay came before the session"
    );
    assert_eq!(answer(&session, "hello").await.0, hello);
    client.shutdown().await;
}

async fn of_both() {
    for scheme in SCHEMES {
        within(all_of_it(scheme)).await;
    }
}

#[tokio::test]
async fn a_remote_agent_is_used_as_a_local_one() {
    of_both().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_remote_agent_is_used_as_a_local_one_on_four_threads() {
    of_both().await;
}

#[tokio::test]
async fn a_url_is_enough() {
    let host = Host::start().await;
    for scheme in SCHEMES {
        let client = within(Client::connect(host.url(scheme))).await.unwrap();
        assert_eq!(
            client.agent_info().agent_info.as_ref().unwrap().name,
            "acp-server"
        );
    }
}

#[tokio::test]
async fn many_sessions_stream_at_once() {
    let host = Host::start().await;
    for scheme in SCHEMES {
        let client = connect(&host, scheme).await;
        let mut turns = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let session = client.new_session(std::env::temp_dir()).await.unwrap();
            turns.spawn(async move { answer(&session, "stream 200").await.0.len() });
        }
        let lengths = within(turns.join_all()).await;
        assert_eq!(lengths.iter().max(), lengths.iter().min());
        assert!(lengths[0] > 200, "{lengths:?}");
    }
}

#[tokio::test]
async fn a_question_is_answered_while_its_prompt_is_in_flight() {
    let host = Host::start().await;
    for scheme in SCHEMES {
        let client = connect(&host, scheme).await;
        let mut sessions = Vec::new();
        for _ in 0..4 {
            let session = client.new_session(std::env::temp_dir()).await.unwrap();
            sessions.push(session.prompt("permission").await.unwrap());
        }
        for turn in sessions {
            let outcome = within(turn.outcome()).await.unwrap();
            assert_eq!(outcome.stop_reason, StopReason::EndTurn);
        }
    }
}
