//! An agent behind a URL.

use std::ffi::OsString;
use std::path::PathBuf;

use acp_conformance::Result;
use acp_conformance::target::Target;

/// Where the agent is, and what its server wants to see.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct RemoteArgs {
    /// Test the agent at this URL instead of a command: http, https, ws or wss. Its sessions work in a
    /// folder of this machine, which the server must share
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Read the server's token from this file [default: the variable ACP_TOKEN]
    #[arg(long, value_name = "FILE", requires = "url")]
    token_file: Option<PathBuf>,
    /// Send this header with every request
    #[arg(long, value_name = "NAME:VALUE", requires = "url")]
    header: Vec<String>,
    /// Trust the certificate authorities in this PEM file instead of the system's
    #[arg(long, value_name = "FILE", requires = "url")]
    ca_file: Option<PathBuf>,
    /// Trust the certificate with this SHA-256, and no other
    #[arg(
        long,
        value_name = "SHA256",
        requires = "url",
        conflicts_with = "ca_file"
    )]
    fingerprint: Option<String>,
    /// Send the token and the headers to another machine without encryption, over http or ws
    #[arg(long, requires = "url")]
    insecure: bool,
}

impl RemoteArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.url.is_some()
    }

    /// Returns the agent at the URL, if there is one.
    pub(crate) fn target(&self) -> Result<Option<Target>> {
        match &self.url {
            Some(url) => self.at(url).map(Some),
            None => Ok(None),
        }
    }

    #[cfg(all(unix, feature = "remote"))]
    fn at(&self, url: &str) -> Result<Target> {
        use acp_conformance::target::{Endpoint, EndpointError};
        let token = match &self.token_file {
            Some(path) => {
                let token = read_token(path);
                Some(token.map_err(acp_conformance::Error::reading(path))?)
            }
            None => std::env::var_os("ACP_TOKEN").map(|it| it.to_string_lossy().into_owned()),
        };
        let mut agent = Endpoint::new(url)?;
        if let Some(token) = token {
            agent = agent.token(&token)?;
        }
        for header in &self.header {
            let (name, value) = header
                .split_once(':')
                .ok_or_else(|| EndpointError::Option {
                    // What has no colon may be a secret alone.
                    what: "--header".to_owned(),
                    reason: "expected NAME:VALUE".to_owned(),
                })?;
            agent = agent.header(name.trim(), value.trim())?;
        }
        if self.insecure {
            agent = agent.insecure();
        }
        if let Some(path) = &self.ca_file {
            agent = agent.ca_file(path)?;
        }
        if let Some(fingerprint) = &self.fingerprint {
            agent = agent.fingerprint(fingerprint)?;
        }
        Ok(Target::url(agent))
    }

    #[cfg(not(all(unix, feature = "remote")))]
    fn at(&self, _: &str) -> Result<Target> {
        Err(acp_conformance::Error::NoRemote)
    }

    /// Returns the options as they were given, except headers, which may be secrets.
    pub(crate) fn again(&self) -> Vec<OsString> {
        let options = [
            ("--url", self.url.clone().map(OsString::from)),
            ("--token-file", self.token_file.clone().map(OsString::from)),
            ("--ca-file", self.ca_file.clone().map(OsString::from)),
            (
                "--fingerprint",
                self.fingerprint.clone().map(OsString::from),
            ),
        ];
        let given = options
            .into_iter()
            .filter_map(|(name, value)| Some([name.into(), value?]));
        let insecure = self.insecure.then(|| "--insecure".into());
        given.flatten().chain(insecure).collect()
    }
}

/// Reads a token; of a file that is no token, as much as is too long for one.
#[cfg(all(unix, feature = "remote"))]
fn read_token(path: &std::path::Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(16 << 10).read_to_string(&mut text)?;
    Ok(text)
}
