//! Clients of version 2: what they must obey, the scenarios that show it, how an agent of version 2
//! acts them.

mod act;
mod arrays;
mod rows;
mod scenarios;

pub(super) use self::act::{accept_prompt, end_turn};
pub(super) use self::scenarios::SCENES;
use super::played::ClientCheck;
use super::{choices, ids, pages, questions, requests};

/// The checks of all files.
pub(super) const CHECKS: [&[ClientCheck]; 7] = [
    rows::CHECKS,
    requests::CHECKS,
    arrays::CHECKS,
    pages::CHECKS,
    choices::CHECKS,
    questions::CHECKS,
    ids::CHECKS,
];
