//! Runs and what they cost.

use std::sync::Arc;

use acp_sdk::v1::{Cost, StopReason, UsageUpdate};
use acp_server::event::Batch;
use acp_server::store::{Commit, MemoryStore, SessionRecord, SqliteStore, Store as _};
use acp_server::{Handler, HandlerError, HandlerResult, Turn};
use acp_store_tests::faults::{FaultyStore, Operation};

use super::*;

/// Reports what the prompt says: the total cost so far, the tokens in the context, and the currency;
/// then it fails with a reason, waits to be cancelled (`wait`), or sends further chunks (`chunks=N`).
/// A total of `-` is not reported.
struct Spender;

impl Handler for Spender {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let said = turn.prompt_text();
        let mut words = said.split(' ');
        let total = words.next().unwrap_or_default();
        let tokens: u64 = words.next().unwrap_or_default().parse().unwrap_or(0);
        let currency = words.next().unwrap_or("USD");
        if total != "-" {
            let cost = Cost::new(total.parse::<f64>().unwrap_or(0.0), currency);
            let usage = UsageUpdate::new(tokens, 200_000u64).with_cost(cost);
            turn.report_usage(usage).await?;
        }
        turn.send_text("Spent.").await?;
        match words
            .next()
            .map(|word| word.split_once('=').unwrap_or((word, "")))
        {
            Some(("wait", _)) => {
                turn.cancelled().await;
                Ok(StopReason::EndTurn)
            }
            Some(("chunks", count)) => {
                for _ in 0..count.parse().unwrap_or(0) {
                    turn.send_text("More.").await?;
                }
                Ok(StopReason::EndTurn)
            }
            Some((reason, _)) => Err(reason.into()),
            None => Ok(StopReason::EndTurn),
        }
    }
}

async fn spent(said: &[&str]) -> Site {
    let site = Site::with(Server::new(Spender), &EndpointSettings::default()).await;
    for said in said {
        let id = site.create().await.id;
        site.talk(&id, said).await;
    }
    site
}

fn near(value: &Value, expected: f64) {
    assert!(
        (value.as_f64().unwrap() - expected).abs() < 1e-9,
        "{value} {expected}"
    );
}

#[tokio::test]
async fn costs_are_added_up() {
    let said = ["0.07 1200", "0.03 600", "0.12 2000", "0 0 USD failed"];
    let site = spent(&said).await;
    let cost = site.get("/runs/cost").await.json();
    let totals = &cost["totals"];
    assert_eq!(cost["total_runs"], 4);
    near(&cost["total_cost"], 0.22);
    near(&totals["avg_cost_usd"], 0.055);
    near(&totals["p50_cost_usd"], 0.05);
    near(&totals["p95_cost_usd"], 0.12);
    assert_eq!(totals["successful_runs"], 3);
    assert_eq!(
        (&totals["failed_runs"], &totals["runs"]),
        (&json!(1), &json!(4))
    );
    assert_eq!(cost["by_model"]["unknown"]["runs"], 4);
    let newest = &cost["by_run"][0];
    assert_eq!(
        (&newest["success"], &newest["steps"]),
        (&json!(false), &json!(1))
    );
    // The context is not what the turn used.
    assert_eq!(
        (&newest["input_tokens"], &newest["total_tokens"]),
        (&Value::Null, &Value::Null)
    );
    let filters = json!({ "since": null, "until": null, "model": null, "agent": null });
    assert_eq!(cost["filters"], filters);

    let runs = site.get("/runs?limit=2").await.json();
    assert_eq!(runs["total_runs"], 2);
    let run = &runs["runs"][1];
    assert_eq!(
        (&run["prompt"], &run["cost_usd"]),
        (&json!("0.12 2000"), &json!(0.12))
    );
    assert_eq!(
        (&run["success"], &run["tool_calls"]),
        (&json!(true), &json!(0))
    );
    assert!(run["ended_at"].as_str().unwrap() >= run["started_at"].as_str().unwrap());
    let id = run["session_id"].as_str().unwrap();
    assert_eq!(run["run_id"], format!("{id}/1"));
    assert_eq!(run["stop_reason"], "end_turn");
    assert!(run["duration_ms"].is_u64(), "{run}");
    let failed = &runs["runs"][0];
    assert_eq!(
        (&failed["error"], &failed["stop_reason"]),
        (&json!("failed"), &Value::Null)
    );
}

/// Counts the tokens of its turns.
struct Counting;

impl Handler for Counting {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let usage: u64 = turn.prompt_text().parse().unwrap_or(0);
        let answer = json!({
            "usage": {
                "totalTokens": usage + 7,
                "inputTokens": usage,
                "outputTokens": 4,
                "thoughtTokens": 3,
                "cachedReadTokens": 2,
                "cachedWriteTokens": 1,
            },
        });
        let text = answer.to_string();
        turn.set_answer(
            serde_json::from_str::<acp_sdk::Json>(&text).map_err(HandlerError::internal)?,
        );
        turn.send_text("Counted.").await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn tokens_of_answers_are_summed_over_turns_and_runs() {
    let site = Site::with(Server::new(Counting), &EndpointSettings::default()).await;
    for said in [&["100", "1000"][..], &["10"]] {
        let id = site.create().await.id;
        for said in said {
            site.talk(&id, said).await;
        }
    }
    let cost = site.get("/runs/cost").await.json();
    assert_eq!(
        (&cost["total_tokens"], &cost["total_runs"]),
        (&json!(1_110 + 21), &json!(3))
    );
    let counts = |value: &Value| {
        let names = [
            "input_tokens",
            "output_tokens",
            "thought_tokens",
            "cached_read_tokens",
            "cached_write_tokens",
            "cache_tokens",
        ];
        names.map(|name| value[name].as_u64().unwrap())
    };
    assert_eq!(counts(&cost["totals"]), [1_110, 12, 9, 6, 3, 9]);
    assert_eq!(
        counts(&cost["by_model"]["unknown"]),
        counts(&cost["totals"])
    );
    let run = &cost["by_run"][1];
    assert_eq!(counts(run), [1_000, 4, 3, 2, 1, 3]);
    assert_eq!(run["total_tokens"], 1_007);
    let id = run["session_id"].as_str().unwrap();
    let session = &site.get(&format!("/sessions/{id}")).await.json()["summary"];
    assert_eq!(counts(session), [1_100, 8, 6, 4, 2, 6]);
    let mut stream = site
        .stream(&format!("/session/{id}/events"), Some("0"))
        .await;
    assert_eq!(
        stream.until("result").await.data["usage"]["inputTokens"],
        100
    );
}

#[tokio::test]
async fn a_run_is_a_turn_with_the_increase_of_the_total() {
    let site = spent(&["0.01 100"]).await;
    let id = site.get("/session").await.json()["sessions"][0]
        .as_str()
        .unwrap()
        .to_owned();
    // Twice, so that the second sum goes on where the first one ended.
    near(&site.get("/runs/cost").await.json()["total_cost"], 0.01);
    site.talk(&id, "0.05 300").await;
    site.talk(&id, "7 300 EUR").await;
    let cost = site.get("/runs/cost").await.json();
    near(&cost["total_cost"], 0.05);
    let sum = json!({ "EUR": 7.0, "USD": 0.05 });
    assert_eq!(
        (&cost["totals"]["costs"], &cost["total_runs"]),
        (&sum, &json!(3))
    );
    let runs = site.get("/runs").await.json()["runs"].clone();
    let costs: Vec<_> = [0, 1, 2].iter().map(|at| &runs[at]["costs"]).collect();
    let expected = [
        json!({ "EUR": 7.0 }),
        json!({ "USD": 0.04 }),
        json!({ "USD": 0.01 }),
    ];
    assert_eq!(costs, expected.iter().collect::<Vec<_>>());
    assert_eq!(
        (&runs[0]["cost_usd"], &runs[1]["cost_usd"]),
        (&Value::Null, &json!(0.04))
    );
    assert_eq!(runs[1]["prompt"], "0.05 300");
    let day = runs[0]["started_at"]
        .as_str()
        .unwrap()
        .split('T')
        .next()
        .unwrap();
    assert_eq!(cost["by_day"][day]["costs"]["EUR"], 7.0);
    let session = &site.get("/sessions").await.json()["sessions"][0];
    assert_eq!((&session["costs"], &session["turns"]), (&sum, &json!(3)));
    assert_eq!(session["duration_ms"], cost["totals"]["duration_ms"]);
    // With a limit, the sums are of the newest runs alone.
    let cost = site.get("/runs/cost?limit=2").await.json();
    assert_eq!(cost["total_runs"], 2);
    near(&cost["total_cost"], 0.04);
}

#[tokio::test]
async fn the_end_of_a_turn_has_its_cost_wherever_its_stream_begins() {
    let site = spent(&["0.01 100", "0.5 100"]).await;
    let id = site.get("/session").await.json()["sessions"][1]
        .as_str()
        .unwrap()
        .to_owned();
    // The last total is far before the turn.
    site.talk(&id, "- 0 USD chunks=700").await;
    site.talk(&id, "0.05 300").await;
    site.talk(&id, "0.06 300 USD failed").await;
    let path = format!("/session/{id}/events");
    let ends = async |cursor: &str| {
        let mut stream = site.stream(&path, Some(cursor)).await;
        let mut ends = Vec::new();
        while ends.last().is_none_or(|end: &Frame| end.event != "error") {
            let frame = stream.next().await.unwrap();
            if ["result", "error"].contains(&frame.event.as_str()) {
                ends.push(frame);
            }
        }
        ends
    };
    let all = ends("0").await;
    let costs: Vec<_> = all.iter().map(|end| end.data["cost"].clone()).collect();
    assert_eq!(costs, [json!(0.01), Value::Null, json!(0.04), json!(0.01)]);
    assert_eq!(all[2].data["costs"], json!({ "USD": 0.04 }));
    for end in &all {
        let (start, time) = (&end.data["started_at"], &end.data["ended_at"]);
        assert!(
            start.as_str() <= time.as_str() && start.is_string(),
            "{end:?}"
        );
        assert!(end.data["duration_ms"].is_u64(), "{end:?}");
    }
    // In the middle of the third turn, and in the last one.
    for (cursor, expected) in [(all[2].id.unwrap() - 1, 2), (all[3].id.unwrap() - 1, 1)] {
        let late = ends(&cursor.to_string()).await;
        assert_eq!(late, all[all.len() - expected..], "after {cursor}");
    }
}

#[tokio::test]
async fn a_running_turn_is_listed_although_its_session_was_idle_for_long() {
    let store = MemoryStore::new();
    let mut record = SessionRecord::new("old", "/");
    record.created_at = "2020-01-01T00:00:00.000Z".to_owned();
    record.updated_at.clone_from(&record.created_at);
    let lease = store.create(&record).await.unwrap();
    store.release(&lease).await.unwrap();
    let server = Server::builder(Spender).store(Arc::new(store)).build();
    let site = Site::with(server, &EndpointSettings::default()).await;
    let body = json!({ "text": "1 0 USD wait" });
    let answer = site.post("/session/old/message", body).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let mut stream = site.stream("/session/old/events", Some("0")).await;
    while stream.next().await.unwrap().data["type"] != "text_delta" {}
    let run = &site.get("/runs?since=1h").await.json()["runs"][0];
    assert_eq!(
        (&run["run_id"], &run["cost_usd"]),
        (&json!("old/1"), &json!(1.0))
    );
    for name in ["ended_at", "duration_ms", "stop_reason", "success"] {
        assert_eq!(run[name], Value::Null, "{name}");
    }
    site.post("/session/old/cancel", "").await;
    stream.until("result").await;
    let run = &site.get("/runs?since=1h").await.json()["runs"][0];
    assert_eq!(
        (&run["stop_reason"], &run["success"]),
        (&json!("cancelled"), &json!(false))
    );
}

#[tokio::test]
async fn runs_are_in_the_order_of_their_start_whatever_their_session() {
    let site = spent(&["1 0", "1 0", "1 0"]).await;
    let ids = site.get("/session").await.json()["sessions"].clone();
    for at in [1, 0, 2, 1] {
        site.talk(ids[at].as_str().unwrap(), "2 0").await;
    }
    let runs = site.get("/runs").await.json()["runs"].clone();
    let runs = runs.as_array().unwrap();
    let starts: Vec<_> = runs.iter().map(|run| run["started_at"].as_str()).collect();
    assert!(starts.is_sorted_by(|a, b| a >= b), "{starts:?}");
    assert_eq!(runs.len(), 7);
    let newest = site.get("/runs?limit=3").await.json()["runs"].clone();
    assert_eq!(newest.as_array().unwrap(), &runs[..3]);
    assert_eq!(newest[0]["session_id"], ids[1]);
}

#[tokio::test]
async fn runs_are_filtered_by_time_model_and_number() {
    let site = Site::start().await;
    for model in ["small", "large"] {
        let body = json!({ "prompt": "ping", "model": model });
        let id = site.post("/sessions", body).await.json()["session_id"].clone();
        site.frames(id.as_str().unwrap()).await;
    }
    let count = async |query: &str| {
        let runs = site.get(&format!("/runs{query}")).await.json();
        let cost = site.get(&format!("/runs/cost{query}")).await.json();
        assert_eq!(runs["total_runs"], cost["total_runs"], "{query}");
        runs["total_runs"].as_u64().unwrap()
    };
    for (query, expected) in [
        ("", 2),
        ("?since=7d", 2),
        ("?since=24h&model=all", 2),
        ("?since=30m&limit=1", 1),
        ("?since=2020-01-01", 2),
        ("?since=2999-01-01T00:00:00Z", 0),
        ("?until=2999-01-01&since=7d", 2),
        ("?until=24h", 0),
        ("?model=LAR", 1),
        ("?model=none", 0),
    ] {
        assert_eq!(count(query).await, expected, "{query}");
    }
    let by_model = &site.get("/runs/cost").await.json()["by_model"];
    assert_eq!(
        (&by_model["small"]["runs"], &by_model["large"]["runs"]),
        (&json!(1), &json!(1))
    );
    for query in [
        "since=soon",
        "since=",
        "until=soon",
        "limit=0",
        "limit=x",
        "limit=-1",
        "limit=10001",
        "limit=1&limit=2",
    ] {
        for path in ["/runs", "/runs/cost", "/sessions", "/session"] {
            let answer = site.get(&format!("{path}?{query}")).await;
            refused(&answer, 400, "invalid_query");
            assert!(answer.json()["detail"].is_string(), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn what_turns_did_is_read_from_their_events_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let site = async || {
        let store = Arc::new(FaultyStore::new(SqliteStore::open(&path).unwrap()));
        let server = Server::builder(Spender).store(store.clone()).build();
        (
            Site::with(server, &EndpointSettings::default()).await,
            store,
        )
    };
    let lists = ["/runs", "/sessions", "/runs/cost"];
    let (first, _) = site().await;
    let mut ids = Vec::new();
    for said in ["0.5 1000", "0.25 7 EUR", "0.1 1 USD failed"] {
        let id = first.create().await.id;
        first.talk(&id, said).await;
        ids.push(id);
    }
    let mut expected = Vec::new();
    for path in lists {
        expected.push(first.get(path).await.json());
    }
    assert_eq!(expected[0]["total_runs"], 3);
    first.server.shutdown().await;
    drop(first);

    let (second, store) = site().await;
    for (path, expected) in lists.iter().zip(&expected) {
        let answer = second.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_eq!(&answer.json(), expected, "{path}");
    }
    let calls = store.calls();
    assert!(!calls.contains(&Operation::Read), "{calls:?}");
    // Later turns are added to what is kept.
    second.talk(&ids[0], "0.75 1000").await;
    let costs = second.get("/runs/cost").await.json();
    assert_eq!(costs["total_runs"], 4);
    near(&costs["total_cost"], 0.5 + 0.25 + 0.1);
    let text = store.derived(&[ids[1].as_str().into()]).await.unwrap();
    assert!(text[0].as_ref().unwrap().contains("EUR"), "{text:?}");
    // What cannot be read is made again.
    let broken = vec![(ids[1].as_str().into(), "[0, {}]".to_owned())];
    store.keep_derived(broken).await.unwrap();
    second.server.shutdown().await;
    drop(second);
    let (third, _) = site().await;
    assert_eq!(
        third.get("/runs/cost").await.json()["total_cost"],
        costs["total_cost"]
    );
}

/// `cargo test --release -p acp-server-remote --test it ten_thousand -- --ignored --nocapture`
#[tokio::test]
#[ignore = "prints a measurement"]
async fn ten_thousand_sessions_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    for number in 0..10_000 {
        let record = SessionRecord::new(format!("session-{number}"), "/w");
        let lease = store.create(&record).await.unwrap();
        let mut batch = Batch::new(1);
        batch.push(r#"{"event":"turn_started","turn":1}"#);
        for chunk in 0..50 {
            batch.push(&format!(
                r#"{{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{{"type":"text","text":"{chunk:060}"}}}}"#
            ));
        }
        batch.push(r#"{"event":"turn_ended","turn":1,"stopReason":"end_turn"}"#);
        let mut commit = Commit::default();
        commit.events = Some(Arc::new(batch));
        store.commit(&lease, commit).await.unwrap();
        store.release(&lease).await.unwrap();
    }
    drop(store);
    for process in ["first", "second"] {
        let store = SqliteStore::open(&path).unwrap();
        let server = Server::builder(Spender).store(store).build();
        let site = Site::with(server, &EndpointSettings::default()).await;
        for list in ["/session", "/sessions", "/runs", "/sessions"] {
            let begun = std::time::Instant::now();
            let answer = site.get(&format!("{list}?limit=10000")).await;
            let (time, bytes) = (begun.elapsed(), answer.body.len());
            assert_eq!(answer.status, 200);
            eprintln!("{process} process: {list}: {time:?}, {bytes} bytes");
        }
        site.server.shutdown().await;
    }
}

/// The agent's own choice is in no event of a change.
#[tokio::test]
async fn the_model_of_a_run_is_known_after_a_restart() {
    let store = Arc::new(MemoryStore::new());
    let serve = || {
        let server = Server::builder(Reference).store(store.clone());
        server.build()
    };
    let site = Site::with(serve(), &EndpointSettings::default()).await;
    let id = site.create().await.id;
    site.talk(&id, "ping").await;
    site.server.shutdown().await;
    let site = Site::with(serve(), &EndpointSettings::default()).await;
    let runs = site.get("/runs?model=small").await.json();
    assert_eq!(runs["runs"][0]["model"], "small", "{runs}");
    let costs = site.get("/runs/cost").await.json();
    assert_eq!(costs["by_model"]["small"]["runs"], 1, "{costs}");
}

/// The end of its turn is written when its session is opened again, which is no activity.
#[tokio::test]
async fn a_session_of_a_killed_server_has_ended_when_its_turn_has() {
    let store = Arc::new(MemoryStore::new());
    let mut record = SessionRecord::new("killed", "/w");
    record.updated_at = "2026-01-01T00:00:00Z".to_owned();
    let lease = store.create(&record).await.unwrap();
    let mut batch = Batch::new(1);
    batch.push(r#"{"event":"turn_started","turn":1}"#);
    let mut commit = Commit::default();
    commit.events = Some(Arc::new(batch));
    commit.change.running_turn = Some(Some(1));
    store.commit(&lease, commit).await.unwrap();
    store.release(&lease).await.unwrap();
    let server = Server::builder(Reference).store(store).build();
    let site = Site::with(server, &EndpointSettings::default()).await;
    let ended = async || {
        let sessions = site.get("/sessions").await.json();
        let runs = site.get("/runs").await.json();
        [
            &sessions["sessions"][0]["ended_at"],
            &runs["runs"][0]["ended_at"],
        ]
        .map(Value::clone)
    };
    assert_eq!(ended().await, [Value::Null, Value::Null]);
    site.server.session(&"killed".into()).await.unwrap();
    let [session, run] = ended().await;
    assert!(run.is_string(), "{run}");
    assert_eq!(session, run);
}
