//! Elicitations: requests of an agent for input of the user, in a form or on a web page.

use acp_sdk::v1::{
    CreateElicitationRequest, ElicitationAction, ElicitationCapabilities,
    ElicitationFormCapabilities, ElicitationId, ElicitationMode, ElicitationUrlCapabilities,
};
use acp_sdk::{HandlerError, HandlerResult};

use super::{AnyElicitation, SessionContext, check_form};

/// Asks the user for the input that an agent requests.
///
/// A form is shown with its message and the agent's name; the user may decline. A URL must be shown
/// as a whole and opened only if the user consents, because it may refer to any page. Other URLs
/// than `https` and, on this machine, `http` are rejected before. The answer to a form is
/// [checked](super::check_form()) before it is sent.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/elicitation>
pub trait Elicitation: Send + Sync + 'static {
    /// Asks the user. `session` is `None` if the request belongs to no session of this client. The
    /// future is dropped when the turn is cancelled, the agent cancels the request, or the
    /// connection ends.
    fn ask(
        &self,
        session: Option<&SessionContext>,
        request: &CreateElicitationRequest,
    ) -> impl Future<Output = ElicitationAction> + Send;

    /// Called when the interaction on a web page is complete (default: no-op).
    fn completed(&self, id: &ElicitationId) {
        let _ = id;
    }

    /// Returns the declared capabilities (default: forms and URLs).
    fn capabilities(&self) -> ElicitationCapabilities {
        ElicitationCapabilities::new()
            .with_form(ElicitationFormCapabilities::new())
            .with_url(ElicitationUrlCapabilities::new())
    }
}

/// Asks the user, and checks the request and the answer.
///
/// # Errors
///
/// -32602 for a mode that was not declared or a URL that must not be opened; -32603 when the
/// answer does not fit the form.
pub(crate) async fn elicit(
    hook: &AnyElicitation,
    session: Option<&SessionContext>,
    request: &CreateElicitationRequest,
) -> HandlerResult<ElicitationAction> {
    let declared = hook.capabilities();
    let is_declared = match &request.mode {
        ElicitationMode::Form(_) => declared.form.is_some(),
        ElicitationMode::Url(mode) => {
            may_be_opened(&mode.url)?;
            declared.url.is_some()
        }
        _ => false,
    };
    if !is_declared {
        let reason = "this client does not offer this mode of elicitation";
        return Err(HandlerError::invalid_params("/mode", reason));
    }
    let action = hook.ask(session, request).await;
    if let (ElicitationMode::Form(form), ElicitationAction::Accept(accepted)) =
        (&request.mode, &action)
    {
        let content = accepted.content.clone().unwrap_or_default();
        check_form(&form.requested_schema, &content).map_err(HandlerError::internal)?;
    }
    Ok(action)
}

/// Rejects URLs that are not web pages, and unencrypted pages of other machines.
fn may_be_opened(url: &str) -> HandlerResult<()> {
    let refused = |reason: &str| Err(HandlerError::invalid_params("/url", reason));
    let scheme_and_rest = url.split_once("://");
    let Some((scheme, rest)) = scheme_and_rest else {
        return refused("it is not a URL of a web page");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // Browsers end the authority at a backslash; other programs do not.
    let is_strange = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    if url.chars().any(is_strange) || authority.is_empty() {
        return refused("it is not a URL of a web page");
    }
    if authority.contains('@') {
        return refused("it has a user or a password, which can hide where it leads");
    }
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_local = ["localhost", "127.0.0.1", "::1"].contains(&host);
    match scheme.to_ascii_lowercase().as_str() {
        "https" => Ok(()),
        "http" if is_local => Ok(()),
        "http" => refused("it is not encrypted; use https"),
        _ => refused("it is not a URL of a web page"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_pages_are_opened() {
        for url in [
            "https://example.com/login?a=b",
            "HTTPS://example.com",
            "http://localhost:3000/x",
            "http://127.0.0.1/",
            "http://[::1]:80/",
        ] {
            assert!(may_be_opened(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "example.com",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "http://example.com/",
            "http://localhost.example.com/",
            "https://",
            "https://bank.example@evil.example/",
            "https://exa\u{7}mple.com",
            "https://a b/",
            "http://localhost\\@evil.example/",
        ] {
            assert!(may_be_opened(url).is_err(), "{url}");
        }
    }
}
