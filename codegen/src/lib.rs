//! Generates typed Rust from an Agent Client Protocol schema document.
//!
//! The schema is the single source of the protocol. The output has types, traits, typed
//! callers and dispatch; it calls the runtime in `acp-sdk`. A pipeline of small passes:
//!
//! 1. a [`Document`] with its overlays, and its method table;
//! 2. `lower`: JSON Schema to a plain subset, and an IR of the wire format;
//! 3. `skeletons`: the Rust names of the plain schemas, with types by typify;
//! 4. `emit`: items with docs, constructors and serde;
//! 5. `dispatch`: method markers, traits, handles, services;
//! 6. `schemas`, optional: the types' schemas for `schemars`;
//! 7. `format`.
//!
//! `extension` generates only what an overlay adds to a protocol whose types exist already.
//! [`diff()`] lists what a new document changes, and for whom it breaks.
//!
//! ```no_run
//! // build.rs
//! acp_codegen::Builder::v1().overlay("my-extensions.json").write_to_out_dir("acp.rs")?;
//! # Ok::<(), acp_codegen::Error>(())
//! ```

mod builder;
#[cfg(feature = "tools")]
mod diff;
mod dispatch;
mod emit;
mod error;
mod export;
mod extension;
mod external;
mod format;
mod identifiers;
mod ir;
mod lower;
mod mapping;
mod name_collisions;
mod names;
mod overrides;
mod schemas;
mod skeletons;
mod source;
mod tokens;
mod typify_adapter;
#[cfg(feature = "tools")]
pub mod vectors;

pub use acp_schema::{Document, Side};

use std::collections::BTreeMap;

use acp_schema::{EXTENSIONS, Protocol, V1_UNSTABLE, V2_UNSTABLE};
use proc_macro2::TokenStream;

pub use self::builder::Builder;
#[cfg(feature = "tools")]
pub use self::diff::{Change, Diff, diff};
pub use self::error::Error;
pub use self::export::export;
use self::extension::Extension;
pub use self::mapping::{generate_bundled_conversions, generate_conversions};
use self::overrides::{Overrides, Table};
pub use self::source::{read, read_stdin};

/// Options of [`generate`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// URL of the protocol's reference page, for links in the docs (default: no links).
    pub reference: Option<String>,
    /// Whether an unused row of the override table is an error.
    pub complete: bool,
    /// Whether the types also implement `schemars::JsonSchema`; the text then needs the
    /// feature `schemars` of `acp-sdk`.
    pub json_schemas: bool,
    /// Definitions that have a Rust type already, by name, with its absolute path.
    ///
    /// The text re-exports that type under the definition's name and does not define
    /// one. Types of inline schemas are expected in the same module.
    pub external: BTreeMap<String, String>,
    overrides: Table,
    /// The document with methods that are not generated, but whose facts are.
    facts: Option<fn() -> Result<Document, acp_schema::Error>>,
}

impl Options {
    /// Options for the bundled document of protocol version 1.
    #[must_use]
    pub fn v1() -> Self {
        let reference = "https://agentclientprotocol.com/protocol/v1/schema".to_owned();
        Self {
            reference: Some(reference),
            complete: true,
            overrides: overrides::V1,
            facts: Some(|| {
                Document::v1()?
                    .overlay("v1.unstable.json", V1_UNSTABLE)?
                    .overlay("extensions.json", EXTENSIONS)
            }),
            ..Self::other()
        }
    }

    /// Options for the bundled document of the draft of protocol version 2.
    #[must_use]
    pub fn v2() -> Self {
        let reference = "https://agentclientprotocol.com/protocol/v2/schema".to_owned();
        Self {
            reference: Some(reference),
            complete: true,
            overrides: overrides::V2,
            facts: Some(|| {
                Document::v2()?
                    .overlay("v2.unstable.json", V2_UNSTABLE)?
                    .overlay("extensions.json", EXTENSIONS)
            }),
            ..Self::other()
        }
    }

    /// Options for any other document: no overrides apply.
    #[must_use]
    pub fn other() -> Self {
        Self {
            reference: None,
            complete: false,
            json_schemas: false,
            external: BTreeMap::new(),
            overrides: &[],
            facts: None,
        }
    }
}

/// The result of [`generate`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output {
    /// Rust source: the items of one module.
    pub text: String,
    /// The number of types.
    pub types: usize,
    /// The number of methods.
    pub methods: usize,
}

/// Generates Rust from a document. The output depends on the arguments only.
///
/// # Errors
/// Fails when a method is incomplete or a definition has a form without a Rust type. The
/// error names the place.
pub fn generate(document: &Document, options: &Options) -> Result<Output, Error> {
    pipeline(document, options, None).map_err(|error| error.in_document(document))
}

/// Generates only what `document` adds to `base`, for use with the types in `module`.
///
/// `document` is `base` with overlays. The text refers to the types of `base` as
/// `module::Name`, such as `::acp_sdk::v1::SessionId`. It has the new types; a trait with the
/// new methods of each role, a [`Layer`] that dispatches them, and calls of them on the
/// existing handle; conversions between existing unions and their new members; accessors of
/// typed keys of open objects.
///
/// [`Layer`]: https://docs.rs/acp-sdk
///
/// # Errors
/// As [`generate`], and when the document changes a definition of `base` in another way: its
/// type exists already. [`generate`] makes a whole protocol of such a document.
pub fn generate_extension(
    base: &Document,
    document: &Document,
    module: &str,
    options: &Options,
) -> Result<Output, Error> {
    let generated = Extension::new(base, document, module)
        .and_then(|extension| pipeline(&extension.document, options, Some(&extension)));
    generated.map_err(|error| error.in_document(document))
}

fn pipeline(
    document: &Document,
    options: &Options,
    extension: Option<&Extension>,
) -> Result<Output, Error> {
    let extends = extension.is_some();
    let overrides = Overrides::new(options.overrides);
    let protocol = Protocol::from_document(document)?;
    let lowered = lower::lower(document, &overrides)?;
    let roles = dispatch::roles(&protocol)?;
    let of_roles: Vec<String> = roles.iter().flat_map(|role| role.names(extends)).collect();
    let marker = dispatch::version_marker(document)?.filter(|_| !extends);
    names::check(&lowered.types, &of_roles, marker.as_deref())?;
    name_collisions::check(&lowered.types)?;
    let skeletons = skeletons::Skeletons::new(&lowered.plain)?;
    let external = external_types(document, options, extension, &overrides, &lowered, &roles)?;
    let model = emit::Model::new(&lowered.types, &skeletons, &external);
    let mut calls = dispatch::calls(&protocol, &model, &overrides, options);
    name_collisions::functions(calls.iter().map(|call| call.names()))?;
    if let Some(extension) = extension {
        calls.retain(|call| extension.adds(call));
    }
    let mut chunks = emit::types(&model, &dispatch::uses(&roles, &calls, extends))?;
    chunks.extend(match extension {
        None => dispatch::dispatch(document, &model, &roles, &calls)?,
        Some(extension) => extension.items(&model, &roles, &calls)?,
    });
    chunks.extend(facts(document, options, extends, &roles, &calls)?);
    let mut foreign = Vec::new();
    if !extends {
        let types = model.types.iter();
        foreign.extend(types.filter(|ty| !model.is_own(&ty.name)));
        chunks.extend(foreign.iter().filter_map(|ty| emit::codes(ty)));
    }
    if options.json_schemas {
        let foreign: Vec<&str> = foreign.iter().map(|ty| ty.name.as_str()).collect();
        let own = model.own_types();
        chunks.push(schemas::items(own, &foreign, lowered.schemas));
    }
    let reexports = external.reexports(&chunks);
    chunks.insert(0, emit::imports(&chunks, !calls.is_empty()));
    chunks.insert(1, reexports);
    chunks.push(runtime_check());
    if options.complete {
        overrides.check_used()?;
    }
    Ok(Output {
        text: format::format(chunks)?,
        types: model.own_types().count(),
        methods: calls.len(),
    })
}

/// What fails to compile, with a sentence, where the text meets the runtime of another version.
fn runtime_check() -> TokenStream {
    let version = [
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
    ];
    let version = version.into_iter().flat_map(str::parse::<TokenStream>);
    quote::quote!(const _: () = ::acp_sdk::runtime::generated_for(#(#version),*);)
}

/// The tables of facts, with those of what is not generated.
fn facts(
    document: &Document,
    options: &Options,
    extends: bool,
    roles: &[dispatch::Role],
    calls: &[dispatch::Call<'_>],
) -> Result<Vec<TokenStream>, Error> {
    let methods = calls.iter().map(dispatch::Call::method);
    if extends {
        return Ok(dispatch::facts(roles, methods, None).into_iter().collect());
    }
    let known = options.facts.map(|known| known()).transpose()?;
    let protocol = known.as_ref().map(Protocol::from_document).transpose()?;
    let mut chunks = dispatch::contents(known.as_ref().unwrap_or(document))?;
    chunks.extend(dispatch::facts(roles, methods, protocol.as_ref()));
    Ok(chunks)
}

/// The types that exist elsewhere: by the overrides, by the options, and of what is extended.
fn external_types(
    document: &Document,
    options: &Options,
    extension: Option<&Extension>,
    overrides: &Overrides,
    lowered: &lower::Lowered,
    roles: &[dispatch::Role],
) -> Result<external::Types, Error> {
    let mut paths: BTreeMap<String, String> = overrides.external(document).collect();
    for (name, path) in extension.map(Extension::external).unwrap_or_default() {
        // A type of the runtime may have another name in the module.
        paths.entry(name).or_insert(path);
    }
    paths.extend(options.external.clone());
    let mut types = external::Types::new(document, &paths, &lowered.types)?;
    types.name_as_runtime(overrides.external(document).map(|(name, _)| name));
    if let Some(extension) = extension {
        types.reexport_on_use();
        for name in roles.iter().flat_map(|role| role.existing()) {
            types.add(&name, &extension.path(&name))?;
        }
    }
    Ok(types)
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
