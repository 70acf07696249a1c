//! Clients of version 2: what they must obey, the scenes that show it, how an agent of version 2
//! acts them, and a client to compare with.

mod act;
mod batches;
mod pages;
mod reference;
mod rows;
mod scenes;

pub(super) use self::act::serve;
pub(crate) use self::reference::run as reference;
pub(super) use self::scenes::SCENES;
use super::table::ClientCheck;

/// The checks of all files.
pub(super) const CHECKS: [&[ClientCheck]; 3] = [rows::CHECKS, batches::CHECKS, pages::CHECKS];
