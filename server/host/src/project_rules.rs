//! What users have allowed or rejected for ever, per project.

use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use acp_client::{Remember, Rules};
use acp_sdk::v1::{PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest};
use acp_server::{BoxFuture, DecidePermissions, DecidedPermission, Session};

use super::PermissionRules;

/// What a new file says to whoever opens it.
const HEADER: &str =
    "# What was answered with \"always\" in this project. Rules may be changed or removed.\n";

/// Remembers what clients answer with "always", in a file of [rules](Rules) for each working directory, and decides
/// by it in later sessions.
///
/// The file of `/home/me/project` is `FOLDER/home/me/project/rules.toml`. It is read for each question, so changes
/// count at once.
#[derive(Clone, Debug)]
pub struct ProjectRules {
    folder: PathBuf,
}

impl ProjectRules {
    /// Keeps the files below a folder, which should not be in a project.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    fn file(&self, cwd: &str) -> PathBuf {
        let parts = Path::new(cwd).components();
        let named = parts.filter(|part| matches!(part, Component::Normal(_)));
        let project: PathBuf = named.collect();
        self.folder.join(project).join("rules.toml")
    }

    /// Returns the rules of a session; `None` if there are none, or they cannot be read.
    async fn rules(&self, session: &Session, create: bool) -> Option<PermissionRules> {
        let path = self.file(session.cwd());
        let read = tokio::task::spawn_blocking(move || {
            if create {
                make(&path)?;
            } else if !path.exists() {
                return Ok(None);
            }
            Rules::read(&path).map(Some).map_err(io::Error::other)
        });
        match read.await {
            Ok(Ok(rules)) => {
                let rules = rules?.remember(Remember::File);
                Some(PermissionRules::remembering(rules))
            }
            Ok(Err(error)) => {
                let file = self.file(session.cwd());
                tracing::warn!(%error, file = %file.display(), "the rules of a project are not used");
                None
            }
            // The runtime ends.
            Err(_) => None,
        }
    }
}

/// Creates the file, if it does not exist.
fn make(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    match std::fs::File::create_new(path) {
        Ok(mut file) => file.write_all(HEADER.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

impl DecidePermissions for ProjectRules {
    fn decide<'a>(
        &'a self,
        session: &'a Session,
        request: &'a RequestPermissionRequest,
    ) -> BoxFuture<'a, Option<DecidedPermission>> {
        Box::pin(async move {
            let rules = self.rules(session, false).await?;
            rules.decide(session, request).await
        })
    }

    fn answered<'a>(
        &'a self,
        session: &'a Session,
        request: &'a RequestPermissionRequest,
        outcome: &'a RequestPermissionOutcome,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if is_always(request, outcome)
                && let Some(rules) = self.rules(session, true).await
            {
                rules.answered(session, request, outcome).await;
            }
        })
    }
}

fn is_always(request: &RequestPermissionRequest, outcome: &RequestPermissionOutcome) -> bool {
    let RequestPermissionOutcome::Selected(chosen) = outcome else {
        return false;
    };
    let mut options = request.options.iter();
    let option = options.find(|option| option.option_id == chosen.option_id);
    let always = [
        PermissionOptionKind::AllowAlways,
        PermissionOptionKind::RejectAlways,
    ];
    option.is_some_and(|option| always.contains(&option.kind))
}
