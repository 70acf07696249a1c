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
use super::table::ClientRequirement;

/// The tables, in the order in which they are shown.
pub(super) const TABLES: [&[ClientRequirement]; 3] = [rows::ROWS, batches::ROWS, pages::ROWS];
