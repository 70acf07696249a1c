//! What a client has been sent of a session, held against the log.
//!
//! A client does not see when the server sets its cursor back: it knows that it has asked for it, and
//! the answer. In between, more than one place in the log is possible, and each update must be the next
//! one of at least one of them.

use std::sync::Arc;

use serde_json::Value;

use crate::client::Version;
use crate::neutral;
use crate::record::Entry;

type Log = [Arc<Entry>];

/// What a client has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// `session/load`.
    Load,
    /// `_acp-sdk/session/resume`.
    After(u64),
    /// `session/resume`.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Live,
    Replayed,
    Loaded,
}

/// Where a client may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// It was sent this event and those before, as far as they are for it.
    after: u64,
    phase: Phase,
}

/// Whether an event is for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Hidden,
    Maybe,
    Visible,
}

pub struct View {
    name: String,
    version: Version,
    places: Vec<Place>,
    /// Where a replay begins that the client has asked for, unless it has begun.
    start: Option<Place>,
    join: Option<Join>,
    /// The events that the replay must have.
    required: u64,
    /// Whether a failed commit may have closed the session before the request. A read may fail then, too.
    may_have_closed: bool,
    /// Where the client may have been before the request.
    before: Vec<u64>,
    /// The last event of all.
    high: u64,
    /// Prompts of which the client is not sent its own words.
    pub own: Vec<String>,
    /// Whether the client was answered that it is attached, and has not left since.
    attached: bool,
    /// Whether the session may be closed after the client has joined, or before.
    doubted: bool,
    /// Whether the request to join was cancelled.
    cancelled: bool,
    /// How often it has asked to join, or has left.
    pub generation: u32,
}

impl View {
    pub fn new(name: &str, version: Version) -> Self {
        Self {
            name: name.to_owned(),
            version,
            places: Vec::new(),
            start: None,
            join: None,
            required: 0,
            may_have_closed: false,
            before: Vec::new(),
            high: 0,
            own: Vec::new(),
            attached: false,
            doubted: false,
            cancelled: false,
            generation: 0,
        }
    }

    /// Returns whether no request to join or to leave is under way, and none has failed.
    pub fn is_certain(&self) -> bool {
        self.attached && self.join.is_none()
    }

    pub fn places(&self) -> Vec<Place> {
        self.places.clone()
    }

    /// Returns the last event that the client has seen.
    pub fn seen(&self) -> u64 {
        self.high
    }

    /// The client asks to join; the server knows that the log has `required` events. `may_have_closed`:
    /// the session may have closed since the client joined it, without an answer that says so.
    pub fn joins(&mut self, join: Join, required: u64, may_have_closed: bool) {
        self.generation += 1;
        (self.doubted, self.cancelled) = (false, false);
        self.join = Some(join);
        self.required = required;
        self.may_have_closed = may_have_closed;
        let live = self
            .places
            .iter()
            .filter(|place| place.phase == Phase::Live);
        self.before = live.map(|place| place.after).collect();
        let start = match join {
            Join::Load => Some((0, Phase::Loaded)),
            Join::After(after) => Some((after, Phase::Replayed)),
            Join::Nothing => None,
        };
        self.start = start.map(|(after, phase)| Place { after, phase });
        if !self.attached {
            // Nothing is certain of what was sent before.
            self.own.clear();
        }
    }

    /// The client cancels its request to join: a replay may end where it is.
    pub fn cancels_join(&mut self) {
        self.cancelled = true;
    }

    /// The client may be detached.
    pub fn doubt(&mut self) {
        self.attached = false;
        self.doubted = true;
    }

    /// The client has left the session.
    pub fn left(&mut self) {
        self.generation += 1;
        self.places.clear();
        self.own.clear();
        self.attached = false;
        self.high = 0;
    }

    /// An update has arrived.
    pub fn update(&mut self, number: u64, update: &Value, log: &Log) -> Result<(), String> {
        let at = usize::try_from(number).unwrap();
        let Some(entry) = at.checked_sub(1).and_then(|at| log.get(at)) else {
            return Err(format!("event {number} is not committed: {update}"));
        };
        let (expected, arrived) = match self.version {
            Version::V1 => (Some(entry.value.clone()), update.clone()),
            Version::V2 => (neutral::for_v2(entry), neutral::of_v2(update.clone())),
        };
        if expected.as_ref() != Some(&arrived) {
            return Err(format!("event {number} is {expected:?}, got {arrived}"));
        }
        let mut from = self.places.clone();
        from.extend(self.start);
        if self.join.is_some() && (self.cancelled || self.may_have_closed) {
            from.extend(self.live_again());
        }
        let fits = |place: &Place| self.fits(*place, number, log);
        let mut next: Vec<_> = from.iter().copied().filter(fits).collect();
        if next.is_empty() {
            let (places, start) = (&self.places, self.start);
            return Err(format!(
                "event {number} does not follow {places:?} or {start:?}, joining {:?}: {arrived}",
                self.join
            ));
        }
        for place in &mut next {
            place.after = number;
        }
        next.dedup();
        self.high = self.high.max(number);
        if !next.iter().any(|place| place.phase == Phase::Live) {
            self.start = None;
        }
        self.places = next;
        Ok(())
    }

    fn fits(&self, place: Place, number: u64, log: &Log) -> bool {
        let sight = |number| self.sight(place.phase, number, log);
        place.after < number
            && sight(number) != Sight::Hidden
            && (place.after + 1..number).all(|number| sight(number) != Sight::Visible)
    }

    fn sight(&self, phase: Phase, number: u64, log: &Log) -> Sight {
        let entry = &log[usize::try_from(number).unwrap() - 1];
        let kind = entry.kind();
        match self.version {
            Version::V2 => match neutral::for_v2(entry) {
                Some(_) => Sight::Visible,
                None => Sight::Hidden,
            },
            Version::V1 if entry.value["event"].is_string() => Sight::Hidden,
            Version::V1 => match (kind, phase) {
                ("current_mode_update" | "config_option_update", Phase::Loaded) => Sight::Hidden,
                ("user_message_chunk", Phase::Live) => {
                    let own = entry.said().split_once(':');
                    let is_own = own.is_some_and(|(name, _)| name == self.name);
                    match is_own {
                        true if self.own.iter().any(|own| own == entry.said()) => Sight::Hidden,
                        true => Sight::Maybe,
                        false => Sight::Visible,
                    }
                }
                _ => Sight::Visible,
            },
        }
    }

    /// Returns whether a client at a place was sent everything up to an event.
    fn is_complete(&self, place: Place, last: u64, log: &Log) -> bool {
        let mut rest = place.after + 1..=last;
        rest.all(|number| self.sight(place.phase, number, log) != Sight::Visible)
    }

    /// Returns whether the client may have been sent everything up to an event, from one of `places`, and
    /// nothing behind it.
    pub fn ends_at(&self, places: &[Place], last: u64, log: &Log) -> bool {
        let complete = |place: &Place| place.after <= last && self.is_complete(*place, last, log);
        places.iter().any(complete)
    }

    /// Returns whether the client may have been sent everything up to an event.
    pub fn has_all(&self, last: u64, log: &Log) -> bool {
        let mut places = self.places.iter().chain(&self.start);
        places.any(|place| self.is_complete(*place, last, log))
    }

    /// The client was answered that it has joined; `last` as far as the answer has it.
    pub fn joined(&mut self, last: Option<u64>, log: &Log) -> Result<(), String> {
        let Some(join) = self.join.take() else {
            return Err("an answer to no request".to_owned());
        };
        let start = self.start.take();
        let was_attached = std::mem::replace(&mut self.attached, !self.doubted);
        if self.doubted {
            self.required = 0;
        }
        let phase = Phase::Live;
        if join == Join::Nothing {
            // Where the client is, if it was not attached, is known as well as when it was.
            if !was_attached || self.may_have_closed || self.required == 0 {
                let ends = self.required..=log.len() as u64;
                self.places.extend(ends.map(|after| Place { after, phase }));
            }
            return Ok(());
        }
        let mut replays = self.places.clone();
        replays.extend(start);
        replays.retain(|place| place.phase != Phase::Live);
        let mut next = Vec::new();
        for place in &replays {
            match last {
                // It has asked for later events than there are, and was sent none.
                Some(last) if last < place.after && start == Some(*place) => next.push(last),
                Some(last) if last >= place.after && self.is_complete(*place, last, log) => {
                    next.push(last);
                }
                Some(_) => {}
                // The answer does not say where the replay ended.
                None if self.is_complete(*place, self.required, log) => {
                    let ends = place.after..=log.len() as u64;
                    next.extend(ends.take_while(|end| self.is_complete(*place, *end, log)));
                }
                None => {}
            }
        }
        if last.is_some_and(|last| last < self.required) {
            let required = self.required;
            return Err(format!("a replay of {required} events ended at {last:?}"));
        }
        if next.is_empty() {
            return Err(format!("a replay is not complete: {replays:?} of {last:?}"));
        }
        next.dedup();
        self.places = next
            .into_iter()
            .map(|after| Place { after, phase })
            .collect();
        self.high = self.high.max(last.unwrap_or(0));
        Ok(())
    }

    /// The request to join has failed, at whatever point: nothing more of its replay follows.
    pub fn not_joined(&mut self) {
        (self.join, self.start) = (None, None);
        self.attached = false;
        self.places = self.live_again();
    }

    /// Returns where the client may be after a replay that ended where it was: nowhere, if it had not
    /// joined before.
    fn live_again(&self) -> Vec<Place> {
        let phase = Phase::Live;
        let places = self.before.iter().map(|after| Place {
            after: self.high.max(*after),
            phase,
        });
        let mut places: Vec<_> = places.collect();
        places.dedup();
        places
    }
}
