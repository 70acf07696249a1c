//! Results of calls as content of the Agent Client Protocol.

use acp_sdk::v1::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, ImageContent, ResourceLink,
    TextContent, TextResourceContents,
};
use rmcp::model::{CallToolResult, ContentBlock as McpContent, Resource, ResourceContents};
use serde_json::Value;

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CallOutput {
    /// Text, images, audio, links and resources, in the server's order. Annotations and `_meta` are left
    /// out.
    pub content: Vec<ContentBlock>,
    /// Whether the tool reports an error, which [`content`](Self::content) describes.
    pub is_error: bool,
    /// The result as a value of [`McpTool::output_schema`](crate::McpTool::output_schema).
    pub structured: Option<Value>,
    /// Number of bytes that were left out because of
    /// [`Options::max_result_bytes`](crate::Options::max_result_bytes). A text is cut; other content and
    /// structured values are left out as a whole.
    pub omitted_bytes: usize,
}

impl CallOutput {
    pub(crate) fn new(result: CallToolResult, limit: usize) -> Self {
        let mut room = Room { limit, omitted: 0 };
        let content = result.content.into_iter();
        let content = content.filter_map(|block| room.block(block)).collect();
        let structured = result.structured_content;
        let structured = structured.filter(|value| room.fits(value.to_string().len()));
        Self {
            content,
            is_error: result.is_error.unwrap_or_default(),
            structured,
            omitted_bytes: room.omitted,
        }
    }

    /// Returns the result as a text for models. Content that is no text is described by a line; structured
    /// values replace absent content. The last line has the number of omitted bytes.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.content.iter().map(line).collect();
        if let (true, Some(structured)) = (lines.is_empty(), &self.structured) {
            lines.push(structured.to_string());
        }
        if self.omitted_bytes > 0 {
            lines.push(format!("[{} bytes left out]", self.omitted_bytes));
        }
        lines.join("\n")
    }
}

fn line(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image, {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[audio, {}]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(resource) => {
            use acp_sdk::v1::EmbeddedResourceResource as Contents;
            match &resource.resource {
                Contents::TextResourceContents(text) => text.text.clone(),
                Contents::BlobResourceContents(blob) => format!("[resource, {}]", blob.uri),
                _ => "[resource]".to_owned(),
            }
        }
        _ => "[unknown content]".to_owned(),
    }
}

/// The remaining capacity of a result.
struct Room {
    limit: usize,
    omitted: usize,
}

impl Room {
    /// Returns whether something has room, and takes it.
    fn fits(&mut self, bytes: usize) -> bool {
        let left = self.limit.checked_sub(bytes);
        match left {
            Some(left) => self.limit = left,
            None => self.omitted = self.omitted.saturating_add(bytes),
        }
        left.is_some()
    }

    /// Cuts a text to the room that is left.
    fn cut(&mut self, mut text: String) -> String {
        let mut kept = text.len().min(self.limit);
        while !text.is_char_boundary(kept) {
            kept -= 1;
        }
        self.omitted = self.omitted.saturating_add(text.len() - kept);
        self.limit -= kept;
        text.truncate(kept);
        text
    }

    fn block(&mut self, block: McpContent) -> Option<ContentBlock> {
        match block {
            McpContent::Text(text) => {
                let is_empty = text.text.is_empty();
                let text = self.cut(text.text);
                (is_empty || !text.is_empty()).then(|| TextContent::new(text).into())
            }
            McpContent::Image(image) => self
                .fits(image.data.len())
                .then(|| ImageContent::new(image.data, image.mime_type).into()),
            McpContent::Audio(audio) => self
                .fits(audio.data.len())
                .then(|| AudioContent::new(audio.data, audio.mime_type).into()),
            McpContent::ResourceLink(link) => {
                let description = link.description.as_deref().map_or(0, str::len);
                self.fits(link.uri.len() + link.name.len() + description)
                    .then(|| self::link(link).into())
            }
            McpContent::Resource(resource) => self.resource(resource.resource),
            _ => None,
        }
    }

    fn resource(&mut self, contents: ResourceContents) -> Option<ContentBlock> {
        match contents {
            ResourceContents::TextResourceContents {
                uri,
                mime_type,
                text,
                ..
            } => {
                let mut contents = TextResourceContents::new(self.cut(text), uri);
                contents.mime_type = mime_type;
                Some(EmbeddedResource::new(contents).into())
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => self.fits(blob.len()).then(|| {
                let mut contents = BlobResourceContents::new(blob, uri);
                contents.mime_type = mime_type;
                EmbeddedResource::new(contents).into()
            }),
            _ => None,
        }
    }
}

fn link(link: Resource) -> ResourceLink {
    let mut shown = ResourceLink::new(link.name, link.uri);
    shown.title = link.title;
    shown.description = link.description;
    shown.mime_type = link.mime_type;
    shown.size = link.size.and_then(|size| i64::try_from(size).ok());
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(content: Vec<McpContent>, limit: usize) -> CallOutput {
        let mut result = CallToolResult::default();
        result.content = content;
        CallOutput::new(result, limit)
    }

    #[test]
    fn content_of_every_kind_is_converted() {
        let link = Resource::new("file:///a.md", "a.md").with_size(3);
        let content = vec![
            McpContent::text("hello"),
            McpContent::image("aW1n", "image/png"),
            McpContent::audio("YXVk", "audio/wav"),
            McpContent::resource_link(link),
            McpContent::embedded_text("file:///b.md", "text of b"),
            McpContent::resource(ResourceContents::blob("Yg==", "file:///c")),
        ];
        let output = output(content, 1000);
        assert_eq!(output.content.len(), 6);
        assert_eq!(output.omitted_bytes, 0);
        let ContentBlock::ResourceLink(link) = &output.content[3] else {
            panic!("{:?}", output.content[3]);
        };
        assert_eq!(link.size, Some(3));
        let text = "hello\n[image, image/png]\n[audio, audio/wav]\n[a.md](file:///a.md)\ntext of b\n\
                    [resource, file:///c]";
        assert_eq!(output.text(), text);
    }

    #[test]
    fn what_exceeds_the_limit_is_left_out() {
        let content = vec![
            McpContent::text("täglich"),
            McpContent::image("aW1n", "image/png"),
            McpContent::text("é"),
        ];
        // The second byte of `ä` does not fit, nor does anything of what follows but one byte.
        let cut = output(content.clone(), 2);
        assert_eq!(cut.content, [TextContent::new("t").into()]);
        assert_eq!(cut.omitted_bytes, 7 + 4 + 2);
        assert_eq!(cut.text(), "t\n[13 bytes left out]");
        assert_eq!(output(content, 14).omitted_bytes, 0);
    }

    #[test]
    fn a_structured_value_stands_for_absent_content() {
        let mut result = CallToolResult::default();
        result.structured_content = Some(serde_json::json!({"a": 1}));
        let kept = CallOutput::new(result.clone(), 7);
        assert_eq!(kept.text(), r#"{"a":1}"#);
        let omitted = CallOutput::new(result, 6);
        assert_eq!((omitted.structured, omitted.omitted_bytes), (None, 7));
    }
}
