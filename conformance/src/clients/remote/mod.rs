//! Clients of the remote transport: the suite plays the server.
//!
//! The client is a command that is given a URL. Behind it a stage acts a scenario over HTTP or over
//! WebSocket, and writes down every request, header and frame; when the client has ended, the rows
//! look at it.

mod events;
mod http;
pub(super) mod log;
pub(super) mod rows;
mod scripted_agent;
mod websocket;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

pub use self::log::{Asked, Log};
use self::scripted_agent::{Scenario, ScriptedAgent};
use super::launch::ClientEnv;
use super::played::Played;
use super::run::{Report, run_rows, target, watch};
use super::table::{self, ClientRequirement};
use crate::requirements::Choice;
use crate::target::Target;
use crate::target::within::runtime;
use crate::wire::Version;
use crate::workdir::Workdir;
use crate::{Error, Result};

const fn scenario(name: &'static str) -> Scenario {
    Scenario {
        name,
        is_websocket: false,
        is_rough: false,
        cuts: false,
        refuses: None,
    }
}

const SCENES: &[Scenario] = &[
    scenario("remote-http"),
    Scenario {
        is_rough: true,
        ..scenario("remote-stream")
    },
    Scenario {
        cuts: true,
        ..scenario("remote-cut")
    },
    Scenario {
        refuses: Some(("initialize", 401)),
        ..scenario("remote-unauthorized")
    },
    Scenario {
        refuses: Some(("session/prompt", 404)),
        ..scenario("remote-gone")
    },
    Scenario {
        is_websocket: true,
        ..scenario("remote-websocket")
    },
    Scenario {
        is_websocket: true,
        is_rough: true,
        ..scenario("remote-frames")
    },
];

/// Plays every scenario that one of the chosen requirements needs.
///
/// # Errors
/// When the client cannot be started, or no requirement is called what the choice says.
pub fn run(env: &ClientEnv, choice: &Choice, progress: impl FnMut(usize, usize)) -> Result<Report> {
    let command = Target::command(env.command.clone()).command_line();
    let rows: Vec<&'static ClientRequirement> = table::of_remote(Version::V1).collect();
    let names: Vec<_> = SCENES.iter().map(|scenario| scenario.name).collect();
    let play = |name: &str| env.unless_interrupted(|| play(env, name));
    run_rows(Version::V1, &rows, &names, command, choice, play, progress)
}

/// Plays one scenario.
///
/// # Errors
/// When the client cannot be started.
pub fn play(env: &ClientEnv, name: &str) -> Result<Played> {
    let found = SCENES.iter().find(|scenario| scenario.name == name);
    let scenario = found.ok_or_else(|| Error::NoRequirement(name.to_owned()))?;
    let began = SystemTime::now();
    let runtime = runtime().map_err(Error::Folder)?;
    let stage = Arc::new(ScriptedAgent::new(*scenario));
    let serving = runtime.block_on(http::serve(stage.clone()));
    let (port, serving) = serving.map_err(Error::Folder)?;
    let scheme = if scenario.is_websocket { "ws" } else { "http" };
    let url = format!("{scheme}://127.0.0.1:{port}/acp");
    let workdir = Workdir::new()?;
    let cwd = workdir.path().to_owned();
    let words = env.command.iter().map(|word| match word.to_str() {
        Some(text) => {
            let text = text.replace("{url}", &url);
            let text = text.replace("{cwd}", &cwd.to_string_lossy());
            text.replace("{prompt}", &env.prompt).into()
        }
        None => word.clone(),
    });
    let mut link = target(words.collect(), &cwd).start()?;
    link.close();
    let ended = watch(&mut link, env);
    let deadline = Instant::now() + Duration::from_millis(500);
    let exit = match ended {
        true => link.exit_code(deadline),
        false => None,
    };
    let stderr = link.stderr();
    drop(link);
    // What the client has sent last is on its way.
    runtime.block_on(stage.settle());
    serving.abort();
    let (record, log) = stage.finish();
    let mut played = Played::new(&env.schema, record, exit, stderr, cwd);
    played.remote = log;
    env.keep(name, began, &mut played);
    played.keep(workdir.into_folder());
    Ok(played)
}
