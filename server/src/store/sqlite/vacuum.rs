//! Giving free space of the file back to the file system, a little at a time.
//!
//! What is deleted leaves free pages, which later events use. Where there are many, pages from the
//! end of the file are moved there and the file is cut. SQLite can do so in files that were created
//! with `auto_vacuum = INCREMENTAL`, as this crate's are since version 4.

use rusqlite::Connection;

use super::failure::Failure;

/// Pages that are given back in one transaction: 256 KiB with the default page size.
const STEP: u64 = 64;

/// Free bytes that are never too many.
const MIN_FREE: u64 = 4 << 20;

/// Gives pages back, if more than a quarter of the file and more than [`MIN_FREE`] is free. Returns
/// whether there is more to do.
pub(super) fn step(connection: &Connection) -> Result<bool, Failure> {
    let free = free(connection)?;
    if free == 0 {
        return Ok(false);
    }
    let sql = format!("PRAGMA incremental_vacuum({STEP})");
    let mut statement = connection.prepare_cached(&sql)?;
    // Each row is a page.
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    // Nothing changes in a file of an earlier version.
    let after = self::free(connection)?;
    if (1..free).contains(&after) {
        return Ok(true);
    }
    // The file is cut when its log is moved into it. Where a reader is in the way, a later
    // checkpoint does it.
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    Ok(false)
}

/// Returns the number of free pages, 0 if they are not too many.
fn free(connection: &Connection) -> Result<u64, Failure> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let free = number("freelist_count")?;
    let is_much = free > number("page_count")? / 4 && free * number("page_size")? > MIN_FREE;
    Ok(if is_much { free } else { 0 })
}
