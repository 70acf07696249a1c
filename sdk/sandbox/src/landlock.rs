//! Landlock, the access control of Linux.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};

use crate::{SandboxError, SandboxErrorKind};

/// The first version that refuses truncating: Linux 6.2. With an earlier one, a confined process could
/// empty any file of the user.
const LEAST: ABI = ABI::V3;

/// Devices that keep nothing of what is written.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

#[derive(Debug)]
pub(crate) struct Ruleset(RulesetCreated);

impl Ruleset {
    pub(crate) fn new(writable: &[PathBuf], has_network: bool) -> Result<Self, SandboxError> {
        if !has_network {
            return Err(SandboxError::unenforceable(
                "Landlock cannot keep a process off the network, only off TCP: use bubblewrap",
            ));
        }
        let unenforceable = |error: RulesetError| {
            SandboxError::unenforceable(format!(
                "this system does not enforce Landlock ({error}). It needs Linux 6.2 or later, with \
                 `landlock` in the kernel's list of security modules; or use bubblewrap"
            ))
        };
        let required = landlock::Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(LEAST))
            .map_err(unenforceable)?;
        // Beyond what is promised: refused where the kernel can.
        let scoped = required
            .set_compatibility(CompatLevel::BestEffort)
            .scope(Scope::from_all(ABI::V6))
            .map_err(unenforceable)?;
        let mut ruleset = scoped
            .create()
            .map_err(unenforceable)?
            .set_compatibility(CompatLevel::HardRequirement);
        let devices = DEVICES.iter().map(Path::new).filter(|path| path.exists());
        for path in devices.chain(writable.iter().map(PathBuf::as_path)) {
            let failed = |error: &dyn std::fmt::Display| {
                let message = format!("{} cannot be made writable: {error}", path.display());
                SandboxError::new(SandboxErrorKind::Path, message)
            };
            let mut access = AccessFs::from_write(LEAST);
            if !path.is_dir() {
                access &= AccessFs::from_file(LEAST);
            }
            // An open path, so that another one in its place gains nothing.
            let open = PathFd::new(path).map_err(|error| failed(&error))?;
            let rule = PathBeneath::new(open, access);
            ruleset = ruleset.add_rule(rule).map_err(|error| failed(&error))?;
        }
        Ok(Self(ruleset))
    }

    /// Confines the calling thread, and the processes that it starts, for good.
    pub(crate) fn confine_thread(&self) -> io::Result<()> {
        let ruleset = self.0.try_clone()?;
        ruleset.restrict_self().map_err(io::Error::other)?;
        Ok(())
    }
}
