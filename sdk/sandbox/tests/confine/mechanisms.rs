//! What this machine enforces, for the tests of other crates too.

use acp_sandbox::{Mechanism, SandboxSettings};

/// Returns the mechanisms of this machine, and says which are not tested.
pub(crate) fn mechanisms() -> Vec<Mechanism> {
    let is_there = |mechanism: &Mechanism| match SandboxSettings::new(*mechanism).prepare() {
        Ok(_) => true,
        Err(error) => {
            eprintln!("not tested: {error}");
            false
        }
    };
    Mechanism::ALL.into_iter().filter(is_there).collect()
}
