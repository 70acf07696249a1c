//! The conversation: prompts, commands, and events between turns.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use acp_sdk::v1::{ContentBlock, SessionId};
use tokio::sync::mpsc;

use super::ask::{Asked, Keys};
use super::background::{Open, next_of};
use super::commands::Typed;
use super::input::{Input, Keyboard};
use super::inputrc;
use super::pick::{Row, pick, stored};
use super::running::Running;
use super::screen::Screen;
use super::style::{Colour, Face, Paint, clean, fit};
use super::undo::Undo;
use super::view::View;
use super::{Failure, interrupt};
use crate::args::ChatArgs;
use crate::connect::{connect, directory};
use crate::control::Prompted;
use crate::kept::Kept;
use crate::notes::Notes;
use crate::opening::{Opening, continues};
use crate::opening_failure::OpeningFailure;
use crate::stop::Stop;
use acp_client::{Client, ClientBuilder, Session};
use acp_client::{Error, Events};

/// Time in which a second Ctrl-C ends `acp`.
const TWICE: Duration = Duration::from_secs(3);

/// A session and its agent.
pub(super) struct Talk<'a> {
    pub(super) args: &'a ChatArgs,
    pub(super) ask: Keys,
    pub(super) notes: &'a Notes,
    /// The lines for standard error.
    pub(super) lines: mpsc::Receiver<String>,
    pub(super) slot: &'a mut Option<Client>,
    pub(super) cwd: PathBuf,
    pub(super) opening: Opening,
    /// The name of the agent, for the status.
    pub(super) agent: String,
    pub(super) session: Session,
    pub(super) events: Events,
    /// The number of the session, for `/switch`.
    pub(super) number: usize,
    /// The lock of its name, if it was continued by its name.
    pub(super) name: Option<Kept>,
    /// The turn that runs in the session, unless it is being shown.
    pub(super) running: Option<Running>,
    /// A question of a session in the background, until a turn is shown.
    pub(super) held: Option<Asked>,
    /// The open sessions in the background.
    pub(super) others: Vec<Open>,
    /// How many sessions were opened.
    pub(super) opened: usize,
    /// The sessions that were listed last.
    pub(super) listed: Vec<Row>,
    /// Whether the connection to the agent has ended.
    pub(super) lost: bool,
    pub(super) paint: Paint,
    pub(super) screen: Screen,
    pub(super) view: View,
    pub(super) undo: Undo,
    /// Input typed during a turn: complete lines and the start of one.
    pub(super) queued: VecDeque<String>,
    pub(super) typed: String,
    /// Images for the next prompt.
    pub(super) images: Vec<ContentBlock>,
    /// Prompts of other commands, and the next one of them.
    prompts: mpsc::Receiver<Prompted>,
    prompted: Option<Prompted>,
}

/// The next step after a line.
pub(super) enum Next {
    Goes,
    Quit,
}

impl<'a> Talk<'a> {
    /// Starts the agent and opens a session.
    pub(super) async fn begin(
        args: &'a ChatArgs,
        ask: Keys,
        notes: &'a Notes,
        paint: Paint,
        slot: &'a mut Option<Client>,
    ) -> Result<(Self, Keyboard), Failure> {
        let cwd = directory(&args.setup)?;
        let mut opening = Opening::prepare(&args.setup, &cwd)?;
        let client = connect(
            &args.setup,
            &cwd,
            Some(ask.clone()),
            notes,
            slot,
            true,
            elicits(&ask),
        )
        .await?;
        let lines = notes.divert();
        let mut screen = Screen::new();
        let editing = args.editing_mode.unwrap_or_else(inputrc::editing);
        let mut keyboard = Keyboard::start(super::history(), cwd.clone(), paint.colours, editing);
        if args.choose_session {
            let agent = args.setup.agent.identity();
            let rows = stored(client, &cwd, &agent).await?;
            if rows.is_empty() {
                return Err(OpeningFailure::Session(NONE_STORED.to_owned()).into());
            }
            let chosen = pick(&rows, &mut keyboard, &mut screen, paint).await?;
            let row = chosen.and_then(|index| rows.get(index));
            let row = row.ok_or_else(|| OpeningFailure::Session(NOT_CHOSEN.to_owned()))?;
            opening.resume(SessionId::from(row.id.as_str()));
        }
        let known = opening.known().cloned();
        let (session, events) = opening.open(client, &cwd, true).await?;
        let info = client.agent_info().agent_info.as_ref();
        let name = info.map_or_else(
            || "The agent".to_owned(),
            |info| {
                let title = info.title.as_deref().unwrap_or(&info.name);
                format!("{} {}", fit(title, 60), fit(&info.version, 20))
            },
        );
        let width = Screen::width();
        let agent = info.map_or("", |info| info.title.as_deref().unwrap_or(&info.name));
        let agent = agent.to_owned();
        let head = paint.text(Face::BOLD, &fit(&name, width / 2));
        let place = fit(&cwd.to_string_lossy(), width.saturating_sub(4));
        let help = format!("{place}\n/help lists commands and keys.\n\n");
        screen.print(&format!(
            "{head}\n{}",
            paint.text(Face::DIM, help.trim_end())
        ));
        screen.print("\n\n");
        let mut view = View::new(paint);
        if let Some(id) = known {
            screen.print(&view.dim(&continues(client, &id)));
        }
        let talk = Self {
            undo: Undo::new(args, &cwd),
            prompts: opening.control.prompts(),
            prompted: None,
            args,
            ask,
            notes,
            lines,
            slot,
            cwd,
            opening,
            agent,
            session,
            events,
            number: 1,
            name: None,
            running: None,
            held: None,
            others: Vec::new(),
            opened: 1,
            listed: Vec::new(),
            lost: false,
            paint,
            screen,
            view,
            queued: VecDeque::new(),
            typed: String::new(),
            images: Vec::new(),
        };
        Ok((talk, keyboard))
    }

    /// Runs the conversation until the user ends it.
    pub(super) async fn converse(
        &mut self,
        mut keyboard: Keyboard,
        mut questions: mpsc::Receiver<Asked>,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let mut abandoned: Option<Instant> = None;
        loop {
            if let Some(running) = self.running.take() {
                self.before_turn().await?;
                self.follow(running, &mut keyboard, &mut questions, stop)
                    .await?;
                continue;
            }
            if self.queued.is_empty()
                && !self.named_runs()
                && let Some(prompted) = self
                    .prompted
                    .take()
                    .or_else(|| self.prompts.try_recv().ok())
            {
                self.prompted(prompted, &mut keyboard, &mut questions, stop)
                    .await?;
                self.screen.flush().await?;
                continue;
            }
            let line = match self.queued.pop_front() {
                Some(line) => {
                    let sign = self.paint.text(Face::of(Colour::Green), "› ");
                    let shown = clean(&line).replace('\n', "\n  ");
                    self.screen.print(&format!("{sign}{shown}\n"));
                    Input::Line(line)
                }
                None => self.line(&mut keyboard, &mut questions).await?,
            };
            let line = match line {
                Input::Line(line) => line,
                Input::Abandoned => {
                    let last = abandoned.replace(Instant::now());
                    // Later it clears another line.
                    if last.is_some_and(|last| last.elapsed() < TWICE) {
                        interrupt(stop);
                        return Ok(());
                    }
                    let hint = "Ctrl-C again ends acp";
                    self.screen
                        .print(&format!("{}\n", self.paint.text(Face::DIM, hint)));
                    continue;
                }
                Input::End => return Ok(()),
                Input::Failed(reason) => return Err(Failure::Terminal(reason)),
                Input::NextMode => {
                    self.next_mode().await?;
                    continue;
                }
                Input::Output => {
                    self.last_output();
                    continue;
                }
                Input::Image => {
                    let shown = self.image("").await;
                    self.screen.print(&format!("\n{shown}"));
                    continue;
                }
                Input::Edit(text) => {
                    self.edit(text, &mut keyboard).await?;
                    continue;
                }
                Input::Interrupted(text) => {
                    self.typed = text;
                    // The line is still on the terminal.
                    self.screen.print("\r\u{1b}[J");
                    continue;
                }
                Input::Key(_) | Input::Paste(_) | Input::Edited(_) => continue,
            };
            abandoned = None;
            self.view.begin();
            let settings = self.session.settings();
            match Typed::parse(&line, &settings) {
                Typed::Nothing => {}
                Typed::Prompt(prompt) => {
                    self.screen.print("\n");
                    if self.reconnect().await? {
                        self.before_turn().await?;
                        let content = self.content(&prompt).await;
                        self.turn(content.into(), None, &mut keyboard, &mut questions, stop)
                            .await?;
                    }
                }
                command => match self.command(command, &settings, &mut keyboard).await? {
                    Next::Goes => {}
                    Next::Quit => return Ok(()),
                },
            }
            self.screen.flush().await?;
        }
    }

    /// Reads a line and shows events above it meanwhile.
    async fn line(
        &mut self,
        keyboard: &mut Keyboard,
        questions: &mut mpsc::Receiver<Asked>,
    ) -> Result<Input, Failure> {
        // Queued events are shown before the prompt.
        while let Some(event) = self.events.next_ready() {
            let shown = self.view.event(&event, Screen::width());
            self.screen.print(&shown);
        }
        let shown = self.view.end(Screen::width());
        self.screen.print(&shown);
        self.screen.hide_cursor(false);
        self.screen.flush().await?;
        self.show_settings(keyboard);
        keyboard.read_line(std::mem::take(&mut self.typed));
        // Chunks of text are joined to lines.
        let mut shown = String::new();
        let mut unfinished = false;
        loop {
            tokio::select! {
                input = keyboard.inputs.recv() => {
                    let input = match input {
                        // Typed before the editor started.
                        Some(Input::Key(_) | Input::Paste(_)) => continue,
                        input => input.unwrap_or(Input::End),
                    };
                    shown += &self.view.end(Screen::width());
                    self.screen.print(&shown);
                    return Ok(input);
                }
                event = self.events.next(), if !self.lost => match event {
                    Some(event) => {
                        shown += &self.view.event(&event, Screen::width());
                        unfinished = true;
                        // The mark of a user's message ends in no line feed.
                        if shown.ends_with('\n') {
                            keyboard.show(&std::mem::take(&mut shown));
                        }
                        self.show_settings(keyboard);
                    }
                    None => {
                        self.lost = true;
                        shown += &self.view.note(Colour::Yellow, LOST);
                        keyboard.show(&std::mem::take(&mut shown));
                    }
                },
                (place, next) = next_of(&mut self.others) => {
                    if let Some(news) = self.happens(place, next, false).await {
                        shown += &news;
                        keyboard.show(&std::mem::take(&mut shown));
                        self.show_settings(keyboard);
                    }
                    if self.prompted.is_some() && !self.named_runs() {
                        keyboard.interrupt();
                    }
                }
                Some(prompted) = self.prompts.recv(), if self.prompted.is_none() => {
                    self.prompted = Some(prompted);
                    keyboard.interrupt();
                }
                Some(line) = self.lines.recv() => {
                    shown += &self.view.aside(&line);
                    keyboard.show(&std::mem::take(&mut shown));
                }
                () = tokio::time::sleep(QUIET), if unfinished => {
                    unfinished = false;
                    shown += &self.view.end(Screen::width());
                    keyboard.show(&std::mem::take(&mut shown));
                }
                Some(asked) = questions.recv(), if self.held.as_ref().is_none_or(|held| !held.is_open()) => {
                    // Dropping a request rejects it.
                    let line = self.hold(asked);
                    if line.is_some() && !self.args.no_bell {
                        shown.push('\u{7}');
                    }
                    shown += &self.view.note(Colour::Yellow, line.as_deref().unwrap_or(REFUSED));
                    keyboard.show(&std::mem::take(&mut shown));
                }
            }
        }
    }

    /// Writes a line of acp.
    pub(super) async fn say(&mut self, colour: Colour, line: &str) -> Result<(), Failure> {
        let line = self.view.note(colour, line);
        self.screen.print(&line);
        Ok(self.screen.flush().await?)
    }

    pub(super) async fn complain(&mut self, error: &Error) -> Result<(), Failure> {
        for line in crate::exit::explained(error) {
            self.say(Colour::Red, &line).await?;
        }
        self.screen.print("\n");
        Ok(())
    }
}

/// Shows elicitations in the conversation.
pub(super) fn elicits(keys: &Keys) -> impl Fn(ClientBuilder) -> ClientBuilder + use<> {
    let keys = keys.clone();
    move |builder| builder.elicitation(keys.clone())
}

/// The time without new text after which an incomplete line is shown above the editor.
const QUIET: std::time::Duration = std::time::Duration::from_millis(200);

const NONE_STORED: &str =
    "the agent has no stored session of this directory: leave out --choose-session";

const NOT_CHOSEN: &str = "no session was chosen; without --choose-session, acp begins a new one";

const REFUSED: &str = "the agent asked something outside of a turn, and was refused; only a rule of \
    --rules FILE can allow it then";

const LOST: &str = "the connection to the agent was lost; the next prompt connects again";
