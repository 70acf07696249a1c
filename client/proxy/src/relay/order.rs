//! What waits for hooks, in the order of its session.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

/// Bytes of waiting messages from which on their sender is not read.
const FULL: usize = 1 << 20;

/// Messages of one sender, by session. What names no session has an order of its own, as `""`.
#[derive(Debug, Default)]
pub(super) struct Order {
    held: HashMap<Box<str>, Held>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Held {
    /// The hook that holds back.
    by: Option<u64>,
    queue: VecDeque<Bytes>,
}

impl Order {
    /// Lets a hook hold back what its session sends from now on.
    pub(super) fn hold(&mut self, session: &str, hook: u64) {
        match self.held.get_mut(session) {
            Some(held) => held.by = Some(hook),
            None => {
                let held = Held {
                    by: Some(hook),
                    queue: VecDeque::new(),
                };
                self.held.insert(session.into(), held);
            }
        }
    }

    /// Lets a message wait if its session's do; returns whether it does.
    pub(super) fn wait(&mut self, session: &str, message: &[u8]) -> bool {
        let Some(held) = self.held.get_mut(session) else {
            return false;
        };
        self.bytes += message.len();
        held.queue.push_back(Bytes::copy_from_slice(message));
        true
    }

    /// Ends what a hook holds back, and returns its session.
    pub(super) fn release(&mut self, hook: u64) -> Option<Box<str>> {
        let mut held = self.held.iter_mut();
        let (session, held) = held.find(|(_, held)| held.by == Some(hook))?;
        held.by = None;
        Some(session.clone())
    }

    /// Returns the next message of a session that no hook holds back.
    pub(super) fn next(&mut self, session: &str) -> Option<Bytes> {
        let held = self.held.get_mut(session)?;
        if held.by.is_some() {
            return None;
        }
        let message = held.queue.pop_front();
        match &message {
            Some(message) => self.bytes -= message.len(),
            None => drop(self.held.remove(session)),
        }
        message
    }

    /// Returns the session in whose order a message waits that `is` the one looked for.
    pub(super) fn find(&self, is: impl Fn(&Bytes) -> bool) -> Option<Box<str>> {
        let mut held = self.held.iter();
        let (session, _) = held.find(|(_, held)| held.queue.iter().any(&is))?;
        Some(session.clone())
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= FULL
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_waits_for_its_hook_alone() {
        let mut order = Order::default();
        assert!(!order.wait("a", b"1"));
        order.hold("a", 1);
        assert!(!order.wait("b", b"1"));
        assert!(order.wait("a", b"1"));
        assert!(order.wait("a", b"2"));
        assert_eq!(order.find(|message| message == "2").as_deref(), Some("a"));
        assert_eq!(order.next("a"), None);
        assert_eq!(order.release(2), None);
        assert_eq!(order.release(1).as_deref(), Some("a"));
        assert_eq!(order.next("a").unwrap(), "1");
        order.hold("a", 2);
        assert_eq!(order.next("a"), None);
        assert_eq!(order.release(2).as_deref(), Some("a"));
        assert_eq!(order.next("a").unwrap(), "2");
        assert_eq!(order.next("a"), None);
        assert!(order.is_empty() && order.bytes == 0);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut order = Order::default();
        order.hold("", 1);
        assert!(order.wait("", &[b' '; FULL]));
        assert!(order.is_full());
    }
}
