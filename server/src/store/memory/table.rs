//! The sessions of a [`MemoryStore`](super::MemoryStore) and their indexes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use acp_sdk::v1::SessionId;

use crate::event::Batch;
use crate::store::{
    Commit, EventPage, Lease, ListQuery, RecordChange, SessionRecord, StoreError, StoreErrorKind,
    StoreUsage, StoredPrompt,
};

#[derive(Debug)]
pub(super) struct Limits {
    pub(super) bytes: usize,
    pub(super) sessions: usize,
    pub(super) record_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            sessions: 100_000,
            record_bytes: SessionRecord::MAX_BYTES,
        }
    }
}

/// The place of a session in a list: the latest activity first, then by id.
type Position = (Reverse<String>, SessionId);

#[derive(Debug, Default)]
pub(super) struct Table {
    sessions: HashMap<SessionId, Entry>,
    names: HashMap<String, SessionId>,
    by_activity: BTreeSet<Position>,
    by_cwd: HashMap<String, BTreeSet<Position>>,
    /// Sessions whose record is newer than their place in the indexes by activity. Every turn
    /// changes the activity, and lists are rare: the indexes are brought up to date for a list.
    moved: HashSet<SessionId>,
    /// Bytes of all records and events.
    bytes: usize,
    /// The highest token ever given. It is counted over all sessions, so that a lease of a deleted
    /// session is not valid for a later session with its id.
    tokens: u64,
}

#[derive(Debug)]
struct Entry {
    record: SessionRecord,
    record_bytes: usize,
    /// The activity with which the session is in the indexes.
    listed: String,
    batches: VecDeque<Arc<Batch>>,
    event_bytes: usize,
    /// The texts of those that wait, by their numbers.
    prompts: BTreeMap<u64, Arc<str>>,
    prompt_bytes: usize,
    /// The token of the valid lease.
    lease: Option<u64>,
}

impl Table {
    pub(super) fn create(
        &mut self,
        limits: &Limits,
        record: &SessionRecord,
    ) -> Result<Lease, StoreError> {
        let mut record = record.clone();
        (record.last_event, record.oldest_event) = (0, 1);
        self.add(limits, record, VecDeque::new())
    }

    pub(super) fn acquire(
        &mut self,
        session: &SessionId,
    ) -> Result<(SessionRecord, Lease), StoreError> {
        let entry = self.sessions.get_mut(session);
        let entry = entry.ok_or_else(|| StoreError::no_session(session))?;
        self.tokens += 1;
        entry.lease = Some(self.tokens);
        let lease = Lease::new(session.clone(), self.tokens);
        Ok((entry.record.clone(), lease))
    }

    pub(super) fn acquire_unused(
        &mut self,
        session: &SessionId,
    ) -> Result<(SessionRecord, Lease), StoreError> {
        match self.sessions.get(session) {
            Some(entry) if entry.lease.is_some() => Err(StoreError::in_use(session)),
            _ => self.acquire(session),
        }
    }

    pub(super) fn usage(&self) -> StoreUsage {
        let records = self.sessions.values().map(|entry| &entry.record);
        StoreUsage {
            sessions: self.sessions.len() as u64,
            events: records
                .map(|record| record.last_event + 1 - record.oldest_event)
                .sum(),
            used_bytes: self.bytes as u64,
            disk_bytes: 0,
        }
    }

    pub(super) fn release(&mut self, lease: &Lease) {
        if let Some(entry) = self.sessions.get_mut(&lease.session)
            && entry.lease == Some(lease.token)
        {
            entry.lease = None;
        }
    }

    pub(super) fn commit(
        &mut self,
        limits: &Limits,
        lease: &Lease,
        commit: &Commit,
    ) -> Result<(), StoreError> {
        let session = &lease.session;
        let entry = self.sessions.get(session);
        let entry = entry
            .filter(|entry| entry.lease == Some(lease.token))
            .ok_or_else(|| StoreError::lost_lease(session))?;
        let last = entry.record.last_event;
        let events = commit.events.as_ref().filter(|events| !events.is_empty());
        let added = events.as_ref().map_or(0, |events| events.bytes());
        if let Some(events) = events
            && events.first() != last + 1
        {
            return Err(StoreError::gap(session, last, events.first()));
        }
        let record_bytes = match &commit.change {
            // What every turn changes has always the same size.
            RecordChange {
                name: None,
                additional_directories: None,
                title: None,
                settings: None,
                data: None,
                ..
            } => entry.record_bytes,
            change => {
                let mut record = entry.record.clone();
                change.clone().apply(&mut record);
                self.check_name(&record)?;
                record.check_bytes(limits.record_bytes)?
            }
        };
        let new = commit.prompts.add.iter();
        let new = new.filter(|prompt| !entry.prompts.contains_key(&prompt.number));
        let prompted: usize = new.map(|prompt| prompt.text.len()).sum();
        let bytes = self.bytes + added + prompted + record_bytes - entry.record_bytes;
        let trimmed = commit.trim_before.map_or(0, |before| {
            let gone = entry.batches.range(..entry.batches_before(before));
            gone.map(|batch| batch.bytes()).sum()
        });
        // Without need for more room, a change is accepted by a full store too.
        if bytes - trimmed > self.bytes {
            check_room(limits, bytes - trimmed)?;
        }

        self.bytes = bytes;
        let Some(entry) = self.sessions.get_mut(session) else {
            return Ok(());
        };
        if commit.change.updated_at.is_some() && !self.moved.contains(session) {
            self.moved.insert(session.clone());
        }
        if let Some(name) = &commit.change.name {
            if let Some(old) = &entry.record.name {
                self.names.remove(old);
            }
            if let Some(name) = name {
                self.names.insert(name.clone(), session.clone());
            }
        }
        entry.record_bytes = record_bytes;
        commit.change.clone().apply(&mut entry.record);
        if let Some(events) = events {
            entry.record.last_event = events.last();
            entry.event_bytes += added;
            entry.batches.push_back(events.clone());
        }
        if let Some(before) = commit.trim_before {
            self.bytes -= entry.trim(before);
        }
        for prompt in &commit.prompts.add {
            let added = entry.prompts.entry(prompt.number);
            added.or_insert_with(|| prompt.text.clone());
        }
        entry.prompt_bytes += prompted;
        for number in &commit.prompts.remove {
            if let Some(text) = entry.prompts.remove(number) {
                entry.prompt_bytes -= text.len();
                self.bytes -= text.len();
            }
        }
        Ok(())
    }

    pub(super) fn find(&self, session: &SessionId) -> Option<SessionRecord> {
        let entry = self.sessions.get(session)?;
        Some(entry.record.clone())
    }

    pub(super) fn list(&mut self, query: &ListQuery) -> Vec<SessionRecord> {
        self.update_indexes();
        let after = query.after.as_ref();
        let after = after.map(|(activity, id)| (Reverse(activity.clone()), id.clone()));
        if let Some(name) = &query.name {
            let named = self.names.get(name).and_then(|id| self.sessions.get(id));
            let record = named.map(|entry| &entry.record).filter(|record| {
                query.cwd.as_ref().is_none_or(|cwd| record.cwd == *cwd)
                    && after.is_none_or(|after| match query.oldest_first {
                        true => position(record) < after,
                        false => position(record) > after,
                    })
            });
            return record.into_iter().take(query.limit).cloned().collect();
        }
        let positions = match &query.cwd {
            Some(cwd) => self.by_cwd.get(cwd),
            None => Some(&self.by_activity),
        };
        let Some(positions) = positions else {
            return Vec::new();
        };
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = |(_, id): &Position| self.find(id);
        if query.oldest_first {
            let positions = positions.range((Bound::Unbounded, after)).rev();
            return positions.filter_map(found).take(query.limit).collect();
        }
        let positions = positions.range((after, Bound::Unbounded));
        positions.filter_map(found).take(query.limit).collect()
    }

    pub(super) fn read(
        &self,
        session: &SessionId,
        after: u64,
        max_bytes: usize,
    ) -> Result<EventPage, StoreError> {
        let entry = self.sessions.get(session);
        let entry = entry.ok_or_else(|| StoreError::no_session(session))?;
        let oldest = entry.record.oldest_event;
        let next = after.saturating_add(1).max(oldest);
        let mut batches = Vec::new();
        let mut bytes = 0;
        for batch in entry.batches.range(entry.batches_before(next)..) {
            bytes += batch.bytes();
            if bytes > max_bytes && !batches.is_empty() {
                break;
            }
            batches.push(match batch.first() < oldest {
                true => Arc::new(batch.since(oldest)),
                false => batch.clone(),
            });
        }
        Ok(EventPage {
            batches,
            oldest,
            last: entry.record.last_event,
        })
    }

    pub(super) fn prompts(&self, session: &SessionId) -> Vec<StoredPrompt> {
        let entry = self.sessions.get(session);
        let prompts = entry.into_iter().flat_map(|entry| &entry.prompts);
        let prompts = prompts.map(|(number, text)| StoredPrompt::new(*number, text.clone()));
        prompts.collect()
    }

    pub(super) fn fork(
        &mut self,
        limits: &Limits,
        source: &SessionId,
        up_to: Option<u64>,
        target: &SessionRecord,
    ) -> Result<Lease, StoreError> {
        let entry = self.sessions.get(source);
        let entry = entry.ok_or_else(|| StoreError::no_session(source))?;
        let last = entry.record.last_event.min(up_to.unwrap_or(u64::MAX));
        let oldest = entry.record.oldest_event.min(last + 1);
        let batches = entry.batches.iter();
        let batches = batches.take_while(|batch| oldest.max(batch.first()) <= last);
        let batches = batches.map(|batch| {
            if batch.last() <= last {
                batch.clone()
            } else {
                Arc::new(batch.up_to(last))
            }
        });
        let batches = batches.collect();
        let mut record = target.clone();
        (record.last_event, record.oldest_event) = (last, oldest);
        record.forked_from = Some((source.clone(), last));
        self.add(limits, record, batches)
    }

    pub(super) fn delete(&mut self, session: &SessionId) -> bool {
        let Some(entry) = self.sessions.remove(session) else {
            return false;
        };
        self.moved.remove(session);
        self.unlist(&entry);
        self.bytes -= entry.record_bytes + entry.event_bytes + entry.prompt_bytes;
        true
    }

    fn add(
        &mut self,
        limits: &Limits,
        record: SessionRecord,
        batches: VecDeque<Arc<Batch>>,
    ) -> Result<Lease, StoreError> {
        if self.sessions.contains_key(&record.id) {
            return Err(StoreError::id_taken(&record.id));
        }
        self.check_name(&record)?;
        if self.sessions.len() >= limits.sessions {
            let message = format!(
                "the store in memory has {} sessions, its maximum (`max_sessions`). Delete \
                 sessions, or raise the limit",
                self.sessions.len()
            );
            return Err(StoreError::new(StoreErrorKind::Full, message));
        }
        let record_bytes = record.check_bytes(limits.record_bytes)?;
        let event_bytes = batches.iter().map(|batch| batch.bytes()).sum();
        let bytes = self.bytes + record_bytes + event_bytes;
        check_room(limits, bytes)?;

        self.bytes = bytes;
        self.tokens += 1;
        let id = record.id.clone();
        self.enlist(&record);
        let entry = Entry {
            listed: record.updated_at.clone(),
            record,
            record_bytes,
            batches,
            event_bytes,
            prompts: BTreeMap::new(),
            prompt_bytes: 0,
            lease: Some(self.tokens),
        };
        self.sessions.insert(id.clone(), entry);
        Ok(Lease::new(id, self.tokens))
    }

    fn check_name(&self, record: &SessionRecord) -> Result<(), StoreError> {
        match &record.name {
            Some(name) if self.names.get(name).is_some_and(|id| *id != record.id) => {
                Err(StoreError::name_taken(name))
            }
            _ => Ok(()),
        }
    }

    /// Gives the sessions that were active their place in the indexes.
    fn update_indexes(&mut self) {
        for session in std::mem::take(&mut self.moved) {
            let Some(entry) = self.sessions.get_mut(&session) else {
                continue;
            };
            let cwd = entry.record.cwd.clone();
            let new = position(&entry.record);
            let listed = std::mem::replace(&mut entry.listed, entry.record.updated_at.clone());
            let old = (Reverse(listed), session);
            self.by_activity.remove(&old);
            self.by_activity.insert(new.clone());
            let in_cwd = self.by_cwd.entry(cwd).or_default();
            in_cwd.remove(&old);
            in_cwd.insert(new);
        }
    }

    /// Adds a session to the indexes.
    fn enlist(&mut self, record: &SessionRecord) {
        if let Some(name) = &record.name {
            self.names.insert(name.clone(), record.id.clone());
        }
        self.by_activity.insert(position(record));
        let in_cwd = self.by_cwd.entry(record.cwd.clone()).or_default();
        in_cwd.insert(position(record));
    }

    /// Removes a session from the indexes.
    fn unlist(&mut self, entry: &Entry) {
        let record = &entry.record;
        if let Some(name) = &record.name {
            self.names.remove(name);
        }
        let listed = (Reverse(entry.listed.clone()), record.id.clone());
        self.by_activity.remove(&listed);
        if let Some(in_cwd) = self.by_cwd.get_mut(&record.cwd) {
            in_cwd.remove(&listed);
            if in_cwd.is_empty() {
                self.by_cwd.remove(&record.cwd);
            }
        }
    }
}

impl Entry {
    /// Returns how many batches have no event from the number `before` on.
    fn batches_before(&self, before: u64) -> usize {
        self.batches.partition_point(|batch| batch.last() < before)
    }

    /// Removes the events before a number and returns the bytes of the batches that are gone. A
    /// batch stays whole until its last event is removed, for others may share it.
    fn trim(&mut self, before: u64) -> usize {
        let before = before.min(self.record.last_event + 1);
        self.record.oldest_event = self.record.oldest_event.max(before);
        let gone = self.batches.drain(..self.batches_before(before));
        let bytes = gone.map(|batch| batch.bytes()).sum();
        self.event_bytes -= bytes;
        bytes
    }
}

fn position(record: &SessionRecord) -> Position {
    (Reverse(record.updated_at.clone()), record.id.clone())
}

fn check_room(limits: &Limits, bytes: usize) -> Result<(), StoreError> {
    if bytes <= limits.bytes {
        return Ok(());
    }
    let message = format!(
        "the store in memory would hold {bytes} bytes, more than its maximum of {} (`max_bytes`). \
         Delete sessions, raise the limit, or use a store on disk",
        limits.bytes
    );
    Err(StoreError::new(StoreErrorKind::Full, message))
}
