//! Conversions between two versions of a protocol, from a mapping document.
//!
//! Types of equal names are forms of each other, as are their members and variants of equal
//! names. The mapping has a row for each difference; a member without an equal and without a row
//! is an error that names it. `document` reads the mapping, `pairs` finds the pairs of types,
//! `objects` and `unions` generate the conversion of a pair in one direction, `values` decides
//! whether two Rust types have a conversion.

mod document;
mod objects;
mod pairs;
mod unions;
mod values;

use acp_schema::{Document, V1_UNSTABLE, V1_V2, V1_V2_UNSTABLE, V2_UNSTABLE};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use self::document::{Both, Mapping, Pair, Version};
use self::pairs::Pairs;
use self::values::Values;
use crate::emit::Model;
use crate::ir::{Shape, Type};
use crate::overrides::{self, Overrides, Table};
use crate::skeletons::Skeletons;
use crate::{Error, external, format, lower};

/// Generates the conversions between two documents in both directions.
///
/// `mapping` are the mapping document and its overlays, each with the name that errors use. The
/// text belongs into a module that has the types in the modules `v1` and `v2`.
///
/// # Errors
/// Fails when a type, member, variant or value of one document has neither an equal in the other
/// nor a row in the mapping, and when a row names something that does not exist.
pub fn generate_conversions(
    v1: &Document,
    v2: &Document,
    mapping: &[(&str, &str)],
) -> Result<String, Error> {
    let mut rows = Mapping::default();
    for (file, text) in mapping {
        document::read(&mut rows, file, text)?;
    }
    let parts = Both::new(
        Parts::new(v1, overrides::V1)?,
        Parts::new(v2, overrides::V2)?,
    );
    let sides = Both::new(
        parts.of(Version::V1).side(v1),
        parts.of(Version::V2).side(v2),
    );
    let file = mapping.first().map_or("", |(file, _)| *file);
    let pairs = Pairs::new(&sides, &rows, file, mapping.len() > 1)?;
    let context = Context {
        values: Values::new(&sides, &pairs),
        sides: &sides,
        file,
    };
    let mut chunks = Vec::new();
    for (names, row) in pairs.all() {
        for to in [Version::V1, Version::V2] {
            if row.is_none_or(|row| row.only.is_none_or(|only| only == to)) {
                chunks.push(context.conversion(names, *row, to)?);
            }
        }
    }
    chunks.extend(context.values.texts());
    chunks.push(table(&sides, &pairs));
    format::format(chunks)
}

/// Generates the conversions between the bundled documents, with the proposals if asked for.
///
/// # Errors
/// Fails as [`generate_conversions`].
pub fn generate_bundled_conversions(unstable: bool) -> Result<String, Error> {
    let (mut v1, mut v2) = (Document::v1()?, Document::v2()?);
    let mut mapping = vec![("v1-v2.json", V1_V2)];
    if unstable {
        v1 = v1.overlay("v1.unstable.json", V1_UNSTABLE)?;
        v2 = v2.overlay("v2.unstable.json", V2_UNSTABLE)?;
        mapping.push(("v1-v2.unstable.json", V1_V2_UNSTABLE));
    }
    generate_conversions(&v1, &v2, &mapping)
}

/// The lowered document and its Rust types.
struct Parts {
    types: Vec<Type>,
    skeletons: Skeletons,
    external: external::Types,
}

impl Parts {
    fn new(document: &Document, table: Table) -> Result<Self, Error> {
        let overrides = Overrides::new(table);
        let lowered =
            lower::lower(document, &overrides).map_err(|error| error.in_document(document))?;
        let paths = overrides.external(document).collect();
        Ok(Self {
            skeletons: Skeletons::new(&lowered.plain)?,
            external: external::Types::new(document, &paths, &lowered.types)?,
            types: lowered.types,
        })
    }

    fn side<'a>(&'a self, document: &'a Document) -> Side<'a> {
        Side {
            document,
            model: Model::new(&self.types, &self.skeletons, &self.external),
        }
    }
}

/// One version.
struct Side<'a> {
    document: &'a Document,
    model: Model<'a>,
}

impl Side<'_> {
    /// Returns an error about a place of the document.
    fn error(&self, pointer: &str, message: String, help: String) -> Error {
        Error::unsupported(pointer, message, help).in_document(self.document)
    }
}

struct Context<'a> {
    sides: &'a Both<Side<'a>>,
    values: Values<'a>,
    /// The mapping's file, for errors that ask for a row.
    file: &'a str,
}

/// A conversion of one type to another.
struct Conversion<'a> {
    row: Option<&'a Pair>,
    to: Version,
    source: &'a Type,
    target: &'a Type,
}

impl Conversion<'_> {
    fn from(&self) -> Version {
        self.to.other()
    }

    /// Returns the path of a hand-written function to the target's version.
    fn function(&self, name: &str) -> TokenStream {
        let (module, name) = (
            format_ident!("to_{}", self.to.name()),
            format_ident!("{name}"),
        );
        quote!(#module::#name)
    }
}

impl<'a> Context<'a> {
    fn side(&self, version: Version) -> &'a Side<'a> {
        self.sides.of(version)
    }

    /// Generates the conversion of a pair to the version `to`.
    fn conversion(
        &self,
        names: &Both<String>,
        row: Option<&Pair>,
        to: Version,
    ) -> Result<TokenStream, Error> {
        let from = to.other();
        let find = |version: Version| self.side(version).model.get(names.of(version));
        let (Some(source), Some(target)) = (find(from), find(to)) else {
            return Err(Error::Passes(format!("no types `{names:?}`")));
        };
        let conversion = Conversion {
            row,
            to,
            source,
            target,
        };
        let (a, b) = (path(from, &source.name), path(to, &target.name));
        let body = match row.and_then(|row| row.by.of(to).as_deref()) {
            Some(function) => {
                let function = conversion.function(function);
                quote!(#function(self, losses))
            }
            None => match self.body(&conversion)? {
                Body::Code(code) => code,
                Body::Call(call) => return Ok(call),
            },
        };
        let list = row
            .and_then(|row| row.list.of(to).as_deref())
            .map(|function| {
                let function = conversion.function(function);
                quote! {
                    fn convert_into(self, list: &mut Vec<#b>, losses: &mut Losses) {
                        #function(self, list, losses);
                    }
                }
            });
        Ok(quote! {
            impl Convert<#b> for #a {
                fn convert(self, losses: &mut Losses) -> Option<#b> { #body }
                #list
            }
        })
    }

    fn body(&self, conversion: &Conversion<'_>) -> Result<Body, Error> {
        let Conversion { source, target, .. } = conversion;
        let (a, b) = (
            path(conversion.from(), &source.name),
            path(conversion.to, &target.name),
        );
        Ok(match (&source.shape, &target.shape) {
            (Shape::Struct(from), Shape::Struct(to)) => {
                Body::Code(objects::body(self, conversion, from, to)?)
            }
            (Shape::Union(from), Shape::Union(to)) => {
                Body::Code(unions::body(self, conversion, from, to)?)
            }
            (Shape::Text(from), Shape::Text(to)) => {
                unions::values(self, conversion, from, to)?;
                Body::Call(quote!(text!(#a, #b);))
            }
            (Shape::Id, Shape::Id) => Body::Call(quote!(id!(#a, #b);)),
            (Shape::Integer(_), Shape::Integer(_)) => Body::Call(quote!(integer!(#a, #b);)),
            (Shape::Wrapper, Shape::Wrapper) | (Shape::Map, Shape::Map) => {
                Body::Code(quote!(Some(#b(self.0.convert(losses)?))))
            }
            _ => {
                let message = format!(
                    "`{}` of {} and `{}` of {} have different shapes",
                    source.name,
                    conversion.from().name(),
                    target.name,
                    conversion.to.name()
                );
                let help = format!("add a pair with `by` to {}", self.file);
                return Err(self
                    .side(conversion.from())
                    .error(&source.at, message, help));
            }
        })
    }
}

/// The text of a conversion.
enum Body {
    /// The body of the function.
    Code(TokenStream),
    /// A call of a macro that implements the conversion.
    Call(TokenStream),
}

fn path(version: Version, name: &str) -> TokenStream {
    let (module, name) = (format_ident!("{}", version.name()), format_ident!("{name}"));
    quote!(#module::#name)
}

/// Generates the table of the definitions that convert in both directions, for tests.
fn table(sides: &Both<Side<'_>>, pairs: &Pairs<'_>) -> TokenStream {
    let both = pairs
        .all()
        .iter()
        .filter(|(_, row)| row.is_none_or(|row| row.only.is_none()));
    let rows = both.filter_map(|(names, _)| {
        let (v1, v2) = (names.of(Version::V1), names.of(Version::V2));
        let is_definition =
            |version: Version, name: &str| sides.of(version).document.def(name).is_some();
        let defined = is_definition(Version::V1, v1) && is_definition(Version::V2, v2);
        let (a, b) = (path(Version::V1, v1), path(Version::V2, v2));
        defined.then(|| quote!(#v1: #a = #v2: #b))
    });
    quote!(pairs!({ #(#rows),* });)
}
