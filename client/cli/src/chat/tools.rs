//! Tool calls: a live line while one runs, and permanent lines afterwards.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use acp_sdk::conversation::{Conversation, Item, ItemId, is_final};
use acp_sdk::v1::{ContentBlock, Diff, ToolCall, ToolCallContent, ToolCallStatus};
use tokio::time::Instant;

use super::diff;
use super::style::{Colour, Face, Paint, clean, fit, more, wrap};
use acp_client::PermissionRequest;
use acp_client::internal::as_diff;

/// Maximum number of tracked tool calls of a turn; further calls are shown when they begin.
const MOST_CALLS: usize = 1000;

/// Maximum number of cut tool calls that can be shown as a whole.
const MOST_CUT: usize = 200;

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
pub(super) struct Tools {
    calls: BTreeMap<ItemId, Running>,
    /// The calls whose output was cut, the latest ones.
    cut: VecDeque<ItemId>,
    /// How many were cut before these.
    earlier: usize,
}

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
        let call = item.as_tool_call()?;
        let hint = self.hint();
        let running = self.running(item.id);
        if !is_final(call.status.as_ref()) || running.done {
            return None;
        }
        running.done = true;
        let shown = running.shown(call, &hint, width, paint);
        self.keep_cut(item.id, &shown, &hint);
        Some(shown)
    }

    /// Returns the end of a cut line, which names the command that shows the whole.
    fn hint(&self) -> String {
        format!(" · /output {}", self.earlier + self.cut.len() + 1)
    }

    fn keep_cut(&mut self, id: ItemId, shown: &str, hint: &str) {
        if !shown.contains(hint) {
            return;
        }
        if self.cut.len() >= MOST_CUT {
            self.cut.pop_front();
            self.earlier += 1;
        }
        self.cut.push_back(id);
    }

    /// Returns the call with this number of those that were cut; without a number, the last one.
    pub(super) fn cut(&self, number: Option<usize>) -> Option<ItemId> {
        match number {
            None => self.cut.back().copied(),
            Some(number) => {
                let place = number.checked_sub(self.earlier + 1)?;
                self.cut.get(place).copied()
            }
        }
    }

    fn running(&mut self, id: ItemId) -> &mut Running {
        if self.calls.len() >= MOST_CALLS && !self.calls.contains_key(&id) {
            self.calls.clear();
        }
        self.calls.entry(id).or_insert_with(|| Running {
            begun: Instant::now(),
            done: false,
            diffs_shown: false,
        })
    }

    /// Returns the calls that have not ended.
    fn open<'a>(
        &'a self,
        conversation: &'a Conversation,
    ) -> impl Iterator<Item = (ItemId, &'a Running, &'a ToolCall)> {
        let open = self.calls.iter().filter(|(_, running)| !running.done);
        open.filter_map(|(id, running)| {
            Some((*id, running, conversation.item(*id)?.as_tool_call()?))
        })
    }

    /// Returns the lines of running calls.
    pub(super) fn live(&self, conversation: &Conversation, width: usize) -> Vec<String> {
        let line = |(_, running, call): (ItemId, &Running, &ToolCall)| {
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
        let mut text = String::new();
        let open: Vec<_> = self.open(conversation).map(|(id, ..)| id).collect();
        for id in open {
            let call = conversation.item(id).and_then(Item::as_tool_call);
            if let (Some(running), Some(call)) = (self.calls.get(&id), call) {
                let hint = self.hint();
                let shown = running.shown(call, &hint, width, paint);
                self.keep_cut(id, &shown, &hint);
                text += &shown;
            }
        }
        self.calls.clear();
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
    /// Returns the title and the content of a call. Lines that stand for others end in `hint`.
    fn shown(&self, call: &ToolCall, hint: &str, width: usize, paint: Paint) -> String {
        let (sign, face) = match &call.status {
            Some(ToolCallStatus::Completed) => ("✓", Face::of(Colour::Green)),
            Some(ToolCallStatus::Failed) => ("✗", Face::of(Colour::Red)),
            _ => ("∙", Face::DIM),
        };
        let tail = match &call.status {
            Some(ToolCallStatus::Completed | ToolCallStatus::Failed) => {
                seconds(self.begun.elapsed())
            }
            Some(status) if is_final(Some(status)) => status.to_string(),
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
                ToolCallContent::Content(content) => {
                    of_block(&content.content, Some(hint), width, paint)
                }
                ToolCallContent::Diff(diff) if !self.diffs_shown => {
                    of_file(diff, Some(hint), width, paint)
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

/// Returns the whole changes in the request itself.
pub(super) fn requested(question: &PermissionRequest, width: usize, paint: Paint) -> Vec<String> {
    let content = question.request.tool_call.content.iter().flatten();
    changes(content, width, paint).collect()
}

/// Returns the whole changes in the content of a call.
fn changes<'a>(
    content: impl Iterator<Item = &'a ToolCallContent>,
    width: usize,
    paint: Paint,
) -> impl Iterator<Item = String> {
    let diffs = content.filter_map(as_diff);
    diffs.flat_map(move |diff| of_file(diff, None, width, paint))
}

fn of_file(diff: &Diff, cut: Option<&str>, width: usize, paint: Paint) -> Vec<String> {
    let old = diff.old_text.as_deref();
    diff::lines(&diff.path, old, &diff.new_text, cut, width, paint)
}

/// Returns the title and the whole content of a call.
pub(super) fn whole(call: &ToolCall, width: usize, paint: Paint) -> String {
    let title = fit(&title(call), width.saturating_sub(1));
    let mut lines = vec![paint.text(Face::BOLD, &title)];
    for content in &call.content {
        lines.extend(match content {
            ToolCallContent::Content(content) => of_block(&content.content, None, width, paint),
            ToolCallContent::Diff(diff) => of_file(diff, None, width, paint),
            _ => Vec::new(),
        });
    }
    lines.join("\n") + "\n"
}

/// Returns the lines of a text: the first ones and a line that ends in `cut`, or all of them.
fn of_block(block: &ContentBlock, cut: Option<&str>, width: usize, paint: Paint) -> Vec<String> {
    let ContentBlock::Text(text) = block else {
        return vec![paint.text(Face::DIM, &format!("  {}", kind(block)))];
    };
    let text = clean(text.text.trim_matches('\n'));
    // Fences around code are omitted.
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("```"))
        .collect();
    let Some(hint) = cut else {
        let lines = lines.iter().flat_map(|line| match line.trim() {
            "" => vec![String::new()],
            _ => wrap(line, width.saturating_sub(3)),
        });
        let lines = lines.map(|line| paint.text(Face::DIM, format!("  {line}").trim_end()));
        return lines.collect();
    };
    let left_out = lines.len().saturating_sub(MOST_LINES);
    let mut shown: Vec<_> = lines
        .iter()
        .take(MOST_LINES)
        .map(|line| format!("  {}", fit(line, width.saturating_sub(3))))
        .map(|line| paint.text(Face::DIM, line.trim_end()))
        .collect();
    if left_out > 0 {
        shown.push(paint.text(Face::DIM, &format!("  {}", more(left_out, hint, width))));
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
        for (number, width) in [(1, 20), (2, 80), (3, 200)] {
            let shown = tools.apply(call.clone(), width);
            tools.end();
            let shown = shown.unwrap();
            let more = if width > 20 { " 3 more lines" } else { "" };
            let last = format!("  …{more} · /output {number}\n");
            assert!(shown.ends_with(&last), "{shown}");
            for line in shown.lines() {
                assert!(
                    unicode_width::UnicodeWidthStr::width(line) < width,
                    "{line}"
                );
            }
        }
    }
}
