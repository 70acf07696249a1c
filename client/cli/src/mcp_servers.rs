//! `--mcp-server`: MCP servers for the agent.

use std::collections::BTreeMap;
use std::path::Path;

use acp_sdk::v1::{
    EnvVariable, HttpHeader, InitializeResponse, McpServer, McpServerHttp, McpServerSse,
    McpServerStdio,
};
use serde::Deserialize;

use super::launch::found;
use acp_client::Error;

/// Maximum size of a file of servers, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// A file of servers, in the format that other clients use, too.
#[derive(Debug, Deserialize)]
struct File {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    r#type: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// Parses the values of the option. If the agent runs on this machine (`here`), programs are
/// searched in `PATH`, because the protocol requires absolute paths.
///
/// # Errors
///
/// Fails with the invalid value and the reason.
pub(super) fn servers(values: &[String], here: bool) -> Result<Vec<McpServer>, String> {
    let mut servers = Vec::new();
    for value in values {
        let read = match value.split_once('=').filter(|(name, _)| is_name(name)) {
            Some((name, rest)) => inline(name, rest, here).map(|server| vec![server]),
            None => file(Path::new(value), here),
        };
        servers
            .extend(read.map_err(|reason| format!("cannot use --mcp-server {value:?}: {reason}"))?);
    }
    Ok(servers)
}

/// Rejects servers that the agent does not support.
///
/// # Errors
///
/// [`Error::Unsupported`]; nothing was sent then.
pub(super) fn check(servers: &[McpServer], agent: &InitializeResponse) -> Result<(), Error> {
    let supported = &agent.agent_capabilities.mcp_capabilities;
    for server in servers {
        match server {
            McpServer::Http(server) if !supported.http => {
                let what = format!("the MCP server {} over HTTP", server.name);
                return Err(Error::unsupported(&what, "mcpCapabilities.http"));
            }
            McpServer::Sse(server) if !supported.sse => {
                let what = format!("the MCP server {} over SSE", server.name);
                return Err(Error::unsupported(&what, "mcpCapabilities.sse"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Parses `NAME=COMMAND ARG…` or `NAME=URL`.
fn inline(name: &str, rest: &str, here: bool) -> Result<McpServer, String> {
    if is_url(rest) {
        return Ok(McpServerHttp::new(name, rest, Vec::new()).into());
    }
    let mut words = words(rest)?.into_iter();
    let command = words.next().ok_or("expected a command after `=`")?;
    stdio(name, &command, words.collect(), BTreeMap::new(), here)
}

#[cfg(unix)]
fn words(text: &str) -> Result<Vec<String>, String> {
    shell_words::split(text).map_err(|error| error.to_string())
}

/// Backslashes are separators in paths of this system.
#[cfg(not(unix))]
fn words(text: &str) -> Result<Vec<String>, String> {
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

fn stdio(
    name: &str,
    command: &str,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    here: bool,
) -> Result<McpServer, String> {
    let path = match here {
        true => found(command.as_ref(), None).ok_or_else(|| format!("{command} is not found"))?,
        false => command.into(),
    };
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    let path = path.into_os_string().into_string();
    let path = path.map_err(|_| format!("the path of {command} is not UTF-8"))?;
    let env = env
        .into_iter()
        .map(|(name, value)| EnvVariable::new(name, value));
    Ok(McpServerStdio::new(name, path, args, env.collect()).into())
}

fn file(path: &Path, here: bool) -> Result<Vec<McpServer>, String> {
    let text = super::text_file::read(path, LARGEST_FILE)?
        .ok_or("expected NAME=COMMAND, NAME=URL, or a file, and there is no such file")?;
    let file: File = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let server = |(name, entry): (String, Entry)| {
        let server = match (entry.r#type.as_deref(), entry.command, entry.url) {
            (None | Some("stdio"), Some(command), _) => {
                stdio(&name, &command, entry.args, entry.env, here)
            }
            (kind @ (None | Some("http" | "streamable-http" | "sse")), _, Some(url)) => {
                let headers = entry.headers.into_iter();
                let headers = headers
                    .map(|(name, value)| HttpHeader::new(name, value))
                    .collect();
                Ok(match kind {
                    Some("sse") => McpServerSse::new(&*name, url, headers).into(),
                    _ => McpServerHttp::new(&*name, url, headers).into(),
                })
            }
            _ => Err("expected `command`, or `type` http or sse with `url`".to_owned()),
        };
        server.map_err(|reason| format!("{name}: {reason}"))
    };
    file.servers.into_iter().map(server).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: &str) -> Result<Value, String> {
        let servers = servers(&[value.to_owned()], true)?;
        Ok(serde_json::to_value(servers).unwrap())
    }

    #[test]
    fn a_command_is_looked_up_and_split() {
        let read = read("files=sh -c 'a b'").unwrap();
        assert_eq!(read[0]["name"], "files");
        assert!(read[0]["command"].as_str().unwrap().ends_with("/sh"));
        assert_eq!(read[0]["args"], json!(["-c", "a b"]));
    }

    #[test]
    fn a_url_is_a_server_over_http() {
        let read = read("web=https://host/mcp?a=b").unwrap();
        assert_eq!(read[0]["type"], "http");
        assert_eq!(read[0]["url"], "https://host/mcp?a=b");
    }

    #[test]
    fn a_file_has_servers_of_all_kinds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mcp.json");
        let text = json!({"mcpServers": {
            "a": {"command": "sh", "env": {"K": "V"}}, "b": {"type": "sse", "url": "https://h/s"},
            "c": {"type": "http", "url": "https://h/m", "headers": {"X": "y"}},
        }});
        std::fs::write(&path, text.to_string()).unwrap();
        let read = read(path.to_str().unwrap()).unwrap();
        assert_eq!(read[0]["env"], json!([{"name": "K", "value": "V"}]));
        assert_eq!(read[1]["type"], "sse");
        assert_eq!(read[2]["headers"], json!([{"name": "X", "value": "y"}]));
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        for (value, reason) in [
            ("files=", "expected a command"),
            ("files=no-such-program", "no-such-program is not found"),
            ("files='", "cannot use"),
            ("/no/such/file", "no such file"),
        ] {
            let error = read(value).unwrap_err();
            assert!(error.contains(reason), "{value}: {error}");
        }
    }
}
