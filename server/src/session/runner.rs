//! The runner: runs the turns of a session, while there are any.

use tokio::sync::oneshot;

use super::{Session, TurnResult};
use crate::handler::HandlerState;
use crate::panic::catch_panic;
use crate::turn;

/// Runs turns until no prompt waits, then ends.
pub(super) async fn run(session: Session) {
    let mut state = session.state().handler_state.take();
    let ended = catch_panic(
        "a turn",
        Some(session.id()),
        run_turns(&session, &mut state),
    )
    .await;
    let (waiting, panic) = match ended {
        Ok(waiting) => (waiting, None),
        Err(panic) => (abort(&session, state, &panic), Some(panic)),
    };
    for waiter in waiting {
        // The receiver may have been dropped.
        let _ = waiter.send(());
    }
    match panic {
        None => session.core().sessions.became_idle(&session),
        // Boxed, because it is rare, and every runner has room for it otherwise.
        Some(_) => Box::pin(session.core().unload(&session)).await,
    }
}

/// Returns who waits for the end. The state is back in the session then.
async fn run_turns(
    session: &Session,
    state: &mut Option<HandlerState>,
) -> Vec<oneshot::Sender<()>> {
    loop {
        let mut prompt = {
            let mut locked = session.state();
            match locked.queue.pop() {
                Some(prompt) => prompt,
                None => {
                    locked.handler_state = state.take();
                    return locked.queue.take_idle_waiters();
                }
            }
        };
        let result = match state {
            Some(state) => turn::run(session, state, &mut prompt).await,
            // An open session has it whenever no runner does.
            None => TurnResult::failed("the session has no state"),
        };
        session.settle_inputs(&prompt);
        // One that has not begun and never will.
        session.remove_prompts(prompt.row());
        prompt.end(result);
    }
}

/// The task has panicked outside of the handler: nobody knows what it left undone, so the session
/// must be opened again. That ends the turn in the log, too.
fn abort(
    session: &Session,
    handler_state: Option<HandlerState>,
    panic: &str,
) -> Vec<oneshot::Sender<()>> {
    let (prompts, waiting) = {
        let mut state = session.state();
        state.handler_state = handler_state;
        (state.queue.abort(), state.queue.take_idle_waiters())
    };
    for prompt in prompts {
        let reason = format!("the session is closed, because a turn of it panicked: {panic}");
        prompt.end(TurnResult::failed(reason));
    }
    waiting
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the size of the future that a function returns.
    fn size<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
        size_of::<F>()
    }

    /// Each turn allocates one, and larger pieces of memory cost several times as much.
    #[test]
    fn a_runner_is_small() {
        assert!(size(run) <= 1024, "{} bytes", size(run));
    }
}
