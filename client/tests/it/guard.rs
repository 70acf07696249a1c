//! One guard for everything: each effect under each policy, asked for by the agent, by the client, or by
//! nobody. The agent is hostile: it tries everything.

mod policies;

use std::path::Path;
use std::sync::{Arc, Mutex};

use acp_client::{
    Asker, Client, ClientBuilder, Decision, Event, PermissionRequest, Permissions, Policy, Rule,
    Rules, Session, Turn, Workspace,
};
use acp_sdk::v1::StopReason;
use serde_json::{Value, json};

use crate::agent::{Raw, within};

/// A person who gives one answer, and what was asked.
#[derive(Clone)]
struct Person {
    answer: Decision,
    asked: Arc<Mutex<Vec<PermissionRequest>>>,
    /// Whether the person reads the events before a question.
    reads: bool,
}

impl Person {
    fn who(answer: Decision) -> Self {
        Self {
            answer,
            asked: Arc::default(),
            reads: false,
        }
    }

    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .map(|question| question.title.clone().unwrap())
            .collect()
    }
}

impl Permissions for Person {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        if question.is_read_by_client() {
            return Decision::AllowOnce;
        }
        self.asked.lock().unwrap().push(question.clone());
        self.answer.clone()
    }

    fn in_order(&self) -> bool {
        self.reads
    }

    fn asks_person(&self) -> bool {
        true
    }
}

/// An agent in a turn of its client, in a directory with the files `file` and `.env`.
struct Case {
    raw: Raw,
    turn: Turn,
    prompt: Value,
    dir: tempfile::TempDir,
    _client: Client,
    _session: Session,
    calls: usize,
}

impl Case {
    async fn new(builder: ClientBuilder) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "old").unwrap();
        std::fs::write(dir.path().join(".env"), "secret").unwrap();
        let (client, mut raw) = Raw::connect(builder).await;
        let (session, ()) = tokio::join!(
            client.new_session(dir.path()),
            raw.answer("session/new", json!({"sessionId": "s"}))
        );
        let session = session.unwrap();
        let turn = session.prompt("hi").await.unwrap();
        let prompt = raw.next().await;
        Self {
            raw,
            turn,
            prompt,
            dir,
            _client: client,
            _session: session,
            calls: 0,
        }
    }

    async fn with(permissions: impl Permissions) -> Self {
        let builder = Client::builder().workspace(Workspace::new());
        Self::new(builder.permissions(permissions)).await
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Sends a request and returns its result, or the message of its error.
    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.calls += 1;
        call(&mut self.raw, self.calls, method, params).await
    }

    async fn read(&mut self, name: &str) -> Result<Value, String> {
        let params = json!({"sessionId": "s", "path": self.path(name)});
        self.ask("fs/read_text_file", params).await
    }

    async fn write(&mut self, name: &str) -> Result<Value, String> {
        let params = json!({"sessionId": "s", "path": self.path(name), "content": "new"});
        let answer = self.ask("fs/write_text_file", params).await;
        let is_written = std::fs::read_to_string(self.path(name)).is_ok_and(|text| text == "new");
        assert_eq!(is_written, answer.is_ok(), "the answer says what was done");
        answer
    }

    /// Runs a command that leaves a file behind.
    async fn run(&mut self, words: &[&str]) -> Result<Value, String> {
        let params = json!({"sessionId": "s", "command": words[0], "args": &words[1..]});
        let answer = self.ask("terminal/create", params).await?;
        let terminal = json!({"sessionId": "s", "terminalId": answer["terminalId"]});
        self.ask("terminal/wait_for_exit", terminal.clone()).await?;
        self.ask("terminal/release", terminal).await
    }

    /// Asks for permission for a tool call, and returns whether it was allowed.
    async fn permission(&mut self, id: &str, call: Value) -> bool {
        let mut call = call;
        call["toolCallId"] = json!(id);
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"}]);
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        let answer = self
            .ask("session/request_permission", params)
            .await
            .unwrap();
        answer["outcome"]["optionId"] == "yes"
    }

    /// Reports a tool call that has completed.
    async fn report(&mut self, id: &str, call: Value) {
        let mut update = call;
        update["sessionUpdate"] = json!("tool_call");
        update["toolCallId"] = json!(id);
        update["status"] = json!("completed");
        let params = json!({"sessionId": "s", "update": update});
        let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        self.raw.send(message).await;
    }

    /// Ends the turn as the agent, and returns its outcome.
    async fn end(mut self, reason: &str) -> acp_client::Outcome {
        let result = json!({"stopReason": reason});
        let message = json!({"jsonrpc": "2.0", "id": self.prompt["id"], "result": result});
        self.raw.send(message).await;
        within(self.turn.outcome()).await.unwrap()
    }
}

async fn call(raw: &mut Raw, id: usize, method: &str, params: Value) -> Result<Value, String> {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    raw.send(message).await;
    let mut answer = raw.next().await;
    assert_eq!(answer["id"], id, "{answer}");
    match answer["error"]["message"].as_str() {
        Some(message) => Err(message.to_owned()),
        None => Ok(answer["result"].take()),
    }
}

fn edit(path: &Path) -> Value {
    json!({"title": "Edit", "kind": "edit", "locations": [{"path": path}]})
}

fn execute(line: &str) -> Value {
    json!({"title": "Run", "kind": "execute", "rawInput": {"command": line}})
}

fn no_secrets() -> Rules {
    let deny = Rule::deny().path("**/.env").unwrap();
    Rules::new().rule(deny).fallback(Policy::ApproveAll)
}

fn only_tests() -> Rules {
    Rules::new().rule(Rule::allow().command("touch tested").unwrap())
}

#[tokio::test]
async fn without_a_word_of_the_program_nothing_is_served() {
    let mut case = Case::new(Client::builder().workspace(Workspace::new())).await;
    let refused = case.read("file").await.unwrap_err();
    assert!(
        refused.contains("file is not allowed: the client's policy rejects everything"),
        "{refused}"
    );
    assert!(case.write("file").await.is_err());
    let refused = case.run(&["touch", "a b"]).await.unwrap_err();
    assert!(
        refused.contains("running touch 'a b' is not allowed"),
        "{refused}"
    );
    // Whoever means it says so.
    let mut case = Case::new(Client::builder().workspace(Workspace::unguarded())).await;
    assert!(case.read("file").await.is_ok() && case.write("file").await.is_ok());
    assert!(case.run(&["touch", "other"]).await.is_ok());
    // The calls that consist of it need no permission either.
    case.report("1", edit(Path::new(&case.path("file")))).await;
    case.report("2", execute("touch other")).await;
    assert_eq!(case.read("file").await.unwrap()["content"], "new");
    assert!(case.end("end_turn").await.not_allowed.is_empty());
}

#[tokio::test]
async fn the_answer_says_which_rule_refused_it() {
    let mut case = Case::with(no_secrets()).await;
    let refused = case.read(".env").await.unwrap_err();
    assert!(refused.contains("rule 1 of the program"), "{refused}");
    let mut shown = Vec::new();
    while let Some(event) = case.turn.next_ready() {
        if let Event::Permission(answered) = event.event {
            assert_eq!(answered.question.asker, Asker::Client);
            shown.push(answered.question.title.unwrap());
        }
    }
    assert_eq!(shown, [format!("Read {}", case.path(".env"))]);
}

/// A person who allowed a tool call is not asked again for what belongs to it.
#[tokio::test]
async fn people_are_asked_once() {
    let person = Person::who(Decision::AllowOnce);
    let mut case = Case::with(person.clone()).await;
    let file = case.path("file");
    assert!(case.permission("1", edit(Path::new(&file))).await);
    assert!(case.write("file").await.is_ok());
    assert!(case.permission("2", execute("touch tested")).await);
    assert!(case.run(&["touch", "tested"]).await.is_ok());
    let line = "touch tested && touch other";
    assert!(case.permission("3", execute(line)).await);
    assert!(case.run(&["sh", "-c", line]).await.is_ok());
    assert_eq!(person.asked(), ["Edit", "Run", "Run"]);

    // Once each; another file, another command, another directory and another turn are others.
    assert!(case.write("file").await.is_ok());
    assert_eq!(person.asked().len(), 4);
    for words in [
        &["touch", "tested"][..],
        &["touch", "else"],
        &["sh", "-c", "touch tested; rm x"],
    ] {
        let before = person.asked().len();
        assert!(case.run(words).await.is_ok());
        assert_eq!(person.asked().len(), before + 1, "{words:?}");
    }
    let before = person.asked().len();
    assert!(case.permission("4", execute("touch tested")).await);
    std::fs::create_dir(case.dir.path().join("sub")).unwrap();
    let elsewhere = json!({"sessionId": "s", "command": "touch", "args": ["tested"],
        "cwd": case.path("sub")});
    assert!(case.ask("terminal/create", elsewhere).await.is_ok());
    let variables = json!({"sessionId": "s", "command": "touch", "args": ["tested"],
        "env": [{"name": "LD_PRELOAD", "value": "x"}]});
    assert!(case.ask("terminal/create", variables).await.is_ok());
    assert_eq!(person.asked().len(), before + 3);
}

#[tokio::test]
async fn what_is_quoted_otherwise_is_another_command() {
    let person = Person::who(Decision::AllowOnce);
    let mut case = Case::with(person.clone()).await;
    assert!(case.permission("1", execute("echo '$(touch other)'")).await);
    assert!(
        case.run(&["sh", "-c", "echo \"$(touch other)\""])
            .await
            .is_ok()
    );
    assert_eq!(person.asked().len(), 2);
}

/// One answer is enough for all changes of a session, as far as the rules allow them.
#[tokio::test]
async fn all_changes_of_a_session_are_allowed_by_one_answer() {
    let person = Person::who(Decision::Option("session".into()));
    let deny = Rule::deny().path("**/.env").unwrap();
    let mut case = Case::with(Rules::new().rule(deny).fallback(person.clone())).await;
    assert!(case.write("file").await.is_ok());
    assert!(case.write("other").await.is_ok());
    assert_eq!(person.asked().len(), 1);
    assert!(case.write(".env").await.is_err());
    assert_eq!(person.asked().len(), 1);
    assert!(
        case.run(&["touch", "other"]).await.is_err(),
        "no such option"
    );
    assert_eq!(person.asked().len(), 2);
}

/// An approval does not outlive its tool call, and one for reading covers no change.
#[tokio::test]
async fn an_approval_covers_nothing_else() {
    let person = Person::who(Decision::AllowOnce);
    let mut case = Case::with(person.clone()).await;
    let file = case.path("file");
    let read = json!({"title": "Read", "kind": "read", "locations": [{"path": file}]});
    assert!(case.permission("1", read).await);
    assert!(case.write("file").await.is_ok());
    assert_eq!(person.asked().len(), 2);
    assert!(case.permission("2", edit(Path::new(&file))).await);
    case.report("2", json!({"title": "Edit"})).await;
    assert!(case.write("file").await.is_ok());
    assert_eq!(person.asked().len(), 4);
}

/// A person sees what is written, with what was there before.
#[tokio::test]
async fn a_person_sees_the_whole_change() {
    let mut person = Person::who(Decision::Reject);
    person.reads = true;
    let mut case = Case::with(person.clone()).await;
    for (id, name) in ["file", "created"].into_iter().enumerate() {
        let params = json!({"sessionId": "s", "path": case.path(name), "content": "new"});
        let (answer, event) = tokio::join!(
            call(&mut case.raw, id, "fs/write_text_file", params),
            case.turn.next()
        );
        assert!(answer.is_err() && matches!(event.unwrap().event, Event::Permission(_)));
    }
    let asked = person.asked.lock().unwrap();
    let shown: Vec<_> = asked
        .iter()
        .map(|question| serde_json::to_value(&question.request.tool_call.content).unwrap())
        .collect();
    assert_eq!(shown[0][0]["oldText"], "old");
    assert_eq!(shown[0][0]["newText"], "new");
    assert_eq!(shown[1][0]["oldText"], Value::Null);
}

/// An agent that asks nobody: its turn ends.
#[tokio::test]
async fn a_tool_call_that_nobody_allowed_ends_the_turn() {
    let changes = [
        edit(Path::new("/p/a")),
        json!({"title": "Remove", "kind": "delete", "locations": [{"path": "/p/a"}]}),
        json!({"title": "Rename", "kind": "move", "locations": [{"path": "/p/a"}]}),
        execute("rm -rf /"),
        json!({"title": "Send", "kind": "fetch"}),
    ];
    for policy in [Policy::DenyAll, Policy::ApproveReads] {
        for call in &changes {
            let mut case = Case::with(policy).await;
            case.report("c", call.clone()).await;
            let cancel = case.raw.next().await;
            assert_eq!(cancel["method"], "session/cancel", "{call}");
            let outcome = case.end("cancelled").await;
            assert_eq!(outcome.stop_reason, StopReason::Cancelled);
            let title = call["title"].as_str().unwrap();
            assert!(outcome.not_allowed[0].starts_with(title), "{outcome:?}");
        }
    }
    let others = [
        json!({"title": "Look", "kind": "read", "locations": [{"path": "/p/a"}]}),
        json!({"title": "Think", "kind": "think"}),
        json!({"title": "Tick off", "kind": "other"}),
        json!({"title": "Anything"}),
    ];
    let mut case = Case::with(Policy::DenyAll).await;
    for (id, call) in others.into_iter().enumerate() {
        case.report(&id.to_string(), call).await;
    }
    assert!(case.read("file").await.is_err(), "the turn goes on");
    assert!(case.end("end_turn").await.not_allowed.is_empty());
}

/// The outcome follows the decision, also where the agent ends its turn at once, and where a person
/// sees the events first.
#[tokio::test]
async fn an_agent_cannot_be_faster_than_the_decision() {
    outcome_follows_decision().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_agent_cannot_be_faster_on_four_workers() {
    for _ in 0..20 {
        outcome_follows_decision().await;
    }
}

async fn outcome_follows_decision() {
    let mut case = Case::with(Policy::DenyAll).await;
    case.report("c", execute("touch other")).await;
    let outcome = case.end("end_turn").await;
    assert_eq!(outcome.stop_reason, StopReason::EndTurn);
    assert_eq!(outcome.not_allowed.len(), 1);

    let mut person = Person::who(Decision::Reject);
    person.reads = true;
    let mut case = Case::with(person.clone()).await;
    case.report("c", execute("touch other")).await;
    assert_eq!(case.end("end_turn").await.not_allowed.len(), 1);
    assert_eq!(person.asked().len(), 1);
}

#[tokio::test]
async fn a_rejected_tool_call_that_is_done_all_the_same_ends_the_turn() {
    let mut case = Case::with(only_tests()).await;
    assert!(case.permission("good", execute("touch tested")).await);
    case.report("good", execute("touch tested")).await;
    assert!(!case.permission("bad", execute("touch other")).await);
    case.report("bad", execute("touch other")).await;
    assert_eq!(case.raw.next().await["method"], "session/cancel");
    assert_eq!(case.end("cancelled").await.not_allowed.len(), 1);
}

/// Rules decide afterwards, too; so does a person, who may let the turn go on.
#[tokio::test]
async fn what_was_done_unasked_is_decided_afterwards() {
    let mut case = Case::with(only_tests()).await;
    case.report("1", execute("touch tested")).await;
    case.report("2", execute("touch other")).await;
    assert_eq!(case.raw.next().await["method"], "session/cancel");
    let outcome = case.end("cancelled").await;
    assert_eq!(outcome.not_allowed.len(), 1, "{outcome:?}");

    let person = Person::who(Decision::Option("always".into()));
    let mut case = Case::with(person.clone()).await;
    case.report("1", execute("touch tested")).await;
    let told = within(async {
        loop {
            if let Event::Permission(answered) = case.turn.next().await.unwrap().event {
                return answered;
            }
        }
    })
    .await;
    assert_eq!(told.question.asker, Asker::Afterwards);
    case.report("2", execute("touch other")).await;
    assert!(case.read("file").await.is_ok());
    assert_eq!(person.asked().len(), 1, "always");
    assert!(case.end("end_turn").await.not_allowed.is_empty());
}

/// What the client served for a tool call was decided when it was served.
#[tokio::test]
async fn a_tool_call_that_consists_of_what_was_served_is_allowed() {
    let person = Person::who(Decision::AllowOnce);
    let mut case = Case::with(person.clone()).await;
    let file = case.path("file");
    assert!(case.write("file").await.is_ok());
    case.report("1", edit(Path::new(&file))).await;
    assert!(case.run(&["touch", "tested"]).await.is_ok());
    case.report("2", execute("touch tested")).await;
    assert!(case.run(&["sh", "-c", "true"]).await.is_ok());
    let terminal = json!([{"type": "terminal", "terminalId": "term-2"}]);
    case.report(
        "3",
        json!({"title": "Shell", "kind": "execute", "content": terminal}),
    )
    .await;
    assert!(case.read("file").await.is_ok());
    assert_eq!(person.asked().len(), 3);
    assert!(case.end("end_turn").await.not_allowed.is_empty());
}

/// However many calls an agent reports, the number of open questions is bounded: the agent waits.
#[tokio::test]
async fn a_flood_of_tool_calls_asks_no_more_than_a_few_questions() {
    #[derive(Clone, Default)]
    struct Nobody(Arc<Mutex<usize>>);
    impl Permissions for Nobody {
        async fn decide(&self, _: &PermissionRequest) -> Decision {
            *self.0.lock().unwrap() += 1;
            std::future::pending().await
        }
    }
    let nobody = Nobody::default();
    let mut case = Case::with(nobody.clone()).await;
    for id in 0..100 {
        case.report(&id.to_string(), execute("touch other")).await;
    }
    within(async {
        while *nobody.0.lock().unwrap() < 16 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    case.turn.cancel();
    assert_eq!(case.raw.next().await["method"], "session/cancel");
    case.end("cancelled").await;
    assert_eq!(*nobody.0.lock().unwrap(), 16);

    // Whoever allows everything is not in the way of many calls at once, and is told nothing of it.
    let mut case = Case::with(Policy::ApproveAll).await;
    for id in 0..100 {
        case.report(&id.to_string(), execute("touch other")).await;
    }
    assert!(case.read("file").await.is_ok());
    while let Some(event) = case.turn.next_ready() {
        assert!(!matches!(event.event, Event::Permission(_)), "{event:?}");
    }
    assert!(case.end("end_turn").await.not_allowed.is_empty());
}

/// Reading that was allowed is no excuse for a change under the same id.
#[tokio::test]
async fn a_call_that_was_allowed_to_read_has_not_been_allowed_to_change() {
    let mut case = Case::with(Policy::ApproveReads).await;
    assert!(
        case.permission("c", json!({"title": "Look", "kind": "read"}))
            .await
    );
    case.report("c", execute("touch other")).await;
    assert_eq!(case.end("end_turn").await.not_allowed.len(), 1);
}
