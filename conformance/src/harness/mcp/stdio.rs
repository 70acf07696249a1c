//! An MCP server over stdio: a script that writes down how it was started.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::unavailable;
use crate::harness::{Outcome, skip};
use crate::wire::Version;

const SCRIPT: &str = include_str!("server.sh");

/// The variable that the server is given.
const VARIABLE: &str = "ACP_CONFORMANCE_PROBE";

/// An MCP server over stdio. It is removed with this value.
#[derive(Debug)]
pub(crate) struct StdioServer {
    folder: TempDir,
    name: &'static str,
    command: PathBuf,
    args: Vec<String>,
}

/// How the server was started once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Started {
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// Its variable.
    pub(crate) variable: String,
}

impl StdioServer {
    /// Writes the server into a folder, beside the files of a session.
    ///
    /// # Errors
    /// Inconclusive when that is impossible; a skip where no shell is.
    pub(crate) fn new(name: &'static str, within: &Path) -> Outcome<Self> {
        if !cfg!(unix) {
            return skip("the suite has no MCP server for this system");
        }
        let folder = tempfile::Builder::new()
            .prefix(".acp-conformance-mcp-")
            .tempdir_in(within);
        let folder = unavailable(folder)?;
        let command = folder.path().join("server");
        unavailable(std::fs::write(&command, SCRIPT))?;
        unavailable(executable(&command))?;
        let log = folder.path().to_string_lossy().into_owned();
        let args = vec![log, "--name".to_owned(), "two words".to_owned()];
        Ok(Self {
            folder,
            name,
            command,
            args,
        })
    }

    /// Returns the arguments and the variable that it must be started with.
    pub(crate) fn expected(&self) -> Started {
        Started {
            args: self.args.clone(),
            variable: format!("value of {}", self.name),
        }
    }

    /// Returns the server as an element of `mcpServers`.
    pub(crate) fn value(&self, version: Version) -> Value {
        let expected = self.expected();
        let mut server = json!({
            "name": self.name,
            "command": self.command,
            "args": expected.args,
            "env": [{"name": VARIABLE, "value": expected.variable}],
        });
        if version == Version::V2 {
            server["type"] = json!("stdio");
        }
        server
    }

    /// Returns every start so far that reached `initialize`.
    pub(crate) fn connected(&self) -> Vec<Started> {
        self.records("connected")
    }

    /// Returns every start so far.
    pub(crate) fn started(&self) -> Vec<Started> {
        self.records("started")
    }

    fn records(&self, extension: &str) -> Vec<Started> {
        let files = std::fs::read_dir(self.folder.path()).into_iter().flatten();
        let files = files.filter_map(|file| Some(file.ok()?.path()));
        let files = files.filter(|path| path.extension().is_some_and(|it| it == extension));
        let texts = files.filter_map(|path| std::fs::read_to_string(path).ok());
        texts.map(|text| read(&text)).collect()
    }
}

fn read(record: &str) -> Started {
    let mut started = Started::default();
    for line in record.lines() {
        match line.split_once('=') {
            Some(("arg", arg)) => started.args.push(arg.to_owned()),
            Some(("variable", value)) => value.clone_into(&mut started.variable),
            _ => {}
        }
    }
    started
}

#[cfg(unix)]
fn executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn executable(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_script_answers_and_writes_down_how_it_was_started() {
        let folder = tempfile::tempdir().unwrap();
        let server = StdioServer::new("probe", folder.path()).unwrap();
        let value = server.value(Version::V2);
        assert_eq!(value["type"], "stdio");
        assert!(server.started().is_empty());
        let mut child = Command::new(value["command"].as_str().unwrap())
            .args(
                value["args"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter_map(Value::as_str),
            )
            .env_clear()
            .env(VARIABLE, value["env"][0]["value"].as_str().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut ask = |message: &str| {
            writeln!(input, "{message}").unwrap();
            let line = output.next().unwrap().unwrap();
            serde_json::from_str::<Value>(&line).unwrap()
        };
        let answer = ask(
            r#"{"jsonrpc":"2.0","id":"a-1","method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#,
        );
        assert_eq!(answer["id"], "a-1");
        assert_eq!(answer["result"]["protocolVersion"], "2025-03-26");
        assert_eq!(server.connected(), [server.expected()]);
        let answer = ask(
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n{\"method\": \"tools/list\", \"jsonrpc\": \"2.0\", \"id\": 7}",
        );
        assert_eq!(
            answer,
            json!({"jsonrpc": "2.0", "id": 7, "result": {"tools": []}})
        );
        let answer = ask(r#"{"jsonrpc":"2.0","id":8,"method":"prompts/list"}"#);
        assert_eq!(answer["error"]["code"], -32601);
        drop(input);
        assert!(child.wait().unwrap().success());
        assert_eq!(server.started(), []);
    }
}
