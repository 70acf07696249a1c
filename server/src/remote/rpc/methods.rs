//! The methods, and which one of the protocol each is.

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;

use super::context::{Answer, Context, object};
use super::{events, turns};

/// Methods that are answered as those of the protocol are.
const CALLS: [(&str, &str); 13] = [
    ("initialize", "initialize"),
    ("authenticate", "authenticate"),
    ("logout", "logout"),
    ("session_new", "session/new"),
    ("session_load", "session/resume"),
    ("session_resume", "session/resume"),
    ("session_list", "session/list"),
    ("session_close", "session/close"),
    ("session_delete", "session/delete"),
    ("session_fork", "session/fork"),
    ("session_set_mode", "session/set_mode"),
    ("session_set_config_option", "session/set_config_option"),
    ("session_state", "_acp-sdk/session/state"),
];

/// Returns all methods. A call finds its [`Context`] in the extensions of its request.
///
/// # Errors
///
/// When two methods have one name.
pub(super) fn all() -> Result<RpcModule<()>, RegisterMethodError> {
    let mut module = RpcModule::new(());
    for (name, method) in CALLS {
        module.register_async_method(name, async move |params, _, extensions| {
            let context = Context::of(&extensions)?;
            let params = object(&params)?;
            context.call(method, &params).await
        })?;
    }
    turns::register(&mut module)?;
    events::register(&mut module)?;
    Ok(module)
}

/// A method of the facade's own with typed parameters.
pub(super) fn register<P, R, F, Fut>(
    module: &mut RpcModule<()>,
    name: &'static str,
    method: F,
) -> Result<(), RegisterMethodError>
where
    P: serde::de::DeserializeOwned + Send,
    R: serde::Serialize + Clone + Send + 'static,
    F: Fn(std::sync::Arc<Context>, P) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Answer<R>> + Send,
{
    module.register_async_method(name, move |params, _, extensions| {
        let method = method.clone();
        async move {
            let context = Context::of(&extensions)?;
            let _place = context.place()?;
            let params = super::context::read(&params)?;
            method(context, params).await
        }
    })?;
    Ok(())
}
