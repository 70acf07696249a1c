//! A route in one declaration: its address, who may use it, what it takes and what it answers.

use acp_sdk::v1::SessionId;
use acp_server::Access;
use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use utoipa::openapi::Response as Documented;
use utoipa::openapi::path::Operation;
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Components, Content, HttpMethod, OpenApi, Ref, RefOr, Required, Schema};
use utoipa::{IntoParams, PartialSchema as _, ToSchema};

use super::failure::{ErrorBody, Failure};
use super::state::Rest;
use crate::caller::Caller;

const JSON: &str = "application/json";

/// Who may use a route besides the server's token, which may use all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Everybody, without a token.
    Everybody,
    /// Tokens for reading.
    Read,
    /// Tokens for reading, and the token of the session in the path.
    ReadSession,
    /// The token of the session in the path.
    WriteSession,
    /// No other token.
    Full,
    /// No other token; the refusal has a name of its own.
    Admin,
}

impl Right {
    /// Checks what a token permits, in the session that the path names.
    ///
    /// # Errors
    ///
    /// 403; 401, as without a token, for the token of another session.
    pub(super) fn check(self, access: &Access, session: Option<&SessionId>) -> Result<(), Failure> {
        match (self, access) {
            (Self::Everybody, _) | (_, Access::Full) => Ok(()),
            (Self::Read | Self::ReadSession, Access::ReadOnly) => Ok(()),
            (Self::ReadSession | Self::WriteSession, Access::Session(own)) => {
                if session == Some(own) {
                    return Ok(());
                }
                let message = "the token is that of another session";
                Err(Failure::unauthorized().message(message))
            }
            (Self::Admin, _) => Err(Failure::new(StatusCode::FORBIDDEN, "admin_only")),
            _ => Err(Failure::forbidden()),
        }
    }
}

/// A route. Its handler can only be reached by those that have its right.
pub(super) struct Route {
    method: HttpMethod,
    pub(super) path: &'static str,
    pub(super) right: Right,
    needs_login: bool,
    handler: MethodRouter<Rest>,
    operation: Operation,
    schemas: Vec<(String, RefOr<Schema>)>,
}

/// The parameter of paths.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "for the document")]
struct SessionPath {
    /// The session
    id: String,
}

impl Route {
    pub(super) fn new<H: Handler<T, Rest>, T: 'static>(
        method: HttpMethod,
        path: &'static str,
        right: Right,
        handler: H,
    ) -> Self {
        let filter = match method {
            HttpMethod::Post => MethodFilter::POST,
            HttpMethod::Delete => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        let mut operation = Operation::default();
        if right == Right::Everybody {
            operation.security = Some(vec![SecurityRequirement::default()]);
        }
        let route = Self {
            method,
            path,
            right,
            needs_login: true,
            handler: on(filter, handler),
            operation,
            schemas: Vec::new(),
        };
        match path.contains("{id}") {
            true => route
                .takes::<SessionPath>()
                .refuses(404, "`session_not_found`"),
            false => route,
        }
    }

    /// Sets the group, the id and the description of the operation.
    pub(super) fn about(mut self, tag: &str, id: &str, summary: &str) -> Self {
        self.operation.tags = Some(vec![tag.to_owned()]);
        self.operation.operation_id = Some(id.to_owned());
        self.operation.summary = Some(summary.to_owned());
        self
    }

    /// Permits the route without a login at the agent.
    pub(super) fn without_login(mut self) -> Self {
        self.needs_login = false;
        self
    }

    /// Adds parameters.
    pub(super) fn takes<T: IntoParams>(mut self) -> Self {
        let parameters = T::into_params(|| None).into_iter().map(RefOr::from);
        let all = self.operation.parameters.get_or_insert_default();
        all.extend(parameters);
        self
    }

    /// Sets the body of the request. Without a required member it may be empty.
    pub(super) fn body<T: ToSchema>(mut self, required: Required) -> Self {
        let mut body = RequestBody::new();
        let content = Content::new(Some(self.reference::<T>()));
        body.content.insert(JSON.to_owned(), content.into());
        body.required = Some(required);
        self.operation.request_body = Some(body.into());
        self
    }

    /// Adds a response in JSON.
    pub(super) fn answers<T: ToSchema>(mut self, status: u16, description: &str) -> Self {
        let schema = self.reference::<T>();
        self.content(status, description, JSON, schema)
    }

    /// Adds a response as text of a media type.
    pub(super) fn answers_text(self, status: u16, description: &str, media: &str) -> Self {
        self.content(status, description, media, String::schema())
    }

    /// Adds a response without a body.
    pub(super) fn answers_nothing(mut self, status: u16, description: &str) -> Self {
        self.response(status, description);
        self
    }

    /// Adds a refusal.
    pub(super) fn refuses(self, status: u16, description: &str) -> Self {
        self.answers::<ErrorBody>(status, description)
    }

    /// Adds a response, or a further media type of it.
    pub(super) fn content(
        mut self,
        status: u16,
        description: &str,
        media: &str,
        schema: RefOr<Schema>,
    ) -> Self {
        if let RefOr::T(response) = self.response(status, description) {
            let content = Content::new(Some(schema));
            response.content.insert(media.to_owned(), content.into());
        }
        self
    }

    fn response(&mut self, status: u16, description: &str) -> &mut RefOr<Documented> {
        let responses = &mut self.operation.responses.responses;
        let response = responses.entry(status.to_string());
        response.or_insert_with(|| Documented::new(description).into())
    }

    fn reference<T: ToSchema>(&mut self) -> RefOr<Schema> {
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
        Ref::from_schema_name(T::name()).into()
    }

    pub(super) fn method(&self) -> &'static str {
        match self.method {
            HttpMethod::Post => "POST",
            HttpMethod::Delete => "DELETE",
            _ => "GET",
        }
    }

    /// Adds the route to a router, and what it is to the document.
    pub(super) fn mount(
        self,
        rest: &Rest,
        router: Router<Rest>,
        document: &mut OpenApi,
    ) -> Router<Rest> {
        let paths = &mut document.paths;
        paths.add_path_operation(self.path, vec![self.method], self.operation);
        let components = document.components.get_or_insert_with(Components::default);
        components.schemas.extend(self.schemas);
        let guard = Guard {
            rest: rest.clone(),
            right: self.right,
            needs_login: self.needs_login,
        };
        let guarded = self.handler.route_layer(from_fn_with_state(guard, check));
        router.route(self.path, guarded)
    }
}

/// What stands before the handler of a route.
#[derive(Clone)]
struct Guard {
    rest: Rest,
    right: Right,
    needs_login: bool,
}

async fn check(
    State(guard): State<Guard>,
    path: Result<RawPathParams, RawPathParamsRejection>,
    caller: Caller,
    request: Request,
    next: Next,
) -> Response {
    // A path that is no text names no session.
    let session = path.ok().and_then(|path| {
        let mut parameters = path.iter();
        let id = parameters.find_map(|(name, value)| (name == "id").then_some(value));
        id.map(SessionId::from)
    });
    if guard.needs_login
        && let Err(refusal) = guard.rest.check_login(&caller, session.as_ref()).await
    {
        return refusal.into_response();
    }
    if let Err(refusal) = guard.right.check(&caller.access, session.as_ref()) {
        return refusal.into_response();
    }
    match session {
        Some(session) => match guard.rest.forward(session, caller, request).await {
            Ok(answered) => answered,
            Err(request) => next.run(request).await,
        },
        None => next.run(request).await,
    }
}
