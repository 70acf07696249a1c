//! A sample of everything that content can be.

use acp_sdk::v1::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource,
    ImageContent, ResourceLink, TextContent, TextResourceContents,
};

/// A PNG of one transparent pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAAC0lEQVR42mNgAAIAAAUAAen63NgAAAAASUVORK5CYII=";

/// A WAV of four samples of silence: one channel, 8 bits, 8 kHz.
const SILENCE: &str = "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA";

/// One block of each kind; embedded resources come as text and as bytes.
pub(super) fn samples() -> Vec<ContentBlock> {
    let link = ResourceLink::new("example.txt", "file:///example.txt")
        .with_mime_type("text/plain")
        .with_size(14i64);
    let text = TextResourceContents::new("An example.\n", "file:///example.txt")
        .with_mime_type("text/plain");
    let blob = BlobResourceContents::new(PIXEL, "file:///pixel.png").with_mime_type("image/png");
    vec![
        ContentBlock::Text(TextContent::new("Some text.")),
        ContentBlock::Image(ImageContent::new(PIXEL, "image/png")),
        ContentBlock::Audio(AudioContent::new(SILENCE, "audio/wav")),
        ContentBlock::ResourceLink(link),
        embedded(EmbeddedResourceResource::TextResourceContents(text)),
        embedded(EmbeddedResourceResource::BlobResourceContents(blob)),
    ]
}

fn embedded(resource: EmbeddedResourceResource) -> ContentBlock {
    ContentBlock::Resource(EmbeddedResource::new(resource))
}
