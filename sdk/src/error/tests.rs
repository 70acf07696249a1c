use std::error::Error as _;

use super::*;

#[derive(Debug)]
struct Outer(io::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot load the index")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

fn handler<E>(error: E) -> HandlerError
where
    HandlerError: From<E>,
{
    let fails = || -> HandlerResult<()> { Err(error)? };
    fails().unwrap_err()
}

#[test]
fn any_error_becomes_an_internal_error_whose_sources_stay_here() {
    let error = handler(Outer(io::Error::other("disk on fire")));
    assert_eq!(error.code(), ErrorCode::INTERNAL_ERROR);
    assert_eq!(error.as_response().message, "cannot load the index");
    assert_eq!(
        error.with_sources().as_deref(),
        Some("cannot load the index: disk on fire")
    );
    assert!(error.source().is_some_and(|source| source.is::<Outer>()));

    let error = handler(io::Error::from(io::ErrorKind::NotFound));
    assert_eq!(error.as_response().message, "entity not found");
    assert_eq!(error.with_sources(), None);
    let error = handler(anyhow::Error::from(io::Error::other("inner")).context("outer"));
    assert_eq!(error.as_response().message, "outer");
    assert_eq!(handler("in words").as_response().message, "in words");
}

#[test]
fn an_error_object_is_answered_unchanged() {
    let object = RpcError::new(ErrorCode::AUTHENTICATION_REQUIRED, "log in");
    assert_eq!(handler(object.clone()).into_response(), object);
    let error = handler(HandlerError::auth_required());
    assert_eq!(
        error.to_string(),
        "authentication required (code -32000)",
        "no empty method name"
    );
}

#[test]
fn the_code_of_a_nested_call_does_not_become_the_answer() {
    let nested = Error::Response {
        method: "fs/read_text_file".to_owned(),
        error: Box::new(RpcError::new(ErrorCode::METHOD_NOT_FOUND, "no such method")),
    };
    let error = handler(nested);
    assert_eq!(error.code(), ErrorCode::INTERNAL_ERROR);
    assert_eq!(
        error.as_response().message,
        "`fs/read_text_file` failed: no such method (code -32601)"
    );
}

#[test]
fn sources_are_reachable() {
    let system = || Arc::new(io::Error::from(io::ErrorKind::BrokenPipe));
    let closed = Error::Closed(CloseReason::WriteFailed(system()));
    assert!(closed.source().is_some_and(|e| e.is::<io::Error>()));
    let failed = Error::io("listen on `x`", io::Error::other("in use"));
    assert_eq!(failed.to_string(), "cannot listen on `x`: in use");
    assert!(failed.source().is_some_and(|e| e.is::<io::Error>()));
    assert!(Error::Closed(CloseReason::EndOfInput).source().is_none());
}

#[test]
fn the_error_of_a_handler_ends_a_main_function() {
    fn handler() -> HandlerResult<()> {
        Err(HandlerError::resource_not_found("session s"))
    }
    fn main() -> Result<(), Box<dyn std::error::Error>> {
        handler()?;
        Ok(())
    }
    let error = main().unwrap_err();
    assert!(
        error.to_string().contains("Resource not found: session s"),
        "{error}"
    );
    assert_eq!(format!("{error:?}"), error.to_string());

    let error = HandlerError::from(Outer(io::Error::other("disk on fire"))).into_error();
    assert_eq!(error.to_string(), "cannot load the index (code -32603)");
    assert_eq!(format!("{error:?}"), "cannot load the index: disk on fire");
    assert_eq!(error.source().unwrap().to_string(), "disk on fire");
}
