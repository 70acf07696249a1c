//! Runs and what they cost.

use acp_sdk::v1::{Cost, StopReason, UsageUpdate};
use acp_server::{Handler, HandlerError, HandlerResult, Turn};

use super::*;

/// Reports what the prompt says: dollars and tokens.
struct Spender;

impl Handler for Spender {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let said = turn.prompt_text();
        let mut words = said.split(' ');
        let amount: f64 = words.next().unwrap_or_default().parse().unwrap_or(0.0);
        let tokens: u64 = words.next().unwrap_or_default().parse().unwrap_or(0);
        let currency = words.next().unwrap_or("USD");
        let usage = UsageUpdate::new(tokens, 200_000u64).with_cost(Cost::new(amount, currency));
        turn.report_usage(usage).await?;
        turn.send_text("Spent.").await?;
        match words.next() {
            Some(reason) => Err(reason.into()),
            None => Ok(StopReason::EndTurn),
        }
    }
}

async fn spent(said: &[&str]) -> Site {
    let site = Site::with(Server::new(Spender), &Settings::default()).await;
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
    assert_eq!(
        (&cost["total_runs"], &cost["total_tokens"]),
        (&json!(4), &json!(3800))
    );
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
    assert_eq!(newest["input_tokens"], Value::Null);
    assert_eq!(cost["filters"], json!({ "since": null, "model": null }));

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
    assert_eq!(run["run_id"], run["session_id"]);
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
    let site = Site::with(Server::new(Counting), &Settings::default()).await;
    for said in [&["100", "1000"][..], &["10"]] {
        let id = site.create().await.id;
        for said in said {
            site.talk(&id, said).await;
        }
    }
    let cost = site.get("/runs/cost").await.json();
    assert_eq!(cost["total_tokens"], 1_110 + 21);
    let run = &cost["by_run"][1];
    let counts = |value: &Value| {
        ["input_tokens", "output_tokens", "cache_tokens"].map(|name| value[name].as_u64())
    };
    assert_eq!(counts(run), [Some(1_100), Some(8), Some(6)]);
    assert_eq!(run["total_tokens"], 1_114);
    assert_eq!(counts(&cost["totals"]), [Some(1_110), Some(12), Some(9)]);
    let id = run["run_id"].as_str().unwrap();
    let mut stream = site
        .stream(&format!("/session/{id}/events"), Some("0"))
        .await;
    let result = loop {
        let frame = stream.next().await.unwrap();
        if frame.event == "result" {
            break frame.data;
        }
    };
    assert_eq!(result["usage"]["inputTokens"], 100);
}

#[tokio::test]
async fn a_run_is_a_session_with_the_cost_that_it_reported_last() {
    let site = spent(&["0.01 100"]).await;
    let id = site.get("/session").await.json()["sessions"][0]
        .as_str()
        .unwrap()
        .to_owned();
    // Twice, so that the second sum goes on where the first one ended.
    near(&site.get("/runs/cost").await.json()["total_cost"], 0.01);
    site.talk(&id, "0.05 300").await;
    let cost = site.get("/runs/cost").await.json();
    near(&cost["total_cost"], 0.05);
    assert_eq!(
        (&cost["total_tokens"], &cost["total_runs"]),
        (&json!(300), &json!(1))
    );
    let run = &site.get("/runs").await.json()["runs"][0];
    assert_eq!((&run["turns"], &run["steps"]), (&json!(2), &json!(2)));
    // Another currency is no dollar.
    site.talk(&id, "7 300 EUR").await;
    let run = &site.get("/runs").await.json()["runs"][0];
    assert_eq!(run["cost_usd"], Value::Null);
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
