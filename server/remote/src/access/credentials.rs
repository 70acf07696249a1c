//! The token or ticket of a request.

use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Uri, header};

/// A header that should hold one bearer token, and does not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Returns the bearer token of a request; `None` without the header.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Malformed> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.to_str().map_err(|_| Malformed)?,
        _ => return Err(Malformed),
    };
    let (scheme, token) = value.split_once(' ').ok_or(Malformed)?;
    let token = token.trim_matches(' ');
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(Malformed);
    }
    Ok(Some(token))
}

/// Removes the parameter `ticket` from a URI and returns it. Several are none.
pub(super) fn take_ticket(uri: &mut Uri) -> Option<String> {
    let query = uri.query()?;
    let is_ticket = |part: &&str| *part == "ticket" || part.starts_with("ticket=");
    let found: Vec<_> = query.split('&').filter(is_ticket).collect();
    let first = *found.first()?;
    let ticket = first.strip_prefix("ticket=").unwrap_or_default();
    let ticket = (found.len() == 1).then(|| ticket.to_owned());

    let rest: Vec<_> = query.split('&').filter(|part| !is_ticket(part)).collect();
    let path = uri.path();
    let target = match rest.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", rest.join("&")),
    };
    let mut parts = uri.clone().into_parts();
    // A part of a valid target is valid.
    parts.path_and_query = PathAndQuery::try_from(target).ok();
    if let Ok(without) = Uri::from_parts(parts) {
        *uri = without;
    }
    ticket
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bearer_token_is_found_whatever_the_case_of_the_scheme() {
        let parsed = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            }
            bearer(&headers).map(|token| token.map(str::to_owned))
        };
        assert_eq!(parsed(&[]), Ok(None));
        for value in ["Bearer abc", "bearer abc", "BEARER  abc "] {
            assert_eq!(parsed(&[value]), Ok(Some("abc".to_owned())), "{value}");
        }
        for value in ["Basic abc", "Bearer", "Bearer ", "abc", ""] {
            assert_eq!(parsed(&[value]), Err(Malformed), "{value}");
        }
        assert_eq!(parsed(&["Bearer a", "Bearer a"]), Err(Malformed));
    }

    #[test]
    fn the_ticket_leaves_the_uri() {
        for (before, ticket, after) in [
            ("/acp?ticket=ab", Some("ab"), "/acp"),
            ("/acp?a=1&ticket=ab&b=2", Some("ab"), "/acp?a=1&b=2"),
            ("/acp?a=1&tickets=ab", None, "/acp?a=1&tickets=ab"),
            ("/acp", None, "/acp"),
            ("/acp?ticket", Some(""), "/acp"),
            ("/acp?ticket=a&ticket=b", None, "/acp"),
            (
                "http://localhost/acp?ticket=ab",
                Some("ab"),
                "http://localhost/acp",
            ),
        ] {
            let mut uri: Uri = before.parse().unwrap();
            assert_eq!(take_ticket(&mut uri).as_deref(), ticket, "{before}");
            assert_eq!(uri.to_string(), after);
        }
    }
}
