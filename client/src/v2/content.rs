//! Content blocks.

use acp_sdk::{v1, v2};

use super::{raw_variant, reread};

/// Converts a content block from version 2. A block that is invalid in version 1 becomes a block of
/// unknown type.
pub(super) fn from_v2(block: v2::ContentBlock) -> v1::ContentBlock {
    match block {
        // By far the most frequent kind.
        v2::ContentBlock::Text(text) if text.annotations.is_none() => {
            let mut next = v1::TextContent::new(text.text);
            next.meta = text.meta;
            next.into()
        }
        v2::ContentBlock::ResourceLink(mut link) => {
            link.size = link.size.filter(|size| i64::try_from(*size).is_ok());
            other(&v2::ContentBlock::ResourceLink(link))
        }
        v2::ContentBlock::Unknown(unknown) => v1::ContentBlock::Unknown(unknown),
        block => other(&block),
    }
}

fn other(block: &v2::ContentBlock) -> v1::ContentBlock {
    reread(block).unwrap_or_else(|| v1::ContentBlock::Unknown(raw_variant(tag(block), block)))
}

fn tag(block: &v2::ContentBlock) -> &str {
    match block {
        v2::ContentBlock::Text(_) => "text",
        v2::ContentBlock::Image(_) => "image",
        v2::ContentBlock::Audio(_) => "audio",
        v2::ContentBlock::ResourceLink(_) => "resource_link",
        v2::ContentBlock::Resource(_) => "resource",
        v2::ContentBlock::Unknown(unknown) => unknown.tag(),
        _ => "",
    }
}

pub(super) fn all_from_v2(blocks: Vec<v2::ContentBlock>) -> Vec<v1::ContentBlock> {
    blocks.into_iter().map(from_v2).collect()
}

/// Converts a content block to version 2; `None` if it is invalid there.
pub(super) fn to_v2(block: &v1::ContentBlock) -> Option<v2::ContentBlock> {
    match block {
        v1::ContentBlock::Text(text) if text.annotations.is_none() => {
            let mut next = v2::TextContent::new(text.text.as_str());
            next.meta.clone_from(&text.meta);
            Some(next.into())
        }
        v1::ContentBlock::Unknown(unknown) => Some(v2::ContentBlock::Unknown(unknown.clone())),
        other => reread(other),
    }
}
