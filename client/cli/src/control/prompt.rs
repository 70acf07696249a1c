//! `acp prompt`: sends a prompt to the process that uses a session, and copies its output.

use std::io;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use super::accept::{Answer, LONGEST_PROMPT, Request};
use super::{Live, one, socket, unreached};
use crate::args::{Format, PromptArgs};
use crate::exit::Code;
use crate::output::{LONGEST_PIECE, same_place};
use crate::task::{Failure, Results};
use crate::{folders, stdin};

/// Executes `acp prompt`.
pub(in super::super) async fn prompt(
    args: &PromptArgs,
    results: &mut Results,
) -> Result<Code, Failure> {
    let text = match &*args.prompt {
        "-" => stdin::prompt(LONGEST_PROMPT)
            .await
            .map_err(Failure::usage)?,
        text => text.to_owned(),
    };
    let Live { path, .. } = one(&args.named).await?;
    let request = Request {
        text,
        format: (!args.no_wait).then_some(args.format),
        is_terminal: io::IsTerminal::is_terminal(&io::stdout()),
        is_shared: same_place(),
    };
    let id = acp_client::internal::new_prompt_id();
    let file = path.with_extension(format!("{id}.prompt"));
    let json = serde_json::to_vec(&request).map_err(|error| Failure::failed(error.to_string()))?;
    if json.len() as u64 >= LONGEST_PROMPT {
        let message = format!("the prompt is longer than {LONGEST_PROMPT} bytes");
        return Err(Failure::usage(message));
    }
    // Removed if the process does not take it.
    let _file = write(&file, &json).map_err(|error| {
        Failure::failed(format!(
            "cannot write the prompt to {}: {error}",
            file.display()
        ))
    })?;
    let name = &args.named.session;
    let answer = socket::ask::<Answer>(&path, &format!("prompt {id}")).await;
    let stream = match answer {
        Ok(Some((Answer::Accepted, stream))) => stream,
        Ok(Some((Answer::Refused(reason), _))) => {
            let message = format!("the session {name:?} takes no prompt: {reason}");
            return Err(Failure::failed(message));
        }
        Ok(None) => {
            return Err(Failure::failed(format!(
                "no acp uses the session {name:?} any more"
            )));
        }
        Err(reason) => return Err(unreached(&args.named, &reason)),
    };
    if args.no_wait {
        match args.format {
            Format::Json => {
                let line = serde_json::json!({ "type": "accepted", "promptId": id });
                results.json(&line.to_string()).await?;
            }
            Format::Text | Format::Quiet => results.line(&id).await?,
        }
        return Ok(Code::EndTurn);
    }
    copy(stream, results).await
}

fn write(file: &Path, json: &[u8]) -> io::Result<tempfile::TempPath> {
    let mut open = folders::open_file(file)?;
    let path = tempfile::TempPath::try_from_path(file)?;
    io::Write::write_all(&mut open, json)?;
    Ok(path)
}

/// Copies the output of a turn until its end.
async fn copy(mut pieces: impl AsyncRead + Unpin, results: &mut Results) -> Result<Code, Failure> {
    let mut bytes = Vec::new();
    while let Ok(what) = pieces.read_u8().await
        && let Ok(length) = pieces.read_u32().await
        && length as usize <= LONGEST_PIECE
    {
        bytes.resize(length as usize, 0);
        if pieces.read_exact(&mut bytes).await.is_err() {
            break;
        }
        match what {
            1 => results.bytes(&bytes).await?,
            2 => {
                results.flush().await?;
                let mut stderr = tokio::io::stderr();
                let _ = stderr.write_all(&bytes).await;
                let _ = stderr.flush().await;
            }
            _ => {
                let mut codes = Code::ALL.into_iter();
                let code = codes.find(|code| bytes == [*code as u8]);
                return Ok(code.unwrap_or(Code::Failed));
            }
        }
    }
    let message = "the rest of the turn is not shown: the acp that runs it has ended, or this one was too \
                   slow for it";
    Err(Failure::failed(message))
}
