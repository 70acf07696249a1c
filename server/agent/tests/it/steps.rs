//! The loop between model and tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_agent::model::{Delta, ErrorKind, Message, ModelError, Price, Prices, Scripted, Tokens};
use acp_agent::{Agent, Call, Mode, Risk, Tool, ToolError, ToolOutcome};
use acp_sdk::v1::{SessionUpdate, StopReason, ToolCallStatus};
use acp_server::event::EventBody;
use acp_server::{Received, Session, SettingsChange};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Barrier;

use super::{User, blocks, model, outputs, prompt, server, text};

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn add() -> Tool {
    Tool::new("add", "Adds.", |add: Add, _: Call| async move {
        Ok((add.a + add.b).to_string())
    })
}

/// Returns the updates of a session.
async fn updates(session: &Session) -> Vec<SessionUpdate> {
    let (mut history, mut updates) = (session.history(), Vec::new());
    while let Some(received) = history.next().await.unwrap() {
        if let Received::Event(event) = received
            && let EventBody::Update(update) = event.body
        {
            updates.push(update);
        }
    }
    updates
}

#[tokio::test]
async fn a_tool_is_called_and_its_output_answers_the_model() {
    let (model, requests) = model([
        vec![
            text("I add."),
            Scripted::tool("add", json!({"a": 1, "b": 2})),
        ],
        vec![text("It is 3.")],
    ]);
    let agent = Agent::new(model).instructions("Be exact.").tool(add());
    let user = User::who("reject");
    let server = server(agent, &user).build();
    let session = server.create_session("/").await.unwrap();
    assert_eq!(prompt(&session, "1 + 2?").await, StopReason::EndTurn);

    assert_eq!(user.asked(), 0, "a tool that reads asks nobody");
    let requests = requests.lock().unwrap();
    assert_eq!(requests[0].instructions, "Be exact.");
    assert_eq!(requests[0].tools[0].name, "add");
    let [
        Message::User { .. },
        Message::Agent {
            text, tool_uses, ..
        },
        Message::Tools { results },
    ] = &requests[1].messages[..]
    else {
        panic!("{:?}", requests[1].messages);
    };
    assert_eq!(text, "I add.");
    assert_eq!(tool_uses[0].id, results[0].id);
    assert_eq!(results[0].output.text(), "3");
}

#[tokio::test]
async fn mistakes_of_the_model_are_outputs() {
    async fn panics(_: Add, _: Call) -> ToolOutcome<String> {
        panic!("a bug");
    }
    async fn fails(_: Add, _: Call) -> ToolOutcome<String> {
        Err(ToolError::failed("no luck"))
    }
    let numbers = json!({"a": 1, "b": 2});
    let (model, requests) = model([vec![
        Scripted::tool("subtract", numbers.clone()),
        Scripted::tool("add", json!({"a": "one"})),
        Scripted::tool("panics", numbers.clone()),
        Scripted::tool("fails", numbers),
    ]]);
    let agent = Agent::new(model)
        .tool(add())
        .tool(Tool::new("panics", "", panics))
        .tool(Tool::new("fails", "", fails));
    let server = server(agent, &User::who("allow")).build();
    let session = server.create_session("/").await.unwrap();
    assert_eq!(prompt(&session, "go").await, StopReason::EndTurn);
    let outputs = outputs(&requests);
    let expected = [
        "there is no tool `subtract`; there are: add",
        "do not fit",
        "a bug",
        "no luck",
    ];
    for (output, expected) in outputs.iter().zip(expected) {
        assert!(
            output.is_error && output.text().contains(expected),
            "{output:?}"
        );
    }
    assert_eq!(outputs.len(), 4);
}

#[tokio::test]
async fn the_calls_of_one_answer_run_side_by_side_and_return_in_order() {
    let barrier = Arc::new(Barrier::new(3));
    let meet = Tool::new("add", "Adds.", move |add: Add, _: Call| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            Ok(add.a.to_string())
        }
    });
    let calls = (0..3).map(|a| Scripted::tool("add", json!({"a": a, "b": 0})));
    let (model, requests) = model([calls.collect()]);
    let server = server(Agent::new(model).tool(meet), &User::who("allow")).build();
    let session = server.create_session("/").await.unwrap();
    assert_eq!(prompt(&session, "go").await, StopReason::EndTurn);
    let texts: Vec<_> = outputs(&requests)
        .iter()
        .map(acp_agent::Output::text)
        .collect();
    assert_eq!(texts, ["0", "1", "2"]);
}

#[tokio::test]
async fn the_user_decides_by_mode_and_risk() {
    for (mode, risk, option, asked, runs) in [
        (Mode::Ask, Risk::Reads, "reject", 0, true),
        (Mode::Ask, Risk::Edits, "allow", 1, true),
        (Mode::Ask, Risk::Acts, "reject", 1, false),
        (Mode::Code, Risk::Edits, "reject", 0, true),
        (Mode::Code, Risk::Acts, "reject", 1, false),
        (Mode::Plan, Risk::Reads, "reject", 0, true),
        (Mode::Plan, Risk::Edits, "allow", 0, false),
        (Mode::Plan, Risk::Acts, "allow", 0, false),
    ] {
        let (model, requests) = model([vec![Scripted::tool("add", json!({"a": 1, "b": 2}))]]);
        let user = User::who(option);
        let server = server(Agent::new(model).tool(add().risk(risk)).mode(mode), &user).build();
        let session = server.create_session("/").await.unwrap();
        assert_eq!(prompt(&session, "go").await, StopReason::EndTurn);
        let case = format!("{mode:?} {risk:?} {option}");
        assert_eq!(user.asked(), asked, "{case}");
        assert_eq!(!outputs(&requests)[0].is_error, runs, "{case}");
        let offered = !requests.lock().unwrap()[0].tools.is_empty();
        assert_eq!(offered, mode != Mode::Plan || risk == Risk::Reads, "{case}");
    }
}

#[tokio::test]
async fn the_mode_of_the_session_counts() {
    let (model, requests) = model([vec![text("hello")]]);
    let agent = Agent::new(model).tool(add().risk(Risk::Acts));
    let server = server(agent, &User::who("allow")).build();
    let session = server.create_session("/").await.unwrap();
    let plan = SettingsChange::Mode("plan".into());
    session.change_settings(plan).await.unwrap();
    prompt(&session, "go").await;
    assert!(requests.lock().unwrap()[0].tools.is_empty());
}

#[tokio::test]
async fn a_turn_has_as_many_steps_as_it_may() {
    let calls = Scripted::new(|_, _| Ok(vec![Scripted::tool("add", json!({"a": 1, "b": 2}))]));
    let agent = Agent::new(calls).tool(add()).max_steps(3);
    let server = server(agent, &User::who("allow")).build();
    let session = server.create_session("/").await.unwrap();
    assert_eq!(prompt(&session, "go").await, StopReason::MaxTurnRequests);
    let calls = updates(&session).await.into_iter();
    let calls = calls.filter(|update| matches!(update, SessionUpdate::ToolCall(_)));
    assert_eq!(calls.count(), 3);
}

#[tokio::test]
async fn a_cancelled_tool_is_interrupted_and_the_session_goes_on() {
    let (model, requests) = model([
        vec![Scripted::tool("wait", json!({"a": 1, "b": 2}))],
        vec![text("hello again")],
    ]);
    let began = Arc::new(tokio::sync::Notify::new());
    let notify = began.clone();
    let wait = Tool::new("wait", "", move |_: Add, _: Call| {
        notify.notify_one();
        std::future::pending::<ToolOutcome<String>>()
    });
    let server = server(Agent::new(model).tool(wait), &User::who("allow")).build();
    let session = server.create_session("/").await.unwrap();
    let running = session.prompt(blocks("go"));
    let running = running.unwrap();
    began.notified().await;
    running.cancel();
    assert_eq!(running.stop_reason().await.unwrap(), StopReason::Cancelled);
    let failed = updates(&session)
        .await
        .into_iter()
        .any(|update| match update {
            SessionUpdate::ToolCallUpdate(update) => update.status == Some(ToolCallStatus::Failed),
            _ => false,
        });
    assert!(failed, "the call has ended");
    assert_eq!(
        prompt(&session, "are you there?").await,
        StopReason::EndTurn
    );
    let output = &outputs(&requests)[0];
    assert!(
        output.is_error && output.text().contains("Interrupted"),
        "{output:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_end_is_given_up() {
    let (model, requests) = model([vec![Scripted::tool("wait", json!({"a": 1, "b": 2}))]]);
    let wait = Tool::new("wait", "", |_: Add, _: Call| {
        std::future::pending::<ToolOutcome<String>>()
    });
    let wait = wait.timeout(Duration::from_secs(5));
    let server = server(Agent::new(model).tool(wait), &User::who("allow")).build();
    let session = server.create_session("/").await.unwrap();
    assert_eq!(prompt(&session, "go").await, StopReason::EndTurn);
    assert!(outputs(&requests)[0].text().contains("within 5 s"));
}

#[tokio::test(start_paused = true)]
async fn a_temporary_failure_is_tried_again_and_a_lasting_one_named() {
    let tried = Arc::new(AtomicUsize::new(0));
    let count = tried.clone();
    let model = Scripted::new(move |number, _| {
        count.fetch_add(1, Ordering::Relaxed);
        match number {
            0 | 1 => Err(ModelError::new("m", ErrorKind::Unavailable, "overloaded")),
            2 => Ok(vec![text("hello")]),
            _ => Err(ModelError::new("m", ErrorKind::Credentials, "no key")),
        }
    });
    let server = server(Agent::new(model), &User::who("allow")).build();
    let session = server.create_session("/").await.unwrap();
    assert_eq!(prompt(&session, "go").await, StopReason::EndTurn);
    assert_eq!(tried.load(Ordering::Relaxed), 3);
    let failed = session.prompt(blocks("again"));
    let error = failed.unwrap().stop_reason().await.unwrap_err().to_string();
    assert!(
        error.contains("the model m refused the credentials: no key"),
        "{error}"
    );
    assert_eq!(
        tried.load(Ordering::Relaxed),
        4,
        "a lasting failure is not tried again"
    );
}

#[tokio::test]
async fn tokens_and_cost_are_reported_and_add_up() {
    let tokens = Delta::Tokens(Tokens {
        input: 1000,
        output: 100,
        ..Tokens::default()
    });
    let (model, _) = model([vec![tokens.clone(), text("one")], vec![tokens, text("two")]]);
    let price = Price {
        input: 1.0,
        output: 10.0,
        cached: None,
        currency: "USD".to_owned(),
    };
    let prices = Prices([("scripted".to_owned(), price)].into());
    let server = server(Agent::new(model).prices(prices), &User::who("allow")).build();
    let session = server.create_session("/").await.unwrap();
    prompt(&session, "one").await;
    prompt(&session, "two").await;
    let usages = updates(&session)
        .await
        .into_iter()
        .filter_map(|update| match update {
            SessionUpdate::UsageUpdate(usage) => {
                Some((usage.used, usage.cost.map(|cost| cost.amount)))
            }
            _ => None,
        });
    let usages: Vec<_> = usages.collect();
    assert_eq!(usages, [(1100, Some(0.002)), (1100, Some(0.004))]);
}

#[tokio::test]
async fn a_long_conversation_is_compacted_and_goes_on() {
    let tokens = |input| {
        Delta::Tokens(Tokens {
            input,
            ..Tokens::default()
        })
    };
    let (model, requests) = model([
        vec![tokens(900), text("a long story")],
        vec![text("They told a story.")],
        vec![text("another one")],
    ]);
    let agent = Agent::new(model.with_context_window(1000));
    let server = server(agent, &User::who("allow")).build();
    let session = server.create_session("/").await.unwrap();
    prompt(&session, "tell me").await;
    prompt(&session, "another").await;
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 3);
    let said = |message: &Message| match message {
        Message::User { content } => acp_server::text_of(content),
        other => format!("{other:?}"),
    };
    let messages: Vec<_> = requests[2].messages.iter().map(said).collect();
    let [summary, newest] = &messages[..] else {
        panic!("{messages:?}");
    };
    assert!(summary.contains("They told a story."), "{summary}");
    assert_eq!(newest, "another");
}

#[tokio::test]
async fn a_prompt_limits_its_turn() {
    let (model, requests) =
        model((0..5).map(|_| vec![Scripted::tool("add", json!({"a": 1, "b": 2}))]));
    let other = Tool::new("other", "", |_: Add, _: Call| async { Ok("") });
    let server = server(
        Agent::new(model).tool(add()).tool(other),
        &User::who("allow"),
    )
    .build();
    let told = server.info().tools.clone().unwrap_or_default();
    let told: Vec<_> = told.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(told, ["add", "other"]);
    let session = server.create_session("/").await.unwrap();
    let limits = json!({"maxSteps": 2, "allowedTools": ["add"]});
    let limits = acp_sdk::Meta::new().with("acp-sdk", &limits);
    let prompt = session.try_prompt(blocks("go"), Some(limits)).unwrap();
    assert_eq!(
        prompt.stop_reason().await.unwrap(),
        StopReason::MaxTurnRequests
    );
    let requests = requests.lock().unwrap();
    assert_eq!((requests.len(), requests[0].tools.len()), (2, 1));
}

#[tokio::test]
async fn a_turn_has_as_many_tokens_as_it_may() {
    let tokens = Delta::Tokens(Tokens {
        input: 60,
        ..Tokens::default()
    });
    let add_again = || {
        vec![
            tokens.clone(),
            Scripted::tool("add", json!({"a": 1, "b": 2})),
        ]
    };
    let (model, requests) = model((0..5).map(|_| add_again()));
    let agent = Agent::new(model).tool(add()).max_turn_tokens(100);
    let server = server(agent, &User::who("allow")).build();
    let session = server.create_session("/").await.unwrap();
    assert_eq!(prompt(&session, "go").await, StopReason::MaxTokens);
    assert_eq!(requests.lock().unwrap().len(), 2);
}
