//! `--agent-user`, and `user` in a file of agents: the hosted agent as another user of the machine.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use acp_server_host::HostedAgentBuilder;
use nix::unistd::User;

/// What changes the user. The standard library sets no supplementary groups, and leaves those of the
/// server to an agent that is started without root; its own hook for that is unsafe.
const SETPRIV: &str = "setpriv";

/// Variables that name folders and sockets of the server's user.
const OF_THE_SERVER: [&str; 7] = [
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
];

/// A user that agents run as.
pub(super) struct AgentUser {
    name: String,
    home: PathBuf,
    shell: PathBuf,
    /// Arguments of `setpriv` before the command.
    args: Vec<OsString>,
}

impl AgentUser {
    /// Finds a user by name, and checks that processes can be started as it.
    ///
    /// # Errors
    ///
    /// With what is missing.
    pub(super) fn find(name: &str) -> Result<Self, String> {
        let user = match User::from_name(name) {
            Ok(Some(user)) => user,
            Ok(None) => return Err(format!("this machine has no user {name:?}")),
            Err(error) => return Err(format!("cannot look up {name:?}: {error}")),
        };
        if user.uid.is_root() || user.uid == nix::unistd::geteuid() {
            return Err(format!(
                "{name:?} is root or the user of the server, and could read its tokens"
            ));
        }
        let args = [
            format!("--reuid={}", user.uid),
            format!("--regid={}", user.gid),
            "--init-groups".to_owned(),
            // They would survive the change of the user: with CAP_SETUID an agent becomes anybody.
            "--inh-caps=-all".to_owned(),
            "--ambient-caps=-all".to_owned(),
            "--".to_owned(),
        ];
        let user = Self {
            name: user.name,
            home: user.dir,
            shell: user.shell,
            args: args.map(OsString::from).into(),
        };
        user.try_out()?;
        Ok(user)
    }

    /// Starts a program that does nothing.
    fn try_out(&self) -> Result<(), String> {
        let name = &self.name;
        let tried = Command::new(SETPRIV)
            .args(&self.args)
            .arg("true")
            .stdin(Stdio::null())
            .output();
        let reason = match tried {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => acp_sdk::text::one_line(&String::from_utf8_lossy(&output.stderr), 200),
            Err(error) => format!("cannot run `{SETPRIV}` of util-linux: {error}"),
        };
        Err(format!(
            "cannot start processes as {name}: {reason}. The server must be root, or \
             have CAP_SETUID and CAP_SETGID as ambient capabilities"
        ))
    }

    /// Has all processes of an agent run as this user, in its environment.
    pub(super) fn apply(self, mut agent: HostedAgentBuilder) -> HostedAgentBuilder {
        for name in OF_THE_SERVER {
            agent = agent.env_remove(name);
        }
        agent
            .env("HOME", self.home)
            .env("USER", &self.name)
            .env("LOGNAME", self.name)
            .env("SHELL", self.shell)
            .started_by(SETPRIV, self.args)
    }
}
