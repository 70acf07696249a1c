//! Ids that cannot be guessed, or that no earlier process gave.

/// Returns the id of a new session: 128 random bits.
///
/// # Errors
///
/// When the system has no source of random numbers.
pub fn session_id() -> Result<String, getrandom::Error> {
    Ok(format!("sess_{:032x}", random()?))
}

/// Returns the id of a new connection over HTTP or WebSocket: 128 random bits.
///
/// # Errors
///
/// As [`session_id`].
pub fn connection_id() -> Result<String, getrandom::Error> {
    Ok(format!("conn_{:032x}", random()?))
}

fn random() -> Result<u128, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}

/// Returns a number that differs from those of other processes; it need not be secret.
pub(crate) fn nonce() -> u32 {
    getrandom::u32().unwrap_or_else(|_| std::process::id())
}
