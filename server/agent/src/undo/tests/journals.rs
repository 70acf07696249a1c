//! The journals of sessions, by a handler.

use acp_sdk::ErrorCode;
use acp_sdk::v1::StopReason;
use acp_server::{AgentInfo, Handler, HandlerResult, Server, Session, Turn, UndoRequest};

use super::*;

/// Writes the prompt into a file. `hang` waits then until it is dropped.
struct Editor {
    journals: Journals,
    project: PathBuf,
}

impl Handler for Editor {
    type State = ();

    fn info(&self) -> AgentInfo {
        AgentInfo::new("editor", "0.1.0").undo()
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let mut undo = self.journals.begin(&turn).await?;
        let file = turn.session().resolve("file");
        undo.before_change(&file).await?;
        fs::write(self.project.join("file"), turn.prompt_text())?;
        if turn.prompt_text() == "hang" {
            turn.send_text("waits").await?;
            std::future::pending::<()>().await;
        }
        let ended = undo.end().await?;
        assert_eq!(ended, Ended::default());
        Ok(StopReason::EndTurn)
    }

    async fn undo(
        &self,
        session: &Session,
        request: UndoRequest,
    ) -> HandlerResult<TurnRestoration> {
        self.journals.undo(session, request).await
    }

    async fn close(&self, (): (), session: &Session) {
        self.journals.close(session).await;
    }

    async fn deleted(&self, session: &acp_server::store::SessionRecord) {
        self.journals.delete(session).await.unwrap();
    }
}

async fn say(session: &Session, text: &str) {
    session
        .prompt(vec![text.into()])
        .unwrap()
        .stop_reason()
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_undoes_its_turns_also_after_it_was_closed() {
    let site = Site::new();
    let project = site.path("");
    let server = Server::new(Editor {
        journals: Journals::new(site.journal_folder()),
        project: project.clone(),
    });
    let session = server
        .create_session(project.to_str().unwrap())
        .await
        .unwrap();
    let undo = || UndoRequest::new(Direction::Undo);
    let error = session.undo(undo()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::INVALID_REQUEST, "{error}");
    say(&session, "one").await;
    say(&session, "two").await;
    server.close_session(session.id()).await.unwrap();
    let session = server.session(session.id()).await.unwrap();
    assert!(session.undo(undo()).await.unwrap().applied);
    assert_eq!(site.read("file").as_deref(), Some("one"));

    // While a turn runs, nothing is undone; when its handler is gone, its changes are.
    let mut hanging = session.prompt(vec!["hang".into()]).unwrap();
    let mut events = session.subscribe(session.last_event());
    hanging.started().await.unwrap();
    while site.read("file").as_deref() != Some("hang") {
        events.next().await.unwrap();
    }
    let error = session.undo(undo()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::INVALID_REQUEST, "{error}");
    hanging.cancel();
    assert_eq!(hanging.stop_reason().await.unwrap(), StopReason::Cancelled);
    let undone = session.undo(undo()).await.unwrap();
    assert_eq!(outcomes(&undone), ["restored"]);
    assert_eq!(site.read("file").as_deref(), Some("one"));

    let folders = || fs::read_dir(site.journal_folder()).unwrap().count();
    assert_eq!(folders(), 1);
    server.delete_session(session.id()).await.unwrap();
    assert_eq!(folders(), 0);
}
