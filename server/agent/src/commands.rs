//! Slash commands from Markdown files.
