//! Files that a prompt names after `@`, and images of `/image`.

use std::path::{Path, PathBuf};

use acp_sdk::v1::{ContentBlock, PromptCapabilities};

use super::clipboard;
use super::style::clean;
use super::talk::Talk;
use crate::attachments::{Attached, NOT_AN_IMAGE, attach, image_block};

/// Maximum number of files that a prompt attaches.
const MOST_ATTACHED: usize = 20;

/// Returns the paths after `@` that exist, each once, without the punctuation behind them, and those that look like
/// files and do not exist. A path with blanks stands in quotes: `@"my file"`.
fn mentioned<'a>(prompt: &'a str, cwd: &Path) -> (Vec<PathBuf>, Vec<&'a str>) {
    let (mut found, mut missing, mut end) = (Vec::new(), Vec::new(), 0);
    for (at, sign) in prompt.match_indices('@') {
        let before = prompt[..at].chars().next_back();
        if at < end || before.is_some_and(|before| !before.is_whitespace()) {
            continue;
        }
        let named = &prompt[at + sign.len()..];
        let quoted = named
            .strip_prefix('"')
            .and_then(|named| named.split_once('"'));
        let word = named.split(char::is_whitespace).next().unwrap_or_default();
        let path = quoted.map_or(word, |(path, _)| path);
        end = at + sign.len() + path.len() + quoted.map_or(0, |_| 2);
        let plain = match quoted {
            Some(_) => path,
            None => path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']),
        };
        if path.is_empty() {
            continue;
        }
        let paths = [path, plain].map(|path| cwd.join(path));
        match paths.into_iter().find(|path| path.exists()) {
            Some(path) if found.contains(&path) => {}
            Some(path) => found.push(path),
            // Others may be names of people.
            None if quoted.is_some() || plain.contains(['.', '/']) => missing.push(plain),
            None => {}
        }
    }
    (found, missing)
}

/// Returns the blocks of a prompt that names files in the directory, and the lines about all that it names.
/// `cwd` has no links.
fn blocks(
    prompt: &str,
    cwd: &Path,
    capabilities: &PromptCapabilities,
    local: bool,
) -> (Vec<ContentBlock>, Vec<String>) {
    let (mut blocks, mut attached, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let (paths, missing) = mentioned(prompt, cwd);
    if paths.len() > MOST_ATTACHED {
        lines.push(format!("only the first {MOST_ATTACHED} files are attached"));
    }
    for path in paths.iter().take(MOST_ATTACHED) {
        // Pasted text may name any file, whose contents the user does not mean to send.
        let is_inside = path.canonicalize().is_ok_and(|path| path.starts_with(cwd));
        if !is_inside {
            let path = path.display();
            lines.push(format!(
                "{path} is outside of the directory, and is not attached"
            ));
            continue;
        }
        match attach(path, capabilities, local) {
            Ok(Attached { block, how, note }) => {
                let shown = path.strip_prefix(cwd).unwrap_or(path).to_string_lossy();
                attached.push(format!("{shown} ({how})"));
                blocks.push(block);
                lines.extend(note);
            }
            Err(reason) => lines.push(format!("{reason}; the agent receives its name only")),
        }
    }
    let missing = missing.iter().take(MOST_ATTACHED);
    lines.extend(missing.map(|path| format!("{path} does not exist, and is not attached")));
    if !attached.is_empty() {
        lines.insert(0, format!("attached: {}", attached.join(", ")));
    }
    (blocks, lines)
}

impl Talk<'_> {
    /// Returns what is sent for a prompt: its text, the images of `/image` and the files after `@`.
    pub(super) async fn content(&mut self, prompt: &str) -> Vec<ContentBlock> {
        let mut content = vec![ContentBlock::from(prompt)];
        content.append(&mut self.images);
        let (capabilities, local) = self.takes();
        let (text, cwd) = (prompt.to_owned(), self.cwd.clone());
        // Files may be slow to read.
        let read = move || blocks(&text, &cwd, &capabilities, local);
        let read = tokio::task::spawn_blocking(read).await;
        // An error means that the runtime is shutting down.
        let (attached, lines) = read.unwrap_or_default();
        content.extend(attached);
        for line in lines {
            let line = self.view.dim(&clean(&line));
            self.screen.print(&line);
        }
        content
    }

    /// Executes `/image`: of a file, or without one of the clipboard.
    pub(super) async fn image(&mut self, file: &str) -> String {
        if self.images.len() >= MOST_ATTACHED {
            return format!("A prompt has at most {MOST_ATTACHED} images.\n");
        }
        let (capabilities, local) = self.takes();
        if file.is_empty() {
            let image = clipboard::image().await;
            let image = image.and_then(|bytes| image_block(&bytes, &capabilities));
            return match image {
                Ok(block) => {
                    self.images.push(block);
                    "Attached to the next prompt: the image in the clipboard.\n".to_owned()
                }
                Err(reason) => format!("Not attached: {reason}.\n"),
            };
        }
        let path = self.cwd.join(file);
        let read = move || attach(&path, &capabilities, local);
        let read = tokio::task::spawn_blocking(read).await;
        match read {
            Ok(Ok(Attached {
                block: block @ ContentBlock::Image(_),
                ..
            })) => {
                self.images.push(block);
                format!("Attached to the next prompt: {}.\n", clean(file))
            }
            Ok(Ok(attached)) => {
                let reason = attached.note.as_deref().unwrap_or(NOT_AN_IMAGE);
                format!("Not attached: {}.\n", clean(reason))
            }
            Ok(Err(reason)) => clean(&reason) + "\n",
            Err(_) => String::new(),
        }
    }

    /// Returns what the agent takes in prompts, and whether it is on this machine.
    fn takes(&self) -> (PromptCapabilities, bool) {
        let info = self.slot.as_ref().map(acp_client::Client::agent_info);
        let capabilities = info.map(|info| info.agent_capabilities.prompt_capabilities.clone());
        let local = self.args.setup.agent.remote.url.is_none();
        (capabilities.unwrap_or_default(), local)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn files_after_an_at_are_attached_once() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        for (name, bytes) in [("a.rs", &b"text"[..]), ("b.", b"x"), ("c.png", b"\x89PNG")] {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let sent = |prompt: &str, capabilities: &PromptCapabilities, local| {
            let (blocks, lines) = blocks(prompt, &cwd, capabilities, local);
            let blocks = serde_json::to_value(blocks).unwrap();
            let blocks = blocks.as_array().unwrap().iter();
            let kinds: Vec<_> = blocks.map(|block| block["type"].clone()).collect();
            (kinds, lines.join("\n"))
        };
        let none = PromptCapabilities::new();
        let all = PromptCapabilities::new()
            .with_image(true)
            .with_embedded_context(true);
        let prompt = "Compare @a.rs, (@a.rs) with @b. and @a.rs; not a@a.rs, @none or @";
        let (kinds, lines) = sent(prompt, &all, true);
        assert_eq!(kinds, ["resource", "resource"]);
        assert_eq!(lines, "attached: a.rs (contents), b. (contents)");
        std::fs::write(dir.path().join("a b"), "x").unwrap();
        let (kinds, lines) = sent("@\"a b\", @\"a b\" @a b @a.rs\" @\"no", &all, true);
        assert_eq!(kinds, ["resource", "resource"]);
        assert_eq!(lines, "attached: a b (contents), a.rs (contents)");
        let (kinds, lines) = sent("@a.tx, @\"a c\" @someone", &all, true);
        assert!(kinds.is_empty());
        let expected =
            ["a.tx", "a c"].map(|path| format!("{path} does not exist, and is not attached"));
        assert_eq!(lines, expected.join("\n"));
        let (kinds, lines) = sent("@/etc/passwd @../../etc/passwd @link", &all, true);
        assert!(kinds.is_empty(), "{lines}");
        assert!(
            lines.contains("/etc/passwd is outside of the directory"),
            "{lines}"
        );
        let (kinds, lines) = sent("@a.rs", &none, true);
        assert_eq!((kinds.len(), &*lines), (1, "attached: a.rs (link)"));
        let (kinds, lines) = sent("@a.rs", &none, false);
        assert!(
            kinds.is_empty() && lines.contains("receives its name only"),
            "{lines}"
        );
        let (kinds, lines) = sent("@c.png", &all, true);
        assert_eq!(
            (kinds[0].as_str(), &*lines),
            (Some("image"), "attached: c.png (image)")
        );
        let (kinds, lines) = sent("@c.png", &none, true);
        assert_eq!(kinds, ["resource_link"]);
        assert!(
            lines.contains("c.png (link)") && lines.contains("takes no images"),
            "{lines}"
        );
    }
}
