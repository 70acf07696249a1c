//! What the author of an agent writes.

use std::any::Any;
use std::pin::Pin;

use acp_sdk::extensions::TurnRestoration;
use acp_sdk::extensions::methods::{RedoSession, UndoSession};
use acp_sdk::runtime::Method as _;
use acp_sdk::v1::StopReason;
use acp_sdk::{Context, HandlerError, HandlerResult, Json};

use crate::store::SessionRecord;
use crate::{
    AgentInfo, Login, Opening, Session, Settings, SettingsChange, Turn, UndoDirection, UndoRequest,
};

/// An agent: what it does with a prompt.
///
/// Sessions, queues, cancellation, history and the promises of the protocol are the
/// [`Server`](crate::Server)'s. All functions but [`prompt`](Self::prompt) have defaults.
pub trait Handler: Send + Sync + 'static {
    /// State of one session, such as the conversation of the model. It is created when the session
    /// is opened, belongs to the running turn alone, and is dropped with the session. `()` for
    /// agents without.
    type State: Default + Send + 'static;

    /// Answers a prompt. Prompts of one session are answered one after the other; sessions run
    /// side by side.
    ///
    /// The future is polled first where the prompt was read, and goes on in a task once it waits. Hand
    /// long computations to `tokio::task::spawn_blocking`: until it waits, nothing else of its client
    /// is read, cancellations included.
    ///
    /// When the turn is cancelled, the future should end soon; after
    /// [`cancel_deadline`](crate::Policies::cancel_deadline) it is dropped where it waits.
    ///
    /// # Errors
    ///
    /// Becomes the error of the request, unless the turn was cancelled.
    fn prompt(
        &self,
        state: &mut Self::State,
        turn: Turn,
    ) -> impl Future<Output = HandlerResult<StopReason>> + Send;

    /// Returns what the agent advertises in `initialize`.
    fn info(&self) -> AgentInfo {
        AgentInfo::default()
    }

    /// Opens a session that is new, or was loaded or forked, and fills in its state. Returns modes,
    /// config options and commands at their defaults; values that the user changed earlier are
    /// restored afterwards.
    ///
    /// Prompts that it queues in the session have their turns when the session is open.
    ///
    /// # Errors
    ///
    /// Becomes the error of the request; the session is not open then.
    fn open(
        &self,
        state: &mut Self::State,
        opening: &Opening,
    ) -> impl Future<Output = HandlerResult<Settings>> + Send {
        let _ = (state, opening);
        async { Ok(Settings::new()) }
    }

    /// Releases what the session holds, after its last turn. Called when the session is closed,
    /// deleted or leaves memory, and when the server shuts down.
    fn close(&self, state: Self::State, session: &Session) -> impl Future<Output = ()> + Send {
        let _ = (state, session);
        async {}
    }

    /// Deletes what belongs to a session elsewhere, such as the conversation that its
    /// [`data`](crate::store::SessionRecord::data) names. Called when the store has deleted it, for a client or
    /// by the limits of retention, and after [`close`](Self::close) if it was open.
    fn deleted(&self, session: &SessionRecord) -> impl Future<Output = ()> + Send {
        let _ = session;
        async {}
    }

    /// Returns whether an idle session may leave memory, after
    /// [`idle_timeout`](crate::Limits::idle_timeout) without clients or because another one needs its
    /// place (default: yes). Return `false` while closing it
    /// would lose what [`open`](Self::open) cannot restore. Must not block.
    fn may_unload(&self, session: &Session) -> bool {
        let _ = session;
        true
    }

    /// Is called before a client changes a mode or an option. If the store then refuses the change,
    /// the session keeps the old value, and this is not called again.
    ///
    /// # Errors
    ///
    /// Becomes the error of the request; nothing is changed then.
    fn settings_change(
        &self,
        session: &Session,
        change: &SettingsChange,
    ) -> impl Future<Output = HandlerResult<()>> + Send {
        let _ = (session, change);
        async { Ok(()) }
    }

    /// Undoes or redoes what a turn changed in files. Called only if [`info`](Self::info)
    /// [declares](AgentInfo::undo) it, also while a turn is running.
    ///
    /// # Errors
    ///
    /// Becomes the error of the request: -32600 while a turn is running and when there is nothing to
    /// restore.
    fn undo(
        &self,
        session: &Session,
        request: UndoRequest,
    ) -> impl Future<Output = HandlerResult<TurnRestoration>> + Send {
        let _ = session;
        let error = HandlerError::method_not_found(match request.direction {
            UndoDirection::Undo => UndoSession::NAME,
            UndoDirection::Redo => RedoSession::NAME,
        });
        async { Err(error) }
    }

    /// Authenticates the user of one client with a method of [`info`](Self::info). The user can be asked for
    /// something meanwhile.
    ///
    /// # Errors
    ///
    /// Becomes the error of the request; the user is not authenticated then.
    fn authenticate(&self, login: &Login) -> impl Future<Output = HandlerResult<()>> + Send {
        let _ = login;
        async { Ok(()) }
    }

    /// Ends the authentication of the user of one client.
    ///
    /// # Errors
    ///
    /// Becomes the error of the request; the user is still authenticated then.
    fn logout(&self) -> impl Future<Output = HandlerResult<()>> + Send {
        async { Ok(()) }
    }

    /// Answers a request that the protocol does not define.
    ///
    /// # Errors
    ///
    /// Becomes the error of the request.
    fn ext_request(
        &self,
        ctx: &Context,
        method: &str,
        params: Option<Json>,
    ) -> impl Future<Output = HandlerResult<Json>> + Send {
        let _ = (ctx, params);
        let error = HandlerError::method_not_found(method);
        async { Err(error) }
    }

    /// Handles a notification that the protocol does not define.
    fn ext_notification(
        &self,
        ctx: &Context,
        method: &str,
        params: Option<Json>,
    ) -> impl Future<Output = ()> + Send {
        let _ = (ctx, method, params);
        async {}
    }
}

/// The state of a session, of the type that its handler has.
pub(crate) type HandlerState = Box<dyn Any + Send>;

/// A future in a box, of functions of traits that are used as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A [`Handler`] without its type, so that the rest of the crate is compiled once.
pub(crate) trait AnyHandler: Send + Sync {
    fn prompt<'a>(
        &'a self,
        state: &'a mut HandlerState,
        turn: Turn,
    ) -> BoxFuture<'a, HandlerResult<StopReason>>;

    fn open<'a>(
        &'a self,
        opening: &'a Opening,
    ) -> BoxFuture<'a, HandlerResult<(HandlerState, Settings)>>;

    fn close<'a>(&'a self, state: HandlerState, session: &'a Session) -> BoxFuture<'a, ()>;

    fn deleted<'a>(&'a self, session: &'a SessionRecord) -> BoxFuture<'a, ()>;

    fn may_unload(&self, session: &Session) -> bool;

    fn settings_change<'a>(
        &'a self,
        session: &'a Session,
        change: &'a SettingsChange,
    ) -> BoxFuture<'a, HandlerResult<()>>;

    fn undo<'a>(
        &'a self,
        session: &'a Session,
        request: UndoRequest,
    ) -> BoxFuture<'a, HandlerResult<TurnRestoration>>;

    fn authenticate<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, HandlerResult<()>>;

    fn logout(&self) -> BoxFuture<'_, HandlerResult<()>>;

    fn ext_request<'a>(
        &'a self,
        ctx: &'a Context,
        method: &'a str,
        params: Option<Json>,
    ) -> BoxFuture<'a, HandlerResult<Json>>;

    fn ext_notification<'a>(
        &'a self,
        ctx: &'a Context,
        method: &'a str,
        params: Option<Json>,
    ) -> BoxFuture<'a, ()>;
}

impl<H: Handler> AnyHandler for H {
    fn prompt<'a>(
        &'a self,
        state: &'a mut HandlerState,
        turn: Turn,
    ) -> BoxFuture<'a, HandlerResult<StopReason>> {
        match state.downcast_mut::<H::State>() {
            Some(state) => Box::pin(Handler::prompt(self, state, turn)),
            // Every state is made by `open` below.
            None => Box::pin(async { Err(HandlerError::internal("the session has no state")) }),
        }
    }

    fn open<'a>(
        &'a self,
        opening: &'a Opening,
    ) -> BoxFuture<'a, HandlerResult<(HandlerState, Settings)>> {
        Box::pin(async move {
            let mut state = H::State::default();
            let settings = Handler::open(self, &mut state, opening).await?;
            Ok((Box::new(state) as HandlerState, settings))
        })
    }

    fn close<'a>(&'a self, state: HandlerState, session: &'a Session) -> BoxFuture<'a, ()> {
        match state.downcast::<H::State>() {
            Ok(state) => Box::pin(Handler::close(self, *state, session)),
            Err(_) => Box::pin(async {}),
        }
    }

    fn deleted<'a>(&'a self, session: &'a SessionRecord) -> BoxFuture<'a, ()> {
        Box::pin(Handler::deleted(self, session))
    }

    fn may_unload(&self, session: &Session) -> bool {
        Handler::may_unload(self, session)
    }

    fn settings_change<'a>(
        &'a self,
        session: &'a Session,
        change: &'a SettingsChange,
    ) -> BoxFuture<'a, HandlerResult<()>> {
        Box::pin(Handler::settings_change(self, session, change))
    }

    fn undo<'a>(
        &'a self,
        session: &'a Session,
        request: UndoRequest,
    ) -> BoxFuture<'a, HandlerResult<TurnRestoration>> {
        Box::pin(Handler::undo(self, session, request))
    }

    fn authenticate<'a>(&'a self, login: &'a Login) -> BoxFuture<'a, HandlerResult<()>> {
        Box::pin(Handler::authenticate(self, login))
    }

    fn logout(&self) -> BoxFuture<'_, HandlerResult<()>> {
        Box::pin(Handler::logout(self))
    }

    fn ext_request<'a>(
        &'a self,
        ctx: &'a Context,
        method: &'a str,
        params: Option<Json>,
    ) -> BoxFuture<'a, HandlerResult<Json>> {
        Box::pin(Handler::ext_request(self, ctx, method, params))
    }

    fn ext_notification<'a>(
        &'a self,
        ctx: &'a Context,
        method: &'a str,
        params: Option<Json>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(Handler::ext_notification(self, ctx, method, params))
    }
}
