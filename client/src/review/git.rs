//! The program `git`, with an object store and an index of our own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::ReviewError;

/// Timeout of one command. The first snapshot of a large directory takes longest.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Files are kept byte for byte, whatever `.gitattributes` in the directory say.
const ATTRIBUTES: &str = "* -text -ident !eol !filter !working-tree-encoding\n";

/// A store of objects beside a directory whose files it keeps.
#[derive(Debug)]
pub(super) struct Git {
    folder: tempfile::TempDir,
    directory: PathBuf,
}

impl Git {
    /// Creates the store. Objects of a repository in the directory are read, and not written again.
    pub(super) async fn create(directory: PathBuf) -> Result<Self, ReviewError> {
        let mut builder = tempfile::Builder::new();
        // It has copies of the user's files.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.prefix("acp-review-").tempdir();
        let folder = folder.map_err(ReviewError::Folder)?;
        let git = Self { folder, directory };
        git.run(&["init", "-q", "--bare", "--template=", "."], b"")
            .await?;
        let info = git.folder.path().join("info");
        let written = async {
            tokio::fs::create_dir_all(&info).await?;
            tokio::fs::write(info.join("attributes"), ATTRIBUTES).await
        };
        written.await.map_err(ReviewError::Folder)?;
        let objects = git.directory.join(".git/objects");
        if objects.is_dir()
            && let Some(path) = objects.to_str()
            && !path.contains('\n')
        {
            let alternates = git.folder.path().join("objects/info/alternates");
            let written = async {
                tokio::fs::create_dir_all(git.folder.path().join("objects/info")).await?;
                tokio::fs::write(alternates, format!("{path}\n")).await
            };
            written.await.map_err(ReviewError::Folder)?;
        }
        Ok(git)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the path of an index of this name.
    pub(super) fn index(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command on the index of the directory. Returns its output.
    pub(super) async fn run(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, ReviewError> {
        self.run_with(&self.index("index"), args, input).await
    }

    pub(super) async fn run_with(
        &self,
        index: &Path,
        args: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, ReviewError> {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        let creates = args.first() == Some(&"init");
        // Neither hooks, monitors and filters nor line ends of anybody's settings.
        let nothing = OsStr::new(if cfg!(windows) { "NUL" } else { "/dev/null" });
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", nothing)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("LC_ALL", "C");
        if creates {
            command.current_dir(self.folder.path());
        } else {
            command
                .env("GIT_DIR", self.folder.path())
                .env("GIT_WORK_TREE", &self.directory)
                .env("GIT_INDEX_FILE", index)
                .current_dir(&self.directory);
        }
        for setting in [
            "core.fsmonitor=false",
            "core.autocrlf=false",
            "core.looseCompression=1",
        ] {
            command.args(["-c", setting]);
        }
        command
            .args(["-c", "core.quotePath=false", "-c", "core.attributesFile="])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(ReviewError::Git)?;
        let stdin = child.stdin.take();
        let writing = async {
            if let Some(mut stdin) = stdin {
                // A command that reads no input has a result of its own.
                let _ = stdin.write_all(input).await;
            }
        };
        let running = async {
            let ((), output) = tokio::join!(writing, child.wait_with_output());
            output.map_err(ReviewError::Git)
        };
        let named = || args.first().copied().unwrap_or_default().to_owned();
        let output = tokio::time::timeout(TIMEOUT, running).await;
        let output = output.map_err(|_| ReviewError::Failed {
            command: named(),
            reason: format!("it took longer than {} s", TIMEOUT.as_secs()),
        })??;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(ReviewError::Failed {
                command: named(),
                reason: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }),
        }
    }
}
