//! Starts the browser.

/// Opens a page in the system's browser. Discards its output and does not wait for its exit.
pub(super) fn browse(url: &str) -> std::io::Result<()> {
    use std::process::{Command, Stdio};
    let mut command = if cfg!(windows) {
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else if cfg!(target_os = "macos") {
        Command::new("open")
    } else {
        Command::new("xdg-open")
    };
    acp_client::internal::withhold(&mut command);
    let command = command.arg(url).stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // The child must be reaped, or its process entry stays until acp exits.
    std::thread::spawn(move || child.wait());
    Ok(())
}
