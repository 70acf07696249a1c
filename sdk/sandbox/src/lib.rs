//! Confines a process and the processes that it starts: they write in some directories only.
//!
//! [`SandboxSettings`] say what is permitted and which [`Mechanism`] of the system enforces it;
//! [`prepare`](SandboxSettings::prepare) fails if it cannot. [`Sandbox::spawn`] starts the process.
//!
//! ```no_run
//! use acp_sandbox::{Mechanism, SandboxSettings};
//! use std::process::Command;
//!
//! let settings = SandboxSettings::new(Mechanism::Landlock).writable("/home/me/project");
//! let sandbox = settings.prepare()?;
//! let mut command = Command::new("sh");
//! command.args(["-c", "touch /home/me/other"]).envs(sandbox.variables());
//! // `touch` fails: permission denied.
//! let status = sandbox.spawn(|| command.status())?;
//! assert!(!status.success());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is enforced
//!
//! No file is created, changed, truncated, renamed, linked or removed outside the writable paths and
//! a temporary directory of the sandbox, which the variables `TMPDIR`, `TMP` and `TEMP` name.
//! `/dev/null` and its like accept writes. The process gains no privileges by set-user-ID programs.
//! The rights hold for its descendants too, and cannot be given back.
//!
//! | | Landlock | bubblewrap |
//! |---|---|---|
//! | needs | Linux 6.2 | the program `bwrap`, and user namespaces |
//! | permissions, owner, times of files outside | can be changed | refused |
//! | signals to processes outside | refused from Linux 6.12 on | refused |
//! | abstract Unix sockets of others | refused from Linux 6.12 on | permitted unless without network |
//! | pseudo-terminals | only if `/dev/ptmx` and `/dev/pts` are writable paths | its own |
//! | without network | cannot be enforced | enforced |
//!
//! # What is not
//!
//! Reading: what the user can read, the process can read. Other programs: one that takes commands over
//! a socket, such as Docker or a user's systemd, can be asked to write elsewhere. The resources of the
//! machine: use the limits of the system.

#[cfg(feature = "clap")]
pub mod args;
mod bubblewrap;
mod error;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(not(target_os = "linux"))]
#[path = "no_landlock.rs"]
mod landlock;
mod sandbox;
mod settings;
mod state;

pub use self::error::{SandboxError, SandboxErrorKind};
pub use self::sandbox::Sandbox;
pub use self::settings::{Mechanism, SandboxSettings};
pub use self::state::prepared_state;
