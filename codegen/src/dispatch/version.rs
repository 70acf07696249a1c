//! What the version table needs of a document with `x-version`: a marker type for the version,
//! and how its two roles stand at the ends of a connection. The role that handles `initialize`
//! is the agent of the runtime, the other one is the client.

use acp_schema::{Document, VersionInfo};
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};
use syn::Ident;

use super::call::Call;
use super::role::Role;
use crate::Error;
use crate::emit::{Model, head, written};
use crate::ir::Shape;
use crate::skeletons::Skeleton;

/// The request that negotiates the version, and its member with the number.
const INITIALIZE: &str = "initialize";
const NUMBER: &str = "protocolVersion";

/// The protocol version of a document.
pub(super) struct Version {
    info: VersionInfo,
    /// The marker type.
    pub(super) marker: Ident,
    /// The role that handles `initialize`.
    agent: Role,
    /// The role that sends it.
    client: Role,
}

/// Returns the name of the marker type of a document with `x-version`.
///
/// # Errors
/// When `x-version` has another form.
pub(crate) fn version_marker(document: &Document) -> Result<Option<String>, Error> {
    Ok(document.version()?.map(|info| marker(&info)))
}

fn marker(info: &VersionInfo) -> String {
    format!("V{}", info.number)
}

fn unsupported(message: impl Into<String>) -> Error {
    let hint = "add it, or remove `x-version`";
    Error::unsupported("/x-version".to_owned(), message, hint)
}

impl Version {
    /// Returns the version of a document that names one.
    ///
    /// # Errors
    /// When no role of two, or both, handle the request `initialize`.
    pub(super) fn of(
        document: &Document,
        roles: &[Role],
        calls: &[Call<'_>],
    ) -> Result<Option<Self>, Error> {
        let Some(info) = document.version()? else {
            return Ok(None);
        };
        let side = calls.iter().find(|call| initializes(call));
        let side = side.map(|call| call.method.side);
        let agent = roles.iter().find(|role| Some(role.side) == side);
        let Some(agent) = agent else {
            return Err(unsupported("no single role handles a request `initialize`"));
        };
        let Some(client) = agent.peer() else {
            return Err(unsupported("no second role, which sends `initialize`"));
        };
        Ok(Some(Self {
            marker: format_ident!("{}", marker(&info)),
            info,
            agent: *agent,
            client,
        }))
    }

    pub(super) fn has_null_ids(&self) -> bool {
        self.info.null_ids
    }

    /// Whether `call` negotiates the version.
    pub(super) fn is_negotiated_by(&self, call: &Call<'_>) -> bool {
        initializes(call) && call.method.side == self.agent.side
    }

    /// The constant of the marker of `call`, when it negotiates the version.
    pub(super) fn constant(&self, call: &Call<'_>) -> Option<TokenStream> {
        let number = self.info.number;
        self.is_negotiated_by(call).then(|| {
            quote!(const NEGOTIATES: ::core::option::Option<u16> = ::core::option::Option::Some(#number);)
        })
    }

    pub(super) fn items(
        &self,
        model: &Model<'_>,
        calls: &[Call<'_>],
    ) -> Result<TokenStream, Error> {
        let call = calls.iter().find(|call| self.is_negotiated_by(call));
        let Some((request, response)) =
            call.and_then(|call| Some((&call.params, call.result.as_ref()?)))
        else {
            return Err(unsupported("`initialize` has no result"));
        };
        let Ok(slot) = model.skeletons.slot(&response.to_string(), NUMBER) else {
            return Err(unsupported(
                "the result of `initialize` has no member `protocolVersion`",
            ));
        };
        let field = &slot.ident;
        let Some(value) = slot.ty.as_ref().and_then(|ty| number_as(model, ty)) else {
            return Err(unsupported(
                "no required integer of 16 bits or more `protocolVersion` in the result of `initialize`",
            ));
        };
        let VersionInfo {
            number,
            null_ids,
            late_initialize,
            unsupported_code,
            initialize_defaults,
        } = &self.info;
        let marker = &self.marker;
        let [agent, client] = [self.agent, self.client].map(|role| role.ident(""));
        let [agent_handle, client_handle] =
            [self.agent, self.client].map(|role| role.ident("Handle"));
        let [agent_service, client_service] =
            [self.agent, self.client].map(|role| role.ident("Service"));
        let docs = written(&format!(
            "Stands for protocol version {number} where a type is asked for."
        ));
        let code = match unsupported_code {
            Some(code) => {
                let code = Literal::i32_unsuffixed(*code);
                quote!(Some(#code))
            }
            None => quote!(None),
        };
        let defaults = initialize_defaults.iter().map(|(name, value)| {
            let value = value.to_string();
            quote!((#name, #value))
        });
        Ok(quote! {
            #docs
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum #marker {}

            impl runtime::ProtocolVersion for #marker {
                const NUMBER: u16 = #number;
                const NULL_IDS: bool = #null_ids;
                const LATE_INITIALIZE: bool = #late_initialize;
                const UNSUPPORTED_CODE: Option<i32> = #code;
                const INITIALIZE_DEFAULTS: &'static [(&'static str, &'static str)] = &[#(#defaults),*];
                type InitializeRequest = #request;
                type InitializeResponse = #response;
                type AgentHandle = #agent_handle;

                fn set_version(response: &mut #response) {
                    response.#field = #value;
                }

                fn agent_handle(peer: Peer) -> #agent_handle { #agent_handle::new(peer) }
            }

            impl<T: #agent> runtime::IntoAgent<#marker> for #agent_service<T> {
                type Client = #client_handle;

                fn into_dispatch(self) -> impl Service { self }

                fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> #client_handle) {
                    (runtime::single_version::<#marker>(self), #client_handle::new)
                }
            }

            impl<T: #client> runtime::IntoClient<#marker> for #client_service<T> {
                type Agent = #agent_handle;

                fn into_dispatch(self) -> impl Service { self }

                fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> #agent_handle) {
                    (self, #agent_handle::new)
                }
            }
        })
    }
}

/// Whether `call` is the request `initialize`.
fn initializes(call: &Call<'_>) -> bool {
    call.method.name == INITIALIZE && call.result.is_some()
}

/// Returns the number of the version as a value of `ty`, if that is an integer with room for it.
fn number_as(model: &Model<'_>, ty: &syn::Type) -> Option<TokenStream> {
    let number = |ty: &syn::Type| match head(ty).0.as_str() {
        "u16" => Some(quote!(Self::NUMBER)),
        "i32" | "u32" | "i64" | "u64" => Some(quote!(Self::NUMBER.into())),
        _ => None,
    };
    if let Some(number) = number(ty) {
        return Some(number);
    }
    let name = head(ty).0;
    match (&model.get(&name)?.shape, model.skeletons.get(&name)?) {
        (Shape::Integer(_), Skeleton::Newtype(inner)) => {
            let number = number(inner)?;
            Some(quote!(#ty::new(#number)))
        }
        _ => None,
    }
}
