//! Raw byte connections to the server of an agent, for tests of servers.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderMap};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{RemoteAgent, RemoteError, tls};

/// A byte stream to a server, over TLS if its URL requires it.
pub trait RawSocket: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> RawSocket for T {}

impl RemoteAgent {
    /// Returns the common headers of all requests: the token and the added headers.
    #[must_use]
    pub fn raw_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(token) = &self.token {
            headers.insert(AUTHORIZATION, token.authorization());
        }
        headers
    }

    /// Opens a byte stream to the server without sending a request, for [`raw_headers`](Self::raw_headers).
    ///
    /// Over TLS, `protocols` are offered by ALPN. Proxies of the environment are not used.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Connect`] if connecting fails or times out, or the certificate is not trusted;
    /// [`RemoteError::Unencrypted`] if the headers would be sent to another machine without encryption.
    pub async fn raw_socket(&self, protocols: &[&str]) -> Result<Box<dyn RawSocket>, RemoteError> {
        self.check_encryption()?;
        let connecting = timeout(self.limits.connect, self.connect_socket(protocols));
        let failed = |reason: String| RemoteError::Connect {
            url: self.url(),
            reason,
        };
        match connecting.await {
            Ok(Ok(socket)) => Ok(socket),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed(format!(
                "no connection within {} s",
                self.limits.connect.as_secs_f32()
            ))),
        }
    }

    async fn connect_socket(&self, protocols: &[&str]) -> std::io::Result<Box<dyn RawSocket>> {
        let host = self.url.host_str().unwrap_or_default();
        // The URL has brackets around an IPv6 address.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.url.port_or_known_default().unwrap_or_default();
        let socket = TcpStream::connect((host, port)).await?;
        socket.set_nodelay(true)?;
        if self.url.scheme() != "https" {
            return Ok(Box::new(socket));
        }
        let config = tls::config(&self.trust, protocols).map_err(std::io::Error::other)?;
        let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
        let socket = TlsConnector::from(Arc::new(config)).connect(name, socket);
        Ok(Box::new(socket.await?))
    }
}
