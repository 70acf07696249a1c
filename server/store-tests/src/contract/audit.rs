//! Compares a session with what was acknowledged, after its process was killed.

use std::collections::HashSet;

use acp_sdk::v1::SessionId;
use acp_server::store::Store;

/// The result of [`session`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audit {
    /// Number of the last event.
    pub last: u64,
    /// What is wrong, one text per fault; at most 20.
    pub faults: Vec<String>,
}

/// Reads a session from its beginning and checks that numbers have no holes, that no event is
/// there twice, and that every acknowledged one is there.
///
/// `identity` returns the part of an event's text by which it is unique in the session, `None` for
/// an event without one. `acknowledged` are pairs of number and identity.
pub async fn session<'a>(
    store: &dyn Store,
    session: &SessionId,
    identity: impl Fn(&str) -> Option<String>,
    acknowledged: impl IntoIterator<Item = (u64, &'a str)>,
) -> Audit {
    let mut audit = Audit::default();
    let mut identities: Vec<Option<String>> = Vec::new();
    let mut distinct = HashSet::new();
    loop {
        let page = match store.read(session, audit.last, 1 << 20).await {
            Ok(page) => page,
            Err(error) => {
                audit.fault(format!("read after {}: {error}", audit.last));
                break;
            }
        };
        let before = audit.last;
        for (number, text) in page.batches.iter().flat_map(|batch| batch.after(before)) {
            if number != audit.last + 1 {
                audit.fault(format!("event {number} follows {}", audit.last));
            }
            audit.last = number;
            let identity = identity(text);
            if let Some(identity) = &identity
                && !distinct.insert(identity.clone())
            {
                audit.fault(format!("event {number} repeats {identity}"));
            }
            identities.push(identity);
        }
        if audit.last == before {
            if page.last != audit.last {
                audit.fault(format!(
                    "the last event is {}, not {}",
                    audit.last, page.last
                ));
            }
            break;
        }
    }
    match store.find(session).await {
        Ok(Some(record)) if record.last_event == audit.last => {}
        Ok(record) => {
            let last = record.map(|record| record.last_event);
            audit.fault(format!(
                "the last event is {}, its record has {last:?}",
                audit.last
            ));
        }
        Err(error) => audit.fault(format!("find: {error}")),
    }
    for (number, identity) in acknowledged {
        let at = usize::try_from(number).unwrap_or(0).wrapping_sub(1);
        let kept = identities.get(at).and_then(Option::as_deref);
        if kept != Some(identity) {
            let message = format!("event {number} was acknowledged as {identity}, got {kept:?}");
            audit.fault(message);
        }
    }
    audit
}

impl Audit {
    /// Returns whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    fn fault(&mut self, fault: String) {
        if self.faults.len() < 20 {
            self.faults.push(fault);
        }
    }
}
