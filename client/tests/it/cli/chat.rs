//! `acp chat` in a pseudo-terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::script::script;
use crate::agent::within;

/// A terminal in which `acp chat` runs.
struct Terminal {
    child: Child,
    keys: File,
    shown: mpsc::Receiver<Vec<u8>>,
    /// What was shown and not looked for yet.
    seen: String,
    _data: tempfile::TempDir,
}

impl Terminal {
    /// `acp chat -- sh -c AGENT`
    fn start(agent: &str) -> Self {
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
        let child = Command::new(env!("CARGO_BIN_EXE_acp"))
            .args(["chat", "--", "sh", "-c", &script(agent)])
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .env("HOME", data.path())
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
        // It ends when the last process has closed the terminal.
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = screen.read(&mut piece) {
                let piece = &piece[..length];
                // The editor asks where the cursor is.
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
            _data: data,
        }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown, behind what was waited for before.
    async fn shows(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let piece = within(self.shown.recv()).await;
            let piece = piece.unwrap_or_else(|| panic!("{text:?} is not in {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
    }

    async fn code(mut self) -> Option<i32> {
        within(self.child.wait()).await.unwrap().code()
    }
}

#[tokio::test]
async fn a_conversation_in_a_terminal() {
    let agent = r#"start
        prompt; say '**Hello** \u001b[2Jthere.\n'; ask execute; say "$(quoted)"; end end_turn
        prompt; say 'waiting\n'; message; end cancelled
        message"#;
    let mut terminal = Terminal::start(agent);
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal.shows("Hello there.\r\n").await;
    terminal.shows("? May the agent: Do it (execute)").await;
    terminal.shows("y  allow once: Yes").await;
    terminal.types("y");
    terminal.shows("'optionId':'2'").await;
    terminal.shows(" s\r\n").await;
    terminal.shows("› ").await;
    terminal.types("again\r");
    terminal.shows("waiting\r\n").await;
    terminal.types("\u{3}");
    terminal.shows("cancelled after ").await;
    terminal.shows("› ").await;
    terminal.types("\u{4}");
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn two_interrupts_end_it() {
    let mut terminal = Terminal::start("start; prompt; say 'waiting\\n'; message; message");
    terminal.shows("› ").await;
    terminal.types("hi\r");
    terminal.shows("waiting\r\n").await;
    terminal.types("\u{3}");
    terminal.shows("cancelling").await;
    terminal.types("\u{3}");
    assert_eq!(terminal.code().await, Some(130));
}

#[tokio::test]
async fn without_a_terminal_it_refuses() {
    let ended = Command::new(env!("CARGO_BIN_EXE_acp"))
        .args(["chat", "--", "sh"])
        .stdin(Stdio::null())
        .output();
    let ended = within(ended).await.unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(stderr.contains("Use `acp run`"), "{stderr}");
}
