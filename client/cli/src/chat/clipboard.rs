//! Images in the clipboard, which the programs of the desktop print.

use std::io::ErrorKind;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::attachments::LARGEST_IMAGE;

/// Programs that print the image of the clipboard as PNG, with their arguments: of Wayland, X11 and macOS.
const PROGRAMS: &[&[&str]] = &[
    &["wl-paste", "--no-newline", "--type", "image/png"],
    &[
        "xclip",
        "-selection",
        "clipboard",
        "-target",
        "image/png",
        "-out",
    ],
    &["pngpaste", "-"],
];

/// The time for one of them: who has copied an image may be slow to give it.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns the image in the clipboard of this machine.
///
/// # Errors
///
/// When there is none, or no program to ask; the message says what to do.
pub(super) async fn image() -> Result<Vec<u8>, String> {
    let mut asked = Vec::new();
    for words in PROGRAMS {
        match timeout(LIMIT, print(words)).await {
            Ok(Ok(bytes)) if !bytes.is_empty() => return Ok(bytes),
            Ok(Err(error)) if error.kind() == ErrorKind::NotFound => {}
            _ => asked.push(words[0]),
        }
    }
    Err(match asked.is_empty() {
        true => "the clipboard cannot be read: install wl-clipboard (Wayland), xclip (X11) or pngpaste (macOS)"
            .to_owned(),
        false => format!("no image is in the clipboard ({} shows none)", asked.join(", ")),
    })
}

/// Returns what a command prints, one byte more than the largest image at most. Nothing if it fails.
async fn print(words: &[&str]) -> std::io::Result<Vec<u8>> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).kill_on_drop(true);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut bytes = Vec::new();
    if let Some(output) = child.stdout.take() {
        output
            .take(LARGEST_IMAGE + 1)
            .read_to_end(&mut bytes)
            .await?;
    }
    if bytes.len() as u64 <= LARGEST_IMAGE && !child.wait().await?.success() {
        bytes.clear();
    }
    Ok(bytes)
}
