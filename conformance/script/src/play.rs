//! Goes through the steps of a script.

use std::thread;
use std::time::Instant;

use acp_conformance::pattern::{Bindings, Mismatch, matches, substitute, within_text};
use acp_conformance::wire::shorten;
use serde_json::Value;

use super::failure::{Failure, Reason};
use super::file::{Action, Bytes, Manner, Script, Step};
use super::wire::{Event, Wire};

/// How many of the messages that came are kept for a report.
const KEPT: usize = 64;

/// How much of a message a report repeats, in characters.
const EXCERPT: usize = 200;

/// The result of a script that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Played {
    /// All steps are done.
    Through,
    /// A step wants this process to exit at once with this code.
    Die(u8),
}

/// Plays a script from its first to its last step.
///
/// # Errors
/// The step that failed; those after it are not played.
pub fn play(script: &Script, wire: &mut Wire) -> Result<Played, Box<Failure>> {
    let mut player = Player {
        wire,
        bindings: script.variables.clone(),
        came: Vec::new(),
    };
    for (number, step) in (1..).zip(&script.steps) {
        player.came.clear();
        if let Action::Die(code) = step.action {
            return Ok(Played::Die(code));
        }
        player.step(step).map_err(|reason| {
            Box::new(Failure {
                file: script.file.clone(),
                line: step.line,
                step: number,
                title: step.title.clone(),
                reason,
                came: std::mem::take(&mut player.came),
            })
        })?;
    }
    Ok(Played::Through)
}

struct Player<'a> {
    wire: &'a mut Wire,
    bindings: Bindings,
    /// What came during this step.
    came: Vec<String>,
}

impl Player<'_> {
    fn step(&mut self, step: &Step) -> Result<(), Reason> {
        let deadline = Instant::now() + step.within;
        match &step.action {
            Action::Send(message, manner) => self.send(*manner, deadline, |bindings| {
                let mut message = message.clone();
                substitute(&mut message, bindings).map_err(Reason::Unbound)?;
                Ok(format!("{message}\n").into_bytes())
            }),
            Action::Raw(bytes, manner) => self.send(*manner, deadline, |bindings| {
                Ok(match bytes {
                    Bytes::Text(text) => within_text(text, bindings).into_bytes(),
                    Bytes::Hex(bytes) => bytes.clone(),
                })
            }),
            Action::Expect { pattern, next } => self.expect(pattern, *next, step, deadline),
            Action::Silence(time) => match self.wire.next(Instant::now() + *time) {
                None => Ok(()),
                Some(Event::End) => Err(Reason::Ended),
                Some(event) => {
                    self.keep(&event);
                    Err(Reason::NotSilent)
                }
            },
            Action::Delay(time) => {
                thread::sleep(*time);
                Ok(())
            }
            Action::Close => {
                self.wire.close();
                Ok(())
            }
            Action::End => loop {
                match self.wire.next(deadline) {
                    Some(Event::End) => return Ok(()),
                    Some(event) => self.keep(&event),
                    None => return Err(Reason::NotEnded(step.within)),
                }
            },
            Action::Exit(expected) => match self.wire.exit(deadline).map_err(Reason::Wire)? {
                Some(came) if came == *expected => Ok(()),
                Some(came) => Err(Reason::Exit {
                    expected: *expected,
                    came,
                }),
                None => Err(Reason::Running(step.within)),
            },
            Action::Kill(signal) => self.wire.kill(*signal).map_err(Reason::Wire),
            // Taken care of by the caller.
            Action::Die(_) => Ok(()),
        }
    }

    fn send(
        &mut self,
        manner: Manner,
        deadline: Instant,
        bytes: impl Fn(&Bindings) -> Result<Vec<u8>, Reason>,
    ) -> Result<(), Reason> {
        for count in 0..manner.repeat {
            self.bindings.insert("n".into(), count.into());
            let bytes = bytes(&self.bindings)?;
            let Some((size, pause)) = manner.split else {
                self.wire.send(bytes, deadline).map_err(Reason::Wire)?;
                continue;
            };
            for (index, piece) in bytes.chunks(size).enumerate() {
                if index > 0 {
                    thread::sleep(pause);
                }
                let sent = self.wire.send(piece.to_vec(), deadline);
                sent.map_err(Reason::Wire)?;
            }
        }
        self.bindings.remove("n");
        Ok(())
    }

    fn expect(
        &mut self,
        pattern: &Value,
        next: bool,
        step: &Step,
        deadline: Instant,
    ) -> Result<(), Reason> {
        let mut nearest: Option<(usize, Mismatch)> = None;
        loop {
            let event = match self.wire.next(deadline) {
                Some(Event::End) => return Err(Reason::Ended),
                Some(event) => event,
                None => {
                    let nearest = nearest.map(|(_, mismatch)| mismatch);
                    return Err(Reason::NoMatch(step.within, nearest));
                }
            };
            self.keep(&event);
            let value = match &event {
                Event::Line(line) => serde_json::from_slice::<Value>(line),
                Event::TooLong(_) | Event::End => continue,
            };
            let value = match value {
                Ok(value) => value,
                Err(error) if next => return Err(Reason::NotJson(error.to_string())),
                Err(_) => continue,
            };
            let mut bindings = self.bindings.clone();
            match matches(pattern, &value, &mut bindings) {
                Ok(()) => {
                    self.bindings = bindings;
                    return Ok(());
                }
                Err(mismatch) if next => return Err(Reason::NotNext(mismatch)),
                Err(mismatch) => {
                    let likeness = likeness(pattern, &value, &self.bindings);
                    if likeness > nearest.as_ref().map_or(0, |(likeness, _)| *likeness) {
                        nearest = Some((likeness, mismatch));
                    }
                }
            }
        }
    }

    fn keep(&mut self, event: &Event) {
        if self.came.len() == KEPT {
            self.came.remove(0);
        }
        self.came.push(match event {
            Event::Line(line) => shorten(&String::from_utf8_lossy(line), EXCERPT),
            Event::TooLong(length) => format!("a line of {length} bytes"),
            Event::End => "the end".to_owned(),
        });
    }
}

/// How many of the pattern's own members a message has as they should be; only a
/// message with some of them is worth comparing.
fn likeness(pattern: &Value, value: &Value, bindings: &Bindings) -> usize {
    let Some(wanted) = pattern.as_object() else {
        return 0;
    };
    wanted
        .iter()
        .filter(|(name, wanted)| {
            value
                .get(name)
                .is_some_and(|value| matches(wanted, value, &mut bindings.clone()).is_ok())
        })
        .count()
}
