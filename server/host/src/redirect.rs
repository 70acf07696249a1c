//! The end of a login in a browser on another machine: the address that the browser could not open is
//! brought to the agent, which waits for it on a port of this machine.
//!
//! Nothing else can be reached in this way: only a port of this machine and a path that a page's
//! `redirect_uri` has named, by one GET whose answer is not followed and not passed on.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The longest address that is accepted.
const LONGEST: usize = 8 << 10;

/// Time for the agent to answer.
const ANSWER: Duration = Duration::from_secs(30);

/// Bytes of the answer that are read.
const READ: u64 = 4 << 10;

/// Where an agent waits for the end of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    port: u16,
    path: String,
}

impl Redirect {
    /// Returns where the page at this URL ends, if that is a port of this machine.
    pub(super) fn of(url: &str) -> Option<Self> {
        let (_, query) = url.split_once('?')?;
        let query = query.split('#').next()?;
        let mut members = query.split('&');
        let named = members.find_map(|member| member.strip_prefix("redirect_uri="))?;
        let (port, target) = local(&decoded(named)?).ok()?;
        Some(Self {
            port,
            path: path(&target).to_owned(),
        })
    }

    /// Returns the address for people, without its query.
    pub(super) fn address(&self) -> String {
        format!("http://localhost:{}{}", self.port, self.path)
    }

    /// Brings an address to the agent.
    ///
    /// # Errors
    ///
    /// Why it is not brought, or what the agent has answered; for people.
    pub(super) async fn bring(&self, address: &str) -> Result<(), String> {
        let (port, target) = local(address.trim())?;
        if port != self.port || path(&target) != self.path {
            return Err(format!("the address must begin with {}", self.address()));
        }
        let answered = timeout(ANSWER, get(port, &target)).await;
        let status = match answered {
            Ok(Ok(status)) => status,
            Ok(Err(error)) => return Err(format!("the agent cannot be reached: {error}")),
            Err(_) => return Err(format!("the agent did not answer within {ANSWER:?}")),
        };
        match status {
            200..400 => Ok(()),
            status => Err(format!("the agent answered with status {status}")),
        }
    }
}

/// Reads a URL of a port of this machine: the port, and what is requested there.
fn local(url: &str) -> Result<(u16, String), String> {
    if url.len() > LONGEST {
        return Err(format!("the address is longer than {LONGEST} bytes"));
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the address contains characters that no address has".to_owned());
    }
    let rest = url.strip_prefix("http://");
    let rest = rest.ok_or("the address must begin with http://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let port = ["localhost:", "127.0.0.1:", "[::1]:"]
        .iter()
        .find_map(|host| authority.strip_prefix(host));
    let port = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    let port = port.and_then(|port| port.parse().ok());
    let port = port.ok_or("the address must be one of localhost, with a port")?;
    let target = target.split('#').next().unwrap_or_default();
    let slash = if target.starts_with('/') { "" } else { "/" };
    Ok((port, format!("{slash}{target}")))
}

fn path(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

/// Decodes percent signs; `None` for text that is none.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Sends a GET to a port of this machine, and returns the status of the answer.
async fn get(port: u16, target: &str) -> Result<u16, String> {
    let addresses = [
        SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
    ];
    let connected = TcpStream::connect(&addresses[..]).await;
    let mut stream = connected.map_err(|error| error.to_string())?;
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    let written = stream.write_all(request.as_bytes()).await;
    written.map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    let read = stream.take(READ).read_to_end(&mut answer).await;
    // An agent may close the connection with the rest of its answer unread.
    let line = answer.split(|byte| *byte == b'\n').next();
    let line = line.map(String::from_utf8_lossy).unwrap_or_default();
    let mut words = line.split_ascii_whitespace();
    let status = match (words.next(), words.next()) {
        (Some(version), Some(status)) if version.starts_with("HTTP/1.") => status.parse().ok(),
        _ => None,
    };
    status.ok_or_else(|| match read {
        Err(error) => error.to_string(),
        Ok(_) => "its answer is not HTTP".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    const PAGE: &str = "https://id.example/authorize?client=1&redirect_uri=http%3A%2F%2Flocalhost%3A1455%2Fauth%2Fend&state=2#x";

    #[test]
    fn a_page_names_where_it_ends() {
        let redirect = Redirect::of(PAGE).unwrap();
        assert_eq!(redirect.address(), "http://localhost:1455/auth/end");
        let plain = "https://id.example/?redirect_uri=http://127.0.0.1:80";
        let redirect = Redirect::of(plain).unwrap();
        assert_eq!(redirect.address(), "http://localhost:80/");
        for other in [
            "https://id.example/device",
            "https://id.example/?redirect_uri=https://app.example/end",
            "https://id.example/?redirect_uri=http://localhost/end",
            "https://id.example/?redirect_uri=http://10.0.0.1:80/end",
            "https://id.example/?redirect_uri=http%3",
            "https://id.example/?x=1#redirect_uri=http://localhost:1/",
        ] {
            assert_eq!(Redirect::of(other), None, "{other}");
        }
    }

    /// Serves one request with an answer, and returns the request.
    async fn serve(listener: TcpListener, answer: String) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            request.push(byte[0]);
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap()
    }

    #[tokio::test]
    async fn only_what_the_page_has_named_is_requested() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let redirect = Redirect {
            port,
            path: "/end".to_owned(),
        };
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other_port = other.local_addr().unwrap().port();
        for address in [
            format!("http://localhost:{other_port}/end?code=1"),
            format!("http://localhost:{port}/other?code=1"),
            format!("http://localhost:{port}/end/../other"),
            format!("https://localhost:{port}/end"),
            format!("http://localhost:{port}@id.example/end"),
            format!("http://id.example:{port}/end"),
            format!("http://localhost.example:{port}/end"),
            format!("http://localhost:+{port}/end"),
            format!("http://localhost:{port}/end?a b"),
            format!("http://localhost:{port}/end?a\r\nX: y"),
            format!("http://localhost:{port}/end?{}", "x".repeat(LONGEST)),
            String::new(),
        ] {
            assert!(redirect.bring(&address).await.is_err(), "{address}");
        }
        // A redirect is not followed.
        let answer =
            format!("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{other_port}/\r\n\r\n");
        let address = format!(" http://127.0.0.1:{port}/end?code=a%20b&state=2#part\n");
        let (brought, request) = tokio::join!(redirect.bring(&address), serve(listener, answer));
        assert_eq!(brought, Ok(()));
        let expected = format!(
            "GET /end?code=a%20b&state=2 HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(request, expected);
        // Nobody connects to the other port.
        let connected = futures_poll(&other);
        assert!(connected, "something was requested from another port");
    }

    /// Returns whether nobody has connected.
    fn futures_poll(listener: &TcpListener) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        listener.poll_accept(&mut context).is_pending()
    }

    #[tokio::test]
    async fn an_agent_that_refuses_is_an_error() {
        for (answer, reason) in [
            ("HTTP/1.1 400 Bad Request\r\n\r\n", "status 400"),
            ("SSH-2.0-x\r\n", "not HTTP"),
            ("", "not HTTP"),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let path = "/".to_owned();
            let redirect = Redirect { port, path };
            let address = redirect.address();
            let (brought, _) =
                tokio::join!(redirect.bring(&address), serve(listener, answer.to_owned()));
            let error = brought.unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
