//! Runs `acp` in a pseudo-terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::script::script;
use crate::agent::{GUARD, within};

/// A terminal and the command that runs in it.
pub struct Terminal {
    child: Child,
    keys: File,
    shown: mpsc::Receiver<Vec<u8>>,
    /// Output that was not searched yet.
    seen: String,
    data: tempfile::TempDir,
}

impl Terminal {
    /// `acp chat -- sh -c AGENT`
    pub fn start(agent: &str) -> Self {
        Self::acp(&["chat", "--", "sh", "-c", &script(agent)])
    }

    /// `acp ARGS`
    pub fn acp(args: &[&str]) -> Self {
        Self::with(args, false)
    }

    /// `acp ARGS`, with colours or without.
    pub fn with(args: &[&str], colours: bool) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        rustix::io::fcntl_setfd(&terminal, rustix::io::FdFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let size = Winsize {
            ws_col: 80,
            ws_row: 24,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let mut side = File::options();
        let side = side.read(true).write(true);
        let side = side.open(name.to_str().unwrap()).unwrap();
        tcsetwinsize(&side, size).unwrap();
        let data = tempfile::tempdir().unwrap();
        // Programs of the test come first.
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", data.path().join("bin").display());
        let child = Command::new(env!("CARGO_BIN_EXE_acp"))
            .args(args)
            .env("TERM", "xterm")
            .env("NO_COLOR", if colours { "" } else { "1" })
            .env("HOME", data.path())
            .env("PATH", path)
            .env("VISUAL", r#"sh -c 'printf -- -there >>"$0"'"#)
            .env("XDG_DATA_HOME", data.path())
            .stdin(Stdio::from(side.try_clone().unwrap()))
            .stdout(Stdio::from(side.try_clone().unwrap()))
            .stderr(Stdio::from(side))
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let keys = File::from(terminal);
        let (sender, shown) = mpsc::channel(1000);
        let mut screen = keys.try_clone().unwrap();
        let mut answers = keys.try_clone().unwrap();
        // Ends when the last process has closed the terminal.
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = screen.read(&mut piece) {
                let piece = &piece[..length];
                // The editor requests the position of the cursor.
                if piece.windows(4).any(|bytes| bytes == b"\x1b[6n") {
                    answers.write_all(b"\x1b[1;1R").unwrap();
                }
                if sender.blocking_send(piece.to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keys,
            shown,
            seen: String::new(),
            data,
        }
    }

    /// `acp ARGS` with the same data, to be started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
        command.args(args);
        command.env("HOME", self.data.path());
        command.env("XDG_DATA_HOME", self.data.path());
        command
    }

    /// The folder of data of the command.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// The files of the names of sessions.
    pub fn names(&self) -> String {
        let folder = self.data.path().join("acp/sessions").read_dir().unwrap();
        let files = folder.map(|file| file.unwrap().path());
        let files = files.filter(|file| file.extension().is_some_and(|end| end == "json"));
        files
            .map(|file| std::fs::read_to_string(file).unwrap())
            .collect()
    }

    pub fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a text in the output after the previous match. Returns the output up to its end.
    pub async fn shows(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                return self.seen.drain(..at + text.len()).collect();
            }
            let piece = tokio::time::timeout(GUARD, self.shown.recv()).await;
            let piece = piece.ok().flatten();
            let piece = piece.unwrap_or_else(|| panic!("{text:?} is not in {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
    }

    pub async fn code(mut self) -> Option<i32> {
        within(self.child.wait()).await.unwrap().code()
    }
}
