//! The baseline of v2.

use crate::requirements::NamedCheck;
use crate::requirements::elicitation::no_undeclared_mode;
use crate::requirements::passive::watch;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[(
    "initialization.undeclared",
    watch(
        no_undeclared_mode,
        "no turn with a client that declares less",
    ),
)];
