//! A sample of everything that content can be.

use acp_sdk::v1::{
    Annotations, AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource,
    EmbeddedResourceResource, ImageContent, ResourceLink, Role, TextContent, TextResourceContents,
};

/// A PNG of one transparent pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAAC0lEQVR42mNgAAIAAAUAAen63NgAAAAASUVORK5CYII=";

/// A WAV of four samples of silence: one channel, 8 bits, 8 kHz.
const SILENCE: &str = "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA";

/// One block of each kind; embedded resources come as text and as bytes.
pub(super) fn samples() -> Vec<ContentBlock> {
    let link = ResourceLink::new("example.txt", "file:///example.txt")
        .with_title("An example")
        .with_description("A file of one line")
        .with_mime_type("text/plain")
        .with_size(14i64)
        .with_annotations(annotations());
    let text = TextResourceContents::new("An example.\n", "file:///example.txt")
        .with_mime_type("text/plain");
    let blob = BlobResourceContents::new(PIXEL, "file:///pixel.png").with_mime_type("image/png");
    vec![
        ContentBlock::Text(TextContent::new("Some text.").with_annotations(annotations())),
        ContentBlock::Image(
            ImageContent::new(PIXEL, "image/png")
                .with_uri("file:///pixel.png")
                .with_annotations(annotations()),
        ),
        ContentBlock::Audio(
            AudioContent::new(SILENCE, "audio/wav").with_annotations(annotations()),
        ),
        ContentBlock::ResourceLink(link),
        embedded(EmbeddedResourceResource::TextResourceContents(text)),
        embedded(EmbeddedResourceResource::BlobResourceContents(blob)),
    ]
}

fn embedded(resource: EmbeddedResourceResource) -> ContentBlock {
    ContentBlock::Resource(EmbeddedResource::new(resource).with_annotations(annotations()))
}

/// Everything that can be said about a block.
fn annotations() -> Annotations {
    Annotations::new()
        .with_audience(vec![Role::User])
        .with_priority(0.5)
        .with_last_modified("2026-01-01T00:00:00Z")
}
