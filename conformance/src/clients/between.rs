//! A filter between a client and the agent that it launches: how the bundled client is
//! broken, to prove that the checks of clients see it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use crate::mutants;
use crate::target::{Event, Target};
use crate::transcript::LINE_LIMIT;
use crate::wire::Party;
use crate::{Error, Result};

/// How long a wait for the agent's next line is, before there is another.
const WAIT: Duration = Duration::from_secs(60);

/// Launches the agent of this command, on standard input and output, behind the filter
/// of the broken client of this name, until the agent has ended.
///
/// # Errors
/// When there is no such client, or the agent cannot be started.
pub fn filter(name: &str, command: &[OsString]) -> Result<()> {
    let unknown = || Error::NoRequirement(name.to_owned());
    let mutant = mutants::find(Party::Client, name);
    let rewrite = mutant.and_then(mutants::Mutant::rewrite);
    let target = Target::command(command.to_vec()).behind(rewrite.ok_or_else(unknown)?);
    let mut link = target.start()?;
    let inlet = link.inlet().ok_or_else(unknown)?;
    thread::spawn(move || {
        let mut input = BufReader::new(std::io::stdin());
        loop {
            let mut line = Vec::new();
            let mut limited = input.by_ref().take(LINE_LIMIT as u64);
            match limited.read_until(b'\n', &mut line) {
                Ok(1..) => inlet.to_agent(line),
                // An error is an end, too.
                Ok(0) | Err(_) => return inlet.close(),
            }
        }
    });
    let mut out = std::io::stdout().lock();
    loop {
        match link.next(Instant::now() + WAIT) {
            Some(Event::Line(mut line)) => {
                line.push(b'\n');
                // A client that is gone has ended its agent, too.
                if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                    return Ok(());
                }
            }
            Some(Event::End) => return Ok(()),
            Some(Event::TooLong(_) | Event::Unanswered(_) | Event::Mark) | None => {}
        }
    }
}
