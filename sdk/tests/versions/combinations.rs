//! Real agents with real clients: each of version 1, version 2 or both.

use acp_sdk::{AgentSide, IntoAgent, MultiVersion, Offer, Result, V1, V2, duplex, v1, v2};

use crate::support::{Log, New, NewClient, Old, OldClient, ask_v1, ask_v2};

/// What a client of both does with an agent, until it knows the name of a session and has
/// seen an update of it.
async fn client_of_both<V>(agent: impl IntoAgent<V>) -> (Result<String>, Log) {
    let log = Log::default();
    let driver = duplex(
        agent,
        MultiVersion::client()
            .version(OldClient(log.clone()))
            .version(NewClient(log.clone())),
    );
    let agent = driver.handle().clone();
    let driver = tokio::spawn(driver);
    let offer = Offer::new()
        .version::<V1>(&ask_v1())
        .version::<V2>(&ask_v2());
    let session = match agent.initialize(offer).await {
        Ok(negotiated) => {
            if let Some((agent, _)) = negotiated.as_version::<V1>() {
                session_of_old(&agent).await
            } else if let Some((agent, _)) = negotiated.as_version::<V2>() {
                session_of_new(&agent).await
            } else {
                panic!("{negotiated:?}")
            }
        }
        Err(error) => Err(error),
    };
    drop(driver);
    (session, log)
}

async fn client_of_one<V>(agent: impl IntoAgent<V>) -> (Result<String>, Log) {
    let log = Log::default();
    let driver = duplex(agent, OldClient(log.clone()));
    let agent = driver.handle().clone();
    tokio::spawn(driver);
    let session = match agent.initialize(ask_v1()).await {
        Ok(answer) => {
            assert_eq!(answer.protocol_version, v1::ProtocolVersion::V1);
            session_of_old(&agent).await
        }
        Err(error) => Err(error),
    };
    (session, log)
}

async fn client_of_two<V>(agent: impl IntoAgent<V>) -> (Result<String>, Log) {
    let log = Log::default();
    let driver = duplex(agent, NewClient(log.clone()));
    let agent = driver.handle().clone();
    tokio::spawn(driver);
    let session = match agent.initialize(ask_v2()).await {
        Ok(answer) => {
            assert_eq!(answer.protocol_version, v2::ProtocolVersion::V2);
            session_of_new(&agent).await
        }
        Err(error) => Err(error),
    };
    (session, log)
}

async fn session_of_old(agent: &v1::AgentHandle) -> Result<String> {
    let session = agent
        .new_session(v1::NewSessionRequest::new("/", vec![]))
        .await?
        .session_id;
    let prompt = vec![v1::ContentBlock::Text(v1::TextContent::new("x"))];
    agent
        .prompt(v1::PromptRequest::new(session.clone(), prompt))
        .await?;
    Ok(session.to_string())
}

async fn session_of_new(agent: &v2::AgentHandle) -> Result<String> {
    let session = agent
        .new_session(v2::NewSessionRequest::new("/"))
        .await?
        .session_id;
    let prompt = vec![v2::ContentBlock::Text(v2::TextContent::new("x"))];
    agent
        .prompt(v2::PromptRequest::new(session.clone(), prompt))
        .await?;
    Ok(session.to_string())
}

fn both() -> MultiVersion<AgentSide> {
    MultiVersion::agent()
        .version(Old::default())
        .version(New::default())
}

#[tokio::test]
async fn the_highest_version_in_common_is_spoken() {
    let outcomes = [
        ("v1 v1", client_of_one(Old::default()).await, 1),
        ("both v1", client_of_one(both()).await, 1),
        ("v2 v2", client_of_two(New::default()).await, 2),
        ("both v2", client_of_two(both()).await, 2),
        ("v1 both", client_of_both(Old::default()).await, 1),
        ("v2 both", client_of_both(New::default()).await, 2),
        ("both both", client_of_both(both()).await, 2),
    ];
    for (sides, (session, log), version) in outcomes {
        let name = if version == 1 { "old" } else { "new" };
        assert_eq!(
            session.as_deref().unwrap_or("none"),
            name,
            "{sides}: {session:?}"
        );
        assert_eq!(
            log.all(),
            [format!("v{version} update of {name}")],
            "{sides}"
        );
    }
}

#[tokio::test]
async fn without_one_in_common_the_client_is_told() {
    let (session, _) = client_of_one(New::default()).await;
    let error = session.unwrap_err();
    let refusal = error.as_response().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(refusal.code.get(), -32022);
    let data: v2::UnsupportedProtocolVersionErrorData =
        serde_json::from_str(refusal.data.as_ref().unwrap().get()).unwrap();
    assert_eq!(data.supported, [v2::ProtocolVersion::V2]);

    let (session, _) = client_of_two(Old::default()).await;
    let error = session.unwrap_err();
    assert!(
        matches!(error, acp_sdk::Error::UnsupportedVersion { version: 1 }),
        "{error}"
    );
}
