//! Panics besides those of a handler's prompt: sessions and requests survive them.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use acp_sdk::v1::*;
use acp_server::store::MemoryStore;
use acp_server::{
    Handler, HandlerResult, Opening, Phase, Policies, Server, Session, Settings, Turn,
};
use acp_store_tests::faults::{Fault, FaultyStore, Operation, When};

use tokio::sync::Semaphore;

use crate::editor::{soon, text};

/// Panics where the prompt or the directory says.
#[derive(Clone)]
struct Clumsy(Arc<Semaphore>);

impl Clumsy {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

/// A turn that never ends, and panics when it is dropped.
struct Falling;

impl Drop for Falling {
    fn drop(&mut self) {
        panic!("as the test wants it");
    }
}

impl Handler for Clumsy {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        match turn.prompt_text().as_str() {
            "drop" => {
                let _falling = Falling;
                self.0.add_permits(1);
                std::future::pending().await
            }
            _ => Ok(StopReason::EndTurn),
        }
    }

    async fn open(&self, (): &mut (), opening: &Opening) -> HandlerResult<Settings> {
        let is_new = opening.kind == acp_server::OpeningKind::New;
        assert!(
            opening.session.cwd() != "/unopenable" || is_new,
            "as the test wants it"
        );
        Ok(Settings::new())
    }

    async fn close(&self, (): (), session: &Session) {
        assert_ne!(session.cwd(), "/unclosable", "as the test wants it");
    }
}

async fn is_usable(session: &Session) {
    let prompt = session.prompt(text("ping")).unwrap();
    let stop = soon("a turn", prompt.stop_reason()).await;
    assert_eq!(stop.unwrap(), StopReason::EndTurn);
}

#[tokio::test]
async fn a_prompt_whose_drop_panics_is_cancelled_like_any_other() {
    let clumsy = Clumsy::new();
    let server = Server::new(clumsy.clone());
    let session = server.create_session("/w").await.unwrap();
    let mut policies = Policies::default();
    policies.cancel_deadline = Duration::ZERO;
    session.set_policies(policies);
    let prompt = session.prompt(text("drop")).unwrap();
    soon("the turn", clumsy.0.acquire()).await.unwrap().forget();
    prompt.cancel();
    let stop = soon("the end of the turn", prompt.stop_reason()).await;
    assert_eq!(stop.unwrap(), StopReason::Cancelled);
    is_usable(&session).await;
    assert_eq!(server.statistics().turns_running(), 0);
}

/// Panics when what it polled could go on.
struct Explosive;

impl Wake for Explosive {
    fn wake(self: Arc<Self>) {
        panic!("as the test wants it");
    }
}

/// The task that runs the turns panics while it answers a prompt. The session is closed.
#[tokio::test]
async fn a_runner_that_panics_closes_its_session() {
    let server = Server::new(Clumsy::new());
    let session = server.create_session("/w").await.unwrap();
    let prompt = session.prompt(text("ping")).unwrap();
    let behind = session.prompt(text("ping")).unwrap();
    let mut stop = std::pin::pin!(prompt.stop_reason());
    let waker = Waker::from(Arc::new(Explosive));
    let polled = stop.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let error = soon("the prompt behind it", behind.stop_reason()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("panicked"), "{error}");
    soon("the end of the session", session.closed()).await;
    assert_eq!(session.phase(), Phase::Closed);
    let again = soon("opening", server.session(session.id())).await;
    is_usable(&again.unwrap()).await;
    soon("the shutdown", server.shutdown()).await;
}

#[tokio::test]
async fn a_panic_while_a_session_opens_or_closes_gives_its_lease_back() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let server = Server::builder(Clumsy::new()).store(store.clone()).build();
    let released = || {
        let calls = store.calls();
        calls
            .iter()
            .filter(|call| **call == Operation::Release)
            .count()
    };
    for (cwd, releases) in [("/unclosable", 1), ("/unopenable", 2)] {
        let session = server.create_session(cwd).await.unwrap();
        let id = session.id().clone();
        let client = crate::raw::Raw::attach(&server);
        close(client, &id, cwd).await;
        soon("the end of the session", session.closed()).await;
        let opened = soon("opening", server.session(&id)).await;
        match opened {
            Ok(session) => is_usable(&session).await,
            Err(error) => assert!(error.to_string().contains("panicked"), "{error}"),
        }
        assert_eq!(
            released(),
            releases + usize::from(cwd == "/unopenable"),
            "{cwd}"
        );
    }
}

async fn close(mut client: crate::raw::Raw, id: &SessionId, cwd: &str) {
    let hello = serde_json::json!({ "protocolVersion": 1 });
    client.call(0, "initialize", hello).await;
    let params = serde_json::json!({ "sessionId": id, "cwd": cwd });
    client.call(1, "session/resume", params.clone()).await;
    let (closed, _) = client.call(2, "session/close", params).await;
    assert!(closed["result"].is_object(), "{closed}");
}

#[tokio::test]
async fn a_store_that_panics_fails_the_turn_and_no_more() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let server = Server::builder(Clumsy::new()).store(store.clone()).build();
    let session = server.create_session("/w").await.unwrap();
    is_usable(&session).await;
    store.inject(Operation::Commit, 1, When::Before, Fault::Panic);
    let prompt = session.prompt(text("ping")).unwrap();
    let error = soon("a turn", prompt.stop_reason()).await.unwrap_err();
    assert!(error.to_string().contains("the store panicked"), "{error}");
    is_usable(&session).await;
    soon("the shutdown", server.shutdown()).await;
}
