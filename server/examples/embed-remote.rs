//! An agent behind HTTP and WebSocket, in a program with a web server of its own.
//!
//!     cargo run -p acp-server --features remote --example embed-remote
//!
//! There is no access control here: on an address that others can reach, put that of
//! `acp_server::remote::protect` before the endpoints.

use acp_server::remote::{Settings, router};
use acp_server::{Reference, Server};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new(Reference);
    let endpoints = router(server, &Settings::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("http://{}/acp", listener.local_addr()?);
    axum::serve(listener, endpoints).await?;
    Ok(())
}
