//! Random numbers that repeat for a seed.

use std::sync::{Arc, Mutex};

/// SplitMix64. Clones share the sequence.
#[derive(Clone)]
pub(super) struct Random(Arc<Mutex<u64>>);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    pub(super) fn below(&self, limit: u64) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}
