//! The open requests of one party.
//!
//! Both parties count their ids from zero, so each has a table of its own. A
//! table holds at most [`CAPACITY`] requests; beyond that the oldest is given
//! up, so that a file of unanswered requests costs bounded memory.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::Finding;

/// How many open requests a table holds.
pub(crate) const CAPACITY: usize = 65_536;

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Open {
    /// The method.
    pub(crate) method: String,
    /// The session it is for.
    pub(crate) session: Option<String>,
    /// Findings that wait for the answer, because it decides whether they are a probe's.
    pub(crate) held: Vec<Finding>,
    /// When it was sent, in messages since the start.
    pub(crate) sequence: u64,
}

/// Open requests by id.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    open: HashMap<String, Open>,
    order: BTreeMap<u64, String>,
}

impl Pending {
    /// Adds a request; hands back one that its id replaces or that no longer fits.
    pub(crate) fn insert(&mut self, id: &Value, open: Open) -> Option<Open> {
        let key = key(id);
        self.order.insert(open.sequence, key.clone());
        let replaced = self.open.insert(key, open);
        if let Some(replaced) = replaced {
            self.order.remove(&replaced.sequence);
            return Some(replaced);
        }
        if self.open.len() > CAPACITY
            && let Some((_, oldest)) = self.order.pop_first()
        {
            return self.open.remove(&oldest);
        }
        None
    }

    /// The request that waits for an answer with this id.
    pub(crate) fn get(&self, id: &Value) -> Option<&Open> {
        self.open.get(&key(id))
    }

    /// The same, to add to what waits for its answer.
    pub(crate) fn get_mut(&mut self, id: &Value) -> Option<&mut Open> {
        self.open.get_mut(&key(id))
    }

    /// Takes the request that an answer with this id belongs to.
    pub(crate) fn take(&mut self, id: &Value) -> Option<Open> {
        let open = self.open.remove(&key(id))?;
        self.order.remove(&open.sequence);
        Some(open)
    }

    /// Takes all that is left, oldest first.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Open> {
        let Self { open, order } = std::mem::take(self);
        let mut open = open;
        order.into_values().filter_map(move |key| open.remove(&key))
    }
}

/// Ids are equal when their JSON is: `1` and `"1"` are two ids.
fn key(id: &Value) -> String {
    id.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open(sequence: u64) -> Open {
        Open {
            method: format!("m{sequence}"),
            session: None,
            held: Vec::new(),
            sequence,
        }
    }

    #[test]
    fn a_number_and_its_text_are_two_ids() {
        let mut pending = Pending::default();
        pending.insert(&json!(1), open(0));
        pending.insert(&json!("1"), open(1));
        assert_eq!(pending.take(&json!("1")).unwrap().method, "m1");
        assert_eq!(pending.take(&json!(1)).unwrap().method, "m0");
        assert!(pending.take(&json!(1)).is_none());
    }

    #[test]
    fn a_reused_id_hands_the_first_request_back() {
        let mut pending = Pending::default();
        pending.insert(&json!(1), open(0));
        let first = pending.insert(&json!(1), open(1));
        assert_eq!(first.unwrap().method, "m0");
        let left: Vec<_> = pending.drain().map(|open| open.method).collect();
        assert_eq!(left, ["m1"]);
    }

    #[test]
    fn the_oldest_is_given_up_when_the_table_is_full() {
        let mut pending = Pending::default();
        for sequence in 0..CAPACITY as u64 {
            assert!(pending.insert(&json!(sequence), open(sequence)).is_none());
        }
        let given_up = pending.insert(&json!("one more"), open(CAPACITY as u64));
        assert_eq!(given_up.unwrap().method, "m0");
        assert_eq!(pending.drain().count(), CAPACITY);
    }
}
