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
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::response::ResponseBuilder;
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
                Err(Failure::new(StatusCode::UNAUTHORIZED, "unauthorized").message(message))
            }
            (Self::Admin, _) => Err(Failure::new(StatusCode::FORBIDDEN, "admin_only")),
            _ => Err(Failure::new(StatusCode::FORBIDDEN, "forbidden")
                .message("the token does not permit this")),
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

impl Route {
    pub(super) fn get<H: Handler<T, Rest>, T: 'static>(
        path: &'static str,
        right: Right,
        handler: H,
    ) -> Self {
        Self::new(HttpMethod::Get, path, right, on(MethodFilter::GET, handler))
    }

    pub(super) fn post<H: Handler<T, Rest>, T: 'static>(
        path: &'static str,
        right: Right,
        handler: H,
    ) -> Self {
        let handler = on(MethodFilter::POST, handler);
        Self::new(HttpMethod::Post, path, right, handler)
    }

    pub(super) fn delete<H: Handler<T, Rest>, T: 'static>(
        path: &'static str,
        right: Right,
        handler: H,
    ) -> Self {
        let handler = on(MethodFilter::DELETE, handler);
        Self::new(HttpMethod::Delete, path, right, handler)
    }

    fn new(
        method: HttpMethod,
        path: &'static str,
        right: Right,
        handler: MethodRouter<Rest>,
    ) -> Self {
        let mut route = Self {
            method,
            path,
            right,
            needs_login: true,
            handler,
            operation: Operation::default(),
            schemas: Vec::new(),
        };
        if right == Right::Everybody {
            route.operation.security = Some(vec![SecurityRequirement::default()]);
        }
        for (name, description) in [
            ("id", "The session"),
            ("name", "The command, without the slash"),
        ] {
            if path.contains(&format!("{{{name}}}")) {
                let mut parameter = Parameter::new(name);
                parameter.parameter_in = ParameterIn::Path;
                parameter.required = Required::True;
                parameter.description = Some(description.to_owned());
                parameter.schema = Some(String::schema());
                route.parameters([parameter]);
            }
        }
        match route.is_of_session() {
            true => route.refuses(404, "`session_not_found`"),
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

    /// Adds parameters of the query or headers.
    pub(super) fn takes<T: IntoParams>(mut self) -> Self {
        self.parameters(T::into_params(|| None));
        self
    }

    /// Sets the body of the request.
    pub(super) fn body<T: ToSchema>(mut self) -> Self {
        let mut body = RequestBody::new();
        let content = Content::new(Some(self.reference::<T>()));
        body.content.insert(JSON.to_owned(), content.into());
        body.required = Some(Required::True);
        self.operation.request_body = Some(body.into());
        self
    }

    /// Sets the body of the request, of which all members are optional: without it, none is given.
    pub(super) fn optional_body<T: ToSchema>(mut self) -> Self {
        self = self.body::<T>();
        if let Some(RefOr::T(body)) = &mut self.operation.request_body {
            body.required = Some(Required::False);
        }
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

    fn response(
        &mut self,
        status: u16,
        description: &str,
    ) -> &mut RefOr<utoipa::openapi::Response> {
        let responses = &mut self.operation.responses.responses;
        let response = responses.entry(status.to_string());
        response.or_insert_with(|| {
            ResponseBuilder::new()
                .description(description)
                .build()
                .into()
        })
    }

    fn parameters(&mut self, parameters: impl IntoIterator<Item = Parameter>) {
        let all = self.operation.parameters.get_or_insert_default();
        all.extend(parameters.into_iter().map(RefOr::from));
    }

    fn reference<T: ToSchema>(&mut self) -> RefOr<Schema> {
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
        Ref::from_schema_name(T::name()).into()
    }

    fn is_of_session(&self) -> bool {
        self.path.contains("{id}")
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
    let info = guard.rest.server().info();
    if guard.needs_login && info.requires_login(&caller.access) {
        let message = "the agent requires a login, which this interface does not have: use /acp or \
                       /rpc, or a read-only token";
        let refusal = Failure::new(StatusCode::FORBIDDEN, "login_required").message(message);
        return refusal.into_response();
    }
    // A path that is no text names no session.
    let session = path.ok().and_then(|path| {
        let mut parameters = path.iter();
        let id = parameters.find_map(|(name, value)| (name == "id").then_some(value));
        id.map(SessionId::from)
    });
    match guard.right.check(&caller.access, session.as_ref()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}
