//! Requests that are independent of the version: built with types of version 1, sent in the version of
//! the connection.

use acp_sdk::RpcError;
use acp_sdk::runtime::Method;
use acp_sdk::v1;
use acp_sdk::v1::{AvailableCommand, methods};
use serde::de::DeserializeOwned;

use super::Inner;
use crate::error::Result;
use crate::v2::requests;

/// A request that exists in each version.
pub trait Request: Method<Result: DeserializeOwned> {
    /// The request of version 2.
    type V2: Method<Result: DeserializeOwned>;

    /// Converts the params.
    ///
    /// # Errors
    ///
    /// Fails when version 2 has no equivalent.
    fn to_v2(params: &Self::Params) -> Result<<Self::V2 as Method>::Params>;

    /// Converts the result.
    ///
    /// # Errors
    ///
    /// Fails when version 1 has no equivalent.
    fn from_v2(result: <Self::V2 as Method>::Result) -> Result<Self::Result>;

    /// Returns the slash commands of a result; only version 2 has them.
    fn commands(_: &<Self::V2 as Method>::Result) -> Option<Vec<AvailableCommand>> {
        None
    }
}

/// A response, handled in the order of messages.
#[derive(Debug)]
pub struct Response<R> {
    /// The result.
    pub result: R,
    /// The slash commands, if the version includes them in the response.
    pub commands: Option<Vec<AvailableCommand>>,
}

impl<R> Response<R> {
    /// Converts a response of version 2.
    ///
    /// # Errors
    ///
    /// Fails when version 1 has no equivalent.
    pub fn of_v2<M: Request<Result = R>>(result: <M::V2 as Method>::Result) -> Result<Self> {
        Ok(Self {
            commands: M::commands(&result),
            result: M::from_v2(result)?,
        })
    }
}

impl Inner {
    /// Returns whether the connection uses version 2.
    pub(super) fn is_v2(&self) -> bool {
        self.agent_info.protocol_version == v1::ProtocolVersion::from(2)
    }

    /// Sends a request and waits for its result within the timeout.
    pub(super) async fn send<M: Request>(&self, params: &M::Params) -> Result<M::Result> {
        self.send_then::<M>(params, |_| ()).await
    }

    /// Sends a request as [`send`](Self::send) does and passes the response to `then` in the order of
    /// messages: `None` for an error or an invalid result.
    pub(super) async fn send_then<M: Request>(
        &self,
        params: &M::Params,
        then: impl FnOnce(Option<Response<M::Result>>) + Send + 'static,
    ) -> Result<M::Result> {
        let peer = self.agent.peer();
        if self.is_v2() {
            let params = M::to_v2(params)?;
            let call = peer.call_then::<M::V2>(&params, move |response| {
                let response = read::<<M::V2 as Method>::Result>(response);
                then(response.and_then(|result| Response::of_v2::<M>(result).ok()));
            });
            return self.answer(M::V2::NAME, call).await.and_then(M::from_v2);
        }
        let call = peer.call_then::<M>(params, move |response| {
            let response = read(response);
            then(response.map(|result| Response {
                result,
                commands: None,
            }));
        });
        self.answer(M::NAME, call).await
    }
}

/// Parses a response; `None` for an error or an invalid result.
pub(super) fn read<T: DeserializeOwned>(
    response: std::result::Result<&str, &RpcError>,
) -> Option<T> {
    serde_json::from_str(response.ok()?).ok()
}

/// Implements [`Request`] for each row: the markers of both versions, and the location of slash
/// commands in the result.
macro_rules! requests {
    ($($v1:ident => $v2:ident $(, $commands:expr)?;)*) => {$(
        impl Request for methods::$v1 {
            type V2 = acp_sdk::v2::methods::$v2;

            fn to_v2(params: &Self::Params) -> Result<<Self::V2 as Method>::Params> {
                requests::request_to_v2(params.clone())
            }

            fn from_v2(result: <Self::V2 as Method>::Result) -> Result<Self::Result> {
                requests::response_from_v2(result)
            }

            $(fn commands(result: &<Self::V2 as Method>::Result) -> Option<Vec<AvailableCommand>> {
                $commands(&result.available_commands)
            })?
        }
    )*};
}

requests! {
    Authenticate => LoginAuth;
    Logout => LogoutAuth;
    NewSession => NewSession, requests::available_commands;
    LoadSession => ResumeSession, requests::available_commands;
    ResumeSession => ResumeSession, requests::available_commands;
    ListSessions => ListSessions;
    CloseSession => CloseSession;
    DeleteSession => DeleteSession;
    SetSessionConfigOption => SetSessionConfigOption;
}
