//! Which servers a transcript may be sent to.

use axum::http::StatusCode;
use url::Url;

use super::failure::Failure;
use crate::Origin;

/// Returns the address, if its origin is listed.
///
/// # Errors
///
/// 400 for a text that is no address, 403 for one that is not listed.
pub(super) fn address(text: Option<&str>, listed: &[Origin]) -> Result<Url, Failure> {
    let invalid =
        || Failure::bad_request("invalid_url").message("expected `url` with http or https");
    let url: Url = text
        .and_then(|text| text.parse().ok())
        .ok_or_else(invalid)?;
    let has_user = !url.username().is_empty() || url.password().is_some();
    let origin = url.origin().ascii_serialization().parse::<Origin>();
    let (Ok(origin), false, "http" | "https") = (origin, has_user, url.scheme()) else {
        return Err(invalid());
    };
    if listed.contains(&origin) {
        return Ok(url);
    }
    let failure = Failure::new(StatusCode::FORBIDDEN, "url_not_allowed");
    Err(failure.message("the origin of `url` is not listed. `--share-origin ORIGIN` lists it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_allowed_by_its_origin() {
        let listed = ["https://collector.example".parse().unwrap()];
        let address = |text: &str| address(Some(text), &listed).is_ok();
        assert!(address("https://collector.example/api/shares?key=1"));
        assert!(address("https://COLLECTOR.example:443/"));
        for text in [
            "http://collector.example/",
            "https://collector.example:8443/",
            "https://collector.example.evil.example/",
            "https://user@collector.example/",
            "https://collector.example@evil.example/",
            "file:///etc/passwd",
            "collector.example",
            "",
        ] {
            assert!(!address(text), "{text}");
        }
    }
}
