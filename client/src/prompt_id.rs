//! Ids of prompts.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns an id that no other prompt of any client has.
pub fn new() -> String {
    static PROCESS: OnceLock<String> = OnceLock::new();
    static PROMPTS: AtomicU64 = AtomicU64::new(1);
    let process = PROCESS.get_or_init(|| {
        let mut bytes = [0; 16];
        // Without a random source the ids of two processes may be equal. That matters only in a session
        // that both use: updates of the other one may be shown in a turn of this one.
        let _ = getrandom::fill(&mut bytes);
        format!("{:032x}", u128::from_be_bytes(bytes))
    });
    let prompt = PROMPTS.fetch_add(1, Ordering::Relaxed);
    format!("{process}-{prompt}")
}
