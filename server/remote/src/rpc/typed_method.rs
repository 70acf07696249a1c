//! Methods of the facade's own, with typed parameters.

use acp_sdk::{HandlerError, Json};
use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;

use super::context::{Answer, Context, object, parse, refusal};
use super::nodes;

/// Registers a method, which another node answers for a session that it has.
pub(super) fn register<P, R, F, Fut>(
    module: &mut RpcModule<()>,
    name: &'static str,
    method: F,
) -> Result<(), RegisterMethodError>
where
    P: serde::de::DeserializeOwned + Send,
    R: serde::Serialize + Send + 'static,
    F: Fn(std::sync::Arc<Context>, P) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Answer<R>> + Send,
{
    module.register_async_method(name, move |params, _, extensions| {
        let method = method.clone();
        async move {
            let context = Context::of(&extensions)?;
            let _place = context.place()?;
            let params = object(&params)?;
            if let Some(answer) = nodes::call(&context, name, &params).await {
                return answer;
            }
            let answer = method(context, parse(&params)?).await?;
            Json::new(&answer).map_err(|error| refusal(&HandlerError::internal(error)))
        }
    })?;
    Ok(())
}
