//! A turn: events, keys, requests and timers.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::ask::{Asked, Next};
use super::background::next_of;
use super::browse::browse;
use super::input::{Input, Keyboard};
use super::running::{Ending, Relay, Running};
use super::screen::{Live, Screen};
use super::style::{Colour, Face, fit};
use super::talk::Talk;
use super::{Failure, interrupt};
use crate::output::Output;
use crate::stop::Stop;
use acp_client::{Prompt, SessionEvent};

/// Interval at which live lines are redrawn.
const TICK: Duration = Duration::from_millis(100);

/// Maximum number of prompts queued during a turn; further ones stay in the line.
const MOST_QUEUED: usize = 10;

/// Maximum size of input typed during a turn, in bytes.
const MOST_TYPED: usize = 1 << 20;

impl Talk<'_> {
    /// Sends a prompt and shows its turn, also to the command that waits for its `output`.
    pub(super) async fn turn(
        &mut self,
        prompt: Prompt,
        output: Option<Output>,
        keyboard: &mut Keyboard,
        questions: &mut mpsc::Receiver<Asked>,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let relay = output.map(|output| {
            let agent = self.slot.as_ref().map(|client| client.agent_info().clone());
            Relay::begin(output, &self.session, self.cwd.clone(), agent)
        });
        let turn = match self.session.prompt(prompt).await {
            Ok(turn) => turn,
            Err(error) => {
                self.complain(&error).await?;
                if let Some(relay) = relay {
                    relay.end(Err(error)).await;
                }
                return Ok(());
            }
        };
        self.view.begin();
        let (ending, id) = (Ending::default(), self.session.id());
        let is_named = self.opening.named() == Some(id);
        let cancel = ending.cancel.clone();
        let control = self.opening.control.begin(id, cancel, is_named);
        let running = Running {
            turn,
            begun: Instant::now(),
            ending,
            relay,
            control,
            cancelling: None,
        };
        self.follow(running, keyboard, questions, stop).await
    }

    /// Shows a turn until its end, or until the user changes to another session.
    pub(super) async fn follow(
        &mut self,
        running: Running,
        keyboard: &mut Keyboard,
        questions: &mut mpsc::Receiver<Asked>,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let Running {
            mut turn,
            begun,
            mut ending,
            relay,
            control,
            ..
        } = running;
        self.screen.hide_cursor(true);
        keyboard.read_keys();
        let mut clock = interval(TICK);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut question = self.held.take().filter(Asked::is_open);
        if let Some(asked) = &mut question {
            let shown = self.question(asked);
            self.screen.print(&shown);
        }
        let mut events_end = false;
        let outcome = loop {
            tokio::select! {
                biased;
                Some(input) = keyboard.inputs.recv() => {
                    question = self.input(input, question, &mut ending, stop)?;
                }
                event = self.events.next(), if !events_end => match event {
                    Some(event) => self.show(&event),
                    None => events_end = true,
                },
                (place, next) = next_of(&mut self.others) => {
                    if let Some(news) = self.happens(place, next, true).await {
                        self.screen.print(&news);
                    }
                }
                Some(mut asked) = questions.recv(), if question.is_none() => {
                    let shown = self.question(&mut asked);
                    self.screen.print(&shown);
                    if !self.args.no_bell {
                        self.screen.ring();
                    }
                    question = Some(asked);
                }
                Some((text, steered)) = ending.steering.next() => self.steered(text, steered),
                Some(line) = self.lines.recv() => {
                    let shown = self.view.aside(&line);
                    self.screen.print(&shown);
                }
                // All events before the end of the turn were shown.
                outcome = turn.finish() => break outcome,
                // By `acp cancel`; keys are seen at once.
                () = ending.cancel.cancelled(), if !ending.announced => {}
                _ = clock.tick() => {
                    question = question.filter(Asked::is_open);
                }
            }
            if ending.cancel.is_cancelled() && !ending.announced {
                ending.announced = true;
                turn.cancel();
            }
            if let Some(number) = ending.leave.take() {
                let cancelling = None;
                let running = Running {
                    turn,
                    begun,
                    ending,
                    relay,
                    control,
                    cancelling,
                };
                return self.leave(running, number).await;
            }
            self.draw(begun.elapsed(), question.as_ref(), &ending);
            // A blocked terminal must not keep Ctrl-C from cancelling.
            loop {
                tokio::select! {
                    biased;
                    written = self.screen.flush() => {
                        written?;
                        match &mut question {
                            Some(asked) if !asked.shown => asked.shown = true,
                            _ => break,
                        }
                        // Keys answer the request from now on, so it must be displayed.
                        self.draw(begun.elapsed(), question.as_ref(), &ending);
                    }
                    Some(input) = keyboard.inputs.recv() => {
                        question = self.input(input, question, &mut ending, stop)?;
                        if ending.cancel.is_cancelled() {
                            turn.cancel();
                        }
                    }
                }
            }
        };
        drop(control);
        self.end_steering(std::mem::take(&mut ending.steering))
            .await?;
        while let Some(event) = self.events.next_ready() {
            self.show(&event);
        }
        self.screen.end_live();
        let width = Screen::width();
        let held = ending.cancel.is_cancelled() || outcome.is_err();
        match &outcome {
            Ok(outcome) => {
                let shown = self.view.outcome(outcome, width);
                self.screen.print(&shown);
            }
            Err(error) => {
                let shown = self.view.end(width);
                self.screen.print(&shown);
                self.complain(error).await?;
            }
        }
        self.screen.flush().await?;
        if let Some(relay) = relay {
            relay.end(outcome).await;
        }
        self.after_turn().await?;
        if held && !self.queued.is_empty() {
            self.queued.push_back(std::mem::take(&mut self.typed));
            self.typed = self.queued.drain(..).collect::<Vec<_>>().join("\n");
            let line = "what was typed for later was not sent; it is in the line again";
            self.say(Colour::Yellow, line).await?;
        }
        self.view.begin();
        self.lost |= events_end;
        Ok(())
    }

    fn show(&mut self, event: &SessionEvent) {
        let width = Screen::width();
        let shown = self.view.event(event, width);
        self.screen.print(&shown);
        // Buffered output is written immediately.
        for _ in 0..1000 {
            let Some(event) = self.events.next_ready() else {
                break;
            };
            let shown = self.view.event(&event, width);
            self.screen.print(&shown);
        }
    }

    fn draw(&mut self, elapsed: Duration, question: Option<&Asked>, ending: &Ending) {
        let (width, height) = (Screen::width(), Screen::height());
        let paint = self.paint;
        let mut lines = Vec::new();
        if let Some(asked) = question {
            let keys = match asked.shown {
                true => asked.lines(width, height),
                false => Vec::new(),
            };
            lines.extend(
                keys.iter()
                    .map(|line| Live::new(paint, Face::default(), line)),
            );
        } else if ending.cancel.is_cancelled() {
            let line = "cancelling … Ctrl-C ends acp";
            lines.push(Live::new(paint, Face::of(Colour::Yellow), line));
        } else {
            let live = self.view.live(elapsed, width, height);
            lines.extend(live.iter().map(|line| Live::new(paint, Face::DIM, line)));
        }
        for line in ending.steering.waiting() {
            let line = format!("  to the turn: {}", fit(line, width.saturating_sub(17)));
            lines.push(Live::new(paint, Face::DIM, &line));
        }
        if let Some(line) = self.running_elsewhere() {
            let line = format!("  {line}");
            lines.push(Live::new(paint, Face::DIM, &fit(&line, width)));
        }
        for line in &self.queued {
            let line = format!("  next: {}", fit(line, width.saturating_sub(10)));
            lines.push(Live::new(paint, Face::DIM, &line));
        }
        if !self.typed.is_empty() {
            let line = format!("› {}", fit(&self.typed, width.saturating_sub(4)));
            lines.push(Live::new(paint, Face::default(), &line));
        }
        let rows: usize = lines.iter().map(|line| line.rows(width)).sum();
        let mut all = self.view.preview(width, height.saturating_sub(rows + 1));
        all.append(&mut lines);
        self.screen.set_live(all);
    }

    fn input(
        &mut self,
        input: Input,
        mut question: Option<Asked>,
        ending: &mut Ending,
        stop: &Stop,
    ) -> Result<Option<Asked>, Failure> {
        let key = match input {
            Input::Key(key) => key,
            Input::Paste(text) => {
                if let Some(asked) = &mut question {
                    if asked.shown {
                        asked.paste(&text);
                    }
                } else if self.typed.len() + text.len() <= MOST_TYPED {
                    self.typed.push_str(&text.replace('\r', "\n"));
                }
                return Ok(question);
            }
            Input::Failed(reason) => return Err(Failure::Terminal(reason)),
            _ => return Ok(question),
        };
        if is_interrupt(key) {
            match ending.cancel.is_cancelled() {
                true => interrupt(stop),
                false => ending.cancel.cancel(),
            }
            return Ok(question);
        }
        if let Some(asked) = question {
            if !asked.shown {
                return Ok(Some(asked));
            }
            return Ok(match asked.key(key, Screen::width()) {
                Next::Open(asked) => Some(asked),
                Next::More(asked, lines) => {
                    self.screen.print(&(lines.join("\n") + "\n"));
                    Some(asked)
                }
                Next::Answered(lines) => {
                    for line in lines {
                        let shown = self.view.dim(&line);
                        self.screen.print(&shown);
                    }
                    None
                }
                Next::Browse(url) => {
                    let line = match browse(&url) {
                        Ok(()) => "  agreed; the browser is to open it".to_owned(),
                        Err(error) => format!(
                            "  agreed, but no browser was started: {error}. Open it yourself"
                        ),
                    };
                    let shown = self.view.dim(&line);
                    self.screen.print(&shown);
                    None
                }
            });
        }
        self.type_ahead(key, ending, stop);
        Ok(None)
    }

    fn type_ahead(&mut self, key: KeyEvent, ending: &mut Ending, stop: &Stop) {
        let plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Char(letter) if plain && self.typed.len() < MOST_TYPED => {
                self.typed.push(letter);
            }
            KeyCode::Backspace => {
                self.typed.pop();
            }
            KeyCode::Esc if key.modifiers.is_empty() => ending.cancel.cancel(),
            KeyCode::Char('o') if key.modifiers == KeyModifiers::CONTROL => {
                let shown = self.view.output("", Screen::width());
                let shown = self.view.block(&shown);
                self.screen.print(&shown);
            }
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => self.typed.clear(),
            KeyCode::Enter => match self.typed.trim() {
                "" => self.typed.clear(),
                "/cancel" => {
                    self.typed.clear();
                    ending.cancel.cancel();
                }
                "/quit" | "/exit" => interrupt(stop),
                _ if self.queued.len() + ending.steering.waiting().count() >= MOST_QUEUED => {}
                typed => {
                    let number = typed.strip_prefix("/switch ");
                    let number = number.and_then(|number| number.trim().parse::<usize>().ok());
                    let input = typed.strip_prefix("/steer ").map(str::to_owned);
                    let typed = std::mem::take(&mut self.typed);
                    match (input, number) {
                        (Some(text), _) => self.steer(text.trim().to_owned(), &mut ending.steering),
                        (None, Some(number)) => {
                            ending.leave = self.may_leave(number, ending).then_some(number);
                        }
                        (None, None) => self.queued.push_back(typed),
                    }
                }
            },
            _ => {}
        }
    }
}

fn is_interrupt(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('c'))
}
