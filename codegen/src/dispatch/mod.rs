//! From the method table to code: markers, traits, handles, services.
//!
//! Each method becomes a marker type with its name, params and result, one method
//! of the trait of the role that handles it, one of the handle that calls that
//! role, and one arm of that role's dispatch. A method that both roles handle is in
//! both traits and handles, and has one marker. Behaviour stays in the runtime.

mod call;
mod coalescing;
mod content;
mod extension;
mod facts;
mod handles;
mod markers;
mod masking;
mod role;
mod services;
mod traits;
mod version;

use acp_schema::Document;
use proc_macro2::TokenStream;

pub(crate) use self::call::{Call, calls, uses};
pub(crate) use self::content::items as contents;
pub(crate) use self::extension::extension;
pub(crate) use self::facts::items as facts;
pub(crate) use self::role::{Role, roles};
use self::version::Version;
pub(crate) use self::version::version_marker;
use crate::Error;
use crate::emit::Model;

/// All items about methods; none for a document without methods.
///
/// # Errors
/// When a default answer in the override table is no Rust expression, or the document has
/// `x-version` and no `initialize` between two roles.
pub(crate) fn dispatch(
    document: &Document,
    model: &Model<'_>,
    roles: &[Role],
    calls: &[Call<'_>],
) -> Result<Vec<TokenStream>, Error> {
    if calls.is_empty() {
        return Ok(Vec::new());
    }
    let version = Version::of(document, roles, calls)?;
    let version = version.as_ref();
    let cancellation = document.cancellation()?;
    let coalescing = coalescing::items(document, |_| true)?;
    let mut chunks = vec![
        markers::params(model, calls),
        markers::module(calls, version),
    ];
    for role in roles {
        chunks.push(traits::items(*role, calls)?);
    }
    for role in roles {
        chunks.push(handles::items(*role, calls));
    }
    for role in roles {
        chunks.push(services::items(
            *role,
            calls,
            version,
            cancellation.is_some(),
        ));
    }
    chunks.extend(cancellation.map(services::cancellation));
    chunks.extend(coalescing);
    if let Some(version) = version {
        chunks.push(version.items(model, calls)?);
    }
    chunks.push(masking::items(document, calls, |_| true)?);
    Ok(chunks)
}
