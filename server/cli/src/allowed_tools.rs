//! The tools that may ask for permission: the option `--allowed-tools`.

use acp_client::Decision;
use acp_sdk::v1::{RequestPermissionRequest, ToolKind};
use acp_server::{BoxFuture, DecidePermissions, DecidedPermission, Session};

/// Rejects what other tools ask for, and decides nothing else.
pub(super) struct AllowedTools(Vec<String>);

impl AllowedTools {
    pub(super) fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// Returns the rejection of a request whose tool is not listed. A tool without a name is its kind.
    fn rejection(&self, request: &RequestPermissionRequest) -> Option<DecidedPermission> {
        let call = &request.tool_call;
        let kind = call.kind.as_ref().map_or("other", ToolKind::as_str);
        let tool = call.name.as_deref().unwrap_or(kind);
        let mut names = self.0.iter();
        let is_allowed = names.any(|name| name.trim().eq_ignore_ascii_case(tool));
        (!is_allowed).then(|| DecidedPermission {
            outcome: Decision::Reject.among(&request.options),
            by: "--allowed-tools".to_owned(),
        })
    }
}

impl DecidePermissions for AllowedTools {
    fn decide<'a>(
        &'a self,
        _: &'a Session,
        request: &'a RequestPermissionRequest,
    ) -> BoxFuture<'a, Option<DecidedPermission>> {
        Box::pin(std::future::ready(self.rejection(request)))
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{PermissionOption, PermissionOptionKind, ToolCallUpdate};

    use super::*;

    #[test]
    fn what_other_tools_ask_for_is_rejected() {
        let allowed = AllowedTools::new(vec!["Read".into(), " execute".into()]);
        let is_rejected = |name: Option<&str>, kind: Option<ToolKind>| {
            let mut call = ToolCallUpdate::new("call");
            (call.name, call.kind) = (name.map(str::to_owned), kind);
            let options = [
                ("yes", PermissionOptionKind::AllowOnce),
                ("no", PermissionOptionKind::RejectOnce),
            ];
            let options = options.map(|(id, kind)| PermissionOption::new(id, id, kind));
            let request = RequestPermissionRequest::new("session", call, options.to_vec());
            let rejection = allowed.rejection(&request);
            if let Some(rejection) = &rejection {
                assert_eq!(rejection.outcome, Decision::Reject.among(&request.options));
                assert_eq!(rejection.by, "--allowed-tools");
            }
            rejection.is_some()
        };
        for (name, kind, expected) in [
            (Some("read"), None, false),
            (Some("READ"), Some(ToolKind::Edit), false),
            // The name goes before the kind.
            (Some("Bash"), Some(ToolKind::Execute), true),
            (None, Some(ToolKind::Execute), false),
            (None, Some(ToolKind::Read), false),
            (Some("Write"), Some(ToolKind::Edit), true),
            (None, Some(ToolKind::Delete), true),
            (None, None, true),
        ] {
            assert_eq!(
                is_rejected(name, kind.clone()),
                expected,
                "{name:?} {kind:?}"
            );
        }
    }
}
