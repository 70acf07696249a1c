//! Chooses a session from a list: typing filters it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::Failure;
use super::input::{Input, Keyboard};
use super::screen::{Live, Screen};
use super::style::{Face, Paint, fit};
use crate::kept;
use acp_client::{Client, Error};
use acp_sdk::v1::SessionInfo;
use unicode_width::UnicodeWidthStr as _;

/// Maximum number of stored sessions that are requested.
const MOST_LISTED: usize = 500;

/// Maximum number of lines of the list that are shown at once.
const MOST_SHOWN: usize = 15;

/// Maximum number of characters of the filter.
const LONGEST_FILTER: usize = 200;

/// Columns of a time, such as `2026-11-26 20:51`.
const TIME: usize = 16;

/// Columns of an id, of which the beginning is shown.
const ID: usize = 13;

/// An entry of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) number: usize,
    pub(super) title: String,
    pub(super) time: String,
    pub(super) id: String,
}

impl Row {
    fn fits(&self, filter: &str) -> bool {
        let text = format!("{} {} {}", self.title, self.time, self.id).to_lowercase();
        let filter = filter.to_lowercase();
        filter.split_whitespace().all(|word| text.contains(word))
    }

    /// Returns the line: with the id from 70 columns on, with the time from 40 columns on.
    pub(super) fn line(&self, width: usize) -> String {
        let time = if width >= 40 { TIME + 2 } else { 0 };
        let id = if width >= 70 { ID + 2 } else { 0 };
        let columns = width.saturating_sub(8 + time + id);
        let title = match self.title.trim() {
            "" => &self.id,
            title => title,
        };
        let title = fit(title, columns);
        let space = " ".repeat(columns.saturating_sub(title.width()));
        let mut line = format!("{:>3}  {title}{space}", self.number);
        if time > 0 {
            let time: String = self.time.replacen('T', " ", 1).chars().take(TIME).collect();
            line += &format!("  {:<TIME$}", fit(&time, TIME));
        }
        if id > 0 {
            line += &format!("  {}", fit(&self.id, ID));
        }
        line.trim_end().to_owned()
    }
}

/// Returns the agent's sessions of a directory, the latest first.
pub(super) async fn stored(
    client: &Client,
    cwd: &std::path::Path,
    agent: &str,
) -> Result<Vec<Row>, Error> {
    let (mut list, mut found) = (client.sessions(Some(cwd))?, Vec::<SessionInfo>::new());
    while found.len() < MOST_LISTED
        && let Some(session) = list.next().await?
    {
        found.push(session);
    }
    // Times are of the form of RFC 3339; the order of equal ones is that of the agent.
    found.sort_by(|one, other| other.updated_at.cmp(&one.updated_at));
    let names = kept::names(agent);
    let rows = (1..).zip(found).map(|(number, session)| {
        let names = names.get(&session.session_id);
        let name = names.map_or_else(String::new, |names| format!("[{}] ", names.join(", ")));
        let title = session.title.unwrap_or_default();
        Row {
            number,
            title: format!("{name}{title}"),
            time: session.updated_at.unwrap_or_default(),
            id: session.session_id.to_string(),
        }
    });
    Ok(rows.collect())
}

/// The list, what was typed, and the selected line.
#[derive(Debug)]
pub(super) struct Pick<'a> {
    rows: &'a [Row],
    filter: String,
    at: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Open,
    Chosen(usize),
    Left,
}

impl<'a> Pick<'a> {
    fn new(rows: &'a [Row]) -> Self {
        Self {
            rows,
            filter: String::new(),
            at: 0,
        }
    }

    fn fitting(&self) -> Vec<usize> {
        let rows = self.rows.iter().enumerate();
        let fitting = rows.filter(|(_, row)| row.fits(&self.filter));
        fitting.map(|(index, _)| index).collect()
    }

    fn key(&mut self, key: KeyEvent) -> Step {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = self.fitting().len().saturating_sub(1);
        match key.code {
            KeyCode::Char('c' | 'd') if control => return Step::Left,
            KeyCode::Esc => return Step::Left,
            KeyCode::Enter => {
                let chosen = self.fitting().get(self.at).copied();
                return chosen.map_or(Step::Open, Step::Chosen);
            }
            KeyCode::Up => self.at = self.at.saturating_sub(1),
            KeyCode::Down => self.at = (self.at + 1).min(last),
            KeyCode::PageUp => self.at = self.at.saturating_sub(MOST_SHOWN),
            KeyCode::PageDown => self.at = (self.at + MOST_SHOWN).min(last),
            KeyCode::Char('u') if control => self.set_filter(String::new()),
            KeyCode::Backspace => {
                let mut filter = std::mem::take(&mut self.filter);
                filter.pop();
                self.set_filter(filter);
            }
            KeyCode::Char(letter) if !control => self.paste(&letter.to_string()),
            _ => {}
        }
        Step::Open
    }

    fn paste(&mut self, text: &str) {
        let typed = self.filter.chars().chain(text.chars());
        let filter = typed.filter(|letter| !letter.is_control());
        self.set_filter(filter.take(LONGEST_FILTER).collect());
    }

    fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.at = 0;
    }

    /// Returns the lines: the filter, the entries around the selected one, and the keys.
    fn lines(&self, width: usize, height: usize) -> Vec<(bool, String)> {
        let fitting = self.fitting();
        let room = height.saturating_sub(4).clamp(1, MOST_SHOWN);
        let first = (self.at + 1).saturating_sub(room);
        let mut lines = vec![(false, fit(&format!("› {}", self.filter), width - 1))];
        for (place, index) in fitting.iter().enumerate().skip(first).take(room) {
            let selected = place == self.at;
            let sign = if selected { "▸" } else { " " };
            let line = format!("{sign}{}", self.rows[*index].line(width));
            lines.push((selected, line));
        }
        let counted = format!("{} of {}", fitting.len(), self.rows.len());
        let keys = format!("  {counted} · typing filters · Up, Down · Enter chooses · Esc leaves");
        lines.push((false, fit(&keys, width - 1)));
        lines
    }
}

/// Lets the user choose; `None` if they leave the list.
///
/// # Errors
///
/// Fails when the terminal cannot be used.
pub(super) async fn pick(
    rows: &[Row],
    keyboard: &mut Keyboard,
    screen: &mut Screen,
    paint: Paint,
) -> Result<Option<usize>, Failure> {
    let mut pick = Pick::new(rows);
    keyboard.read_keys();
    screen.hide_cursor(true);
    let chosen = loop {
        let lines = pick.lines(Screen::width(), Screen::height());
        let live = lines.iter().map(|(selected, line)| {
            let face = if *selected {
                Face::BOLD
            } else {
                Face::default()
            };
            Live::new(paint, face, line)
        });
        screen.set_live(live.collect());
        screen.flush().await?;
        let step = match keyboard.inputs.recv().await {
            Some(Input::Key(key)) => pick.key(key),
            Some(Input::Paste(text)) => {
                pick.paste(&text);
                Step::Open
            }
            Some(Input::Failed(reason)) => return Err(Failure::Terminal(reason)),
            Some(_) => Step::Open,
            None => Step::Left,
        };
        match step {
            Step::Open => {}
            Step::Chosen(index) => break Some(index),
            Step::Left => break None,
        }
    };
    screen.end_live();
    screen.hide_cursor(false);
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let row = |number, title: &str, id: &str| Row {
            number,
            title: title.to_owned(),
            time: "2026-11-26T20:51:07Z".to_owned(),
            id: id.to_owned(),
        };
        vec![
            row(1, "Raise the limit\u{1b}[2J", "a-1"),
            row(2, "日本語", "b-2"),
            row(3, "", "c-3"),
        ]
    }

    fn press(pick: &mut Pick<'_>, code: KeyCode) -> Step {
        pick.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn typing_filters_and_keys_select() {
        let rows = rows();
        let mut pick = Pick::new(&rows);
        assert_eq!(press(&mut pick, KeyCode::Up), Step::Open);
        assert_eq!(press(&mut pick, KeyCode::Down), Step::Open);
        assert_eq!(press(&mut pick, KeyCode::Enter), Step::Chosen(1));
        for letter in "THE rai".chars() {
            press(&mut pick, KeyCode::Char(letter));
        }
        assert_eq!(press(&mut pick, KeyCode::Enter), Step::Chosen(0));
        press(&mut pick, KeyCode::Char('x'));
        assert_eq!(press(&mut pick, KeyCode::Down), Step::Open);
        assert_eq!(press(&mut pick, KeyCode::Enter), Step::Open, "nothing fits");
        press(&mut pick, KeyCode::Backspace);
        assert_eq!(press(&mut pick, KeyCode::Enter), Step::Chosen(0));
        assert_eq!(press(&mut pick, KeyCode::Esc), Step::Left);
        pick.paste("\u{15}c-3\n");
        assert_eq!(pick.fitting(), Vec::<usize>::new());
        pick.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        pick.paste("c-3\n");
        assert_eq!(press(&mut pick, KeyCode::Enter), Step::Chosen(2));
    }

    #[test]
    fn lines_fit_and_show_the_selected_entry() {
        let rows = rows();
        let mut pick = Pick::new(&rows);
        for width in [20, 40, 80, 200] {
            for (_, line) in pick.lines(width, 24) {
                assert!(line.width() < width, "{width}: {line}");
            }
        }
        let at_80 = pick.lines(80, 24);
        assert!(
            at_80[1].1.starts_with("▸  1  Raise the limit "),
            "{at_80:?}"
        );
        assert!(at_80[1].1.ends_with("2026-11-26 20:51  a-1"), "{at_80:?}");
        assert!(at_80[3].1.starts_with("   3  c-3 "), "{at_80:?}");
        press(&mut pick, KeyCode::Down);
        press(&mut pick, KeyCode::Down);
        let low = pick.lines(40, 5);
        assert_eq!(low.len(), 3);
        assert!(low[1].0 && low[1].1.contains("c-3"), "{low:?}");
    }
}
