//! The command as its users run it: arguments in, text and exit code out.

mod check;
mod command;
