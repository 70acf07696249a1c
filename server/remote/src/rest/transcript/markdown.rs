//! A transcript as Markdown. What agents say is Markdown already and stays as it is.

use acp_sdk::text::is_control;
use acp_server::store::SessionRecord;

use super::parts::Part;

pub(super) fn head(title: &str, record: &SessionRecord) -> String {
    let [title, cwd, created] = [title, &record.cwd, &record.created_at].map(one_line);
    format!("# {title}\n\n{cwd}, {created}\n")
}

/// Writes a part, below a heading if it begins a message.
pub(super) fn part(part: Part, heading: Option<&str>, output: &mut String) {
    match part {
        Part::Said(_, text) => {
            if let Some(heading) = heading {
                output.push_str(&format!("\n\n## {heading}\n\n"));
            }
            output.push_str(&text);
        }
        Part::Note(note) => output.push_str(&format!("\n\n*{}*\n", one_line(&note))),
        Part::Block(title, text) => {
            let fence = fence(&text);
            let title = one_line(&title);
            output.push_str(&format!("\n\n*{title}*\n\n{fence}\n{text}\n{fence}\n"));
        }
    }
}

/// Returns a fence that is longer than any in the text.
fn fence(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(longest.max(2) + 1)
}

/// Returns a text as one line in which nothing is markup.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            control if is_control(control) => line.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '#' | '|' => {
                line.push('\\');
                line.push(character);
            }
            other => line.push(other),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::parts::{Writer, untimed};
    use super::*;

    #[test]
    fn a_text_cannot_leave_its_fence() {
        assert_eq!(fence("a"), "```");
        assert_eq!(fence("a\n````\nb"), "`````");
        let event = serde_json::json!({
            "sessionUpdate": "tool_call",
            "toolCallId": "c",
            "title": "<b>\n# x",
            "content": [{ "type": "content", "content": { "type": "text", "text": "```\n<i>" } }],
        });
        let mut output = String::new();
        Writer::new(part).event(untimed(&event.to_string()), &mut output);
        assert!(output.contains("*Tool call: \\<b\\> \\# x*"), "{output}");
        assert!(output.contains("````\n```\n<i>\n````"), "{output}");
    }

    #[test]
    fn chunks_of_a_message_are_one_text() {
        let chunk = |message: &str, text: &str| {
            let content = serde_json::json!({ "type": "text", "text": text });
            let update = serde_json::json!({
                "sessionUpdate": "agent_message_chunk",
                "content": content,
                "messageId": message,
            });
            update.to_string()
        };
        let (mut writer, mut output) = (Writer::new(part), String::new());
        for (message, text) in [("m", "one "), ("m", "text"), ("n", "another")] {
            writer.event(untimed(&chunk(message, text)), &mut output);
        }
        assert_eq!(output, "\n\n## Agent\n\none text\n\n## Agent\n\nanother");
    }
}
