//! Hosts and origins, parsed: two spellings of one host are equal.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A host, with or without a port, as a `Host` header or an option names it.
///
/// Upper case, one trailing dot and the spelling of an IPv6 address do not matter. An IPv4 address
/// inside an IPv6 address is that IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    pub(super) name: Name,
    pub(super) port: Option<u16>,
}

/// A host without its port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Name {
    Address(IpAddr),
    /// In lower case and without the trailing dot.
    Domain(String),
}

/// An origin: where a page in a browser comes from.
///
/// The port that a scheme implies and its absence are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// In lower case.
    pub(super) scheme: String,
    pub(super) name: Name,
    /// `None` only if the scheme implies no port.
    pub(super) port: Option<u16>,
}

/// A text that is no host or no origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got {text:?}")]
pub struct HostError {
    expected: &'static str,
    text: String,
}

impl Host {
    /// Returns whether the host is this machine, reached from itself: `localhost`, `127.0.0.0/8`
    /// or `[::1]`.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match &self.name {
            Name::Address(address) => address.is_loopback(),
            Name::Domain(domain) => domain == "localhost",
        }
    }

    /// Returns whether the host is an address, not a name.
    #[must_use]
    pub fn is_address(&self) -> bool {
        matches!(self.name, Name::Address(_))
    }

    /// Returns whether this host, as an entry of a list, stands for `other`. Without a port it
    /// stands for every port.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.name == other.name && (self.port.is_none() || self.port == other.port)
    }
}

impl Origin {
    /// Returns whether a page of this origin was served by `host`, over TLS if `tls` is true.
    ///
    /// Without TLS, both schemes count: a proxy may have ended TLS before this server.
    pub(super) fn is_of(&self, host: &Host, tls: bool) -> bool {
        let known = self.scheme == "https" || (self.scheme == "http" && !tls);
        known && self.name == host.name && self.port == host.port.or(implied_port(&self.scheme))
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        let name = Name::Address(address.to_canonical());
        Self { name, port: None }
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        parse(text).ok_or_else(|| HostError {
            expected: "a host with or without a port, such as example.com or [::1]:8080",
            text: text.chars().take(300).collect(),
        })
    }
}

impl FromStr for Origin {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        parse_origin(text).ok_or_else(|| HostError {
            expected: "an origin, such as https://example.com or http://localhost:3000",
            text: text.chars().take(300).collect(),
        })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Domain(domain) => f.write_str(domain),
        }
    }
}

fn parse(text: &str) -> Option<Host> {
    let (name, port) = if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        // A zone (`%eth0`) means something on one machine only, and is refused here.
        let address: Ipv6Addr = address.parse().ok()?;
        let name = Name::Address(IpAddr::V6(address).to_canonical());
        match rest.strip_prefix(':') {
            Some(port) => (name, port),
            None if rest.is_empty() => (name, ""),
            None => return None,
        }
    } else {
        let (name, port) = text.split_once(':').unwrap_or((text, ""));
        (domain(name)?, port)
    };
    let port = match port {
        "" => None,
        // `parse` alone would accept a sign.
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
        _ => return None,
    };
    Some(Host { name, port })
}

/// Parses an IPv4 address or a domain name.
fn domain(text: &str) -> Option<Name> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
        return Some(Name::Address(IpAddr::V4(address)));
    }
    let is_label = |label: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(allowed)
    };
    let valid = text.len() <= 253 && text.split('.').all(is_label);
    valid.then(|| Name::Domain(text.to_ascii_lowercase()))
}

fn parse_origin(text: &str) -> Option<Origin> {
    let (scheme, host) = text.split_once("://")?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    if !scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        || !scheme.bytes().all(allowed)
    {
        return None;
    }
    let scheme = scheme.to_ascii_lowercase();
    let Host { name, port } = parse(host)?;
    let port = port.or(implied_port(&scheme));
    Some(Origin { scheme, name, port })
}

fn implied_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    fn origin(text: &str) -> Origin {
        text.parse().unwrap()
    }

    #[test]
    fn spellings_of_one_host_are_equal() {
        let groups: [&[&str]; 5] = [
            &[
                "localhost",
                "LOCALHOST",
                "localhost.",
                "LocalHost.",
                "localhost:",
            ],
            &[
                "127.0.0.1:80",
                "127.0.0.1.:80",
                "[::ffff:127.0.0.1]:80",
                "[::ffff:7f00:1]:080",
            ],
            &["[::1]", "[0:0:0:0:0:0:0:1]", "[::1]:"],
            &["a.example:8080", "A.Example.:8080"],
            &["[2001:db8::a]:1", "[2001:DB8:0::A]:1"],
        ];
        for group in groups {
            for text in group {
                assert_eq!(host(text), host(group[0]), "{text}");
            }
        }
    }

    #[test]
    fn texts_that_are_no_host_are_refused() {
        for text in [
            "",
            ".",
            "..",
            "localhost..",
            "a..b",
            ".a",
            "a b",
            "a,b",
            "user@localhost",
            "::1",
            "[::1",
            "[::1]x",
            "[::1%lo]",
            "[localhost]",
            "localhost:x",
            "localhost:+80",
            "localhost:65536",
            "localhost:80:80",
            "localhost/",
            "löcalhost",
            "%6c",
            "a\tb",
            "localhost ",
            "http://localhost",
        ] {
            assert!(text.parse::<Host>().is_err(), "{text:?}");
        }
        assert!("a".repeat(64).parse::<Host>().is_err());
        assert!("a.".repeat(200).parse::<Host>().is_err());
    }

    #[test]
    fn loopback_is_what_reaches_this_machine_only() {
        for text in [
            "localhost",
            "127.0.0.1",
            "127.255.0.9:1",
            "[::1]:9",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(host(text).is_loopback(), "{text}");
        }
        for text in [
            "127.1",
            "0.0.0.0",
            "[::]",
            "localhost.evil.example",
            "128.0.0.1",
            "0x7f.1",
        ] {
            assert!(!host(text).is_loopback(), "{text}");
        }
    }

    #[test]
    fn an_entry_without_port_covers_every_port() {
        assert!(host("a.example").covers(&host("A.example.:81")));
        assert!(host("a.example:81").covers(&host("a.example:81")));
        assert!(!host("a.example:81").covers(&host("a.example")));
        assert!(!host("a.example").covers(&host("b.a.example")));
    }

    #[test]
    fn origins_are_compared_by_scheme_host_and_port() {
        assert_eq!(
            origin("https://A.example"),
            origin("HTTPS://a.example.:443")
        );
        assert_ne!(origin("https://a.example"), origin("http://a.example"));
        assert_ne!(origin("http://a.example"), origin("http://a.example:8080"));
        assert_eq!(origin("tauri://localhost").port, None);
        for text in [
            "null",
            "",
            "*",
            "https://",
            "a.example",
            "https://a/",
            "://a",
            "1a://b",
            "https://u@a",
            "https://a https://b",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_page_is_of_the_host_that_served_it() {
        let page = |origin: &str, on: &str, tls| self::origin(origin).is_of(&host(on), tls);
        assert!(page("http://localhost:5173", "localhost:5173", false));
        assert!(page("http://[::1]:5173", "[0::1]:5173", false));
        assert!(
            page("https://a.example", "a.example", false),
            "a proxy ended TLS"
        );
        assert!(page("https://a.example", "a.example:443", true));
        assert!(
            !page("http://a.example", "a.example", true),
            "not served over TLS"
        );
        assert!(!page("http://localhost:3000", "localhost:5173", false));
        assert!(!page("http://127.0.0.1:5173", "localhost:5173", false));
        assert!(!page("http://localhost", "localhost:5173", false));
        assert!(!page("tauri://localhost:5173", "localhost:5173", false));
    }
}
