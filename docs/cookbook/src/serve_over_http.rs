use acp_client::remote::{RemoteAgent, Token as ClientToken};
use acp_client::{Client, ClientBuilder};
use acp_server::{Handler, Server};
use acp_server_remote::{AccessControl, Hosts, ServeSettings, Token, Tokens, serve};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The server: `/acp` for the protocol, REST and a web page beside it, all with a token.
pub async fn run(
    handler: impl Handler,
    listener: TcpListener,
    token: &Token,
    stop: CancellationToken,
) {
    let access = AccessControl::new(Hosts::loopback(), Tokens::new(token));
    let mut settings = ServeSettings::new(access);
    settings.stop = stop;
    serve(Server::new(handler), listener, settings).await;
}

/// The client. `http://` and `https://` select HTTP, `ws://` and `wss://` a WebSocket.
pub async fn connect(
    builder: ClientBuilder,
    url: &str,
    secret: &str,
) -> acp_client::Result<Client> {
    let agent = RemoteAgent::new(url)?.token(ClientToken::new(secret)?);
    builder.connect_remote(agent).await
}
