//! A request of the kit as `genai` has it.

use acp_agent::model::{Message, Request};
use acp_sdk::v1::{ContentBlock, EmbeddedResourceResource};
use genai::chat::{
    ChatMessage, ChatRequest, ContentPart, MessageContent, Tool, ToolCall, ToolResponse,
};

pub(crate) fn chat(request: &Request) -> ChatRequest {
    let mut chat = ChatRequest::default();
    if !request.instructions.is_empty() {
        chat = chat.with_system(request.instructions.as_str());
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            Tool::new(tool.name.as_str())
                .with_description(tool.description.as_str())
                .with_schema(tool.input_schema.clone())
        });
        chat = chat.with_tools(tools.collect::<Vec<_>>());
    }
    for message in &request.messages {
        match message {
            Message::User { content } => {
                let parts: Vec<_> = content.iter().filter_map(part).collect();
                chat = chat.append_message(ChatMessage::user(MessageContent::from_parts(parts)));
            }
            Message::Agent {
                thought,
                text,
                tool_uses,
            } => {
                let mut parts = Vec::new();
                // Without a signature the provider does not take it back.
                if let Some(thought) = thought
                    && let Some(signature) = &thought.signature
                {
                    parts.push(ContentPart::ThoughtSignature(signature.clone()));
                    if !thought.text.is_empty() {
                        parts.push(ContentPart::ReasoningContent(thought.text.clone()));
                    }
                }
                if !text.is_empty() {
                    parts.push(ContentPart::from_text(text));
                }
                parts.extend(tool_uses.iter().map(|used| {
                    ContentPart::ToolCall(ToolCall {
                        call_id: used.id.clone(),
                        fn_name: used.name.clone(),
                        fn_arguments: used.arguments.clone(),
                        thought_signatures: None,
                    })
                }));
                chat =
                    chat.append_message(ChatMessage::assistant(MessageContent::from_parts(parts)));
            }
            Message::Tools { results } => {
                let mut images = Vec::new();
                for result in results {
                    let text = match result.output.is_error {
                        true => format!("Error: {}", result.output.text()),
                        false => result.output.text(),
                    };
                    let response = ToolResponse::new(result.id.as_str(), text)
                        .with_fn_name(result.name.as_str());
                    chat = chat.append_message(response);
                    let more = result.output.content.iter();
                    images.extend(more.filter(|block| !is_text(block)).filter_map(part));
                }
                // No provider takes them as a part of every result.
                if !images.is_empty() {
                    chat =
                        chat.append_message(ChatMessage::user(MessageContent::from_parts(images)));
                }
            }
        }
    }
    chat
}

fn is_text(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text(_))
}

/// A block of content; `None` for one that no provider takes.
fn part(block: &ContentBlock) -> Option<ContentPart> {
    match block {
        ContentBlock::Text(text) => Some(ContentPart::from_text(text.text.as_str())),
        ContentBlock::Image(image) => Some(ContentPart::from_binary_base64(
            image.mime_type.as_str(),
            image.data.as_str(),
            None,
        )),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                let text = format!(
                    "<resource uri=\"{}\">\n{}\n</resource>",
                    text.uri, text.text
                );
                Some(ContentPart::from_text(text))
            }
            _ => None,
        },
        ContentBlock::ResourceLink(link) => {
            let text = format!("<resource uri=\"{}\" name=\"{}\"/>", link.uri, link.name);
            Some(ContentPart::from_text(text))
        }
        _ => None,
    }
}
