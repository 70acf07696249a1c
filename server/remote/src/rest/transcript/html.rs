//! A transcript as a page without scripts and without anything from elsewhere.

use acp_sdk::text::is_control;
use acp_server::store::SessionRecord;

use super::parts::{Part, Speaker};

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.3rem}h2{font-size:.85rem;margin:1.5rem 0 .2rem;opacity:.7}\
.said,pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0}\
.thought{opacity:.7;font-style:italic}\
pre{border-left:3px solid #8888;padding:.3rem .8rem;margin:.3rem 0}\
.note{opacity:.7;margin:.6rem 0}";

pub(super) const TAIL: &str = "\n</main>\n</body>\n</html>\n";

pub(super) fn head(title: &str, record: &SessionRecord) -> String {
    let [title, cwd, created] = [title, &record.cwd, &record.created_at].map(escape);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <h1>{title}</h1>\n<p class=\"note\">{cwd}, {created}</p>\n</header>\n<main>"
    )
}

/// Writes a part, below a heading if it begins a message.
pub(super) fn part(part: Part, heading: Option<&str>, output: &mut String) {
    match part {
        Part::Said(speaker, text) => {
            // Each chunk is an element of its own: a page of the log may end after any.
            if let Some(heading) = heading {
                output.push_str(&format!("\n<h2>{}</h2>", escape(heading)));
            }
            let class = match speaker {
                Speaker::Thought => "said thought",
                _ => "said",
            };
            output.push_str(&format!("<span class=\"{class}\">{}</span>", escape(&text)));
        }
        Part::Note(note) => {
            output.push_str(&format!("\n<p class=\"note\">{}</p>", escape(&note)));
        }
        Part::Block(title, text) => {
            let [title, text] = [title, text].map(|text| escape(&text));
            output.push_str(&format!(
                "\n<p class=\"note\">{title}</p>\n<pre>{text}</pre>"
            ));
        }
    }
}

/// Returns a text as HTML shows it, in elements and in attributes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // HTML has no form of them, and they could change what a terminal shows.
            '\n' | '\t' => escaped.push(character),
            control if is_control(control) => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::parts::{Writer, untimed};
    use super::*;

    #[test]
    fn nothing_that_is_said_becomes_markup() {
        let said = "</span><script>alert(1)</script>&\"'\u{0}";
        let event = serde_json::json!({
            "sessionUpdate": "agent_message_chunk",
            "content": { "type": "text", "text": said },
        });
        let mut output = String::new();
        Writer::new(part).event(untimed(&event.to_string()), &mut output);
        assert!(output.contains(
            "&lt;/span&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;\u{fffd}</span>"
        ));
        let mut record = SessionRecord::new("s", "/<b>");
        record.title = Some("<i>".to_owned());
        let head = head("</title><script>", &record);
        assert!(
            head.contains("<title>&lt;/title&gt;&lt;script&gt;</title>")
                && head.contains("/&lt;b&gt;")
        );
    }
}
