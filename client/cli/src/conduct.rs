//! `acp conduct`: proxies between an editor and an agent.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use acp_client::{Reconnect, Rules};
use acp_proxy::{
    BridgeCommand, Conductor, ConductorError, End, Proxy, Side, Trace, proxies, run_bridge,
};

use super::args::ConductArgs;
use super::exit::Code;
use super::launch::Launch;
use super::mcp_servers;
use super::notes::{Notes, with_stderr};
use super::stop::Stop;
use super::task::say;

/// Runs a chain until the editor has disconnected, or a part of it has ended.
pub(super) async fn conduct(args: ConductArgs) -> Code {
    let notes = Notes::new();
    let ended = run(&args, &notes).await;
    notes.written().await;
    match ended {
        Ok(End {
            side: Side::Client, ..
        }) => Code::EndTurn,
        Ok(end) => {
            say(&format!("the chain has ended: {end}")).await;
            Code::NoAgent
        }
        Err((code, message)) => {
            say(&message).await;
            code
        }
    }
}

async fn run(args: &ConductArgs, notes: &Notes) -> Result<End, (Code, String)> {
    let failed = |error: io::Error| (Code::Failed, format!("cannot listen to signals: {error}"));
    let stop = Stop::listen(None).map_err(failed)?;
    let usage = |message| (Code::Usage, message);
    let mut conductor = Conductor::new().stop(stop.token());
    for text in &args.proxies {
        conductor = add(conductor, text, notes)
            .map_err(|reason| usage(format!("cannot use the proxy {text:?}: {reason}")))?;
    }
    if args.restart {
        conductor = conductor.restart(Reconnect::default());
    }
    if let Some(file) = &args.trace {
        let trace = Trace::create(file).map_err(|error| {
            let file = file.display();
            usage(format!("cannot write the trace to {file}: {error}"))
        })?;
        conductor = conductor.trace(trace);
    }
    let ended = match args.agent.is_given() {
        true => {
            let agent = args.agent.launch().and_then(|launch| launch.prepared());
            let agent = with_stderr(agent.map_err(usage)?, notes);
            conductor.bridge(bridge()).serve_stdio(agent).await
        }
        false => conductor.serve_as_proxy().await,
    };
    ended.map_err(|error| match &error {
        ConductorError::Start(start) => (Code::of_error(start), error.to_string()),
        _ => (Code::Failed, error.to_string()),
    })
}

/// Returns this command, as what an agent starts to reach an MCP server inside of the connection.
fn bridge() -> BridgeCommand {
    let own = std::env::current_exe();
    match own
        .ok()
        .and_then(|own| own.into_os_string().into_string().ok())
    {
        Some(own) => BridgeCommand::new(own, ["mcp-bridge"]),
        None => BridgeCommand::acp(),
    }
}

/// Copies standard input and output from and to an MCP server inside of a chain's connection.
pub(super) async fn mcp_bridge(address: &str) -> Code {
    let copied = run_bridge(address, tokio::io::stdin(), tokio::io::stdout()).await;
    match copied {
        Ok(()) => Code::EndTurn,
        Err(error) => {
            say(&error.to_string()).await;
            Code::Failed
        }
    }
}

/// Adds the proxy that an argument describes.
fn add(conductor: Conductor, text: &str, notes: &Notes) -> Result<Conductor, String> {
    let words = shell_words::split(text).map_err(|error| error.to_string())?;
    let Some((name, arguments)) = words.split_first() else {
        return Err("it is empty".to_owned());
    };
    let proxy = match name.as_str() {
        "policy" => policy(one(arguments, "a file of rules")?),
        "redact" => redact(arguments),
        "audit" => {
            let file = one(arguments, "the file to write")?;
            proxies::audit(file).map_err(|error| format!("{file}: {error}"))
        }
        "context" if arguments.is_empty() => Err("it needs files".to_owned()),
        "context" => {
            let files = arguments.iter().map(PathBuf::from);
            proxies::context(files).map_err(|error| error.to_string())
        }
        "tools" if arguments.is_empty() => Err("it needs MCP servers".to_owned()),
        "tools" => {
            let servers = mcp_servers::servers(arguments, true)?;
            proxies::tools(&servers).map_err(|error| error.to_string())
        }
        "record" => record(arguments),
        _ => {
            let words = words.into_iter().map(OsString::from);
            let command = Launch::of_words(words).prepared()?;
            return Ok(conductor.program(with_stderr(command, notes)));
        }
    };
    Ok(conductor.proxy(proxy?))
}

fn one<'a>(arguments: &'a [String], what: &str) -> Result<&'a str, String> {
    match arguments {
        [one] => Ok(one),
        _ => Err(format!("it needs one argument, {what}")),
    }
}

fn policy(file: &str) -> Result<Proxy, String> {
    let rules = Rules::read(file).map_err(|error| error.to_string())?;
    Ok(proxies::policy(rules))
}

fn redact(patterns: &[String]) -> Result<Proxy, String> {
    let usual = proxies::SECRETS.iter().copied();
    let patterns = usual.chain(patterns.iter().map(String::as_str));
    proxies::redact(patterns).map_err(|error| error.to_string())
}

fn record(arguments: &[String]) -> Result<Proxy, String> {
    let (file, verbatim) = match arguments {
        [file] => (file, false),
        [file, option] | [option, file] if option == "--verbatim" => (file, true),
        _ => return Err("it needs the file to write, and may have --verbatim".to_owned()),
    };
    proxies::record(file, verbatim).map_err(|error| error.to_string())
}
