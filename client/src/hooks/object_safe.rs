//! The object-safe forms of the hooks: the same methods, with boxed futures.

use acp_sdk::v1::{
    CreateElicitationRequest, CreateTerminalRequest, CreateTerminalResponse, ElicitationAction,
    ElicitationCapabilities, ElicitationId, FileSystemCapabilities, KillTerminalRequest,
    KillTerminalResponse, ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest,
    ReleaseTerminalResponse, TerminalOutputRequest, TerminalOutputResponse,
    WaitForTerminalExitRequest, WaitForTerminalExitResponse, WriteTextFileRequest,
    WriteTextFileResponse,
};
use acp_sdk::{HandlerResult, Json};

use super::{ConnectionId, Elicitation, Extensions, Files, SessionContext, Terminals};
use crate::permission::{Decision, PermissionRequest, Permissions, Reason};

/// Declares the object type of each hook. Its trait is private, so that a method of a hook is never
/// ambiguous.
macro_rules! object_safe {
    ($($Hook:ident as $Any:ident {
        $(async fn $future:ident($($input:ident: $Input:ty),*) $(-> $Output:ty)?;)*
        $(fn $name:ident($($arg:ident: $Arg:ty),*) $(-> $Result:ty)?;)*
    })*) => {
        mod traits {
            use super::*;

            $(pub(crate) trait $Any: Send + Sync + 'static {
                $(fn $future<'a>(&'a self, $($input: $Input),*) -> object_safe!(@boxed $($Output)?);)*
                $(fn $name(&self, $($arg: $Arg),*) $(-> $Result)?;)*
            }

            impl<T: $Hook> $Any for T {
                $(fn $future<'a>(&'a self, $($input: $Input),*) -> object_safe!(@boxed $($Output)?) {
                    Box::pin(<T as $Hook>::$future(self, $($input),*))
                })*
                $(fn $name(&self, $($arg: $Arg),*) $(-> $Result)? {
                    <T as $Hook>::$name(self, $($arg),*)
                })*
            })*
        }

        $(
            #[doc = concat!("Any [`", stringify!($Hook), "`].")]
            pub(crate) type $Any = dyn traits::$Any;
        )*
    };
    (@boxed) => { object_safe!(@boxed ()) };
    (@boxed $Output:ty) => { std::pin::Pin<Box<dyn Future<Output = $Output> + Send + 'a>> };
}

object_safe! {
    Files as AnyFiles {
        async fn read(session: &'a SessionContext, request: ReadTextFileRequest) -> HandlerResult<ReadTextFileResponse>;
        async fn write(session: &'a SessionContext, request: WriteTextFileRequest) -> HandlerResult<WriteTextFileResponse>;
        fn is_guarded() -> bool;
        fn capabilities() -> FileSystemCapabilities;
    }
    Terminals as AnyTerminals {
        async fn create(session: &'a SessionContext, request: CreateTerminalRequest) -> HandlerResult<CreateTerminalResponse>;
        async fn output(session: &'a SessionContext, request: TerminalOutputRequest) -> HandlerResult<TerminalOutputResponse>;
        async fn wait_for_exit(session: &'a SessionContext, request: WaitForTerminalExitRequest) -> HandlerResult<WaitForTerminalExitResponse>;
        async fn kill(session: &'a SessionContext, request: KillTerminalRequest) -> HandlerResult<KillTerminalResponse>;
        async fn release(session: &'a SessionContext, request: ReleaseTerminalRequest) -> HandlerResult<ReleaseTerminalResponse>;
        fn end_session(session: &SessionContext);
        fn end_connection(connection: ConnectionId);
        fn is_guarded() -> bool;
        fn is_offered() -> bool;
    }
    Permissions as AnyPermissions {
        async fn decide_with_reason(question: &'a PermissionRequest) -> (Decision, Option<Reason>);
        fn in_order() -> bool;
        fn asks_person() -> bool;
    }
    Elicitation as AnyElicitation {
        async fn ask(session: Option<&'a SessionContext>, request: &'a CreateElicitationRequest) -> ElicitationAction;
        fn completed(id: &ElicitationId);
        fn capabilities() -> ElicitationCapabilities;
    }
    Extensions as AnyExtensions {
        async fn request(method: &'a str, params: Option<Json>) -> HandlerResult<Json>;
        async fn notification(method: &'a str, params: Option<Json>);
    }
}
