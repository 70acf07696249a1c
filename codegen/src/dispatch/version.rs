//! What the version table needs of a document with `x-version`: a marker type for the version,
//! and how its agents and clients stand at one end of a connection.

use acp_schema::{Document, Side, VersionInfo};
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};
use syn::Ident;

use super::Call;
use crate::Error;
use crate::emit::{Model, written};

/// The request that negotiates the version, and its member with the number.
const INITIALIZE: &str = "initialize";
const NUMBER: &str = "protocolVersion";

/// The protocol version of a document.
pub(super) struct Version {
    info: VersionInfo,
    /// The marker type.
    pub(super) marker: Ident,
}

impl Version {
    pub(super) fn of(document: &Document) -> Result<Option<Self>, Error> {
        let info = document.version()?;
        Ok(info.map(|info| Self {
            marker: format_ident!("V{}", info.number),
            info,
        }))
    }

    pub(super) fn takes_batches(&self) -> bool {
        self.info.batches
    }

    /// Whether `call` negotiates the version.
    pub(super) fn is_negotiated_by(call: &Call<'_>) -> bool {
        call.method.name == INITIALIZE && call.method.side == Side::AGENT && call.result.is_some()
    }

    /// The constant of the marker of `call`, when it negotiates the version.
    pub(super) fn constant(&self, call: &Call<'_>) -> Option<TokenStream> {
        let number = self.info.number;
        Self::is_negotiated_by(call).then(|| quote!(const NEGOTIATES: Option<u16> = Some(#number);))
    }

    pub(super) fn items(
        &self,
        model: &Model<'_>,
        calls: &[Call<'_>],
    ) -> Result<TokenStream, Error> {
        let unsupported = |message: &str| {
            let hint = "add it, or remove `x-version`";
            Error::unsupported("/x-version".to_owned(), message, hint)
        };
        let Some(call) = calls.iter().find(|call| Self::is_negotiated_by(call)) else {
            return Err(unsupported("agents handle no request `initialize`"));
        };
        let (Some(response), request) = (&call.result, &call.params) else {
            return Err(unsupported("`initialize` has no result"));
        };
        let Ok(slot) = model.skeletons.slot(&response.to_string(), NUMBER) else {
            return Err(unsupported(
                "the result of `initialize` has no member `protocolVersion`",
            ));
        };
        let field = &slot.ident;
        let VersionInfo {
            number,
            batches,
            unsupported_code,
            initialize_defaults,
        } = &self.info;
        let marker = &self.marker;
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
                const BATCHES: bool = #batches;
                const UNSUPPORTED_CODE: Option<i32> = #code;
                const INITIALIZE_DEFAULTS: &'static [(&'static str, &'static str)] = &[#(#defaults),*];
                type InitializeRequest = #request;
                type InitializeResponse = #response;
                type AgentHandle = AgentHandle;

                fn set_version(response: &mut #response) {
                    response.#field = Self::NUMBER.into();
                }

                fn agent_handle(peer: Peer) -> AgentHandle { AgentHandle::new(peer) }
            }

            impl<T: Agent> runtime::IntoAgent<#marker> for AgentService<T> {
                type Client = ClientHandle;

                fn into_dispatch(self) -> impl Service { self }

                fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> ClientHandle) {
                    (runtime::single_version::<#marker>(self), ClientHandle::new)
                }
            }

            impl<T: Client> runtime::IntoClient<#marker> for ClientService<T> {
                type Agent = AgentHandle;

                fn into_dispatch(self) -> impl Service { self }

                fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> AgentHandle) {
                    (self, AgentHandle::new)
                }
            }
        })
    }
}
