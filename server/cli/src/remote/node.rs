//! The arguments that make a server one of several nodes.

use std::path::PathBuf;
use std::time::Duration;

use acp_server_cluster::Cluster;
use acp_server_remote::{Metrics, NodeEndpoint};
use clap::Args;
use tokio::net::TcpListener;

use super::super::Failure;
use super::super::store::{NodeIdentity, StoreArgs};
use super::super::usage::usage;
use super::secrets;

/// Other servers with the same store, at which every session can be used, too.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Where the other servers of the same database reach this one, such as `http://10.0.0.7:7410`: sessions
    /// that are open here are used at every server. Not for clients: keep it inside of your network
    #[arg(long, value_name = "URL")]
    pub node_address: Option<String>,
    /// Address and port to listen on for other servers [default: those of --node-address]
    #[arg(long, value_name = "HOST:PORT", requires = "node_address")]
    pub node_listen: Option<String>,
    /// File with the secret that all servers of the database show each other; without it, ACP_NODE_SECRET of
    /// the environment
    #[arg(long, value_name = "FILE", requires = "node_address")]
    pub node_secret_file: Option<PathBuf>,
    /// Seconds without a sign of life after which other servers open the sessions of this one. It gives one
    /// every third of them, and ends its turns by itself after two thirds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(3..=3600))]
    pub node_takeover: u64,
    /// Sessions that this server opens each second at most because their server was killed in a turn: the
    /// turn ends in the log, although nobody asks for the session. 0: none
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub node_adopt: u32,
}

impl NodeArgs {
    /// Returns how the store knows this server.
    pub(super) fn identity(&self) -> NodeIdentity<'_> {
        NodeIdentity {
            address: self.node_address.as_deref(),
            takeover: Duration::from_secs(self.node_takeover),
        }
    }

    /// Listens for other nodes; `None` for a server that is alone.
    ///
    /// # Errors
    ///
    /// Wrong usage; when the address cannot be listened on.
    pub(super) async fn start(
        &self,
        store: &StoreArgs,
        metrics: &Metrics,
    ) -> Result<Option<(Cluster, NodeEndpoint)>, Failure> {
        let Some(address) = &self.node_address else {
            return Ok(None);
        };
        if !store.is_shared()? {
            return usage("--node-address needs a store that servers share: --store postgres://…");
        }
        let Some(secret) = secrets::of_nodes(self.node_secret_file.as_deref())? else {
            return usage(
                "--node-address needs the secret of all nodes: --node-secret-file FILE or \
                 ACP_NODE_SECRET. `openssl rand -hex 32` makes one",
            );
        };
        let Some(place) = host_and_port(address) else {
            return usage(format!(
                "--node-address {address:?}: expected http://HOST:PORT"
            ));
        };
        let listen = self.node_listen.as_deref().unwrap_or(place);
        let listener = match TcpListener::bind(listen).await {
            Ok(listener) => listener,
            Err(error) => {
                return Err(format!("cannot listen on {listen} for other nodes: {error}").into());
            }
        };
        tracing::info!("node: other servers reach this one at {address}");
        let takeover = self.identity().takeover;
        let cluster = Cluster::new(secret.clone(), takeover, metrics.clone())?;
        let address = address.clone();
        let endpoint = NodeEndpoint {
            address,
            listener,
            secret,
        };
        Ok(Some((cluster, endpoint)))
    }
}

/// Returns host and port of `http://HOST:PORT`.
fn host_and_port(address: &str) -> Option<&str> {
    let place = address.strip_prefix("http://")?.trim_end_matches('/');
    let (host, port) = place.rsplit_once(':')?;
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    (!host.is_empty() && is_port && !place.contains('/')).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_host_and_port() {
        assert_eq!(host_and_port("http://10.0.0.7:7410"), Some("10.0.0.7:7410"));
        assert_eq!(host_and_port("http://[::1]:80/"), Some("[::1]:80"));
        for wrong in [
            "10.0.0.7:7410",
            "http://host",
            "http://host:0",
            "http://:1",
            "http://h:1/x",
            "https://h:1",
        ] {
            assert_eq!(host_and_port(wrong), None, "{wrong}");
        }
    }
}
