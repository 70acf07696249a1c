//! The tools for files, search and commands, on this machine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_agent::model::Scripted;
use acp_agent::{Agent, Output, Tool, tools};
use acp_sdk::v1::{
    Client, ClientCapabilities, ClientContext, FileSystemCapabilities, InitializeRequest,
    NewSessionRequest, PromptRequest, ProtocolVersion, ReadTextFileRequest, ReadTextFileResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionNotification, WriteTextFileRequest, WriteTextFileResponse,
};
use acp_server::Server;
use serde_json::{Value, json};

use super::{User, model, outputs, prompt, server};

/// Calls tools one after the other in a folder with some files, and returns what the model receives.
async fn call(user: &User, calls: &[(&str, Value)]) -> (tempfile::TempDir, Vec<Output>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/lib.rs"), "fn main() {}\n").unwrap();
    std::fs::write(folder.path().join(".gitignore"), "target\n").unwrap();
    std::fs::create_dir(folder.path().join("target")).unwrap();
    std::fs::write(folder.path().join("target/x.rs"), "fn main() {}\n").unwrap();
    let steps = calls
        .iter()
        .map(|(name, arguments)| vec![Scripted::tool(name, arguments.clone())]);
    let (model, requests) = model(steps);
    let server = server(Agent::new(model).tools(tools::all()), user).build();
    let session = server
        .create_session(folder.path().to_str().unwrap())
        .await
        .unwrap();
    prompt(&session, "go").await;
    server.shutdown().await;
    (folder, outputs(&requests))
}

#[tokio::test]
async fn files_are_read_written_and_edited() {
    let user = User::who("allow");
    let (folder, outputs) = call(
        &user,
        &[
            ("read", json!({"path": "a.txt", "line": 2, "limit": 1})),
            (
                "edit",
                json!({"path": "a.txt", "old_text": "two", "new_text": "2"}),
            ),
            ("write", json!({"path": "b.txt", "content": "new"})),
            ("read", json!({"path": "missing.txt"})),
            ("read", json!({"path": "../../etc/passwd"})),
        ],
    )
    .await;
    assert_eq!(outputs[0].text(), "two\n");
    let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("a.txt"), "one\n2\nthree\n");
    assert_eq!(read("b.txt"), "new");
    assert_eq!(user.asked(), 2);
    assert!(outputs[3].is_error && outputs[4].is_error, "{outputs:?}");
}

#[tokio::test]
async fn what_the_user_does_not_allow_changes_nothing() {
    let user = User::who("reject");
    let (folder, outputs) = call(
        &user,
        &[
            ("write", json!({"path": "a.txt", "content": "new"})),
            ("shell", json!({"command": "touch made"})),
        ],
    )
    .await;
    let text = std::fs::read_to_string(folder.path().join("a.txt")).unwrap();
    assert_eq!(text, "one\ntwo\nthree\n");
    assert!(!folder.path().join("made").exists());
    for output in outputs {
        assert!(
            output.is_error && output.text().contains("does not allow"),
            "{output:?}"
        );
    }
}

#[tokio::test]
async fn files_and_lines_are_found_without_those_that_are_ignored() {
    let (_, outputs) = call(
        &User::who("reject"),
        &[
            ("list", json!({})),
            ("glob", json!({"pattern": "**/*.rs"})),
            ("grep", json!({"pattern": "t[wh]"})),
            ("grep", json!({"pattern": "main", "glob": "*.rs"})),
            ("grep", json!({"pattern": "("})),
            ("list", json!({"path": "/"})),
            ("glob", json!({"pattern": "*.none"})),
        ],
    )
    .await;
    let texts: Vec<_> = outputs.iter().map(Output::text).collect();
    assert_eq!(texts[0], ".gitignore\na.txt\nsrc/\ntarget/");
    assert_eq!(texts[1], "src/lib.rs");
    assert_eq!(texts[2], "a.txt:2:two\na.txt:3:three");
    assert_eq!(texts[3], "src/lib.rs:1:fn main() {}");
    assert!(outputs[4].is_error && outputs[5].is_error, "{texts:?}");
    assert_eq!(texts[6], "Nothing was found.");
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_returns_its_output_and_how_it_ended() {
    let (_, outputs) = call(
        &User::who("allow"),
        &[
            ("shell", json!({"command": "cat a.txt | head -1"})),
            ("shell", json!({"command": "echo bad >&2; exit 3"})),
            (
                "shell",
                json!({"command": "echo begun; sleep 60", "timeout": 1}),
            ),
        ],
    )
    .await;
    assert_eq!(outputs[0].text(), "one\n\n[exit code 0]");
    assert!(outputs[1].is_error && outputs[1].text().contains("bad\n\n[exit code 3]"));
    assert!(
        outputs[2].text().contains("killed after 1 s"),
        "{:?}",
        outputs[2]
    );
}

#[tokio::test]
async fn a_question_needs_a_client_that_asks_it() {
    let (_, outputs) = call(
        &User::who("allow"),
        &[("ask", json!({"question": "Which?"}))],
    )
    .await;
    assert!(outputs[0].text().contains("cannot ask"), "{outputs:?}");
}

/// Edits the file, then allows what it is asked.
#[derive(Clone, Debug)]
struct Hasty(std::path::PathBuf);

impl acp_server::DecidePermissions for Hasty {
    fn decide<'a>(
        &'a self,
        session: &'a acp_server::Session,
        request: &'a acp_sdk::v1::RequestPermissionRequest,
    ) -> std::pin::Pin<Box<dyn Future<Output = Option<acp_server::DecidedPermission>> + Send + 'a>>
    {
        std::fs::write(&self.0, "mine\n").unwrap();
        Box::pin(async {
            let user = User::who("allow");
            acp_server::DecidePermissions::decide(&user, session, request).await
        })
    }
}

#[tokio::test]
async fn a_file_that_changes_while_the_user_is_asked_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    std::fs::write(&path, "one\n").unwrap();
    let edit = json!({"path": "a.txt", "old_text": "one", "new_text": "two"});
    let (model, requests) = model([vec![Scripted::tool("edit", edit)]]);
    let agent = Agent::new(model).tools(tools::all());
    let server = server(agent, &User::who("allow"))
        .permissions(Hasty(path.clone()))
        .build();
    let session = server
        .create_session(folder.path().to_str().unwrap())
        .await
        .unwrap();
    prompt(&session, "go").await;
    assert!(
        outputs(&requests)[0]
            .text()
            .contains("somebody else has changed it")
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine\n");
}

/// An editor with one file, whose user thinks and whose disk writes for a while.
#[derive(Clone)]
struct SlowEditor(Arc<Mutex<String>>);

/// Longer than the tools of the test may run.
const A_WHILE: Duration = Duration::from_secs(60);

impl Client for SlowEditor {
    async fn session_update(
        &self,
        _: &ClientContext,
        _: SessionNotification,
    ) -> acp_sdk::HandlerResult<()> {
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &ClientContext,
        _: RequestPermissionRequest,
    ) -> acp_sdk::HandlerResult<RequestPermissionResponse> {
        tokio::time::sleep(A_WHILE).await;
        let allowed = SelectedPermissionOutcome::new("allow");
        Ok(RequestPermissionResponse::new(
            RequestPermissionOutcome::Selected(allowed),
        ))
    }

    async fn read_text_file(
        &self,
        _: &ClientContext,
        _: ReadTextFileRequest,
    ) -> acp_sdk::HandlerResult<ReadTextFileResponse> {
        Ok(ReadTextFileResponse::new(self.0.lock().unwrap().clone()))
    }

    async fn write_text_file(
        &self,
        _: &ClientContext,
        request: WriteTextFileRequest,
    ) -> acp_sdk::HandlerResult<WriteTextFileResponse> {
        tokio::time::sleep(A_WHILE / 3).await;
        *self.0.lock().unwrap() = request.content;
        Ok(WriteTextFileResponse::new())
    }
}

/// Returns the text of a file after one answer with edits of it, and what the model receives.
async fn edited(old: &str, edits: &[(&str, &str)]) -> (String, Vec<Output>) {
    let edit = |(old, new): &(&str, &str)| {
        let arguments = json!({"path": "a.txt", "old_text": old, "new_text": new});
        Scripted::tool("edit", arguments)
    };
    let (model, requests) = model([edits.iter().map(edit).collect()]);
    let short = |tool: Tool| tool.timeout(A_WHILE / 2);
    let agent = Agent::new(model).tools(tools::files().into_iter().map(short));
    let server = Server::new(agent);
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let _served = server.attach(tokio::io::split(theirs));
    let editor = SlowEditor(Arc::new(Mutex::new(old.to_owned())));
    let driver = acp_sdk::connect(editor.clone(), tokio::io::split(ours));
    let agent = driver.handle().clone();
    let client = tokio::spawn(async move { drop(driver.await) });
    let fs = FileSystemCapabilities::new()
        .with_read_text_file(true)
        .with_write_text_file(true);
    let offered = ClientCapabilities::new().with_fs(fs);
    let hello = InitializeRequest::new(ProtocolVersion::V1).with_client_capabilities(offered);
    agent.initialize(hello).await.unwrap();
    let created = agent.new_session(NewSessionRequest::new("/w", vec![]));
    let session = created.await.unwrap().session_id;
    let prompt = PromptRequest::new(session, super::blocks("go"));
    agent.prompt(prompt).await.unwrap();
    client.abort();
    let text = editor.0.lock().unwrap().clone();
    (text, outputs(&requests))
}

#[tokio::test(start_paused = true)]
async fn edits_of_one_file_in_one_answer_are_all_in_it() {
    let edits = [("one", "1"), ("two", "2"), ("three", "3")];
    let (text, outputs) = edited("one two three\n", &edits).await;
    assert_eq!(text, "1 2 3\n", "{outputs:?}");
    // The second one is made from what the first one has made.
    let (text, outputs) = edited("one\n", &[("one", "two"), ("two", "three"), ("one", "x")]).await;
    assert_eq!(text, "three\n");
    assert!(outputs[2].text().contains("not in a.txt"), "{outputs:?}");
}
