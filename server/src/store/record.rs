//! What a store knows of a session besides its events.

use std::collections::BTreeMap;

use acp_sdk::Json;
use acp_sdk::v1::{SessionConfigOptionValue, SessionId};

use super::{StoreError, StoreErrorKind};

/// A session without its events.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionRecord {
    /// The id, unique in the store.
    pub id: SessionId,
    /// A name that the user gave, unique in the store.
    pub name: Option<String>,
    /// The working directory, absolute. Never changes.
    pub cwd: String,
    /// Further roots, absolute.
    pub additional_directories: Vec<String>,
    /// The title, if it has one.
    pub title: Option<String>,
    /// Time of creation: ISO 8601 in UTC with milliseconds.
    pub created_at: String,
    /// Time of the last activity: the end of the last turn, or the creation. As `created_at`.
    pub updated_at: String,
    /// Values of config options that differ from their defaults, by option id.
    pub settings: BTreeMap<String, SessionConfigOptionValue>,
    /// What the handler keeps of the session; see [`Session::set_data`](crate::Session::set_data).
    pub data: Option<Json>,
    /// Number of the event with which the running turn began. If a process opens a session in
    /// which one runs, the process that ran it has been killed.
    pub running_turn: Option<u64>,
    /// Number of the last event; 0 before the first. Set by the store.
    pub last_event: u64,
    /// Number of the oldest event that the session still has; 1 unless some were removed, and
    /// `last_event + 1` if it has none. Set by the store.
    pub oldest_event: u64,
    /// The session that this one was forked from, and the number of the last event it took. Set
    /// by [`Store::fork`](super::Store::fork).
    pub forked_from: Option<(SessionId, u64)>,
}

impl SessionRecord {
    /// Creates the record of a session without events, with every setting at its default.
    pub fn new(id: impl Into<SessionId>, cwd: impl Into<String>) -> Self {
        let now = crate::clock::now();
        Self {
            id: id.into(),
            name: None,
            cwd: cwd.into(),
            additional_directories: Vec::new(),
            title: None,
            created_at: now.clone(),
            updated_at: now,
            settings: BTreeMap::new(),
            data: None,
            running_turn: None,
            last_event: 0,
            oldest_event: 1,
            forked_from: None,
        }
    }

    /// Returns whether events were removed.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.oldest_event > 1
    }

    /// The default maximum of a record's bytes: 1 MiB.
    pub const MAX_BYTES: usize = 1 << 20;

    /// Returns the bytes of the record's texts, for implementations of stores.
    ///
    /// # Errors
    ///
    /// `Full` when there are more than `limit`.
    pub fn check_bytes(&self, limit: usize) -> Result<usize, StoreError> {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let directories = self.additional_directories.iter().map(String::len);
        let mut bytes = self.id.as_str().len()
            + text(&self.name)
            + self.cwd.len()
            + directories.sum::<usize>()
            + text(&self.title)
            + self.data.as_ref().map_or(0, |data| data.get().len());
        if !self.settings.is_empty() {
            bytes += self.settings_text()?.len();
        }
        if bytes <= limit {
            return Ok(bytes);
        }
        let message = format!(
            "the record of session {} has {bytes} bytes, more than the maximum of {limit} \
             (`max_record_bytes`): id, name, directories, title, settings and data",
            self.id
        );
        Err(StoreError::new(StoreErrorKind::Full, message))
    }

    /// Returns the settings as JSON, for implementations of stores.
    ///
    /// # Errors
    ///
    /// `Corrupt` when a value is no JSON.
    pub fn settings_text(&self) -> Result<String, StoreError> {
        serde_json::to_string(&self.settings).map_err(|error| {
            let message = format!("the settings of session {} are no JSON", self.id);
            StoreError::new(StoreErrorKind::Corrupt, message).with_source(error)
        })
    }
}

/// Changes of a record; members that are `None` keep their value.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RecordChange {
    /// Replaces the name.
    pub name: Option<Option<String>>,
    /// Replaces the further roots.
    pub additional_directories: Option<Vec<String>>,
    /// Replaces the title.
    pub title: Option<Option<String>>,
    /// Replaces the time of the last activity.
    pub updated_at: Option<String>,
    /// Replaces the settings.
    pub settings: Option<BTreeMap<String, SessionConfigOptionValue>>,
    /// Replaces the handler's data.
    pub data: Option<Option<Json>>,
    /// Replaces the running turn.
    pub running_turn: Option<Option<u64>>,
}

impl RecordChange {
    /// Returns whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds later changes to these.
    pub fn merge(&mut self, later: Self) {
        let Self {
            name,
            additional_directories,
            title,
            updated_at,
            settings,
            data,
            running_turn,
        } = later;
        self.name = name.or(self.name.take());
        self.additional_directories = additional_directories.or(self.additional_directories.take());
        self.title = title.or(self.title.take());
        self.updated_at = updated_at.or(self.updated_at.take());
        self.settings = settings.or(self.settings.take());
        self.data = data.or(self.data.take());
        self.running_turn = running_turn.or(self.running_turn.take());
    }

    /// Changes a record.
    pub fn apply(self, record: &mut SessionRecord) {
        let Self {
            name,
            additional_directories,
            title,
            updated_at,
            settings,
            data,
            running_turn,
        } = self;
        if let Some(name) = name {
            record.name = name;
        }
        if let Some(directories) = additional_directories {
            record.additional_directories = directories;
        }
        if let Some(title) = title {
            record.title = title;
        }
        if let Some(updated_at) = updated_at {
            record.updated_at = updated_at;
        }
        if let Some(settings) = settings {
            record.settings = settings;
        }
        if let Some(data) = data {
            record.data = data;
        }
        if let Some(running_turn) = running_turn {
            record.running_turn = running_turn;
        }
    }
}
