//! `acp login`, and `--auth` of other commands: authentication by the agent, or in this terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use acp_sdk::v1::AuthMethod;

use super::args::{AgentArgs, ListFormat, LoginArgs};
use super::exit::Code;
use super::opening_failure::OpeningFailure;
use super::task::{Failure, Results, say};
use super::{complain, open};
use acp_client::AgentCommand;
use acp_client::LoginCommand;
use acp_client::{Client, ClientBuilder};
use acp_sdk::text::one_line;

/// Maximum number of displayed characters of the agent's text.
const LONGEST: usize = 200;

/// Maximum number of prompts until a valid number.
const TRIES: usize = 3;

/// Timeout for authentication on a page in the browser.
const LIMIT: Duration = Duration::from_secs(600);

/// Maximum number of bytes read of an answer.
const LONGEST_ANSWER: u64 = 1000;

/// Returns whether a program can prompt the user: standard input and standard error are terminals.
fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Declares terminal authentication if there is a terminal and the agent's program is on this
/// machine.
pub(super) fn declare(builder: ClientBuilder, agent: &AgentArgs) -> ClientBuilder {
    match has_terminal() && agent.remote.url.is_none() {
        true => builder.terminal_auth(),
        false => builder,
    }
}

/// Returns the command of a method that requires the terminal; `None` for other methods.
///
/// # Errors
///
/// Fails when the agent's program is on another machine.
pub(super) fn in_terminal(
    client: &Client,
    method: &str,
) -> Result<Option<LoginCommand>, OpeningFailure> {
    let login = client.login_command(method);
    let mut methods = client.agent_info().auth_methods.iter();
    let is_terminal = methods.any(
        |offered| matches!(offered, AuthMethod::Terminal(terminal) if terminal.id.as_str() == method),
    );
    match login {
        None if is_terminal => Err(OpeningFailure::Login(format!(
            "the method `{method}` runs in a terminal on the agent's machine. Log in there"
        ))),
        login => Ok(login),
    }
}

/// Runs a login program in this terminal.
///
/// # Errors
///
/// Fails when there is no terminal, or the program cannot be started or fails.
pub(super) async fn run(login: &LoginCommand) -> Result<(), OpeningFailure> {
    let shown = AgentCommand::new(&login.program)
        .args(&login.args)
        .to_string();
    let shown = one_line(&shown, LONGEST);
    if !has_terminal() {
        return Err(OpeningFailure::Login(format!(
            "the method `{}` needs a terminal. Run `{shown}` in one, or acp with standard input and \
             standard error connected to one",
            login.method
        )));
    }
    let label = one_line(&login.label, LONGEST);
    complain(format_args!(
        "acp: {label}: running `{shown}` in this terminal"
    ));
    let mut command = tokio::process::Command::from(login.command());
    // Standard output is reserved for the result of acp.
    command
        .stdin(Stdio::inherit())
        .stdout(io::stderr())
        .stderr(Stdio::inherit());
    let modes = Modes::save();
    let ended = match command.kill_on_drop(true).spawn() {
        Ok(mut child) => child.wait().await,
        Err(error) => Err(error),
    };
    drop(modes);
    let failed = |what: String| {
        Err(OpeningFailure::Login(format!(
            "cannot log in by the method `{}`: {what}",
            login.method
        )))
    };
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => failed(format!("`{shown}` ended with {status}")),
        Err(error) => {
            let directory = login.current_dir.as_deref();
            let reason = acp_client::internal::why_not(&login.program, directory, &error);
            failed(format!("cannot start `{shown}`: {reason}"))
        }
    }
}

/// The modes of the terminal, to restore them after a program that was killed.
struct Modes(#[cfg(unix)] Option<rustix::termios::Termios>);

impl Modes {
    fn save() -> Self {
        Self(
            #[cfg(unix)]
            rustix::termios::tcgetattr(io::stdin()).ok(),
        )
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(modes) = &self.0 {
            use rustix::termios::{OptionalActions, tcsetattr};
            // Fails if the terminal was closed.
            let _ = tcsetattr(io::stdin(), OptionalActions::Drain, modes);
        }
    }
}

/// Logs in, or lists the methods.
pub(super) async fn login(args: &LoginArgs, results: &mut Results) -> Result<Code, Failure> {
    let builder = declare(open::builder().answer_within(LIMIT), &args.agent);
    let client = open::client(&args.agent, builder, AgentCommand::leave_detached).await?;
    let methods = &client.agent_info().auth_methods;
    if args.list {
        list(methods, args.format, results).await?;
        client.shutdown().await;
        return Ok(Code::EndTurn);
    }
    let method = match &args.auth {
        Some(method) => method.clone(),
        None => choose(methods).await?,
    };
    match in_terminal(&client, &method)? {
        Some(login) => {
            // A running agent may lock the files that the program changes.
            client.shutdown().await;
            run(&login).await?;
        }
        None => {
            let waiting = format!("waiting for the agent to log in by `{method}`; Ctrl-C cancels");
            say(&waiting).await;
            client.authenticate(method.as_str()).await?;
            client.shutdown().await;
        }
    }
    say(&format!("logged in by `{method}`")).await;
    Ok(Code::EndTurn)
}

/// Returns the id, kind, name and description of a method.
fn described(method: &AuthMethod) -> Option<[String; 4]> {
    let (id, kind, name, description) = match method {
        AuthMethod::Terminal(method) => (&method.id, "terminal", &method.name, &method.description),
        AuthMethod::Agent(method) => (&method.id, "agent", &method.name, &method.description),
        _ => return None,
    };
    let description = description.as_deref().unwrap_or_default();
    Some([id.as_str(), kind, name, description].map(|text| one_line(text, LONGEST)))
}

async fn list(
    methods: &[AuthMethod],
    format: ListFormat,
    results: &mut Results,
) -> Result<(), Failure> {
    if methods.is_empty() {
        say("the agent offers no authentication method").await;
    }
    for method in methods {
        let line = match format {
            ListFormat::Json => {
                serde_json::to_string(method).map_err(|error| Failure::Output(error.into()))?
            }
            ListFormat::Text => match described(method) {
                Some([id, kind, name, description]) => {
                    format!("{id}  {kind}  {name}  {description}")
                }
                None => continue,
            },
        };
        results.line(line.trim_end()).await?;
    }
    Ok(())
}

/// Returns the id of the only method, or of the method that the user selects.
async fn choose(methods: &[AuthMethod]) -> Result<String, Failure> {
    let lines: Vec<_> = methods.iter().filter_map(described).collect();
    match lines.as_slice() {
        [] => {
            return Err(Failure::failed(
                "the agent offers no authentication method: it needs none, or its own command logs in",
            ));
        }
        [[id, ..]] => return Ok(id.clone()),
        _ => {}
    }
    if !has_terminal() {
        let ids: Vec<_> = lines.iter().map(|[id, ..]| id.as_str()).collect();
        return Err(Failure::usage(format!(
            "the agent offers several methods. Choose one by `--auth METHOD`: {}",
            ids.join(", ")
        )));
    }
    for (number, [id, _, name, description]) in (1..).zip(&lines) {
        let line = format!("  {number}  {name} ({id})  {description}");
        complain(line.trim_end());
    }
    for _ in 0..TRIES {
        // The answer is typed in the same line, so a whole line cannot be queued.
        let _ = write!(io::stderr(), "Log in by which method? [1-{}] ", lines.len());
        let answer = answer().await?;
        let chosen = answer.trim().parse::<usize>().ok();
        let chosen = chosen.and_then(|number| lines.get(number.checked_sub(1)?));
        let named = lines.iter().find(|[id, ..]| id == answer.trim());
        if let Some([id, ..]) = chosen.or(named) {
            return Ok(id.clone());
        }
    }
    Err(Failure::usage(
        "no method was chosen. Choose one by `--auth METHOD`",
    ))
}

/// Reads a line on a separate thread that is not joined, because the read cannot be cancelled.
async fn answer() -> Result<String, Failure> {
    use std::io::{BufRead as _, Read as _};
    let (tell, read) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().take(LONGEST_ANSWER).read_line(&mut line);
        // The receiver may have been dropped.
        let _ = tell.send(read.map(|length| (length, line)));
    });
    match read.await {
        Ok(Ok((1.., line))) => Ok(line),
        Ok(Err(error)) => Err(Failure::failed(format!("cannot read the answer: {error}"))),
        _ => Err(Failure::usage(
            "no method was chosen. Choose one by `--auth METHOD`",
        )),
    }
}
