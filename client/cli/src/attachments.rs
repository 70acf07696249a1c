//! Files and images that a prompt has beside its text.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use acp_sdk::v1::{
    BlobResourceContents, ContentBlock, EmbeddedResource, ImageContent, PromptCapabilities,
    ResourceLink, TextResourceContents,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::Url;

/// Maximum size of an image, in bytes. Models take less.
pub(super) const LARGEST_IMAGE: u64 = 10 << 20;

/// Maximum size of a file whose contents are sent, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

pub(super) const NOT_AN_IMAGE: &str = "expected a PNG, JPEG, GIF or WebP image";

const TOO_LARGE: &str = "it is larger than 10 MiB";

const NO_IMAGES: &str = "the agent takes no images: it lacks promptCapabilities.image";

/// The files that the user names.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct AttachmentArgs {
    /// Attach a file: its contents if the agent takes them and they have at most 1 MiB, else a link
    /// to it; repeatable
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,

    /// Attach an image: PNG, JPEG, GIF or WebP of at most 10 MiB; repeatable
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
}

/// Attachments, read before an agent is started.
#[derive(Debug)]
pub(super) struct Attachments(Vec<Attachment>);

#[derive(Debug)]
enum Attachment {
    Image { data: String, kind: &'static str },
    File(Resource),
}

/// A file or directory.
#[derive(Debug)]
struct Resource {
    path: PathBuf,
    uri: String,
    name: String,
    /// `None` for a directory, and for what is too large to be sent.
    contents: Option<Vec<u8>>,
}

impl Attachments {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// Fails when a file cannot be read, or is no image that agents take; the message names it.
    pub(super) fn read(args: &AttachmentArgs) -> Result<Self, String> {
        let files = args.file.iter().map(|path| Resource::read(path));
        let files = files.map(|file| file.map(Attachment::File));
        let images = args.image.iter().map(|path| image(path));
        files.chain(images).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the content blocks for an agent with these capabilities. An agent that is not `local`
    /// cannot follow a link to a file.
    ///
    /// # Errors
    ///
    /// Fails when the agent does not take a file or image; the message names it.
    pub(super) fn blocks(
        self,
        capabilities: &PromptCapabilities,
        local: bool,
    ) -> Result<Vec<ContentBlock>, String> {
        let attachments = self.0.into_iter();
        let blocks = attachments.map(|attachment| attachment.block(capabilities, local));
        blocks.collect()
    }
}

impl Attachment {
    fn block(self, capabilities: &PromptCapabilities, local: bool) -> Result<ContentBlock, String> {
        match self {
            Self::Image { data, kind } if capabilities.image => {
                Ok(ContentBlock::Image(ImageContent::new(data, kind)))
            }
            Self::Image { .. } => Err(NO_IMAGES.to_owned()),
            Self::File(file) => file.block(capabilities.embedded_context, local),
        }
    }
}

/// What a prompt gets for a file.
pub(super) struct Attached {
    pub(super) block: ContentBlock,
    /// A word for the form: image, contents or link.
    pub(super) how: &'static str,
    /// Why it is a link although it is an image.
    pub(super) note: Option<String>,
}

/// Returns the block for a file or directory in the form that the agent takes: an image, the contents, or a
/// link. Blocks for as long as the file system takes.
///
/// # Errors
///
/// Fails when the file cannot be read, or the agent takes it in no form; the message names it.
pub(super) fn attach(
    path: &Path,
    capabilities: &PromptCapabilities,
    local: bool,
) -> Result<Attached, String> {
    let failed = |error: std::io::Error| format!("cannot attach {}: {error}", path.display());
    let kind = std::fs::metadata(path).map_err(failed)?;
    if !kind.is_file() && !kind.is_dir() {
        return Err(format!(
            "cannot attach {}: it is neither a file nor a directory",
            path.display()
        ));
    }
    let is_image = kind.is_file() && image_kind(&beginning(path).map_err(failed)?).is_some();
    if is_image && capabilities.image {
        return Ok(Attached {
            block: image(path)?.block(capabilities, local)?,
            how: "image",
            note: None,
        });
    }
    let embeds = capabilities.embedded_context && !is_image;
    let block = Resource::read(path)?.block(embeds, local)?;
    let how = match &block {
        ContentBlock::Resource(_) => "contents",
        _ => "link",
    };
    let note = is_image.then(|| format!("{}: {NO_IMAGES}", path.display()));
    Ok(Attached { block, how, note })
}

impl Resource {
    fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot attach {}: {error}", path.display());
        let absolute = std::path::absolute(path).map_err(failed)?;
        let is_directory = std::fs::metadata(path).map_err(failed)?.is_dir();
        let contents = match is_directory {
            true => None,
            false => limited(path, LARGEST_FILE).map_err(failed)?,
        };
        let uri = match is_directory {
            true => Url::from_directory_path(&absolute),
            false => Url::from_file_path(&absolute),
        };
        let uri = uri.map_err(|()| format!("cannot attach {}: it has no URI", path.display()))?;
        let name = absolute.file_name().unwrap_or(absolute.as_os_str());
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            uri: uri.into(),
            contents,
            path: path.to_owned(),
        })
    }

    fn block(self, embeds: bool, local: bool) -> Result<ContentBlock, String> {
        match self.contents {
            Some(bytes) if embeds => Ok(ContentBlock::Resource(EmbeddedResource::new(
                match String::from_utf8(bytes) {
                    Ok(text) => TextResourceContents::new(text, self.uri).into(),
                    Err(error) => {
                        let blob = STANDARD.encode(error.as_bytes());
                        acp_sdk::v1::EmbeddedResourceResource::from(BlobResourceContents::new(
                            blob, self.uri,
                        ))
                    }
                },
            ))),
            _ if local => Ok(ContentBlock::ResourceLink(ResourceLink::new(
                self.name, self.uri,
            ))),
            contents => {
                let reason = match contents {
                    Some(_) => "it lacks promptCapabilities.embeddedContext",
                    None => "a directory or a file above 1 MiB cannot be sent",
                };
                let path = self.path.display();
                Err(format!(
                    "cannot attach {path}: the agent is not on this machine, and {reason}"
                ))
            }
        }
    }
}

/// Reads a file of at most `limit` bytes; `None` if it is longer.
fn limited(path: &Path, limit: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// Returns the first bytes of a file, by which an image is known.
fn beginning(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(12).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn image(path: &Path) -> Result<Attachment, String> {
    let failed = |reason: &str| format!("cannot attach {}: {reason}", path.display());
    let bytes = limited(path, LARGEST_IMAGE).map_err(|error| failed(&error.to_string()))?;
    let bytes = bytes.ok_or_else(|| failed(TOO_LARGE))?;
    image_of(&bytes).map_err(failed)
}

fn image_of(bytes: &[u8]) -> Result<Attachment, &'static str> {
    if bytes.len() as u64 > LARGEST_IMAGE {
        return Err(TOO_LARGE);
    }
    let kind = image_kind(bytes).ok_or(NOT_AN_IMAGE)?;
    let data = STANDARD.encode(bytes);
    Ok(Attachment::Image { data, kind })
}

/// Returns the block for an image.
///
/// # Errors
///
/// Fails when it is none that agents take, or this one takes none.
pub(super) fn image_block(
    bytes: &[u8],
    capabilities: &PromptCapabilities,
) -> Result<ContentBlock, String> {
    image_of(bytes)?.block(capabilities, true)
}

fn image_kind(bytes: &[u8]) -> Option<&'static str> {
    let webp = bytes.get(..4) == Some(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        _ => webp.then_some("image/webp"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn blocks(file: &Path, embeds: bool, local: bool) -> Result<Value, String> {
        let args = AttachmentArgs {
            file: vec![file.to_owned()],
            image: Vec::new(),
        };
        let capabilities = PromptCapabilities::new().with_embedded_context(embeds);
        let blocks = Attachments::read(&args)?.blocks(&capabilities, local)?;
        Ok(serde_json::to_value(blocks).unwrap())
    }

    #[test]
    fn a_file_is_sent_or_linked() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a b.txt");
        std::fs::write(&file, "text").unwrap();
        let uri = Url::from_file_path(&file).unwrap().to_string();
        assert!(uri.ends_with("/a%20b.txt"), "{uri}");
        assert_eq!(
            blocks(&file, true, true),
            Ok(json!([{"type": "resource", "resource": {"uri": uri, "text": "text"}}]))
        );
        let link = json!([{"type": "resource_link", "name": "a b.txt", "uri": uri}]);
        assert_eq!(blocks(&file, false, true), Ok(link.clone()));
        let error = blocks(&file, false, false).unwrap_err();
        assert!(
            error.contains("a b.txt: the agent is not on this machine"),
            "{error}"
        );

        std::fs::write(&file, [0xff, 0]).unwrap();
        assert_eq!(
            blocks(&file, true, false),
            Ok(json!([{"type": "resource", "resource": {"uri": uri, "blob": "/wA="}}]))
        );
        std::fs::write(&file, vec![b'x'; 1 + (1 << 20)]).unwrap();
        assert_eq!(blocks(&file, true, true), Ok(link));
        assert!(blocks(&file, true, false).unwrap_err().contains("1 MiB"));
        assert!(blocks(folder.path(), true, true).unwrap()[0]["uri"].is_string());
        let missing = folder.path().join("missing");
        let error = blocks(&missing, true, true).unwrap_err();
        assert!(
            error.contains("cannot attach") && error.contains("missing"),
            "{error}"
        );
    }

    #[test]
    fn an_image_is_known_by_its_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("picture");
        let read = |bytes: &[u8], takes: bool| {
            std::fs::write(&file, bytes).unwrap();
            let args = AttachmentArgs {
                file: Vec::new(),
                image: vec![file.clone()],
            };
            let capabilities = PromptCapabilities::new().with_image(takes);
            let blocks = Attachments::read(&args)?.blocks(&capabilities, true)?;
            Ok::<_, String>(serde_json::to_value(blocks).unwrap())
        };
        assert_eq!(
            read(b"\x89PNG", true),
            Ok(json!([{"type": "image", "data": "iVBORw==", "mimeType": "image/png"}]))
        );
        let error = read(b"\x89PNG", false).unwrap_err();
        assert!(error.contains("promptCapabilities.image"), "{error}");
        assert!(
            read(b"<svg/>", true)
                .unwrap_err()
                .contains("expected a PNG")
        );
    }
}
