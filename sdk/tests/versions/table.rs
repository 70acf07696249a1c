//! A further version is a document: a toy version 3, in a crate other than `acp_sdk`,
//! negotiates beside versions 1 and 2 on both sides, and brings its masking rules.
//!
//! `v3/generated.rs` is generated from `v3/schema.json`; a test of `acp-codegen` compares them.

use std::io;
use std::sync::{Arc, Mutex};

use acp_sdk::{
    AgentSide, ClientSide, ConnectionBuilder, HandlerResult, IntoAgent, MultiVersion, Offer,
    ProtocolVersion, Result, Transcript, V1, V2, duplex,
};
use serde_json::{Value, json};

use crate::support::{Log, New, NewClient, Old, OldClient, agent, ask_v1, ask_v2};
use crate::v3::{self, V3};

/// An agent of version 3.
#[derive(Clone, Default)]
pub struct Newest(Log);

impl v3::Agent for Newest {
    async fn initialize(
        &self,
        _: &v3::AgentContext,
        req: v3::InitializeRequest,
    ) -> HandlerResult<v3::InitializeResponse> {
        self.0.note(format!(
            "v3 initialize {} {}",
            req.protocol_version, req.client_name
        ));
        // Whatever the handler answers, the connection speaks version 3.
        Ok(v3::InitializeResponse::new(77u16, "newest"))
    }

    async fn echo(
        &self,
        ctx: &v3::AgentContext,
        req: v3::EchoRequest,
    ) -> HandlerResult<v3::EchoResponse> {
        let progress = v3::ProgressNotification::new(req.topic.as_str());
        ctx.client().progress(progress).await?;
        Ok(v3::EchoResponse::new(req.topic))
    }
}

/// A client of version 3.
#[derive(Clone, Default)]
struct NewestClient(Log);

impl v3::Client for NewestClient {
    async fn progress(
        &self,
        _: &v3::ClientContext,
        notification: v3::ProgressNotification,
    ) -> HandlerResult<()> {
        self.0
            .note(format!("v3 progress of {}", notification.topic));
        Ok(())
    }
}

/// An agent of all versions.
fn all(log: &Log) -> MultiVersion<AgentSide> {
    MultiVersion::agent()
        .version::<V3>(v3::AgentService::new(Newest(log.clone())))
        .version::<V1>(Old(log.clone()))
        .version::<V2>(New(log.clone()))
}

/// A client of all versions.
fn all_clients(log: &Log) -> MultiVersion<ClientSide> {
    MultiVersion::client()
        .version::<V1>(OldClient(log.clone()))
        .version::<V3>(v3::ClientService::new(NewestClient(log.clone())))
        .version::<V2>(NewClient(log.clone()))
}

fn offer() -> Offer {
    Offer::new()
        .version::<V3>(&v3::InitializeRequest::new(3u16, "editor"))
        .version::<V1>(&ask_v1())
        .version::<V2>(&ask_v2())
}

fn params(version: u16) -> Value {
    let info = json!({"name": "raw", "version": "0"});
    json!({"protocolVersion": version, "clientInfo": info, "info": info, "clientName": "raw"})
}

#[tokio::test]
async fn an_agent_of_three_versions_answers_in_the_requested_one() {
    for (requested, spoken) in [(0, 1), (1, 1), (2, 2), (3, 3), (4, 3), (65535, 3)] {
        let log = Log::default();
        let (mut raw, _driver) = agent(all(&log));
        let early = raw.ask(1, "echo", json!({"topic": "x"})).await;
        assert_eq!(early["error"]["code"], -32600, "{early}");
        let response = raw.ask(2, "initialize", params(requested)).await;
        assert_eq!(response["result"]["protocolVersion"], spoken, "{response}");
        assert_eq!(log.all(), [format!("v{spoken} initialize {requested} raw")]);
        let echo = json!({"jsonrpc": "2.0", "id": 3, "method": "echo", "params": {"topic": "x"}});
        raw.send(echo).await;
        let first = raw.expect().await;
        assert_eq!(first["method"] == "progress", spoken == 3, "{first}");
    }
}

#[tokio::test]
async fn an_agent_of_later_versions_names_all_of_them_when_it_refuses() {
    for requested in [0, 1] {
        let later = MultiVersion::agent()
            .version::<V2>(New::default())
            .version::<V3>(v3::AgentService::new(Newest::default()));
        let (mut raw, _driver) = agent(later);
        let refused = raw.ask(1, "initialize", params(requested)).await;
        assert_eq!(refused["error"]["code"], -32022, "{refused}");
        assert_eq!(
            refused["error"]["data"],
            json!({"requested": requested, "supported": [2, 3]})
        );
        let response = raw.ask(2, "initialize", params(2)).await;
        assert_eq!(response["result"]["protocolVersion"], 2);
        let refused = raw.ask(3, "initialize", params(1)).await;
        assert_eq!(refused["error"]["data"]["supported"], json!([2]));
    }
}

/// The version that a client of all versions speaks with `agent`, and the name it has there.
async fn negotiated<V>(agent: impl IntoAgent<V>) -> (u16, String) {
    let driver = duplex(agent, all_clients(&Log::default()));
    let agent = driver.handle().clone();
    let _driver = tokio::spawn(driver);
    let negotiated = agent.initialize(offer()).await.unwrap();
    let name = if let Some((agent, response)) = negotiated.as_version::<V3>() {
        let echo = agent.echo(v3::EchoRequest::new("x")).await.unwrap();
        assert_eq!(echo.topic, "x");
        response.agent_name.clone()
    } else if let Some((_, response)) = negotiated.as_version::<V2>() {
        response.info.name.clone()
    } else {
        assert!(negotiated.as_version::<V1>().is_some());
        "old".to_owned()
    };
    (negotiated.version(), name)
}

#[tokio::test]
async fn a_client_of_three_versions_speaks_that_of_its_agent() {
    let log = Log::default();
    assert_eq!(negotiated(Old::default()).await, (1, "old".to_owned()));
    assert_eq!(negotiated(New::default()).await, (2, "new".to_owned()));
    let newest = v3::AgentService::new(Newest::default());
    assert_eq!(negotiated(newest).await, (3, "newest".to_owned()));
    assert_eq!(negotiated(all(&log)).await, (3, "newest".to_owned()));
}

#[tokio::test]
async fn a_client_of_one_version_needs_an_agent_that_has_it() {
    async fn initialize<V>(agent: impl IntoAgent<V>) -> Result<v3::InitializeResponse> {
        let client = v3::ClientService::new(NewestClient::default());
        let driver = duplex(agent, client);
        let agent = driver.handle().clone();
        let _driver = tokio::spawn(driver);
        let request = v3::InitializeRequest::new(V3::NUMBER, "editor");
        agent.initialize(request).await
    }
    let response = initialize(all(&Log::default())).await.unwrap();
    assert_eq!(response.protocol_version, 3);
    // The response of version 1 has another form.
    let error = initialize(Old::default()).await.unwrap_err();
    assert!(
        matches!(error, acp_sdk::Error::UnsupportedVersion { version: 1 }),
        "{error}"
    );
}

#[tokio::test]
async fn an_offer_of_a_version_without_a_client_is_an_error() {
    for (offered, expected) in [(Offer::new(), "no version"), (offer(), "version 3")] {
        let client = MultiVersion::client()
            .version::<V1>(OldClient::default())
            .version::<V2>(NewClient::default());
        let _driver = duplex(Old::default(), client);
        let agent = _driver.handle().clone();
        let error = agent.initialize(offered).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A transcript in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_document_decides_what_its_transcripts_show() {
    let memory = Memory::default();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let newest = v3::AgentService::new(Newest::default());
    let driver = ConnectionBuilder::new()
        .transcript(Transcript::new(memory.clone()))
        .agent(newest, (reader, writer));
    let (reader, writer) = tokio::io::split(theirs);
    let client = v3::ClientService::new(NewestClient::default());
    let client = acp_sdk::connect(client, (reader, writer));
    let peer = client.handle().clone();
    let client = tokio::spawn(client);
    let driver = tokio::spawn(driver);
    let request = v3::InitializeRequest::new(3u16, "s3cret");
    peer.initialize(request).await.unwrap();
    let credentials = v3::Credentials::new("s3cret", 5_318_008);
    let request = v3::EchoRequest::new("weather").with_credentials(credentials);
    peer.echo(request).await.unwrap();
    peer.peer().close_output();
    driver.await.unwrap().unwrap();
    drop(client);
    let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
    assert!(
        !text.contains("s3cret") && !text.contains("5318008"),
        "{text}"
    );
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let echo = records
        .iter()
        .find(|record| record["msg"]["method"] == "echo");
    assert_eq!(
        echo.unwrap()["msg"]["params"],
        json!({"topic": "weather", "credentials": {"topic": "[redacted]", "pin": 0}})
    );
    assert_eq!(records[1]["msg"]["result"]["agentName"], "newest");
}
