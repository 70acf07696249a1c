//! The entry point for build scripts.

mod extend;

use std::fs;
use std::path::{Path, PathBuf};

use acp_schema::{Document, Side, V1_UNSTABLE, V2_UNSTABLE};
use serde_json::Value;

use self::extend::Extension;
use crate::{Error, Options, export, generate, generate_extension, read};

/// Generates from a document and extensions of your own, in `build.rs`.
///
/// Extensions are added in the order in which they are given, so that one can refer
/// to another. They come as overlay files, as schemas that were derived from Rust
/// types, or one by one:
///
/// ```
/// use acp_codegen::{Builder, Side};
/// use serde_json::json;
///
/// let text = Builder::v1()
///     .definition("Table", json!({
///         "type": "object",
///         "properties": { "rows": { "type": "array", "items": { "type": "string" } } },
///         "required": ["rows"],
///     }))
///     .member("ContentBlock", "_example/table", "Table")
///     .meta("PromptRequest", "example.com/table", "Table")
///     .request(
///         Side::CLIENT,
///         "_example/confirm",
///         "Confirm",
///         json!({ "properties": { "question": { "type": "string" } }, "required": ["question"] }),
///         json!({ "properties": { "yes": { "type": "boolean" } }, "required": ["yes"] }),
///     )
///     .generate()?;
/// assert!(text.contains("fn confirm("));
/// # Ok::<(), acp_codegen::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    base: Base,
    options: Options,
    /// The module with the types of the base, in which case only extensions are generated.
    extends: Option<String>,
    unstable: bool,
    steps: Vec<Step>,
}

/// The document that extensions are added to.
#[derive(Clone, Debug)]
enum Base {
    V1,
    V2,
    Document(Box<Document>),
    File(PathBuf),
}

#[derive(Clone, Debug)]
enum Step {
    File(PathBuf),
    Schemas(Vec<Value>),
    Extension(Extension),
}

impl Builder {
    /// Creates a builder for the bundled document of protocol version 1.
    #[must_use]
    pub fn v1() -> Self {
        Self::new(Base::V1, Options::v1())
    }

    /// Creates a builder for the bundled document of the draft of protocol version 2.
    #[must_use]
    pub fn v2() -> Self {
        Self::new(Base::V2, Options::v2())
    }

    /// Creates a builder for any document, of any JSON-RPC protocol.
    #[must_use]
    pub fn from_document(document: Document) -> Self {
        Self::new(Base::Document(Box::new(document)), Options::other())
    }

    /// Creates a builder for the document in a file, which is read by
    /// [`generate`](Self::generate). Relative paths start at the package directory.
    #[must_use]
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self::new(Base::File(path.into()), Options::other())
    }

    fn new(base: Base, options: Options) -> Self {
        Self {
            base,
            options,
            extends: None,
            unstable: false,
            steps: Vec::new(),
        }
    }

    /// Adds the proposals that a bundled document does not contain yet. Any release may
    /// change or remove them. Generation fails for a document of your own, which has no
    /// known proposals.
    #[must_use]
    pub fn unstable(mut self) -> Self {
        self.unstable = true;
        self
    }

    /// Implements `schemars::JsonSchema` for the types, with the document's schemas. Types
    /// that derive it can then contain them. Needs the feature `schemars` of `acp-sdk`.
    #[must_use]
    pub fn json_schemas(mut self) -> Self {
        self.options.json_schemas = true;
        self
    }

    /// Uses the Rust type at `path` for a definition and re-exports it; no type is
    /// generated. The path is absolute, such as `::my_crate::Id`. The type must have the
    /// traits of a generated one.
    #[must_use]
    pub fn external(mut self, definition: &str, path: &str) -> Self {
        let paths = &mut self.options.external;
        paths.insert(definition.into(), path.into());
        self
    }

    /// Generates only the extensions, for use with the types of the base in `module`, such
    /// as `::acp_sdk::v1`; see [`generate_extension`].
    ///
    /// The extensions may add types, methods, members of tagged unions and typed keys of
    /// `_meta`. Generation fails when an overlay changes an existing definition in another
    /// way; generate the whole protocol then.
    #[must_use]
    pub fn extends(mut self, module: &str) -> Self {
        self.extends = Some(module.into());
        self
    }

    /// Links methods in the docs to the protocol's reference page at `url`.
    #[must_use]
    pub fn reference(mut self, url: impl Into<String>) -> Self {
        self.options.reference = Some(url.into());
        self
    }

    /// Adds an overlay file: definitions, methods and patches. Relative paths start at the
    /// package directory.
    #[must_use]
    pub fn overlay(self, path: impl Into<PathBuf>) -> Self {
        self.step(Step::File(path.into()))
    }

    /// Adds types by the root schemas that another tool derived from them, such as
    /// those of `schemars::schema_for!`; see [`export()`].
    #[must_use]
    pub fn schemas(self, schemas: impl IntoIterator<Item = Value>) -> Self {
        self.step(Step::Schemas(schemas.into_iter().collect()))
    }

    /// Adds a type.
    #[must_use]
    pub fn definition(self, name: &str, schema: Value) -> Self {
        self.extend(Extension::Definition {
            name: name.into(),
            schema,
        })
    }

    /// Adds a request that `side` handles. Its params become the type `{name}Request`
    /// and its result `{name}Response`; the schemas are those of objects.
    #[must_use]
    pub fn request(
        self,
        side: Side,
        method: &str,
        name: &str,
        params: Value,
        result: Value,
    ) -> Self {
        self.extend(Extension::Request {
            side,
            method: method.into(),
            name: name.into(),
            params,
            result,
        })
    }

    /// Adds a notification that `side` handles, its params as `{name}Notification`.
    #[must_use]
    pub fn notification(self, side: Side, method: &str, name: &str, params: Value) -> Self {
        self.extend(Extension::Notification {
            side,
            method: method.into(),
            name: name.into(),
            params,
        })
    }

    /// Adds a member to the tagged union `union`. Its tag is `tag`; its other members are
    /// those of the definition `payload`.
    #[must_use]
    pub fn member(self, union: &str, tag: &str, payload: &str) -> Self {
        self.extend(Extension::Member {
            union: union.into(),
            tag: tag.into(),
            payload: payload.into(),
        })
    }

    /// Types the key `key` of a definition's `_meta` as the definition `payload`, and
    /// generates a getter and a setter.
    #[must_use]
    pub fn meta(self, definition: &str, key: &str, payload: &str) -> Self {
        self.extend(Extension::Meta {
            definition: definition.into(),
            key: key.into(),
            payload: payload.into(),
        })
    }

    /// Returns the document with all extensions.
    ///
    /// # Errors
    /// Fails when an overlay cannot be read or an extension does not apply to the document.
    pub fn document(&self) -> Result<Document, Error> {
        let mut document = self.base()?;
        for step in &self.steps {
            document = match step {
                Step::File(path) => document.overlay(&path.display().to_string(), &read(path)?)?,
                Step::Schemas(schemas) => {
                    let overlay = export(&document, schemas.iter().cloned())?;
                    document.overlay("exported schemas", &overlay.to_string())?
                }
                Step::Extension(extension) => extension.apply(document)?,
            };
        }
        Ok(document)
    }

    fn base(&self) -> Result<Document, Error> {
        let (document, proposals) = match &self.base {
            Base::V1 => (Document::v1()?, Some(("v1.unstable.json", V1_UNSTABLE))),
            Base::V2 => (Document::v2()?, Some(("v2.unstable.json", V2_UNSTABLE))),
            Base::Document(document) => (document.as_ref().clone(), None),
            Base::File(path) => {
                let document = Document::parse(&path.display().to_string(), &read(path)?)?;
                (document, None)
            }
        };
        match (self.unstable, proposals) {
            (false, _) => Ok(document),
            (true, Some((name, text))) => Ok(document.overlay(name, text)?),
            (true, None) => Err(Error::NoProposals {
                file: document.file("").to_owned(),
            }),
        }
    }

    /// Generates the text of one module.
    ///
    /// # Errors
    /// Fails as [`Self::document`], and when generation fails.
    pub fn generate(&self) -> Result<String, Error> {
        let document = self.document()?;
        let output = match &self.extends {
            None => generate(&document, &self.options)?,
            Some(module) => generate_extension(&self.base()?, &document, module, &self.options)?,
        };
        Ok(output.text)
    }

    /// Generates into `file` in the build script's `OUT_DIR` and tells Cargo which
    /// files the result depends on. Include it with
    /// `include!(concat!(env!("OUT_DIR"), "/file"))`.
    ///
    /// # Errors
    /// Fails as [`Self::generate`], and when the file cannot be written or `OUT_DIR` is not
    /// set.
    #[allow(clippy::print_stdout, reason = "Cargo reads a build script's stdout")]
    pub fn write_to_out_dir(&self, file: &str) -> Result<(), Error> {
        println!("cargo::rerun-if-changed=build.rs");
        let base = match &self.base {
            Base::File(path) => Some(path),
            _ => None,
        };
        let overlays = self.steps.iter().filter_map(|step| match step {
            Step::File(path) => Some(path),
            _ => None,
        });
        for path in base.into_iter().chain(overlays) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        let directory = std::env::var_os("OUT_DIR").ok_or_else(|| Error::Io {
            path: PathBuf::from("OUT_DIR"),
            source: std::io::Error::other("not set; call this from a build script"),
        })?;
        let path = Path::new(&directory).join(file);
        fs::write(&path, self.generate()?).map_err(|source| Error::Io { path, source })
    }

    fn extend(self, extension: Extension) -> Self {
        self.step(Step::Extension(extension))
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}
