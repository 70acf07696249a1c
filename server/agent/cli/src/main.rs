//! The command `acp-agent`: a small coding agent.

mod args;
mod assemble;

mod config;
mod confine;

use std::process::ExitCode;

use clap::Parser;

use args::Args;
use config::Config;

fn main() -> ExitCode {
    let args = Args::parse();
    if args.init {
        return match config::init(args.config.as_deref()) {
            Ok(path) => said(
                &format!("wrote {}; name your models there", path.display()),
                ExitCode::SUCCESS,
            ),
            Err(error) => said(&error.to_string(), ExitCode::from(2)),
        };
    }
    if let Err(error) = confine::confine(&args.sandbox) {
        return said(&format!("--sandbox: {error}"), ExitCode::from(2));
    }
    let Args {
        config,
        agent,
        mut serve,
        ..
    } = args;
    let data = match config::data_folder() {
        Ok(data) => data,
        Err(error) => return said(&error.to_string(), ExitCode::from(2)),
    };
    let store = serve.store.store.take();
    serve.store.store = Some(store.unwrap_or_else(|| data.join("sessions.db")));
    serve.questions.project_rules = Some(data.join("rules"));
    // A tool that there is not need not be refused.
    let selected = serve.settings.model.clone();
    let allowed_tools = serve.allowed_tools.take();
    acp_server_cli::serve_agent(serve, || {
        let config = Config::find(config.as_deref());
        let config = config.map_err(|error| acp_server_cli::usage_error(error.to_string()))?;
        assemble::agent(config, agent, selected.as_deref(), allowed_tools, &data)
            .map_err(acp_server_cli::usage_error)
    })
}

/// Says something on standard error, and returns the exit code.
fn said(text: &str, code: ExitCode) -> ExitCode {
    eprintln!("acp-agent: {text}");
    code
}
