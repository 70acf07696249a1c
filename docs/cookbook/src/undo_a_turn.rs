use std::error::Error;
use std::path::PathBuf;

use acp_client::Session;
use acp_client::review::UndoStack;

/// Prompts, and takes back what the turn has changed unless the user wants it.
/// `turns` is `UndoStack::new(Snapshots::of(project).await?)`.
pub async fn try_out(
    session: &Session,
    turns: &mut UndoStack,
    text: &str,
    wanted: impl Fn(&[PathBuf]) -> bool,
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    turns.begin().await?;
    session.prompt(text).await?.outcome().await?;
    let Some((before, after)) = turns.end().await? else {
        return Ok(Vec::new());
    };
    let changes = turns.snapshots().changes(&before, &after).await?;
    let files: Vec<_> = changes.into_iter().map(|change| change.path).collect();
    if wanted(&files) {
        return Ok(Vec::new());
    }
    let undone = turns.undo().await?;
    Ok(undone.map(|undone| undone.restored).unwrap_or_default())
}
