//! `acp-server tokens`: named tokens of a file, which servers take into use while they run.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use acp_sdk::text::single_line;
use acp_server::Access;
use acp_server::internal::clock;
use acp_server::store::SqliteStore;
use acp_server_remote::{NamedToken, TokenFile, TokenFileError};
use clap::{Args, Subcommand};

use super::usage::usage;
use super::{Failure, keep, note};

/// What `acp-server tokens --help` explains besides the commands.
const ABOUT_TOKENS: &str = r#"The file has hashes of the tokens only. A server that uses it (`acp-server serve
--tokens FILE`) takes changes into use within a second: what was opened with a
token that is revoked or expires ends then.

  (umask 077; acp-server tokens add dashboard --read-only --expires 90d > dashboard.token)

Exit codes: 0, 1 when the file cannot be used, a name is taken or unknown, 2
for wrong usage."#;

/// Adds, lists and revokes tokens, each with a name, a right and an expiry.
#[derive(Debug, Args)]
#[command(after_help = ABOUT_TOKENS)]
pub struct Tokens {
    /// The file.
    #[command(flatten)]
    pub file: TokensFile,
    /// What to do.
    #[command(subcommand)]
    pub command: TokensCommand,
}

/// Where tokens are kept.
#[derive(Clone, Debug, Args)]
pub struct TokensFile {
    /// File of named tokens [default: acp-server/tokens.json in the user's data folder]
    #[arg(long, value_name = "FILE", global = true)]
    pub tokens: Option<PathBuf>,
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    /// Adds a token and prints its secret, once. It permits everything unless an option says less
    Add {
        /// What it is called: letters, digits, `.`, `_` and `-`
        name: String,
        /// It permits reading
        #[arg(long, conflicts_with = "session")]
        read_only: bool,
        /// It permits everything in this session, and nothing elsewhere
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// It ends after this time, such as 30d, 12h or 45m
        #[arg(long, value_name = "DURATION", value_parser = keep::age)]
        expires: Option<Duration>,
    },
    /// Lists the tokens, the oldest first
    List {
        /// A JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Removes a token
    Revoke {
        /// What it is called
        name: String,
    },
}

impl TokensFile {
    /// Returns the file.
    ///
    /// # Errors
    ///
    /// When the user has no home folder.
    pub(super) fn file(&self) -> Result<TokenFile, Failure> {
        Ok(TokenFile::new(match &self.tokens {
            Some(path) => path.clone(),
            None => SqliteStore::default_path()?.with_file_name("tokens.json"),
        }))
    }
}

/// Returns the end of the years of four digits, in which times are written.
fn end_of_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_800)
}

/// Adds, lists or revokes tokens.
pub(super) fn manage(args: Tokens, output: &mut impl Write) -> Result<(), Failure> {
    let file = args.file.file()?;
    match args.command {
        TokensCommand::Add {
            name,
            read_only,
            session,
            expires,
        } => {
            let access = match session {
                Some(session) => Access::Session(session.into()),
                None if read_only => Access::ReadOnly,
                None => Access::Full,
            };
            let now = SystemTime::now();
            let after = |after| now.checked_add(after).filter(|at| *at < end_of_time());
            let expires = match expires.map(after) {
                Some(None) => return usage("--expires: the time is too far in the future"),
                expires => expires.flatten(),
            };
            let token = match file.add(&name, access, expires) {
                Err(error @ TokenFileError::Name(_)) => return usage(error.to_string()),
                added => added?,
            };
            note(&format!("added {name} to {}", file.path().display()));
            writeln!(output, "{}", token.secret())?;
        }
        TokensCommand::List { json } => {
            let now = SystemTime::now();
            let tokens = file.list()?;
            if !json && !tokens.is_empty() {
                writeln!(
                    output,
                    "{:<24} {:<10} {:<25} RIGHT",
                    "NAME", "STATE", "EXPIRES"
                )?;
            }
            for token in tokens {
                match json {
                    true => writeln!(output, "{}", object(&token, now))?,
                    false => line(output, &token, now)?,
                }
            }
        }
        TokensCommand::Revoke { name } => {
            file.revoke(&name)?;
            writeln!(output, "revoked {}", single_line(&name))?;
        }
    }
    Ok(())
}

fn line(output: &mut impl Write, token: &NamedToken, now: SystemTime) -> std::io::Result<()> {
    let right = match &token.access {
        Access::Full => "everything".to_owned(),
        Access::ReadOnly => "reading".to_owned(),
        Access::Session(session) => format!("session {}", single_line(session.as_str())),
    };
    let expires = token.expires.map_or("never".to_owned(), clock::text_of);
    let name = single_line(&token.name);
    let state = state(token, now);
    writeln!(output, "{name:<24} {state:<10} {expires:<25} {right}")
}

fn object(token: &NamedToken, now: SystemTime) -> serde_json::Value {
    let (access, session) = match &token.access {
        Access::Full => ("full", None),
        Access::ReadOnly => ("read-only", None),
        Access::Session(session) => ("session", Some(session.as_str())),
    };
    serde_json::json!({
        "name": token.name,
        "state": state(token, now),
        "access": access,
        "session": session,
        "created": clock::text_of(token.created),
        "expires": token.expires.map(clock::text_of),
    })
}

fn state(token: &NamedToken, now: SystemTime) -> &'static str {
    match token.has_expired(now) {
        true => "expired",
        false => "valid",
    }
}
