//! Content blocks.

use acp_sdk::{v1, v2};

use super::reread;

/// Converts a content block to version 2.
///
/// A priority outside of 0 to 1 is moved to the nearest bound, and a negative size is left out:
/// version 2 does not allow them. `None` for a block that version 2 refuses.
pub(super) fn to_v2(block: &v1::ContentBlock) -> Option<v2::ContentBlock> {
    Some(match block {
        v1::ContentBlock::Text(text) => {
            let mut next = v2::TextContent::new(text.text.as_str());
            next.annotations = text.annotations.as_ref().map(annotations_to_v2);
            next.meta.clone_from(&text.meta);
            next.into()
        }
        v1::ContentBlock::Image(image) => {
            let mut next = v2::ImageContent::new(image.mime_type.as_str(), image.data.as_str());
            next.uri.clone_from(&image.uri);
            next.annotations = image.annotations.as_ref().map(annotations_to_v2);
            next.meta.clone_from(&image.meta);
            next.into()
        }
        v1::ContentBlock::Audio(audio) => {
            let mut next = v2::AudioContent::new(audio.mime_type.as_str(), audio.data.as_str());
            next.annotations = audio.annotations.as_ref().map(annotations_to_v2);
            next.meta.clone_from(&audio.meta);
            next.into()
        }
        v1::ContentBlock::ResourceLink(link) => {
            let mut next = v2::ResourceLink::new(link.name.as_str(), link.uri.as_str());
            next.title.clone_from(&link.title);
            next.description.clone_from(&link.description);
            next.mime_type = link.mime_type.as_deref().map(Into::into);
            next.size = link.size.and_then(|size| u64::try_from(size).ok());
            next.annotations = link.annotations.as_ref().map(annotations_to_v2);
            next.meta.clone_from(&link.meta);
            next.into()
        }
        v1::ContentBlock::Resource(resource) => {
            let mut next = v2::EmbeddedResource::new(contents_to_v2(&resource.resource)?);
            next.annotations = resource.annotations.as_ref().map(annotations_to_v2);
            next.meta.clone_from(&resource.meta);
            next.into()
        }
        v1::ContentBlock::Unknown(unknown) => v2::ContentBlock::Unknown(unknown.clone()),
        other => reread(other)?,
    })
}

/// Converts content blocks to version 2, without those that version 2 refuses.
pub(super) fn all_to_v2(blocks: &[v1::ContentBlock]) -> Vec<v2::ContentBlock> {
    blocks.iter().filter_map(to_v2).collect()
}

/// Converts a content block to the form of the server.
///
/// The icons of a resource link are lost, and its size if it exceeds 2⁶³ - 1: version 1 has no
/// place for them. `None` for a block that version 1 refuses.
pub(super) fn from_v2(block: &v2::ContentBlock) -> Option<v1::ContentBlock> {
    Some(match block {
        v2::ContentBlock::Text(text) => {
            let mut next = v1::TextContent::new(text.text.as_str());
            next.annotations = text.annotations.as_ref().map(annotations_from_v2);
            next.meta.clone_from(&text.meta);
            next.into()
        }
        v2::ContentBlock::Image(image) => {
            let mut next = v1::ImageContent::new(image.data.as_str(), image.mime_type.as_str());
            next.uri.clone_from(&image.uri);
            next.annotations = image.annotations.as_ref().map(annotations_from_v2);
            next.meta.clone_from(&image.meta);
            next.into()
        }
        v2::ContentBlock::Audio(audio) => {
            let mut next = v1::AudioContent::new(audio.data.as_str(), audio.mime_type.as_str());
            next.annotations = audio.annotations.as_ref().map(annotations_from_v2);
            next.meta.clone_from(&audio.meta);
            next.into()
        }
        v2::ContentBlock::ResourceLink(link) => {
            let mut next = v1::ResourceLink::new(link.name.as_str(), link.uri.as_str());
            next.title.clone_from(&link.title);
            next.description.clone_from(&link.description);
            next.mime_type = link.mime_type.as_ref().map(|kind| kind.as_str().to_owned());
            next.size = link.size.and_then(|size| i64::try_from(size).ok());
            next.annotations = link.annotations.as_ref().map(annotations_from_v2);
            next.meta.clone_from(&link.meta);
            next.into()
        }
        v2::ContentBlock::Resource(resource) => {
            let mut next = v1::EmbeddedResource::new(contents_from_v2(&resource.resource)?);
            next.annotations = resource.annotations.as_ref().map(annotations_from_v2);
            next.meta.clone_from(&resource.meta);
            next.into()
        }
        v2::ContentBlock::Unknown(unknown) => v1::ContentBlock::Unknown(unknown.clone()),
        other => reread(other)?,
    })
}

fn annotations_to_v2(annotations: &v1::Annotations) -> v2::Annotations {
    let mut next = v2::Annotations::new();
    let audience = annotations.audience.as_ref();
    let roles = audience.map(|roles| roles.iter().map(|role| role.as_str().into()).collect());
    next.audience = roles;
    next.last_modified.clone_from(&annotations.last_modified);
    next.priority = annotations
        .priority
        .map(|priority| priority.clamp(0.0, 1.0));
    next.meta.clone_from(&annotations.meta);
    next
}

fn annotations_from_v2(annotations: &v2::Annotations) -> v1::Annotations {
    let mut next = v1::Annotations::new();
    let audience = annotations.audience.as_ref();
    let roles = audience.map(|roles| roles.iter().map(|role| role.as_str().into()).collect());
    next.audience = roles;
    next.last_modified.clone_from(&annotations.last_modified);
    next.priority = annotations.priority;
    next.meta.clone_from(&annotations.meta);
    next
}

fn contents_to_v2(contents: &v1::EmbeddedResourceResource) -> Option<v2::EmbeddedResourceResource> {
    Some(match contents {
        v1::EmbeddedResourceResource::TextResourceContents(text) => {
            let mut next = v2::TextResourceContents::new(text.text.as_str(), text.uri.as_str());
            next.mime_type = text.mime_type.as_deref().map(Into::into);
            next.meta.clone_from(&text.meta);
            next.into()
        }
        v1::EmbeddedResourceResource::BlobResourceContents(blob) => {
            let mut next = v2::BlobResourceContents::new(blob.blob.as_str(), blob.uri.as_str());
            next.mime_type = blob.mime_type.as_deref().map(Into::into);
            next.meta.clone_from(&blob.meta);
            next.into()
        }
        other => reread(other)?,
    })
}

fn contents_from_v2(
    contents: &v2::EmbeddedResourceResource,
) -> Option<v1::EmbeddedResourceResource> {
    Some(match contents {
        v2::EmbeddedResourceResource::TextResourceContents(text) => {
            let mut next = v1::TextResourceContents::new(text.text.as_str(), text.uri.as_str());
            next.mime_type = text.mime_type.as_ref().map(|kind| kind.as_str().to_owned());
            next.meta.clone_from(&text.meta);
            next.into()
        }
        v2::EmbeddedResourceResource::BlobResourceContents(blob) => {
            let mut next = v1::BlobResourceContents::new(blob.blob.as_str(), blob.uri.as_str());
            next.mime_type = blob.mime_type.as_ref().map(|kind| kind.as_str().to_owned());
            next.meta.clone_from(&blob.meta);
            next.into()
        }
        other => reread(other)?,
    })
}
