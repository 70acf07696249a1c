//! The task that runs the turns of a session, while there are any.

use acp_sdk::HandlerError;

use super::Session;
use crate::turn;

/// Runs turns until no prompt waits, then ends.
pub(super) fn start(session: Session) {
    tokio::spawn(async move {
        let state = session.state().handler_state.take();
        let mut state = match state {
            Some(state) => state,
            // An open session has it whenever no runner does.
            None => Box::new(()) as crate::handler::HandlerState,
        };
        loop {
            let mut prompt = {
                let mut locked = session.state();
                match locked.queue.pop() {
                    Some(prompt) => prompt,
                    None => {
                        locked.handler_state = Some(state);
                        let waiting = locked.queue.take_idle_waiters();
                        drop(locked);
                        for waiter in waiting {
                            // The receiver may have been dropped.
                            let _ = waiter.send(());
                        }
                        session.core().sessions.became_idle(&session);
                        return;
                    }
                }
            };
            let result = turn::run(&session, &mut state, &mut prompt).await;
            prompt.end(result);
        }
    });
}

/// The error of a prompt whose handler panicked.
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> HandlerError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    HandlerError::internal(format!("the handler panicked: {text}"))
}
