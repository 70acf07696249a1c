//! Signals of the operating system.

use std::io;

/// Waits for requests to end: SIGTERM, SIGINT, Ctrl-C.
#[derive(Debug)]
pub(super) struct EndSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl EndSignals {
    /// Handles the signals from now on.
    pub(super) fn new() -> io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Completes at the next signal.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Calls a function at each SIGHUP. Never completes.
pub(super) async fn at_hangup(reload: impl Fn()) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut signals) = signal(SignalKind::hangup()) {
            while signals.recv().await.is_some() {
                reload();
            }
        }
    }
    #[cfg(not(unix))]
    let _ = reload;
    std::future::pending().await
}
