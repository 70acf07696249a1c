//! `acp-server sessions backup` and `check`: commands for the file of a store, which servers may be
//! using.

use std::io::Write;
use std::path::Path;

use acp_sdk::text::single_line;
use acp_server::store::SqliteStore;

use super::Failure;

/// Copies a store into a new file.
pub(super) fn backup(store: &Path, target: &Path, output: &mut impl Write) -> Result<(), Failure> {
    let bytes = SqliteStore::back_up(store, target)?;
    writeln!(output, "wrote {} ({bytes} bytes)", target.display())?;
    Ok(())
}

/// Reports what is in a store.
///
/// # Errors
///
/// When something is wrong with it.
pub(super) fn check(store: &Path, output: &mut impl Write) -> Result<(), Failure> {
    let found = SqliteStore::check(store)?;
    writeln!(output, "store:     {}", store.display())?;
    writeln!(output, "version:   {}", found.version)?;
    writeln!(output, "sessions:  {}", found.sessions)?;
    writeln!(output, "events:    {}", found.events)?;
    writeln!(output, "open:      {}", found.open)?;
    writeln!(output, "abandoned: {}", found.abandoned)?;
    writeln!(output, "prompts:   {}", found.prompts)?;
    for problem in &found.problems {
        writeln!(output, "problem:   {}", single_line(problem))?;
    }
    match found.problems.len() {
        0 => Ok(()),
        count => Err(format!(
            "the session store {} is damaged: {count} problems. Restore it from a backup",
            store.display()
        )
        .into()),
    }
}
