//! Tool calls: a live line while one runs, and permanent lines afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use acp_sdk::conversation::{Conversation, Item, ItemId};
use acp_sdk::v1::{ContentBlock, Diff, ToolCall, ToolCallContent, ToolCallStatus};
use tokio::time::Instant;

use super::diff;
use super::style::{Colour, Face, Paint, clean, fit};
use acp_client::internal::as_diff;

/// Maximum number of tracked tool calls of a turn; further calls are shown when they begin.
const MOST_CALLS: usize = 1000;

/// Maximum number of displayed lines of a tool call's text.
const MOST_LINES: usize = 6;

/// The frames of the progress indicator.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Returns the current frame of the progress indicator; it changes every 100 ms.
pub(super) fn spinner(elapsed: Duration) -> &'static str {
    let frame = elapsed.as_millis() / 100 % FRAMES.len() as u128;
    FRAMES[usize::try_from(frame).unwrap_or_default()]
}

/// The display of the tool calls of a turn.
#[derive(Debug, Default)]
pub(super) struct Tools(BTreeMap<ItemId, Running>);

#[derive(Debug)]
struct Running {
    begun: Instant,
    /// Whether the call was shown completely.
    done: bool,
    /// Whether a permission request has shown its diffs.
    diffs_shown: bool,
}

impl Tools {
    /// Notes a change of a tool call. Returns its lines if it has ended.
    pub(super) fn changed(&mut self, item: &Item, width: usize, paint: Paint) -> Option<String> {
        use ToolCallStatus::{Completed, Failed};
        let call = item.as_tool_call()?;
        let running = self.running(item.id);
        let ended = matches!(call.status, Some(Completed | Failed));
        if !ended || running.done {
            return None;
        }
        running.done = true;
        Some(running.shown(call, width, paint))
    }

    fn running(&mut self, id: ItemId) -> &mut Running {
        if self.0.len() >= MOST_CALLS && !self.0.contains_key(&id) {
            self.0.clear();
        }
        self.0.entry(id).or_insert_with(|| Running {
            begun: Instant::now(),
            done: false,
            diffs_shown: false,
        })
    }

    /// Returns the calls that have not ended.
    fn open<'a>(
        &'a self,
        conversation: &'a Conversation,
    ) -> impl Iterator<Item = (&'a Running, &'a ToolCall)> {
        let open = self.0.iter().filter(|(_, running)| !running.done);
        open.filter_map(|(id, running)| Some((running, conversation.item(*id)?.as_tool_call()?)))
    }

    /// Returns the lines of running calls.
    pub(super) fn live(&self, conversation: &Conversation, width: usize) -> Vec<String> {
        let line = |(running, call): (&Running, &ToolCall)| {
            let elapsed = running.begun.elapsed();
            let tail = format!(" {}", seconds(elapsed));
            let title = fit(&title(call), width.saturating_sub(4 + tail.len()));
            format!("{} {title}{tail}", spinner(elapsed))
        };
        self.open(conversation).map(line).collect()
    }

    /// Returns the diffs of a call, for a permission request.
    pub(super) fn diffs(&mut self, item: &Item, width: usize, paint: Paint) -> Vec<String> {
        let running = self.running(item.id);
        let content = item.as_tool_call().map(|call| call.content.iter());
        let lines: Vec<_> = changes(content.into_iter().flatten(), width, paint).collect();
        running.diffs_shown |= !lines.is_empty();
        lines
    }

    /// Ends the turn. Returns the lines of the calls that have not ended.
    pub(super) fn end(
        &mut self,
        conversation: &Conversation,
        width: usize,
        paint: Paint,
    ) -> String {
        let open = self.open(conversation);
        let text = open.map(|(running, call)| running.shown(call, width, paint));
        let text = text.collect();
        self.0.clear();
        text
    }
}

fn title(call: &ToolCall) -> String {
    let title = match call.title.trim() {
        "" => call.tool_call_id.as_str(),
        title => title,
    };
    match &call.kind {
        Some(kind) => format!("{title} ({kind})"),
        None => title.to_owned(),
    }
}

impl Running {
    fn shown(&self, call: &ToolCall, width: usize, paint: Paint) -> String {
        let (sign, face) = match &call.status {
            Some(ToolCallStatus::Completed) => ("✓", Face::of(Colour::Green)),
            Some(ToolCallStatus::Failed) => ("✗", Face::of(Colour::Red)),
            _ => ("∙", Face::DIM),
        };
        let tail = match &call.status {
            Some(ToolCallStatus::Completed | ToolCallStatus::Failed) => {
                seconds(self.begun.elapsed())
            }
            _ => "not completed".to_owned(),
        };
        let title = fit(&title(call), width.saturating_sub(4 + tail.len()));
        let mut text = format!(
            "{} {title} {}\n",
            paint.text(face, sign),
            paint.text(Face::DIM, &tail)
        );
        for content in &call.content {
            let lines = match content {
                ToolCallContent::Content(content) => of_block(&content.content, width, paint),
                ToolCallContent::Diff(diff) if !self.diffs_shown => {
                    of_file(diff, false, width, paint)
                }
                _ => Vec::new(),
            };
            for line in lines {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    }
}

/// Returns the whole changes in the content of a call.
pub(super) fn changes<'a>(
    content: impl Iterator<Item = &'a ToolCallContent>,
    width: usize,
    paint: Paint,
) -> impl Iterator<Item = String> {
    let diffs = content.filter_map(as_diff);
    diffs.flat_map(move |diff| of_file(diff, true, width, paint))
}

fn of_file(diff: &Diff, whole: bool, width: usize, paint: Paint) -> Vec<String> {
    let old = diff.old_text.as_deref();
    diff::lines(&diff.path, old, &diff.new_text, whole, width, paint)
}

/// Returns the first lines of a text.
fn of_block(block: &ContentBlock, width: usize, paint: Paint) -> Vec<String> {
    let ContentBlock::Text(text) = block else {
        return vec![paint.text(Face::DIM, &format!("  {}", kind(block)))];
    };
    let text = clean(text.text.trim_matches('\n'));
    // Fences around code are omitted.
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("```"))
        .collect();
    let left_out = lines.len().saturating_sub(MOST_LINES);
    let mut shown: Vec<_> = lines
        .iter()
        .take(MOST_LINES)
        .map(|line| format!("  {}", fit(line, width.saturating_sub(3))))
        .map(|line| paint.text(Face::DIM, line.trim_end()))
        .collect();
    if left_out > 0 {
        shown.push(paint.text(Face::DIM, &format!("  … {left_out} more lines")));
    }
    shown
}

/// Returns a word for content that is not text.
pub(super) fn kind(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Image(_) => "[image]".to_owned(),
        ContentBlock::Audio(_) => "[audio]".to_owned(),
        ContentBlock::ResourceLink(link) => format!("[{}]", fit(&link.uri, 200)),
        ContentBlock::Resource(_) => "[embedded resource]".to_owned(),
        _ => "[content of another kind]".to_owned(),
    }
}

/// Formats a duration: tenths of seconds, later seconds, then minutes.
pub(super) fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{Content, SessionUpdate, ToolCallUpdate, ToolKind};

    use super::*;

    const PLAIN: Paint = Paint { colours: false };

    #[derive(Default)]
    struct Shown {
        conversation: Conversation,
        tools: Tools,
    }

    impl Shown {
        fn apply(&mut self, update: impl Into<SessionUpdate>, width: usize) -> Option<String> {
            let changes = self.conversation.apply(&update.into());
            let id = changes.into_iter().next()?.item()?;
            let item = self.conversation.item(id)?;
            self.tools.changed(item, width, PLAIN)
        }

        fn live(&self) -> Vec<String> {
            self.tools.live(&self.conversation, 80)
        }

        fn end(&mut self) -> String {
            self.tools.end(&self.conversation, 80, PLAIN)
        }
    }

    fn text(text: &str) -> ToolCallContent {
        ToolCallContent::Content(Content::new(ContentBlock::from(text)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_live_and_then_stays() {
        let mut tools = Shown::default();
        let call = ToolCall::new("1", "Edit\n\u{1b}[2Jx").with_kind(ToolKind::Edit);
        assert_eq!(tools.apply(call, 80), None);
        assert_eq!(tools.live(), ["⠋ Edit x (edit) 0.0 s"]);
        tokio::time::advance(Duration::from_millis(1200)).await;
        assert_eq!(tools.live(), ["⠹ Edit x (edit) 1.2 s"]);
        let done = ToolCallUpdate::new("1")
            .with_status(ToolCallStatus::Completed)
            .with_content(vec![
                text("```\none\u{1b}]0;x\u{7}\n```"),
                ToolCallContent::Diff(Diff::new("/a", "new\n").with_old_text("old\n")),
            ]);
        let shown = tools.apply(done.clone(), 80).unwrap();
        assert_eq!(
            shown,
            "✓ Edit x (edit) 1.2 s\n  one\n  /a +1 -1\n    - old\n    + new\n"
        );
        assert_eq!(tools.apply(done.clone(), 80), None, "once is enough");
        assert_eq!(tools.live(), Vec::<String>::new());
        assert_eq!(tools.end(), "");
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_not_ended_stays_as_well() {
        let mut tools = Shown::default();
        let _ = tools.apply(ToolCall::new("1", "Wait"), 80);
        assert_eq!(tools.end(), "∙ Wait not completed\n");
    }

    #[tokio::test(start_paused = true)]
    async fn lines_fit_and_are_few() {
        let mut tools = Shown::default();
        let call = ToolCall::new("1", "日本語".repeat(50))
            .with_status(ToolCallStatus::Failed)
            .with_content(vec![text(&"x".repeat(200)), text(&"y\n".repeat(9))]);
        for width in [20, 80, 200] {
            let shown = tools.apply(call.clone(), width);
            tools.end();
            let shown = shown.unwrap();
            assert!(shown.ends_with("  … 3 more lines\n"), "{shown}");
            for line in shown.lines() {
                assert!(
                    unicode_width::UnicodeWidthStr::width(line) < width,
                    "{line}"
                );
            }
        }
    }
}
