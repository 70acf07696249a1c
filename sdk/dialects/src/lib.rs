//! Protocols of other agent systems: types, traits, typed callers and dispatch, generated from their
//! documents in `acp-schema`.
//!
//! `acp-server-dialects` serves clients of these protocols, `acp-client-dialects` drives agents of them.

macro_rules! dialect {
    ($(#[$doc:meta])* $module:ident, $text:literal) => {
        $(#[$doc])*
        #[allow(missing_docs, reason = "generated")]
        pub mod $module {
            include!(concat!(env!("OUT_DIR"), "/", $text));
        }
    };
}

dialect!(
    /// The protocol of Chimera's ACP client.
    chimera,
    "chimera.rs"
);
dialect!(
    /// The protocol of OpenOxide's ACP server.
    openoxide,
    "openoxide.rs"
);
dialect!(
    /// The protocol of Otter's ACP server.
    otter_acp,
    "otter-acp.rs"
);
dialect!(
    /// The JSON-RPC methods of Otter's HTTP server.
    otter_http_acp,
    "otter-http-acp.rs"
);
