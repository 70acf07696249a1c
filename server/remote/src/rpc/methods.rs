//! The methods, and which one of the protocol each is.

use std::sync::LazyLock;

use acp_sdk::extensions::methods::SessionState;
use acp_sdk::facts::{Attachment, MethodFacts};
use acp_sdk::runtime::Method as _;
use acp_sdk::v1::AGENT_METHODS;
use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;

use super::context::{Context, object};
use super::{events, nodes, turns};

/// The extension method that is answered as the agent answers it, and its name here.
const STATE: (&str, &str) = ("session_state", SessionState::NAME);

/// The methods that are answered as the agent answers them: those of the protocol, with `_` in place
/// of `/`.
static CALLS: LazyLock<Vec<(String, &str)>> = LazyLock::new(|| {
    let of_protocol = |row: &&MethodFacts| !row.name.starts_with(['_', '$']);
    let methods = AGENT_METHODS.iter().filter(of_protocol).map(|row| {
        let method = match row.joins {
            // The facade's clients read events on their own, so nothing is replayed.
            Attachment::Joins => "session/resume",
            _ => row.name,
        };
        (row.name.replace('/', "_"), method)
    });
    let (name, method) = STATE;
    methods.chain([(name.to_owned(), method)]).collect()
});

/// Returns all methods. A call finds its [`Context`] in the extensions of its request.
///
/// # Errors
///
/// When two methods have one name.
pub(super) fn all() -> Result<RpcModule<()>, RegisterMethodError> {
    let mut module = RpcModule::new(());
    turns::register(&mut module)?;
    events::register(&mut module)?;
    for (name, method) in CALLS.iter() {
        if module.method(name).is_some() {
            continue;
        }
        module.register_async_method(name, async move |params, _, extensions| {
            let context = Context::of(&extensions)?;
            let params = object(&params)?;
            match nodes::call(&context, name, &params).await {
                Some(answer) => answer,
                None => context.call(method, &params).await,
            }
        })?;
    }
    Ok(module)
}
