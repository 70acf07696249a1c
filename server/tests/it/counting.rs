//! A handler that counts the sessions that it has open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use acp_sdk::v1::StopReason;
use acp_server::{Handler, HandlerResult, Opening, Session, Settings, Turn};

#[derive(Clone, Default)]
pub struct Counting(Arc<AtomicUsize>);

impl Counting {
    pub fn open(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Handler for Counting {
    type State = ();

    async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }

    async fn open(&self, (): &mut (), _: &Opening) -> HandlerResult<Settings> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Settings::new())
    }

    async fn close(&self, (): (), _: &Session) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
