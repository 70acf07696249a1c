//! An agent behind HTTP and WebSocket, in a program of its own.
//!
//!     cargo run -p acp-server --features remote --example embed-remote
//!
//! A program that has a web server mounts `acp_server_remote::router` in it instead.

use acp_reference_agent::Reference;
use acp_server::Server;
use acp_server_remote::{AccessControl, Hosts, ServeSettings, Token, Tokens, serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let token = Token::random()?;
    let access = AccessControl::new(Hosts::loopback(), Tokens::new(&token));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    eprintln!("http://{address}/#token={}", token.secret());
    serve(Server::new(Reference), listener, ServeSettings::new(access)).await;
    Ok(())
}
