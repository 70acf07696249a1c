//! Recipes for editors and other clients.

use std::fs;
use std::time::Duration;

use acp_client::review::{Snapshots, UndoStack};
use acp_client::{Client, Error, Workspace};
use acp_cookbook::*;
use acp_proxy::BridgeCommand;
use acp_reference_agent::Reference;
use acp_sdk::ErrorCode;
use acp_sdk::v1::{Cost, NewSessionRequest, StopReason, UsageUpdate};
use acp_server::{Handler, HandlerResult, Server, Turn};
use tokio::sync::watch;

use crate::support::{allowing, both_runtimes, connect, process, say};

/// Runs the command of its prompt.
struct Runner;

impl Handler for Runner {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let line = turn.prompt_text();
        let mut words = line.split(' ');
        let ran = turn.run_command(words.next().unwrap(), words).await?;
        turn.send_text(ran.map_or("refused", |_| "ran")).await?;
        Ok(StopReason::EndTurn)
    }
}

/// Costs more than it may, and works on until it is cancelled.
struct Dear;

impl Handler for Dear {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let usage = UsageUpdate::new(1u64, 2u64).with_cost(Cost::new(2.0, "EUR"));
        turn.report_usage(usage).await?;
        turn.cancelled().await;
        Ok(StopReason::Cancelled)
    }
}

both_runtimes! {
    async fn agents_call_a_tool_of_the_editor() {
        let server = Server::new(use_mcp_servers::ToolUser);
        let (look, looked_at) = watch::channel("/project/a.rs".into());
        // As `acp mcp-bridge`.
        let bridge = "exec 3<>/dev/tcp/${0%:*}/${0#*:}; echo $ACP_BRIDGE_SECRET >&3; cat <&3 & exec cat >&3";
        let command = BridgeCommand::new("/bin/bash", ["-c", bridge]);
        let tools = editor_tool::tools(looked_at);
        let builder = editor_tool::for_all_sessions(Client::builder(), tools.clone(), command.clone());
        let client = connect(&server, builder).await;
        let session = client.new_session("/").await.unwrap();
        assert_eq!(say(&session, "go").await.text, "editor__open_file: /project/a.rs");
        look.send("/project/b.rs".into()).unwrap();
        assert_eq!(say(&session, "go").await.text, "editor__open_file: /project/b.rs");
        session.close().await.unwrap();

        let (builder, named) = editor_tool::for_one_session(Client::builder(), tools, command);
        let client = connect(&server, builder).await;
        let session = client.new_session("/").await.unwrap();
        assert_eq!(say(&session, "go").await.text, "");
        let request = NewSessionRequest::new("/", vec![named]);
        let session = client.new_session_with(request).await.unwrap();
        assert_eq!(say(&session, "go").await.text, "editor__open_file: /project/b.rs");
        session.close().await.unwrap();
    }

    async fn the_agent_reads_and_changes_unsaved_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(path("open.txt"), "saved").unwrap();
        fs::write(path("closed.txt"), "on disk").unwrap();
        let editor = unsaved_buffers::Editor::default();
        editor.0.lock().unwrap().insert(path("open.txt"), "not saved".to_owned());
        let client = connect(&Reference::server().build(), unsaved_buffers::client(editor.clone())).await;
        let session = client.new_session(folder.path()).await.unwrap();
        assert_eq!(say(&session, &format!("read {}", path("open.txt"))).await.text, "not saved");
        assert_eq!(say(&session, &format!("read {}", path("closed.txt"))).await.text, "on disk");
        say(&session, &format!("write {} new", path("open.txt"))).await;
        assert_eq!(editor.0.lock().unwrap()[&path("open.txt")], "new");
        assert_eq!(fs::read_to_string(path("open.txt")).unwrap(), "saved");
    }

    async fn rules_decide_about_files_and_commands() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        fs::create_dir_all(project.join("src")).unwrap();
        fs::write(project.join(".env"), "secret").unwrap();
        let rules = folder.path().join("rules.toml");
        fs::write(&rules, rule_file::RULES).unwrap();
        let client = connect(&Reference::server().build(), rule_file::client(&rules).unwrap()).await;
        let session = client.new_session(&project).await.unwrap();
        let at = |name: &str| project.join(name).to_str().unwrap().to_owned();
        say(&session, &format!("write {} fn", at("src/lib.rs"))).await;
        assert_eq!(fs::read_to_string(at("src/lib.rs")).unwrap(), "fn");
        for (refused, reason) in [
            (format!("read {}", at(".env")), "secrets"),
            (format!("write {} x", at("README.md")), "reading only"),
            ("terminal ls".to_owned(), "reading only"),
            ("terminal ls $HOME".to_owned(), "too little information"),
        ] {
            let turn = session.prompt(refused).await.unwrap();
            let error = turn.outcome().await.unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let client = connect(&Server::new(Runner), rule_file::client(&rules).unwrap()).await;
        let session = client.new_session(&project).await.unwrap();
        assert_eq!(say(&session, "git status --short").await.text, "ran");
        assert_eq!(say(&session, "git commit").await.text, "refused");
        fs::write(&rules, "[[rule]]\neffect = \"perhaps\"\n").unwrap();
        assert!(rule_file::client(&rules).unwrap_err().to_string().contains("perhaps"));
    }

    async fn a_picture_is_part_of_the_prompt() {
        let folder = tempfile::tempdir().unwrap();
        let picture = folder.path().join("pixel.png");
        fs::write(&picture, [0x89, b'P', b'N', b'G']).unwrap();
        let client = connect(&Reference::server().build(), Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        // The reference agent repeats what it is sent.
        let mut conversation = session.conversation();
        attach_a_picture::describe(&session, &picture).await.unwrap();
        let mut shown = String::new();
        while let Some(step) = conversation.next_ready() {
            shown += &format!("{:?}", step.event.event);
        }
        assert!(shown.contains("iVBORw=="), "{shown}");
        // An agent without pictures.
        let client = connect(&Server::new(show_a_plan::Planner), Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        let error = attach_a_picture::describe(&session, &picture).await.unwrap_err();
        assert!(error.to_string().contains("promptCapabilities.image"), "{error}");
    }

    async fn a_turn_is_cancelled_at_its_limits() {
        let client = connect(&Reference::server().build(), Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        let ask = async |text: &str, time: u64, budget| {
            limit_a_turn::ask(&session, text, Duration::from_millis(time), budget).await.unwrap().stop_reason
        };
        assert_eq!(ask("slow", 50, 1.0).await, StopReason::Cancelled);
        assert_eq!(ask("hello", 60_000, 1.0).await, StopReason::EndTurn);
        let client = connect(&Server::new(Dear), Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        let limit = Duration::from_secs(60);
        let outcome = limit_a_turn::ask(&session, "go", limit, 1.0).await.unwrap();
        assert_eq!(outcome.stop_reason, StopReason::Cancelled);
        assert_eq!(outcome.cost().unwrap().amount, 2.0);
    }

    async fn a_login_precedes_the_session_where_the_agent_demands_it() {
        let server = Server::new(log_in::Members);
        let client = connect(&server, Client::builder()).await;
        let session = log_in::open(&client, "/".as_ref(), |offered| offered[0].0.clone()).await.unwrap();
        assert_eq!(say(&session, "hi").await.stop_reason, StopReason::EndTurn);
        let client = connect(&server, Client::builder()).await;
        let wrong = log_in::open(&client, "/".as_ref(), |_| "unknown".to_owned()).await;
        assert_eq!(wrong.unwrap_err().code(), Some(ErrorCode::INVALID_PARAMS));
    }

    async fn sessions_of_a_project_are_listed_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let client = connect(&Reference::server().build(), Client::builder()).await;
        let mut sessions = Vec::new();
        for _ in 0..3 {
            let session = client.new_session(folder.path()).await.unwrap();
            say(&session, "hello").await;
            sessions.push(session);
        }
        let _other = client.new_session("/").await.unwrap();
        let deleted = list_and_delete_sessions::tidy(&client, folder.path(), 1).await.unwrap();
        assert_eq!(deleted.len(), 2);
        assert_eq!(client.list_sessions(None).await.unwrap().len(), 2);
        // An agent without a list.
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(acp_sdk::serve(migration_plain_agent::Plain, tokio::io::split(theirs)));
        let client = Client::builder().connect(tokio::io::split(ours)).await.unwrap();
        let error = list_and_delete_sessions::tidy(&client, folder.path(), 1).await.unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }

    async fn a_fork_knows_the_conversation_and_changes_nothing() {
        let server = Reference::server().build();
        let client = connect(&server, Client::builder()).await;
        let session = client.new_session("/").await.unwrap();
        say(&session, "one").await;
        let outcome = fork_a_session::what_if(&client, &session, "/".as_ref(), "two").await.unwrap();
        assert_eq!(outcome.text, "two");
        // The session itself has what it had.
        let text = say(&session, "three").await.text;
        assert_eq!(text, "three");
        let stored = server.session(session.id()).await.unwrap();
        let mut history = stored.history();
        let mut said = String::new();
        while let Some(event) = history.next().await.unwrap() {
            said += &format!("{event:?}");
        }
        assert!(said.contains("one") && said.contains("three") && !said.contains("two"));
    }

    async fn what_a_turn_changed_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        fs::write(&file, "old").unwrap();
        let client = connect(&Reference::server().build(), allowing().workspace(Workspace::new())).await;
        let session = client.new_session(folder.path()).await.unwrap();
        let mut turns = UndoStack::new(Snapshots::of(folder.path()).await.unwrap());
        let write = format!("write {} new", file.display());
        let undone = undo_a_turn::try_out(&session, &mut turns, &write, |_| false).await.unwrap();
        assert_eq!(undone, [std::path::PathBuf::from("a.txt")]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        let undone = undo_a_turn::try_out(&session, &mut turns, &write, |_| true).await.unwrap();
        assert!(undone.is_empty());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    async fn an_agent_is_a_tool() {
        let folder = tempfile::tempdir().unwrap();
        let tool = agent_as_a_tool::reviewer(process("fine"), folder.path());
        assert_eq!(tool.tool_name(), "reviewer");
        let reviews = agent_as_a_tool::review(&tool, ["HEAD", "HEAD~1"]).await.unwrap();
        assert_eq!(reviews, ["fine", "fine"]);
        tool.cleanup().await;
        let missing = acp_client::AgentCommand::new("no-such-agent");
        let error = agent_as_a_tool::reviewer(missing, folder.path()).call("x").await.unwrap_err();
        assert!(matches!(error, Error::Spawn { .. }), "{error}");
    }
}

#[test]
fn a_program_without_async_prompts() {
    let folder = tempfile::tempdir().unwrap();
    let mut shown = Vec::new();
    let reason = without_async::ask(process("hello"), folder.path(), "hi", |text| {
        shown.push(text)
    });
    assert_eq!(reason.unwrap(), StopReason::EndTurn);
    assert_eq!(shown, ["hello"]);
    let inside = tokio::runtime::Runtime::new().unwrap();
    let error =
        inside.block_on(async { without_async::ask(process("x"), folder.path(), "hi", drop) });
    assert!(matches!(error.unwrap_err(), Error::Blocking { .. }));
}
