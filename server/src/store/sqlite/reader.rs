//! The threads that read, each with a connection of its own, so that no reader waits for the
//! writer and the writer waits for no reader.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;

use super::queue::{Queue, Taken};
use super::writer::{Abandon, BoxedJob};

pub(super) struct Reader {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    pub(super) queue: Arc<Queue<BoxedJob<Connection>>>,
}

impl Reader {
    /// Works until the queue is closed and empty.
    pub(super) fn run(self) {
        let _abandon = Abandon(self.queue.clone());
        while let Taken::Items(jobs) = self.queue.take(1, None) {
            for mut job in jobs {
                let result = job.run(&self.connection);
                let error = result.err().map(|failure| failure.into_error(&self.path));
                job.finish(error);
            }
        }
    }
}
