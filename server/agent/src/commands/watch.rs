//! Commands that follow their files.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::{AvailableCommandsUpdate, SessionUpdate};
use acp_server::Session;
use tokio::sync::watch;

use super::{Commands, Fingerprint, Origin};

/// The time between two looks at the files. Names, times and sizes of at most 512 files are compared,
/// which works on every file system, for folders that do not exist yet, and needs no descriptor.
const INTERVAL: Duration = Duration::from_secs(2);

impl Commands {
    /// Follows the files while the session is open: returns the commands as they are now, and later
    /// ones as the files change. Changed commands are announced to the session's clients.
    ///
    /// The files are compared every 2 s, and read again when they have stayed the same between two
    /// looks. Following ends with the session, or when all receivers are dropped.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[must_use = "following ends when the receiver is dropped"]
    pub fn watch(self, session: &Session) -> watch::Receiver<Arc<Self>> {
        let session = session.clone();
        let origin = self.origin.clone();
        let (sender, receiver) = watch::channel(Arc::new(self));
        tokio::spawn(async move {
            tokio::select! {
                () = session.closed() => {}
                () = sender.closed() => {}
                () = follow(&origin, &sender, &session) => {}
            }
        });
        receiver
    }
}

/// Publishes what the files say, until the session takes no more updates.
async fn follow(origin: &Origin, sender: &watch::Sender<Arc<Commands>>, session: &Session) {
    let mut read = None;
    let mut last = fingerprint(origin).await;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = fingerprint(origin).await;
        let settled = now == last;
        last = now;
        // The first time they are read whatever they are: they may have changed since `load`.
        if !settled || read.as_ref() == Some(&last) {
            continue;
        }
        let commands = origin.load().await;
        read = Some(last.clone());
        let before = sender.borrow().clone();
        if commands.commands == before.commands && commands.problems == before.problems {
            continue;
        }
        let available = commands.available();
        let announced = available != before.available();
        sender.send_replace(Arc::new(commands));
        if announced {
            let update = AvailableCommandsUpdate::new(available);
            let update = SessionUpdate::AvailableCommandsUpdate(update);
            if let Err(error) = session.send(update).await {
                tracing::debug!(session = %session.id(), %error, "commands are not announced");
                return;
            }
        }
    }
}

async fn fingerprint(origin: &Origin) -> Fingerprint {
    let origin = origin.clone();
    let state = tokio::task::spawn_blocking(move || origin.fingerprint_blocking()).await;
    state.unwrap_or_default()
}
