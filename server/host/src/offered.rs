//! What the clients of a process's sessions offer.

use acp_sdk::v1::{
    BooleanConfigOptionCapabilities, ClientCapabilities, ClientSessionCapabilities,
    CompactionCapabilities, ElicitationCapabilities, ElicitationFormCapabilities,
    ElicitationUrlCapabilities, NoticeCapabilities, SessionConfigOptionsCapabilities,
};

use acp_server::Capability;

/// What an agent may ask of clients, as it is announced to a process.
///
/// A process is initialized once, and its sessions have clients that come and go. It learns
/// what the client offers that opened its first session, and only sessions that were opened by clients
/// with the same are put there: an agent that knows of files asks for them, and fails where
/// nobody has any, although it could read them itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Offered {
    read: bool,
    write: bool,
    terminal: bool,
    form: bool,
    url: bool,
}

impl Offered {
    pub(super) fn of(capabilities: &ClientCapabilities) -> Self {
        let offers = |capability: Capability| capability.is_in(capabilities);
        Self {
            read: offers(Capability::ReadTextFile),
            write: offers(Capability::WriteTextFile),
            terminal: offers(Capability::Terminal),
            form: offers(Capability::ElicitForm),
            url: offers(Capability::ElicitUrl),
        }
    }

    /// Returns the capabilities for `initialize`. Kinds of updates are always among them: clients
    /// that do not know a kind are not sent it.
    pub(super) fn capabilities(self) -> ClientCapabilities {
        let options = SessionConfigOptionsCapabilities::new()
            .with_boolean(BooleanConfigOptionCapabilities::new());
        let session = ClientSessionCapabilities::new()
            .with_config_options(options)
            .with_notices(NoticeCapabilities::new())
            .with_compaction(CompactionCapabilities::new());
        let mut capabilities = ClientCapabilities::new().with_session(session);
        capabilities.fs.read_text_file = self.read;
        capabilities.fs.write_text_file = self.write;
        capabilities.terminal = self.terminal;
        // Which client has a terminal for a login is decided when the methods are announced.
        capabilities.auth.terminal = true;
        if self.form || self.url {
            let mut modes = ElicitationCapabilities::new();
            modes.form = self.form.then(ElicitationFormCapabilities::new);
            modes.url = self.url.then(ElicitationUrlCapabilities::new);
            capabilities.elicitation = Some(modes);
        }
        capabilities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_told_what_a_client_offers() {
        let text = r#"{"fs":{"readTextFile":true},"terminal":true,"elicitation":{"url":{}}}"#;
        let capabilities: ClientCapabilities = serde_json::from_str(text).unwrap();
        let offered = Offered::of(&capabilities);
        assert_eq!(Offered::of(&offered.capabilities()), offered);
        let none = Offered::default();
        assert_ne!(offered, none);
        assert_eq!(Offered::of(&none.capabilities()), none);
    }
}
