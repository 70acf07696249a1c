//! Clients of the remote transport: the suite plays the server.
//!
//! The client is a command that is given a URL. Behind it a stage acts a scene over HTTP or over
//! WebSocket, and writes down every request, header and frame; when the client has ended, the rows
//! look at it.

mod events;
mod http;
mod log;
mod rows;
mod stage;
mod websocket;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

pub use self::log::{Asked, Log};
pub(super) use self::rows::CHECKS;
use self::stage::Stage;
use super::run::{Played, Report, run_rows, subject, watch};
use super::{ClientEnv, ClientRequirement, table};
use crate::requirements::Choice;
use crate::subject::Subject;
use crate::subject::within::runtime;
use crate::wire::Version;
use crate::workdir::Workdir;
use crate::{Error, Result};

/// What a scene is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) is_websocket: bool,
    /// Events come with all that the format permits, byte by byte.
    pub(super) is_rough: bool,
    /// The stream of the session ends in the middle of the turn.
    pub(super) cuts: bool,
    /// The status of every request, from this method on.
    pub(super) refuses: Option<(&'static str, u16)>,
}

const fn scene(name: &'static str) -> Scene {
    Scene {
        name,
        is_websocket: false,
        is_rough: false,
        cuts: false,
        refuses: None,
    }
}

pub(super) const SCENES: &[Scene] = &[
    scene("remote-http"),
    Scene {
        is_rough: true,
        ..scene("remote-stream")
    },
    Scene {
        cuts: true,
        ..scene("remote-cut")
    },
    Scene {
        refuses: Some(("initialize", 401)),
        ..scene("remote-unauthorized")
    },
    Scene {
        refuses: Some(("session/prompt", 404)),
        ..scene("remote-gone")
    },
    Scene {
        is_websocket: true,
        ..scene("remote-websocket")
    },
    Scene {
        is_websocket: true,
        is_rough: true,
        ..scene("remote-frames")
    },
];

/// Plays every scene that one of the chosen requirements needs.
///
/// # Errors
/// When the client cannot be started, or no requirement is called what the choice says.
pub fn run(env: &ClientEnv, choice: &Choice, progress: impl FnMut(usize, usize)) -> Result<Report> {
    let command = Subject::command(env.command.clone()).command_line();
    let rows: Vec<&'static ClientRequirement> = table::of_remote(Version::V1).collect();
    let names: Vec<_> = SCENES.iter().map(|scene| scene.name).collect();
    let play = |name: &str| play(env, name);
    run_rows(Version::V1, &rows, &names, command, choice, play, progress)
}

/// Plays one scene.
///
/// # Errors
/// When the client cannot be started.
pub fn play(env: &ClientEnv, name: &str) -> Result<Played> {
    let found = SCENES.iter().find(|scene| scene.name == name);
    let scene = found.ok_or_else(|| Error::NoRequirement(name.to_owned()))?;
    let runtime = runtime().map_err(Error::Folder)?;
    let stage = Arc::new(Stage::new(*scene));
    let serving = runtime.block_on(http::serve(stage.clone()));
    let (port, serving) = serving.map_err(Error::Folder)?;
    let scheme = if scene.is_websocket { "ws" } else { "http" };
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
    let mut link = subject(words.collect(), &cwd).start()?;
    link.close();
    let ended = watch(&mut link, Instant::now() + env.timeout);
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
    played.keep(workdir.into_folder());
    Ok(played)
}

/// The id of a message as it is compared.
fn id_of(message: &Value) -> Option<&Value> {
    message.get("id").filter(|id| !id.is_null())
}
