use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use acp_client::{Buffers, Client, ClientBuilder, OpenFiles, Policy, Workspace};

/// The open files by path, with text that may not be saved.
#[derive(Clone, Default)]
pub struct Editor(pub Arc<Mutex<HashMap<String, String>>>);

impl OpenFiles for Editor {
    async fn text(&self, path: &str) -> Option<String> {
        let buffers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.get(path).cloned()
    }

    async fn replace(&self, path: &str, text: &str) -> bool {
        let mut buffers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = buffers.get_mut(path);
        open.map(|buffer| *buffer = text.to_owned()).is_some()
    }
}

/// Files of the editor before those of the disk, and terminals.
pub fn client(editor: Editor) -> ClientBuilder {
    let disk = Workspace::new();
    Client::builder()
        .files(Buffers::new(editor, disk.clone()))
        .terminals(disk)
        .permissions(Policy::ApproveAll)
}
